"""The harness itself: what it says of tiny guests whose every step is known (tests/harness/)."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from labs.tools.machine.bounded import Patience
from labs.tools.machine.disk_trace import Request
from labs.tools.machine.machine import Machine, run
from labs.tools.machine.qemu_command import Config, ConfigError, DiskError, Drive
from labs.tools.machine.result import GuestFailure, Outcome, TestLine, ktap
from labs.tools.machine.symbols import Symbols

ROOT = Path(__file__).resolve().parents[2]
GUESTS = ROOT / "tests" / "harness"
SECTOR = 512
Assemble = Callable[..., Config]


@pytest.fixture(scope="session")
def assemble(tmp_path_factory: pytest.TempPathFactory) -> Assemble:
    """Makes a boot sector of a guest, with NASM macros; returns the machine that starts it."""
    directory = tmp_path_factory.mktemp("guests")
    tools = str(ROOT / "labs" / "tools" / "setup" / "toolchain.sh")
    linker = subprocess.check_output([tools, "ld"], text=True).split()

    def assemble_guest(name: str, address: int = 0x7C00, **macros: object) -> Config:
        stem = directory / f"{name}-{len(list(directory.iterdir()))}"
        defines = [f"-D{macro}={value}" for macro, value in macros.items()]
        link = [*linker, f"-Ttext={address:#x}", "-e", "start", f"{stem}.o"]
        nasm = ["nasm", "-f", "elf32", "-g", "-F", "dwarf", "-I", f"{GUESTS}/", *defines]
        commands = (
            [*nasm, "-o", f"{stem}.o", str(GUESTS / f"{name}.asm")],
            [*link, "-o", f"{stem}.elf"],
            [*link, "--oformat=binary", "-o", f"{stem}.img"],
        )
        for command in commands:
            subprocess.run(command, check=True, capture_output=True)
        return Config(image=Path(f"{stem}.img"), kernel=Path(f"{stem}.elf"), guest_limit=20)

    return assemble_guest


def with_changes(config: Config, **changes: object) -> Config:
    """The same machine with other fields."""
    return Config(**{**config.__dict__, **changes})


def disk(path: Path, sectors: int, marks: dict[int, bytes]) -> Path:
    """A sparse image; each sector in `marks` begins with that byte."""
    with path.open("wb") as image:
        image.truncate(sectors * SECTOR)
        for lba, mark in marks.items():
            image.seek(lba * SECTOR)
            image.write(mark)
    return path


@pytest.fixture
def three_disks(tmp_path: Path) -> tuple[Drive, ...]:
    """hdb to hdd, marked where disks.asm and dma.asm read last; hdd needs 48-bit addresses."""
    return (
        Drive(disk(tmp_path / "b", 64, {5: b"b", 9: b"x"}), 1),
        Drive(disk(tmp_path / "c", 1024, {0x20 + 255: b"c"}), 2),
        Drive(
            disk(
                tmp_path / "d",
                0x20000000,
                {0x12345678 + 2: b"d", 0x12345600 + 31: b"m", 0x10203040 + 23: b"D"},
            ),
            3,
        ),
    )


# How runs end


def test_status(assemble: Assemble) -> None:
    result = run(assemble("end", STATUS=3, TEXT="'hi',13,10"))
    assert (result.outcome, result.status, result.serial) == (Outcome.ENDED, 3, "hi\n")
    result.check(3)
    with pytest.raises(GuestFailure, match=r"expected status 0.*switched off with status 3"):
        result.check()


def test_status_by_the_exit_port(assemble: Assemble) -> None:
    config = with_changes(assemble("end", STATUS=62, TEXT="'hi'"), debug_exit=True, kernel=None)
    assert run(config).check(62).block_statistics == {}


def test_power_off_without_a_status(assemble: Assemble) -> None:
    result = run(assemble("power_off"))
    assert (result.outcome, result.status) == (Outcome.ENDED, None)
    with pytest.raises(GuestFailure, match="without a status"):
        result.check()


def test_every_address_has_words() -> None:
    """Even one that no stack should hold: what a broken kernel leaves there is looked up, too."""
    symbols = Symbols(None)
    symbols.loader = Symbols(None)
    for address in (0, 1, 0x7C00, 0x9FFFF, 0xFFFFF, 0x100000, 0xFFFFFFFF):
        for is_return in (False, True):
            assert symbols.describe(address, is_return).startswith(f"{address:#010x}")


def test_a_kernel_that_is_no_elf_file_has_no_names(tmp_path: Path) -> None:
    """Linux's own, when it hangs: the report has numbers then, and is no error of ours."""
    (tmp_path / "vmlinuz").write_bytes(b"MZ" + bytes(1000))
    symbols = Symbols(tmp_path / "vmlinuz")
    assert symbols.describe(0xC0100000) == "0xc0100000"
    with pytest.raises(KeyError, match=r"no symbol kmain in .*vmlinuz"):
        symbols.find("kmain")


def test_panic(assemble: Assemble) -> None:
    result = run(assemble("panic"))
    assert (result.outcome, result.status) == (Outcome.PANIC, 63)
    assert "PANIC: page fault at 0x00000010\nEAX=0\nbacktrace:\n" in result.explain()
    assert "kernel panicked" in result.explain()


def test_an_exercise_that_is_missing_is_named_first(assemble: Assemble) -> None:
    """A blank ends the machine as a panic does, or in the loader without a status; to a student it
    is neither."""
    words = "exercise 4.1 is not written yet (labs/lesson4/README.md)"
    result = replace(run(assemble("panic")), serial=f"files: 3 from the host\n\n{words}\n")
    for outcome, status in ((Outcome.PANIC, 63), (Outcome.ENDED, None)):
        text = replace(result, outcome=outcome, status=status).explain()
        assert text.startswith(f"{words}, after ")
        assert "panicked" not in text
        assert "without a status" not in text


def test_triple_fault(assemble: Assemble) -> None:
    result = run(assemble("triple_fault"))
    text = result.explain()
    assert result.outcome is Outcome.TRIPLE_FAULT
    assert "First: vector 6 (invalid opcode), error code 0x0, at 0x00007c" in text
    assert "undefined+0x0 (triple_fault.asm:13)" in text
    assert text.index("vector 6") < text.index("vector 13") < text.index("vector 8")
    assert "before the fault" in text


def test_reset_is_no_triple_fault(assemble: Assemble) -> None:
    result = run(assemble("reset"))
    assert result.outcome is Outcome.TRIPLE_FAULT
    assert "not a triple fault: the guest asked for a reset" in result.explain()


HANGS = ("jump", "halt", "read")


@pytest.mark.parametrize("way", HANGS)
@pytest.mark.parametrize("icount", [7, None])
def test_hang(assemble: Assemble, way: str, icount: int | None) -> None:
    """A machine that only a reset could end is told long before its time is over, here of hours."""
    config = assemble("hang", WAY=HANGS.index(way))
    limit, reason = 10_000, "only a reset can end what it does"
    if way == "read":
        limit = 1 if icount is None else 3
        reason = f"limit {limit} s"
    result = run(with_changes(config, icount=icount, guest_limit=limit))
    assert result.outcome is Outcome.HANG
    assert f"the guest did not come to an end ({reason})" in result.explain()
    if way == "read":
        assert result.guest_seconds >= limit
    lines = result.explain().splitlines()
    assert "inner" in lines[1]
    assert ("ring 0, halted" if way == "halt" else "ring 0, interrupts disabled") in lines[1]
    assert "outer" in lines[3] and "protected" in lines[4]
    assert lines[-1] == "  | last words"


def test_wall_limit(assemble: Assemble) -> None:
    result = run(with_changes(assemble("hang", WAY=2), guest_limit=10_000, wall_limit=0.5))
    assert result.outcome is Outcome.WALL_LIMIT
    assert result.wall_seconds >= 0.5


def test_flood(assemble: Assemble) -> None:
    limit = 1 << 16
    result = run(with_changes(assemble("flood", LINES=0), output_limit=limit, guest_limit=10_000))
    assert (result.outcome, len(result.serial)) == (Outcome.OUTPUT_LIMIT, limit)


# What a run repeats


@contextmanager
def loaded_core() -> Iterator[None]:
    """Keeps one core busy."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            yield
        finally:
            process.kill()


def test_runs_repeat_themselves(assemble: Assemble, three_disks: tuple[Drive, ...]) -> None:
    config = with_changes(assemble("disks"), drives=three_disks, trace=True)
    results = [run(config).check() for _ in range(3)]
    with loaded_core():
        results += [run(config).check() for _ in range(2)]
    assert len({(result.serial, result.all_requests) for result in results}) == 1
    # Polled reads wait for the host's disk, so the time differs by as much, even with icount.
    times = [result.guest_seconds for result in results]
    assert max(times) - min(times) < 0.2


def test_guest_time_does_not_depend_on_load(assemble: Assemble) -> None:
    config = assemble("timestamp")
    results = [run(config).check() for _ in range(3)]
    with loaded_core():
        results += [run(config).check() for _ in range(2)]
    assert len({result.serial for result in results}) == 1


# What the guest is given


def test_direct_boot(assemble: Assemble) -> None:
    guest = assemble("multiboot", address=1 << 20)
    config = with_changes(guest, boot="direct", image=None, command_line="quiet a=b", memory=32)
    assert run(config).check(31).serial.endswith(" quiet a=b")


def test_boot_from_a_cd(assemble: Assemble, tmp_path: Path) -> None:
    guest = assemble("end", STATUS=4, TEXT="'hi'")
    (tmp_path / "cd").mkdir()
    shutil.copy(guest.image, tmp_path / "cd" / "boot.img")
    image = tmp_path / "cd.iso"
    command = ["xorriso", "-as", "mkisofs", "-quiet", "-b", "boot.img", "-no-emul-boot"]
    subprocess.run([*command, "-o", image, tmp_path / "cd"], check=True, capture_output=True)
    hdb = Drive(disk(tmp_path / "b", 64, {}), 1)
    result = run(with_changes(guest, boot="grub", image=image, drives=(hdb,), trace=True)).check(4)
    assert result.requests == {"hdb": []}


def test_seed_and_script(assemble: Assemble) -> None:
    script = "cat /a,b\n" * 1000
    result = run(with_changes(assemble("settings"), seed=12345, script=script)).check()
    assert result.serial == f"12345\n{script}\n"


def test_conversation(assemble: Assemble) -> None:
    with Machine(assemble("echo")) as machine:
        machine.expect("> ", guest_limit=5)
        machine.send("hello")
        assert machine.expect("([A-Z]+)\n> ", guest_limit=5)[1] == "HELLO"
        assert machine.read_memory(0x8000, 5) == machine.read_physical(0x8000, 5) == b"hello"
        assert machine.read_symbol("machine_exit_status", 4) == b"\xff" * 4
        assert machine.registers()["CS"] == 0
        machine.send("quit")
        assert machine.wait().check(5).serial == "> HELLO\n> "


def test_what_is_said_while_nobody_reads(assemble: Assemble) -> None:
    """The line holds it: a guest need not wait for us, and loses nothing."""
    with Machine(assemble("flood", LINES=1000)) as machine:
        time.sleep(1)
        assert machine.wait().check(0).serial == 1000 * ("x" * 60 + "\n")


def test_conversation_that_ends_early(assemble: Assemble) -> None:
    with Machine(assemble("end", STATUS=7, TEXT="'bye'")) as machine:
        with pytest.raises(GuestFailure, match=r"no match for .* status 7"):
            machine.expect(r"\$")
        assert machine.wait().serial == "bye"


def test_conversation_that_takes_too_long(assemble: Assemble) -> None:
    long = 36000  # a guest at this rate passes seconds before the host has asked
    with Machine(with_changes(assemble("echo"), icount=8, guest_limit=long)) as machine:
        machine.expect("> ")
        begin = machine.guest_seconds()
        with pytest.raises(
            GuestFailure, match=r"limit 1 s for this answer\)[^!]*stopped at .* get"
        ):
            machine.expect("never", guest_limit=1)
        assert machine.result.guest_seconds - begin > 0.9
        assert machine.result.outcome is Outcome.HANG


@pytest.mark.parametrize("answer", [1, None])
def test_the_limit_that_was_passed_first_is_named(
    assemble: Assemble, monkeypatch: pytest.MonkeyPatch, answer: float | None
) -> None:
    """The host looks late: this guest has passed all of its limits since the last look."""
    with Machine(assemble("echo")) as machine:
        machine.expect("> ")
        times = iter([0.0] if answer else [])
        monkeypatch.setattr(machine._guest_time, "seconds", lambda: next(times, 25.0))
        monkeypatch.setattr(machine, "_patience", Patience(-1.0))
        words = r"limit 1 s for this answer\)" if answer else r"limit 20 s\)"
        with pytest.raises(GuestFailure, match=words):
            machine.expect("never", guest_limit=answer)


# Disks


def test_requests(assemble: Assemble, three_disks: tuple[Drive, ...]) -> None:
    result = run(with_changes(assemble("disks"), drives=three_disks, trace=True)).check()
    assert result.serial == "b.cd.m..Ex"
    assert list(result.all_requests[1:]) == [
        Request("hdb", "read", 5, 1),
        Request("hdc", "read", 0x20, 256),
        Request("hdd", "read", 0x12345678, 3),
        Request("hdd", "read", 0x12345600, 32),
        Request("hdb", "write", 7, 2),
        Request("hdb", "flush", 0, 0),
        Request("hdb", "read", 0x01000002, 1),
        Request("hdb", "read", 9, 1),
    ]
    assert result.requests["hda"] == [Request("hda", "read", 0, 1)]
    assert result.requests["hdc"] == [Request("hdc", "read", 0x20, 256)]


def test_block_statistics(assemble: Assemble, three_disks: tuple[Drive, ...]) -> None:
    statistics = run(with_changes(assemble("disks"), drives=three_disks)).check().block_statistics
    hdb, hdc, hdd = (statistics[name] for name in ("hdb", "hdc", "hdd"))
    assert (hdb.read_bytes, hdb.written_bytes, hdb.flushes) == (2 * SECTOR, 2 * SECTOR, 1)
    assert (hdb.failed, hdb.invalid) == (0, 1)
    assert (hdc.reads, hdc.read_bytes) == (16, 256 * SECTOR)
    assert (hdd.reads, hdd.read_bytes) == (3 + 2, 35 * SECTOR)


def test_dma_requests(assemble: Assemble, three_disks: tuple[Drive, ...]) -> None:
    result = run(with_changes(assemble("dma"), drives=three_disks, trace=True)).check()
    assert result.serial == "D"
    assert result.requests["hdd"] == [Request("hdd", "read", 0x10203040, 24)]
    assert result.block_statistics["hdd"].read_bytes == 24 * SECTOR


@pytest.mark.parametrize("writable", [False, True])
def test_writes(assemble: Assemble, three_disks: tuple[Drive, ...], writable: bool) -> None:
    hdb = Drive(three_disks[0].path, 1, writable=writable)
    before = hdb.path.read_bytes()
    run(with_changes(assemble("disks"), drives=(hdb, *three_disks[1:]))).check()
    assert (hdb.path.read_bytes() == before) != writable


@pytest.mark.parametrize("writable", [False, True])
def test_injected_errors(
    assemble: Assemble, three_disks: tuple[Drive, ...], writable: bool
) -> None:
    errors = (DiskError("read", 9), DiskError("write", 8))
    hdb = Drive(three_disks[0].path, 1, errors=errors, writable=writable)
    hdd = Drive(three_disks[2].path, 3, errors=(DiskError("read", 0x12345600 + 20),))
    drives = (hdb, three_disks[1], hdd)
    result = run(with_changes(assemble("disks"), drives=drives, trace=True)).check()
    assert result.serial == "b.cd.EE.EE"
    assert result.block_statistics["hdb"].failed == 2
    assert result.block_statistics["hdd"].failed == 1
    assert Request("hdb", "read", 9, 1) in result.all_requests


def test_requests_of_a_run_without_trace(assemble: Assemble) -> None:
    with pytest.raises(ValueError, match="trace=True"):
        _ = run(assemble("power_off")).requests


# Tests inside the guest

REPORT = "'KTAP version 1',10,'1..{}',10,'ok 1 - a',10,'# saw 3',10,'not ok 2 - b',10"


def test_ktap(assemble: Assemble) -> None:
    result = run(assemble("end", STATUS=1, TEXT=REPORT.format(2)))
    assert ktap(result) == [TestLine("a", True, ""), TestLine("b", False, "saw 3")]


def test_ktap_that_stops_early(assemble: Assemble) -> None:
    with pytest.raises(GuestFailure, match=r"3 tests planned, 2 seen; .* status 1"):
        ktap(run(assemble("end", STATUS=1, TEXT=REPORT.format(3))))


# Nothing is left, and nothing is confused


@pytest.fixture
def own_directory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Makes the harness put its directories into an empty one, whose path is short."""
    with tempfile.TemporaryDirectory(prefix="harness-", dir="/tmp") as directory:
        monkeypatch.setattr(tempfile, "tempdir", directory)
        yield Path(directory)


def children() -> list[str]:
    """The names of the processes that this one has started, zombies included, but for the one that
    cleans up after it."""
    numbers = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [
        Path(f"/proc/{number}/comm").read_text().strip()
        for number in numbers
        if "keeper.py" not in Path(f"/proc/{number}/cmdline").read_text()
    ]


def test_nothing_is_left(assemble: Assemble, own_directory: Path, three_disks) -> None:
    before = children()
    run(assemble("triple_fault")).explain()
    run(with_changes(assemble("hang", WAY=1), guest_limit=1))
    run(with_changes(assemble("disks"), drives=three_disks, trace=True))
    run(with_changes(assemble("end", STATUS=0, TEXT="'hi'"), extra=("-nonsense",)))
    with pytest.raises(KeyboardInterrupt), Machine(assemble("echo")):
        raise KeyboardInterrupt
    assert (children(), list(own_directory.iterdir())) == (before, [])


def test_stopped_qemu_is_killed(assemble: Assemble, own_directory: Path) -> None:
    with Machine(assemble("echo")) as machine:
        machine.expect("> ")
        number = machine.process_id
        os.kill(number, signal.SIGSTOP)
    assert not Path(f"/proc/{number}").exists()
    assert list(own_directory.iterdir()) == []


def test_qemu_dies_with_its_harness(assemble: Assemble, tmp_path: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path\n"
        "from labs.tools.machine.machine import Machine, Config\n"
        "with Machine(Config(image=Path(sys.argv[1]))) as machine:\n"
        "    print(machine.process_id, flush=True); os.kill(os.getpid(), 9)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", program, str(assemble("echo").image)]
    harness = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    status = Path(f"/proc/{int(harness.stdout)}/status")
    patience = Patience(600)
    while status.exists() and "Z (zombie)" not in status.read_text():
        assert not patience.is_over()
        time.sleep(0.05)


def test_two_machines_at_once(assemble: Assemble, tmp_path: Path) -> None:
    configs = [assemble("end", STATUS=number, TEXT=f"'{number}'") for number in (1, 2, 3)]
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(run, configs))
    assert [(result.status, result.serial) for result in results] == [(1, "1"), (2, "2"), (3, "3")]


def test_writable_image_is_free_again(assemble: Assemble, three_disks) -> None:
    hdb = Drive(three_disks[0].path, 1, writable=True)
    config = with_changes(assemble("echo"), drives=(hdb,))
    with Machine(config) as machine:
        machine.expect("> ")
        second = run(config)
    assert second.outcome is Outcome.QEMU_FAILED
    assert 'Failed to get "write" lock' in second.explain()
    with Machine(config) as machine:
        machine.expect("> ")


# What cannot be built


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"memory": 3}, "memory=3: the kernel runs with 16 to 1024 MiB"),
        ({"image": Path("missing.img")}, r"hda: missing.img does not exist \(is it built\?\)"),
        ({"image": Path("/dev/null")}, "hda: /dev/null is a folder or a device, not a file"),
        ({"image": Path("/")}, "hda: / is a folder or a device, not a file"),
        ({"image": None}, "boot='disk' needs an image"),
        ({"boot": "direct", "kernel": None}, "kernel: no file is given"),
        ({"boot": "floppy"}, "boot='floppy': one of"),
        ({"drives": (Drive("missing.img", 0),)}, "two drives are hda"),
        ({"drives": (Drive("missing.img", 4),)}, "unit=4"),
        ({"command_line": "quiet"}, "command_line reaches the kernel only with boot='direct'"),
        ({"icount": 11}, "icount=11: a shift from 0 to 10"),
        ({"qemu": "qemu-of-nobody"}, "qemu-of-nobody is not installed"),
    ],
)
def test_wrong_configuration(assemble: Assemble, changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        run(with_changes(assemble("power_off"), **changes))


def test_qemu_says_why_it_failed(assemble: Assemble) -> None:
    result = run(with_changes(assemble("power_off"), extra=("-device", "nonsense")))
    assert result.outcome is Outcome.QEMU_FAILED
    assert "'nonsense' is not a valid device model name" in result.explain()

"""`make gdb`: a boot followed from the reset vector into the kernel, and every command it adds.

A probe is a piece of Python that runs inside gdb, started as a person starts it, and says what it
saw. What it asks through `run` is what a person would type.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pexpect
import pytest

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "storage"
LAUNCHER = [sys.executable, "-m", "labs.tools.debug"]
SECONDS = 60
PROMPT = "(gdb) "

PRELUDE = """\
import gdb, json, os, signal, threading, time
said = {{}}
def run(command):
    try:
        return gdb.execute(command, to_string=True)
    except gdb.error as error:
        return f"error: {{error}}"
def memory(address, length):
    return bytes(gdb.selected_inferior().read_memory(address, length)).hex()
def go_to(place):
    run(f"tbreak {{place}}")
    run("continue")
    return run("where-am-i")
def frames():
    frame = gdb.newest_frame()
    while frame:
        if frame.type() == gdb.NORMAL_FRAME:
            yield frame.pc(), frame.name()
        if frame.type() == gdb.SIGTRAMP_FRAME:
            yield frame.pc(), "(trap)"
        frame = frame.older()
def saw(path={path!r}):
    with open(path, "w") as file:
        json.dump(said, file)
"""

SAME_PLACE = {"text_start": "higher_half"}  # two names for one address, and gdb takes the global

Probe = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def images(build: Callable[[str], Path]) -> None:
    """Everything that a session needs."""
    for name in ("boot.img", "grub.iso", "kernel.elf"):
        build(f"build/storage/{name}")


@pytest.fixture(scope="module")
def probe(images: None, tmp_path_factory: pytest.TempPathFactory) -> Probe:
    """Runs a probe in a session of its own; returns what it put into `said`, and the "screen"."""

    def run_probe(code: str, *options: str) -> dict[str, Any]:
        directory = tmp_path_factory.mktemp("probe")
        answer, file = directory / "said.json", directory / "probe.py"
        body = PRELUDE.format(path=str(answer)) + textwrap.dedent(code) + "\nsaw()\n"
        file.write_text(body)
        command = [*LAUNCHER, "--batch", str(file), *options]
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        assert answer.exists(), done.stdout + done.stderr
        return json.loads(answer.read_text()) | {"screen": done.stdout}

    return run_probe


@pytest.fixture(scope="module")
def boot(probe: Probe) -> dict[str, Any]:
    """One session from the reset vector to the kernel's prompt."""
    return probe(
        """
        said["reset"] = run("where-am-i"), run("xi 1"), run("descriptors"), run("klog")
        run("set breakpoint always-inserted on")
        run("break kmain")
        run("hbreak *0x7c00")
        said["stop"] = run("continue")
        said["sector"] = memory(0x7c00, 512)
        said["instructions"] = run("x/2i $pc")
        said["next"] = [run("next") for _ in range(24)]
        said["stage2"] = go_to("stage2_start"), run("x/i $pc")
        said["second"] = memory(0x8000, 512)
        said["loader"] = go_to("loader_main"), run("x/i $pc"), run("backtrace")
        said["start"] = go_to("*&_start"), run("page-directory")
        run("continue")
        said["kmain"] = run("where-am-i"), run("backtrace 1"), run("memory-map")
        said["magic"] = int(gdb.parse_and_eval("magic"))
        said["first gdt"] = run("descriptors")
        go_to("prompt")
        for command in ("klog 100", "console 100", "memory-map", "page-directory", "descriptors",
                        "disk-requests", "last-fault", "trap-frame", "apprentice", "klog 0 0"):
            said[command] = run(command)
        said["help"] = run("help klog"), run("help user-defined")
        """
    )


# The way up


def test_reset_vector(boot):
    """Before the first instruction: CS has a base that its selector does not tell."""
    place, code, tables, log = boot["reset"]
    assert place.startswith("[16-bit real mode]  f000:fff0 = 0xfffffff0:  jmp ")
    assert re.search(r"0xfffffff0:  jmp\s+0xf000:", code)
    assert "Real mode has no descriptors" in tables
    assert "the kernel does not run yet" in log


def test_boot_sector(boot):
    """A breakpoint set before the sector is loaded stops there, and is not in the bytes."""
    assert "start () at boot/mbr.asm" in boot["screen"]
    assert "[16-bit real mode]  0000:7c00 = 0x00007c00 start:  jmp 0x0:0x7c05" in boot["stop"]
    assert bytes.fromhex(boot["sector"]) == (BUILD / "mbr.bin").read_bytes()
    assert re.search(r"jmp +0x0:0x7c05.*\n.*<start.segments>:\tcli", boot["instructions"])


def test_next_steps_over_the_bios(boot):
    """Line by line through the boot sector, and over the BIOS's disk reads instead of into them."""
    lines = "".join(boot["next"])
    assert lines.count(":  int 0x13\n") >= 2
    assert lines.count("[16-bit real mode]  0000:7c") == len(boot["next"])
    assert len(re.findall(r"^\d+\t\t", boot["screen"], re.MULTILINE)) >= len(boot["next"])


def test_second_stage(boot):
    place, instruction = boot["stage2"]
    assert place.startswith(
        "[16-bit real mode]  0000:8000 = 0x00008000 stage2_start:  mov BYTE PTR"
    )
    assert "BYTE PTR ds:" in instruction
    assert bytes.fromhex(boot["second"]) == (BUILD / "stage2.bin").read_bytes()[:512]


def test_loader_in_protected_mode(boot):
    place, instruction, backtrace = boot["loader"]
    assert re.match(r"\[32-bit protected mode, paging off\]  0x0000\w{4} loader_main", place)
    assert re.search(r"push +ebp", instruction)
    assert "loader_main (boot_drive=0x80) at boot/loader.c" in backtrace


def test_kernel_entry(boot):
    place, mappings = boot["start"]
    assert re.match(r"\[32-bit protected mode, paging off\]  0x0010\w{4} _start:  cli", place)
    assert "paging is off" in mappings


def test_kmain(boot):
    place, backtrace, memory_map = boot["kmain"]
    assert re.match(r"\[32-bit protected mode, paging on\]  0xc01\w{5} kmain", place)
    assert re.match(r"#0 +kmain \(magic=0x2badb002, information=0x\w+\) at ", backtrace)
    assert boot["magic"] == 0x2BADB002
    assert "has not read it yet" in memory_map
    assert "not mapped any more" in boot["first gdt"]


@pytest.mark.parametrize("way", ["grub", "direct"])
def test_other_ways_to_boot(probe, way):
    code = "said['kmain'] = go_to('kmain')\nsaid['magic'] = int(gdb.parse_and_eval('magic'))"
    said = probe(code, "--boot", way, "--memory", "16")
    assert "paging on]  0xc01" in said["kmain"]
    assert said["magic"] == 0x2BADB002


def test_breakpoint_in_the_bios_can_be_left(probe):
    """gdb does not know that it stands on it: CS has a base there."""
    code = """
        run("break *0xfe05b")
        said["first"] = run("continue")
        run("tbreak kmain")
        run("continue")
    """
    said = probe(code)
    assert "f000:e05b = 0x000fe05b:" in said["first"]
    assert "kmain (magic=" in said["screen"]


# Commands on the kernel at its prompt


def test_log_and_console_tell_the_same(boot):
    kernel_part = boot["console 100"].partition("Apprentice: an i386 kernel")[2]
    log = boot["klog 100"].partition("Apprentice: an i386 kernel")[2]
    assert log == kernel_part
    assert "loaded by Apprentice boot" in log


def test_memory_map_is_what_the_kernel_printed(boot):
    printed = re.findall(r"memory: (0x\w+) - (0x\w+)  (.+)", boot["klog 100"])
    told, ordered = boot["memory-map"].split("In order:")
    assert "As Apprentice boot told it:" in told
    assert re.findall(r"(0x\w+) - (0x\w+) +\d+ KiB  (.+)", ordered) == printed
    assert len(printed) >= 4


def test_page_directory_joins_equal_runs(boot):
    head, _, *rows = boot["page-directory"].splitlines()
    assert re.match(r"page directory at 0x001\w{5} \(cr3\)", head)
    assert [re.split("  +", row) for row in rows] == [
        ["0xc0000000 - 0xf7ffffff", "0x00000000", "917504", "224 x 4096 KiB", "kernel, writable"]
    ]


def test_page_directory_decodes_tables(probe):
    """A page table made by hand at 8 MiB: three pages that continue, one that does not."""
    said = probe(
        """
        go_to("prompt")
        pages = {0: 0x900005, 1: 0x901025, 2: 0x902005, 4: 0x904107, 5: 0x800013}
        for index, entry in pages.items():
            run(f"set *(unsigned *)(0xc0800000 + {index * 4}) = {entry}")
        run("set *((unsigned *)&kernel_page_directory + 1) = 0x800027")
        said["rows"] = run("page-directory").splitlines()[2:5]
        """
    )
    assert [re.split("  +", row) for row in said["rows"]] == [
        ["0x00400000 - 0x00402fff", "0x00900000", "12", "3 x 4 KiB", "user, read-only"],
        ["0x00404000 - 0x00404fff", "0x00904000", "4", "1 x 4 KiB", "user, writable, global"],
        ["0x00405000 - 0x00405fff", "0x00800000", "4", "1 x 4 KiB", "kernel, writable, uncached"],
    ]


def test_descriptors(boot):
    text = boot["descriptors"]
    assert re.search(r"0x08  32-bit code, ring 0 +0x00000000 \+ 0xffffffff  <- cs\n", text)
    assert re.search(r"0x18  TSS, busy, ring 0 +0x\w+ \+ 0x67  <- tr\n", text)
    gates = "interrupt gate, ring 0, selector 0x8: trap_stub_"
    assert re.search(rf"0 to 7 +{gates}0 to trap_stub_7\n", text)
    assert re.search(r"8 +task gate, ring 0, selector 0x20\n", text)
    assert re.search(rf"9 to 255 +{gates}9 to trap_stub_255\n", text)
    assert re.search(r"32 to 47 +dispatch\n", text)
    assert re.search(r"TSS at 0x\w+ kernel_task_state \(tr 0x18\)", text)


def test_nothing_to_tell_is_said(boot):
    assert "0 requests since the boot" in boot["disk-requests"]
    assert "No exception so far" in boot["last-fault"]
    assert "no trap is being handled here" in boot["trap-frame"]
    assert boot["klog 0 0"].endswith("; usage: klog [LINES]")


def test_commands_are_listed_and_documented(boot):
    listed = {line.split()[0] for line in boot["apprentice"].splitlines()}
    assert {"klog", "last-fault", "page-directory", "type", "where-am-i", "xi"} <= listed
    text, summary = boot["help"]
    assert "Usage: klog [LINES]" in text
    assert listed <= {line.split(" --")[0] for line in summary.splitlines()}


def test_disk_requests_after_the_end(probe):
    """A machine that has switched itself off can still be looked at."""
    code = """
        said["stop"] = run("continue")
        said["all"], said["last"] = run("disk-requests"), run("disk-requests 1")
    """
    said = probe(code, "--script", "read hda 64 3; read hda 7; exit 5")
    assert "The machine is off: the kernel ended with status 5." in said["stop"]
    rows = [line.split() for line in said["all"].splitlines()[1:-1]]
    assert [(row[0], *row[3:7], row[8]) for row in rows] == [
        ("0", "hda", "read", "64", "3", "done"),
        ("1", "hda", "read", "7", "1", "done"),
    ]
    assert said["all"].endswith("2 requests since the boot\n")
    assert said["last"].splitlines()[1:] == said["all"].splitlines()[2:]


# When something went wrong


@pytest.fixture(scope="module")
def crash(probe: Probe) -> Callable[[str], dict[str, Any]]:
    """What is seen after a script that ends in a panic; one session a script."""
    code = """
        said["stop"] = run("continue")
        said["frames"] = list(frames())
        for command in ("klog", "last-fault", "trap-frame", "continue"):
            said[command] = run(command)
        said["same"] = run("trap-frame " + said["trap-frame"].split()[-1])
    """
    return cache(lambda script: probe(code, "--script", script))


@pytest.mark.parametrize("script", ["panic", "crash null", "crash opcode"])
def test_backtrace_is_the_kernels_own(crash, script):
    """The same calls, through the trap too: addresses and names."""
    said = crash(script)
    assert "The machine is off: the kernel has panicked" in said["stop"]
    assert "The machine is off" in said["continue"]
    printed = re.findall(r"^backtrace: 0x(\w+) (\w+)\+", said["klog"], re.MULTILINE)
    names = [name for _, name in said["frames"]]
    skipped = "(trap)" if "(trap)" in names else "panic"
    mine = said["frames"][names.index(skipped) + 1 :]
    addresses = [pc - (index > 0 or skipped == "panic") for index, (pc, _) in enumerate(mine)]
    assert addresses == [int(address, 16) for address, _ in printed]
    assert [SAME_PLACE.get(name, name) for _, name in mine] == [name for _, name in printed]


def test_last_fault_and_trap_frame_after_a_null_pointer(crash):
    said = crash("crash null")
    fault, frame = said["last-fault"], said["trap-frame"]
    words = "exception 14, page fault, error code 0x2: kernel writing unmapped address 0x00001234"
    assert fault.startswith(words)
    assert re.search(r"\nat 0xc01\w{5} page_fault\+0x\w+ \(labs/.*\.c:\d+\), ring 0", fault)
    registers = dict(re.findall(r"\b(e\w\w) +(\w{8})", frame))
    printed = dict(re.findall(r"\b(e[a-ds]x|e[sd]i|e[bs]p) (\w{8})", said["klog"]))
    assert len(printed) == 8
    assert printed.items() <= registers.items()
    assert said["same"] == frame


def test_call_of_a_wild_pointer(probe):
    """As if the kernel had called a null pointer: the caller is found all the same."""
    said = probe(
        """
        go_to("monitor_execute")
        said["caller"] = gdb.newest_frame().older().name()
        run("set $eip = 0")
        run("continue")
        said["frames"] = list(frames())
        said["fault"] = run("last-fault")
        """,
        "--script",
        "drives",
    )
    names = [name for _, name in said["frames"]]
    assert names[names.index("(trap)") + 1 :][:2] == [None, said["caller"]]
    assert "unmapped address 0x00000000" in said["fault"]


def test_bad_stack(probe):
    """A double fault: behind its task gate is the function that lost its stack."""
    code = 'run("continue"); said["frames"] = list(frames()); said["fault"] = run("last-fault")'
    said = probe(code, "--script", "crash stack")
    assert [name for _, name in said["frames"]][2:4] == ["double_fault", "bad_stack"]
    assert re.match(
        r"exception 8, double fault.* cr2 is 0x00001ffc\nat .* bad_stack", said["fault"]
    )


def test_triple_fault(probe):
    """The chain of exceptions comes from QEMU's log, which nobody had to switch on."""
    code = 'said["stop"] = run("continue"); said["fault"] = run("last-fault")'
    said = probe(code, "--script", "crash triple")
    assert "a triple fault. Type: last-fault" in said["stop"]
    assert re.match(r"First: vector 6 \(invalid opcode\).* empty_table\+", said["fault"])
    assert "Then, while that was delivered: vector 13" in said["fault"]


def test_log_after_a_hang(probe):
    """Interrupts are off and nothing runs but a loop; Ctrl-C and klog work all the same."""
    said = probe(
        """
        from labs.tools.gdb.session import SESSION
        def interrupt():
            while "crash hang" not in SESSION.console().text():
                time.sleep(0.05)
            time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt, daemon=True).start()
        said["stop"] = run("continue")
        said["log"] = run("klog 1")
        said["backtrace"] = run("backtrace 2")
        """,
        "--script",
        "crash hang",
    )
    assert "SIGINT" in said["screen"]
    assert said["log"] == "> crash hang\n"
    assert "stop ()" in said["backtrace"]


# As a person uses it


@pytest.fixture
def terminal(images: None) -> Iterator[pexpect.spawn]:
    """A session in a terminal, at its first prompt."""
    environment = {**os.environ, "TERM": "dumb"}
    command, *arguments = LAUNCHER
    child = pexpect.spawn(
        command, arguments, cwd=ROOT, env=environment, encoding="utf-8", timeout=20, echo=False
    )
    child.expect_exact(PROMPT)
    yield child
    child.close(force=True)


def test_session_in_a_terminal(terminal):
    """The first screen says what to type; the guest's output shows while it runs; a line can be
    typed to it; Ctrl-C stops the guest and not QEMU."""
    screen = terminal.before.splitlines()
    assert screen[0].startswith("Apprentice under gdb.")
    assert screen[1].startswith("Type:  b *0x7c00  and  c  for the boot sector")
    assert "apprentice" in screen[2]
    assert screen[-1].startswith("[16-bit real mode]  f000:fff0")
    terminal.sendline("c")
    terminal.expect_exact("| apprentice> ")
    terminal.sendintr()
    terminal.expect_exact("SIGINT")
    terminal.expect_exact(PROMPT)
    terminal.sendline("type exit 3")
    terminal.expect_exact(PROMPT)
    terminal.sendline("c")
    terminal.expect_exact("ended with status 3")
    terminal.expect_exact(PROMPT)
    terminal.sendline("quit")
    terminal.expect(pexpect.EOF)
    terminal.wait()
    assert terminal.exitstatus == 0


def test_nothing_is_left_when_the_launcher_is_killed(images):
    """QEMU and gdb go with it, at once or when their parent is missed."""
    child = pexpect.spawn(LAUNCHER[0], LAUNCHER[1:], cwd=ROOT, encoding="utf-8", timeout=20)
    child.expect_exact(PROMPT)
    sessions = list_processes(child.pid)
    assert any("qemu-system" in name for name in sessions.values())
    child.kill(9)
    child.close(force=True)
    deadline = time.monotonic() + 5
    while any(Path(f"/proc/{pid}").exists() for pid in sessions) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in sessions if Path(f"/proc/{pid}").exists()]


def list_processes(parent: int) -> dict[int, str]:
    """The children of a process: number and command."""
    done = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(parent)],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = (line.split(maxsplit=1) for line in done.stdout.splitlines())
    return {int(pid): command for pid, command in lines}


def test_gdb_without_python_still_debugs(images, tmp_path):
    """It is said, and symbols, breakpoints and source lines work."""
    fake = tmp_path / "gdb"
    fake.write_text(
        textwrap.dedent(f"""\
        #!/usr/bin/env bash
        for word; do
            case $word in python*) word="echo" ;; esac
            words+=("$word")
        done
        exec {shutil.which("gdb")} "${{words[@]}}"
        """)
    )
    fake.chmod(0o755)
    commands = tmp_path / "commands"
    commands.write_text("break kmain\ncontinue\nbacktrace 1\n")
    done = subprocess.run(
        [*LAUNCHER, "--batch", str(commands)],
        cwd=ROOT,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert "was built without Python" in done.stderr
    assert re.search(r"#0 +kmain \(magic=", done.stdout)


def test_causes_are_said(images, tmp_path):
    """A machine that cannot be built, and a build that is not there."""
    for options, cause in (
        (["--memory", "8"], "memory=8: the kernel runs with 16 to 1024 MiB"),
        (["--build", str(tmp_path)], "does not exist"),
    ):
        done = subprocess.run(
            [*LAUNCHER, *options], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert re.fullmatch(rf"make gdb: .*{cause}.*\n", done.stderr)

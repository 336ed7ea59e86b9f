"""Calls that take a descriptor, of the kernel's own table: each is made while another thread closes
the descriptor, with the allocator that checks, and uses the file that it was called with.

The table's letters say which arguments are descriptors (kernel/syscall/syscall.h); this file says
it, too, from Linux's manual, so a row that forgets one is seen.
"""

from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from elftools.elf.elffile import ELFFile

from labs.tools.guest.programs import COMMAND
from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import Config, Drive
from labs.tools.machine.run import machine_config, machine_options
from labs.tools.machine.symbols import symbols_of
from tests.host.ext.images import MIB, make_image
from tests.support.building import make

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "tests/programs/descriptors"
COMPILER = ("i686-linux-gnu-gcc", "-Os", "-static", "-no-pie", "-nostdlib", "-ffreestanding")
COMPILER += ("-fno-stack-protector", "-fno-pic", "-Wno-pointer-to-int-cast")
ROW = struct.Struct("<HxxIII")
HELD, AT = "fF", "a"
DESCRIPTORS = {
    0: """read write ioctl fcntl fcntl64 _llseek lseek readv writev preadv pwritev pread64 pwrite64
    dup dup2 dup3 fsync fdatasync ftruncate ftruncate64 fchmod fchown fchown32 fstat fstat64
    fstatfs64 fchdir flock getdents64 sendfile sendfile64 readahead fadvise64 fadvise64_64
    fsetxattr fgetxattr flistxattr fremovexattr sync_file_range syncfs fallocate epoll_ctl
    epoll_wait epoll_pwait timerfd_settime timerfd_settime64 timerfd_gettime timerfd_gettime64
    signalfd signalfd4 bind connect listen accept4 getsockopt setsockopt getsockname getpeername
    sendto sendmsg recvfrom recvmsg shutdown openat mkdirat mknodat fchownat fstatat64 unlinkat
    renameat renameat2 linkat readlinkat fchmodat faccessat faccessat2 utimensat
    futimesat utimensat_time64 statx""",
    1: "sendfile sendfile64 symlinkat",
    2: "epoll_ctl renameat renameat2 linkat",
    4: "mmap2",
}
"""By argument: which calls take a descriptor there, of an open file or of a directory."""
ORDINARY = {"d": "1", "x": "0", "o": "0", "p": "COLD", "s": "COLD"}
OF_CALL = {
    "read": ["d COLD 4096"],
    "write": ["d COLD 4096"],
    "readv": ["d VECTOR 1"],
    "writev": ["d VECTOR 1"],
    "preadv": ["d VECTOR 1 0 0"],
    "pwritev": ["d VECTOR 1 0 0"],
    "pread64": ["d COLD 4096 0 0"],
    "pwrite64": ["d COLD 4096 0 0"],
    "lseek": ["d 0 1"],
    "dup2": ["d 60"],
    "dup3": ["d 60 0"],
    "fcntl": ["d 7 COLD", "d 6 COLD"],
    "fcntl64": ["d 14 COLD", "d 38 COLD", "d 0 50"],
    "flock": ["d 2"],
    "ioctl": ["d 0x541b COLD", "d 0x5421 COLD"],
    "sendfile": ["d d 0 300000", "d d COLD 300000"],
    "sendfile64": ["d d 0 300000"],
    "epoll_ctl": ["d 1 d COLD"],
    "epoll_wait": ["d COLD 1 -1"],
    "epoll_pwait": ["d COLD 1 -1 0 8"],
    "signalfd": ["d COLD 8"],
    "signalfd4": ["d COLD 8 0"],
    "getdents64": ["d COLD 4096"],
    "fadvise64": ["d 0 0 4096 3"],
    "fadvise64_64": ["d 0 0 4096 0 3"],
    "readahead": ["d 0 0 4096"],
    "fallocate": ["d 0 0 0 65536 0", "d 3 0 0 4096 0"],
    "mmap2": ["0 4096 3 2 d 0"],
    "utimensat": ["d 0 COLD 0", "d COLD 0 0"],
    "utimensat_time64": ["d 0 COLD 0", "d COLD 0 0"],
}
"""Other arguments than the letters say; d is a descriptor."""
SLEEPERS = {"read", "sendfile", "fstat64", "fsetxattr", "renameat", "utimensat"}
"""Calls that sleep by all means, some of the ten kinds of files."""
GUEST_SECONDS, WALL_SECONDS = 600, 3600


class Row(NamedTuple):
    """A call of the kernel's table."""

    number: int
    name: str
    letters: str

    def descriptors(self) -> list[int]:
        """Which arguments are descriptors."""
        return [i for i, letter in enumerate(self.letters) if letter in HELD + AT]

    def words(self) -> Iterator[list[str]]:
        """Arguments for a call of it: once for each descriptor that may be closed."""
        usual = " ".join("d" if c in HELD + AT else ORDINARY[c] for c in self.letters)
        for words in OF_CALL.get(self.name, [usual]):
            for closed in self.descriptors():
                yield [
                    ("HELD" if i == closed else "OTHER")
                    if word == "d"
                    else f"{word}u"
                    if re.match(r"[\dx]+$", word)
                    else word
                    for i, word in enumerate(words.split())
                ]


def rows(kernel: Path) -> list[Row]:
    """The table of calls, as the kernel uses it."""
    symbols = symbols_of(kernel)
    start, end = (symbols.find(f"syscalls_{name}").address for name in ("start", "end"))
    with kernel.open("rb") as file:
        segments = [s for s in ELFFile(file).iter_segments() if s["p_type"] == "PT_LOAD"]
        parts = [(segment["p_vaddr"], segment.data()) for segment in segments]

    def at(address: int) -> bytes:
        """The bytes from an address on."""
        base, data = next((b, d) for b, d in parts if b <= address < b + len(d))
        return data[address - base :]

    def text(address: int) -> str:
        """The text at an address."""
        return at(address).partition(b"\0")[0].decode()

    found: dict[int, Row] = {}
    for number, name, letters, _ in ROW.iter_unpack(at(start)[: end - start]):
        found[number] = Row(number, text(name), text(letters))
    return sorted(found.values())


@pytest.fixture(scope="module")
def table() -> list[Row]:
    """The calls of the storage lab's kernel, which has all."""
    make("LESSON=storage", "image-direct", "user-programs")
    return rows(ROOT / "build/storage/kernel.elf")


def test_every_descriptor_has_its_letter(table: list[Row]) -> None:
    """A row says which arguments are descriptors, and the kernel holds what it says."""
    names = {at: set(words.split()) for at, words in DESCRIPTORS.items()}
    for row in table:
        expected = [at for at, known in names.items() if row.name in known]
        assert row.descriptors() == expected, row


def test_a_row_that_disagrees_stops_the_kernel(tmp_path: Path) -> None:
    """It says which call, and does not start: here a row of lesson 3's kernel is damaged."""
    make("LESSON=3", "BREADTH=no", "image-direct")
    kernel = tmp_path / "kernel.elf"
    whole = (ROOT / "build/lesson3-core/kernel.elf").read_bytes()
    assert whole.count(b"\0Fxxpd\0") == 1
    kernel.write_bytes(whole.replace(b"\0Fxxpd\0", b"\0dxxpd\0"))
    words = ["--boot", "direct", "--build", str(ROOT / "build/lesson3-core"), "--core"]
    config = machine_config(machine_options("test").parse_args([*words, "--script", "help"]))
    said = run(replace(config, kernel=kernel, guest_limit=10)).serial
    assert 'PANIC: _llseek (140): its letters "dxxpd" and its function disagree' in said, said


def program(place: Path, name: str, *words: str) -> None:
    """Compiles a program into a folder for the guest's root."""
    place.mkdir()
    command = [*COMPILER, *words, str(SOURCES / f"{name}.c"), "-o", str(place / name)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip(f"there is no {COMPILER[0]} here")


def config_of(build: str, programs: Path, command: str) -> Config:
    """A machine whose guest runs a command for the shell."""
    words = ["--boot", "direct", "--user", str(ROOT / "build/user/bin"), "--build"]
    words += [str(ROOT / "build" / build), "--programs", str(programs), "--command", command]
    config = machine_config(machine_options("test").parse_args(words))
    return replace(
        config,
        settings=(("cmd", f"/bin/sh /{COMMAND}"), ("kmalloc_debug", "1")),
        guest_limit=GUEST_SECONDS,
        wall_limit=WALL_SECONDS,
    )


def test_calls_hold_their_files(table: list[Row], tmp_path: Path) -> None:
    """All calls, and ten kinds of files: no memory that is free is used, nothing comes from another
    file, and no call waits for ever."""
    lines = [
        f"{{ {row.number}, {{ {', '.join(words)} }} }},\n" for row in table for words in row.words()
    ]
    (tmp_path / "calls.inc").write_text("".join(lines))
    program(tmp_path / "files", "descriptors", f"-I{tmp_path}")
    image = make_image(tmp_path / "a.img", 16 * MIB, "-t ext4 -J size=1")
    command = "mkdir /mnt; mount /dev/hdb /mnt; /descriptors /mnt; umount /mnt"
    config = config_of("storage", tmp_path / "files", command)
    config = replace(config, drives=(Drive(image, 1, writable=True),))
    said = run(config).check().serial
    assert "all calls made" in said, said[-2000:]
    assert re.search(r"^strangers 0 *$", said, re.M), said[-2000:]
    numbers = {int(word) for word in re.findall(r"\b\d+\b", said.rpartition("strangers")[0])}
    missing = SLEEPERS - {row.name for row in table if row.number in numbers}
    assert not missing, f"calls that did not sleep: {missing}"


def test_a_close_costs_the_same_with_many_watches(tmp_path: Path) -> None:
    """With 10 items of epolls in the system and with 3,200, for a file that no epoll watches and
    for one that eight do: within a fifth."""
    make("LESSON=6", "image-direct", "user-programs")
    program(tmp_path / "files", "closecost")
    said = run(config_of("lesson6", tmp_path / "files", "/closecost")).check().serial
    costs = [int(word) for word in re.findall(r"^(\d+)\r?$", said, re.M)]
    assert len(costs) == 4, said
    assert max(costs[2:]) <= 1.2 * min(costs[:2]), costs


def test_a_name_that_is_not_in_proc_is_looked_up_once(tmp_path: Path) -> None:
    """With 60 tasks more, not with their square: each task is looked at, but once."""
    make("LESSON=6", "image-direct", "user-programs")
    program(tmp_path / "files", "namecost")
    said = run(config_of("lesson6", tmp_path / "files", "/namecost")).check().serial
    costs = [int(word) for word in re.findall(r"^(\d+)\r?$", said, re.M)]
    assert len(costs) == 4, said
    assert max(costs[2:]) <= 5 * min(costs[:2]), costs

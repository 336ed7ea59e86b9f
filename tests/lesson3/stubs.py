"""The stubs of exercise 3.2, compiled into a program and called from outside."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from labs.tools.grading.build_tool import BuildFailure, run_tool
from labs.tools.grading.lab import ROOT, Lab
from labs.tools.grading.lab_words import MISSING
from labs.tools.grading.plain_header import header_problem
from labs.tools.machine.symbols import Symbols, symbols_of
from tests.lesson3.support import HERE, Caller, mask_all_lines, with_files
from tests.remote import Guest, stopped

NUMBER = 450  # no call has it
FLAGS = "-std=gnu11 -march=i686 -g -ffreestanding -fno-stack-protector -fcf-protection=none -I."
VARIANTS = {
    "plain": "-O2 -fno-pic -fno-omit-frame-pointer",
    "no-frames": "-O2 -fno-pic -fomit-frame-pointer",
    "pic": "-O2 -fPIC -fno-omit-frame-pointer",
    "debug": "-O0 -fno-pic",
}
BUILD = """\
set -e
cc=$(labs/tools/setup/toolchain.sh cc)
includes="-nostdinc -isystem user/include -isystem $($cc -print-file-name=include)"
$cc {flags} $includes -c {directory}/stubs.c -o {directory}/stubs.o
$(labs/tools/setup/toolchain.sh ld) -nostdlib -static -Ttext-segment=0x08048000 -z noexecstack \
    {directory}/stubs.o {directory}/missing.o -o {directory}/stubs
"""
HEADER = "user/libc/syscall.h"
LOOK = """\
set -e
cc=$(labs/tools/setup/toolchain.sh cc)
includes="-nostdinc -isystem user/include -isystem $($cc -print-file-name=include)"
echo '#include "{header}"' >{directory}/only.c
$cc {flags} $includes -E {directory}/only.c -o {directory}/only.i
$cc {flags} $includes -E -dM {directory}/only.c -o {directory}/only.macros
"""
MOST_TEXT = 1 << 20  # bytes of what the preprocessor makes of the header; the reference's are 3,000


@dataclass(frozen=True)
class Stubs:
    """The program on a leash."""

    guest: Guest
    symbols: Symbols
    home: int

    def address(self, name: str) -> int:
        """Where a function or a variable of the program is."""
        return self.symbols.find(name).address

    def begin(self, function: str, *arguments: int) -> dict[str, int]:
        """Calls a function as far as the kernel's syscall_dispatch; the frame of its call."""
        place = self.address(function)
        stop_at = ("syscall_dispatch",)
        reached = self.guest.call(place, *arguments, stop_at=stop_at, name=function)
        assert reached is None, f"{function} makes no system call"
        frame = self.frame()
        if frame["eax"] != arguments[0]:
            self._fail(f"{function} makes call {frame['eax']}, not {arguments[0]}")
        return frame

    def _fail(self, words: str) -> None:
        """Fails the test with the words of a blank that was reached, or else with these."""
        self.guest.run_to("process_exit", self.home)
        missing = MISSING.search(self.guest.said())
        pytest.fail(missing[0] if missing else words, pytrace=False)

    def frame(self) -> dict[str, int]:
        """At syscall_dispatch: the user's registers, and where the frame is."""
        return Caller(self.guest).frame()

    def end(self) -> int:
        """Lets the function come back, and returns its result."""
        self.guest.run_to(self.home, goal="the end of the function that made the call")
        return self.guest.registers()["eax"]

    def again(self) -> dict[str, int]:
        """Goes on to the next call; its frame."""
        reached = self.guest.run_to("syscall_dispatch", self.home)
        assert reached == "syscall_dispatch", "the function makes no further call"
        return self.frame()


def built(lab: Lab, variant: str) -> bytes:
    """The program, with the tree's own header. Raises BuildFailure."""
    directory = lab.root / "build" / f"stubs-{variant}-{lab.mode}"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "stubs.c").write_bytes((HERE / "programs" / "stubs.c").read_bytes())
    missing = ["nasm", "-f", "elf32", "-I", "build/constants/", "user/libc/missing.asm"]
    missing += ["-o", str(directory / "missing.o")]
    subprocess.run(missing, cwd=ROOT, check=True)
    flags = f"{FLAGS} {VARIANTS[variant]}"
    require_plain_header(lab, directory, flags)
    script = BUILD.format(flags=flags, directory=directory.relative_to(lab.root))
    run_tool(["bash", "-c", script], lab.root, lab.boxed)
    return (directory / "stubs").read_bytes()


def require_plain_header(lab: Lab, directory: Path, flags: str) -> None:
    """Raises BuildFailure when the header changes how the test's own program is compiled."""
    text, macros = looked_at(lab.root, directory, flags, lab.boxed)
    _, usual = looked_at(ROOT, lab.scratch, flags, False)
    program = (HERE / "programs" / "stubs.c").read_text()
    if problem := header_problem(text, macros, usual, program):
        raise BuildFailure(f"it does not build: {HEADER} is refused: {problem}")


def looked_at(root: Path, directory: Path, flags: str, boxed: bool) -> tuple[str, str]:
    """What the preprocessor makes of a tree's header, and the macros that are defined then."""
    place = directory.relative_to(root) if directory.is_relative_to(root) else directory
    script = LOOK.format(flags=flags, directory=place, header=HEADER)
    run_tool(["bash", "-c", script], root, boxed)
    files = (directory / "only.i", directory / "only.macros")
    texts = [path.read_bytes()[:MOST_TEXT].decode(errors="replace") for path in files]
    return texts[0], texts[1]


@contextmanager
def stubs(lab: Lab, variant: str = "plain") -> Iterator[Stubs]:
    """The program, stopped in ring 3."""
    program = built(lab, variant)
    path = lab.scratch / "stubs"
    path.write_bytes(program)
    symbols = symbols_of(path)
    home = symbols.find("_start").address
    fields = with_files(lab, {"bin/stubs": program})
    with stopped(lab, home, "run /bin/stubs", **fields) as guest:
        mask_all_lines(guest)
        yield Stubs(guest, symbols, home)

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
from tests.support.remote import Guest, stopped

NUMBER = 450  # no call has it
FLAGS = "-std=gnu11 -march=i686 -g -ffreestanding -fno-stack-protector -fcf-protection=none -I."
VARIANTS = {
    "plain": "-O2 -fno-pic -fno-omit-frame-pointer",
    "no-frames": "-O2 -fno-pic -fomit-frame-pointer",
    "pic": "-O2 -fPIC -fno-omit-frame-pointer",
    "debug": "-O0 -fno-pic",
}
PREPROCESS = """\
set -e
cc=$(labs/tools/setup/toolchain.sh cc)
includes="-nostdinc -isystem user/include -isystem $($cc -print-file-name=include)"
$cc {flags} $includes -E {directory}/stubs.c -o {directory}/stubs.i
"""
BUILD = """\
set -e
cc=$(labs/tools/setup/toolchain.sh cc)
$cc {flags} -c {directory}/stubs.i -o {directory}/stubs.o
$(labs/tools/setup/toolchain.sh ld) -nostdlib -static -z noexecstack \
    $(labs/tools/setup/toolchain.sh base)0x08048000 \
    {directory}/stubs.o {directory}/missing.o -o {directory}/stubs
"""
HEADER = "user/libc/syscall.h"
MOST_TEXT = 1 << 20  # bytes of what the preprocessor makes of the program; with the reference 7,000


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
    missing = ["nasm", "-f", "elf32", "-I", "build/constants/", "user/libc/missing.asm"]
    missing += ["-o", str(directory / "missing.o")]
    subprocess.run(missing, cwd=ROOT, check=True)
    flags = f"{FLAGS} {VARIANTS[variant]}"
    usual = preprocessed(ROOT, lab.scratch, flags, False)
    text = preprocessed(lab.root, directory, flags, lab.boxed)
    if problem := header_problem(text, usual, "/stubs.c"):
        raise BuildFailure(f"it does not build: {HEADER} is refused: {problem}")
    script = BUILD.format(flags=flags, directory=directory.relative_to(lab.root))
    run_tool(["bash", "-c", script], lab.root, lab.boxed)
    return (directory / "stubs").read_bytes()


def preprocessed(root: Path, directory: Path, flags: str, boxed: bool) -> str:
    """What the preprocessor makes of the program and a tree's header; stubs.i has it, too. Raises
    BuildFailure."""
    (directory / "stubs.c").write_bytes((HERE / "programs" / "stubs.c").read_bytes())
    place = directory.relative_to(root) if directory.is_relative_to(root) else directory
    script = PREPROCESS.format(flags=flags, directory=place)
    run_tool(["bash", "-c", script], root, boxed)
    with (directory / "stubs.i").open("rb") as stream:
        data = stream.read(MOST_TEXT + 1)
    if len(data) > MOST_TEXT:
        raise BuildFailure(f"it does not build: {HEADER} is larger than {MOST_TEXT >> 20} MiB")
    return data.decode(errors="replace")


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

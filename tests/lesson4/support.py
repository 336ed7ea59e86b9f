"""What the tests of lesson 4 share: numbers of the kernel's, ticks, programs that print, and the
record of all changes of tasks."""

from __future__ import annotations

import atexit
import re
import shlex
import shutil
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import pytest

from labs.tools.grading import build_tool
from labs.tools.grading.lab import ROOT, STUCK, Lab
from labs.tools.machine.symbols import Symbols
from tests.lesson3.support import with_files
from tests.support.remote import Guest, stopped

COMMON = "tests/lesson5/memory/code.c"
SCRIPT = "tests/lesson5/memory/code.ld"
PROGRAM = "tests/lesson4/programs/program.c"
FLAGS = (
    *("-std=gnu11", "-march=i686", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-ffreestanding"),
    *("-fno-pic", "-fno-stack-protector", "-fno-omit-frame-pointer", "-fno-strict-aliasing"),
    *("-fno-asynchronous-unwind-tables", "-fcf-protection=none", "-mgeneral-regs-only"),
    *("-fno-optimize-sibling-calls", "-mno-red-zone", "-fno-tree-loop-distribute-patterns"),
)

MASK = 0xFFFFFFFF
INTERRUPTS, DIRECTION = 0x200, 0x400
CLOCK_RATES = {"icount": 10, "slower": 6}  # a tick has 125,000 instructions, or 104,000
RECORD = struct.Struct("<QhhB3x")
RECORDS = 4096
NEW, WOKEN, YIELDED, PREEMPTED, SLEEPS, STOPS, ENDS = range(7)
IDLE = 0
TIMER, KERNEL_CODE = 32, 8  # a vector, a selector
WORK_TICK, WORK_SCHEDULE, WORK_SIGNAL = 1, 2, 4
SAID = re.compile(r"^([a-z-]+) (-?\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Change:
    """One change of tasks: when (time stamps), from which pid to which, and why."""

    stamp: int
    before: int
    after: int
    reason: int


def require_untouched(guest: Guest, place: int, code: bytes) -> None:
    """The test's code is in the guest as it was put there, so what it says is its own word."""
    if guest.data(place, len(code)) != code:
        fail(f"the kernel writes to memory that is not its own, from {place:#x} on")


def changes(guest: Guest, first: int = 0) -> list[Change]:
    """The kernel's record from the change number `first` on."""
    base = guest.address("sched_trace")
    total = guest.read_word(base)
    numbers = range(max(first, total - RECORDS), total)
    if not numbers:
        return []
    data = guest.read(base + 8, RECORDS * RECORD.size)
    return [Change(*RECORD.unpack_from(data, n % RECORDS * RECORD.size)) for n in numbers]


@cache
def tool(name: str) -> list[str]:
    """A tool of the build, as the Makefile chooses it."""
    command = ["labs/tools/setup/toolchain.sh", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return shlex.split(done.stdout)


def run_tool(*command: str) -> None:
    """Runs a tool on the test's own code."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"the test's own code does not build:\n{done.stderr}"


@cache
def workshop() -> Path:
    """Where this process keeps what it has compiled; gone with the process."""
    directory = TemporaryDirectory(prefix="threads-")
    atexit.register(directory.cleanup)
    return Path(directory.name)


@cache
def compiled(source: str) -> str:
    """A file of a test as an object, which does not depend on the kernel under test."""
    target = str(workshop() / (source.replace("/", "-") + ".o"))
    run_tool(*tool("cc"), *FLAGS, "-I.", "-c", source, "-o", target)
    return target


@lru_cache(maxsize=4)
def linked(kernel: Path, modified: int, source: str, boxed: bool) -> tuple[bytes, Symbols]:
    """A file of a test, linked to a kernel as it was at `modified` (nanoseconds): what goes into
    memory, and its names. `boxed`: the kernel is a student's, and only a box reads it."""
    place = Path(mkdtemp(dir=workshop()))
    inputs = {"kernel.elf": kernel, "script.ld": ROOT / SCRIPT}
    inputs |= {f"{i}.o": Path(each) for i, each in enumerate((compiled(COMMON), compiled(source)))}
    for name, path in inputs.items():
        shutil.copy(path, place / name)
    link = ["-T", "script.ld", "-R", "kernel.elf", "0.o", "1.o", "-o", "program"]
    build_tool.run_tool([*tool("ld"), *link], place, boxed)
    build_tool.run_tool([*tool("objcopy"), "-O", "binary", "program", "image"], place, boxed)
    return (place / "image").read_bytes(), Symbols(place / "program")


def code(lab: Lab, source: str) -> tuple[bytes, Symbols]:
    """The same for the kernel under test."""
    kernel = lab.build(f"build/lesson{lab.lesson}/kernel.elf")
    return linked(kernel, kernel.stat().st_mtime_ns, source, lab.boxed)


def interrupt(guest: Guest) -> int:
    """A tick of the clock, here: what the processor does at IRQ 0. Returns where it came from."""
    now = guest.registers()
    entry, stack = at_interrupt(now, timer_gate(guest))
    guest.write(entry["esp"], stack)
    guest.put(entry)
    return now["eip"]


def timer_gate(guest: Guest) -> int:
    """Where the processor goes at IRQ 0."""
    base, _ = guest.tables()["IDT"]
    low, high = guest.read_words(base + 8 * TIMER, 2)
    return low & 0xFFFF | high & 0xFFFF0000


def at_interrupt(now: dict[str, int], gate: int) -> tuple[dict[str, int], bytes]:
    """An interrupt of the kernel, which has these registers: those that it gets, and what the
    processor pushes."""
    pushed = struct.pack("<3I", now["eip"], KERNEL_CODE, now["eflags"])
    flags = now["eflags"] & ~INTERRUPTS
    return now | {"eip": gate, "eflags": flags, "esp": now["esp"] - len(pushed)}, pushed


@cache
def program(source: str) -> bytes:
    """A program of a test, for ring 3: a static ELF file."""
    target = workshop() / source.replace("/", "-")
    options = ["-nostdlib", "-static", "-Wl,--build-id=none", "-Wl,-z,noexecstack"]
    run_tool(*tool("cc"), *FLAGS, *options, "-I.", PROGRAM, source, "-o", str(target))
    return target.read_bytes()


def program_symbols(source: str) -> Symbols:
    """The names of such a program."""
    program(source)
    return Symbols(workshop() / source.replace("/", "-"))


def run_programs(
    lab: Lab, source: str, *commands: str, options: Sequence[str] = (), **fields: object
) -> list[str]:
    """Runs a program once for each text of arguments, and returns the lines that it
    printed, all together."""
    name = Path(source).stem
    files = with_files(lab, {f"bin/{name}": program(source)}, *options)
    script = "; ".join(f"run /bin/{name} {each}".strip() for each in commands)
    said = lab.run(script, **files, **fields).check().serial
    lines = said.replace("\r", "").partition("\n> ")[2].splitlines()
    return [line for line in lines if not line.startswith(("run ", "> "))]


def said_by_programs(lab: Lab, source: str, *commands: str) -> dict[str, int]:
    """Runs a program as run_programs does, and returns the numbers that it printed, by the word
    before each; "tasks" are those that the kernel has in the end. A machine that did not come to
    an end is run again, to tell where it hangs."""
    name = Path(source).stem
    files = with_files(lab, {f"bin/{name}": program(source)})
    script = "; ".join(f"run /bin/{name} {each}".strip() for each in commands)
    result = lab.run(script, variables=("task_count",), **files)
    if result.outcome in STUCK:
        with stopped(lab, "prompt", script, **files) as guest:
            guest.more_symbols.append(program_symbols(source))
            guest.finish()
    said = result.check().serial.replace("\r", "").partition("\n> ")[2]
    tasks = int.from_bytes(result.variables["task_count"], "little")
    return {word: int(number) for word, number in SAID.findall(said)} | {"tasks": tasks}


def signed(word: int) -> int:
    """32 bits as a number with a sign."""
    return word - (1 << 32) if word >> 31 else word


def fail(message: str) -> None:
    """Fails the test with this message."""
    pytest.fail(message, pytrace=False)

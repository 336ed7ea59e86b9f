"""What a guest executes, counted by a plugin of QEMU (count.c): a program marks places, and the
counts between two marks are those of what it did there.

    counter = Counter(("space_fault",))
    extra = counter.words(directory, kernel)        # for Config.extra
    counter.read(directory)                         # after the run: a Count for each mark
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from labs.tools.machine.symbols import KERNEL_BASE, symbols_of
from labs.tools.machine.work_folder import work_folder

SOURCE = Path(__file__).with_name("count.c")
COMPILER = ("gcc", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-fvisibility=hidden")


# A plugin of version 1 that is of no use: QEMU says from which version on it takes one.
TRIAL = "int qemu_plugin_version = 1; int qemu_plugin_install(void) { return -1; }"
MINIMUM = re.compile(r"plugin requires API version 1, but .* minimum version of (\d+)")
LATER = 3  # what takes version 2, QEMU 9.1 to 10, has version 3, too


def interface_of(said: str) -> int:
    """The version of QEMU's interface to build for, from what QEMU says of the trial."""
    found = MINIMUM.search(said)
    return max(int(found[1]), LATER) if found else 1


@cache
def interface() -> int:
    """The same for this machine's QEMU."""
    with work_folder("plugin") as folder:
        trial = str(folder / "trial.so")
        words = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", trial]
        subprocess.run(words, input=TRIAL, text=True, check=True)
        machine = ["qemu-system-i386", "-machine", "none", "-display", "none"]
        done = subprocess.run(
            [*machine, "-plugin", trial], capture_output=True, text=True, check=False
        )
    return interface_of(done.stderr)


def compile_plugin(directory: Path) -> Path:
    """The plugin, for this machine's QEMU."""
    plugin = directory / "count.so"
    words = [*COMPILER, f"-DVERSION={interface()}", str(SOURCE), "-o", str(plugin)]
    subprocess.run(words, check=True)
    return plugin


@dataclass(frozen=True)
class Count:
    """Since the machine began: instructions of all, of REP's second and later times, and of the
    kernel; calls of the counter's functions. The difference of two is what happened between.
    kind: "mark", "halt" or the function that is called."""

    instructions: int
    repetitions: int
    kernel: int
    calls: tuple[int, ...]
    kind: str = "mark"

    def __sub__(self, before: Count) -> Count:
        calls = tuple(one - other for one, other in zip(self.calls, before.calls, strict=True))
        return Count(
            self.instructions - before.instructions,
            self.repetitions - before.repetitions,
            self.kernel - before.kernel,
            calls,
        )


@dataclass(frozen=True)
class Counter:
    """What is counted: calls of these functions of the kernel. With `halts` there is a Count for
    each HLT, too, and for each call of `lines`."""

    functions: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    halts: bool = False

    def words(self, directory: Path, kernel: Path) -> tuple[str, ...]:
        """QEMU's words. Raises LookupError for a function that this kernel has not got."""
        symbols = symbols_of(kernel)
        places = [f",at={symbols.find(name).address:#x}" for name in self.functions]
        places += [f",line={symbols.find(name).address:#x}" for name in self.lines]
        last = ",halts=on" if self.halts else ""
        path = compile_plugin(directory)
        into = f"into={directory / 'counts'},kernel={KERNEL_BASE:#x}"
        return "-plugin", f"{path},{into}{''.join(places)}{last}"

    def read(self, directory: Path) -> list[Count]:
        """The counts of a run, in their order."""
        found = []
        for line in (directory / "counts").read_text().splitlines():
            words = line.split()
            kind = words.pop() if self.halts or self.lines else "mark"
            kind = self.lines[int(kind)] if kind.isdecimal() else kind
            first, again, kernel, *calls = map(int, words)
            found.append(Count(first, again, kernel, tuple(calls), kind))
        return found

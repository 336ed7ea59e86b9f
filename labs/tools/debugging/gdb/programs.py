"""Symbols of the guest's programs: those of the program that the current task runs are loaded by
themselves, and those of the one before are forgotten. All programs have the same addresses."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import gdb

from labs.tools.debugging.gdb.commands import Refusal
from labs.tools.debugging.gdb.guest_programs import Program, read_programs
from labs.tools.debugging.gdb.kernel_data import pointer, structure
from labs.tools.debugging.gdb.open_files import is_readable, path_of_file
from labs.tools.debugging.gdb.processor import quiet, symbol_at
from labs.tools.debugging.gdb.tasks import Task, current_task

TOOLCHAIN = Path(__file__).resolve().parents[2] / "setup" / "toolchain.sh"
SYMBOL = re.compile(r"^(\w+) \w (\S+)$", re.MULTILINE)


class Programs:
    """The guest's programs by path, and which of them gdb has the symbols of."""

    def __init__(self) -> None:
        self._known: dict[str, Program] = {}
        self._loaded = ""

    def read(self, directory: Path) -> None:
        """Takes over what the launcher has found (labs/tools/debugging/gdb/guest_programs.py)."""
        self._known = read_programs(directory)

    def follow(self) -> bool:
        """To be called at each stop: loads what belongs to the current task. A thread of the kernel
        changes nothing. Returns whether there are new symbols."""
        with suppress(gdb.error, Refusal):
            path = path_of(current_task())
            return bool(path) and self._load(path)
        return False

    @contextmanager
    def of(self, task: Task) -> Iterator[None]:
        """The symbols are those of the task's program meanwhile."""
        before, path = self._loaded, path_of(task)
        if path:
            self._load(path)
        try:
            yield
        finally:
            self._load(before)

    def symbol(self, task: Task, address: int) -> str:
        """A name for an address in a task's program; "" when gdb has other symbols now."""
        path = path_of(task)
        return (symbol_at(address) or "") if path and path == self._loaded else ""

    def has(self, name: str) -> bool:
        """Whether the guest has a program of this path or name."""
        return any(name in (path, Path(path).name) for path in self._known)

    def find(self, name: str) -> str:
        """The path of a program: all of it, or the last name. Raises Refusal."""
        paths = sorted(path for path in self._known if name in (path, Path(path).name))
        if len(paths) == 1:
            return paths[0]
        if paths:
            raise Refusal(f"which one? {' or '.join(paths)}")
        raise Refusal(f"the guest has no program {name}" + self._others())

    def address(self, path: str, function: str) -> int:
        """Where a function of a program begins. Raises Refusal."""
        program = self._known[path]
        for address, name in SYMBOL.findall(run_nm(program.file)):
            if name == function:
                return int(address, 16) + program.bias
        raise Refusal(f"{path} has no symbol {function} ({program.file})")

    def show(self, path: str) -> None:
        """Loads a program's symbols, whatever task runs."""
        self._load(path)

    def _others(self) -> str:
        names = sorted(Path(path).name for path in self._known)
        return f"; it has {', '.join(names)}" if names else ": it was started without any"

    def _load(self, path: str) -> bool:
        """Makes the symbols those of this program; of one that is not known there are none."""
        if path == self._loaded:
            return False
        if self._loaded in self._known:
            with suppress(gdb.error):
                quiet(f"remove-symbol-file {quoted(self._known[self._loaded].file)}")
        self._loaded = path
        if path not in self._known:
            return False
        program = self._known[path]
        quiet(f"add-symbol-file {quoted(program.file)} -o {program.bias:#x}")
        return True


PROGRAMS = Programs()


def path_of(task: Task) -> str:
    """Which program a task runs: its path in the guest; "" for none, and when the file has lost its
    name."""
    files = task.files
    program = pointer(structure("files", files)["program"]) if files and task.space else 0
    return path_of_file(structure("file", program)) if program and is_readable(program) else ""


def quoted(path: str) -> str:
    """A path as gdb's commands take it."""
    return f'"{path}"'


def run_nm(path: str) -> str:
    """The symbols of a file, as nm prints them; none when it has none. Raises Refusal."""
    try:
        nm = subprocess.run([TOOLCHAIN, "nm"], capture_output=True, text=True, check=True)
        done = subprocess.run(
            [*nm.stdout.split(), path], capture_output=True, text=True, check=False
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise Refusal(f"nm cannot be run: {error}") from error
    return done.stdout

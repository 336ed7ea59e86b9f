"""How a Python function becomes a gdb command, and how commands read the kernel's variables."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import gdb

from labs.tools.debugging.gdb.processor import Processor

Work = Callable[..., str | None]


class Refusal(Exception):
    """A command cannot do what it was asked; the text says why."""


COMMANDS: dict[str, str] = {}


def command(name: str, arguments: str = "") -> Callable[[Work], Work]:
    """Makes a gdb command of a function that takes words and returns the text to print.

    The first line of its docstring is its line in `apprentice` and in `help user-defined`.
    """

    def register(work: Work) -> Work:
        usage = f"{name} {arguments}".strip()
        text = " ".join((work.__doc__ or "").split())
        COMMANDS[usage] = text

        def invoke(self: gdb.Command, words: str, from_tty: bool) -> None:
            self.dont_repeat()
            run(work, usage, gdb.string_to_argv(words))

        members = {"__doc__": f"{text}\nUsage: {usage}", "invoke": invoke}
        type(name, (gdb.Command,), members)(name, gdb.COMMAND_USER)
        return work

    return register


def run(work: Work, usage: str, words: list[str]) -> None:
    """Runs a command; what goes wrong becomes one line."""
    try:
        inspect.signature(work).bind(*words)
    except TypeError as error:
        raise gdb.GdbError(f"{error}; usage: {usage}") from error
    try:
        text = work(*words)
    except (Refusal, gdb.error) as reason:
        raise gdb.GdbError(f"{usage.split()[0]}: {reason}") from reason
    if text:
        gdb.write(text.rstrip("\n") + "\n")


def number(text: str) -> int:
    """A number or any expression of gdb's, such as $ebp+8. Raises gdb.error."""
    return int(gdb.parse_and_eval(text)) & 0xFFFFFFFF


def count(text: str) -> int:
    """How many lines or records are wanted: one at least."""
    return max(1, number(text))


def kernel_file() -> gdb.Objfile:
    """The kernel's symbols. Raises Refusal when there are none."""
    for file in gdb.objfiles():
        return file
    raise Refusal("no symbols are loaded")


def variable(name: str, file: str | None = None) -> gdb.Value:
    """A variable of the running kernel; `file` tells statics of the same name apart. A program's
    variable of that name is another one."""
    if not Processor().has_paging:
        raise Refusal("the kernel does not run yet; b kmain and c take you there")
    kernel = kernel_file()
    if file:
        return variable_in_file(name, file)
    symbol = kernel.lookup_global_symbol(name) or kernel.lookup_static_symbol(name)
    if symbol is None:
        raise Refusal(f"this kernel has no {name}; it may come in a later lesson")
    return symbol.value()


def variable_in_file(name: str, file: str) -> gdb.Value:
    """A static variable."""
    try:
        return gdb.parse_and_eval(f"'{file}'::{name}")
    except gdb.MemoryError:
        raise
    except gdb.error as error:
        raise Refusal(f"this kernel has no {name} in {file}") from error


def last_lines(text: str, lines: int) -> str:
    """The end of a text."""
    return "\n".join(text.splitlines()[-lines:])


def table(heads: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    """Columns as wide as they must be; numbers are to the right, text to the left."""
    columns = list(zip(*([heads, *rows]), strict=True))
    widths = [max(len(str(cell)) for cell in column) for column in columns]
    rights = [all(isinstance(cell, int) for cell in column[1:]) for column in columns]
    lines = []
    for row in (heads, *rows):
        cells = zip(row, widths, rights, strict=True)
        line = "  ".join(
            str(cell).rjust(width) if right else str(cell).ljust(width)
            for cell, width, right in cells
        )
        lines.append(line.rstrip())
    return "\n".join(lines)

"""The command that shows the last system calls, as strace would."""

from __future__ import annotations

import errno
import re
from functools import cache

import gdb

from labs.tools.debugging.gdb.commands import command, count, variable
from labs.tools.debugging.gdb.kernel_data import optional, pointer, structure, text, text_at
from labs.tools.debugging.gdb.scheduling import stamps_per_ms

ARGUMENTS = 6
LAST_ERROR = 4095
SWITCH_ON = "set var syscall_trace_on = 1"
CONTROL = re.compile(r"[\x00-\x1f\x7f\"\\]")
ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


@command("syscalls", "[COUNT]")
def syscalls(wanted: str = "20") -> str:
    """The last system calls of all tasks, oldest first, with their results and microseconds."""
    trace = variable("syscall_trace")
    total, ring = int(trace["total"]), trace["ring"]
    size = ring.type.range()[1] + 1
    numbers = range(max(0, total - min(count(wanted), size)), total)
    lines = [call_line(ring[index % size]) for index in numbers]
    return "\n".join([*lines, end_line(total)])


def end_line(total: int) -> str:
    """How many there were, and how to have more."""
    switch = optional("syscall_trace_on")
    is_on = switch is not None and bool(int(switch))
    hint = "" if is_on else f"; recording is off: {SWITCH_ON}"
    return f"{total} calls recorded since the boot{hint}"


def call_line(record: gdb.Value) -> str:
    """A record as a line: pid, call, result, and how long it took."""
    name, letters = call_of(record)
    cells = [argument(record, letter, at) for at, letter in enumerate(letters[:ARGUMENTS])]
    line = f"{int(record['pid']):>5} {name}({', '.join(cells)}) = "
    if not int(record["finished"]):
        return line + "?"
    return line + result_words(int(record["result"])) + duration(int(record["ticks"]))


def call_of(record: gdb.Value) -> tuple[str, str]:
    """The name of a call, and how its arguments are shown, as the kernel has registered it."""
    address = pointer(record["call"])
    return registered(address) if address else (f"call_{int(record['number'])}", "x" * ARGUMENTS)


@cache
def registered(address: int) -> tuple[str, str]:
    """Name and letters of a struct syscall, which does not change."""
    call = structure("syscall", address)
    return text_at(pointer(call["name"])), text_at(pointer(call["arguments"]))


def argument(record: gdb.Value, letter: str, at: int) -> str:
    """One argument, as its letter wants it (kernel/syscall/syscall.h)."""
    value = int(record["arguments"][at]) & 0xFFFFFFFF
    if letter in "dfFa":
        return str(value - (value >> 31 << 32))
    if letter == "o":
        return f"0{value:o}"
    if letter == "s" and (string := text(record["text"])):
        is_cut = len(string) == record["text"].type.sizeof - 1
        return f'"{CONTROL.sub(escaped, string)}"' + ("..." if is_cut else "")
    return f"{value:#x}"


def escaped(found: re.Match[str]) -> str:
    """A character that would disturb the line."""
    return ESCAPES.get(found[0], f"\\x{ord(found[0]):02x}")


def result_words(result: int) -> str:
    """A result; errors with their names."""
    name = errno.errorcode.get(-result, "") if -LAST_ERROR <= result < 0 else ""
    return f"{result} {name}".rstrip()


def duration(ticks: int) -> str:
    """How long it took."""
    khz = stamps_per_ms()
    return f" <{ticks * 1000 // khz} us>" if khz else ""

"""exec_add_from_user, asked about a program's memory by tests/lesson3/host/exec_strings.c."""

from __future__ import annotations

import struct

from labs.tools.grading.lab import Lab
from tests.lesson3.support import HERE, answers

SOURCE = "kernel/process/exec_strings.c"
ARRAY, STRINGS, MEMORY_END = 0x08001000, 0x08010000, 0x08040000


def at(address: int, data: bytes) -> str:
    """Puts bytes into the program's memory: a line for the program."""
    return f"at {address:x} {len(data):x} {data.hex()}"


def words(*values: int) -> bytes:
    """An array in the program's memory."""
    return struct.pack(f"<{len(values)}I", *values)


def ask(lab: Lab, lines: list[str]) -> list[list[str]]:
    """What the program answers to each "add": the result, the number of arguments, that of the
    environment's strings, the length of the text, and the text in hexadecimal, which a dot ends."""
    driver = HERE / "host" / "exec_strings.c"
    program = lab.host([SOURCE, "kernel/lib/string.c"], [driver], "exec_strings")
    return [each.split() for each in answers(lab, program, lines, SOURCE)]

"""Are the answers that are handed in right?"""

from __future__ import annotations

import struct

import pytest

from labs.tools.course.handed_in import NUMBERS
from tests.support.handed_in import is_right

MAGIC, HEADER_REACH = 0x1BADB002, 8192
PROGRAM_HEADERS, PROGRAM_HEADER_BYTES, LOAD = 52, 32, 1


def words(lab):
    """The kernel's file, as words of 32 bits."""
    data = lab.build("build/lesson1/kernel.elf").read_bytes()
    return struct.unpack(f"<{len(data) // 4}I", data[: len(data) // 4 * 4])


def checksum(lab):
    """The word that follows the header's magic number and its flags."""
    found = words(lab)
    return found[found[: HEADER_REACH // 4].index(MAGIC) + 2]


def loads(lab):
    """The program headers of that type; their number is at byte 44 of the ELF header."""
    found = words(lab)
    count = found[44 // 4] & 0xFFFF
    first, step = PROGRAM_HEADERS // 4, PROGRAM_HEADER_BYTES // 4
    return sum(found[first + i * step] == LOAD for i in range(count))


@pytest.mark.exercise("1.A", points=5, host=True)
@pytest.mark.parametrize("number", NUMBERS)
def test_answer(lab, number):
    """The answer to an open question: it names what the question asks for."""
    is_right(lab, number, {"1": checksum, "2": loads})

"""Exercise 3.3: bytes between the kernel and ring 3, and pointers that lead nowhere."""

from __future__ import annotations

import random

import pytest

from tests.lesson3.support import (
    DATA,
    EFAULT,
    ENOENT,
    KERNEL_BASE,
    OPEN,
    SPACE_END,
    UNAME,
    WRITE,
    ring3,
)


@pytest.mark.exercise("3.3", points=1)
def test_write_comes_from_ring_3(lab):
    """What a program writes comes out of the serial line, byte for byte."""
    word = f"{random.Random(lab.seed).getrandbits(64):016x}".encode()
    with ring3(lab) as caller:
        found = caller.result(WRITE, 1, caller.write(DATA, word + b"\n"), 17)
        assert found == 17, f"write of 17 bytes returns {found}"
        assert word in caller.guest.said_bytes(), "write says 17, and other bytes came out"


@pytest.mark.exercise("3.3", points=1)
def test_uname_goes_to_ring_3(lab):
    """A structure arrives in the program's memory, and nothing beside it is changed."""
    with ring3(lab) as caller:
        caller.write(DATA, b"\xa5" * 512)
        result = caller.result(UNAME, DATA + 16)
        found = caller.guest.read(DATA, 512)
    assert result == 0, f"uname returns {result}, not 0"
    assert found[16:22] == b"Linux\0", f"uname's structure begins with {found[16:22]}"
    beside = found[:16] + found[16 + 6 * 65 :]
    assert beside == b"\xa5" * (512 - 6 * 65), "bytes beside uname's structure were changed"


@pytest.mark.exercise("3.3", points=1)
def test_pointers_that_lead_nowhere(lab):
    """A null pointer, the kernel's memory, and what is behind the program: EFAULT, three times."""
    with ring3(lab) as caller:
        for address in (0, KERNEL_BASE + 0x100000, SPACE_END):
            found = caller.result(WRITE, 1, address, 8)
            assert found == -EFAULT, f"write from {address:#x} returns {found}, not {-EFAULT}"


@pytest.mark.exercise("3.3", points=1)
def test_names(lab):
    """A name is read up to its NUL; there is no such file."""
    with ring3(lab) as caller:
        caller.write(DATA, b"/no such file\0")
        for address, expected in ((DATA, -ENOENT), (0, -EFAULT)):
            found = caller.result(OPEN, address, 0)
            assert found == expected, f"open({address:#x}) returns {found}, not {expected}"

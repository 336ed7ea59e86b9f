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
        assert caller.result(WRITE, 1, caller.write(DATA, word + b"\n"), 17) == 17
        assert word in caller.guest.said_bytes()


@pytest.mark.exercise("3.3", points=1)
def test_uname_goes_to_ring_3(lab):
    """A structure arrives in the program's memory, and nothing beside it is changed."""
    with ring3(lab) as caller:
        caller.write(DATA, b"\xa5" * 512)
        assert caller.result(UNAME, DATA + 16) == 0
        found = caller.guest.read(DATA, 512)
    assert found[16:22] == b"Linux\0"
    assert found[:16] + found[16 + 6 * 65 :] == b"\xa5" * (512 - 6 * 65)


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
        assert caller.result(OPEN, caller.write(DATA, b"/no such file\0"), 0) == -ENOENT
        assert caller.result(OPEN, 0, 0) == -EFAULT

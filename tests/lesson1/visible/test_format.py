"""Exercise 1.3, formatted printing: numbers in a buffer, and a text on the serial line."""

from __future__ import annotations

from random import Random

import pytest

from tests.lesson1.formats import require
from tests.remote import stopped


@pytest.mark.exercise("1.3", points=1)
def test_numbers(lab):
    """snprintk of a few numbers, called as C calls it."""
    random = Random(lab.seed)
    small, large, digit = random.randint(10, 99), random.randint(10000, 65535), random.randint(1, 9)
    with stopped(lab, "kmain") as guest:
        require(guest, "%d", [small], f"{small}")
        require(guest, "%u is 0x%x", [large, large], f"{large} is 0x{large:x}")
        require(guest, "%s has %d", [guest.text("Class 1"), -digit], f"Class 1 has -{digit}")


@pytest.mark.exercise("1.3", points=1)
def test_width(lab):
    """Numbers in a field: right, left, with zeros."""
    number = Random(lab.seed).randint(10, 99)
    expected = f"   {number}|{number}   |000{number}|"
    with stopped(lab, "kmain") as guest:
        require(guest, "%5d|%-5d|%05d|", [number] * 3, expected)


@pytest.mark.exercise("1.3", points=1)
def test_serial_line(lab):
    """A line on the serial port; a terminal wants a carriage return and a newline."""
    with stopped(lab, "kmain") as guest:
        guest.call("serial_initialize")
        guest.call("printk", guest.text("Good %s.\n"), guest.text("morning"))
        said = guest.said_bytes()
    assert said.startswith(b"Good morning."), f"the serial line has {said!r}"
    assert said == b"Good morning.\r\n", f"the line ends with {said[13:]!r}"

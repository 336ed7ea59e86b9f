"""Exercise 1.3, formatted printing: numbers in a buffer, and a text on the serial line."""

from __future__ import annotations

import pytest

from tests.lesson1.formats import require
from tests.remote import stopped


@pytest.mark.exercise("1.3", points=1)
def test_numbers(lab):
    """snprintk of a few numbers, called as C calls it."""
    with stopped(lab, "kmain") as guest:
        require(guest, "%d", [42], "42")
        require(guest, "%u is 0x%x", [48879, 48879], "48879 is 0xbeef")
        require(guest, "%s has %d", [guest.text("Class 1"), -7], "Class 1 has -7")


@pytest.mark.exercise("1.3", points=1)
def test_width(lab):
    """Numbers in a field: right, left, with zeros."""
    with stopped(lab, "kmain") as guest:
        require(guest, "%5d|%-5d|%05d|", [42, 42, 42], "   42|42   |00042|")


@pytest.mark.exercise("1.3", points=1)
def test_serial_line(lab):
    """A line on the serial port; a terminal wants a carriage return and a newline."""
    with stopped(lab, "kmain") as guest:
        guest.call("serial_initialize")
        guest.call("printk", guest.text("Good %s.\n"), guest.text("morning"))
        said = guest.said_bytes()
    assert said.startswith(b"Good morning."), f"the serial line has {said!r}"
    assert said == b"Good morning.\r\n", f"the line ends with {said[13:]!r}"

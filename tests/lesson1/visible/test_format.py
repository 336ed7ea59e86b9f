"""Exercise 1.3, formatted printing: numbers in a buffer, and a text on the serial line.

Not looked at here, but by the graders: zero, precision, 64 bits, the other flags, a buffer that is
too small, and a serial port that does not get ready.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.lesson1.formats import require
from tests.support.remote import stopped
from tests.support.told import Usual, expect, told

IN_GDB = "make gdb LESSON=1 BOOT=direct, then: tbreak format_number, continue, step"


@pytest.mark.exercise("1.3", points=1)
def test_numbers(lab):
    """snprintk of a few numbers, called as C calls it."""
    random = Random(lab.seed)
    small, large, digit = random.randint(10, 99), random.randint(10000, 65535), random.randint(1, 9)
    usually = (
        Usual("%X", "the digits after 9 are capitals where `capitals` is true"),
        "division gives the last digit first: fill a buffer from its end",
        "a negative number is divided with its sign, or the sign is left out",
    )
    with told(usually, IN_GDB), stopped(lab, "kmain") as guest:
        require(guest, "%d", [small], f"{small}")
        require(guest, "%u is 0x%x", [large, large], f"{large} is 0x{large:x}")
        require(guest, "%s has %d", [guest.text("Class 1"), -digit], f"Class 1 has -{digit}")
        require(guest, "%X", [0xABC0 + digit], f"ABC{digit}")


@pytest.mark.exercise("1.3", points=1)
def test_width(lab):
    """Numbers in a field: right, left, with zeros."""
    number = Random(lab.seed).randint(10, 99)
    expected = f"   {number}|{number}   |000{number}|"
    usually = (
        Usual("%6d", "the width counts the prefix, too: a sign takes the place of a blank"),
        "the flags left ('-': blanks come after the digits) and zero ('0') of struct conversion "
        "are not looked at, or width does not count the digits",
    )
    with told(usually, IN_GDB), stopped(lab, "kmain") as guest:
        require(guest, "%5d|%-5d|%05d|", [number] * 3, expected)
        require(guest, "%6d|", [-number], f"   -{number}|")


@pytest.mark.exercise("1.3", points=1)
def test_serial_line(lab):
    """A line on the serial port; a terminal wants a carriage return and a newline."""
    usually = (
        Usual(r"seen .*\\n\\r'$", "put sends the carriage return after the newline, not before it"),
        "put_raw writes only while the line status lacks the bit CAN_SEND, or not at all",
        "put sends no carriage return ('\\r') before a newline ('\\n'), or sends it after",
    )
    then = "make gdb LESSON=1 BOOT=direct, then: tbreak put_raw, continue, step"
    with told(usually, then), stopped(lab, "kmain") as guest:
        guest.call("serial_initialize")
        guest.call("printk", guest.text("Good %s.\n"), guest.text("morning"))
        said = guest.said_bytes().decode(errors="replace")
        what = 'printk("Good %s.\\n", "morning") on the serial line'
        expect(what, repr(said), repr("Good morning.\r\n"))

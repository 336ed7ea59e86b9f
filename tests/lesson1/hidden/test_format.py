"""Exercise 1.3, formatted printing: borders of numbers, every flag, and a port that fails."""

from __future__ import annotations

import fcntl
import os
import re
import select
from dataclasses import replace
from random import Random

import pytest

from labs.tools.grading.lab import ROOT
from tests.lesson1.formats import (
    GUARD,
    LENGTHS,
    Conversion,
    formatted,
    random_argument,
    random_conversion,
    require,
    require_conversions,
)
from tests.lesson1.loading import cause_in
from tests.support.remote import stopped
from tests.support.told import expect, fail

SOURCES = ("kernel/lib/format.c", "kernel/lib/string.c")
DRIVER = ROOT / "tests/lesson1/host/format.c"
PIPE_SIZE = 4096
PIPE_SECONDS = 30
TRIES = 100_000  # SEND_TRIES of drivers/console/serial.c
LOOK = re.compile(rb"serial_read (?:.*addr 0x0*5 |\[0x0*5\])")  # at the line status; QEMU 7 and 11
LINE_STATUS, RECEIVED = 0x3FD, 0x01


@pytest.mark.exercise("1.3", points=3)
def test_random_conversions(lab):
    """Random conversions with flags, width, precision and length: the text is that of C's
    printf."""
    random = Random(lab.seed)
    with stopped(lab, "kmain") as guest:
        for _ in range(60):
            cases = [(random_conversion(random), random_argument(random)) for _ in range(4)]
            require_conversions(guest, cases)


@pytest.mark.exercise("1.3", points=2)
def test_smallest_and_largest(lab):
    """The smallest and the largest number of each size: the smallest has no positive twin."""
    with stopped(lab, "kmain") as guest:
        for length, bits in LENGTHS.items():
            borders = (1 << (bits - 1), (1 << (bits - 1)) - 1, (1 << bits) - 1)
            for letter in "dux":
                conversion = Conversion(letter, length=length)
                require_conversions(guest, [(conversion, border) for border in borders])


@pytest.mark.exercise("1.3", points=2)
def test_64_bits(lab):
    """64-bit numbers: the digits are right when one division is not enough, and when the lower word
    is 0."""
    random = Random(lab.seed)
    with stopped(lab, "kmain") as guest:
        for letter in "duxXo":
            conversion = Conversion(letter, length="ll")
            numbers = [random.getrandbits(bits) for bits in (33, 40, 56, 63, 64)]
            require_conversions(guest, [(conversion, number) for number in numbers])
            high = [1 << random.randrange(32, 64), random.randrange(1, 1 << 32) << 32]
            conversion = replace(conversion, flags="#" if letter in "xXo" else "")
            require_conversions(guest, [(conversion, number) for number in high])


@pytest.mark.exercise("1.3", points=1, host=True)
def test_room_for_the_digits(lab):
    """The longest numbers of each base: nothing is written outside the buffer of digits."""
    random = Random(lab.seed)
    program = lab.host(SOURCES, [DRIVER], "format")
    flags, widths = ("", "#", "0"), (None, 23, 70)
    cases = [
        (Conversion(letter, flag, width, length="ll"), number)
        for letter in "duxXo"
        for flag, width in zip(flags if letter in "xXo" else ("", "-", "0"), widths, strict=True)
        for number in (random.getrandbits(64) | 1 << 63, (1 << 64) - 1, 1 << 63)
    ]
    done = lab.ask(program, "".join(f"{each} {number}\n" for each, number in cases).encode())
    said = done.stdout.decode(errors="replace").split("\n")[:-1]
    for index, ((conversion, number), text) in enumerate(zip(cases, said, strict=False)):
        lab.judging(index)
        expect(f"{conversion} of {number:#x}", repr(text), repr(conversion.expected(number)))
    if done.returncode != 0 or len(said) < len(cases):
        words = done.stderr.decode(errors="replace")
        lab.judging(len(said))
        conversion, number = cases[min(len(said), len(cases) - 1)]
        fail(f"{conversion} of {number:#x}, on this computer: {cause_in(words)}\n{words[-1500:]}")


@pytest.mark.exercise("1.3", points=2)
def test_zero(lab):
    """The number 0: one digit without a prefix, and no digit with precision 0."""
    with stopped(lab, "kmain") as guest:
        for letter in "diuxXo":
            variants = [Conversion(letter), Conversion(letter, width=4), Conversion(letter, "0", 4)]
            variants += [Conversion(letter, precision=0), Conversion(letter, width=3, precision=2)]
            variants += [Conversion(letter, "+"), Conversion(letter, " ", 3)]
            require_conversions(guest, [(variant, 0) for variant in variants])
        require(guest, "%#x %#X %#o", [0, 0, 0], "0 0 0")
        require(guest, "<%#.0x> <%#.0X> <%#.0o> <%#3.0o>", [0, 0, 0, 0], "<> <> <0> <  0>")
        require(guest, "%s %p %d", [0, 0, 0], "(null) 0x00000000 0")


@pytest.mark.exercise("1.3", points=2)
def test_flags(lab):
    """Flags: the sign or prefix comes first, then zeros; '-' and a precision disable '0'. A
    precision below 0 is none, and only a signed number has a '+'."""
    random = Random(lab.seed)
    with stopped(lab, "kmain") as guest:
        for letter, more in (("d", "+ "), ("u", "+"), ("x", "#+"), ("X", "# "), ("o", "#+")):
            flags = [
                "",
                "-",
                "0",
                "-0",
                *more,
                *(f"{sign}{flag}" for sign in "0-" for flag in more),
            ]
            for width, precision in ((12, None), (12, 0), (12, 3), (12, 9), (3, None)):
                conversions = [Conversion(letter, chosen, width, precision) for chosen in flags]
                for number in (random.getrandbits(14), -random.getrandbits(14) - 1):
                    require_conversions(guest, [(each, number) for each in conversions])
            require(guest, f"%*{letter}|%-*.*{letter}|", [6, 7, 5, 3, 7], "     7|007  |")
            negative = [8, -3, 7, -1 << 31, 0]  # precisions: as if there were none
            require(guest, f"%0*.*{letter}|%.*{letter}|", negative, "00000007|0|")


@pytest.mark.exercise("1.3", points=1)
def test_wide_fields(lab):
    """Widths and precisions larger than any number needs, and larger than a byte holds: the field
    is that wide."""
    random = Random(lab.seed)
    with stopped(lab, "kmain") as guest:
        for letter in "duxXo":
            for flags in ("", "-", "0"):
                for width, precision in ((300, None), (random.randint(80, 140), 270), (70, 65)):
                    conversion = Conversion(letter, flags, width, precision)
                    number = random.getrandbits(31)
                    length, inside, _ = formatted(guest, 400, str(conversion), number)
                    expected = conversion.expected(number).encode() + b"\0"
                    assert (length, inside[: len(expected)]) == (len(expected) - 1, expected), (
                        f"{conversion} of {number}: {length} characters, not {len(expected) - 1}"
                    )


@pytest.mark.exercise("1.3", points=1)
def test_buffer_ends(lab):
    """A text longer than its buffer: it is cut, its whole length is returned, and nothing is
    written after the buffer."""
    expected = b"-2147483648 0x00c0ffee     77"
    with stopped(lab, "kmain") as guest:
        for size in (0, 1, 2, 11, 12, 13, len(expected), len(expected) + 1, 200):
            template = "%d %#010x %6u"
            length, inside, behind = formatted(guest, size, template, 1 << 31, 0xC0FFEE, 77)
            kept = expected[: size - 1] + b"\0" if size else b""
            assert length == len(expected), f"the length is {length} in {size} bytes"
            assert inside[: len(kept)] == kept, f"{inside!r} in {size} bytes"
            assert not behind.strip(GUARD), f"more than {size} bytes were written"


@pytest.mark.exercise("1.3", points=2)
def test_serial_bytes(lab):
    """Bytes to the serial line: one carriage return before each newline, every other byte
    unchanged. What a program has formatted gets no carriage return."""
    random = Random(lab.seed)
    with stopped(lab, "kmain") as guest:
        guest.call("serial_initialize")
        sent = b""
        for _ in range(20):
            text = bytes(random.choice(b"\n\nabc%\x80\xfe\xff") for _ in range(12))
            guest.call("printk", guest.text("%s."), guest.text(text))
            sent += text + b"."
        said, expected = guest.said_bytes(), sent.replace(b"\n", b"\r\n")
        assert said == expected, f"{said[:40]!r} for {sent[:40]!r}"
        text = bytes(random.choice(b"\n\n\ra\xff") for _ in range(12)) + b"\n"
        guest.call("console_write", guest.text(text), len(text))
        said = guest.said_bytes()[len(expected) :]
        assert said == text, f"put_raw sends a byte as it is: {said!r} for {text!r}"


def blocked_pipe(directory) -> tuple[int, int]:
    """Two pipes for a chardev, of which the output's is full. Returns our ends, the input's
    first."""
    for end in ("in", "out"):
        os.mkfifo(directory / f"line.{end}")
    ours = [os.open(directory / f"line.{end}", os.O_RDWR | os.O_NONBLOCK) for end in ("in", "out")]
    fcntl.fcntl(ours[1], fcntl.F_SETPIPE_SZ, PIPE_SIZE)
    os.write(ours[1], b"." * PIPE_SIZE)
    return ours[0], ours[1]


@pytest.mark.exercise("1.3", points=3)
def test_port_that_is_never_ready(lab):
    """A serial port that never becomes ready: the character is dropped after exactly SEND_TRIES
    checks of the port, and so is each of the two of a newline. It is not forced upon the port. When
    the port is ready again, a byte that it has received does not matter."""
    typed, ours = blocked_pipe(lab.scratch)
    line, trace = f"pipe,id=serial,path={lab.scratch / 'line'}", lab.scratch / "trace"
    extra = ("-trace", "serial_read", "-D", str(trace))
    with stopped(lab, "kmain", serial=(line,), extra=extra) as guest:
        guest.call("serial_initialize")
        guest.call("printk", guest.text("ABCDE"))
        looks = []
        for text in ("F", "\n"):
            before = trace.stat().st_size
            guest.call("printk", guest.text(text))
            looks.append(len(LOOK.findall(trace.read_bytes()[before:])))
        os.read(ours, PIPE_SIZE)
        arrived = taken(ours, 2)
        os.write(typed, b"x")
        while not guest.in8(LINE_STATUS) & RECEIVED:
            pass
        guest.call("printk", guest.text("ready\n"))
        arrived += taken(ours, 7)
    os.close(typed)
    os.close(ours)
    assert looks[0] == TRIES, (
        f"the port is not ready, and is given up after {looks[0]} looks at it, not {TRIES}"
    )
    assert looks[1] == 2 * TRIES, (
        f"a newline and its carriage return get {looks[1]} looks together, not {2 * TRIES}"
    )
    assert arrived == b"ABready\r\n", (
        f"the port was ready for A and B, and then again after F; {arrived!r} came out"
    )


def taken(ours: int, length: int) -> bytes:
    """What comes out of the pipe, after waiting for this many bytes, but not for ever."""
    data = b""
    while len(data) < length and select.select([ours], [], [], PIPE_SECONDS)[0]:
        data += os.read(ours, PIPE_SIZE)
    return data

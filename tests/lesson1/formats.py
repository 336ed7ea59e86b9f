"""What the printf family writes (C11 7.21.6.1), worked out in Python, and questions about it."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.support.remote import SCRATCH, Guest
from tests.support.told import expect

# Bits of an argument, and what narrower ones leave of it.
LENGTHS = {"hh": 8, "h": 16, "": 32, "l": 32, "z": 32, "t": 32, "ll": 64, "j": 64}
BASES = {"d": 10, "i": 10, "u": 10, "o": 8, "x": 16, "X": 16}
DIGITS = "0123456789abcdef"
BUFFER = SCRATCH
GUARD = b"\xa5"
ROOM = 512
SMALL = 1 << 20


@dataclass(frozen=True)
class Conversion:
    """One conversion of a number. width and precision: None when there is none."""

    letter: str
    flags: str = ""
    width: int | None = None
    precision: int | None = None
    length: str = ""

    def __str__(self) -> str:
        width = "" if self.width is None else str(self.width)
        precision = "" if self.precision is None else f".{self.precision}"
        return f"%{self.flags}{width}{precision}{self.length}{self.letter}"

    def expected(self, argument: int) -> str:
        """What comes of an argument."""
        bits = LENGTHS[self.length]
        value = argument % (1 << bits)
        if self.letter in "di" and value >> (bits - 1):
            value -= 1 << bits
        prefix, digits = self._prefix(value), self._digits(abs(value))
        return self._padded(prefix, digits)

    def _prefix(self, value: int) -> str:
        if self.letter in "di":
            signs = [sign for sign in "+ " if sign in self.flags]
            return "-" if value < 0 else (signs[0] if signs else "")
        return f"0{self.letter}" if "#" in self.flags and self.letter in "xX" and value else ""

    def _digits(self, magnitude: int) -> str:
        base, digits = BASES[self.letter], ""
        while magnitude:
            magnitude, digit = divmod(magnitude, base)
            digits = DIGITS[digit] + digits
        digits = digits.rjust(1 if self.precision is None else self.precision, "0")
        if self.letter == "o" and "#" in self.flags and not digits.startswith("0"):
            digits = "0" + digits
        return digits.upper() if self.letter == "X" else digits

    def _padded(self, prefix: str, digits: str) -> str:
        width = self.width or 0
        if "-" in self.flags:
            return (prefix + digits).ljust(width)
        if "0" in self.flags and self.precision is None:
            return prefix + digits.rjust(width - len(prefix), "0")
        return (prefix + digits).rjust(width)


def words(conversion: Conversion, argument: int) -> list[int]:
    """The argument as the 32-bit words on the stack."""
    low, high = argument & 0xFFFFFFFF, argument >> 32 & 0xFFFFFFFF
    return [low, high] if LENGTHS[conversion.length] == 64 else [low]


def formatted(guest: Guest, size: int, template: str, *arguments: int) -> tuple[int, bytes, bytes]:
    """Calls snprintk with a buffer of `size` bytes: the length that it returns, and the memory from
    the buffer on, first its own bytes and then what follows."""
    guest.write(BUFFER - 16, GUARD * (16 + ROOM))
    length = guest.call("snprintk", BUFFER, size, guest.text(template), *arguments)
    memory = guest.read(BUFFER - 16, 16 + ROOM)
    assert memory[:16] == GUARD * 16, f"{template!r}: something was written before the buffer"
    return length, memory[16 : 16 + size], memory[16 + size :]


def require(guest: Guest, template: str, arguments: list[int], expected: str) -> None:
    """snprintk writes this text, and returns its length."""
    length, memory, _ = formatted(guest, 256, template, *arguments)
    text = memory.partition(b"\0")[0].decode("latin-1")
    given = ", ".join(map(shown, arguments))
    call = f'snprintk(buffer, 256, "{template}", {given})'
    expect(f"the text of {call}", repr(text), repr(expected))
    expect(f"the result of {call}, a length,", length, len(expected))


def shown(argument: int) -> str:
    """An argument as a person writes it: small numbers in decimal."""
    return str(argument) if -SMALL < argument < SMALL else f"{argument:#x}"


def require_conversions(guest: Guest, cases: list[tuple[Conversion, int]]) -> None:
    """Asks for several conversions in one format, with text between them."""
    template = " ".join(f"<{conversion}>" for conversion, _ in cases)
    arguments = [word for conversion, value in cases for word in words(conversion, value)]
    expected = " ".join(f"<{conversion.expected(value)}>" for conversion, value in cases)
    require(guest, template, arguments, expected)


def random_argument(random: Random) -> int:
    """Numbers of all sizes, the borders among them."""
    borders = (0, 1, 0x7F, 0x80, 0xFFFF, 1 << 31, (1 << 31) - 1, 1 << 63, (1 << 64) - 1)
    if random.random() < 0.25:
        return random.choice(borders)
    value = random.getrandbits(random.randint(1, 64))
    return value if random.random() < 0.5 else -value % (1 << 64)


def random_conversion(random: Random) -> Conversion:
    """Any letter, with flags that C defines for it."""
    letter = random.choice("diuxXo")
    allowed = "-0+ " if letter in "di" else "-0" if letter == "u" else "-0#"
    return Conversion(
        letter,
        flags="".join(flag for flag in allowed if random.random() < 0.3),
        width=random.choice([None, random.randint(1, 24)]),
        precision=random.choice([None, None, random.randint(0, 20)]),
        length=random.choice(list(LENGTHS)),
    )

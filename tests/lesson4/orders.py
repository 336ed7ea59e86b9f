"""What a thread that a test plays can do (tests/lesson4/played.py)."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from tests.support.outside import Call
from tests.support.remote import WORD

KEPT = ("ebx", "esi", "edi", "ebp")  # System V ABI for the i386: a function keeps them

Order = str | Call | list[Call]
Played = Generator["Order | Busy | Trap | Tick | Mixing | Stepped", Any, Any]
NOBODY: Played = (each for each in ())


@dataclass
class Player:
    """A function of the test that has begun: where it is, and where it was called."""

    play: Played
    now: dict[str, int]  # registers
    home: int = 0
    number: int = 0
    kept: dict[str, int] = field(default_factory=dict)
    words: str = ""
    calls: int = 0  # of a list
    begun: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.begun = self.now

    def returns(self, result: int) -> dict[str, int]:
        """The registers after its return: it has kept those that a function must keep."""
        kept = {name: self.begun[name] for name in KEPT}
        after = {"eip": self.home, "esp": self.begun["esp"] + WORD, "eax": result}
        return self.now | kept | after


@dataclass(frozen=True)
class Trap:
    """INT3, in the thread's own code."""


@dataclass(frozen=True)
class Tick:
    """A tick of the clock, in the thread's own code."""


@dataclass(frozen=True)
class Busy:
    """This many instructions of the thread's own, while interrupts come."""

    instructions: int


@dataclass(frozen=True)
class Mixing:
    """At most so many instructions that mix all registers and flags, in steps, from these registers
    or from where the thread is; `seen` gets the registers before each. Then a tick, unless they
    have come to their end: is that so?"""

    most: int
    seen: list[dict[str, int]]
    begin: dict[str, int] | None = None


@dataclass(frozen=True)
class Stepped:
    """A call that is made in steps, without an interrupt: Play.stepped has where each was. Fails
    beyond `most`."""

    call: Call
    most: int

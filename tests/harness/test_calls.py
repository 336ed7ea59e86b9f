"""Functions of a kernel that are called from outside: a call that comes to no end."""

from __future__ import annotations

import pytest

from tests.support.outside import MOST_STOPS, Outside


class Asking:
    """A guest whose kernel calls the first place that stops it, again and again."""

    def __init__(self) -> None:
        self.here = self.stops = 0

    def stop_at(self, place: int) -> None:
        """The first one is called."""
        self.here = self.here or place

    def registers(self) -> dict[str, int]:
        """It stands there each time."""
        return {"esp": 0x1000, "eip": self.here, "eflags": 2}

    def leap(self, *_: object) -> dict[str, int]:
        """The call begins."""
        return self.registers()

    def go(self, *_: object) -> None:
        """It goes on."""
        self.stops += 1

    def address(self, name: str) -> int:
        """Of panic, for instance."""
        return len(name)

    def data(self, _address: int, length: int) -> bytes:
        """What a stack has."""
        return bytes(length)

    def ignore(self, *_: object) -> None:
        """What needs no answer."""

    out8 = put = put_data = ignore


def test_a_call_that_asks_for_ever():
    """A kernel that asks a file for the same page for ever is told so, and not waited for."""
    guest = Asking()
    kernel = Outside(guest)
    kernel.serve(kernel.place("the file's read"), lambda *_: 0)
    with pytest.raises(
        pytest.fail.Exception, match="page_cache_get does not end: it calls the file's"
    ):
        kernel.call("page_cache_get", 1)
    assert guest.stops == MOST_STOPS

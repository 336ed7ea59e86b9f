"""Exercise 4.1: a thread that takes turns, which a test plays."""

from __future__ import annotations

from collections.abc import Callable

from tests.lesson4.played import Played

YIELDS = [("yield",)] * 10


def turn(found: list[int], rounds: int) -> Callable[[int], Played]:
    """A thread that says its argument, and yields."""

    def thread(number: int) -> Played:
        for _ in range(rounds):
            found.append(number)
            yield "yield"

    return thread

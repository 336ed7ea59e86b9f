"""What the tests of kmalloc share (exercise 5.5): a kernel whose kmalloc checks, and guards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from labs.tools.grading.lab import Lab
from tests.lesson5.support import Run, memory_code

PLAIN = "kmalloc_debug_enable"  # kmalloc_initialize has been called, and nobody checks yet
GUARD = 32  # bytes of struct guard
RED = 8  # bytes of a red zone
QUARANTINE = 64


@dataclass(frozen=True)
class Guard:
    """What is before an object: bytes asked for, functions, and the allocation's number."""

    size: int
    owner: str
    freer: str
    serial: int


def guard_of(run: Run, address: int) -> Guard:
    """The guard of the object at an address."""
    size, owner, freer, serial = run.guest.read_words(address - GUARD + 8, 4)
    by = freer and function_at(run, freer)
    return Guard(size, function_at(run, owner), by or "nobody", serial)


def function_at(run: Run, address: int) -> str:
    """The name of the test's function that an address is in; or the address."""
    words = run.symbols.describe(address).split()
    return words[1].partition("+")[0] if len(words) > 1 else words[0]


@contextmanager
def checked(lab: Lab, source: str, **fields: object) -> Iterator[Run]:
    """A kernel whose kmalloc checks, with the code of `source` in it."""
    with memory_code(lab, source, PLAIN, **fields) as run:
        run.guest.call("kmalloc_debug_enable")
        yield run

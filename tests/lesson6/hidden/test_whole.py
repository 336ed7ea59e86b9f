"""All exercises of lesson 6 in one kernel: a program with more memory than the machine has."""

from __future__ import annotations

from random import Random

import pytest

from tests.lesson4.support import said_by_programs
from tests.support.told import expect

WHOLE = "tests/lesson6/hidden/whole.c"
PAGES = 256 << 8
WORDS = 1024


def sums(start: int, count: int, more: int) -> tuple[int, int]:
    """What the parent finds in the end, and its child, which has written once more."""
    places = [(start + n * 2654435761 & 0xFFFFFFFF) % PAGES for n in range(count)]
    found = []
    for writes in ((more,), (more, 1)):
        words: dict[tuple[int, int], int] = {}
        for added in writes:
            for n, page in enumerate(places):
                word = page, n % WORDS
                words[word] = words.get(word, 0) + n + added
        total = sum(
            words[page, n % WORDS] + words.get((page, WORDS - 1), 0)
            for n, page in enumerate(places)
        )
        found.append(total & 0x7FFFFFFF)
    return found[0], found[1]


@pytest.mark.exercise("6.0", points=2)
def test_more_than_there_is(lab):
    """A program has 256 MiB on a smaller machine, uses some pages of it, and its child others."""
    random = Random(lab.seed)
    start, count, more = random.randrange(1 << 20), random.randrange(200, 400), random.randrange(99)
    levels = random.randrange(200, 900)
    parent, child = sums(start, count, more)
    said = said_by_programs(lab, WHOLE, f"generations {start} {count} {more} {levels}")
    expect("what the child finds in its memory", said.get("child"), child)
    expect("what its recursion returns", said.get("deep"), levels * (levels + 1) // 2)
    expect("its status", said.get("status"), 0)
    expect("what the parent finds in its memory after that", said.get("parent"), parent)


@pytest.mark.exercise("6.0", points=1)
def test_a_stack_without_end(lab):
    """A recursion without an end is ended by SIGSEGV, alone."""
    said = said_by_programs(lab, WHOLE, "endless")
    expect("the signal that ends a recursion without an end", said.get("signal"), 11)
    expect("what the parent's own recursion returns then", said.get("after"), 55)

"""Finds moments of a run's past: the last one at which something happened, before a given one.

The last instructions are looked at first, then more and more of them: what happens often has
happened a short time ago, and what happens seldom stops a machine seldom.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from labs.tools.debugging.past.history import History, Past, StandstillError, tried
from labs.tools.debugging.past.stub import registers_in

FIRST_WINDOW = 10_000
GROWTH = 60
LARGEST_WINDOW = 20_000_000
PARTS, UNWATCHED_PARTS = 8, 200  # of a window: memory is looked at as often as this
FINER = 24
WATCHED_TRIES = 2  # where REP INS writes to what is watched, none gets on
REGISTERS = ("eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "eip")
WATCH = re.compile(r"watch:(\w+);")
EVERYWHERE = ("Z2,0,7fffffff", "Z2,80000000,7fffffff")


@dataclass(frozen=True)
class Hit:
    """A stop at a breakpoint: before the instruction there. For a watchpoint: after the store."""

    count: int
    registers: dict[str, int]


@dataclass(frozen=True)
class Change:
    """What gave memory its present value: `count` is before that instruction. way: "store", "other
    address" (a store through a linear address that was not known), or "device" (no instruction
    wrote it)."""

    count: int
    way: str
    old: bytes
    new: bytes


def windows(before: int) -> Iterator[tuple[int, int]]:
    """Parts of the run, the last first, up to an instruction count."""
    length = FIRST_WINDOW
    while before > 0:
        start = max(0, before - length)
        yield start, before
        before, length = start, min(length * GROWTH, LARGEST_WINDOW)


def hits(past: Past, end: int, most: int = 1 << 30) -> Iterator[Hit]:
    """The stops of a machine at the breakpoints that are set in it, before an instruction count."""
    while past.count < end and most:
        past.run(end)
        if past.count >= end:
            return
        yield Hit(past.count, registers_in(past.stub.ask("g"), REGISTERS))
        past.step()
        most -= 1


def last_hits(history: History, before: int, breakpoints: Sequence[str]) -> list[Hit]:
    """The stops at breakpoints (packets of gdb's) in the last part of the run that has any, in
    order; empty when there has been none since the machine was switched on."""

    def hits_between(start: int, end: int) -> list[Hit]:
        past = history.at(start)
        try:
            past.stub.ask_all(*breakpoints)
            return list(hits(past, end))
        finally:
            past.end()

    for part in windows(before):
        if found := tried(partial(hits_between, *part)):
            return found
    return []


def count_hits(history: History, before: int, breakpoints: Sequence[str], most: int) -> int:
    """How often a breakpoint is met before an instruction count; `most` at most."""

    def count() -> int:
        past = history.at(0)
        try:
            past.stub.ask_all(*breakpoints)
            return sum(1 for _ in hits(past, before, most))
        finally:
            past.end()

    return tried(count)


def last_change(
    history: History, before: int, place: tuple[int, int], linear: Sequence[int], value: bytes
) -> Change | None:
    """What gave `place`, a physical address and a size, the value that it has before an
    instruction count; None: it has had it since the machine was switched on. `linear` are the
    addresses through which it is written as a rule."""
    watches = [f"Z2,{address:x},{place[1]:x}" for address in linear]
    for part in windows(before):
        try:
            changes = tried(partial(changes_between, history, part, place, watches), WATCHED_TRIES)
        except StandstillError:
            changes = tried(partial(changes_between, history, part, place, []))
        if changes:
            return exact(history, changes[-1], place, linear, value)
    return None


def changes_between(
    history: History, part: tuple[int, int], place: tuple[int, int], watches: Sequence[str]
) -> list[tuple[int, int]]:
    """The changes of memory in a part of the run, each by the counts between which it was: exactly
    with watchpoints, and else as finely as it is looked at."""
    past = history.at(part[0])
    try:
        past.stub.ask_all(*watches)
        return list(changes_in(past, part[1], place, PARTS if watches else UNWATCHED_PARTS))
    finally:
        past.end()


def changes_in(
    past: Past, end: int, place: tuple[int, int], parts: int
) -> Iterator[tuple[int, int]]:
    """The changes of memory up to an instruction count, by watchpoints and now and then a look:
    the counts between which it was. Raises StandstillError."""
    known, since = past.physical(*place), past.count
    marks = [past.count + (end - past.count) * part // parts for part in range(1, parts + 1)]
    for mark in marks:
        while past.count < mark:
            past.run_watched(mark)
            now = past.physical(*place)
            if now != known:
                yield since, past.count
            known, since = now, past.count


def exact(
    history: History,
    between: tuple[int, int],
    place: tuple[int, int],
    linear: Sequence[int],
    new: bytes,
) -> Change:
    """The instruction that made a change between two counts. Most often it is the last one: then a
    watchpoint has stopped there."""
    since, until = between
    while (change := change_at(history, until - 1, place, linear, new)) is None:
        until -= 1
        while until - since > 1:
            part = (since, until)
            since, until = tried(partial(narrower, history, part, place, new))
    return change


def change_at(
    history: History, count: int, place: tuple[int, int], linear: Sequence[int], new: bytes
) -> Change | None:
    """The change, if memory has not its new value before this instruction. Whether the instruction
    writes to memory at all, and through which address, tells who made it: else a device did."""
    past = history.at(count)
    try:
        old = past.physical(*place)
        if old == new:
            return None
        if past.is_at_input():
            return Change(count, "store", old, new)
        watches = [f"Z2,{address:x},{place[1]:x}" for address in linear]
        past.stub.ask_all(*EVERYWHERE, *watches)  # QEMU names the one that was set last
        stop = WATCH.search(past.step())
        way = "device"
        if stop:
            way = "store" if int(stop[1], 16) in linear else "other address"
        return Change(count, way, old, new)
    finally:
        past.end()


def narrower(
    history: History, between: tuple[int, int], place: tuple[int, int], new: bytes
) -> tuple[int, int]:
    """A part of these instructions in which the value becomes the new one, for the last time."""
    since, until = between
    step = max(1, (until - since) // FINER)
    past = history.at(since)
    last = since
    try:
        for count in range(since + step, until, step):
            past.go(count)
            if past.physical(*place) != new:
                last = count
    finally:
        past.end()
    return last, min(last + step, until)

"""Exercise S9, for the graders: a store that is opened on a drive of which calls fail."""

from __future__ import annotations

from random import Random

import pytest

from tests.storage.blob import (
    AREA,
    BROKEN,
    DISK,
    KEYS,
    SECTOR,
    SUPERS,
    Client,
    Cut,
    Drive,
    Promises,
    Sparse,
    drives_line,
    formatted,
    must,
    recover,
    state,
    work,
)
from tests.support.told import require


@pytest.mark.exercise("S9", points=2, host=True)
def test_open_that_fails(lab):
    """Each call of the drive fails in open in turn: -EIO, and nothing is lost."""
    drive = Drive(bytearray(DISK))
    client = Client(drive, Random(lab.seed), longest=AREA)
    large = AREA * 3 // 4 // len(KEYS)

    def steps():
        yield from formatted(client)
        for key in KEYS:
            require((yield from client.put(key, client.data(large))), "put: -ENOSPC")
        yield from client.sync()
        number, was_reached = 0, True
        while was_reached:
            yield drives_line([drive])
            drive.fails = drive.calls + number
            reply = yield "open"
            was_reached, drive.fails = drive.calls > drive.fails, -1
            must(reply, f"open, of which call {number} fails", BROKEN if was_reached else 0)
            if was_reached:
                must((yield "open"), "open, after one that has failed")
            yield from client.look(KEYS, "after an open that has failed")
            yield from client.put(1, client.data(5))
            yield from client.sync()
            yield "close"
            number += 1

    work(lab, [drive], steps())
    recover(lab, [state(client, "after an open that failed")], KEYS)


@pytest.mark.exercise("S9", points=1, host=True)
def test_compaction_after_one_that_fails(lab):
    """Each call of the drive fails in compact in turn; then all objects are deleted, and the next
    compaction has none: what the first one has copied does not count."""
    drive = Drive(bytearray())
    client = Client(drive, Random(lab.seed))
    found: list[Cut] = []

    def steps():
        was_reached = True
        while was_reached:
            drive.data, drive.promises = bytearray(DISK), Promises()
            yield from client.format()
            for key in KEYS:
                yield from client.put(key, client.data(300))
            yield from client.sync()
            drive.fails = drive.calls + len(found)
            reply = yield "compact"
            was_reached, drive.fails = drive.calls > drive.fails, -1
            what = f"compact, of which call {len(found)} fails"
            must(reply, what, BROKEN if was_reached else 0)
            must((yield "close"), f"{what}, and close: allocated bytes")
            yield from client.begin()
            for key in KEYS:
                yield from client.delete(key)
            yield from client.sync("compact")
            found.append(state(client, f"{what}; then delete of all, and compact"))
            yield "close"

    work(lab, [drive], steps())
    recover(lab, found, KEYS)


@pytest.mark.exercise("S9", points=1, host=True)
def test_a_store_that_was_there_before(lab):
    """A store of which both superblocks are gone, or one of them, and a new store on the same
    drive, which has had as many sessions: it is empty, and what it has from then on are its own
    objects."""
    drive = Drive(bytearray())
    client = Client(drive, Random(lab.seed))
    found: list[Cut] = []

    def steps(command):
        drive.promises = Promises()
        yield from client.format()
        yield from client.look(KEYS, "in a new store")
        for key in KEYS if command == "close" else (0,):
            yield from client.put(key, client.data(300))
        yield from client.sync()
        yield command

    for lost in (slice(0, SUPERS), slice(0, SECTOR), slice(SUPERS // 2, SUPERS)):
        drive.data = bytearray(DISK)
        work(lab, [drive], steps("close"))
        drive.data[lost] = bytes(lost.stop - lost.start)
        work(lab, [drive], steps("sync"))
        found.append(state(client, "a new store, with one object"))
    recover(lab, found, KEYS)


@pytest.mark.exercise("S9", points=1, host=True)
def test_a_large_drive(lab):
    """A drive of 10 GiB, and more objects than are read at once: those of both areas are found."""
    drive = Drive(Sparse(10 << 30))
    client = Client(drive, Random(lab.seed), longest=30_000)
    many, small = range(12), client.chance.sample(range(100, 1 << 40), 200)

    def steps():
        yield from client.format()
        for key in small:
            yield from client.put(key, client.data(5))
        for key in small[::3]:
            yield from client.delete(key)
        yield from client.look(small, "some of 200 objects were deleted")
        for key in many:
            yield from client.put(key, client.data(30_000 - key))
        yield from client.sync()

    def opened(then):
        yield from client.begin()
        yield from client.look((*many, *small), "in a store on a large drive")
        yield from client.sync(then)
        yield from client.put(1, client.data(700))
        yield from client.sync()

    work(lab, [drive], steps())
    for then in ("compact", "sync"):  # the second area is beyond 4 GiB
        work(lab, [drive], opened(then))

"""Exercise S9 (an extra): the blob store. Its drive is another process; after a power cut a third
one opens what the drive has kept.

Not looked at here, but by the graders: drives that write what is in their cache in any order,
several power cuts one after another, torn superblocks, calls of the drive that fail, full logs.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.storage.blob import (
    DISK,
    HEAD,
    SECTOR,
    Client,
    Cut,
    Drive,
    cuts,
    none_of_the_last,
    random_steps,
    recover,
    sectors_of,
    work,
)
from tests.support.told import Usual, require, told

HINT = "make hint EX=S9"
USUAL = (
    Usual("must not be(?s:.*)of its sectors only", "a record counts when its checksum is right, "
          "over head and data: a torn one has only some of its sectors"),
    Usual("seen 0 bytes|must not be(?!(?s:.*)of its sectors only)", "a delete is a record, too, "
          "with DELETED in its flags; the walk sets the entry's length to GONE"),
    Usual("(?:is lost|other contents)(?s:.*)in compact", "until the superblock is on the drive the "
          "old area is the log, and the new one after it: which of them was written to, and what "
          "was on the drive when the superblock was written?"),
    Usual("is lost(?!(?s:.*)in compact)", "does the walk go on after each record, to the first one "
          "that is not whole? Does the next record go after the last one?"),
    Usual("other contents(?!.*seen 0 bytes)(?!(?s:.*)in compact)", "the entry of the last record "
          "of a key counts, and its offset is that of the record"),
    Usual("get of object .*returns -EIO", "at the entry's offset is another record, or none: where "
          "was it written, and where does the next one go?"),
    Usual("open: returns", "write_super: which of the two superblocks may be overwritten?"),
    Usual("beyond the drive's end|expected -ENOSPC", "append: does the record end in this area? "
          "area_end(store)"),
    Usual("compact: returns|expected 0, seen -ENOSPC", "compaction copies the live records to the "
          "beginning of the other area, and then that one is the store's"),
)  # fmt: skip


@pytest.mark.exercise("S9", points=2, gate=True, host=True)
def test_put_get_delete(lab):
    """Objects of some lengths, replaced and deleted; another process finds what was synced."""
    drive = Drive(bytearray(DISK))
    client = Client(drive, Random(lab.seed))
    lengths = (5, 0, SECTOR - HEAD, SECTOR - HEAD + 1, 1500)

    def steps():
        yield from client.format()
        for key, length in enumerate(lengths):
            yield from client.put(key, client.data(length))
        yield from client.put(4, client.data(700))
        yield from client.delete(2)
        yield from client.delete(2)
        yield from client.look(range(6))
        yield from client.sync()

    with told(USUAL, HINT):
        work(lab, [drive], steps())
        recover(lab, [Cut(bytes(drive.data), "after sync", client.promises.copy())], range(6))


@pytest.mark.exercise("S9", points=2, host=True)
def test_torn_record(lab):
    """Object 1 is synced; the power goes while object 2 is written. Then object 3 is put."""
    drive = Drive(bytearray(DISK))
    client = Client(drive, Random(lab.seed))

    def steps():
        yield from client.format()
        yield from client.put(1, client.data(600))
        yield from client.sync()
        drive.events.clear()
        drive.kept = bytes(drive.data)
        yield from client.put(2, client.data(1500))

    def go_on():
        yield from client.begin()
        yield from client.look((1, 2))
        yield from client.put(3, client.data(900))
        yield from client.sync()

    with told(USUAL, HINT):
        work(lab, [drive], steps())
        kept = drive.kept
        may_be = {1: tuple(client.promises.may_be[1]), 2: (None,)}
        parts = [part for event in drive.events if event.write
                 for part in sectors_of(event.write)]  # fmt: skip
        require(len(parts) == 4, f"put of 1500 bytes: 4 sectors to be written, seen {len(parts)}")
        for some in (parts[:0], parts[:2], parts[:3], parts[1:]):
            image = bytearray(kept)
            for offset, data in some:
                image[offset : offset + SECTOR] = data
            numbers = [parts.index(part) for part in some]
            where = f"the power went in put of object 2: of its sectors only {numbers} are there"
            recover(lab, [Cut(bytes(image), where, may_be)], (1, 2))
            drive = Drive(image)
            client = Client(drive, Random(lab.seed))
            client.promises.may_be = {key: list(each) for key, each in may_be.items()}
            work(lab, [drive], go_on())
            where = "after a torn record, put of object 3 and sync"
            recover(lab, [Cut(bytes(drive.data), where, client.promises.copy())], (1, 2, 3))


@pytest.mark.exercise("S9", points=2, host=True)
def test_deleted_stays_deleted(lab):
    """The power goes at each write of put, sync, delete, sync, put of another object."""
    drive = Drive(bytearray(DISK))
    client = Client(drive, Random(lab.seed))

    def steps():
        yield from client.format()
        drive.events.clear()
        drive.kept = bytes(drive.data)
        for key in (1, 2):
            yield from client.put(key, client.data(800))
        yield from client.sync()
        yield from client.delete(1)
        yield from client.sync()
        yield from client.put(3, client.data(800))
        yield from client.sync()

    with told(USUAL, HINT):
        work(lab, [drive], steps())
        found = [*cuts(drive.kept, drive.events, none_of_the_last, "")]
        recover(lab, found, (1, 2, 3))
        recover(lab, [Cut(bytes(drive.data), "after sync", client.promises.copy())], (1, 2, 3))


@pytest.mark.exercise("S9", points=2, host=True)
def test_compaction(lab):
    """A log that is full; some objects are deleted. The power goes at each write of the
    compaction."""
    drive = Drive(bytearray(DISK))
    client = Client(drive, Random(lab.seed))
    keys = range(40)

    def steps():
        yield from client.format()
        for key in range(10):
            yield from client.put(key, client.data(1500))
        for key in range(6):
            yield from client.delete(key)
        count = 10
        while (yield from client.put(count, client.data(1500))):
            count += 1
            require(count < 39, f"expected -ENOSPC from one of {count} puts of 1500 bytes")
        yield from client.sync()
        drive.events.clear()
        drive.kept = bytes(drive.data)
        yield from client.sync("compact")
        require((yield from client.put(39, client.data(1500))), "put: expected 0, seen -ENOSPC")
        yield from client.look(keys, "after compact")
        yield from client.sync()

    with told(USUAL, HINT):
        work(lab, [drive], steps())
        found = [*cuts(drive.kept, drive.events, none_of_the_last, "")]
        recover(lab, found, keys)
        recover(lab, [Cut(bytes(drive.data), "after sync", client.promises.copy())], keys)


@pytest.mark.exercise("S9", points=2, gate=True, host=True)
def test_power_cuts(lab):
    """The power goes at each write of 80 operations; the drive has written all before it."""
    drive = Drive(bytearray(DISK))
    client = Client(drive, Random(lab.seed))
    keys = range(8)

    def steps():
        yield from client.format()
        drive.events.clear()
        drive.kept = bytes(drive.data)
        yield from random_steps(client, keys, 80)

    with told(USUAL, HINT):
        work(lab, [drive], steps())
        recover(lab, [*cuts(drive.kept, drive.events, none_of_the_last, "")], keys)

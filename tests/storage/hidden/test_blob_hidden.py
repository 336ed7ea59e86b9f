"""Exercise S9, for the graders: drives with a cache, several power cuts one after another, what is
left of older logs, torn superblocks, calls of the drive that fail, and the log's end."""

from __future__ import annotations

import struct
from random import Random

import pytest

from tests.storage.blob import (
    AREA,
    BROKEN,
    DISK,
    HEAD,
    KEYS,
    NO_OBJECT,
    NO_ROOM,
    SECTOR,
    SUPERS,
    TOO_LARGE,
    Client,
    Cut,
    Drive,
    Promises,
    any_of_them,
    begun,
    cuts,
    drives_line,
    figures,
    formatted,
    in_words,
    must,
    none_of_the_last,
    random_steps,
    record_bytes,
    recover,
    state,
    told_of,
    torn,
    work,
)
from tests.support.told import expect, require


@pytest.mark.exercise("S9", points=4, gate=True, host=True)
@pytest.mark.parametrize("number", range(4))
def test_sessions_of_a_drive_with_a_cache(lab, number):
    """Power cuts with a write cache: synced objects survive, whichever sectors since the last sync
    are on the drive, whole or torn. Each session begins with what the cut before it has left."""
    chance = Random(f"{lab.seed} {number}")
    drive = Drive(bytearray(DISK))

    def first():
        yield from formatted(client)
        yield from random_steps(client, KEYS, 60)

    def later():
        yield drives_line([drive])
        begun(client)
        must((yield "open"), "open")
        yield from client.look(KEYS, "after a power cut")
        yield from random_steps(client, KEYS, 60)

    for session in range(4):
        client = Client(drive, chance)
        work(lab, [drive], later() if session else first())
        kept = any_of_them(chance)
        found = [*cuts(drive.kept, drive.events, kept, "; its cache was not written whole")]
        recover(lab, found, KEYS)
        cut = chance.choice(found)
        drive = Drive(bytearray(cut.image))
        drive.promises = Promises({key: list(each) for key, each in cut.may_be.items()})


@pytest.mark.exercise("S9", points=2, host=True)
@pytest.mark.parametrize("number", range(3))
def test_torn_writes(lab, number):
    """A torn write (its first sectors, its last, or any): synced objects survive."""
    drive = Drive(bytearray(DISK))
    client = Client(drive, Random(f"{lab.seed} {number}"), longest=4000)

    def steps():
        yield from formatted(client)
        yield from random_steps(client, KEYS, 60)

    work(lab, [drive], steps())
    found = [
        each
        for _ in range(3)
        for each in cuts(drive.kept, drive.events, torn(client.chance), "; that write is torn")
    ]
    recover(lab, found, KEYS)


@pytest.mark.exercise("S9", points=3, host=True)
@pytest.mark.parametrize(("length", "area"), [(0, 0), (300, 0), (300, 1), (1500, 1)])
def test_a_gap_that_is_filled(lab, length, area):
    """A gap in the log: objects before it survive. A put and a delete are not synced, and only the
    delete's record is on the drive; the next session puts an object of the same length, in both
    areas."""
    drive = Drive(bytearray(DISK))
    client = Client(drive, Random(lab.seed))

    def first():
        yield from formatted(client)
        yield from client.put(1, client.data(700))
        yield from client.sync("compact" if area else "sync")

    def lost():
        yield from client.begin()
        yield from client.put(2, client.data(length))
        yield from client.delete(1)

    def filled():
        yield from client.begin()
        yield from client.look((1, 2, 3), "only the record of delete is on the drive")
        yield from client.put(3, client.data(length))
        yield from client.sync()

    work(lab, [drive], first())
    begun(client)
    work(lab, [drive], lost())
    found = [*cuts(drive.kept, drive.events, lambda writes: list(writes[-1:]), "")][-1]
    drive = client.drive = Drive(bytearray(found.image))
    drive.promises = Promises({key: list(each) for key, each in found.may_be.items()})
    work(lab, [drive], filled())
    recover(lab, [state(client, "an unsynced delete of a session before that")], (1, 2, 3))


@pytest.mark.exercise("S9", points=2, host=True)
@pytest.mark.parametrize("left", [0, 1, 3])
def test_stale_logs(lab, left):
    """An older log in both areas, of sessions before and of this one: what is after the new one's
    end is ignored."""
    drive = Drive(bytearray(DISK))
    client = Client(drive, Random(lab.seed))

    def steps():
        yield from formatted(client)
        for key in range(12):
            yield from client.put(key, client.data(300))
        yield from client.sync("compact")
        for key in range(left, 12):
            yield from client.put(key, client.data(300))
        yield from client.sync()
        for key in range(left, 12):
            yield from client.delete(key)
        yield from client.sync("compact")
        yield from client.look(range(12), "after compact")

    def again():
        for key in range(left, 12):
            yield from client.put(key, client.data(300))
        for _ in range(3):
            yield from client.sync("compact")
        for key in range(left, 12):
            yield from client.delete(key)
        yield from client.sync("compact")

    def both():
        yield from steps()
        found.append(state(client, "after two compactions"))
        yield from again()
        found.append(state(client, "after six compactions"))

    found: list[Cut] = []
    work(lab, [drive], both())
    recover(lab, found, range(12))


@pytest.mark.exercise("S9", points=4, gate=True, host=True)
@pytest.mark.parametrize("number", range(3))
def test_compaction_is_cut_at_each_step(lab, number):
    """A power cut at each step of a compaction, and of the next one: nothing is lost."""
    chance = Random(f"{lab.seed} {number}")
    drive = Drive(bytearray(DISK))
    client = Client(drive, chance, longest=900)

    def steps():
        yield from formatted(client)
        yield from random_steps(client, KEYS, 40)
        yield from client.sync()
        begun(client)
        for key in KEYS:
            yield from client.put(key, client.data())
        yield from client.delete(chance.choice(KEYS))
        yield from client.sync("compact")
        yield from client.put(chance.choice(KEYS), client.data())
        yield from client.sync("compact")

    def again():
        yield from client.begin()
        yield from client.look(KEYS, "after a compaction that was cut")
        yield from client.put(9, client.data())
        yield from client.sync("compact")
        yield from client.delete(9)
        yield from client.sync()

    work(lab, [drive], steps())
    found = [
        each
        for kept in (none_of_the_last, any_of_them(chance), any_of_them(chance), torn(chance))
        for each in cuts(drive.kept, drive.events, kept, "")
    ]
    recover(lab, found, KEYS)
    for cut in chance.sample(found, 6):
        client.drive = drive = Drive(bytearray(cut.image))
        drive.promises = Promises({key: list(each) for key, each in cut.may_be.items()})
        work(lab, [drive], again())
        recover(lab, [state(client, f"{cut.where}; then another compaction")], (*KEYS, 9))


@pytest.mark.exercise("S9", points=2, host=True)
def test_torn_superblock(lab):
    """A torn superblock: the other copy is used."""
    drive = Drive(bytearray(DISK))
    client = Client(drive, Random(lab.seed))

    def steps():
        yield from formatted(client)
        for _ in range(3):
            yield from random_steps(client, KEYS, 8)
            yield from client.sync("compact")

    work(lab, [drive], steps())
    found = []
    for many in (0, 4, 8, 12, 16, 24, 33, 40, 44):

        def kept(writes, many=many):
            offset, data = writes[-1]
            return [*writes[:-1], (offset, data[: many if offset < SUPERS else None])]

        found += cuts(drive.kept, drive.events, kept, f"; {many} bytes of a superblock")
    recover(lab, found, KEYS)


class Failing:
    """A store on a drive of which one call fails, and what it may have then."""

    def __init__(self, seed: int) -> None:
        self.drive = Drive(bytearray())
        self.client = Client(self.drive, Random(seed), longest=700)
        self.in_doubt: dict[int, list] = {}  # its record may be on the drive

    def history(self, number: int, found: list[Cut]):
        """A new store; then call `number` fails. Returns whether there was such a call."""
        client, drive = self.client, self.drive
        drive.data, drive.calls, drive.promises = bytearray(DISK), 0, Promises()
        self.in_doubt.clear()
        yield from formatted(client)
        for key in (1, 2, 3):
            yield from client.put(key, client.data())
        yield from client.delete(3)
        yield from client.sync()
        drive.fails = drive.calls + number
        for line in ("put 1", "delete 2", "sync", "compact"):
            yield from self.tried(line)
        was_reached, drive.fails = drive.calls > drive.fails, -1
        for line in ("put 4", "put 5", "sync"):
            yield from self.tried(line)
        where = f"call {number} of a drive failed, in put, delete, sync, compact; then put, sync"
        found.append(state(client, where))
        found.extend(cuts(drive.kept, drive.events, any_of_them(client.chance), f"; {where}"))
        must((yield "close"), "after a call that has failed, and close: allocated bytes")
        return was_reached

    def tried(self, line: str):
        """A command, which fails if a call of the drive does, or if nothing can be changed."""
        promises, calls = self.client.promises, self.drive.calls
        name, *keys = line.split()
        key, version = int(keys[0]) if keys else -1, None
        was = list(promises.may_be.get(key, [None]))
        if name == "put":
            version = self.client.data()
            line = f"{line} {version.hex()}."
        if keys:
            promises.issue(key, version)
        reply = yield line
        if calls <= self.drive.fails < self.drive.calls or reply.result:
            what = f"{told_of(line)}, when a call of the drive has failed"
            expect(f"{what}: returns", in_words(reply.result), in_words(BROKEN))
            if keys:
                yield from self.is_as_before(key, was, what)
                self.in_doubt[key] = [version, *was]
        elif not keys:
            promises.synced()
        promises.may_be |= {each: list(self.in_doubt[each]) for each in self.in_doubt}

    def is_as_before(self, key: int, was: list, what: str):
        """An object that was not changed."""
        reply = yield f"get {key} 4096"
        seen = None if reply.result == NO_OBJECT else reply.found
        require(seen == was[-1], f"{what}: the object has changed")


@pytest.mark.exercise("S9", points=3, host=True)
@pytest.mark.parametrize("reaches", [False, True])
def test_calls_that_fail(lab, reaches):
    """Each call of the drive fails in turn: -EIO, and what is synced, before or later, is safe."""
    failing = Failing(lab.seed)
    failing.drive.reaches = reaches
    found: list[Cut] = []

    def steps():
        number = 0
        while (yield from failing.history(number, found)):
            number += 1

    work(lab, [failing.drive], steps())
    recover(lab, found, range(1, 6))


@pytest.mark.exercise("S9", points=2, host=True)
def test_the_end_of_the_log(lab):
    """A log that is full to its last sector: puts and deletes fail, and compaction makes room."""
    drive = Drive(bytearray(DISK))
    client = Client(drive, Random(lab.seed), longest=AREA)
    largest = AREA - HEAD

    def steps():
        yield from formatted(client)
        yield from client.put(1, client.data(100))
        rest = AREA - record_bytes(100)
        must(
            (yield f"put 2 {client.data(rest - HEAD + 1).hex()}."),
            "put of a sector too much",
            NO_ROOM,
        )
        must((yield "huge 3"), "put of more than BLOB_MAX", TOO_LARGE)
        require(
            (yield from client.put(2, client.data(rest - HEAD))), "put of what just fits: -ENOSPC"
        )
        must((yield "delete 1"), "delete in a full log", NO_ROOM)
        must((yield "put 3 ."), "put in a full log", NO_ROOM)
        yield from client.look((1, 2, 3), "in a full log")
        yield from client.sync()
        must((yield "delete 4"), "delete of what is not there, in a full log", NO_OBJECT)

    def again():
        yield from client.begin()
        yield from client.look((1, 2, 3), "a full log, opened again")
        must((yield "delete 2"), "delete in a full log, opened again", NO_ROOM)
        yield from client.sync("compact")
        must((yield "delete 2"), "delete after compact of a log of live objects", NO_ROOM)

    def one():
        yield from client.format()
        require((yield from client.put(1, client.data(largest))), "put of the largest: -ENOSPC")
        yield from client.sync()

    work(lab, [drive], steps())
    recover(lab, [state(client, "a full log")], (1, 2, 3))
    work(lab, [drive], again())
    recover(lab, [state(client, "a full log after compact")], (1, 2, 3))
    drive.data, drive.promises = bytearray(DISK), Promises()
    work(lab, [drive], one())
    recover(lab, [state(client, "one object in a whole area")], (1,))


@pytest.mark.exercise("S9", points=2, gate=True, host=True)
def test_what_is_written(lab):
    """Requests: a put and a delete are one write at the log's end without a sync; a get writes
    nothing."""
    drive = Drive(bytearray(DISK))
    client = Client(drive, Random(lab.seed))
    at = SUPERS

    def one(line, length):
        nonlocal at
        calls = drive.calls
        drive.events.clear()
        must((yield line), line.split(" ")[0])
        said = f"{line.split(' ')[0]}: calls of the drive"
        expect(said, drive.calls - calls, 1)
        (event,) = drive.events
        size = record_bytes(length)
        require(event.write, f"{said}: expected a write, seen a sync")
        offset, data = event.write
        expect(f"{said}: offset and length", (offset, len(data)), (at, size))
        require(not any(data[HEAD + length :]), f"{said}: expected zeros after the data")
        at += size

    def steps():
        yield from client.format()
        for key, length in enumerate((0, 1, 464, 465, 1800, 976)):
            yield from one(f"put {key} {client.data(length).hex()}.", length)
        yield from one("delete 1", 0)
        calls = drive.calls
        must((yield "delete 1"), "delete of what is not there", NO_OBJECT)
        must((yield "delete 77"), "delete of what is not there", NO_OBJECT)
        expect("delete of what is not there: calls of the drive", drive.calls, calls)
        counted = figures((yield "count"))
        expect("objects", counted["objects"], 5)
        expect("log_bytes", counted["log_bytes"], at - SUPERS)
        live = sum(map(record_bytes, (0, 464, 465, 1800, 976)))
        expect("live_bytes", counted["live_bytes"], live)
        must((yield "sync"), "sync")
        drive.looks.clear()
        drive.events.clear()
        must((yield "compact"), "compact")
        counted = figures((yield "count"))
        expect("log_bytes after compact", counted["log_bytes"], live)
        expect("objects after compact", counted["objects"], 5)
        looks = drive.looks
        require(looks == sorted(looks), f"compact reads the old log at {looks}: not in its order")
        written = sum(len(event.write[1]) for event in drive.events if event.write)
        require(
            written <= live + 4 * SECTOR, f"compact writes {written} bytes for {live} live ones"
        )
        must((yield "close"), "close")
        drive.read = 0
        must((yield "open"), "open")
        counted = figures((yield "count"))
        expect("records that were walked", counted["walked"], 5)
        require(drive.read <= AREA + 2 * SECTOR, f"open reads {drive.read} bytes of {AREA}")

    work(lab, [drive], steps())


@pytest.mark.exercise("S9", points=2, gate=True, host=True)
def test_saved_index(lab):
    """A saved index: only newer records are read, and one from before a compaction is ignored."""
    store, index = Drive(bytearray(DISK)), Drive(bytearray(8 << 10))
    client = Client(store, Random(lab.seed), longest=600)

    def steps():
        yield drives_line([store, index])
        must((yield "format"), "format")
        must((yield "open"), "open")
        for key in range(6):
            yield from client.put(key, client.data())
        must((yield "save"), "save")
        client.promises.synced()

    def newer():
        yield drives_line([store, index])
        must((yield "indexed"), "open with an index")
        expect("records that were walked", figures((yield "count"))["walked"], 0)
        yield from client.look(range(6), "by an index")
        yield from client.delete(2)
        yield from client.put(3, client.data())
        yield from client.sync()

    def walked(count, what):
        yield drives_line([store, index])
        must((yield "indexed"), "open with an index")
        expect(f"records that were walked, {what}", figures((yield "count"))["walked"], count)
        yield from client.look(range(7), what)

    def compacted():
        yield from walked(2, "when two are newer than the index")
        yield from client.put(6, client.data())
        yield from client.sync("compact")

    drives = [store, index]
    work(lab, drives, steps())
    work(lab, drives, newer())
    work(lab, drives, compacted())
    work(lab, drives, walked(6, "when the index is that of another log"))


@pytest.mark.exercise("S9", points=2, host=True)
def test_damage(lab):
    """Damaged data: that object cannot be read, and a compaction keeps the others. Records of
    impossible lengths end the log."""
    drive = Drive(bytearray(DISK))
    client = Client(drive, Random(lab.seed))

    def steps():
        yield from formatted(client)
        for key in range(5):
            yield from client.put(key, client.data(700))
        yield from client.sync()
        drive.kept = bytes(drive.data)
        offset, _ = next(event.write for event in drive.events[::-1] if event.write)
        drive.data[offset + HEAD + 600] ^= 1  # of object 4
        must((yield "get 4 1000"), "get of a damaged object", BROKEN)
        must((yield "compact"), "compact with a damaged object", BROKEN)
        yield from client.look(range(4), "after a compaction that has failed")
        yield from client.put(5, client.data(700))
        yield from client.delete(4)
        yield from client.sync("compact")
        yield from client.look(range(6), "after the damaged object was deleted")

    work(lab, [drive], steps())
    recover(lab, [state(client, "after the damaged object was deleted")], range(6))
    last = SUPERS + 4 * record_bytes(700)
    may_be = {key: each for key, each in client.promises.copy().items() if key < 4}
    found = []
    for length in (0xFFFFFFFF, 0xFFFFFFD0, 0x7FFFFFFF, 64 << 20, (64 << 20) + 1, AREA, 1 << 16):
        image = bytearray(drive.kept)
        struct.pack_into("<I", image, last + 40, length)
        found.append(Cut(bytes(image), f"a record says that its length is {length}", may_be))
    recover(lab, found, range(5))

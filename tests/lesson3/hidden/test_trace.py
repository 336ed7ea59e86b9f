"""Exercise 3.5, hidden: the ring when it wraps, records that are gone, interrupts in between, and
what tracing must not do."""

from __future__ import annotations

import random
import struct
from itertools import pairwise

import pytest

from tests.lesson3.support import (
    AFTER_GATE,
    DATA,
    EFAULT,
    FRAME,
    GATE,
    GETPID,
    INTERRUPTS,
    MANY,
    OPEN,
    WATCH_READS,
    WATCH_WRITES,
    call_with_access,
    ring3,
    steps_to,
)
from tests.lesson3.tracing import BUFFER, LAYOUT, LOST, MASK, NEXT, RECORDS, Ring
from tests.support.remote import SCRATCH

BUDGET = 600  # instructions of getpid with tracing
MANY_RECORDS = 16  # of which a reader copies eight at most without letting an interrupt in
FRAME_PLACE = SCRATCH + 0x800
READ_TIME = b"\x0f\x31\xc3"  # rdtsc; ret
# Bytes from a record's beginning.
NUMBER_IN_RECORD, RESULT_IN_RECORD, SEQUENCE_IN_RECORD = 16, 44, 48


def fake_frame(ring: Ring, number: int, argument: int = 0) -> int:
    """A user frame, as syscall_trace_begin gets it; its address. The number is in EAX and
    in the error code, and may be read from either."""
    words = [0] * len(FRAME)
    words[FRAME.index("ebx")] = argument
    words[FRAME.index("eax")] = words[FRAME.index("error_code")] = number
    ring.guest.write(FRAME_PLACE, struct.pack(f"<{len(FRAME)}I", *words))
    return FRAME_PLACE


@pytest.mark.exercise("3.5", points=2, gate=True)
def test_records_are_whole(lab):
    """Records of random calls by several processes: every field is right, and records are in
    order."""
    seeded = random.Random(lab.seed)
    with ring3(lab) as caller:
        ring = Ring(caller.guest)
        ring.switch(True)
        calls = []
        for _ in range(20):
            number = seeded.choice((GETPID, seeded.randrange(400, 500), seeded.getrandbits(32)))
            arguments = tuple(seeded.getrandbits(32) for _ in range(6))
            number = number if number == GETPID else number | 400
            pid = caller.renumber(seeded)
            calls.append((number, arguments, pid, caller.result(number, *arguments)))
        assert ring.total() == len(calls)
        records = [ring.record(i) for i in range(len(calls))]
        ring.switch(False)
        with caller.in_kernel() as guest:
            found = {number: guest.call("syscall_find", number) for number, *_ in calls}
    for i, (record, call) in enumerate(zip(records, calls, strict=True)):
        number, arguments, pid, result = call
        assert (record.number, record.arguments, record.result) == (number, arguments, result)
        assert (record.pid, record.sequence, record.finished, record.text) == (pid, i, 1, b"")
        assert record.call == found[number], f"the record of call {number} has another call"
    starts = [record.start for record in records]
    assert starts == sorted(starts) and starts[0] > 0
    assert all(a.start + a.ticks <= b.start for a, b in pairwise(records))


@pytest.mark.exercise("3.5", points=2, gate=True)
def test_ring_goes_round(lab):
    """1100 calls: the last 1024 are in the ring, each at its place."""
    with ring3(lab) as caller:
        ring = Ring(caller.guest)
        ring.switch(True)
        caller.prepare(GETPID, (), eip=MANY, esi=1100, edx=5000)
        caller.back()
        assert ring.total() == 1100
        every = ring.every()
    for place, record in enumerate(every):
        sequence = place + RECORDS if place + RECORDS < 1100 else place
        assert (record.sequence, record.arguments[2]) == (sequence, 5000 + sequence)
        assert record.finished == 1


@pytest.mark.exercise("3.5", points=2)
def test_reader_that_is_late(lab):
    """A late reader: overwritten records are skipped and counted, the others come once, in
    order."""
    with ring3(lab) as caller:
        ring = Ring(caller.guest)
        ring.switch(True)
        caller.prepare(GETPID, (), eip=MANY, esi=1100, edx=0)
        caller.back()
        ring.switch(False)
        with caller.in_kernel():
            for first, oldest in ((0, 76), (75, 76), (76, 76), (77, 77), (1098, 1098)):
                got, following, lost = ring.read(first, 3, lost=5)
                expected = list(range(oldest, min(oldest + 3, 1100)))
                found = [each.sequence for each in got]
                assert found == expected, f"from {first} on it reads {found}, not {expected}"
                assert following == expected[-1] + 1
                more = oldest - first
                assert lost == 5 + more, f"5 were lost, and {more} more: it says {lost}"
            assert ring.read(1100, 3) == ([], 1100, 0)
            got, following, lost = ring.read(1000, 200)
            assert [each.arguments[2] for each in got] == list(range(1000, 1100))
            assert (following, lost) == (1100, 0)


@pytest.mark.exercise("3.5", points=2)
def test_numbers_that_wrap(lab):
    """The 2^32nd record, after which `total` is smaller than the reader's number: nothing is lost,
    or the loss is counted; and a record that is gone has a larger number than the one in its
    place."""
    with ring3(lab) as caller:
        ring = Ring(caller.guest)
        with caller.in_kernel():
            ring.set_total(-3)
            for i in range(6):
                sequence = caller.guest.call("syscall_trace_begin", fake_frame(ring, 400 + i), 0)
                assert sequence == (i - 3) & MASK
                caller.guest.call("syscall_trace_end", sequence, i)
            assert ring.total() == 3
            got, following, lost = ring.read(-3, 10)
            assert [each.sequence for each in got] == [(i - 3) & MASK for i in range(6)]
            assert [(each.result, each.finished) for each in got] == [(i, 1) for i in range(6)]
            assert (following, lost) == (3, 0)
            _, following, lost = ring.read(-2000, 1)
            assert (following, lost) == (3 - RECORDS + 1 & MASK, 2003 - RECORDS)
            _, following, lost = ring.read(-3 << 30, 1)
            assert lost == 3 + (3 << 30) - RECORDS, f"of three billion records {lost} are lost"
            ring.set_total(RECORDS - 3)
            other = caller.guest.call("syscall_trace_begin", fake_frame(ring, 500), 0)
            caller.guest.call("syscall_trace_end", -3 & MASK, 9)
            assert ring.record(other).finished == 0, "a record that is gone ends a later one"


@pytest.mark.exercise("3.5", points=1)
def test_call_in_between(lab):
    """A call that is recorded while another one's string is fetched: each has its own record, and
    the first one's time began earlier."""
    with ring3(lab) as caller:
        guest, ring = caller.guest, Ring(caller.guest)
        ring.switch(True)
        caller.stop_in_call(OPEN, caller.write(DATA, b"/a\0"), 77)
        guest.run_to("string_from_user")
        guest.write(SCRATCH, READ_TIME)
        now = guest.call64(SCRATCH)
        between = guest.call("syscall_trace_begin", fake_frame(ring, 402), 0)
        caller.back()
        first = ring.record(ring.total() - 1)
        assert ring.record(between).number == 402
        assert (first.number, first.arguments[:2], first.text) == (OPEN, (DATA, 77), b"/a"), (
            f"a call has got {first}, with a part of the one that came in between"
        )
        assert first.start <= now, "a record's time begins only when its string has been fetched"


@pytest.mark.exercise("3.5", points=2)
def test_record_that_is_gone(lab):
    """A call that ends after its record was overwritten: the newer record is unchanged."""
    with ring3(lab) as caller:
        ring = Ring(caller.guest)
        with caller.in_kernel() as guest:
            slow = guest.call("syscall_trace_begin", fake_frame(ring, 401), 0)
            ring.set_total(slow + RECORDS)
            other = guest.call("syscall_trace_begin", fake_frame(ring, 402), 0)
            before = ring.contents()
            guest.call("syscall_trace_end", slow, 77)
            assert ring.contents() == before, "the record of another call was ended"
            guest.call("syscall_trace_end", other, 78)
            assert (ring.record(other).result, ring.record(other).finished) == (78, 1)
            oldest = guest.call("syscall_trace_begin", fake_frame(ring, 403), 0)
            ring.set_total(oldest + RECORDS)
            guest.call("syscall_trace_end", oldest, 79)
            found = ring.record(oldest)
            assert (found.result, found.finished) == (79, 1), "the oldest record is still there"


@pytest.mark.exercise("3.5", points=1)
def test_call_that_does_not_end(lab):
    """A call that does not end: its record says so, and can be read."""
    with ring3(lab) as caller:
        ring = Ring(caller.guest)
        with caller.in_kernel() as guest:
            ring.set_total(5)
            place = ring.place(5)
            guest.write(place, b"\xff" * 72)
            guest.call("syscall_trace_begin", fake_frame(ring, 252, 7), 0)
            (record,), following, _ = ring.read(5, 1)
    assert (record.number, record.arguments[0], record.finished) == (252, 7, 0)
    assert (record.result, record.text, following) == (0, b"", 6)


@pytest.mark.exercise("3.5", points=1)
def test_time_of_a_call(lab):
    """The time of a call: the ticks in between, or the largest number if they do not fit."""
    with ring3(lab) as caller:
        ring = Ring(caller.guest)
        with caller.in_kernel() as guest:
            for since in (123_456_789, 5 << 29, 5 << 32, 1 << 40):
                sequence = guest.call("syscall_trace_begin", fake_frame(ring, 400), 0)
                start = ring.record(sequence).start
                assert start > 0
                start = start - since & (1 << 64) - 1
                guest.write(ring.place(sequence), struct.pack("<Q", start))
                guest.call("syscall_trace_end", sequence, 0)
                ticks = ring.record(sequence).ticks
                if since > MASK:
                    assert ticks == MASK, f"a time of more than 32 bits is {ticks:#x}"
                else:
                    assert since <= ticks < since + (1 << 30), f"{ticks}, not {since} and a bit"


@pytest.mark.exercise("3.5", points=2, gate=True)
def test_strings(lab):
    """The first string argument: whole, cut to 23 characters, or empty for a bad pointer."""
    with ring3(lab) as caller:
        ring = Ring(caller.guest)
        ring.switch(True)
        for text in (b"", b"/a", b"x" * 23, b"y" * 24, b"z" * 90):
            caller.call(OPEN, caller.write(DATA, text + b"\0"), 0)
            assert ring.record(ring.total() - 1).text == text[:23]
        for bad in (0, 0xC0000000, SCRATCH):
            assert caller.result(OPEN, bad, 0) == -EFAULT
            assert ring.record(ring.total() - 1).text == b""


@pytest.mark.exercise("3.5", points=2)
def test_interrupts_while_it_writes(lab):
    """Interrupts while a record is written: disabled; enabled while the user's string is fetched;
    afterwards as they were before."""
    with ring3(lab) as caller:
        ring = Ring(caller.guest)
        guest = caller.guest
        ring.switch(True)
        seen = []

        def note() -> None:
            seen.append(guest.registers()["eflags"] & INTERRUPTS)

        for number, kind in ((OPEN, "string"), (GETPID, "none")):
            caller.stop_in_call(number, caller.write(DATA, b"/a\0"), 0)
            if kind == "string":
                guest.run_to("string_from_user")
                flags = guest.registers()["eflags"]
                assert flags & INTERRUPTS, "the program's memory is read with interrupts disabled"
            caller.back()
        caller.stop_in_call(450)
        frame = caller.frame()["address"]
        sequence = ring.total()
        number_at = ring.place(sequence) + NUMBER_IN_RECORD
        call_with_access(
            guest, "syscall_trace_begin", frame, 0, kind=WATCH_WRITES, at=number_at, then=note
        )
        assert ring.record(sequence).number == 450
        assert seen and not any(seen), "an interrupt may come in the middle of a record"
        seen.clear()
        call_with_access(guest, "syscall_trace_begin", frame, 0, kind=WATCH_WRITES, at=ring.address,
                         then=note)  # fmt: skip
        assert seen and not any(seen), "an interrupt may come before the record is counted"
        seen.clear()
        call_with_access(
            guest, "syscall_trace_end", sequence, 1, kind=WATCH_WRITES,
            at=ring.place(sequence) + RESULT_IN_RECORD, then=note,
        )  # fmt: skip
        assert seen and not any(seen), "an interrupt may come while a record is ended"
        call = guest.call("syscall_find", OPEN)
        for was in (0, INTERRUPTS):
            for function, arguments in (
                ("syscall_trace_begin", (frame, 0)),
                ("syscall_trace_begin", (frame, call)),
                ("syscall_trace_end", (sequence, 1)),
            ):
                assert flags_after(guest, function, arguments, was) == was, (
                    f"{function} leaves the interrupts other than they were"
                )


def flags_after(guest, function: str, arguments: tuple[int, ...], was: int) -> int:
    """Calls a function with the interrupt flag as `was`; returns the flag after it."""
    before = guest.registers()
    stack = (before["esp"] - 0x200 & ~15) - 4
    guest.write(stack, struct.pack(f"<{1 + len(arguments)}I", before["eip"], *arguments))
    flags = before["eflags"] & ~INTERRUPTS | was
    guest.set(esp=stack, eip=guest.address(function), eflags=flags)
    guest.run_to(before["eip"])
    after = guest.registers()["eflags"] & INTERRUPTS
    guest.set(**before)
    return after


@pytest.mark.exercise("3.5", points=2)
def test_interrupts_while_it_reads(lab):
    """Interrupts while the ring is read: disabled while a record is copied, enabled between two
    records."""
    with ring3(lab) as caller:
        ring = Ring(caller.guest)
        ring.switch(True)
        for _ in range(MANY_RECORDS):
            caller.call(GETPID)
        ring.switch(False)
        guest = caller.guest
        seen = []
        caller.stop_in_call(GETPID)
        guest.write(NEXT, bytes(8))
        call_with_access(
            guest,
            "syscall_trace_read",
            *(NEXT, BUFFER, 4, LOST),
            kind=WATCH_READS,
            at=ring.place(2) + NUMBER_IN_RECORD,
            then=lambda: seen.append(guest.registers()["eflags"] & INTERRUPTS),
        )
        assert seen and not any(seen), "a record may change while it is copied"
        before = guest.registers()
        guest.write(NEXT, bytes(8))
        stack = (before["esp"] - 0x200 & ~15) - 4
        guest.write(stack, struct.pack("<5I", before["eip"], NEXT, BUFFER, MANY_RECORDS, LOST))
        guest.set(esp=stack, eip=guest.address("syscall_trace_read"))
        path = steps_to(guest, before["eip"], 500 * MANY_RECORDS)
        on = [bool(each["eflags"] & INTERRUPTS) for each in path]
        changes = sum(a != b for a, b in pairwise(on))
        guest.set(**before)
        for was in (0, INTERRUPTS):
            guest.write(NEXT, bytes(8))
            arguments = (NEXT, BUFFER, 2, LOST)
            assert flags_after(guest, "syscall_trace_read", arguments, was) == was, (
                "syscall_trace_read leaves the interrupts other than they were"
            )
    assert changes >= MANY_RECORDS // 4, (
        f"{MANY_RECORDS} records are copied, and {changes // 2} times an interrupt may come: let "
        "one in after a few records at least"
    )


@pytest.mark.exercise("3.5", points=2, once=True)
def test_writer_anywhere(lab):
    """A full ring that is written to while it is read, by two calls once a record was copied:
    whichever instruction is interrupted, each record is whole and the one that it should be."""
    with ring3(lab) as caller:
        ring, guest = Ring(caller.guest), caller.guest
        frame = fake_frame(ring, 450)
        caller.stop_in_call(GETPID)
        home = guest.registers()["eip"]
        path = begin_to_read(ring, home, lambda: steps_to(guest, home, 3000))
        places = [i for i, each in enumerate(path) if each["eflags"] & INTERRUPTS]
        assert places, "interrupts are disabled all the time"
        for i in places:
            earlier = sum(each["eip"] == path[i]["eip"] for each in path[:i])
            calls = 1 + any(not each["eflags"] & INTERRUPTS for each in path[:i])

            def write(
                eip=path[i]["eip"],
                passes=earlier + (path[i]["eip"] != path[0]["eip"]),
                calls=calls,
            ) -> None:
                for _ in range(passes):
                    guest.run_to(eip)
                for _ in range(calls):
                    guest.call("syscall_trace_begin", frame, 0)
                guest.run_to(home)

            begin_to_read(ring, home, write)
            here = guest.symbols.describe(path[i]["eip"])
            begin = "a record begins" if calls == 1 else "two records begin"
            why = f"when {begin} in the middle of syscall_trace_read, at {here}"
            following, lost = guest.read_words(NEXT, 2)
            numbers = guest.read_words(BUFFER, 2 * LAYOUT.size // 4)[4 :: LAYOUT.size // 4]
            assert following - lost == 4, f"records are not counted {why}"
            first = 2 if calls == 2 and lost else following - 2  # what was lost comes after it
            assert list(numbers) == [first, following - 1], f"a wrong record is read {why}"


def begin_to_read(ring: Ring, home: int, then) -> object:
    """Fills the ring's first places, calls syscall_trace_read for two records, and does `then`
    before its first instruction; that has to bring it home."""
    guest = ring.guest
    before = guest.registers()
    ring.set_total(RECORDS + 2)
    for sequence in range(2, 6):
        guest.write(ring.place(sequence) + NUMBER_IN_RECORD, struct.pack("<I", sequence))
        guest.write(ring.place(sequence) + SEQUENCE_IN_RECORD, struct.pack("<I", sequence))
    guest.write(NEXT, struct.pack("<II", 2, 0))
    stack = (before["esp"] - 0x400 & ~15) - 4
    guest.write(stack, struct.pack("<5I", home, NEXT, BUFFER, 2, LOST))
    flags = before["eflags"] | INTERRUPTS
    guest.set(esp=stack, eip=guest.address("syscall_trace_read"), eflags=flags)
    result = then()
    guest.set(**before)
    return result


@pytest.mark.exercise("3.5", points=1)
def test_nothing_is_printed(lab):
    """Tracing: it writes to memory, and prints nothing."""
    with ring3(lab) as caller:
        ring = Ring(caller.guest)
        before = caller.guest.said_bytes()
        ring.switch(True)
        for number in (GETPID, 450, OPEN):
            caller.call(number, DATA)
        with caller.in_kernel():
            ring.read(0, 4)
        assert caller.guest.said_bytes() == before


@pytest.mark.exercise("3.5", points=1)
def test_cost(lab):
    """The cost of getpid with tracing: at most 600 instructions."""
    with ring3(lab) as caller:
        Ring(caller.guest).switch(True)
        caller.call(GETPID)
        caller.prepare(GETPID, ())
        path = steps_to(caller.guest, AFTER_GATE, 8 * BUDGET)
    assert path[0]["eip"] == GATE
    assert len(path) <= BUDGET, f"getpid takes {len(path)} instructions, more than {BUDGET}"

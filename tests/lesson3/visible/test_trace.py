"""Exercise 3.5: the ring of the latest system calls.

Not looked at here, but by the graders: calls that overlap, numbers that wrap, and interrupts
between two steps of a record.
"""

from __future__ import annotations

import pytest

from tests.lesson3.support import DATA, ENOENT, GETPID, MANY, OPEN, ring3
from tests.lesson3.tracing import RECORDS, Record, Ring
from tests.support.told import Usual, expect, told

HINT = "make hint EX=3.5"
MORE = 5  # records than the ring has places


@pytest.mark.exercise("3.5", points=1, gate=True)
def test_calls_are_recorded(lab):
    """Number, arguments, result, and the name of a file."""
    usually = (
        Usual("total", "total is not counted, or is counted twice for each record"),
        Usual(
            "(finished|result): expected",
            "syscall_trace_end does not find the record by its number, or does not set its result "
            "and `finished`",
        ),
        Usual(r"start \+ ticks", "ticks is time_stamp() - record->start, the cycles of the call"),
        "the record is not at ring[total], or is copied there before it is complete",
    )
    with told(usually, HINT), ring3(lab) as caller:
        ring = Ring(caller.guest)
        ring.switch(True)
        caller.call(GETPID, 11, 22, 33)
        caller.call(OPEN, caller.write(DATA, b"/nothing\0"), 0)
        expect("syscall_trace.total after two calls", ring.total(), 2)
        first, second = ring.record(0), ring.record(1)
        fields = {"number": GETPID, "result": 1, "finished": 1}
        compare(first, "getpid(11, 22, 33), the first call", fields)
        is_short = first.start + first.ticks <= second.start
        what = "the record of getpid(11, 22, 33): start + ticks, before the next call's start"
        expect(what, is_short, True)
        what = "the record of getpid(11, 22, 33), the first call: the first three arguments"
        expect(what, first.arguments[:3], (11, 22, 33))
        fields = {"number": OPEN, "text": b"/nothing", "result": -ENOENT, "finished": 1}
        compare(second, "open(/nothing), the second call", fields)


def compare(record: Record, what: str, fields: dict[str, object]) -> None:
    """Compares fields of a record one by one."""
    for name, expected in fields.items():
        expect(f"the record of {what}: {name}", getattr(record, name), expected)


@pytest.mark.exercise("3.5", points=1, gate=True)
def test_records_can_be_read(lab):
    """The oldest first, no more than asked for, and none twice."""
    usually = (
        Usual("more was copied", "the loop makes one step too many: copied < count, not <="),
        "*next is not moved on, or moves on by more than was copied",
    )
    with told(usually, HINT), ring3(lab) as caller:
        ring = Ring(caller.guest)
        ring.switch(True)
        for i in range(5):
            caller.call(GETPID, 100 + i)
        with caller.in_kernel():
            following = 0
            for count, expected in ((3, [100, 101, 102]), (2, [103, 104])):
                got, following, lost = ring.read(following, count)
                found = [each.arguments[0] for each in got]
                expect(f"first arguments of the next {count} of five records", found, expected)
                expect("*lost, where nothing was overwritten", lost, 0)
            expect("*next after five records", following, 5)


@pytest.mark.exercise("3.5", points=1)
def test_a_full_ring(lab):
    """After five calls more than the ring has places, a reader that begins at 0 learns that five
    records are lost, and goes on with the oldest that is still there."""
    usually = (
        Usual(
            r"\*lost",
            "a reader that is more than SYSCALL_TRACE_RECORDS late is not moved on, or what it "
            "skips is not added to *lost",
        ),
        "the records of a full ring: number n is at ring[n % SYSCALL_TRACE_RECORDS]",
    )
    with told(usually, HINT), ring3(lab) as caller:
        ring = Ring(caller.guest)
        ring.switch(True)
        caller.call(GETPID, eip=MANY, esi=RECORDS + MORE, edx=0)
        ring.switch(False)
        expect(f"syscall_trace.total after {RECORDS + MORE} calls", ring.total(), RECORDS + MORE)
        with caller.in_kernel():
            got, following, lost = ring.read(0, 2)
            expect("*lost for a reader that begins at record 0", lost, MORE)
            found = [each.sequence for each in got]
            expect("sequence numbers of the next two records", found, [MORE, MORE + 1])
            expect("*next after these two", following, MORE + 2)
        newest = ring.record(RECORDS + MORE - 1).sequence
        expect(f"sequence number in ring[{MORE - 1}]", newest, RECORDS + MORE - 1)

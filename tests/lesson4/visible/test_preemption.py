"""Exercise 4.2: the clock takes the processor away.

Not looked at here, but by the graders: programs that are interrupted at every instruction, code of
the kernel that must not be, and in which order ticks, timers and signals are handled.
"""

from __future__ import annotations

import struct

import pytest

from tests.lesson3.support import FRAME, USER_CODE
from tests.lesson4.played import Play, Played, played
from tests.lesson4.support import PREEMPTED, WORK_SIGNAL, changes
from tests.lesson4.waiting import hold_twice, say
from tests.support.standstill import in_service
from tests.support.told import Usual, expect, fail, require, told

TURN = 4  # ticks
NO_SWITCH = Usual(
    r"(?s)loops for ever(?!.*in service)",
    "no switch is asked for: sched_tick sets WORK_TICK, and tick() sets WORK_SCHEDULE when "
    "sched_turn_is_over",
)
BEFORE_EOI = Usual(
    r"in service: its EOI|in service.*: expected none",
    "sched_tick or a timer calls schedule: then the interrupt controller has not received its "
    "EOI, and the next task gets no interrupts",
)
WRONG_RING = "sched_work tests the wrong ring: the last two bits of CS are 0 in the kernel"


@pytest.mark.exercise("4.2", points=1, gate=True)
def test_threads_that_never_yield(lab):
    """Two threads that only count, and a third one: all of them run."""
    usually = (BEFORE_EOI, NO_SWITCH, WRONG_RING)
    then = "make LESSON=4 gdb, then: tbreak sched_work, continue, print trap_return_work"
    have_run: set[int] = set()
    with told(usually, then), played(lab) as play:
        first = play.guest.read_word(play.guest.address("sched_trace"))
        play.run(two_spinners(play, have_run))
        expect("which of two threads that never yield have run", sorted(have_run), [0, 1])
        reasons = {change.reason for change in changes(play.guest, first)}
        require(PREEMPTED in reasons, "all have run, but no switch is recorded as SCHED_PREEMPTED")


def two_spinners(play: Play, have_run: set[int]) -> Played:
    """Threads that never yield; the first one does nothing else."""

    def spin(number: int):
        have_run.add(number)
        yield from play.spin(number)

    yield from play.fast_clock()
    for number in range(2):
        yield from play.begin(spin, number)
    start = play.clock()
    while play.ticks_since(start) < 12:
        yield "yield"


@pytest.mark.exercise("4.2", points=1)
def test_the_interrupt_is_over(lab):
    """The switch comes after the interrupt: its EOI has been sent."""
    usually = (NO_SWITCH, BEFORE_EOI)
    then = "make LESSON=4 gdb, then: tbreak switch_to if sched_trace.total > 2, continue, pic"
    with told(usually, then), played(lab) as play:
        first = play.guest.read_word(play.guest.address("sched_trace"))
        found: list[str] = []

        def look(_now: dict[str, int]) -> None:
            record = changes(play.guest, first)
            if record and record[-1].reason == PREEMPTED:
                found.append(in_service(play.guest))

        with play.watching(switch_to=look):
            play.run(two_spinners(play, set()))
        require(found, "in 12 ticks no switch is recorded as SCHED_PREEMPTED")
        expect("IRQs in service where a tick switches tasks", found[0], "none")


@pytest.mark.exercise("4.2", points=1)
def test_a_whole_turn(lab):
    """A thread that has yielded begins its next turn with a whole quantum."""
    usually = (
        NO_SWITCH,
        "enqueue does not begin a new quantum: the rest of the last turn counts",
        "tick ends a turn before the quantum is used up",
    )
    turns: list[tuple[int, int]] = []
    with told(usually, "make hint EX=4.2"), played(lab, record=True) as play:

        def yields_once(_argument: int):
            yield play.busy_ticks(TURN - 0.7)
            yield "yield"
            yield from play.spin(0)

        def main():
            play.set_word("sched_quantum", TURN)
            yield from play.fast_clock()
            play.preempt_disable()
            before = len(play.ticks())
            one = yield from play.begin(yields_once)
            other = yield from play.begin(play.spin)
            yield "msleep", 10 * 5 * TURN
            turns.extend(play.turns(one, other, since=before))

        play.run(main())
        own = [ticks for task, ticks in turns if task == 0]
        ticks = own[1] if len(own) > 1 else 0
        if ticks < TURN - 1:
            fail(
                f"turn of a thread that had yielded a tick before the end of its last turn: "
                f"expected {TURN} ticks, seen {ticks}"
            )


@pytest.mark.exercise("4.2", points=1)
def test_keeping_the_processor(lab):
    """Between preempt_disable and preempt_enable nobody else runs. A program's work is done before
    it goes on."""
    usually = (
        Usual("frame of a program", "the whole of CS is compared, and not its last two bits"),
        NO_SWITCH,
        Usual(r"seen \[2", "is_preemptible does not look at current->schedule.preempt_count"),
        Usual(r"seen \[2", WRONG_RING),
        "sched_work does not ask is_preemptible for code of the kernel",
    )
    found: list[int] = []
    with told(usually, "make hint EX=4.2"), played(lab) as play:

        def main():
            yield from play.fast_clock()
            yield from play.begin(hold_twice(play, found, 5))
            yield from play.await_ends()

        play.run(main())
        what = "1: the first of two preempt_enable, 2: another thread, 3: the last preempt_enable"
        expect(f"a thread disables pre-emption twice; in which order ({what})", found, [1, 2, 3])
        require_work_of_a_program(play)


def require_work_of_a_program(play: Play) -> None:
    """sched_work lets a signal be delivered where a trap has come from ring 3."""
    guest, handler = play.guest, play.function(say([]))
    place = guest.registers()["esp"] - 0x800
    frame = dict.fromkeys(FRAME, 0) | {"cs": USER_CODE, "eflags": 0x202}
    guest.write(place, struct.pack(f"<{len(FRAME)}I", *frame.values()))
    guest.write(guest.address("deliver_signals"), struct.pack("<I", handler))
    guest.write(guest.address("trap_return_work"), struct.pack("<I", WORK_SIGNAL))
    is_passed_on = guest.call("sched_work", place, stop_at=(handler,)) is None
    what = (
        f"calls of deliver_signals by sched_work, with the frame of a program (CS {USER_CODE:#x})"
    )
    expect(f"{what} and WORK_SIGNAL", int(is_passed_on), 1)

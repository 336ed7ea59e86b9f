"""Exercise 4.2: the clock takes the processor away.

Not looked at here, but by the graders: programs that are interrupted at every instruction, code of
the kernel that must not be, and in which order ticks, timers and signals are handled.
"""

from __future__ import annotations

import struct

import pytest

from tests.lesson3.support import FRAME, USER_CODE
from tests.lesson4.support import PREEMPTED, WORK_SIGNAL, Threads, threads
from tests.support.standstill import in_service
from tests.support.told import Usual, expect, fail, require, told

CLOCK = "tests/lesson4/threads/clock.c"
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
SWITCHES = 40  # within which the clock takes the processor from a thread that never yields


@pytest.mark.exercise("4.2", points=1, gate=True)
def test_threads_that_never_yield(lab):
    """Two threads that only count, and a third one: all of them run."""
    usually = (BEFORE_EOI, NO_SWITCH, WRONG_RING)
    then = "make LESSON=4 gdb, then: tbreak sched_work, continue, print trap_return_work"
    with told(usually, then), threads(lab, CLOCK, "two_spinners") as run:
        have_run = run.answers()
        expect("which of two threads that never yield have run (1: yes)", have_run, [1, 1])
        reasons = {change.reason for change in run.changes()}
        require(PREEMPTED in reasons, "all have run, but no switch is recorded as SCHED_PREEMPTED")


@pytest.mark.exercise("4.2", points=1)
def test_the_interrupt_is_over(lab):
    """The switch comes after the interrupt: its EOI has been sent."""
    usually = (NO_SWITCH, BEFORE_EOI)
    then = "make LESSON=4 gdb, then: tbreak switch_to if sched_trace.total > 2, continue, pic"
    with told(usually, then), threads(lab, CLOCK, "two_spinners") as run:
        run_to_a_preemption(run)
        expect("IRQs in service where a tick switches tasks", in_service(run.guest), "none")


def run_to_a_preemption(run: Threads) -> None:
    """Runs to the first switch that the clock wants."""
    for _ in range(SWITCHES):
        run.guest.run_to("switch_to", goal="a switch that the clock wants")
        changes = run.changes()
        if changes and changes[-1].reason == PREEMPTED:
            return
    fail(f"none of the first {SWITCHES} switches is recorded as SCHED_PREEMPTED")


@pytest.mark.exercise("4.2", points=1)
def test_a_whole_turn(lab):
    """A thread that has yielded begins its next turn with a whole quantum."""
    usually = (NO_SWITCH, "enqueue does not begin a new quantum: the rest of the last turn counts")
    with told(usually, "make hint EX=4.2"), threads(lab, CLOCK, "turn_after_yield", TURN) as run:
        (ticks,) = run.answers()
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
    with told(usually, "make hint EX=4.2"), threads(lab, CLOCK, "holds", 5) as run:
        found = run.answers()
        what = "1: the first of two preempt_enable, 2: another thread, 3: the last preempt_enable"
        expect(f"a thread disables pre-emption twice; in which order ({what})", found, [1, 2, 3])
        require_work_of_a_program(run)


def require_work_of_a_program(run: Threads) -> None:
    """sched_work lets a signal be delivered where a trap has come from ring 3."""
    guest, handler = run.guest, run.address("busy")
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

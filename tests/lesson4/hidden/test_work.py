"""Exercise 4.2, hidden: what is done before a trap returns, and in which order."""

from __future__ import annotations

import random

import pytest

from tests.lesson4.layout import layout
from tests.lesson4.played import Play, Played, Trap, played
from tests.lesson4.support import (
    INTERRUPTS,
    MASK,
    WORK_SCHEDULE,
    WORK_SIGNAL,
    WORK_TICK,
)
from tests.lesson4.waiting import say

BREAKPOINT = 3
USER_CODE, KERNEL_CODE = 0x1B, 0x08


def ignore(_frame: int) -> Played:
    """What is done at a trap: nothing."""
    yield from ()


class Frame:
    """A trap's frame of the test's own, and the work that waits before it returns."""

    def __init__(self, play: Play, cs: int) -> None:
        self.play = play
        self.members = layout("trap_frame", "cs", "eip", "eflags")
        self.place = play.zeroed(self.members["size"])
        self.set("cs", cs)

    def set(self, member: str, value: int) -> None:
        """Changes a word of it."""
        self.play.set_word(self.place, value, self.members[member])

    @property
    def work(self) -> int:
        """What is to be done."""
        return self.play.word("trap_return_work")

    @work.setter
    def work(self, value: int) -> None:
        self.play.set_word("trap_return_work", value)


@pytest.mark.exercise("4.2", points=2, once=True)
def test_code_with_interrupts_off(lab):
    """An exception in code with interrupts disabled: no switch on its return. Where they are
    enabled the task is switched away as one that is pre-empted, which does not yield."""
    found: list[int] = []
    preemptions: list[int] = []
    with played(lab) as play:
        frame = Frame(play, KERNEL_CODE)

        def trap_with_request(_argument: int):
            for enabled in (False, True):
                play.interrupts(False)
                if not enabled:
                    yield from play.begin(say(found), 7)
                frame.work |= WORK_SCHEDULE
                play.interrupts(enabled)
                yield Trap()
                found.append(int(enabled))
                preemptions.append(play.of(play.current, "preemptions"))

        def main():
            play.quiet()
            yield "trap_register", BREAKPOINT, play.function(ignore)
            yield from play.begin(trap_with_request)
            yield from play.await_ends()

        play.run(main())
    assert found[0] == 0, "tasks were changed where interrupts were disabled"
    assert found == [0, 7, 1], "with interrupts enabled, the request was not answered"
    assert preemptions == [0, 1], f"pre-emptions of a thread in the kernel: {preemptions}"


@pytest.mark.exercise("4.2", points=2, gate=True, once=True)
def test_ticks(lab):
    """A tick, in user mode or in the kernel: counted once, and timers expire on the way back, not
    in the handler. Other work stays pending."""
    every = WORK_TICK | WORK_SCHEDULE | WORK_SIGNAL
    expired: list[bool] = []
    with played(lab) as play:
        timer, frame = play.zeroed(64), Frame(play, USER_CODE)

        def expire(_timer: int):
            expired.append(play.are_enabled)
            yield from ()

        def deliver_nothing(_frame: int):
            frame.work &= ~WORK_SIGNAL
            yield from ()

        def counts() -> tuple[int, int]:
            return play.of(play.current, "system_ticks"), play.of(play.current, "user_ticks")

        def main():
            play.quiet()
            play.interrupts(False)
            yield "trap_register", BREAKPOINT, play.function(ignore)
            (system, user), now = counts(), (yield from play.time())
            yield "timer_start", timer, now - 1 & MASK, now - 1 >> 32, play.function(expire)
            play.interrupts(True)
            yield "sched_tick"
            assert not expired, "the timers expire before the interrupt is done"
            frame.work |= WORK_SIGNAL
            for _ in range(10):
                yield Trap()
            assert expired == [False], f"a timer that is due was called {len(expired)} times"
            seen = (counts()[0] - system, counts()[1] - user)
            assert seen == (1, 0), f"one tick counts {seen[0]} in the kernel, {seen[1]} in ring 3"
            assert frame.work & WORK_SIGNAL, "with the tick the signal is forgotten"
            play.interrupts(False)
            frame.work = WORK_SCHEDULE | WORK_SIGNAL
            yield "sched_tick"
            assert frame.work == every, f"the handler leaves {frame.work:#x} to be done"
            play.set_word("deliver_signals", play.function(deliver_nothing))
            yield "sched_work", frame.place
            seen = (counts()[0] - system, counts()[1] - user)
            assert seen == (1, 1), "a tick in ring 3 is not counted there"

        play.run(main())


@pytest.mark.exercise("4.2", points=1)
def test_ticks_of_the_idle_task(lab):
    """A tick while all tasks sleep: it is the idle task's, in the kernel."""
    with played(lab) as play:

        def main():
            yield from play.fast_clock()
            idle = play.guest.address("idle")
            before = play.of(idle, "system_ticks")
            yield "msleep", 60
            passed = play.of(idle, "system_ticks") - before
            assert 5 <= passed <= 7, f"in six ticks the idle task gets {passed}"

        play.run(main())


@pytest.mark.exercise("4.2", points=1, once=True)
def test_woken_by_the_tick(lab):
    """A task that is woken by the tick that ends a turn: it runs next."""
    with played(lab) as play:
        frame = Frame(play, KERNEL_CODE)

        def nap(_argument: int):
            yield "msleep", 15

        def main():
            play.quiet()
            play.set_word("sched_quantum", 1)
            yield from play.begin(nap)
            yield "yield"
            yield play.busy_ticks(2)
            play.interrupts(False)
            play.preempt_disable()
            frame.work |= WORK_SIGNAL
            yield [("sched_tick",), ("sched_work", frame.place)]
            asks = frame.work & WORK_SCHEDULE
            assert asks, "the turn is judged before the timers have woken anybody"
            assert frame.work & WORK_SIGNAL, "at the end of a turn the signal is forgotten"
            frame.work &= ~WORK_SIGNAL

        play.run(main())


@pytest.mark.exercise("4.2", points=1, once=True)
def test_woken_waits_its_turn(lab):
    """Round robin: a task that wakes is the last in the queue, as a new one is."""
    found: list[int] = []
    with played(lab) as play:
        gate = play.zeroed()

        def wait_at_gate(number: int):
            yield "semaphore_down", gate
            found.append(number)

        def main():
            play.quiet()
            yield from play.begin(wait_at_gate, 9)
            yield "yield"
            yield from play.begin(say(found), 1)
            yield from play.begin(say(found), 2)
            yield "semaphore_up", gate
            yield from play.await_ends()

        play.run(main())
    assert found == [1, 2, 9], f"1 and 2 waited already as 9 woke, and they ran as {found}"


@pytest.mark.exercise("4.2", points=2, once=True)
def test_before_user_mode(lab):
    """Work that other work asks for: it is done, too, before user mode. The switch comes before
    signals, because task_load checks again which task has one."""
    mark = random.Random(lab.seed).getrandbits(31)
    both = WORK_SCHEDULE | WORK_SIGNAL
    found: list[int] = []
    with played(lab) as play:
        frame = Frame(play, USER_CODE)
        frame.set("eip", mark)

        def deliver(place: int):
            found.append(play.word(place, frame.members["eip"]))
            frame.work &= ~WORK_SIGNAL
            if len(found) == 1:
                frame.work |= WORK_SCHEDULE
            yield from ()

        def main():
            play.quiet()
            play.set_word("deliver_signals", play.function(deliver))
            yield from play.begin(say(found), 5)
            play.interrupts(False)
            frame.work = WORK_SIGNAL
            yield "sched_work", frame.place
            found.append(frame.work & both)
            yield from play.begin(say(found), 6)
            frame.work = both
            yield "task_before_user", frame.place
            found.append(frame.work & both)

        play.run(main())
    assert found[0] == mark, "the signal is not delivered with the trap's frame"
    assert found[:3] == [mark, 5, 0], "the change that the delivery asked for is not made"
    assert found[3:] == [6, 0], f"6 was to run before signals are looked at: {found[3:]}"


@pytest.mark.exercise("4.2", points=1, once=True)
def test_many_signals(lab):
    """Several signals before user mode: all are delivered, and none on a return to the kernel. A
    task that is switched away there is pre-empted, and does not yield."""
    signals = random.Random(lab.seed).randrange(5, 15)
    delivered: list[int] = []
    with played(lab) as play:
        frame = Frame(play, KERNEL_CODE)
        frame.set("eflags", INTERRUPTS)

        def deliver_again(place: int):
            delivered.append(place)
            frame.work &= ~WORK_SIGNAL
            frame.work |= WORK_SIGNAL if len(delivered) < signals else WORK_SCHEDULE
            yield from ()

        def main():
            play.quiet()
            task, is_over = play.current, False

            def keep_yielding(_argument: int):
                while not is_over:
                    yield "yield"

            before = play.of(task, "preemptions")
            play.set_word("deliver_signals", play.function(deliver_again))
            yield from play.begin(keep_yielding)
            play.interrupts(False)
            frame.work = WORK_SIGNAL
            play.set_of(task, "preempt_count", 0)
            yield "sched_work", frame.place
            assert not delivered, "a signal is delivered to code in the kernel"
            play.preempt_disable()
            frame.set("cs", USER_CODE)
            frame.work = WORK_SIGNAL
            yield "sched_work", frame.place
            count = len(delivered)
            assert count == signals, f"of {signals} signals {count} are delivered before user mode"
            preemptions = play.of(task, "preemptions") - before
            assert preemptions == 1, f"one pre-emption counts as {preemptions}"
            is_over = True

        play.run(main())

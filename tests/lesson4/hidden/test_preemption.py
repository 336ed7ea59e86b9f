"""Exercise 4.2, hidden: how long a turn is, whom the clock may interrupt, and what it leaves."""

from __future__ import annotations

import random
import re
from itertools import pairwise

import pytest

from tests.lesson2.support import recorded_traps
from tests.lesson4.classes import DEQUEUE, ENQUEUE, JOIN, PICK, STEPS, TICK, sched_class
from tests.lesson4.played import MIX, Mixing, Play, Played, Tick, played
from tests.lesson4.processes import MIX as MIX_3
from tests.lesson4.processes import MIX_END as MIX_3_END
from tests.lesson4.processes import Order, family_of
from tests.lesson4.races import Once, search
from tests.lesson4.shares import begin_all
from tests.lesson4.support import (
    INTERRUPTS,
    NEW,
    PREEMPTED,
    TIMER,
    WOKEN,
    WORK_SCHEDULE,
    YIELDED,
    fail,
)
from tests.lesson4.waiting import hold_twice, say
from tests.support.met import Met

SERVICE = re.compile(r"^pic[01]: .*isr=(\w+)", re.MULTILINE)
LONGEST = 1000  # instructions of a thread that mixes
MIXED = ("eax", "ebx", "edx", "esi", "edi", "ebp")
REGISTERS = (*MIXED, "ecx", "eip")
FLAGS = 2  # always set
STATUS_FLAGS = 0x8D5


@pytest.mark.exercise("4.2", points=3, gate=True)
def test_turns(lab):
    """Threads that never yield: each runs in turn for exactly one quantum."""
    seeded = random.Random(lab.seed)
    count, quantum = seeded.randrange(3, 6), seeded.randrange(2, 5)
    found: list[tuple[int, int]] = []
    with played(lab, record=True) as play:

        def main():
            play.set_word("sched_quantum", quantum)
            yield from play.fast_clock()
            play.preempt_disable()
            tasks = yield from begin_all(play, [0] * count)
            before = len(play.ticks())
            yield "msleep", 40 * count * quantum
            found.extend(play.turns(*tasks, since=before)[1:-1])

        play.run(main())
    assert len(found) >= 2 * count, f"only {len(found)} turns in {4 * count * quantum} ticks"
    order = [task for task, _ in found]
    assert order == [(order[0] + n) % count for n in range(len(order))], "not in turn"
    for _, ticks in found:
        assert ticks == quantum, f"a turn with a quantum of {quantum} ticks takes {ticks}"


@pytest.mark.exercise("4.2", points=2, gate=True)
@pytest.mark.parametrize("way", [("yield",), ("msleep", 10)], ids=["yields", "sleeps"])
def test_quantum_after_a_yield(lab, way):
    """A thread that yields or sleeps late in its turn: its next turn is a whole one."""
    quantum = 5
    found: list[tuple[int, int]] = []
    with played(lab, record=True) as play:

        def spin_and_yield(_argument: int):
            yield play.busy_ticks(4.3)
            yield way
            yield from play.spin(0)

        def main():
            play.set_word("sched_quantum", quantum)
            yield from play.fast_clock()
            play.preempt_disable()
            before = len(play.ticks())
            one = yield from play.begin(spin_and_yield)
            other = yield from play.begin(play.spin)
            yield "msleep", 60 * quantum
            found.extend(play.turns(one, other, since=before))

        play.run(main())
    own = [ticks for task, ticks in found if task == 0]
    assert own[0] < quantum, f"its first turn was to end early, and had {own[0]} ticks"
    assert own[1] == quantum, f"the turn after the {way[0]} takes {own[1]} ticks, not {quantum}"


@pytest.mark.exercise("4.2", points=2)
def test_alone_for_long(lab):
    """A thread that was alone for many quanta: it is pre-empted when another one comes."""
    quantum = 3
    waited: list[float] = []
    with played(lab) as play:
        start = 0

        def note_first_run(_argument: int):
            waited.append(play.ticks_since(start))
            yield from ()

        def main():
            nonlocal start
            play.set_word("sched_quantum", quantum)
            yield from play.fast_clock()
            yield from play.begin(play.spin)
            yield "msleep", 10 * (4 * quantum + 2)
            start = play.clock()
            yield from play.begin(note_first_run)
            yield "msleep", 40 * quantum

        play.run(main())
    assert waited, "the new thread has not run at all"
    assert waited[0] <= quantum + 1.4, f"it had to wait {waited[0]:.1f} ticks"


@pytest.mark.exercise("4.2", points=2)
def test_preempt_count(lab):
    """preempt_disable nests: the switch comes at once after the last preempt_enable."""
    found: list[int] = []
    with played(lab) as play:

        def main():
            yield from play.fast_clock()
            yield from play.begin(hold_twice(play, found, 8))
            yield from play.await_ends()

        play.run(main())
    assert found[0] == 1, "another thread ran before the last preempt_enable"
    assert found == [1, 2, 3], "another thread was due, and did not run at the last preempt_enable"


CASES = (
    *("a new task comes", "a task is woken", "in a turn all come from another class"),
    *("one leaves the queue", "a turn ends and goes on", "a turn is given up early"),
    *("who yields is queued", "who is pre-empted is queued", "one sleeps in its turn"),
)


class Robin:
    """Round robin as it should be, in steps that fit each other, and what comes of each."""

    def __init__(self, seeded: random.Random, quantum: int) -> None:
        self.seeded, self.quantum = seeded, quantum
        self.left: dict[int, int] = {}
        self.queue: list[int] = []
        self.asleep = list(range(1, 5))
        self.steps: list[tuple[int, int, int]] = []
        self.met = Met(*CASES)
        self.wanted: list[int] = []

    def add(self, step: int, number: int, value: int = 0) -> int:
        """One more step."""
        result = 0
        if step in (JOIN, ENQUEUE):
            self.left[number] = self.quantum
        if step == ENQUEUE:
            self.queue.append(number)
        elif step == PICK:
            result = self.queue.pop(0)
        elif step == DEQUEUE:
            self.queue.remove(number)
        elif step == TICK:
            self.left[number] -= 1
            result = int(self.left[number] == 0)
            if result:
                self.met("a turn ends and goes on")
            self.left[number] = self.left[number] or self.quantum
        self.steps.append((step, number, value))
        self.wanted.append(result)
        return result

    def wake(self) -> None:
        """One that has slept competes, or a new one."""
        number = self.asleep.pop(0)
        is_new = number not in self.left or self.seeded.random() < 0.2
        self.met("a new task comes" if is_new else "a task is woken")
        if is_new:
            self.add(JOIN, number)
        self.add(ENQUEUE, number, NEW if is_new else WOKEN)

    def turn(self) -> None:
        """The first in the queue runs for some ticks, as others wake; sometimes all come from
        another class meanwhile, or one leaves the queue. It may lose the processor late."""
        number = self.add(PICK, 0)
        for _ in range(self.seeded.randrange(2 * self.quantum)):
            self.add(TICK, number)
            kind = self.seeded.random()
            if self.asleep and kind < 0.2:
                self.wake()
            elif kind < 0.25:
                self.met("in a turn all come from another class")
                self.add(JOIN, number)
            elif self.queue and kind < 0.3:
                self.met("one leaves the queue")
                self.asleep.append(self.seeded.choice(self.queue))
                self.add(DEQUEUE, self.asleep[-1])
        if 0 < self.left[number] < self.quantum:
            self.met("a turn is given up early")
        if self.seeded.random() < 0.3:
            self.met("one sleeps in its turn")
            self.asleep.append(number)
        else:
            reason = self.seeded.choice((YIELDED, PREEMPTED))
            self.met(f"who {'yields' if reason == YIELDED else 'is pre-empted'} is queued")
            self.add(ENQUEUE, number, reason)

    def check(self, lab) -> None:
        """Makes the steps, and compares what comes of each."""
        with sched_class(lab, "sched_round_robin", self.quantum) as robin:
            for index, (what, number, value), seen in robin.run(self.steps):
                words = f"step {index}, {STEPS[what]} of task {number} with {value}"
                assert seen == self.wanted[index], f"{words}: {seen}, not {self.wanted[index]}"


@pytest.mark.exercise("4.2", points=2, once=True)
def test_class_by_itself(lab):
    """Hundreds of random steps of the class: every task that is queued, for any reason, is the last
    and begins a whole turn."""
    seeded = random.Random(lab.seed)
    robin = Robin(seeded, seeded.randrange(3, 7))
    while len(robin.steps) < 600 or (robin.met.lacks() and len(robin.steps) < 2400):
        while not robin.queue or (robin.asleep and seeded.random() < 0.3):
            robin.wake()
        robin.turn()
    robin.met.require()
    robin.check(lab)


@pytest.mark.exercise("4.2", points=1, once=True)
def test_long_turn(lab):
    """A task that is alone: its turn lasts hundreds of ticks, twice."""
    quantum = random.Random(lab.seed).randrange(260, 330)
    robin = Robin(random.Random(), quantum)
    robin.add(JOIN, 1)
    for _ in range(2 * quantum):
        robin.add(TICK, 1)
    robin.check(lab)


@pytest.mark.exercise("4.2", points=2)
def test_kernel_of_a_program(lab):
    """A process in the kernel: it is not pre-empted there, however long it works."""
    found: list[int] = []
    with played(lab) as play:

        def serve(_argument: int):
            task = play.current
            play.preempt_disable()
            play.set_of(task, "space", 1)
            yield "preempt_enable"
            yield from play.begin(say(found), 2)
            yield play.busy_ticks(8)
            found.append(1)
            play.set_of(task, "space", 0)
            yield play.busy_ticks(8)
            found.append(3)

        def main():
            yield from play.fast_clock()
            yield from play.begin(serve)
            while play.word("task_count") > 1:
                yield "msleep", 40

        play.run(main())
    assert found[0] == 1, "a task with a space was interrupted in the kernel"
    assert found == [1, 2, 3], "a thread that was due did not run when the space was gone"


@pytest.mark.exercise("4.2", points=2)
def test_end_of_interrupt_comes_first(lab):
    """EOI before the switch: at each task switch no interrupt controller waits for one."""
    seen: list[list[str]] = []
    with played(lab) as play:

        def look(now: dict[str, int]) -> None:
            services = SERVICE.findall(play.guest.monitor("info pic"))
            assert [int(word, 16) for word in services] == [0, 0], "an interrupt is not done yet"
            assert not now["eflags"] & INTERRUPTS, "interrupts are enabled"
            seen.append(services)

        def main():
            play.set_word("sched_quantum", 1)
            yield from play.fast_clock()
            play.preempt_disable()
            yield from begin_all(play, [0] * 3)
            yield "msleep", 120

        with play.watching(switch_to=look):
            play.run(main())
    assert len(seen) > 6, f"in twelve ticks there were {len(seen)} changes of tasks"


@pytest.mark.exercise("4.2", points=3, gate=True)
def test_programs_in_user_mode(lab):
    """Programs that use every register and flag, ESP and DF among them: together their results are
    those of each one alone without interrupts."""
    rounds = 300_000 if lab.mode == "icount" else 100_000
    log, ended = lab.scratch / "interrupts", 0
    options = ("-fw_cfg", "name=opt/org.apprentice/quantum,string=1", "-d", "int", "-D", str(log))
    with family_of(lab, *options) as family:
        places: list[int] = []

        def calculate(order: Order):
            nonlocal ended
            places.append(family.guest.dump()["CR3"])
            yield order
            ended += 1
            yield from family.leave()

        def main():
            orders = [family.mix(rounds, direction) for direction in (False, True, True, False)]
            for order in orders:
                yield from family.fork(lambda order=order: calculate(order))
            for _ in orders:
                yield from family.wait()

        family.play(main())
    assert ended == 4
    traps = recorded_traps(log.read_text(errors="replace"))
    ticks = [each.registers for each in traps if each.vector == TIMER and each.ring == 3]
    own = [each["CR3"] for each in ticks if MIX_3 <= each["EIP"] < MIX_3_END]
    assert set(own) == set(places), "not each of the programs was interrupted in its calculation"
    changes = sum(one != other for one, other in pairwise(own))
    assert changes > 4, f"of {len(own)} ticks {changes} found another program than the one before"


# ---- instruction by instruction -----------------------------------------------------------------


def states(seen: list[dict[str, int]]) -> list[tuple[int, ...]]:
    """All registers and status flags before each instruction; ESP as a distance."""
    home = seen[0]["esp"]
    return [
        (*(each[name] for name in REGISTERS), each["esp"] - home, each["eflags"] & STATUS_FLAGS)
        for each in seen
    ]


@pytest.mark.exercise("4.2", points=3)
def test_single_steps(lab):
    """Three threads with a tick after every few instructions: registers and flags are at each
    instruction those of the thread alone."""
    seeded, rounds = random.Random(lab.seed), 4
    begins = [
        {name: seeded.getrandbits(32) for name in MIXED} | {"ecx": rounds, "eip": MIX}
        for _ in range(3)
    ]
    histories: list[list[dict[str, int]]] = [[], [], []]
    ticks = 0
    with played(lab) as play:

        def alone(begin: dict[str, int]) -> list[tuple[int, ...]]:
            seen: list[dict[str, int]] = []
            before = play.guest.registers()
            play.mixed(before | begin | {"eflags": FLAGS}, LONGEST, seen)
            play.guest.put(before)
            return states(seen)

        def mix(number: int):
            nonlocal ticks
            seen, begin = histories[number], begins[number] | {"eflags": FLAGS | INTERRUPTS}
            while not (yield Mixing(seeded.randrange(1, 6), seen, begin)):
                begin, ticks = None, ticks + 1

        def main():
            play.quiet()
            play.set_word("sched_quantum", 1)
            yield from play.begin_all(*((mix, number) for number in range(3)))
            yield from play.await_ends()

        expected = [alone(begin) for begin in begins]
        play.run(main())
    assert ticks > 10
    for history, wanted in zip(map(states, histories), expected, strict=True):
        if history != wanted:
            step = first_difference(history, wanted)
            fail(f"a thread's registers differ from its own run alone, from step {step} on")


def first_difference(one: list[tuple], other: list[tuple]) -> int:
    """The first place where two histories differ."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))


def end_of_holding(play: Play) -> Once:
    """A thread that has disabled pre-emption loses the processor at the end of that, also if the
    tick comes during the last call."""
    ran = early = late = asked = 0

    def run(_argument: int) -> Played:
        nonlocal ran
        ran += 1
        yield from ()

    def hold(_argument: int) -> Played:
        nonlocal early, late
        play.preempt_disable()
        yield from play.begin_all((run, 0), (run, 0))
        yield Tick()
        early = ran
        yield "preempt_enable"
        late = ran

    def hold_shortly(_argument: int) -> Played:
        nonlocal asked
        play.preempt_disable()
        yield "preempt_enable"
        asked = play.word("trap_return_work") & WORK_SCHEDULE

    def once() -> Played:
        nonlocal ran, early, late, asked
        ran = early = late = asked = 0
        yield from play.begin_all((hold, 0), (hold_shortly, 0))
        yield [("yield",)] * 12
        if early:
            return "another thread runs before preempt_enable"
        is_right = late and not asked
        return "" if is_right else "no other thread runs when preempt_enable returns"

    return once


@pytest.mark.exercise("4.2", points=1, once=True)
def test_tick_anywhere(lab):
    """A tick while pre-emption is disabled: the switch comes when it is enabled, wherever another
    tick comes."""
    search(lab, "4.2", end_of_holding)

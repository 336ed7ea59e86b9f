"""Exercise 4.2, hidden: how long a turn is, whom the clock may interrupt, and what it leaves."""

from __future__ import annotations

import random
import re
from collections import defaultdict

import pytest

from tests.lesson4.classes import DEQUEUE, ENQUEUE, JOIN, PICK, STEPS, TICK, sched_class
from tests.lesson4.played import played
from tests.lesson4.search import search
from tests.lesson4.shares import begin_all
from tests.lesson4.support import (
    INTERRUPTS,
    NEW,
    PREEMPTED,
    WOKEN,
    YIELDED,
    Threads,
    fail,
    interrupt,
    run_programs,
    threads,
)
from tests.lesson4.waiting import say

CLOCK = "tests/lesson4/hidden/clock.c"
USER_CODE, KERNEL_CODE = 0x1B, 0x08
SERVICE = re.compile(r"^pic[01]: .*isr=(\w+)", re.MULTILINE)
LONGEST = 1000  # instructions of a thread that mixes
GENERAL = ("eax", "ecx", "edx", "ebx", "ebp", "esi", "edi", "eip")
STATUS_FLAGS = 0x8D5


@pytest.mark.exercise("4.2", points=3, gate=True)
def test_turns(lab):
    """Threads that never yield: each in turn, each for one quantum, to the tick."""
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


@pytest.mark.exercise("4.2", points=2)
@pytest.mark.parametrize("way", [("yield",), ("msleep", 10)], ids=["yields", "sleeps"])
def test_quantum_after_a_yield(lab, way):
    """A thread that yields, or sleeps, late in its turn gets a whole turn the next time."""
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
    """A thread that was alone for many quanta is still interrupted when another one comes."""
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
    """preempt_disable nests; behind the last preempt_enable the change comes at once."""
    found: list[int] = []
    with played(lab) as play:

        def hold(_argument: int):
            play.preempt_disable()
            play.preempt_disable()
            yield from play.begin(say(found), 2)
            yield play.busy_ticks(8)
            yield "preempt_enable"
            found.append(1)
            yield "preempt_enable"
            found.append(3)

        def main():
            yield from play.fast_clock()
            yield from play.begin(hold)
            yield from play.await_ends()

        play.run(main())
    assert found[0] == 1, "another thread ran before the last preempt_enable"
    assert found == [1, 2, 3], "another thread was due, and did not run at the last preempt_enable"


class Robin:
    """Round robin as it should be, in steps that fit each other, and what comes of each."""

    def __init__(self, seeded: random.Random, quantum: int) -> None:
        self.seeded, self.quantum = seeded, quantum
        self.left: dict[int, int] = {}
        self.queue: list[int] = []
        self.asleep = list(range(1, 5))
        self.steps: list[tuple[int, int, int]] = []
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
            self.left[number] = self.left[number] or self.quantum
        self.steps.append((step, number, value))
        self.wanted.append(result)
        return result

    def wake(self) -> None:
        """One that has slept competes, or a new one."""
        number = self.asleep.pop(0)
        is_new = number not in self.left or self.seeded.random() < 0.2
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
                self.add(JOIN, number)
            elif self.queue and kind < 0.3:
                self.asleep.append(self.seeded.choice(self.queue))
                self.add(DEQUEUE, self.asleep[-1])
        if self.seeded.random() < 0.3:
            self.asleep.append(number)
        else:
            self.add(ENQUEUE, number, self.seeded.choice((YIELDED, PREEMPTED)))

    def check(self, lab) -> None:
        """Makes the steps, and compares what comes of each."""
        with sched_class(lab, "sched_round_robin", self.quantum) as robin:
            for index, (what, number, value), seen in robin.run(self.steps):
                words = f"step {index}, {STEPS[what]} of task {number} with {value}"
                assert seen == self.wanted[index], f"{words}: {seen}, not {self.wanted[index]}"


@pytest.mark.exercise("4.2", points=2, once=True)
def test_class_by_itself(lab):
    """Hundreds of steps of the class: whoever comes, and for whatever reason, is the last, and
    begins a whole turn of its own."""
    seeded = random.Random(lab.seed)
    robin = Robin(seeded, seeded.randrange(3, 7))
    while len(robin.steps) < 600:
        while not robin.queue or (robin.asleep and seeded.random() < 0.3):
            robin.wake()
        robin.turn()
    robin.check(lab)


@pytest.mark.exercise("4.2", points=1, once=True)
def test_long_turn(lab):
    """A turn of hundreds of ticks, twice, of a task that is alone."""
    quantum = random.Random(lab.seed).randrange(260, 330)
    robin = Robin(random.Random(), quantum)
    robin.add(JOIN, 1)
    for _ in range(2 * quantum):
        robin.add(TICK, 1)
    robin.check(lab)


@pytest.mark.exercise("4.2", points=2)
def test_kernel_of_a_program(lab):
    """A task with a space is not interrupted in the kernel, for as long as it works there."""
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
    """Whenever tasks are changed, neither interrupt controller waits for an EOI."""
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


@pytest.mark.exercise("4.2", points=3)
def test_programs_in_ring_3(lab):
    """Programs that calculate in every register and flag, ESP and DF among them: together they get
    the results that each gets alone."""
    seeded = random.Random(lab.seed)
    seeds = [seeded.randrange(1 << 20) * 2 + odd for odd in (0, 1, 1, 0)]
    rounds = 300_000 if lab.mode == "icount" else 100_000
    source = "tests/lesson4/hidden/mix.c"
    quantum = ("-fw_cfg", "name=opt/org.apprentice/quantum,string=1")
    alone = [f"{rounds} {seed}" for seed in seeds]
    together = f"{rounds} {' '.join(map(str, seeds))}"
    lines = run_programs(lab, source, *alone, together, options=quantum)
    count = len(seeds)
    assert len(lines) == 2 * count, f"{2 * count} results were to be printed: {lines}"
    assert [int(line.split()[0]) for line in lines[:count]] == seeds
    assert sorted(lines[count:]) == sorted(lines[:count]), "an interrupted calculation went wrong"


# ---- instruction by instruction -----------------------------------------------------------------


class Mixers:
    """Threads that are run one instruction at a time, with a tick wherever the test wants one."""

    def __init__(self, run: Threads) -> None:
        self.run, self.guest = run, run.guest
        self.start, self.end = run.address("mix_loop"), run.address("mix_end")
        self.homes: dict[int, int] = {}
        self.history: dict[int, list[tuple]] = defaultdict(list)

    def to_loop(self, *places: int) -> None:
        """Runs to where a thread begins its loop, or to one of the places."""
        self.guest.run_to(self.start, *places, goal="a thread that was interrupted")

    def steps(self, count: int) -> bool:
        """Executes so many instructions of the loop, and notes all registers before each. False if
        the thread has come to its end."""
        for _ in range(count):
            registers = self.guest.registers()
            if registers["eip"] == self.end:
                return False
            thread = registers["esp"] & ~0x3FFF
            self.homes.setdefault(thread, registers["esp"])
            state = (
                *(registers[name] for name in GENERAL),
                registers["esp"] - self.homes[thread],
                registers["eflags"] & STATUS_FLAGS,
            )
            self.history[thread].append(state)
            self.guest.step()
        return self.guest.registers()["eip"] != self.end


def alone(lab, values: list[int]) -> list[tuple]:
    """The states of one thread that nobody interrupts."""
    with threads(lab, CLOCK, "mixers", *values, 1) as run:
        mixers = Mixers(run)
        mixers.to_loop()
        mixers.steps(LONGEST)
    (history,) = mixers.history.values()
    return history


@pytest.mark.exercise("4.2", points=3)
def test_single_steps(lab):
    """Three threads with a tick after every few instructions: each has the registers and flags that
    it has alone, at each instruction."""
    seeded = random.Random(lab.seed)
    rounds = 4
    questions = [[*(seeded.getrandbits(32) for _ in range(5)), rounds, seeded.getrandbits(32)]
                 for _ in range(3)]  # fmt: skip
    expected = [alone(lab, values) for values in questions]
    words = [word for values in questions for word in (*values, 1)]
    with threads(lab, CLOCK, "mixers", *words) as run:
        mixers = Mixers(run)
        interrupted: set[int] = set()
        ended = ticks = 0
        while ended < len(questions):
            mixers.to_loop(*interrupted)
            if mixers.steps(seeded.randrange(1, 6)):
                interrupted.add(interrupt(run.guest))
                ticks += 1
            else:
                ended += 1
    assert ticks > 10
    found = list(mixers.history.values())
    assert len(found) == 3
    for history in found:
        if history not in expected:
            step = max(first_difference(history, each) for each in expected)
            fail(f"a thread's registers differ from its own run alone, from step {step} on")


def first_difference(one: list[tuple], other: list[tuple]) -> int:
    """The first place where two histories differ."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))


@pytest.mark.exercise("4.2", points=1, once=True)
def test_tick_anywhere(lab):
    """A tick that comes while pre-emption is disabled has its effect at the end of that, wherever
    another one comes."""
    search(
        lab,
        "4.2",
        "end_of_holding",
        {
            1: "no other thread runs when preempt_enable returns",
            2: "another thread runs before preempt_enable",
        },
    )

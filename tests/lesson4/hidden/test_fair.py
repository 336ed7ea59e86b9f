"""Exercise 4.6, hidden: virtual times against a model, and shares of the processor."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.lesson4.classes import (
    CHARGE,
    DEQUEUE,
    DONATE,
    ENQUEUE,
    FAKES,
    JOIN,
    NICE,
    NO_TASK,
    NONE,
    PICK,
    PREEMPTS,
    STAMPS_PER_TICK,
    STEPS,
    TICK,
    Class,
    Step,
    sched_class,
)
from tests.lesson4.shares import comes_late, gains, shares, sleeps_first
from tests.lesson4.support import NEW, PREEMPTED, WOKEN, YIELDED
from tests.support.met import Met
from tests.support.remote import INTERRUPTS

WRAP = 1 << 64
PIECE, PIECES = 1 << 53, 40
QUANTUM = 2
QUANTUM_OF_STEPS = 3
HALF_A_TICK = STAMPS_PER_TICK // 2
CASES = (
    *("a niceness below 0", "a niceness above 0", "a loan", "pick without a task"),
    *("who has slept for long", "who has slept shortly", "a yield of who has had the least"),
    *("a turn that ends", "a turn that goes on", "a minimum that stays"),
    *("who wakes pre-empts", "who wakes does not pre-empt"),
)


def weights() -> list[int]:
    """Of niceness -20 to 19: each step is a factor of 5/4."""
    found = [1024]
    for _ in range(20):
        found.insert(0, found[0] * 5 // 4)
    for _ in range(19):
        found.append(found[-1] * 4 // 5)
    return found


def is_before(a: int, b: int) -> bool:
    """By the sign of the difference, in 64 bits."""
    return (a - b) % WRAP >= WRAP // 2


class Model:
    """What kernel/task/sched_fair.c does."""

    def __init__(
        self, stamps_per_tick: int, minimum: int, note: Callable[[str], None] = lambda _: None
    ) -> None:
        self.note = note
        self.weights = weights()
        self.times = [0] * FAKES
        self.nice = [0] * FAKES
        self.donated = [NONE] * FAKES
        self.queue: list[int] = []
        self.stamps_per_tick = stamps_per_tick
        self.minimum = minimum % WRAP

    def charge(self, number: int, stamps: int) -> None:
        """The task pays; the minimum follows."""
        weight = self.weights[min(self.nice[number], self.donated[number]) + 20]
        self.times[number] = (self.times[number] + stamps * 1024 // weight) % WRAP
        least = self.times[number]
        if self.queue and is_before(self.times[self.queue[0]], least):
            least = self.times[self.queue[0]]
        if is_before(self.minimum, least):
            self.minimum = least
        else:
            self.note("a minimum that stays")

    def enqueue(self, number: int, reason: int) -> None:
        """In its place."""
        lowest = (self.minimum - self.stamps_per_tick * QUANTUM_OF_STEPS) % WRAP
        if reason == WOKEN:
            is_long = is_before(self.times[number], lowest)
            self.note(f"who has slept {'for long' if is_long else 'shortly'}")
            self.times[number] = lowest if is_long else self.times[number]
        if reason == YIELDED and self.queue:
            first = self.times[self.queue[0]]
            if is_before(self.times[number], first):
                self.times[number] = first
                self.note("a yield of who has had the least")
        at = len(self.queue)
        while at and is_before(self.times[number], self.times[self.queue[at - 1]]):
            at -= 1
        self.queue.insert(at, number)

    def join(self, number: int, value: int) -> None:
        """Begins at the minimum."""
        self.nice[number], self.donated[number] = value, NONE
        if value:
            self.note(f"a niceness {'below' if value < 0 else 'above'} 0")
        self.times[number] = self.minimum

    def pick(self) -> int:
        """Takes the first."""
        if not self.queue:
            self.note("pick without a task")
        return self.queue.pop(0) if self.queue else NO_TASK

    def tick(self, number: int) -> bool:
        """Has the first in the queue had less?"""
        first = self.queue[0] if self.queue else number
        is_over = is_before(self.times[first], self.times[number])
        self.note(f"a turn that {'ends' if is_over else 'goes on'}")
        return is_over

    def preempts(self, number: int, other: int) -> bool:
        """Has it had less by more than half a tick?"""
        late = (self.times[number] + self.stamps_per_tick // 2) % WRAP
        preempts = is_before(late, self.times[other])
        self.note(f"who wakes {'pre-empts' if preempts else 'does not pre-empt'}")
        return preempts

    def donate(self, number: int, value: int) -> None:
        """Somebody lends it this niceness."""
        self.note("a loan")
        self.donated[number] = value

    def step(self, step: int, number: int, value: int) -> int:
        """The same as a step of Class.run."""
        steps = {
            JOIN: lambda: self.join(number, value),
            ENQUEUE: lambda: self.enqueue(number, value),
            PICK: self.pick,
            CHARGE: lambda: self.charge(number, value),
            TICK: lambda: self.tick(number),
            DEQUEUE: lambda: self.queue.remove(number),
            NICE: lambda: self.nice.__setitem__(number, value),
            PREEMPTS: lambda: self.preempts(number, value),
            DONATE: lambda: self.donate(number, value),
        }
        return int(steps[step]() or 0)


class Drawer:
    """Draws steps that a scheduler could make: most often the first one runs, and pays."""

    def __init__(self, seeded: random.Random, most: int) -> None:
        self.seeded = seeded
        self.most = most  # time stamps that a task uses the processor for, at once
        self.steps: list[Step] = []
        self.met = Met(*CASES)
        self.model = Model(STAMPS_PER_TICK, 0, self.met)
        self.asleep = list(range(FAKES))
        for number in range(FAKES):
            self.add(JOIN, number, seeded.randrange(-20, 20))

    def add(self, *step: int) -> int:
        """One step; its result, as the model has it."""
        self.steps.append(step)
        return self.model.step(*step)

    def let_run(self, number: int) -> None:
        """A task uses the processor, and sleeps, yields, or is pre-empted."""
        self.add(CHARGE, number, self.seeded.randrange(1, self.most))
        self.add(TICK, number, 0)
        kind = self.seeded.random()
        if kind < 0.2:
            self.asleep.append(number)
        else:
            self.add(ENQUEUE, number, YIELDED if kind < 0.4 else PREEMPTED)

    def wake(self) -> None:
        """A task begins to compete: mostly one that has slept."""
        number = self.asleep.pop(self.seeded.randrange(len(self.asleep)))
        kind = self.seeded.random()
        if kind < 0.15:
            self.add(JOIN, number, self.seeded.randrange(-20, 20))
        elif kind < 0.3:
            self.add(self.seeded.choice((NICE, DONATE)), number, self.seeded.randrange(-20, 20))
        self.add(PREEMPTS, number, self.seeded.randrange(FAKES))
        self.add(ENQUEUE, number, NEW if kind < 0.15 else WOKEN)


def draw_steps(seeded: random.Random, count: int, most: int = 40_000_000) -> Drawer:
    """This many steps, about, or as many as it takes to meet all cases."""
    drawer = Drawer(seeded, most)
    drawer.add(PICK, 0, 0)
    while len(drawer.steps) < count or (drawer.met.lacks() and len(drawer.steps) < 2 * count):
        kind = seeded.random()
        if drawer.asleep and (kind < 0.3 or not drawer.model.queue):
            drawer.wake()
        elif kind < 0.4:
            drawer.asleep.append(seeded.choice(drawer.model.queue))
            drawer.add(DEQUEUE, drawer.asleep[-1], 0)
        else:
            drawer.let_run(drawer.add(PICK, 0, 0))
    return drawer


def pass_on_to(fair: Class, time: int) -> None:
    """Lets the least virtual time pass on to this one: a task that is alone pays for what is
    missing, the nicer the faster, in pieces of which none is too large for 64 bits."""
    fair.call("join", fair.task(0))
    fair.set_byte(0, "donated", NONE)
    for nice, rest in ((19, 1 << 60), (10, 1 << 57), (0, 0)):
        fair.set_byte(0, "nice", nice)
        for _ in range(PIECES):
            left = (time - fair.virtual_time(0)) % WRAP
            if left <= rest:
                break
            piece = min(left, PIECE)
            fair.call("charge", fair.task(0), piece, piece >> 32)


def require_times(fair: Class, model: Model, words: str) -> None:
    """The virtual times are those of the model, to the last bit."""
    for number, wanted in enumerate(model.times):
        late = (fair.virtual_time(number) - wanted + WRAP // 2) % WRAP - WRAP // 2
        assert late == 0, f"up to {words}: task {number} has a virtual time that is wrong by {late}"


def check_steps(lab, steps: list[Step], minimum: int) -> None:
    """Makes the steps; compares result and virtual time of each."""
    with sched_class(lab, "sched_fair", QUANTUM_OF_STEPS) as fair:
        pass_on_to(fair, minimum % WRAP)
        model = Model(STAMPS_PER_TICK, minimum)
        for index, (step, number, value), result in fair.run(steps):
            wanted = model.step(step, number, value)
            words = f"step {index}, {STEPS[step]} of task {number} with {value}"
            assert result == wanted, f"{words}: {result}, and it should be {wanted}"
            if step == PICK:
                require_times(fair, model, words)
        require_times(fair, model, words)


@pytest.mark.exercise("4.6", points=4, gate=True, once=True)
def test_against_a_model(lab):
    """Hundreds of random steps: results and virtual times are the model's, to the last bit."""
    drawn = draw_steps(random.Random(lab.seed), 600)
    drawn.met.require()
    check_steps(lab, drawn.steps, 1 << 33)


@pytest.mark.exercise("4.6", points=1, gate=True, once=True)
def test_small_differences(lab):
    """Virtual times that are equal or nearly equal: among equals the first in the queue runs first,
    and a turn does not end for an equal."""
    seeded = random.Random(lab.seed)
    check_steps(lab, draw_steps(seeded, 300, most=6).steps, seeded.getrandbits(40))


@pytest.mark.exercise("4.6", points=1, once=True)
def test_half_a_tick(lab):
    """Pre-emption by a task that wakes: only if its virtual time is less by more than half a
    tick."""
    little = random.Random(lab.seed).randrange(HALF_A_TICK // 8)
    had = (little, HALF_A_TICK // 2 + little, HALF_A_TICK - 1, HALF_A_TICK, HALF_A_TICK + 1)
    steps: list[Step] = []
    for number, stamps in enumerate(had, 1):
        steps += [(JOIN, 0, 0), (JOIN, number, 0), (CHARGE, number, stamps), (PREEMPTS, 0, number)]
        steps += [(PREEMPTS, number, 0)]
    check_steps(lab, steps, 1 << 33)


@pytest.mark.exercise("4.6", points=3, gate=True, once=True)
def test_wrap(lab):
    """Virtual times that wrap, or pass 2^32 and 2^63: the order stays right."""
    seeded = random.Random(lab.seed)
    for minimum in (-300_000_000, (1 << 63) - 300_000_000, (1 << 32) - 300_000_000):
        check_steps(lab, draw_steps(seeded, 300).steps, minimum)


@pytest.mark.exercise("4.6", points=1, once=True)
def test_sleeper_around_the_wrap(lab):
    """A task that sleeps while virtual times wrap: it is placed as far below the minimum as at any
    other time."""
    steps = [(JOIN, 0, 0), (JOIN, 1, 0), (CHARGE, 0, 100_001_000), (ENQUEUE, 1, WOKEN)]
    steps += [(TICK, 0, 0), (PICK, 0, 0), (CHARGE, 1, 1000), (ENQUEUE, 1, PREEMPTED)]
    check_steps(lab, steps, -100_000_000)


@pytest.mark.exercise("4.6", points=1, once=True)
def test_far_apart(lab):
    """Virtual times more than 31 bits apart: the smaller one goes first."""
    steps = [(JOIN, 0, 19), (JOIN, 1, 0), (CHARGE, 0, 40_000_000), (ENQUEUE, 0, PREEMPTED)]
    steps += [(ENQUEUE, 1, NEW), (PICK, 0, 0), (TICK, 1, 0), (PICK, 0, 0), (TICK, 0, 0)]
    check_steps(lab, steps, 1 << 40)


@pytest.mark.exercise("4.6", points=2)
def test_equal_shares(lab):
    """Five equal threads: Jain's index of their shares is at least 0.99."""
    count, ticks = 5, 100
    totals = shares(lab, *[0] * count, ticks=ticks)
    assert sum(totals) >= 0.9 * ticks, "the processor was idle"
    jain = sum(totals) ** 2 / (count * sum(total**2 for total in totals))
    assert jain >= 0.99, f"Jain's index is {jain:.4f}: {totals} ticks"


@pytest.mark.exercise("4.6", points=2, gate=True)
def test_shares_by_weight(lab):
    """Threads of different niceness: each gets the share of its weight, to a turn."""
    seeded = random.Random(lab.seed)
    nice = [0, seeded.choice((-7, -5, -3)), seeded.choice((3, 5, 7))]
    totals = shares(lab, *nice, ticks=150 if lab.mode == "icount" else 80)
    table = weights()
    whole = sum(table[each + 20] for each in nice)
    for each, found in zip(nice, totals, strict=True):
        share = sum(totals) * table[each + 20] / whole
        assert abs(found - share) <= QUANTUM + 1, (
            f"niceness {each} among {nice}: {found} ticks, not {share:.1f}"
        )


def check_thirds(found: list[int], allowed: float) -> None:
    """Each of three has got about 10 of 30 ticks."""
    words = f"in 30 ticks the three got {found}"
    assert all(abs(each - 10) <= allowed for each in found), words


@pytest.mark.exercise("4.6", points=2)
def test_newcomer(lab):
    """A new third thread: it gets a third, and nothing for the time before it came."""
    check_thirds(gains(lab, 2, comes_late, 60, 30), 4)


@pytest.mark.exercise("4.6", points=2)
def test_sleeper(lab):
    """A thread that has slept for 60 ticks: it does not get them all at once."""
    check_thirds(gains(lab, 2, sleeps_first, 60, 30), 5)


@pytest.mark.exercise("4.6", points=2, once=True)
def test_tick_in_the_class(lab):
    """The class is called with interrupts disabled: it leaves them disabled at every
    instruction."""
    with sched_class(lab, "sched_fair", QUANTUM_OF_STEPS) as fair:
        one, *others = (fair.task(number) for number in range(5))
        places: set[int] = set()

        def look(now: dict[str, int]) -> None:
            if now["eflags"] & INTERRUPTS:
                places.add(now["eip"])

        calls = [("join", each) for each in (one, *others)]
        calls += [("charge", each, 1000 * number) for number, each in enumerate(others, 1)]
        calls += [("enqueue", each, PREEMPTED) for each in (others[3], others[0], others[2])]
        calls += [("enqueue", others[1], WOKEN), ("charge", one, STAMPS_PER_TICK), ("tick", one)]
        for function, *arguments in [*calls, ("preempts", one, others[0]), ("pick",)]:
            fair.kernel.cost(fair.functions[function], *arguments, each=look)
        words = [fair.guest.symbols.describe(each) for each in sorted(places)]
        assert not places, f"interrupts are enabled at {', '.join(words)}"

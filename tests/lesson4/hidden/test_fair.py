"""Exercise 4.6, hidden: virtual times against a model, and shares of the processor."""

from __future__ import annotations

import random
import struct

import pytest

from tests.lesson4.search import search
from tests.lesson4.support import (
    MASK,
    NEW,
    PREEMPTED,
    WOKEN,
    YIELDED,
    pairs,
    threads,
    tick_stamps,
)

FAIR = "tests/lesson4/hidden/fair.c"
SHARES = "tests/lesson4/threads/fair.c"
JOIN, ENQUEUE, PICK, CHARGE, TICK, DEQUEUE, NICE, PREEMPTS, DONATE = range(9)
NAMES = ("join", "enqueue", "pick", "charge", "tick", "(leaves)", "(niceness)", "preempts",
         "(donation)")  # fmt: skip
FAKES, NO_TASK, NONE = 8, 999, 127
WRAP = 1 << 64
QUANTUM = 2
QUANTUM_OF_STEPS = 3
HALF_A_TICK = 5_000_000  # time stamps, with the clock of the steps


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

    def __init__(self, stamps_per_tick: int, minimum: int) -> None:
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

    def enqueue(self, number: int, reason: int) -> None:
        """In its place."""
        lowest = (self.minimum - self.stamps_per_tick * QUANTUM_OF_STEPS) % WRAP
        if reason == WOKEN and is_before(self.times[number], lowest):
            self.times[number] = lowest
        if reason == YIELDED and self.queue:
            first = self.times[self.queue[0]]
            if is_before(self.times[number], first):
                self.times[number] = first
        at = len(self.queue)
        while at and is_before(self.times[number], self.times[self.queue[at - 1]]):
            at -= 1
        self.queue.insert(at, number)

    def step(self, step: int, number: int, value: int) -> int:
        """The same as run_step of threads/fair.c."""
        match step:
            case 0:  # JOIN
                self.nice[number], self.donated[number] = value, NONE
                self.times[number] = self.minimum
            case 1:  # ENQUEUE
                self.enqueue(number, value)
            case 2:  # PICK
                return self.queue.pop(0) if self.queue else NO_TASK
            case 3:  # CHARGE
                self.charge(number, value)
            case 4:  # TICK
                first = self.queue[0] if self.queue else number
                return int(is_before(self.times[first], self.times[number]))
            case 5:  # DEQUEUE
                self.queue.remove(number)
            case 6:  # NICE
                self.nice[number] = value
            case 7:  # PREEMPTS
                late = (self.times[number] + self.stamps_per_tick // 2) % WRAP
                return int(is_before(late, self.times[value]))
            case _:
                self.donated[number] = value
        return 0


class Drawer:
    """Draws steps that a scheduler could make: most often the first one runs, and pays."""

    def __init__(self, seeded: random.Random, most: int) -> None:
        self.seeded = seeded
        self.most = most  # time stamps that a task uses the processor for, at once
        self.steps: list[tuple[int, int, int]] = []
        self.model = Model(10_000_000, 0)
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


def draw_steps(
    seeded: random.Random, count: int, most: int = 40_000_000
) -> list[tuple[int, int, int]]:
    """This many steps, about."""
    drawer = Drawer(seeded, most)
    while len(drawer.steps) < count - 5:
        kind = seeded.random()
        if drawer.asleep and (kind < 0.3 or not drawer.model.queue):
            drawer.wake()
        elif kind < 0.4:
            drawer.asleep.append(seeded.choice(drawer.model.queue))
            drawer.add(DEQUEUE, drawer.asleep[-1], 0)
        else:
            drawer.let_run(drawer.add(PICK, 0, 0))
    return drawer.steps


def check_steps(lab, steps: list[tuple[int, int, int]], minimum: int) -> None:
    """Makes the steps; compares result and virtual time of each."""
    questions = (len(steps), QUANTUM_OF_STEPS, minimum & MASK, minimum >> 32 & MASK)
    with threads(lab, FAIR, "class_steps", *questions) as run:
        words = [word & MASK for step in steps for word in step]
        run.guest.write(run.address("steps"), struct.pack(f"<{len(words)}I", *words))
        stamps_per_tick, *found = run.answers()
    model = Model(stamps_per_tick, minimum)
    for index, (step, number, value) in enumerate(steps):
        result, low, high = found[3 * index : 3 * index + 3]
        wanted = model.step(step, number, value)
        words = f"step {index}, {NAMES[step]} of task {number} with {value}"
        assert result == wanted, f"{words}: {result}, and it should be {wanted}"
        late = ((low | high << 32) - model.times[number] + WRAP // 2) % WRAP - WRAP // 2
        assert late == 0, f"{words}: its virtual time is wrong by {late}"


@pytest.mark.exercise("4.6", points=4, gate=True)
def test_against_a_model(lab):
    """Hundreds of steps: results and virtual times, to the last bit."""
    seeded = random.Random(lab.seed)
    check_steps(lab, draw_steps(seeded, 600), 1 << 33)


@pytest.mark.exercise("4.6", points=1, gate=True)
def test_small_differences(lab):
    """Times that are the same, or differ by a few time stamps: of equals who was queued first goes
    first, and no turn ends for an equal."""
    seeded = random.Random(lab.seed)
    check_steps(lab, draw_steps(seeded, 300, most=6), seeded.getrandbits(40))


@pytest.mark.exercise("4.6", points=1)
def test_half_a_tick(lab):
    """Who wakes pre-empts if it has had less by more than half a tick: not at a few time stamps
    less, nor at exactly half a tick."""
    little = random.Random(lab.seed).randrange(HALF_A_TICK // 8)
    had = (little, HALF_A_TICK // 2 + little, HALF_A_TICK - 1, HALF_A_TICK, HALF_A_TICK + 1)
    steps = [(JOIN, 0, 0)]
    for number, stamps in enumerate(had, 1):
        steps += [(JOIN, number, 0), (CHARGE, number, stamps), (PREEMPTS, 0, number)]
        steps += [(PREEMPTS, number, 0)]
    check_steps(lab, steps, 1 << 33)


@pytest.mark.exercise("4.6", points=3)
def test_wrap(lab):
    """The same while the virtual times wrap around, and while they pass 2^63 and 2^32."""
    seeded = random.Random(lab.seed)
    for minimum in (-300_000_000, (1 << 63) - 300_000_000, (1 << 32) - 300_000_000):
        check_steps(lab, draw_steps(seeded, 300), minimum)


@pytest.mark.exercise("4.6", points=1)
def test_sleeper_around_the_wrap(lab):
    """A task sleeps while the virtual times wrap around: it is as far behind the least as at any
    other time, which is before the wrap."""
    steps = [(JOIN, 0, 0), (JOIN, 1, 0), (CHARGE, 0, 100_001_000), (ENQUEUE, 1, WOKEN)]
    steps += [(TICK, 0, 0), (PICK, 0, 0), (CHARGE, 1, 1000), (ENQUEUE, 1, PREEMPTED)]
    check_steps(lab, steps, -100_000_000)


@pytest.mark.exercise("4.6", points=1)
def test_far_apart(lab):
    """Virtual times that differ by more than 31 bits: the one that has had less goes first."""
    steps = [(JOIN, 0, 19), (JOIN, 1, 0), (CHARGE, 0, 40_000_000), (ENQUEUE, 0, PREEMPTED)]
    steps += [(ENQUEUE, 1, NEW), (PICK, 0, 0), (TICK, 1, 0), (PICK, 0, 0), (TICK, 0, 0)]
    check_steps(lab, steps, 1 << 40)


@pytest.mark.exercise("4.6", points=2)
def test_equal_shares(lab):
    """Jain's index of five equal threads is 0.99 or better."""
    count, ticks = 5, 100
    with threads(lab, SHARES, "shares", count, ticks, *[0] * count) as run:
        totals = pairs(run.answers())
    jain = sum(totals) ** 2 / (count * sum(total**2 for total in totals))
    assert jain >= 0.99, (
        f"Jain's index is {jain:.4f}: {[round(t / tick_stamps(lab), 1) for t in totals]} ticks"
    )
    used = sum(totals) / tick_stamps(lab)
    assert used >= 0.9 * ticks, "the processor stood still"


@pytest.mark.exercise("4.6", points=2)
def test_shares_by_weight(lab):
    """Threads of different niceness: each has its share, but for a turn."""
    seeded = random.Random(lab.seed)
    nice = [0, *(seeded.choice((-7, -5, -3, 3, 5, 7)) for _ in range(2))]
    turns = 150 if lab.mode == "icount" else 80
    with threads(lab, SHARES, "shares", len(nice), turns, *nice) as run:
        totals = pairs(run.answers())
    table = weights()
    whole = sum(table[each + 20] for each in nice)
    for each, total in zip(nice, totals, strict=True):
        wanted = sum(totals) * table[each + 20] / whole
        found, share = total / tick_stamps(lab), wanted / tick_stamps(lab)
        assert abs(found - share) <= QUANTUM + 1, (
            f"niceness {each} among {nice}: {found:.1f} ticks, not {share:.1f}"
        )


def check_thirds(lab, gains: list[int], allowed: float) -> None:
    """Each of three has got about 10 of 30 ticks."""
    ticks = [gain / tick_stamps(lab) for gain in gains]
    words = f"in 30 ticks the three got {[round(each, 1) for each in ticks]}"
    assert all(abs(each - 10) <= allowed for each in ticks), words


@pytest.mark.exercise("4.6", points=2)
def test_newcomer(lab):
    """A new thread gets its third, and not what the others have had before it came."""
    with threads(lab, FAIR, "newcomer") as run:
        totals = pairs(run.answers())
    before, after = totals[:2], totals[2:]
    gains = [after[0] - before[0], after[1] - before[1], after[2]]
    check_thirds(lab, gains, 4)


@pytest.mark.exercise("4.6", points=2)
def test_sleeper(lab):
    """Who has slept for 60 ticks does not get them all at once."""
    with threads(lab, FAIR, "sleeper") as run:
        totals = pairs(run.answers())
    before, after = totals[:3], totals[3:]
    gains = [late - early for early, late in zip(before, after, strict=True)]
    check_thirds(lab, gains, 5)


@pytest.mark.exercise("4.6", points=2, once=True)
def test_tick_in_the_class(lab):
    """A tick comes before each instruction of the class that runs with interrupts enabled: there
    should be none, as in the middle of a search for a task's place."""
    search(lab, "4.6", "fair_turns", {1: "a thread does not come to its end"})

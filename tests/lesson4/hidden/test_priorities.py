"""Exercise 4.4, hidden: feedback queues against a model, and loans of urgency against another."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, field

import pytest

from tests.lesson4.search import search
from tests.lesson4.support import MASK, PREEMPTED, WOKEN, YIELDED, Threads, threads

LOCKS = "tests/lesson4/hidden/locks.c"
LEVELS, LEVEL_0, NO_TASK, NONE = 8, 4, 999, 127
DEPTH = 8
UNLOCK = 100
TICK_US = 10_000
JOIN, ENQUEUE, PICK, CHARGE, TICK, DEQUEUE, _, PREEMPTS, DONATE, LEVEL = range(10)
FAKES = 8
STAMPS = 10_000_010  # a tick, about


def write_steps(run: Threads, words: list[int]) -> None:
    """Puts words into the array `steps` of the test's code."""
    data = struct.pack(f"<{len(words)}I", *(word & MASK for word in words))
    run.guest.write(run.address("steps"), data)


# ---- the queues -------------------------------------------------------------------------------


@dataclass
class Fake:
    """A task of the model."""

    nice: int = 0
    level: int = 0
    left: int = 0
    turn: int = 0
    donated: int = NONE

    @property
    def priority(self) -> int:
        """Its level, or what it was lent."""
        return min(self.level, self.donated)


class Model:
    """What kernel/task/sched_mlfq.c does, without the boost."""

    def __init__(self, stamps_per_tick: int, quantum: int) -> None:
        self.tasks = [Fake() for _ in range(FAKES)]
        self.queues: list[list[int]] = [[] for _ in range(LEVELS)]
        self.allotments = [
            (stamps_per_tick * quantum << max(0, level - LEVEL_0 + 1) // 2) - stamps_per_tick // 2
            for level in range(LEVELS)
        ]

    def step(self, step: int, number: int, value: int) -> int:
        """The same as run_step of class_steps.h."""
        steps = {
            JOIN: self.join,
            ENQUEUE: self.enqueue,
            PICK: self.pick,
            CHARGE: self.charge,
            TICK: self.tick,
            DEQUEUE: self.dequeue,
            PREEMPTS: self.preempts,
            DONATE: self.donate,
            LEVEL: self.level,
        }
        return int(steps[step](number, value) or 0)

    def join(self, number: int, value: int) -> None:
        """Begins where its niceness says."""
        task = self.tasks[number]
        task.nice, task.donated = value, NONE
        task.level, task.turn = (value + 20) // 5, 1
        task.left = self.allotments[task.level]

    def enqueue(self, number: int, value: int) -> None:
        """At the end, or at the front in the middle of a turn."""
        task = self.tasks[number]
        queue = self.queues[task.priority]
        queue.insert(0 if value == PREEMPTED and task.turn else len(queue), number)
        task.turn = 1

    def pick(self, _number: int, _value: int) -> int:
        """From the best queue."""
        best = next((queue for queue in self.queues if queue), None)
        return best.pop(0) if best else NO_TASK

    def charge(self, number: int, value: int) -> None:
        """Sinks when nothing is left."""
        task = self.tasks[number]
        task.left -= value
        if task.left <= 0:
            task.turn, task.level = 0, min(task.level + 1, LEVELS - 1)
            task.left = self.allotments[task.level]

    def tick(self, number: int, _value: int) -> bool:
        """Is the turn over?"""
        return self.tasks[number].turn == 0

    def dequeue(self, number: int, _value: int) -> None:
        """Out of its queue."""
        next(queue for queue in self.queues if number in queue).remove(number)

    def donate(self, number: int, value: int) -> None:
        """Somebody lends this urgency."""
        self.tasks[number].donated = value

    def preempts(self, number: int, value: int) -> bool:
        """Only who is more urgent does."""
        return self.tasks[number].priority < self.tasks[value].priority

    def level(self, number: int, _value: int) -> int:
        """Where it is."""
        return self.tasks[number].level


def draw_steps(seeded: random.Random, count: int) -> list[tuple[int, int, int]]:
    """Steps in an order that a scheduler could make: one task runs at a time, and only tasks that
    are not queued get in."""
    steps = [(JOIN, n, seeded.randrange(-20, 20)) for n in range(FAKES)]
    free, queued = set(range(FAKES)), set()
    while len(steps) < count - 1:
        number = seeded.choice(sorted(free)) if free else None
        kind = seeded.random()
        if kind < 0.35 and free:
            reason = seeded.choice((WOKEN, YIELDED, PREEMPTED, PREEMPTED))
            steps += [(TICK, number, 0), (ENQUEUE, number, reason)]
            free.remove(number)
            queued.add(number)
        elif kind < 0.6 and free:
            steps.append((CHARGE, number, seeded.randrange(1, 2 * STAMPS)))
            steps += [(TICK, number, 0), (LEVEL, number, 0)]
        elif kind < 0.65 and free:
            steps.append((DONATE, number, seeded.choice((NONE, NONE, 0, 2, 5))))
        elif kind < 0.7:
            steps.append((PREEMPTS, seeded.randrange(FAKES), seeded.randrange(FAKES)))
        elif kind < 0.75 and queued:
            gone = seeded.choice(sorted(queued))
            steps.append((DEQUEUE, gone, 0))
            queued.remove(gone)
            free.add(gone)
        elif queued:
            steps += [(PICK, 0, 0)] * len(queued)
            free |= queued
            queued.clear()
    return steps[: count - 1]


@pytest.mark.exercise("4.4", points=4, gate=True)
def test_queues_against_a_model(lab):
    """Hundreds of steps: joining, queueing for each reason, charging, ticks, donations."""
    seeded = random.Random(lab.seed)
    quantum = seeded.randrange(1, 4)
    steps = draw_steps(seeded, 650)
    with threads(lab, LOCKS, "class_steps", len(steps), quantum) as run:
        write_steps(run, [word for step in steps for word in step])
        stamps_per_tick, *found = run.answers()
    model = Model(stamps_per_tick, quantum)
    names = ("join", "enqueue", "pick", "charge", "tick", "(leaves)", "(donation)", "preempts",
             "(level)")  # fmt: skip
    for index, (step, number, value) in enumerate(steps):
        wanted = model.step(step, number, value)
        assert found[index] == wanted, (
            f"step {index}, {names[step]} of task {number} with {value}: {found[index]}, "
            f"and it should be {wanted}"
        )


def class_answers(lab, steps: list[tuple[int, int, int]], quantum: int = 2) -> list[int]:
    """The results of a few steps."""
    with threads(lab, LOCKS, "class_steps", len(steps), quantum) as run:
        write_steps(run, [word for step in steps for word in step])
        return run.answers()[1:]


@pytest.mark.exercise("4.4", points=2)
def test_gaming(lab):
    """Who sleeps just before each tick sinks like all others."""
    rounds = [(CHARGE, 0, 9 * STAMPS // 10), (TICK, 0, 0), (ENQUEUE, 0, WOKEN), (PICK, 0, 0)]
    steps = [(JOIN, 0, 0), *rounds, *rounds, *rounds, (LEVEL, 0, 0)]
    steps += [*(rounds * 8), (LEVEL, 0, 0)]
    found = class_answers(lab, steps, quantum=1)
    first, second = found[len(rounds) * 3 + 1], found[-1]
    assert first > 4, "three turns of almost a tick do not use up the allotment of one tick or two"
    assert second > first


@pytest.mark.exercise("4.4", points=2)
def test_lowest_level(lab):
    """Nobody sinks below level 7, and turns end there as well."""
    sink = [(CHARGE, 0, 4_000_000_000), (TICK, 0, 0), (LEVEL, 0, 0), (ENQUEUE, 0, PREEMPTED)]
    steps = [(JOIN, 0, 19), (JOIN, 1, 19), (ENQUEUE, 1, WOKEN)]
    steps += [*sink, (PICK, 0, 0), (PICK, 0, 0), *sink, (PICK, 0, 0)]
    found = class_answers(lab, steps)
    assert found[3:9] == [0, 1, 7, 0, 1, 0], "two tasks on the lowest level do not take turns"
    assert found[9:] == [0, 1, 7, 0, 0]


@pytest.mark.exercise("4.4", points=2)
def test_boost(lab):
    """Once a second all tasks are lifted to the levels of their niceness, those that sleep and
    those in the queues too."""
    nice = [10, -20, 0, -10]
    with threads(lab, LOCKS, "boost", *nice) as run:
        found = run.answers()
    assert found[:4] == [7] * 4, "they have not sunk"
    early, kept, late = found[4], found[5], found[6]
    assert (early, kept) == (0, 7), "tasks are lifted before a second is over"
    assert late == 1, "at the boost the turn is not over"
    assert found[7:11] == [6, 0, 4, 2], "tasks are not on the levels of their niceness"
    assert found[11:15] == [1, 3, 2, 0], "the queues still are in the old order"
    assert found[15] == 0, "the boost comes again at once"
    assert found[16] == LEVEL_0, "a task that sleeps is not lifted"
    assert found[17:19] == [LEVEL_0, LEVEL_0 + 1], (
        "after a boost a task does not have the whole allotment of its new level"
    )
    assert found[19] == 1, "a second after the first boost there is none"
    assert found[20:] == [1, 0], "after two seconds there is not one boost"


# ---- the loans --------------------------------------------------------------------------------


@dataclass
class Locker:
    """A thread of the model."""

    base: int
    donated: int = NONE
    held: list[int] = field(default_factory=list)
    waiting: int | None = None

    @property
    def priority(self) -> int:
        """Its own, or what it was lent."""
        return min(self.base, self.donated)


class Loans:
    """Mutexes and their threads, as the exercise describes them."""

    def __init__(self, levels: list[int], locks: int) -> None:
        self.threads = [Locker(level) for level in levels]
        self.owners: list[int | None] = [None] * locks
        self.waiters: list[list[int]] = [[] for _ in range(locks)]

    def lock(self, number: int, lock: int) -> None:
        """A thread takes a mutex, or waits for it."""
        if self.owners[lock] is None:
            self.take(number, lock)
            return
        self.waiters[lock].append(number)
        self.threads[number].waiting = lock
        lent = self.threads[number].priority
        at: int | None = lock
        for _ in range(DEPTH):
            if at is None:
                break
            owner = self.threads[self.owners[at]]
            if owner.priority > lent:
                owner.donated = lent
            at = owner.waiting

    def take(self, number: int, lock: int) -> None:
        """The mutex is the thread's."""
        self.owners[lock] = number
        self.threads[number].held.append(lock)

    def unlock(self, number: int, lock: int) -> None:
        """It is handed to the most urgent of those who wait."""
        self.threads[number].held.remove(lock)
        self.owners[lock] = None
        if self.waiters[lock]:
            best = min(self.waiters[lock], key=lambda each: self.threads[each].priority)
            self.waiters[lock].remove(best)
            self.threads[best].waiting = None
            self.take(best, lock)
            self.settle(best)
        self.settle(number)

    def settle(self, number: int) -> None:
        """What is lent to a thread comes from those who wait for what it holds."""
        thread = self.threads[number]
        lenders = [each for lock in thread.held for each in self.waiters[lock]]
        thread.donated = min([NONE, *(self.threads[each].priority for each in lenders)])

    def state(self) -> list[int]:
        """Urgencies and owners."""
        owners = [NO_TASK if owner is None else owner for owner in self.owners]
        return [thread.priority for thread in self.threads] + owners


def draw_commands(seeded: random.Random, nice: list[int], locks: int, count: int):
    """Commands that cannot end in a deadlock: mutexes are taken upwards only."""
    model = Loans([(each + 20) // 5 for each in nice], locks)
    commands, states = [], []
    while len(commands) < count:
        number = seeded.randrange(len(nice))
        thread = model.threads[number]
        if thread.waiting is not None:
            continue
        above = range(max(thread.held, default=-1) + 1, locks)
        if thread.held and (not above or seeded.random() < 0.4):
            lock = seeded.choice(thread.held)
            model.unlock(number, lock)
            commands.append((number, UNLOCK + lock))
        elif above:
            lock = seeded.choice(above)
            model.lock(number, lock)
            commands.append((number, lock))
        states.append(model.state())
        if not any(thread.waiting is None for thread in model.threads):
            break
    return commands, states[: len(commands)]


def check_commands(lab, nice: list[int], locks: int, commands, states) -> None:
    """Gives the commands to real threads, and compares the state after each."""
    size = len(nice) + locks
    with threads(lab, LOCKS, "commands", len(nice), locks, len(commands), *nice) as run:
        write_steps(run, [word for command in commands for word in command])
        found = run.answers()
    for index, (number, order) in enumerate(commands):
        now, wanted = found[index * size :][:size], states[index]
        verb = "unlocks" if order >= UNLOCK else "locks"
        words = f"command {index}, thread {number} {verb} mutex {order % UNLOCK}"
        count = len(nice)
        assert now[count:] == wanted[count:], f"{words}: the owners are {now[count:]}"
        assert now[:count] == wanted[:count], (
            f"{words}: the urgencies are {now[:count]}, and should be {wanted[:count]}"
        )


@pytest.mark.exercise("4.4", points=4, gate=True)
def test_loans_against_a_model(lab):
    """Six threads and four mutexes, at random: nested locks, several donors, releases in any order;
    after each step everybody is as urgent as it should be."""
    seeded = random.Random(lab.seed)
    for _ in range(2):
        nice = [seeded.randrange(-20, 15) for _ in range(6)]
        check_commands(lab, nice, 4, *draw_commands(seeded, nice, 4, 150))


@pytest.mark.exercise("4.4", points=2)
def test_chain_of_loans(lab):
    """Ten threads wait for each other; the one in a hurry at the end hurries eight of them. Then
    all release."""
    count = 11
    nice = [14] * 10 + [-20]
    model = Loans([(each + 20) // 5 for each in nice], count)
    commands = [(n, n) for n in range(10)] + [(n, n - 1) for n in range(1, 10)] + [(10, 9)]
    states = []
    for number, lock in commands:
        model.lock(number, lock)
        states.append(model.state())
    for number in range(10):
        for lock in [number] if number == 0 else [number - 1, number]:
            commands.append((number, UNLOCK + lock))
            model.unlock(number, lock)
            states.append(model.state())
    check_commands(lab, nice, count, commands, states)


@pytest.mark.exercise("4.4", points=2)
def test_two_donors_and_two_mutexes(lab):
    """A thread that is hurried by two keeps what the second one lends when the first has got its
    mutex."""
    plan = [(0, 0), (0, 1), (2, 1), (1, 0), (3, 1), (0, 100), (0, 101), (2, 101), (1, 100)]
    check_plan(lab, [14, -20, -5, 0], plan)


def check_plan(lab, nice: list[int], plan: list[tuple[int, int]]) -> None:
    """Gives these commands, and compares with the model."""
    model, states = Loans([(each + 20) // 5 for each in nice], 3), []
    for number, order in plan:
        if order >= UNLOCK:
            model.unlock(number, order - UNLOCK)
        else:
            model.lock(number, order)
        states.append(model.state())
    check_commands(lab, nice, 3, plan, states)


@pytest.mark.exercise("4.4", points=1)
def test_heir_by_a_loan(lab):
    """Of two that wait, the one that is hurried by a third gets the mutex, though by itself it is
    the less urgent one."""
    plan = [(0, 1), (1, 0), (2, 1), (1, 1), (3, 0), (0, 101), (1, 101), (2, 101), (1, 100)]
    check_plan(lab, [14, 14, 0, -20], plan)


@pytest.mark.exercise("4.4", points=2)
def test_inversion(lab):
    """With the clock: a calculation of 60 ticks does not hold up who waits for a mutex that is held
    for 4."""
    with threads(lab, LOCKS, "inversion") as run:
        first, ticks, second = run.answers()
    assert (first, second) == (1, 2), "the calculation ended first"
    assert ticks <= 6, f"the mutex was got after {ticks} ticks"


@pytest.mark.exercise("4.4", points=2)
def test_wake_up_delay(lab):
    """Among four calculations, who sleeps most of the time runs as soon as it wakes."""
    with threads(lab, LOCKS, "wake_up_delay") as run:
        (microseconds,) = run.answers()
    assert microseconds <= 1.5 * TICK_US, f"it once had to wait {microseconds} us"


@pytest.mark.exercise("4.4", points=1)
@pytest.mark.parametrize("wrong", ["lock_twice", "unlock_twice", "unlock_of_another"])
def test_wrong_use(lab, wrong):
    """Who locks twice, or unlocks what it does not hold, is told so by a panic."""
    with threads(lab, LOCKS, wrong) as run:
        run.guest.run_to("panic", goal=f"a panic, after {wrong}")


@pytest.mark.exercise("4.4", points=1)
def test_loan_without_a_change(lab):
    """Who waits for an equal lends it nothing, and does not move it in its queue."""
    with threads(lab, LOCKS, "equals_keep_their_places") as run:
        found = run.answers()
    assert found == [1, 2], "a loan that changes nothing has moved its task behind an equal one"


@pytest.mark.exercise("4.4", points=1)
def test_woken_in_vain(lab):
    """Who waits for a mutex is deaf to signals, and who is woken by anybody but its owner sleeps
    again."""
    with threads(lab, LOCKS, "woken_in_vain") as run:
        is_blocked, *found = run.answers()
    assert is_blocked, "a thread in mutex_lock sleeps not as TASK_BLOCKED"
    assert found == [7, 5], "a thread goes on behind mutex_lock while another one has the mutex"


@pytest.mark.exercise("4.4", points=1)
def test_handed_over_at_once(lab):
    """Who unlocks for a more urgent one gives the processor away before anything else."""
    with threads(lab, LOCKS, "unlock_in_a_hurry") as run:
        found = run.answers()
    assert found == [1, 2], "who waited, and is more urgent, does not run behind the unlock"


@pytest.mark.exercise("4.4", points=2, once=True)
def test_tick_anywhere(lab):
    """Three threads and a mutex, with a tick before each instruction of the exercise in turn."""
    wrong = {1: "a thread waits for the mutex for ever", 2: "two threads have the mutex at a time"}
    wrong |= {3: "the mutex is free, and still in a list"}
    assert search(lab, "4.4", "mutex_of_threads", wrong), "interrupts are never on"

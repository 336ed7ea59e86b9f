"""Exercise 4.4: mutexes and their threads, which a test plays, and a model of the loans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from labs.tools.grading.lab import Lab
from tests.lesson4.classes import NO_TASK, NONE
from tests.lesson4.played import Play, Played, played
from tests.support.met import Met

DEPTH = 8
UNLOCK, AGAIN = 100, 200  # orders: unlock, and unlock and lock again at once
MUTEX, SEMAPHORE = 16, 8  # bytes, at least
CASES = (
    *("two wait for one mutex", "unlocked and locked again while another one waits"),
    *("a loan", "a loan over two mutexes", "a loan that another mutex justifies"),
    *("an heir with a loan", "an heir by a loan", "a mutex that nobody waits for"),
)


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

    def __init__(self, nice: Sequence[int], locks: int) -> None:
        self.threads = [Locker((each + 20) // 5) for each in nice]
        self.owners: list[int | None] = [None] * locks
        self.waiters: list[list[int]] = [[] for _ in range(locks)]
        self.met = Met(*CASES)

    def obey(self, number: int, order: int) -> None:
        """A thread does what it is told to."""
        lock = order % UNLOCK
        if order >= AGAIN and self.waiters[lock]:
            self.met("unlocked and locked again while another one waits")
        if order >= UNLOCK:
            self.unlock(number, lock)
        if not UNLOCK <= order < AGAIN:
            self.lock(number, lock)

    def lock(self, number: int, lock: int) -> None:
        """A thread takes a mutex, or waits for it."""
        if self.owners[lock] is None:
            self.take(number, lock)
            return
        self.waiters[lock].append(number)
        self.threads[number].waiting = lock
        if len(self.waiters[lock]) == 2:
            self.met("two wait for one mutex")
        lent = self.threads[number].priority
        at: int | None = lock
        for depth in range(DEPTH):
            if at is None:
                break
            owner = self.threads[self.owners[at]]
            if owner.priority > lent:
                owner.donated = lent
                self.met("a loan over two mutexes" if depth else "a loan")
            at = owner.waiting

    def take(self, number: int, lock: int) -> None:
        """The mutex is the thread's."""
        self.owners[lock] = number
        self.threads[number].held.append(lock)

    def unlock(self, number: int, lock: int) -> None:
        """It is handed to the waiting thread of the highest priority."""
        self.threads[number].held.remove(lock)
        self.owners[lock] = None
        waiters = self.waiters[lock]
        if waiters:
            best = min(waiters, key=lambda each: self.threads[each].priority)
            if best != min(waiters, key=lambda each: self.threads[each].base):
                self.met("an heir by a loan")
            waiters.remove(best)
            self.threads[best].waiting = None
            self.take(best, lock)
            if self.settle(best) != NONE:
                self.met("an heir with a loan")
        else:
            self.met("a mutex that nobody waits for")
        if self.settle(number) != NONE:
            self.met("a loan that another mutex justifies")

    def settle(self, number: int) -> int:
        """What is lent to a thread comes from those who wait for what it holds."""
        thread = self.threads[number]
        lenders = [each for lock in thread.held for each in self.waiters[lock]]
        thread.donated = min([NONE, *(self.threads[each].priority for each in lenders)])
        return thread.donated

    def state(self) -> list[int]:
        """Priorities and owners."""
        owners = [NO_TASK if owner is None else owner for owner in self.owners]
        return [thread.priority for thread in self.threads] + owners


def draw_nice(seeded: Random) -> list[int]:
    """Six threads at four levels, so that some are equals."""
    levels = seeded.sample(range(-20, 15, 5), 4)
    levels += seeded.sample(levels, 2)
    seeded.shuffle(levels)
    return [level + seeded.randrange(5) for level in levels]


def draw_orders(seeded: Random, nice: list[int], locks: int, count: int) -> list[tuple[int, int]]:
    """Orders (thread, what) that cannot end in a deadlock: mutexes are taken upwards only. As many
    as this, or as it takes to meet all cases."""
    model = Loans(nice, locks)
    orders: list[tuple[int, int]] = []
    while len(orders) < count or (model.met.lacks() and len(orders) < 8 * count):
        number = seeded.randrange(len(nice))
        thread = model.threads[number]
        if thread.waiting is not None:
            continue
        above = range(max(thread.held, default=-1) + 1, locks)
        if thread.held and (not above or seeded.random() < 0.4):
            lock = seeded.choice(thread.held)
            again = lock == max(thread.held) and seeded.random() < 0.3
            order = lock + (AGAIN if again else UNLOCK)
        elif above:
            order = seeded.choice(above)
        else:
            continue
        model.obey(number, order)
        orders.append((number, order))
    model.met.require()
    return orders


def check_orders(lab: Lab, nice: list[int], locks: int, orders: Sequence[tuple[int, int]]) -> None:
    """Gives the orders to real threads, and compares priorities and owners after each."""
    with played(lab) as play:
        Lockers(play, nice, locks).play_all(orders)


class Lockers:
    """Threads that lock and unlock when they are told to. Each waits at a semaphore of its own."""

    def __init__(self, play: Play, nice: list[int], locks: int) -> None:
        self._play, self._nice = play, nice
        self._mutexes = [play.zeroed(MUTEX) for _ in range(locks)]
        self._gates = [play.zeroed(SEMAPHORE) for _ in nice]
        self._tasks: list[int] = []
        self._order = 0
        self._model = Loans(nice, locks)

    def play_all(self, orders: Sequence[tuple[int, int]]) -> None:
        """Plays, and compares."""
        self._play.run(self._main(orders), most=200 + 3 * len(orders))

    def _main(self, orders: Sequence[tuple[int, int]]) -> Played:
        play = self._play
        play.quiet()
        yield from play.begin_mlfq()
        for number, nice in enumerate(self._nice):
            self._tasks.append((yield from play.begin_nice(self._obey, number, nice)))
        yield "yield"
        for index, (number, self._order) in enumerate(orders):
            yield [("semaphore_up", self._gates[number]), ("yield",)]
            self._model.obey(number, self._order)
            self._compare(index, number)

    def _obey(self, number: int) -> Played:
        gate = ("semaphore_down", self._gates[number])
        yield [gate]
        while True:
            mutex = self._mutexes[self._order % UNLOCK]
            calls = [("mutex_unlock", mutex)] if self._order >= UNLOCK else []
            calls += [] if UNLOCK <= self._order < AGAIN else [("mutex_lock", mutex)]
            yield [*calls, gate]

    def _compare(self, index: int, number: int) -> None:
        count, wanted = len(self._nice), self._model.state()
        verb = ("locks", "unlocks", "unlocks and locks again")[self._order // UNLOCK]
        words = f"order {index}, thread {number} {verb} mutex {self._order % UNLOCK}"
        owners = [self._number_of(self._play.word(each)) for each in self._mutexes]
        assert owners == wanted[count:], f"{words}: the owners are {owners}"
        found = [priority_of(self._play, task) for task in self._tasks]
        assert found == wanted[:count], f"{words}: the priorities are {found}, not {wanted[:count]}"

    def _number_of(self, task: int) -> int:
        return self._tasks.index(task) if task in self._tasks else task or NO_TASK


def priority_of(play: Play, task: int) -> int:
    """A task's level, or the better one that it was lent."""
    donated = play.byte(task + play.task["donated"])
    return min(play.byte(task + play.task["level"]), donated - (donated >> 7 << 8))

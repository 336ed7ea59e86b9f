"""Exercise 4.4: feedback queues, and mutexes that inherit priority.

Not looked at here, but by the graders: what a new owner inherits from those who still wait, chains
of owners, several mutexes, what a boost does to those who sleep, and allotments over sleeps.
"""

from __future__ import annotations

import pytest

from tests.lesson4.played import Play, Played, played
from tests.lesson4.waiting import SEMAPHORE
from tests.support.told import Usual, expect, fail, told

MUTEX = 16  # bytes, at least
COMMON = (
    Usual(
        "owner == current",
        "mutex_lock takes a mutex that another task owns: it must sleep until it is the owner",
    ),
    Usual(
        "(?s)do not come to their end.*in mutex_lock",
        "mutex_unlock does not hand the mutex over to the task that waits, or does not wake it",
    ),
    Usual(
        "(?s)do not come to their end.*does not get the processor",
        "pick does not begin at level 0: the lowest task yields, and is picked again",
    ),
)
HINT = "make hint EX=4.4"


@pytest.mark.exercise("4.4", points=1, gate=True)
def test_urgent_threads_first(lab):
    """Threads of niceness 10, -10 and 0 begin together: -10 is the first to run. One of -20 that
    one of 10 wakes runs at once."""
    usually = (
        *COMMON,
        Usual("woken thread", "mlfq_preempts is true for a woken task of a lower level number"),
        "pick does not begin at level 0, or join gives each niceness the same level",
    )
    ran: list[int] = []
    with told(usually, HINT), played(lab) as play:
        play.run(urgent_first(play, ran))
        *first, woken, waker = ran
        found = [{1: 10, 2: -10, 3: 0}.get(number) for number in first]
        expect("the order of niceness in which three threads ran", found, [-10, 0, 10])
        what = "the woken thread of niceness -20 (4) and its waker of 10 (5), as they went on"
        expect(what, [woken, waker], [4, 5])


def urgent_first(play: Play, ran: list[int]) -> Played:
    """Three threads, and one that another one wakes."""
    gate = play.zeroed(SEMAPHORE)

    def say(number: int):
        ran.append(number)
        yield from ()

    def is_woken(number: int):
        yield "semaphore_down", gate
        ran.append(number)

    def wakes(number: int):
        yield "semaphore_up", gate
        ran.append(number)

    play.quiet()
    yield from play.begin_mlfq()
    for number, nice in enumerate((10, -10, 0), 1):
        yield from play.begin_nice(say, number, nice)
    yield from play.await_ends()
    yield from play.begin_nice(is_woken, 4, -20)
    yield "yield"
    yield from play.begin_nice(wakes, 5, 10)
    yield from play.await_ends()


@pytest.mark.exercise("4.4", points=1)
def test_nobody_starves(lab):
    """A thread that only computes sinks to level 7, and is lifted again within a second."""
    usually = (
        *COMMON,
        Usual("boost has lifted", "tick never calls boost, or next_boost is never reached"),
        "charge does not lower the level when nothing is left of the allotment",
    )
    with told(usually, HINT), played(lab) as play:
        low, high = levels_of_a_calculation(play)
        expect("the level of a thread of niceness 0 that has computed for two seconds", low, 7)
        expect("its level at most a second and a half later: the boost has lifted it to", high, 4)


def levels_of_a_calculation(play: Play) -> tuple[int, int]:
    """Where a thread arrives that computes for 200 ticks at most, and where it is lifted to within
    150."""
    found: list[int] = []

    def compute(low: bool, ticks: int):
        start = play.clock()
        while (level_of(play) < 7) == low and play.ticks_since(start) < ticks:
            yield play.busy_ticks(2)
        found.append(level_of(play))

    def sink_and_rise(_argument: int):
        yield from compute(True, 200)
        yield from compute(False, 150)

    def main():
        yield from play.fast_clock()
        yield from play.begin_mlfq()
        yield from play.begin_nice(sink_and_rise, 0, 0)
        yield from play.await_ends()

    play.run(main())
    return found[0], found[1]


def level_of(play: Play) -> int:
    """At which level the thread is that plays."""
    return play.byte(play.current + play.task["level"])


def priority_of(play: Play) -> int:
    """The same, or what it was lent."""
    lent = play.byte(play.current + play.task["donated"])
    return min(level_of(play), lent - (lent >> 7 << 8))


@pytest.mark.exercise("4.4", points=1)
def test_mutex(lab):
    """Three threads yield while they hold the mutex; no other one gets in. mutex_unlock hands it
    over: what locks it again at once gets it after the one that waits."""
    usually = (
        *COMMON,
        Usual("locks again", "mutex_unlock frees the mutex, and does not hand it over"),
        "mutex_lock returns while another task owns the mutex: it sleeps in a loop until then",
    )
    then = "make replay TEST=test_mutex, then: locks"
    entered_by: list[int] = []
    with told(usually, then), played(lab) as play:
        play.run(exclusion(play, entered_by))
        *found, first, second = entered_by
        entered = [f"{number} {way}" for number, way in zip(found, ("in", "out") * 6, strict=False)]
        expect("times that three threads enter the mutex and leave it", len(found), 12)
        if found[0::2] != found[1::2]:
            fail(f"one thread entered the mutex before the other had left: {', '.join(entered)}")
        what = "thread 1 unlocks, and locks again at once, while thread 2 waits; they enter as"
        expect(what, [first, second], [2, 1])


def exclusion(play: Play, found: list[int]) -> Played:
    """Three threads that say who they are as they enter and leave, and two that lock after each
    other."""
    mutex = play.zeroed(MUTEX)
    lock, unlock = ("mutex_lock", mutex), ("mutex_unlock", mutex)

    def stay_inside(number: int):
        for _ in range(2):
            yield lock
            found.append(number)
            yield [("yield",), ("yield",)]
            found.append(number)
            yield [unlock, ("yield",)]

    def enter_again(number: int):
        yield [lock, ("yield",), unlock, lock]
        found.append(number)
        yield unlock

    def enter(number: int):
        yield lock
        found.append(number)
        yield unlock

    play.quiet()
    for number in (1, 2, 3):
        yield from play.begin(stay_inside, number)
    yield from play.await_ends()
    yield from play.begin(enter_again, 1)
    yield from play.begin(enter, 2)
    yield from play.await_ends()


@pytest.mark.exercise("4.4", points=1, gate=True)
def test_a_loan(lab):
    """The holder of a mutex has the priority of the task that waits, until it is unlocked."""
    usually = (
        *COMMON,
        Usual("while a task of level 0", "mutex_lock does not call donate before it sleeps"),
        "mutex_unlock does not return the loans",
    )
    then = "make replay TEST=test_a_loan, then: locks, runqueue"
    said: list[int] = []
    with told(usually, then), played(lab) as play:
        play.run(one_loan(play, said))
        before, during, *rest = said
        expect("the level of a holder of niceness 10", before, 6)
        expect("its level while a task of level 0 waits for the mutex", during, 0)
        expect(
            "after mutex_unlock: the old holder's level 6, the holder (7) and the waiter (8) that "
            "went on, in any order",
            sorted(rest),
            [6, 7, 8],
        )


def one_loan(play: Play, said: list[int]) -> Played:
    """Who holds the mutex says its priority before, during and after the loan."""
    mutex, gate, done = play.zeroed(MUTEX), play.zeroed(SEMAPHORE), play.zeroed(SEMAPHORE)

    def hold_first(number: int):
        yield "mutex_lock", mutex
        said.append(priority_of(play))
        yield [("semaphore_up", done), ("semaphore_down", gate)]
        said.append(priority_of(play))
        yield "mutex_unlock", mutex
        said.append(priority_of(play))
        said.append(number)

    def enter(number: int):
        yield "mutex_lock", mutex
        said.append(number)
        yield "mutex_unlock", mutex

    play.quiet()
    yield from play.begin_mlfq()
    yield from play.begin_nice(hold_first, 7, 10)
    yield "semaphore_down", done
    yield from play.begin_nice(enter, 8, -20)
    yield [("yield",), ("semaphore_up", gate)]
    yield from play.await_ends()

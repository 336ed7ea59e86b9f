"""Exercise 4.4: feedback queues, and mutexes that inherit priority.

Not looked at here, but by the graders: what a new owner inherits from those who still wait, chains
of owners, several mutexes, what a boost does to those who sleep, and allotments over sleeps.
"""

from __future__ import annotations

import pytest

from tests.lesson4.support import threads
from tests.support.told import Usual, expect, fail, told

LOCKS = "tests/lesson4/threads/locks.c"
COMMON = (
    Usual(
        "owner == current",
        "mutex_lock takes a mutex that another task owns: it must sleep until it is the owner",
    ),
    Usual(
        "(?s)for ever.*in mutex_lock",
        "mutex_unlock does not hand the mutex over to the task that waits, or does not wake it",
    ),
    Usual(
        "(?s)for ever.*does not get the processor",
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
    with told(usually, HINT), threads(lab, LOCKS, "urgent_first") as run:
        *first, woken, waker = run.answers()
        found = [{1: 10, 2: -10, 3: 0}.get(number) for number in first]
        expect("the order of niceness in which three threads ran", found, [-10, 0, 10])
        what = "the woken thread of niceness -20 (4) and its waker of 10 (5), as they went on"
        expect(what, [woken, waker], [4, 5])


@pytest.mark.exercise("4.4", points=1)
def test_nobody_starves(lab):
    """A thread that only computes sinks to level 7, and is lifted again within a second."""
    usually = (
        *COMMON,
        Usual("boost has lifted", "tick never calls boost, or next_boost is never reached"),
        "charge does not lower the level when nothing is left of the allotment",
    )
    with told(usually, HINT), threads(lab, LOCKS, "lifted") as run:
        low, high = run.answers()
        expect("the level of a thread of niceness 0 that has computed for two seconds", low, 7)
        expect("its level at most a second and a half later: the boost has lifted it to", high, 4)


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
    with told(usually, then), threads(lab, LOCKS, "exclusion") as run:
        *found, first, second = run.answers()
        entered = [f"{number} {way}" for number, way in zip(found, ("in", "out") * 6, strict=False)]
        expect("times that three threads enter the mutex and leave it", len(found), 12)
        if found[0::2] != found[1::2]:
            fail(f"one thread entered the mutex before the other had left: {', '.join(entered)}")
        what = "thread 1 unlocks, and locks again at once, while thread 2 waits; they enter as"
        expect(what, [first, second], [2, 1])


@pytest.mark.exercise("4.4", points=1, gate=True)
def test_a_loan(lab):
    """The holder of a mutex has the priority of the task that waits, until it is unlocked."""
    usually = (
        *COMMON,
        Usual("while a task of level 0", "mutex_lock does not call donate before it sleeps"),
        "mutex_unlock does not return the loans",
    )
    then = "make replay TEST=test_a_loan, then: locks, runqueue"
    with told(usually, then), threads(lab, LOCKS, "one_loan") as run:
        before, during, *rest = run.answers()
        expect("the level of a holder of niceness 10", before, 6)
        expect("its level while a task of level 0 waits for the mutex", during, 0)
        expect(
            "after mutex_unlock: the old holder's level 6, the holder (7) and the waiter (8) that "
            "went on, in any order",
            sorted(rest),
            [6, 7, 8],
        )

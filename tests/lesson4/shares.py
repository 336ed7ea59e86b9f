"""Exercise 4.6: who gets how much of the processor, by QEMU's record of the ticks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from labs.tools.grading.lab import Lab
from tests.lesson4.played import Play, Played, played

Last = Callable[[Play, list[int], int], Played]


def shares(lab: Lab, *nice: int, ticks: int) -> list[int]:
    """How many ticks find each of some threads at its calculation, by QEMU's record."""
    found: list[int] = []
    with played(lab, record=True) as play:

        def main() -> Played:
            yield from play.fast_clock()
            yield from play.use("fair")
            play.preempt_disable()
            tasks = yield from begin_all(play, nice)
            before = len(play.ticks())
            yield "msleep", 10 * ticks
            found.extend(play.ticks_of(*tasks, since=before))

        play.run(main())
    return found


def begin_all(play: Play, nice: Sequence[int]) -> Played:
    """Threads that only compute, each as nice as this; before the first one runs."""
    tasks = []
    before = play.interrupts(False)
    for each in nice:
        task = yield from play.begin(play.spin)
        if each:
            yield "sched_set_nice", task, each
        tasks.append(task)
    play.interrupts(before)
    return tasks


def gains(lab: Lab, count: int, last: Last, alone: int, together: int) -> list[int]:
    """How many ticks some threads that compute, and a last one, get of those at the end. `last`
    lets them alone for this many, and begins it."""
    found: list[int] = []
    with played(lab, record=True) as play:

        def main() -> Played:
            yield from play.fast_clock()
            yield from play.use("fair")
            tasks = yield from begin_all(play, [0] * count)
            yield from last(play, tasks, alone)
            before = len(play.ticks())
            yield "msleep", 10 * together
            found.extend(play.ticks_of(*tasks, since=before))

        play.run(main())
    return found


def comes_late(play: Play, tasks: list[int], ticks: int) -> Played:
    """The last begins when the others have run."""
    yield "msleep", 10 * ticks
    tasks.append((yield from play.begin(play.spin)))


def sleeps_first(play: Play, tasks: list[int], ticks: int) -> Played:
    """The last sleeps while the others run."""

    def sleeper(_argument: int) -> Played:
        yield "msleep", 10 * ticks
        yield from play.spin(0)

    tasks.append((yield from play.begin(sleeper)))
    yield "msleep", 10 * ticks + 10

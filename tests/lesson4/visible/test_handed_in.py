"""What is handed in beside the code: the measurement, and the answers' form.

The kernel prints its own figures. So QEMU's record is asked whether labs/lesson4/switches.c ran:
how often `yield` came back to another thread, and in which thread ticks interrupted the work.
"""

from __future__ import annotations

from functools import partial

import pytest

from labs.tools.course.handed_in import NUMBERS
from tests.lesson2.support import recorded_traps
from tests.support.given_code import Watch, changes, states, unit_of
from tests.support.handed_in import answer_of, has_own_figures, has_prediction, serial
from tests.support.told import require

SOURCE, TIMER = "switches.c", 32
INSTRUCTIONS_A_ROUND = 2000  # of the work, at least


def watched(lab, script, icount, **settings):
    """What the kernel prints for pingpong or quantum, if it has done that."""
    unit = unit_of(lab.build("build/lesson4/kernel.elf"), SOURCE)
    words = [command.split() for command in script.split("; ")]
    are_games = words[0][0] == "pingpong"
    watch = Watch(lab, unit, "yield" if are_games else "")
    said = serial(lab, script, icount=icount, extra=watch.options(), **settings)
    if are_games:
        require_games(watch.text(), words)
    else:
        ((_, hz, rounds),) = words
        seconds = int(rounds) * INSTRUCTIONS_A_ROUND * 2**icount / 1e9
        require_turns(watch.text(), unit, int(hz) * seconds, said)
    return said


def require_games(record, games):
    """Two threads have yielded to each other, and where they have spaces, CR3 was another one."""
    seen = states(record)
    threads, spaces = (changes(values) for values in zip(*seen, strict=True)) if seen else (0, 0)
    least = sum(int(rounds) for *_, rounds in games)
    least_spaces = sum(int(rounds) for *_, other, rounds in games if other == "1")
    require(
        threads >= least and spaces >= least_spaces,
        f"the kernel prints what {least} rounds of pingpong cost; QEMU has seen yield return to"
        f" another stack {threads} times, and with another CR3 {spaces} times",
    )


def require_turns(record, unit, ticks, said):
    """Timer interrupts came in the work, half as many as it takes at least, and half of the
    switches that the kernel has counted are seen from one to the next."""
    from labs.lesson4.measure import SHARE

    traps = (trap for trap in recorded_traps(record) if trap.vector == TIMER)
    stacks = [trap.registers["ESP"] for trap in traps if unit.holds(trap.eip)]
    counted = sum(int(switches) for *_, switches in SHARE.findall(said))
    require(
        2 * len(stacks) >= ticks and 2 * changes(stacks) >= counted - 10,
        f"the kernel prints that there were {counted} switches; QEMU has seen {len(stacks)} ticks"
        f" in the work of quantum, {changes(stacks)} on another stack than the one before",
    )


@pytest.mark.exercise("4.M", points=2, host=True)
def test_prediction(lab):
    """measurement.json has a prediction and a result for each question."""
    from labs.lesson4.measure import QUESTIONS

    has_prediction(lab, QUESTIONS)


@pytest.mark.exercise("4.M", points=8, gate=True, host=True)
def test_figures(lab):
    """Its figures are those of this kernel, measured again."""
    from labs.lesson4.measure import figures_of

    has_own_figures(lab, partial(figures_of, partial(watched, lab)))


@pytest.mark.exercise("4.A", points=0, host=True)
@pytest.mark.parametrize("number", NUMBERS)
def test_answered(lab, number):
    """Each question has an answer."""
    answer_of(lab, number)

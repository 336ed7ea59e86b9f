"""What is handed in beside the code: the measurement, and the answers' form.

The kernel prints its own figures. So QEMU's record is asked whether there were as many interrupts
of the timer, and traps of those kinds.
"""

from __future__ import annotations

import re
from functools import partial

import pytest

from labs.tools.course.handed_in import NUMBERS
from tests.lesson2.support import recorded_traps
from tests.support.handed_in import answer_of, has_own_figures, has_prediction, serial
from tests.support.told import fail

ACKNOWLEDGED = re.compile(r"^pic_interrupt irq 0 ", re.MULTILINE)
OTHER_TICKS = 1000  # before the work and between
INT3, PAGE_FAULT = 3, 14


def watched(lab, script, **settings):
    """What the kernel prints when it measures ticks or traps, if there were any."""
    are_traps, log = script == "roundtrip", lab.scratch / "record"
    log.unlink(missing_ok=True)
    record = ("-d", "int") if are_traps else ("-trace", "pic_interrupt")
    said = serial(lab, script, extra=(*record, "-D", str(log)), **settings)
    seen = log.read_text(errors="replace") if log.exists() else ""
    if are_traps:
        require_traps(seen)
    else:
        require_ticks(said, len(ACKNOWLEDGED.findall(seen)))
    return said


def require_traps(record: str) -> None:
    """INT3 and page faults have happened, in ring 0 and in ring 3."""
    seen = {(trap.vector, trap.ring) for trap in recorded_traps(record)}
    for kind in ((vector, ring) for vector in (INT3, PAGE_FAULT) for ring in (0, 3)):
        if kind not in seen:
            fail(f"the kernel prints what traps cost; (vector, ring) {kind} is none that QEMU saw")


def require_ticks(said: str, seen: int) -> None:
    """The timer has interrupted as often as the kernel says, and not much more often."""
    from labs.lesson2.measure import TICK

    told = sum(int(ticks) for *_, ticks in TICK.findall(said))
    if not told <= seen <= told + OTHER_TICKS:
        fail(f"the kernel prints that there were {told} ticks; QEMU has seen {seen}")


@pytest.mark.exercise("2.M", points=2, host=True)
def test_prediction(lab):
    """measurement.json has a prediction and a result for each question."""
    from labs.lesson2.measure import QUESTIONS

    has_prediction(lab, QUESTIONS)


@pytest.mark.exercise("2.M", points=8, gate=True, host=True)
def test_figures(lab):
    """Its figures are those of this kernel, measured again."""
    from labs.lesson2.measure import figures_of

    has_own_figures(lab, partial(figures_of, partial(watched, lab)))


@pytest.mark.exercise("2.A", points=0, host=True)
@pytest.mark.parametrize("number", NUMBERS)
def test_answered(lab, number):
    """Each question has an answer."""
    answer_of(lab, number)

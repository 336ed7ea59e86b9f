"""What is handed in beside the code: the measurement, and the answers' form."""

from __future__ import annotations

from functools import partial

import pytest

from labs.tools.course.handed_in import NUMBERS
from labs.tools.grading.lab import ROOT
from tests.lesson2.support import recorded_traps
from tests.lesson3.support import with_files
from tests.support.building import make
from tests.support.handed_in import answer_of, has_own_figures, has_prediction
from tests.support.told import fail

GATE = 0x80
LEAST_CALLS = 300  # by INT 0x80, of callcost null, twice


def serial(lab, script):
    """What the kernel prints when it has user/callcost.c. These are its own figures: QEMU's record
    is asked whether a program has made calls."""
    make("user-programs")
    program = (ROOT / "build/user/bin/callcost").read_bytes()
    log = lab.scratch / "record"
    log.unlink(missing_ok=True)
    files = with_files(lab, {"bin/callcost": program}, "-d", "int", "-D", str(log))
    said = lab.run(script, icount=0, guest_limit=60, **files).check().serial
    traps = recorded_traps(log.read_text(errors="replace") if log.exists() else "")
    calls = sum((trap.vector, trap.ring) == (GATE, 3) for trap in traps)
    if calls < LEAST_CALLS:
        fail(f"the kernel prints what calls cost; QEMU has seen {calls} calls by INT 0x80")
    return said


@pytest.mark.exercise("3.M", points=2, host=True)
def test_prediction(lab):
    """measurement.json has a prediction and a result for each question."""
    from labs.lesson3.measure import QUESTIONS

    has_prediction(lab, QUESTIONS)


@pytest.mark.exercise("3.M", points=8, gate=True, host=True)
def test_figures(lab):
    """Its figures are those of this kernel, measured again."""
    from labs.lesson3.measure import figures_of

    has_own_figures(lab, partial(figures_of, partial(serial, lab)))


@pytest.mark.exercise("3.A", points=0, host=True)
@pytest.mark.parametrize("number", NUMBERS)
def test_answered(lab, number):
    """Each question has an answer."""
    answer_of(lab, number)

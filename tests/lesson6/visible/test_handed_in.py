"""What is handed in beside the code: the measurement, and the answers' form.

The kernel prints its own figures. So QEMU's record is asked whether a program has forked, and had
page faults: one for each of its own pages, and those that the kernel has counted.
"""

from __future__ import annotations

from functools import partial

import pytest

from labs.tools.course.handed_in import NUMBERS
from labs.tools.grading.lab import ROOT
from tests.lesson2.support import recorded_traps
from tests.lesson3.support import with_files
from tests.support.building import make
from tests.support.handed_in import answer_of, has_own_figures, has_prediction
from tests.support.told import require

PAGE_FAULT, GATE = 14, 0x80
FORKS = {2, 120, 190}  # fork, clone and vfork
LEAST_FORKS = 8  # of each `memcost cow`


def watched(lab, script, **settings):
    """What the kernel prints when it has user/memcost.c, if that has run."""
    make("user-programs")
    files = {"bin/memcost": (ROOT / "build/user/bin/memcost").read_bytes()}
    log = lab.scratch / "record"
    log.unlink(missing_ok=True)
    record = with_files(lab, files, "-d", "int", "-D", str(log))
    said = lab.run(script, **settings, **record).check().serial
    require_faults(log.read_text(errors="replace") if log.exists() else "", script, said)
    return said


def require_faults(record, script, said):
    """A program has forked as often as asked, each own page was touched, each fault was one."""
    from labs.lesson6.measure import FAULTS

    traps = [trap for trap in recorded_traps(record) if trap.ring == 3]
    forks = sum(trap.vector == GATE and trap.registers["EAX"] in FORKS for trap in traps)
    faults = sum(trap.vector == PAGE_FAULT for trap in traps)
    games = [words.split() for words in script.split("; ") if " cow " in words]
    pages = sum(int(pages) for *_, pages, _ in games)
    counted = sum(int(faults) for faults, *_ in FAULTS.findall(said))
    require(
        forks >= LEAST_FORKS * len(games) and faults >= pages + counted // 2,
        f"the kernel prints what {LEAST_FORKS * len(games)} forks with {pages} pages cost, and"
        f" {counted} faults; QEMU has seen {forks} forks and {faults} page faults from ring 3",
    )


@pytest.mark.exercise("6.M", points=2, host=True)
def test_prediction(lab):
    """measurement.json has a prediction and a result for each question."""
    from labs.lesson6.measure import QUESTIONS

    has_prediction(lab, QUESTIONS)


@pytest.mark.exercise("6.M", points=8, gate=True, host=True)
def test_figures(lab):
    """Its figures are those of this kernel, measured again."""
    from labs.lesson6.measure import figures_of

    has_own_figures(lab, partial(figures_of, partial(watched, lab)))


@pytest.mark.exercise("6.A", points=0, host=True)
@pytest.mark.parametrize("number", NUMBERS)
def test_answered(lab, number):
    """Each question has an answer."""
    answer_of(lab, number)

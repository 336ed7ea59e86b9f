"""Are the answers that are handed in right? Two of them the submitted kernel gives itself."""

from __future__ import annotations

import re

import pytest

from labs.tools.course.handed_in import NUMBERS
from labs.tools.grading.lab import ROOT
from tests.lesson3.support import with_files
from tests.support.building import make
from tests.support.handed_in import is_right

FAULTS = re.compile(r"^faults: (\d+) faults, \d+ to write; (\d+) pages present", re.MULTILINE)


def counted(lab, command):
    """What the kernel's command `faults` counts for a program: faults, and pages."""
    make("user-programs")
    names = ("hello", "memcost")
    programs = {f"bin/{each}": (ROOT / "build/user/bin" / each).read_bytes() for each in names}
    files = with_files(lab, programs)
    return FAULTS.search(lab.run(f"faults 1 {command}", **files).check().serial)


def faults(lab):
    """Answer 1."""
    return int(counted(lab, "/bin/hello")[1])


def pages(lab):
    """Answer 2."""
    return int(counted(lab, "/bin/memcost read 100 7")[2])


@pytest.mark.exercise("6.A", points=5, host=True)
@pytest.mark.parametrize("number", NUMBERS)
def test_answer(lab, number):
    """The answer to an open question: it names what the question asks for."""
    if number in "12" and lab.core:
        pytest.skip("the command that counts is breadth")
    is_right(lab, number, {"1": faults, "2": pages})

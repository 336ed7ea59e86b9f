"""What is handed in beside the code: the measurement, and the answers' form.

The kernel and the student's seekrw make the random reads of `make lab` once more. How many requests
that takes is not their word alone: QEMU has seen the same ones, at the places of the seed.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial

import pytest

from labs.tools.course.handed_in import NUMBERS
from labs.tools.grading.lab import ROOT
from labs.tools.guest.initramfs import archive
from labs.tools.guest.programs import busybox, guest_root
from tests.support.handed_in import answer_of, has_own_figures, has_prediction

SEEKRW = "build/user/bin/seekrw"


def lab_machine(lab, command):
    """The machine of `make lab`, with this kernel, and this seekrw."""
    programs = lab.scratch / "bin"
    programs.mkdir(exist_ok=True)
    shutil.copy(lab.build(SEEKRW), programs)
    files = lab.scratch / "initramfs"
    files.write_bytes(archive(guest_root(programs, busybox(), (), command)))
    return lab.config(None, initramfs=files, memory=64, icount=None)


@pytest.mark.exercise("S.M", points=2, host=True)
def test_prediction(lab):
    """measurement.json has a prediction and a result for each question."""
    from labs.storage.measure import QUESTIONS

    has_prediction(lab, QUESTIONS)


@pytest.mark.exercise("S.M", points=8, gate=True, host=True)
def test_figures(lab):
    """Its figures are those of this kernel, measured again."""
    from labs.storage.measure import TOOL, figures_of

    tool = replace(lab, root=ROOT, boxed=False, core=False).build(TOOL)
    has_own_figures(lab, partial(figures_of, partial(lab_machine, lab), tool=tool))


@pytest.mark.exercise("S.A", points=0, host=True)
@pytest.mark.parametrize("number", NUMBERS)
def test_answered(lab, number):
    """Each question has an answer."""
    answer_of(lab, number)

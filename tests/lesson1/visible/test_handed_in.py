"""What is handed in beside the code: the measurement, and the answers' form."""

from __future__ import annotations

import shutil
from functools import partial

import pytest

from labs.tools.course.handed_in import NUMBERS
from labs.tools.grading.build_tool import BuildFailure, run_tool
from labs.tools.grading.graded_tree import is_plain_file
from tests.support.handed_in import answer_of, has_own_figures, has_prediction

LOADER = ("stage2.o", "load_elf.o")  # what a graded tree may have as objects only


def boot_disk(lab, sectors):
    """Builds a boot disk that is read this many sectors per call; returns its directory."""
    lab.build("build/lesson1/boot.img")
    directory = f"build/reads-{sectors}"
    (lab.root / directory).mkdir(exist_ok=True)
    for name in LOADER:
        if not is_plain_file(lab.root, f"build/lesson1/{name}"):
            raise BuildFailure(f"build/lesson1/{name} is not a file")
        shutil.copy2(lab.root / "build/lesson1" / name, lab.root / directory / name)
    words = ["LESSON=1", f"OUT={directory}", "KERNEL=build/lesson1/kernel.elf"]
    words += [f"READ_SECTORS={sectors}", f"{directory}/boot.img"]
    run_tool(["make", "-s", *words], lab.root, lab.boxed)
    return lab.root / directory


@pytest.mark.exercise("1.M", points=2, host=True)
def test_prediction(lab):
    """measurement.json has a prediction and a result for each question."""
    from labs.lesson1.measure import QUESTIONS

    has_prediction(lab, QUESTIONS)


@pytest.mark.exercise("1.M", points=8, gate=True, host=True)
def test_figures(lab):
    """Its figures are those of this kernel, measured again."""
    from labs.lesson1.measure import figures_of

    def disk(sectors):
        return boot_disk(lab, sectors)

    has_own_figures(lab, partial(figures_of, disk, lab.build("build/lesson1/kernel.elf")))


@pytest.mark.exercise("1.A", points=0, host=True)
@pytest.mark.parametrize("number", NUMBERS)
def test_answered(lab, number):
    """Each question has an answer."""
    answer_of(lab, number)

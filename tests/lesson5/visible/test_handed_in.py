"""What is handed in beside the code: the measurement, and the answers' form.

The kernel prints its own figures. So QEMU's record is asked how often page_alloc and page_free came
back to labs/lesson5/fragments.c, which takes all memory and gives it back.
"""

from __future__ import annotations

from functools import partial

import pytest

from labs.tools.course.handed_in import NUMBERS
from tests.support.given_code import BLOCK, Watch, unit_of
from tests.support.handed_in import answer_of, has_own_figures, has_prediction, serial
from tests.support.told import require

SOURCE = "fragments.c"
LEAST_PAGES = 8192  # free ones, of a machine with 64 MiB


def watched(lab, script, **settings):
    """What the kernel prints for fragment, if all those pages were taken and given back."""
    from labs.lesson5.measure import FREE

    unit = unit_of(lab.build("build/lesson5/kernel.elf"), SOURCE)
    seen = {}
    for function in ("page_alloc", "page_free"):
        watch = Watch(lab, unit, function)
        said = serial(lab, script, extra=watch.options(), **settings)
        seen[function] = len(BLOCK.findall(watch.text()))
    pages = [int(pages) for _, pages in FREE.findall(said)]
    require(
        min(pages, default=0) >= LEAST_PAGES and min(seen.values()) >= sum(pages),
        f"the kernel prints that it took and freed {pages} pages; QEMU has seen page_alloc return"
        f" {seen['page_alloc']} times, and page_free {seen['page_free']} times",
    )
    return said


@pytest.mark.exercise("5.M", points=2, host=True)
def test_prediction(lab):
    """measurement.json has a prediction and a result for each question."""
    from labs.lesson5.measure import QUESTIONS

    has_prediction(lab, QUESTIONS)


@pytest.mark.exercise("5.M", points=8, gate=True, host=True)
def test_figures(lab):
    """Its figures are those of this kernel, measured again."""
    from labs.lesson5.measure import figures_of

    has_own_figures(lab, partial(figures_of, partial(watched, lab)))


@pytest.mark.exercise("5.A", points=0, host=True)
@pytest.mark.parametrize("number", NUMBERS)
def test_answered(lab, number):
    """Each question has an answer."""
    answer_of(lab, number)

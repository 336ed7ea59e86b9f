"""What is handed in beside the code: the measurement, and the answers' form."""

from __future__ import annotations

from functools import partial

import pytest

from labs.tools.course.handed_in import NUMBERS
from tests.handed_in import answer_of, has_own_figures, has_prediction, serial


@pytest.mark.exercise("5.M", points=2, host=True)
def test_prediction(lab):
    """measurement.json has a prediction and a result for each question."""
    from labs.lesson5.measure import QUESTIONS

    has_prediction(lab, QUESTIONS)


@pytest.mark.exercise("5.M", points=8, gate=True, host=True)
def test_figures(lab):
    """Its figures are those of this kernel, measured again."""
    from labs.lesson5.measure import figures_of

    has_own_figures(lab, partial(figures_of, partial(serial, lab)))


@pytest.mark.exercise("5.A", points=0, host=True)
@pytest.mark.parametrize("number", NUMBERS)
def test_answered(lab, number):
    """Each question has an answer."""
    answer_of(lab, number)

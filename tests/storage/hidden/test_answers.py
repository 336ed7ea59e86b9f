"""Are the answers that are handed in right?"""

from __future__ import annotations

import pytest

from labs.tools.course.handed_in import NUMBERS
from tests.support.handed_in import is_right


@pytest.mark.exercise("S.A", points=5, host=True)
@pytest.mark.parametrize("number", NUMBERS)
def test_answer(lab, number):
    """The answer to an open question: it names what the question asks for."""
    is_right(lab, number, {})

"""What the tests of a lesson's measurement and answers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import pytest

from labs.tools.course.handed_in import (
    HandedInError,
    Measurement,
    MeasurementError,
    answers_path,
    compare,
    measurement_path,
    measuring,
    read_answers,
    read_measurement,
    same_answer,
    sources_of,
)
from labs.tools.grading.graded_tree import SubmissionError, submitted
from labs.tools.grading.lab import ROOT, Lab

if TYPE_CHECKING:
    from labs.tools.course.measurement import Question

AUTHORS = "labs/author.mk"


def is_reference(lab: Lab) -> bool:
    """Whether the tree is the authors' own, which hands in no measurement."""
    return lab.handed_in is None and (lab.root / AUTHORS).is_file()


def serial(lab: Lab, script: str, **settings: object) -> str:
    """What the kernel prints when it runs a script; `settings` are those of Lab.run."""
    return lab.run(script, **settings).check().serial


def data_of(lab: Lab, path: str, remedy: str) -> bytes:
    """A file that is handed in. Raises HandedInError, with what makes one."""
    try:
        return submitted(lab.handed_in or lab.root, path)
    except SubmissionError as error:
        raise HandedInError(f"{error}: {remedy}") from error


def measurement_of(lab: Lab) -> Measurement:
    """The measurement that is handed in. Raises HandedInError."""
    path = measurement_path(lab.lesson)
    return read_measurement(data_of(lab, path, f"{measuring(lab.lesson)} writes it"), path)


def has_prediction(lab: Lab, questions: Sequence[Question]) -> None:
    """Each question has a prediction and a result. How far they are apart does not matter."""
    if is_reference(lab):
        return
    handed, path = measurement_of(lab), measurement_path(lab.lesson)
    for name, numbers in (("prediction", handed.prediction), ("result", handed.result)):
        absent = ", ".join(each.key for each in questions if each.key not in numbers)
        assert not absent, f'{path}: "{name}" has no {absent}: {measuring(lab.lesson)}'


def has_own_figures(lab: Lab, figures_of: Callable[[str], Mapping[str, int]]) -> None:
    """The figures are those that this kernel gives when it is measured again."""
    from labs.tools.debugging.stamps import NotReachedError

    if lab.core:
        pytest.skip("the commands that measure are breadth")
    sources = sources_of(lab.root, lab.lesson)
    handed = Measurement(sources, {}, {}, {}) if is_reference(lab) else measurement_of(lab)
    compare_sources = handed.sources == sources
    try:
        figures = figures_of(sources) if compare_sources else {}
    except (MeasurementError, NotReachedError) as error:
        pytest.fail(f"your kernel cannot be measured: {error}", pytrace=False)
    if not is_reference(lab):
        compare(handed, sources, figures, lab.lesson)


def answer_of(lab: Lab, number: str) -> str:
    """An answer that is handed in; there must be one."""
    path = answers_path(lab.lesson)
    answer = read_answers(data_of(lab, path, "your tree came with it"), path)[number]
    assert answer, f"{path}: no answer is written between the quotes"
    return answer


def is_right(lab: Lab, number: str, of_kernel: Mapping[str, Callable[[Lab], int]]) -> None:
    """An answer is that of the reference's file, or what a function finds in this kernel."""
    answer, path = answer_of(lab, number), answers_path(lab.lesson)
    if number in of_kernel:
        right = str(of_kernel[number](lab))
    else:
        right = read_answers((ROOT / path).read_bytes(), path)[number]
    assert same_answer(answer, right), f"{path}: answer {number} is not right"

"""What an experiment consists of, and its page: question, prediction, method, plots, three
sentences, and what would change the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from labs.storage.pages import Page, plotting
from labs.tools.course.measurement import Question

Data = dict[str, Any]
"""Figures, as JSON has them."""

Table = tuple[str, Sequence[str], Sequence[Sequence[object]]]
"""Caption, columns, rows."""


@dataclass(frozen=True)
class Where:
    """Where an experiment runs. build: the folder of the kernel; small: as little as shows the
    shape, for the tests."""

    build: Path
    small: bool = False


@dataclass(frozen=True)
class Experiment:
    """One experiment; the functions get what `measure` returned.

    result: the figure that `ask` asks for. plots: each with its caption; the second argument is the
    prediction, or None. sentences: exactly three. checks: what must hold, by what it says.
    """

    number: int
    title: str
    chinese: str
    question: str
    expected: str
    ask: Question
    method: str
    changes: str
    measure: Callable[[Where], Data]
    result: Callable[[Data], float]
    plots: Callable[[Data, float | None], Sequence[tuple[Figure, str]]]
    tables: Callable[[Data], Sequence[Table]]
    sentences: Callable[[Data], tuple[str, str, str]]
    checks: Callable[[Data], Mapping[str, bool]]
    guest: bool = True

    @property
    def name(self) -> str:
        """Of its files."""
        return f"x{self.number}"


def page_of(experiment: Experiment, data: Data, predicted: float | None) -> Page:
    """The page of a run."""
    page = Page(experiment.name, f"X{experiment.number}: {experiment.title}", experiment.chinese)
    result, unit = experiment.result(data), experiment.ask.unit
    guess = "none" if predicted is None else f"{predicted:,.6g} {unit}"
    page.text("Question", "问题", experiment.question)
    page.text("Expected", "预期", experiment.expected)
    page.text(
        "Prediction", "预测",
        f"{experiment.ask.text} Predicted: {guess}. Measured: {result:,.6g} {unit}.",
    )  # fmt: skip
    page.text("Method", "方法", experiment.method)
    with plotting():
        for figure, caption in experiment.plots(data, predicted):
            page.plot(figure, caption)
    for table in experiment.tables(data):
        page.table(*table)
    page.text("What it says", "结论", *experiment.sentences(data))
    page.text("What would change the answer", "什么会改变答案", experiment.changes)
    held = [(said, "holds" if holds else "DOES NOT HOLD") for said, holds in
            experiment.checks(data).items()]  # fmt: skip
    page.table("Checked", ["statement", ""], held)
    return page

"""What an experiment consists of, and its page: question, prediction, method, plots, three
sentences, and what would change the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from matplotlib.figure import Figure

from labs.storage.pages import Page, plotting, shown
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
class About:
    """What an experiment asks and expects, before anything is measured. guest: it needs a kernel
    with programs."""

    number: int
    title: str
    chinese: str
    question: str
    expected: str
    ask: Question
    method: str
    changes: str
    guest: bool = True

    @property
    def name(self) -> str:
        """Of its files."""
        return f"x{self.number}"


class Experiment(Protocol):
    """A module that is one experiment; the functions get what `measure` returned."""

    ABOUT: About

    def measure(self, where: Where) -> Data:
        """The figures."""

    def result(self, data: Data) -> float:
        """The figure that `ask` asks for."""

    def plots(self, data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
        """Each with its caption."""

    def tables(self, data: Data) -> Sequence[Table]:
        """At least one."""

    def sentences(self, data: Data) -> tuple[str, str, str]:
        """What the figures say."""

    def checks(self, data: Data) -> Mapping[str, bool]:
        """What must hold, by what it says."""


def counted(value: float, unit: str) -> str:
    """A figure with its unit, in as many digits as say something: "2 requests", "1 request"."""
    text = shown(value)
    return f"{text} {unit.removesuffix('s') if text == '1' and unit != 'ms' else unit}"


def page_of(experiment: Experiment, data: Data, predicted: float | None) -> Page:
    """The page of a run."""
    about = experiment.ABOUT
    page = Page(about.name, f"X{about.number}: {about.title}", about.chinese)
    result, unit = experiment.result(data), about.ask.unit
    guess = "nothing" if predicted is None else counted(predicted, unit)
    page.text("Question", "问题", about.question)
    page.text("Expected", "预期", about.expected)
    said = f"Predicted: {guess}.", f"Measured: {counted(result, unit)}."
    page.text("Prediction", "预测", about.ask.text, *said)
    page.text("Method", "方法", about.method)
    with plotting():
        for figure, caption in experiment.plots(data, predicted):
            page.plot(figure, caption)
    for table in experiment.tables(data):
        page.table(*table)
    page.text("What it says", "结论", *experiment.sentences(data))
    page.text("What would change the answer", "什么会改变答案", about.changes)
    page.checked(experiment.checks(data))
    return page

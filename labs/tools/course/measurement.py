"""What the measurements share: a prediction first, then a table as CSV, a plot as SVG, and the file
that is handed in (labs/tools/course/handed_in.py)."""

from __future__ import annotations

import argparse
import csv
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labs.tools.course import handed_in
from labs.tools.course.exercises import ROOT
from labs.tools.course.handed_in import MeasurementError
from labs.tools.machine.command import Options
from labs.tools.machine.machine import run
from labs.tools.machine.patience import told
from labs.tools.machine.qemu_command import Config, ConfigError
from labs.tools.machine.result import GuestFailure

if TYPE_CHECKING:  # it takes half a second, and the grader draws nothing
    from matplotlib.figure import Figure

# The same figures give the same file: no date, no random names, and text that stays text.
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "apprentice",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
}


SHOWN = 100  # characters of a line


@dataclass(frozen=True)
class Question:
    """A number that is predicted: its name in files, what it is, and in which unit."""

    key: str
    text: str
    unit: str


def command_line() -> argparse.ArgumentParser:
    """The options that make measure gives; a measurement may add its own."""
    parser = Options("make measure")
    parser.add_argument("--build", type=Path, required=True, help="where the kernel was built")
    parser.add_argument("--out", type=Path, default=Path("build/measure"))
    parser.add_argument("--predict", default="", help="the predictions, in the questions' order")
    parser.add_argument("--hand-in", type=Path, default=ROOT, help="a tree to write to")
    return parser


def ended(measure: Callable[[], None], *causes: type[Exception]) -> int:
    """Measures. Returns the exit status; what goes wrong, for one of these causes too, is said in
    one line."""
    try:
        with told(lambda: "make measure: the machines run"):
            measure()
    except (ConfigError, GuestFailure, MeasurementError, *causes) as error:
        print(f"make measure: {error}", file=sys.stderr)
        return 1
    return 0


def run_script(build: Path, script: str, **settings: Any) -> str:
    """What the kernel in `build` prints while it runs the script; `settings` are Config's. Raises
    GuestFailure when it does not end well."""
    config = Config(boot="direct", kernel=build / "kernel.elf", script=script, **settings)
    return run(config).check().serial


def printed(pattern: re.Pattern[str], output: str, count: int) -> list[Any]:
    """What a pattern finds in what a kernel printed, this many times. Raises MeasurementError."""
    lines = pattern.findall(output)
    if len(lines) != count:
        end = output.strip().rpartition("\n")[2]
        raise MeasurementError(
            f"the kernel gave {len(lines)} figures, and should have given {count}. Its last line: "
            + end[:SHOWN]
        )
    return lines


def predictions(questions: Sequence[Question], given: str) -> dict[str, float]:
    """What a person expects, by question: from `given` (make's PREDICT), or asked at a terminal.
    Raises MeasurementError without a number for each question."""
    print("Before you look, write down what you expect:")
    for number, question in enumerate(questions, 1):
        print(f"  {number}. {question.text} ({question.unit})")
    if not given and sys.stdin.isatty() and sys.stdout.isatty():
        values = [asked(number, each) for number, each in enumerate(questions, 1)]
    else:
        values = [number_of(word) for word in given.replace(",", " ").split()]
    if len(values) != len(questions) or None in values:
        raise MeasurementError(
            f"it begins with your prediction, {len(questions)} numbers in the order of the "
            f"questions, such as PREDICT='{' '.join('1' for _ in questions)}'; it got "
            + (repr(given) if given else "none")
        )
    print(flush=True)
    return {each.key: value for each, value in zip(questions, values, strict=True)}


def asked(number: int, question: Question) -> float:
    """What a person at the terminal answers, asked until it is a number."""
    while (value := number_of(input(f"  {number}. in {question.unit}: "))) is None:
        print("     a number, please, such as 250 or 0.5")
    return value


def number_of(word: str) -> float | None:
    """A number as a person types it; None for anything else."""
    try:
        value = float(word)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def finished(
    lesson: int,
    options: argparse.Namespace,
    questions: Sequence[Question],
    predicted: Mapping[str, float],
    results: Mapping[str, float],
    figures_of: Callable[[str], Mapping[str, int]],
) -> None:
    """The end of a measurement: prints and draws each prediction beside the result, and writes the
    file that is handed in. figures_of: for what sources_of says, what the grader measures again."""
    print(f"\n{'':<50} {'prediction':>12} {'result':>12}")
    for number, each in enumerate(questions, 1):
        name = f"{number}. {each.key.replace('_', ' ')}, {each.unit}"
        print(f"{name:<50} {predicted[each.key]:>12,.6g} {results[each.key]:>12,.6g}")
    save_plot(plot_predictions(questions, predicted, results), options.out / "prediction.svg")
    sources = handed_in.sources_of(ROOT, lesson)
    figures = figures_of(sources)
    path = handed_in.write_measurement(
        options.hand_in, lesson, sources, predicted, results, figures
    )
    name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    print(f"\nBoth are drawn in {options.out}/prediction.svg. Hand in {name};")
    print("after a change of your kernel, measure again.")


@contextmanager
def new_plot(width: float, height: float) -> Iterator[Figure]:
    """A picture to draw in, in our style; inches."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        yield Figure(figsize=(width, height), layout="constrained")


def plot_predictions(
    questions: Sequence[Question], predicted: Mapping[str, float], results: Mapping[str, float]
) -> Figure:
    """A picture a question: the prediction and the result."""
    with new_plot(2.2 * len(questions) + 1, 3) as figure:
        pictures = figure.subplots(1, len(questions), squeeze=False)[0]
        for axes, each in zip(pictures, questions, strict=True):
            heights = [predicted[each.key], results[each.key]]
            bars = axes.bar(["prediction", "result"], heights, color=["C1", "C0"], width=0.6)
            axes.bar_label(bars, [f"{height:,.4g}" for height in heights])
            axes.set_axisbelow(True)
            axes.set_title(each.key.replace("_", " "), loc="left")
            axes.set(ylabel=each.unit)
            axes.margins(y=0.15)
    return figure


def write_csv(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Writes a table; the first row's keys are the columns."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def save_plot(figure: Figure, path: Path) -> None:
    """Writes the plot, byte for byte the same for the same figures."""
    import matplotlib

    with matplotlib.rc_context(STYLE):
        figure.savefig(path, format="svg", metadata={"Date": None})


def fit_line(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float]:
    """Slope and intercept of the line of least squares."""
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    slope /= sum((x - mean_x) ** 2 for x in xs)
    return slope, mean_y - slope * mean_x

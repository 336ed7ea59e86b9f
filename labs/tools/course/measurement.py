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
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
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
FARTHEST = 100
"""Times too much, or too little, that the picture of predictions has room for."""
TIMES_OFF = {0.01: "1/100", 0.1: "1/10", 1 / 3: "1/3", 1: "right", 3: "3", 10: "10", 100: "100"}


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
        print(f"{name:<50} {digits(predicted[each.key]):>12} {digits(results[each.key]):>12}")
    save_plot(plot_predictions(questions, predicted, results), options.out / "prediction.svg")
    sources = handed_in.sources_of(ROOT, lesson)
    figures = figures_of(sources)
    path = handed_in.write_measurement(
        options.hand_in, lesson, sources, predicted, results, figures
    )
    name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    print(f"\nBoth are drawn in {options.out}/prediction.svg. Hand in {name};")
    print("after a change of your kernel, measure again.")


def digits(figure: float) -> str:
    """A figure with the digits that say something, and no exponent where 9 digits do."""
    return f"{figure:,.0f}" if 1e5 <= abs(figure) < 1e9 else f"{figure:,.6g}"


@contextmanager
def new_plot(width: float, height: float) -> Iterator[Figure]:
    """A picture to draw in, in our style; inches."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        yield Figure(figsize=(width, height), layout="constrained")


def name_curves(
    axes: Axes, title: str = "", curves: Sequence[Artist] = (), columns: int = 1
) -> None:
    """What the curves are, and the picture's title, above the picture: they cover nothing there."""
    curves = curves or axes.get_legend_handles_labels()[0]
    axes.legend(handles=curves, ncols=columns, loc="lower left", bbox_to_anchor=(0, 1), fontsize=9,
                title=title, title_fontsize=12, alignment="left", borderaxespad=0.2)  # fmt: skip


def plot_predictions(
    questions: Sequence[Question], predicted: Mapping[str, float], results: Mapping[str, float]
) -> Figure:
    """A line a question: how many times its result a prediction is. The scale is the same for all
    questions and lessons, so that right looks right, and wrong by three is as far off in each."""
    with new_plot(9, 0.35 * len(questions) + 1.3) as figure:
        axes = figure.subplots()
        axes.axvline(1, color="C0", linewidth=1)
        write_columns(axes, -1, "prediction", "result")
        for row, each in enumerate(questions):
            expected, seen = predicted[each.key], results[each.key]
            off = times_off(expected, seen)
            place = min(max(off, 1 / FARTHEST), FARTHEST)
            mark = "o" if place == off else "<" if off < 1 else ">"
            axes.plot([1, place], [row, row], "-", color="C1", linewidth=1)
            axes.plot([place], [row], mark, color="C1")
            write_columns(axes, row, digits(expected), digits(seen))
        axes.set(xscale="log", xlim=(0.8 / FARTHEST, 1.25 * FARTHEST), ylim=(len(questions), -0.6))
        axes.set_xticks(list(TIMES_OFF), list(TIMES_OFF.values()))
        axes.minorticks_off()
        names = [f"{each.key.replace('_', ' ')}, {each.unit}" for each in questions]
        axes.set_yticks(range(len(questions)), names)
        axes.grid(visible=False, axis="y")
        axes.set(xlabel="your prediction, as a multiple of the result")
    return figure


def write_columns(axes: Axes, row: int, *words: str, points: int = 70) -> None:
    """Words on the right of a picture, in columns so wide, level with a row of it: no curve and no
    marker comes there."""
    for column, word in enumerate(words, 1):
        axes.annotate(word, (1, row), (points * column, 0), ("axes fraction", "data"),
                      "offset points", ha="right", va="center")  # fmt: skip


def times_off(expected: float, seen: float) -> float:
    """A prediction as a multiple of the result. Of nothing, only nothing is a multiple."""
    if expected == seen:
        return 1
    return expected / seen if seen else math.copysign(math.inf, expected)


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

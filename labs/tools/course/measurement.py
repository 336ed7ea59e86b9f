"""What the measurements share: a prediction first, then a table as CSV and a plot as SVG."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from labs.tools.machine.machine import run
from labs.tools.machine.patience import told
from labs.tools.machine.qemu_command import Config, ConfigError
from labs.tools.machine.result import GuestFailure

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


class MeasurementError(Exception):
    """The figures cannot be had, or cannot be right; the text says why."""


def command_line() -> argparse.ArgumentParser:
    """The options that make measure gives; a measurement may add its own."""
    parser = argparse.ArgumentParser(prog="make measure", allow_abbrev=False)
    parser.add_argument("--build", type=Path, required=True, help="where the kernel was built")
    parser.add_argument("--out", type=Path, default=Path("build/measure"))
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


def ask_prediction(questions: Sequence[str], path: Path) -> None:
    """Prints the questions; a person at a terminal answers them, and the answers go to a file."""
    print("Before you look, write down what you expect:")
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    answers = []
    for question in questions:
        print(f"  {question}")
        if is_terminal:
            answers.append(f"{question}\n    {input('    your prediction: ')}\n")
    if answers:
        path.write_text("".join(answers))
        print(f"Your predictions are in {path}.")
    print(flush=True)


def write_csv(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Writes a table; the first row's keys are the columns."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def save_plot(figure: Figure, path: Path) -> None:
    """Writes the plot, byte for byte the same for the same figures."""
    with matplotlib.rc_context(STYLE):
        figure.savefig(path, format="svg", metadata={"Date": None})


def fit_line(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float]:
    """Slope and intercept of the line of least squares."""
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    slope /= sum((x - mean_x) ** 2 for x in xs)
    return slope, mean_y - slope * mean_x

"""`make LESSON=2 measure`: what a timer tick takes away from the work, and what a trap costs.

    python -m labs.lesson2.measure --build build/lesson2 [--out build/measure]

Writes ticks.csv, roundtrips.csv and ticks.svg. QEMU runs the kernel as two processors: one executes
an instruction every nanosecond, the other every 1.024 microseconds (icount). Its time-stamp counter
counts nanoseconds, so that TSC cycles are instructions, and the figures are the same each time.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from labs.tools.course.handed_in import chosen
from labs.tools.course.measurement import (
    MeasurementError,
    Question,
    command_line,
    ended,
    finished,
    name_curves,
    new_plot,
    predictions,
    printed,
    run_script,
    save_plot,
    write_csv,
)
from labs.tools.machine.command import in_a_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

QUESTIONS = (
    Question(
        "a_tick",
        "How long does one timer tick take, from the interrupt until IRET is done?",
        "instructions",
    ),
    Question(
        "full_rate",
        "A processor executes one million instructions a second. At what tick rate does it spend"
        " all of its time in the timer handler?",
        "ticks a second",
    ),
    Question("INT3", "How long does INT3 take in user mode, there and back?", "instructions"),
    Question("page_fault", "And a page fault?", "instructions"),
)
TIMER_HERTZ = 1_193_182
HERTZ = (0, 20, 100, 200, 500, 1000, 2000, 5000, 10000, 20000)
GUEST_SECONDS = 600
KINDS_OF_TRIPS = 6  # nothing, INT3 and a page fault, each in ring 0 and in ring 3
TICK = re.compile(
    r"^ticktax: (\d+) Hz, (\d+) of (\d+) rounds, (\d+) TSC cycles, (\d+) ticks$", re.MULTILINE
)
TRIP = re.compile(r"^roundtrip: (.+) from ring (\d): (\d+) TSC cycles$", re.MULTILINE)


@dataclass(frozen=True)
class Processor:
    """One way to run the kernel: 2**shift ns for each instruction, and how much work it gets."""

    name: str
    shift: int
    rounds: int


PROCESSORS = (Processor("1000 MIPS", 0, 5000), Processor("1 MIPS", 10, 100))


@dataclass(frozen=True)
class TickRow:
    """One point of the sweep. `programmed` are the ticks that the timer was set to in that time;
    `loss_percent` is how much less work was done in it than without a timer."""

    processor: str
    hz: int
    rounds: int
    instructions: int
    ticks: int
    programmed: float
    loss_percent: float


def sweep(build: Path, processor: Processor) -> list[TickRow]:
    """Lets the kernel do its work under each rate of ticks."""
    script = "; ".join(f"ticktax {hz} {processor.rounds}" for hz in HERTZ)
    output = run_script(build, script, icount=processor.shift, guest_limit=GUEST_SECONDS)
    found = [tuple(map(int, line)) for line in TICK.findall(output)]
    if [hz for hz, *_ in found] != list(HERTZ):
        raise MeasurementError(
            f"not every rate of ticks was measured; the kernel printed: {output}"
        )
    _, rounds, _, stamps, _ = found[0]
    return [
        tick_row(processor, stamps / rounds, hz, done, passed, ticks)
        for hz, done, _, passed, ticks in found
    ]


def tick_row(
    processor: Processor, round_ns: float, hz: int, rounds: int, ns: int, ticks: int
) -> TickRow:
    """A line of the kernel's as a row; `round_ns` is what a round takes without ticks."""
    programmed = ns * 1e-9 * TIMER_HERTZ / divisor(hz) if hz else 0.0
    loss = 100 * (1 - rounds * round_ns / ns)
    instructions = ns >> processor.shift
    return TickRow(
        processor.name, hz, rounds, instructions, ticks, round(programmed, 2), round(loss, 6)
    )


def divisor(hz: int) -> int:
    """What the timer divides its own frequency by: drivers/clock/pit.c."""
    return min(65536, (TIMER_HERTZ + hz // 2) // hz)


def cost_of_tick(rows: Sequence[TickRow]) -> float:
    """The instructions that a tick costs, from the row with most ticks and the one without any."""
    base, most = rows[0], max(rows, key=lambda row: row.ticks)
    return (most.instructions - base.instructions * most.rounds / base.rounds) / most.ticks


def round_trips(build: Path) -> dict[str, int]:
    """The instructions of a trap by kind and ring, the trapping one and IRET included."""
    found = TRIP.findall(run_script(build, "roundtrip", icount=0, guest_limit=GUEST_SECONDS))
    taken = {(kind, ring): int(stamps) for kind, ring, stamps in found}
    kinds = dict.fromkeys(kind for kind, _ in taken if kind != "nothing")
    if not kinds:
        raise MeasurementError("the kernel printed no round trips")
    return {
        f"{kind}, ring {ring}": taken[kind, ring] - taken["nothing", ring] + 1
        for kind in kinds
        for ring in ("0", "3")
    }


def plot(rows: Sequence[TickRow], trips: dict[str, int]) -> Figure:
    """Three pictures: the loss, the ticks that arrived, the round trips."""
    with new_plot(10, 6.4) as figure:
        grid = figure.add_gridspec(2, 2, width_ratios=(3, 2))
        plot_loss(figure.add_subplot(grid[:, 0]), rows)
        plot_delivered(figure.add_subplot(grid[0, 1]), rows)
        plot_trips(figure.add_subplot(grid[1, 1]), trips)
    return figure


def rows_of(rows: Sequence[TickRow], processor: Processor) -> list[TickRow]:
    """The rows of one processor, the one without ticks left out."""
    return [row for row in rows if row.processor == processor.name and row.hz]


def plot_loss(axes: Axes, rows: Sequence[TickRow]) -> None:
    """The loss, and the lines that the cost of one tick predicts, above 100 % as well."""
    for processor in PROCESSORS:
        mine = rows_of(rows, processor)
        cost = cost_of_tick([row for row in rows if row.processor == processor.name])
        per_second = 1e9 / (1 << processor.shift)
        line = [100 * cost * row.hz / per_second for row in mine]
        hertz = [row.hz for row in mine]
        axes.loglog(hertz, line, "-", color="grey", linewidth=1, zorder=0)
        label = f"{processor.name}, {cost:.0f} instructions a tick"
        axes.loglog(hertz, [row.loss_percent for row in mine], "o", label=label)
    axes.set(xlabel="ticks a second, as programmed", ylabel="work lost, %")
    axes.axhline(100, color="grey", linewidth=0.5, linestyle=":", zorder=0)
    name_curves(axes, "The tick tax")


def plot_delivered(axes: Axes, rows: Sequence[TickRow]) -> None:
    """The share of the programmed ticks that arrived."""
    for processor in PROCESSORS:
        mine = [row for row in rows_of(rows, processor) if row.programmed >= 1]
        shares = [100 * row.ticks / row.programmed for row in mine]
        axes.semilogx([row.hz for row in mine], shares, "o-", linewidth=1, label=processor.name)
    axes.set(xlabel="ticks a second", ylabel="ticks delivered, %", ylim=(0, 110))
    name_curves(axes, columns=2)


def plot_trips(axes: Axes, trips: dict[str, int]) -> None:
    """One bar a kind."""
    bars = axes.barh(list(trips), list(trips.values()), color="C0")
    axes.bar_label(bars, padding=3)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set(xlabel="instructions, there and back", xlim=(0, 1.15 * max(trips.values())))


def report(rows: Sequence[TickRow], trips: dict[str, int]) -> None:
    """Prints both tables."""
    print("processor      Hz     work lost   ticks   delivered")
    for row in rows:
        share = f"{100 * row.ticks / row.programmed:9.1f} %" if row.programmed else ""
        line = f"{row.processor:<9} {row.hz:7} {row.loss_percent:11.4f} % {row.ticks:7} {share}"
        print(line.rstrip())
    print("\nThere and back, in instructions:")
    for kind, instructions in trips.items():
        print(f"  {kind:<20} {instructions:4}")


def results_of(rows: Sequence[TickRow], trips: dict[str, int]) -> dict[str, float]:
    """What was predicted, as it came out."""
    slow = PROCESSORS[1]
    cost = cost_of_tick([row for row in rows if row.processor == slow.name])
    return {
        "a_tick": trips["timer tick, ring 0"],
        "full_rate": round(1e9 / (1 << slow.shift) / cost),
        "INT3": trips["int3, ring 3"],
        "page_fault": trips["page fault, ring 3"],
    }


def figures_of(run: Callable[..., str], sources: str) -> dict[str, int]:
    """What the grader measures again: work under ticks, and traps. `run` runs a script and returns
    what the kernel printed."""
    slow, figures = PROCESSORS[1], {}
    points = [
        (chosen(sources, f"rate {i}", 500, 6000), chosen(sources, f"rounds {i}", 10, 60))
        for i in (1, 2, 3)
    ]
    script = "; ".join(f"ticktax {hz} {rounds}" for hz, rounds in points)
    output = run(script, icount=slow.shift, guest_limit=GUEST_SECONDS)
    for number, (_, _, _, stamps, ticks) in enumerate(printed(TICK, output, len(points)), 1):
        figures[f"instructions of work {number}"] = int(stamps) >> slow.shift
        figures[f"ticks of work {number}"] = int(ticks)
    for kind, ring, stamps in printed(TRIP, run("roundtrip", icount=0), KINDS_OF_TRIPS):
        figures[f"{kind} from ring {ring}"] = int(stamps)
    return figures


def own_figures(build: Path, out: Path, sources: str) -> dict[str, int]:
    """The same of the kernel that was built here."""
    return figures_of(partial(run_script, build), sources)


def measure(options: argparse.Namespace) -> None:
    """Runs the whole measurement and writes its files."""
    build, out = options.build, options.out
    out.mkdir(parents=True, exist_ok=True)
    predicted = predictions(QUESTIONS, options.predict)
    rows = [row for processor in PROCESSORS for row in sweep(build, processor)]
    fast = [row for row in rows if row.processor == PROCESSORS[0].name]
    trips = round_trips(build) | {"timer tick, ring 0": round(cost_of_tick(fast))}
    write_csv(out / "ticks.csv", [vars(row) for row in rows])
    table = [{"kind": kind, "instructions": count} for kind, count in trips.items()]
    write_csv(out / "roundtrips.csv", table)
    save_plot(plot(rows, trips), out / "ticks.svg")
    report(rows, trips)
    print(f"\nThe figures are in {out}/ticks.csv and roundtrips.csv, the plot in {out}/ticks.svg")
    figures = partial(own_figures, build, out)
    finished(2, options, QUESTIONS, predicted, results_of(rows, trips), figures)


def main() -> int:
    """Runs the command line; returns the exit status."""
    options = command_line().parse_args()
    return ended(lambda: measure(options))


if __name__ == "__main__":
    sys.exit(in_a_line("make measure", main))

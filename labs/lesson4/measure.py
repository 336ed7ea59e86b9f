"""`make LESSON=4 measure`: the price of a switch, how much work is left at each quantum, and how
long a task that wakes has to wait for the processor.

    python -m labs.lesson4.measure --build build/lesson4 [--out build/measure]

Writes switches.csv, quanta.csv, delays.csv and switches.svg. The kernel counts instructions (QEMU
executes one a nanosecond) and loads of CR3; QEMU has no TLB like a processor's, so the misses come
from a model of one, which is given the pages that the two threads and the kernel touch. The figures
are the same each time.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import OrderedDict
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

NAPS = (
    "Four threads compute, in turns of 20 ms. A fifth one sleeps for 20 ms, again and again. How"
    " long after the end of its sleep does it get the processor, on average, under rr?"
)
QUESTIONS = (
    Question(
        "switch",
        "How long does it take from one thread's yield to the other's return?",
        "instructions",
    ),
    Question(
        "misses",
        "Two programs touch 32 pages each between switches, the kernel 9. How many TLB misses does"
        " a switch cost, if the TLB has 64 entries, and loading CR3 empties it?",
        "misses",
    ),
    Question("global_misses", "How many with global kernel pages?", "misses"),
    Question(
        "turn",
        "At what length of a turn does a 1 MIPS processor lose a tenth of its work?",
        "ms",
    ),
    Question("rr", NAPS, "ms"),
    Question("mlfq", "Under mlfq?", "ms"),
    Question("fair", "Under fair?", "ms"),
)
PAGES = (0, 8, 16, 24, 28, 32, 40, 48, 56, 64, 96, 128, 192, 256, 384, 512)
SHOWN_PAGES = 120  # in the plot: from 64 on the three curves are one
ROUNDS = 200
ENTRIES = 64
WAYS = 4
KERNEL_PAGES = 9  # of 4 KiB, which the kernel touches in a switch: code, stacks, tasks, tables
MISS_CYCLES = 134  # of a page walk: 1207 cycles for 9 pages were measured on a Pentium 4
CLASSES = ("rr", "mlfq", "fair")
SPINNERS, SPIN_SHIFT = 4, 4  # threads that compute; each instruction takes 16 ns
WARM_UP, COUNTED = 4, 8  # turns in the model
GUEST_SECONDS = 600
GAME = re.compile(
    r"^pingpong: (\d+) pages, (\d) spaces, (\d+) rounds, (\d+) TSC cycles, (\d+) loads$",
    re.MULTILINE,
)
NAP = re.compile(
    r"^spin: a task that sleeps for \d+ ms gets the processor (\d+) us late$", re.MULTILINE
)
SHARE = re.compile(
    r"^quantum: (\d+) Hz, (\d+) rounds, (\d+) TSC cycles, (\d+) switches$", re.MULTILINE
)


@dataclass(frozen=True)
class Case:
    """What a switch leaves of the TLB. spaces: of the two threads, in the kernel's measurement."""

    name: str
    spaces: int
    flushes: bool
    keeps_global: bool


CASES = (
    Case("same CR3", 1, False, False),
    Case("other CR3, global kernel pages", 2, True, True),
    Case("other CR3", 2, True, False),
)


@dataclass(frozen=True)
class Processor:
    """One way to run the kernel: 2**shift ns for each instruction; what it works, and its ticks."""

    name: str
    shift: int
    rounds: int
    hertz: tuple[int, ...]


PROCESSORS = (
    Processor("1000 MIPS", 0, 200_000, (20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)),
    Processor("1 MIPS", 10, 1000, (20, 50, 100, 200, 300, 500)),
)


@dataclass(frozen=True)
class SwitchRow:
    """One point: per switch, the instructions (without those that touch the pages), the loads of
    CR3, the misses of the model, and the cycles that both make."""

    case: str
    pages: int
    instructions: float
    loads: float
    misses: float
    cycles: float


@dataclass(frozen=True)
class QuantumRow:
    """One point: turns of this many milliseconds, task switches, and the work that is left."""

    processor: str
    quantum_ms: float
    switches: int
    useful_percent: float


@dataclass(frozen=True)
class DelayRow:
    """Under this class, a task that naps next to computing threads gets the processor this many
    milliseconds after it wakes, on average."""

    sched_class: str
    threads: int
    delay_ms: float


class Tlb:
    """A set-associative TLB that forgets the entry that was not used for longest."""

    def __init__(self, entries: int = ENTRIES) -> None:
        self.sets: list[OrderedDict[tuple[str, int], None]] = [
            OrderedDict() for _ in range(entries // WAYS)
        ]
        self.misses = 0

    def use(self, owner: str, page: int) -> None:
        """Looks a page up; a miss brings it in."""
        entries = self.sets[page % len(self.sets)]
        key = (owner, page)
        if key in entries:
            entries.move_to_end(key)
            return
        self.misses += 1
        if len(entries) == WAYS:
            entries.popitem(last=False)
        entries[key] = None

    def flush(self, keeps_global: bool) -> None:
        """What a load of CR3 does."""
        for entries in self.sets:
            for key in list(entries):
                if not (keeps_global and key[0] == "kernel"):
                    del entries[key]


def misses(case: Case, pages: int, entries: int = ENTRIES) -> float:
    """Misses for each switch between two threads that touch this many pages of their own."""
    tlb = Tlb(entries)
    for turn in range(WARM_UP + COUNTED):
        if turn == WARM_UP:
            tlb.misses = 0
        for page in range(KERNEL_PAGES):
            tlb.use("kernel", page)
        for page in range(pages):
            tlb.use(f"thread {turn % 2}", KERNEL_PAGES + pages * (turn % 2) + page)
        if case.flushes:
            tlb.flush(case.keeps_global)
    return tlb.misses / COUNTED


def play(build: Path) -> list[SwitchRow]:
    """Lets the kernel play with each number of pages, and adds the model's misses."""
    commands = [f"pingpong {pages} {other} {ROUNDS}" for other in (0, 1) for pages in PAGES]
    output = run_script(build, "; ".join(commands), icount=0, guest_limit=GUEST_SECONDS)
    found = [tuple(map(int, line)) for line in GAME.findall(output)]
    if len(found) != len(commands):
        raise MeasurementError(f"not every game was played; the kernel printed: {output}")
    games = {(spaces, pages): (stamps, loads) for pages, spaces, _, stamps, loads in found}
    touching = (games[1, PAGES[-1]][0] - games[1, 0][0]) / (2 * ROUNDS * PAGES[-1])
    return [switch_row(case, pages, games, touching) for case in CASES for pages in PAGES]


def switch_row(
    case: Case, pages: int, games: dict[tuple[int, int], tuple[int, int]], touching: float
) -> SwitchRow:
    """A point of the plot; `touching` are the instructions for one page."""
    stamps, loads = games[case.spaces, pages]
    instructions = stamps / (2 * ROUNDS) - touching * pages
    missed = misses(case, pages)
    return SwitchRow(
        case=case.name,
        pages=pages,
        instructions=round(instructions, 1),
        loads=round(loads / (2 * ROUNDS), 2),
        misses=missed,
        cycles=round(instructions + missed * MISS_CYCLES, 1),
    )


def share(build: Path, processor: Processor) -> list[QuantumRow]:
    """The work that is left at each length of a turn. Lost is what a turn of 1 s would not lose:
    the line through the two longest turns says how long the work takes without a clock."""
    script = "; ".join(f"quantum {hz} {processor.rounds}" for hz in processor.hertz)
    output = run_script(build, script, icount=processor.shift, guest_limit=GUEST_SECONDS)
    found = [tuple(map(int, line)) for line in SHARE.findall(output)]
    if [hz for hz, *_ in found] != list(processor.hertz):
        raise MeasurementError(f"not every quantum was measured; the kernel printed: {output}")
    (_, _, first, few), (_, _, second, more) = found[0], found[2]
    alone = first - (second - first) / (more - few) * few
    return [
        QuantumRow(processor.name, 1000 / hz, switches, round(100 * alone / cycles, 3))
        for hz, _, cycles, switches in found
    ]


def nap(build: Path) -> list[DelayRow]:
    """The delays under each class."""
    script = "; ".join(f"sched {name}; spin {SPINNERS}" for name in CLASSES)
    output = run_script(build, script, icount=SPIN_SHIFT, guest_limit=GUEST_SECONDS)
    found = NAP.findall(output)
    if len(found) != len(CLASSES):
        raise MeasurementError(f"not every class was measured; the kernel printed: {output}")
    return [
        DelayRow(name, SPINNERS, int(late) / 1000)
        for name, late in zip(CLASSES, found, strict=True)
    ]


def plot(
    switches: Sequence[SwitchRow], quanta: Sequence[QuantumRow], delays: Sequence[DelayRow]
) -> Figure:
    """Three pictures: the price of a switch, the work that is left, and a sleeper's delay."""
    with new_plot(13, 4.8) as figure:
        left, middle, right = figure.subplots(1, 3, width_ratios=(6, 4, 3))
        plot_switches(left, switches)
        plot_quanta(middle, quanta)
        plot_delays(right, delays)
    return figure


def plot_switches(axes: Axes, rows: Sequence[SwitchRow]) -> None:
    """One curve for each case."""
    for case in CASES:
        mine = [row for row in rows if row.case == case.name]
        axes.plot([r.pages for r in mine], [r.cycles for r in mine], "o-", markersize=3,
                  linewidth=1, label=case.name)  # fmt: skip
    knee = (ENTRIES - KERNEL_PAGES) / 2  # both threads' pages and the kernel's just fit
    axes.axvline(knee, color="grey", linewidth=1, linestyle=":")
    axes.text(knee + 2, 28_000, f"{KERNEL_PAGES} + 2 x {knee} = {ENTRIES} entries", color="grey")
    axes.set(xlabel="pages that each thread touches", ylabel="cycles for each switch (model)")
    axes.set(yscale="log", xlim=(-3, SHOWN_PAGES), ylim=(100, 40_000))
    name_curves(axes, "The price of a switch")


def plot_quanta(axes: Axes, rows: Sequence[QuantumRow]) -> None:
    """One curve for each processor."""
    for processor in PROCESSORS:
        mine = [row for row in rows if row.processor == processor.name]
        axes.semilogx([r.quantum_ms for r in mine], [r.useful_percent for r in mine], "o-",
                      markersize=3, linewidth=1, label=processor.name)  # fmt: skip
    axes.set(xlabel="length of a turn, ms", ylabel="work that is left, %", ylim=(0, 105))
    name_curves(axes, "Useful work")


def plot_delays(axes: Axes, rows: Sequence[DelayRow]) -> None:
    """One bar for each class."""
    bars = axes.bar([r.sched_class for r in rows], [r.delay_ms for r in rows], width=0.6)
    axes.bar_label(bars, fmt="%.1f")
    axes.set_axisbelow(True)
    axes.set(xlabel="scheduling class", ylabel="wake-up to processor, ms", ylim=(0, 90))
    axes.set_title("A sleeper's delay", loc="left")


def report(
    switches: Sequence[SwitchRow], quanta: Sequence[QuantumRow], delays: Sequence[DelayRow]
) -> None:
    """Prints the tables."""
    print("case                             pages  instructions  loads   misses    cycles")
    for row in switches:
        print(
            f"{row.case:<32} {row.pages:5} {row.instructions:13.1f} {row.loads:6.2f}"
            f" {row.misses:8.1f} {row.cycles:9.1f}"
        )
    print("\nprocessor  turn, ms switches   work left")
    for row in quanta:
        print(
            f"{row.processor:<9} {row.quantum_ms:9.1f} {row.switches:8} {row.useful_percent:9.2f} %"
        )
    print("\nclass  threads  delay, ms")
    for row in delays:
        print(f"{row.sched_class:<5} {row.threads:8} {row.delay_ms:10.1f}")


def results_of(
    switches: Sequence[SwitchRow], quanta: Sequence[QuantumRow], delays: Sequence[DelayRow]
) -> dict[str, float]:
    """What was predicted, as it came out."""
    same, kept, other = (case.name for case in CASES)
    of = {(row.case, row.pages): row for row in switches}
    shortest = [row for row in quanta if row.processor == PROCESSORS[1].name][-1]
    lost = (100 - shortest.useful_percent) * shortest.quantum_ms  # the same for each length
    late = {row.sched_class: round(row.delay_ms, 1) for row in delays}
    return {
        "switch": of[same, 0].instructions,
        "misses": of[other, 32].misses,
        "global_misses": of[kept, 32].misses,
        "turn": round(lost / 10, 2),
    } | late


def figures_of(run: Callable[..., str], sources: str) -> dict[str, int]:
    """What the grader measures again: switches, and work in turns. `run` runs a script and returns
    what the kernel printed."""
    games = [
        (chosen(sources, f"pages {spaces}", 0, 400), chosen(sources, f"rounds {spaces}", 40, 400))
        for spaces in (1, 2)
    ]
    script = "; ".join(
        f"pingpong {pages} {spaces - 1} {rounds}" for spaces, (pages, rounds) in enumerate(games, 1)
    )
    figures = {}
    for _, spaces, _, stamps, loads in printed(GAME, run(script, icount=0, guest_limit=9), 2):
        figures[f"instructions of a game in {spaces} spaces"] = int(stamps)
        figures[f"loads of CR3 in {spaces} spaces"] = int(loads)
    slow = PROCESSORS[1]
    hz, rounds = chosen(sources, "rate", 50, 400), chosen(sources, "rounds", 200, 900)
    output = run(f"quantum {hz} {rounds}", icount=slow.shift, guest_limit=GUEST_SECONDS)
    for _, _, stamps, changes in printed(SHARE, output, 1):
        figures["instructions of work in turns"] = int(stamps) >> slow.shift
        figures["changes of turns"] = int(changes)
    return figures


def own_figures(build: Path, out: Path, sources: str) -> dict[str, int]:
    """The same of the kernel that was built here."""
    return figures_of(partial(run_script, build), sources)


def measure(options: argparse.Namespace) -> None:
    """Runs the whole measurement and writes its files."""
    build, out = options.build, options.out
    out.mkdir(parents=True, exist_ok=True)
    predicted = predictions(QUESTIONS, options.predict)
    switches = play(build)
    quanta = [row for processor in PROCESSORS for row in share(build, processor)]
    delays = nap(build)
    write_csv(out / "switches.csv", [vars(row) for row in switches])
    write_csv(out / "quanta.csv", [vars(row) for row in quanta])
    write_csv(out / "delays.csv", [vars(row) for row in delays])
    save_plot(plot(switches, quanta, delays), out / "switches.svg")
    report(switches, quanta, delays)
    print(f"\nThe figures are in {out}/switches.csv, quanta.csv and delays.csv,")
    print(f"the plot in {out}/switches.svg")
    figures = partial(own_figures, build, out)
    finished(4, options, QUESTIONS, predicted, results_of(switches, quanta, delays), figures)


def main() -> int:
    """Runs the command line; returns the exit status."""
    options = command_line().parse_args()
    return ended(lambda: measure(options))


if __name__ == "__main__":
    sys.exit(in_a_line("make measure", main))

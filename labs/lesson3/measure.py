"""`make LESSON=3 measure`: what a system call costs that does nothing, and what bytes cost.

    python -m labs.lesson3.measure --build build/lesson3 [--out build/measure] [--trap 250,60]

Writes null_calls.csv, copies.csv and calls.svg. QEMU runs the kernel with an instruction every
nanosecond (icount), so that TSC cycles are instructions, and the figures are the same each time.
user/callcost.c makes the calls. --trap says how many cycles a processor takes for INT 0x80 with its
IRET, and for SYSENTER with its SYSEXIT, beyond one for each instruction.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
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
    fit_line,
    name_curves,
    new_plot,
    predictions,
    printed,
    run_script,
    save_plot,
    write_csv,
)
from labs.tools.guest.initramfs import archive, regular
from labs.tools.machine.command import in_a_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

QUESTIONS = (
    Question("INT_0x80", "How long does getpid take with INT 0x80?", "instructions"),
    Question("SYSENTER", "And with SYSENTER?", "instructions"),
    Question(
        "recorded",
        "Each call is recorded in a ring in memory. How many times as long does INT 0x80 take?",
        "times",
    ),
    Question("printed", "And when each call is printed?", "times"),
    Question(
        "copying",
        "read copies n bytes to the program. Above what n does the copying take more than all"
        " the rest?",
        "bytes",
    ),
)
FORMS = ("function", "int 0x80", "sysenter", "shared page")
MODES = ("off", "ring", "printk")
CALL = {"printk": " 510"}  # in place of getpid: one that prints (trace_command.c)
GUEST_SECONDS = 600
PAGE = 4096
LINE = re.compile(r"^callcost: (.+), (\d+) steps$", re.MULTILINE)
MODE = re.compile(r"^> trace (\w+)$", re.MULTILINE)

# Cycles of a trap and its return beyond one for each instruction: rounded, of the order that was
# measured on processors of about 2000. Yours differ: --trap.
TRAP_CYCLES = (250, 60)


@dataclass(frozen=True)
class NullCall:
    """What a call that does nothing costs. cycles: by the model, see TRAP_CYCLES."""

    form: str
    tracing: str
    instructions: int
    cycles: int


@dataclass(frozen=True)
class Copy:
    """What it costs to read this many bytes from a file in memory."""

    bytes: int
    instructions: int


def null_calls(build: Path, trap_cycles: tuple[int, int]) -> list[NullCall]:
    """Each form of the call in each mode of tracing."""
    script = "; ".join(
        f"trace {mode}; run /bin/callcost null{CALL.get(mode, '')}" for mode in MODES
    )
    _, *parts = MODE.split(run_callcost(build, script))
    found = {
        (form, mode): int(steps)
        for mode, text in zip(parts[::2], parts[1::2], strict=True)
        for form, steps in LINE.findall(text)
    }
    missing = [f"{form}/{mode}" for form in FORMS for mode in MODES if (form, mode) not in found]
    if missing:
        raise MeasurementError(
            f"no figure for {', '.join(missing)}: are exercises 3.1 to 3.5 written?"
        )
    by_int, by_sysenter = trap_cycles
    extra = {"function": 0, "int 0x80": by_int}
    return [
        NullCall(form, mode, found[form, mode], found[form, mode] + extra.get(form, by_sysenter))
        for mode in MODES
        for form in FORMS
    ]


def copies(build: Path) -> list[Copy]:
    """Reading from nothing to 64 KiB."""
    output = run_callcost(build, "run /bin/callcost copy")
    found = [Copy(int(what.split()[0]), int(steps)) for what, steps in LINE.findall(output)]
    if max((row.bytes for row in found), default=0) <= PAGE:
        raise MeasurementError(f"nothing was copied; the kernel printed: {output[-400:]}")
    return found


def run_callcost(build: Path, script: str) -> str:
    """What the kernel prints. Raises GuestFailure when it does not end well."""
    program = build.parent / "user" / "bin" / "callcost"
    if not program.is_file():
        raise MeasurementError(f"{program} is not built: make user-programs")
    with tempfile.TemporaryDirectory() as directory:
        files = Path(directory) / "initramfs"
        files.write_bytes(archive([regular("bin/callcost", program.read_bytes())]))
        return run_script(build, script, icount=0, initramfs=files, guest_limit=GUEST_SECONDS)


@dataclass(frozen=True)
class Price:
    """What a read costs, in instructions: a byte, a page after the first, and all the rest."""

    byte: float
    page: float
    call: float

    def of(self, size: int) -> float:
        """The price of a read of this many bytes, at least one."""
        return self.call + self.byte * size + self.page * further_pages(size)


def further_pages(size: int) -> int:
    """How many pages this many bytes take after the first."""
    return (size - 1) // PAGE


def price_of(rows: Sequence[Copy]) -> Price:
    """Lines through the reads of at most a page, and through what larger ones cost beyond that."""
    small = [row for row in rows if 0 < row.bytes <= PAGE]
    byte, call = fit_line([row.bytes for row in small], [row.instructions for row in small])
    large = [row for row in rows if row.bytes >= PAGE]
    beyond = [row.instructions - call - byte * row.bytes for row in large]
    page, _ = fit_line([further_pages(row.bytes) for row in large], beyond)
    return Price(byte, page, call)


def plot(calls: Sequence[NullCall], rows: Sequence[Copy]) -> Figure:
    """Three pictures: the calls in instructions, in cycles of the model, and the bytes."""
    with new_plot(10, 6.4) as figure:
        grid = figure.add_gridspec(2, 2, width_ratios=(3, 2))
        plot_calls(figure.add_subplot(grid[:, 0]), calls)
        plot_model(figure.add_subplot(grid[0, 1]), calls)
        plot_copies(figure.add_subplot(grid[1, 1]), rows)
    return figure


def plot_calls(axes: Axes, calls: Sequence[NullCall]) -> None:
    """Grouped bars: the forms, with a bar for each mode of tracing."""
    for place, mode in enumerate(MODES):
        mine = [call.instructions for call in calls if call.tracing == mode]
        positions = [form + 0.27 * (place - 1) for form in range(len(FORMS))]
        bars = axes.bar(positions, mine, width=0.25, label=f"tracing: {mode}")
        axes.bar_label(bars, padding=2, fontsize=8)
    axes.set_yscale("log")
    axes.set_xticks(range(len(FORMS)), FORMS)
    axes.grid(visible=False, axis="x")
    axes.set(ylabel="instructions")
    name_curves(axes, "A call that does nothing", columns=3)


def plot_model(axes: Axes, calls: Sequence[NullCall]) -> None:
    """Instructions and the model's cycles, without tracing."""
    quiet = [call for call in calls if call.tracing == "off"]
    names = [call.form for call in quiet]
    instructions = [call.instructions for call in quiet]
    extra = [call.cycles - call.instructions for call in quiet]
    axes.barh(names, instructions, label="instructions")
    bars = axes.barh(names, extra, left=instructions, label="trap and return")
    axes.bar_label(bars, [str(call.cycles) for call in quiet], padding=3)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set(xlabel="cycles, by the model", xlim=(0, 1.2 * max(call.cycles for call in quiet)))
    name_curves(axes, columns=2)


def plot_copies(axes: Axes, rows: Sequence[Copy]) -> None:
    """Cost against bytes, and what the price says."""
    price = price_of(rows)
    sizes = [row.bytes for row in rows if row.bytes]
    words = f"{price.call:.0f} a call, {price.byte:.3f} a byte, {price.page:.0f} a further page"
    axes.loglog(
        sizes, [price.of(size) for size in sizes], "-", color="grey", linewidth=1, label=words
    )
    axes.loglog(sizes, [row.instructions for row in rows if row.bytes], "o", markersize=4)
    axes.set(xlabel="bytes that are read", ylabel="instructions")
    name_curves(axes)


def report(calls: Sequence[NullCall], rows: Sequence[Copy]) -> None:
    """Prints both tables."""
    print(f"{'getpid, in instructions':<26}" + "".join(f"{mode:>10}" for mode in MODES))
    for form in FORMS:
        mine = [call for call in calls if call.form == form]
        print(f"  {form:<24}" + "".join(f"{call.instructions:>10}" for call in mine))
    print("\nThe same without tracing, in cycles of the model:")
    for call in calls:
        if call.tracing == "off":
            print(f"  {call.form:<24}{call.cycles:>10}")
    print("\nBytes that are read, and instructions:")
    for row in rows:
        print(f"  {row.bytes:<24}{row.instructions:>10}")
    price = price_of(rows)
    print(f"\n{price.byte:.3f} instructions a byte, and {price.call:.0f} for the call;")
    print(f"each page after the first costs {price.page:.0f} more")


def results_of(calls: Sequence[NullCall], rows: Sequence[Copy]) -> dict[str, float]:
    """What was predicted, as it came out."""
    taken = {(call.form, call.tracing): call.instructions for call in calls}
    gate, price = taken["int 0x80", "off"], price_of(rows)
    return {
        "INT_0x80": gate,
        "SYSENTER": taken["sysenter", "off"],
        "recorded": round(taken["int 0x80", "ring"] / gate, 1),
        "printed": round(taken["int 0x80", "printk"] / gate, 1),
        "copying": round(price.call / price.byte),
    }


def figures_of(run: Callable[[str], str], sources: str) -> dict[str, int]:
    """What the grader measures again: calls that do nothing, and reads of three sizes. `run` runs
    a script next to callcost, and returns what the kernel printed."""
    sizes = [chosen(sources, f"size {i}", 2000, 65536) for i in (1, 2, 3)]
    script = "; ".join(
        f"trace {mode}; run /bin/callcost {what}"
        for mode, what in (("ring", "null"), *(("off", f"read {size}") for size in sizes))
    )
    output = run(f"run /bin/callcost null; {script}")
    names = [f"{form}, tracing {mode}" for mode in ("off", "ring") for form in FORMS]
    names += [f"read {number}" for number in (1, 2, 3)]
    lines = printed(LINE, output, len(names))
    return {name: int(steps) for name, (_, steps) in zip(names, lines, strict=True)}


def own_figures(build: Path, out: Path, sources: str) -> dict[str, int]:
    """The same of the kernel that was built here."""
    return figures_of(partial(run_callcost, build), sources)


def measure(options: argparse.Namespace) -> None:
    """Runs the whole measurement and writes its files."""
    build, out = options.build, options.out
    out.mkdir(parents=True, exist_ok=True)
    predicted = predictions(QUESTIONS, options.predict)
    calls, rows = null_calls(build, options.trap), copies(build)
    write_csv(out / "null_calls.csv", [vars(call) for call in calls])
    write_csv(out / "copies.csv", [vars(row) for row in rows])
    save_plot(plot(calls, rows), out / "calls.svg")
    report(calls, rows)
    print(f"\nThe figures are in {out}/null_calls.csv and copies.csv, the plot in {out}/calls.svg")
    figures = partial(own_figures, build, out)
    finished(3, options, QUESTIONS, predicted, results_of(calls, rows), figures)


def two_numbers(text: str) -> tuple[int, int]:
    """The value of --trap. Raises ValueError."""
    first, second = text.split(",")
    return int(first), int(second)


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = command_line()
    parser.add_argument("--trap", type=two_numbers, default=TRAP_CYCLES, metavar="INT,SYSENTER")
    options = parser.parse_args()
    return ended(lambda: measure(options))


if __name__ == "__main__":
    sys.exit(in_a_line("make measure", main))

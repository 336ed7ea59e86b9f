"""`make LESSON=1 measure`: where the boot goes, and what it costs to read few sectors at a time.

    python -m labs.lesson1.measure --build build/lesson1 [--out build/measure]

Writes boot_phases.csv, boot_reads.csv and boot.svg. All figures are instructions, counted by QEMU
(icount), so they are the same each time. The kernel's file is padded to KERNEL_BYTES, and a boot
disk is built for each number of sectors per BIOS call. Two machines read it: one from a memory
card, whose answers take no time of the host's (instructions), one from the IDE drive (requests).
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
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
    save_plot,
    write_csv,
)
from labs.tools.debugging.debug import DebugError
from labs.tools.debugging.stamps import NotReachedError, instructions_to
from labs.tools.machine.command import in_a_line
from labs.tools.machine.machine import run
from labs.tools.machine.monitor import MonitorLost
from labs.tools.machine.qemu_command import SECTOR_SIZE, Config
from labs.tools.machine.symbols import symbols_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[2]
KERNEL_BYTES = 1 << 20
SHIFT = 3  # 8 ns an instruction: where the BIOS waits for a time, it runs fewer of them
KERNEL_LBA = 64
SECTORS_PER_READ = (1, 2, 4, 8, 16, 32, 64, 127)
QUESTIONS = (
    Question(
        "BIOS",
        "What percentage of the instructions from power-on to the first line belong to the BIOS?",
        "per cent",
    ),
    Question(
        "calls",
        f"A kernel of {KERNEL_BYTES // 1024} KiB is read with 1 sector per call. How many times"
        " is the BIOS called?",
        "calls",
    ),
    Question("fewest_calls", "And with 127 sectors per call?", "calls"),
    Question(
        "ratio",
        "How many times as many instructions does it take with 1 sector per call as with 127?",
        "times",
    ),
)
PHASES = {
    "BIOS": "0x7c00",
    "boot sector": "stage2_start",
    "protected mode": "loader_main",
    "read the kernel": "load_elf",
    "place its segments": "_start",
    "kernel entry": "kmain",
    "to the first line": "printk",
}
"""What happens on the way to each place."""

WORKERS = 2


@dataclass(frozen=True)
class ReadRow:
    """One point of the sweep. `instructions` are those from loader_main to load_elf."""

    sectors_per_read: int
    reads: int
    sectors: int
    instructions: int


def padded_kernel(build: Path, directory: Path) -> Path:
    """A copy of the kernel with zeros after it, KERNEL_BYTES in all."""
    kernel = build / "kernel.elf"
    if kernel.stat().st_size > KERNEL_BYTES:
        raise MeasurementError(f"{kernel} is larger than the {KERNEL_BYTES} bytes to be read")
    padded = directory / "padded.elf"
    with kernel.open("rb") as source, padded.open("wb") as copy:
        shutil.copyfileobj(source, copy)
        copy.truncate(KERNEL_BYTES)
    return padded


def boot_disk(lesson: str, kernel: Path, sectors_per_read: int) -> Path:
    """Builds a boot disk whose loader reads `sectors` in one call; returns its directory."""
    directory = kernel.parent / f"reads-{sectors_per_read}"
    directory.mkdir(exist_ok=True)
    settings = [f"LESSON={lesson}", f"OUT={directory}", f"KERNEL={kernel}"]
    settings.append(f"READ_SECTORS={sectors_per_read}")
    command = ["make", "-s", *settings, f"{directory}/boot.img"]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise MeasurementError(f"the boot disk is not built: {made.stdout}{made.stderr}".strip())
    return directory


def addresses(directory: Path, kernel: Path) -> dict[str, int]:
    """Where each phase ends."""
    stage2, symbols = symbols_of(directory / "stage2.elf"), symbols_of(kernel)
    found = {}
    for phase, place in PHASES.items():
        if place == "0x7c00":
            found[phase] = 0x7C00
        elif place in ("stage2_start", "loader_main", "load_elf"):
            found[phase] = stage2.find(place).address
        else:
            found[phase] = symbols.find(place).address
    return found


def stamp(directory: Path, kernel: Path, phase: str) -> int:
    """The instructions from power-on to the end of a phase."""
    image = directory / "boot.img"
    config = Config(boot="card", image=image, kernel=kernel, icount=SHIFT, script="memory")
    return instructions_to(config, PHASES[phase], addresses(directory, kernel)[phase])


def stamps_of(directory: Path, kernel: Path) -> dict[str, int]:
    """The instructions from power-on to the end of each phase."""
    with ThreadPoolExecutor(WORKERS) as pool:
        return dict(zip(PHASES, pool.map(partial(stamp, directory, kernel), PHASES), strict=True))


def phases_of(stamps: Mapping[str, int]) -> dict[str, int]:
    """The instructions of each phase by itself."""
    return {
        phase: end - start
        for (phase, end), start in zip(stamps.items(), [0, *stamps.values()], strict=False)
    }


def reads_of(directory: Path, kernel: Path) -> tuple[int, int]:
    """Requests and sectors with which the loader read the kernel, as QEMU's drive saw them."""
    image = directory / "boot.img"
    result = run(Config(boot="disk", image=image, kernel=kernel, trace=True, script="memory"))
    requests = [each for each in result.check().requests["hda"] if each.lba >= KERNEL_LBA]
    return len(requests), sum(each.sectors for each in requests)


def read_row(kernel: Path, lesson: str, start: int, sectors_per_read: int) -> ReadRow:
    """One point of the sweep."""
    directory = boot_disk(lesson, kernel, sectors_per_read)
    end = stamp(directory, kernel, "read the kernel")
    return ReadRow(sectors_per_read, *reads_of(directory, kernel), end - start)


def sweep(kernel: Path, lesson: str, start: int) -> list[ReadRow]:
    """The points of the sweep, each printed when it is there. Up to `start`, the instructions to
    loader_main, all the boot disks do the same."""
    rows = []
    with ThreadPoolExecutor(WORKERS) as pool:
        for row in pool.map(partial(read_row, kernel, lesson, start), SECTORS_PER_READ):
            rows.append(row)
            print(
                f"{row.sectors_per_read:4} sectors per call: {row.reads:5} calls,"
                f" {row.instructions:10,} instructions",
                flush=True,
            )
    return rows


def check_counts(rows: Sequence[ReadRow]) -> None:
    """The drive must have been asked as often as the arithmetic says. Raises MeasurementError."""
    sectors = KERNEL_BYTES // SECTOR_SIZE
    for row in rows:
        expected = -(-sectors // row.sectors_per_read)
        if (row.reads, row.sectors) != (expected, sectors):
            raise MeasurementError(
                f"{row.sectors_per_read} sectors per call: {expected} calls for {sectors} sectors"
                f" were expected, but the drive saw {row.reads} for {row.sectors}"
            )


def cost_of_reading(rows: Sequence[ReadRow]) -> tuple[float, float]:
    """Instructions for each call, and instructions in any case. A call for a single sector is left
    out: the BIOS has a shorter way for it."""
    several = [row for row in rows if row.sectors_per_read > 1]
    return fit_line([row.reads for row in several], [row.instructions for row in several])


def plot(phases: Mapping[str, int], rows: Sequence[ReadRow]) -> Figure:
    """Three pictures: the phases, the calls, the instructions."""
    with new_plot(10, 6.2) as figure:
        grid = figure.add_gridspec(2, 2, height_ratios=(1, 2))
        plot_phases(figure.add_subplot(grid[0, :]), phases)
        plot_calls(figure.add_subplot(grid[1, 0]), rows)
        plot_instructions(figure.add_subplot(grid[1, 1]), rows)
    return figure


def plot_phases(axes: Axes, phases: Mapping[str, int]) -> None:
    """One bar, a piece a phase; the pieces that are too short to see are in the legend."""
    left = 0.0
    for phase, instructions in phases.items():
        label = f"{phase}: {instructions:,}"
        axes.barh([0], [instructions / 1e6], left=left, label=label, edgecolor="white")
        left += instructions / 1e6
    axes.set(yticks=[], xlabel="million instructions", ylim=(-0.5, 0.5))
    axes.set_title("Where did the boot go?", loc="left")
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=9)


def plot_calls(axes: Axes, rows: Sequence[ReadRow]) -> None:
    """The calls, and the line of slope -1 through the first point."""
    steps = [row.sectors_per_read for row in rows]
    axes.loglog(steps, [row.reads for row in rows], "o", label="BIOS calls")
    line = [rows[0].reads * rows[0].sectors_per_read / step for step in steps]
    axes.loglog(steps, line, "-", color="grey", linewidth=1, label="slope -1", zorder=0)
    finish(axes, steps, "calls")


def plot_instructions(axes: Axes, rows: Sequence[ReadRow]) -> None:
    """The instructions, and the line that fits them: for each call, and in any case."""
    steps = [row.sectors_per_read for row in rows]
    per_call, rest = cost_of_reading(rows)
    axes.loglog(steps, [row.instructions for row in rows], "o", label="instructions to read it")
    line = [per_call * row.reads + rest for row in rows]
    label = f"{per_call:,.0f} a call + {rest:,.0f}"
    axes.loglog(steps, line, "-", color="grey", linewidth=1, label=label, zorder=0)
    axes.loglog(
        steps, [per_call * row.reads for row in rows], ":", color="grey", label="the calls alone"
    )
    finish(axes, steps, "instructions")


def finish(axes: Axes, steps: Sequence[int], quantity: str) -> None:
    """The axes that both pictures of the sweep share."""
    axes.set(xlabel="sectors per call", ylabel=quantity)
    axes.set_xticks(steps, [str(step) for step in steps])
    axes.minorticks_off()
    name_curves(axes)


def report(phases: Mapping[str, int], rows: Sequence[ReadRow]) -> None:
    """Prints the phases, and what the sweep comes to."""
    total = sum(phases.values())
    print(f"\nFrom power-on to the first line of the kernel: {total:,} instructions.")
    for phase, instructions in phases.items():
        print(f"  {phase:<20} {instructions:12,}  {100 * instructions / total:5.1f} %")
    per_call, rest = cost_of_reading(rows)
    print(f"\nReading costs {per_call:,.0f} instructions a call and {rest:,.0f} in any case.")


def results_of(phases: Mapping[str, int], rows: Sequence[ReadRow]) -> dict[str, float]:
    """What was predicted, as it came out."""
    return {
        "BIOS": round(100 * phases["BIOS"] / sum(phases.values()), 1),
        "calls": rows[0].reads,
        "fewest_calls": rows[-1].reads,
        "ratio": round(rows[0].instructions / rows[-1].instructions, 2),
    }


def figures_of(disk: Callable[[int], Path], kernel: Path, sources: str) -> dict[str, int]:
    """What the grader measures again: how this kernel is read, placed and entered. `disk` builds a
    boot disk of it that is read this many sectors per call, and returns its directory."""
    figures = {}
    for number, (low, high) in enumerate(((2, 6), (7, 14), (15, 30)), 1):
        sectors = chosen(sources, f"sectors {number}", low, high)
        directory = disk(sectors)
        figures[f"calls to read it {number}"] = reads_of(directory, kernel)[0]
    before = stamp(directory, kernel, "protected mode")
    for phase in ("read the kernel", "place its segments", "kernel entry"):
        end = stamp(directory, kernel, phase)
        figures[f"instructions: {phase}"], before = end - before, end
    return figures


def own_figures(build: Path, out: Path, sources: str) -> dict[str, int]:
    """The same of the kernel that was built here."""
    kernel = Path(shutil.copy(build / "kernel.elf", out / "own.elf"))
    lesson = build.name.removeprefix("lesson")
    return figures_of(partial(boot_disk, lesson, kernel), kernel, sources)


def measure(options: argparse.Namespace) -> None:
    """Runs the whole measurement and writes its files."""
    build, out = options.build, options.out
    out.mkdir(parents=True, exist_ok=True)
    predicted = predictions(QUESTIONS, options.predict)
    kernel = padded_kernel(build, out)
    lesson = build.name.removeprefix("lesson")
    stamps = stamps_of(boot_disk(lesson, kernel, SECTORS_PER_READ[-1]), kernel)
    rows = sweep(kernel, lesson, stamps["protected mode"])
    check_counts(rows)
    phases = phases_of(stamps)
    table = [{"phase": phase, "instructions": count} for phase, count in phases.items()]
    write_csv(out / "boot_phases.csv", table)
    write_csv(out / "boot_reads.csv", [vars(row) for row in rows])
    save_plot(plot(phases, rows), out / "boot.svg")
    report(phases, rows)
    print(
        f"The figures are in {out}/boot_phases.csv and boot_reads.csv, the plot in {out}/boot.svg"
    )
    own = partial(own_figures, build, out)
    finished(1, options, QUESTIONS, predicted, results_of(phases, rows), own)


def main() -> int:
    """Runs the command line; returns the exit status."""
    options = command_line().parse_args()
    return ended(lambda: measure(options), DebugError, MonitorLost, NotReachedError)


if __name__ == "__main__":
    sys.exit(in_a_line("make measure", main))

"""`make LESSON=6 measure`: three bills. What does copy on write cost, and whom? How much of its
memory does a program touch? And how far does a TLB reach?

    python -m labs.lesson6.measure --build build/lesson6 [--out build/measure]

Writes forks.csv, touched.csv, around.csv, reach.csv and memory.svg. user/memcost.c does the work,
and the kernel's command `faults` counts; both in instructions (QEMU executes one a nanosecond).
QEMU has no TLB like a processor's, so its misses come from the model of lesson 4's measurement.
These figures are the same each time. A curve of this computer, which is another one each time, is
drawn next to the model's.

DEBIAN='python3-minimal' TOUCH='/usr/bin/python3 -c pass' adds a program of Debian's to the second
bill.
"""

from __future__ import annotations

import argparse
import mmap
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from labs.lesson4.measure import Tlb
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
from labs.tools.guest.debian import debian_root
from labs.tools.guest.initramfs import InitramfsError, archive, folder, from_host, regular
from labs.tools.guest.package import PackageError
from labs.tools.machine.command import in_a_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

QUESTIONS = (
    Question(
        "fork",
        "A program has 256 pages of its own. In lesson 5 its fork, the child's exit and the wait"
        " took 1,063,000 instructions. How many now?",
        "instructions",
    ),
    Question(
        "written",
        "The child writes to all of them. How many instructions does that take for each page?",
        "instructions",
    ),
    Question(
        "share",
        "A page is copied with 1,024 instructions. Above what share of written pages would it"
        " have been cheaper to copy all of them at the fork?",
        "%",
    ),
    Question("touched", "How much of what it has mapped does `sh -c true` ever touch?", "%"),
    Question(
        "around",
        "A program reads one byte of each page of a mapped file that is in memory. How many"
        " instructions does that take for each page, if a fault maps one page?",
        "instructions",
    ),
    Question("around_16", "And if a fault maps 16 pages?", "instructions"),
    Question(
        "misses",
        "A loop reads one word of each of 80 pages, always in the same order. The TLB has 64"
        " entries. Of 100 reads, how many miss it?",
        "misses",
    ),
    Question(
        "reach",
        "With pages of 4 MiB and 8 TLB entries: up to how much memory does no read miss?",
        "MiB",
    ),
)
PAGES = 256
SHARES = (0, 1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)  # per cent of them that are written
COPY = 1024  # instructions: a page, four bytes each
SLOT = 1_063_000  # on the kernel of lesson 5, whose space is one slot
LINUX_FORK, LINUX_ALL = 98_609, 1_990_659  # labs/bench/README.md
AROUNDS = (1, 2, 4, 8, 16, 32, 64)
STEPS = (1, 16)  # each page, or each sixteenth
PROGRAMS = ("/bin/hello", "/bin/ls /", "/bin/sh -c true", "/bin/memcost fork")
FILES = ("hello", "ls", "sh", "true", "memcost")
SHELL = PROGRAMS[2]
CHASED = (1, 4, 8, 16, 32, 48, 64, 72, 80, 128, 512, 1024, 4096, 8192, 9216, 10240, 16384)
SMALL, LARGE = 64, 8  # entries of the TLB for pages of 4 KiB, and of 4 MiB
IN_LARGE = 1024  # pages of 4 KiB in one of 4 MiB
MISS_CYCLES = 134  # of a page walk, as in lesson 4
GUEST_SECONDS = 600
HOST_READS = 1 << 18
COST = re.compile(r"^memcost: (\w+) (\d+) (\d+), (\d+) steps$", re.MULTILINE)
FAULTS = re.compile(
    r"^faults: (\d+) faults, (\d+) to write; (\d+) pages present of (\d+)$", re.MULTILINE
)

Run = Callable[..., str]
Rows = Sequence[dict[str, float]]


def steps_of(run: Run, words: Sequence[str]) -> list[int]:
    """What memcost counts for each of these command lines."""
    output = run("; ".join(words), icount=0, guest_limit=GUEST_SECONDS)
    return [int(steps) for *_, steps in printed(COST, output, len(words))]


def fork_rows(run: Run) -> list[dict[str, float]]:
    """By written pages: the instructions of fork, exit and wait; as measured, with a copy of all
    pages at the fork, and with Linux."""
    written = [PAGES * share // 100 for share in SHARES]
    commands = [f"run /bin/memcost cow {PAGES} {count}" for count in written]
    alone, *steps = steps_of(run, ["run /bin/memcost fork", *commands])
    return [
        {
            "written_percent": share,
            "written": count,
            "instructions": step,
            "copy_all": alone + PAGES * COPY,
            "linux": round(LINUX_FORK + (LINUX_ALL - LINUX_FORK) * share / 100),
        }
        for share, count, step in zip(SHARES, written, steps, strict=True)
    ]


def price(rows: Rows) -> tuple[float, float]:
    """Instructions for a page that is written, and the share of pages from which on copying all of
    them would be cheaper, in per cent."""
    first, last = rows[0], rows[-1]
    page = (last["instructions"] - first["instructions"]) / last["written"]
    return page, 100 * (first["copy_all"] - first["instructions"]) / (page * PAGES)


def touched_rows(run: Run, programs: Sequence[str]) -> list[dict[str, float | str]]:
    """By program: the pages that it has mapped, touches and writes to, and its faults if each maps
    16 pages."""
    rows = []
    for program in programs:
        script = f"faults 1 {program}; faults 16 {program}"
        output = run(script, icount=0, guest_limit=GUEST_SECONDS)
        one, many = (tuple(map(int, line)) for line in printed(FAULTS, output, 2))
        rows.append(
            {
                "program": program,
                "mapped": one[3],
                "touched": one[2],
                "percent": round(100 * one[2] / one[3], 1),
                "write_faults": one[1],
                "faults_around_1": one[0],
                "faults_around_16": many[0],
            }
        )
    return rows


def around_rows(run: Run) -> list[dict[str, float]]:
    """By the pages that a fault maps: instructions for each page that is read."""
    words = [
        f"faults {around} /bin/memcost read {PAGES} {step}" for around in AROUNDS for step in STEPS
    ]
    steps = iter(steps_of(run, words))
    return [
        {"around": around}
        | {f"step_{step}": round(next(steps) / (PAGES // step), 1) for step in STEPS}
        for around in AROUNDS
    ]


def misses(pages: int, entries: int, in_page: int) -> float:
    """Of each read of a chase over this many 4 KiB pages, the share that misses a TLB whose pages
    have this many of them. The first round is not counted."""
    order = list(range(pages))
    random.Random(pages).shuffle(order)
    tlb = Tlb(entries)
    for round_ in range(2):
        tlb.misses = 0 if round_ else tlb.misses
        for page in order:
            tlb.use("program", page // in_page)
    return tlb.misses / pages


def reach_rows() -> list[dict[str, float]]:
    """By pages: cycles for each read with pages of 4 KiB and of 4 MiB, by the model."""
    return [
        {
            "pages": pages,
            "small": round(1 + MISS_CYCLES * misses(pages, SMALL, 1), 2),
            "large": round(1 + MISS_CYCLES * misses(pages, LARGE, IN_LARGE), 2),
        }
        for pages in CHASED
    ]


def host_rows() -> list[tuple[int, float]]:
    """By pages: nanoseconds for each read on this computer, whose processor overlaps reads."""
    rows = []
    for pages in CHASED:
        with mmap.mmap(-1, pages * mmap.PAGESIZE) as memory:
            if hasattr(mmap, "MADV_NOHUGEPAGE"):
                memory.madvise(mmap.MADV_NOHUGEPAGE)
            words = np.frombuffer(memory, dtype=np.int64)
            words[:] = 1
            order = np.random.default_rng(pages).permutation(pages)
            places = order * 512 + order * 8 % 512  # one word a page, each in another cache set
            places = np.tile(places, max(1, HOST_READS // pages))
            start = time.perf_counter()
            int(words[places].sum())
            rows.append((pages, 1e9 * (time.perf_counter() - start) / len(places)))
            del words
    return rows


def plot(forks: Rows, around: Rows, reach: Rows, host: Sequence[tuple[int, float]]) -> Figure:
    """Three pictures, a bill each."""
    with new_plot(14, 4.8) as figure:
        left, middle, right = figure.subplots(1, 3)
        plot_forks(left, forks)
        plot_around(middle, around)
        plot_reach(right, reach, host)
    return figure


def plot_forks(axes: Axes, rows: Rows) -> None:
    """Copy on write, a copy of all, and Linux, by the share of written pages."""
    share = [row["written_percent"] for row in rows]
    for key, label, style in (
        ("instructions", "copy on write, here", "o-"),
        ("copy_all", "all pages copied at the fork", "--"),
        ("linux", "copy on write, Linux", ":"),
    ):
        axes.semilogy(share, [row[key] for row in rows], style, markersize=3, label=label)
    axes.axhline(SLOT, color="grey", linewidth=1, linestyle="-.", label="lesson 5: 4 MiB copied")
    axes.set(xlabel="pages that the child writes to, %", ylabel="fork + exit + wait, instructions")
    name_curves(axes, f"A fork with {PAGES} pages", columns=2)


def plot_around(axes: Axes, rows: Rows) -> None:
    """One curve for each way to read the file."""
    for step, label in zip(STEPS, ("each page is read", "each sixteenth"), strict=True):
        axes.loglog([row["around"] for row in rows], [row[f"step_{step}"] for row in rows], "o-",
                    base=2, markersize=3, label=label)  # fmt: skip
    axes.set(xlabel="pages that a fault maps", ylabel="instructions for a page that is read")
    name_curves(axes, "Fault-around")


def plot_reach(axes: Axes, rows: Rows, host: Sequence[tuple[int, float]]) -> None:
    """The model's two curves, and this computer's on an axis of its own."""
    pages = [row["pages"] for row in rows]
    axes.semilogx(pages, [row["small"] for row in rows], "o-", markersize=3, base=2,
                  label=f"4 KiB, {SMALL} entries")  # fmt: skip
    axes.semilogx(pages, [row["large"] for row in rows], "o-", markersize=3, base=2,
                  label=f"4 MiB, {LARGE} entries")  # fmt: skip
    axes.set(xlabel="pages of 4 KiB in the chase", ylabel="cycles for a read (model)")
    other = axes.twinx()
    other.semilogx(*zip(*host, strict=True), ":", color="grey", base=2, label="this computer, ns")
    other.set(ylabel="ns for a read (this computer)", ylim=(0, None))
    other.grid(visible=False)
    name_curves(axes, "The reach of a TLB", [*axes.get_lines(), *other.get_lines()], columns=2)


def report(forks: Rows, touched: Sequence[dict], around: Rows, reach: Rows) -> None:
    """Prints the tables."""
    print("written, %  copy on write    copy all       Linux")
    for row in forks:
        print(
            f"{row['written_percent']:10} {row['instructions']:14,} {row['copy_all']:11,}"
            f" {row['linux']:11,}"
        )
    print("\nprogram              mapped  touched      %   writes  faults: around 1, around 16")
    for row in touched:
        print(
            f"{row['program']:<20} {row['mapped']:6} {row['touched']:8} {row['percent']:6}"
            f" {row['write_faults']:8} {row['faults_around_1']:16} {row['faults_around_16']:10}"
        )
    print("\naround  each page  each 16th")
    for row in around:
        print(f"{row['around']:6} {row['step_1']:10} {row['step_16']:10}")
    print("\n pages   4 KiB   4 MiB  (cycles for a read)")
    for row in reach:
        print(f"{row['pages']:6} {row['small']:7} {row['large']:7}")
    print(
        f"\nfork + exit + wait, no page written: {SLOT:,} in lesson 5,"
        f" {forks[0]['instructions']:,} now; the smallest program's on Linux {LINUX_FORK:,}"
    )


def results_of(forks: Rows, touched: Sequence[dict], around: Rows, reach: Rows) -> dict[str, float]:
    """What was predicted, as it came out."""
    page, share = price(forks)
    shell = next(row for row in touched if row["program"] == SHELL)
    of = {row["around"]: row["step_1"] for row in around}
    covered = max(row["pages"] for row in reach if row["large"] == 1)
    return {
        "fork": forks[0]["instructions"],
        "written": round(page, 1),
        "share": round(share, 1),
        "touched": shell["percent"],
        "around": of[1],
        "around_16": of[16],
        "misses": round(100 * misses(80, SMALL, 1), 1),
        "reach": covered // 256,
    }


def figures_of(run: Run, sources: str) -> dict[str, int]:
    """What the grader measures again: two forks, and one file. `run` runs a script next to memcost,
    and returns what the kernel printed."""
    pages = [chosen(sources, f"pages {n}", 100, 900) for n in (1, 2)]
    written = [chosen(sources, f"written {n}", 20, 100) for n in (1, 2)]
    around = 1 << chosen(sources, "around", 1, 5)
    step = chosen(sources, "step", 2, 12)
    words = [
        f"run /bin/memcost cow {all_} {share}" for all_, share in zip(pages, written, strict=True)
    ]
    words.append(f"faults {around} /bin/memcost read {PAGES} {step}")
    output = run("; ".join(words), icount=0, guest_limit=60)
    steps = [int(steps) for *_, steps in printed(COST, output, len(words))]
    ((faults, _, shown, mapped),) = printed(FAULTS, output, 1)
    return {
        "instructions of fork 1": steps[0],
        "instructions of fork 2": steps[1],
        "instructions of the reads": steps[2],
        "faults of the reads": int(faults),
        "pages present": int(shown),
        "pages mapped": int(mapped),
    }


def run_programs(build: Path, script: str, **settings: object) -> str:
    """What the kernel prints, with the programs of FILES and DEBIAN in its root."""
    programs = build.parent / "user" / "bin"
    absent = [name for name in FILES if not (programs / name).is_file()]
    if absent:
        raise MeasurementError(f"not built: {', '.join(absent)}. make user-programs")
    entries = [folder("tmp"), folder("proc", 0o555)]
    entries += [regular(f"bin/{name}", (programs / name).read_bytes()) for name in FILES]
    if names := os.environ.get("DEBIAN", "").split():
        entries += from_host(debian_root(names))
    with tempfile.TemporaryDirectory() as directory:
        files = Path(directory) / "initramfs"
        files.write_bytes(archive(entries))
        return run_script(build, script, initramfs=files, **settings)


def own_figures(build: Path, out: Path, sources: str) -> dict[str, int]:
    """The same of the kernel that was built here."""
    return figures_of(partial(run_programs, build), sources)


def measure(options: argparse.Namespace) -> None:
    """Runs the whole measurement and writes its files."""
    build, out = options.build, options.out
    out.mkdir(parents=True, exist_ok=True)
    predicted = predictions(QUESTIONS, options.predict)
    run = partial(run_programs, build)
    more = [each.strip() for each in os.environ.get("TOUCH", "").split(";") if each.strip()]
    forks, touched = fork_rows(run), touched_rows(run, [*PROGRAMS, *more])
    around, reach = around_rows(run), reach_rows()
    for name, rows in (
        ("forks", forks), ("touched", touched), ("around", around), ("reach", reach),
    ):  # fmt: skip
        write_csv(out / f"{name}.csv", rows)
    save_plot(plot(forks, around, reach, host_rows()), out / "memory.svg")
    report(forks, touched, around, reach)
    print(f"\nThe figures are in {out}/forks.csv, touched.csv, around.csv and reach.csv,")
    print(f"the plot in {out}/memory.svg")
    figures = partial(own_figures, build, out)
    finished(6, options, QUESTIONS, predicted, results_of(forks, touched, around, reach), figures)


def main() -> int:
    """Runs the command line; returns the exit status."""
    options = command_line().parse_args()
    return ended(lambda: measure(options), PackageError, InitramfsError)


if __name__ == "__main__":
    sys.exit(in_a_line("make measure", main))

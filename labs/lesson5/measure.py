"""`make LESSON=5 measure`: half of the memory is free. What can be done with it?

    python -m labs.lesson5.measure --build build/lesson5 [--out build/measure]

Writes blocks.csv, requests.csv, index.csv and fragments.svg. The kernel's command `fragment` takes
all memory in single pages, frees some of them at random, and counts free blocks, and the
instructions of requests (QEMU executes one a nanosecond). The figures are the same each time.
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

HALF = "64 MiB, half of all pages are free at random."
QUESTIONS = (
    Question("forks", f"{HALF} How many forks succeed, if each needs a block of 4 MiB?", "forks"),
    Question("largest", "How large is the largest free block?", "pages"),
    Question("eights", "How many aligned blocks of eight pages are wholly free?", "blocks"),
    Question("junk", "What share of page_free's instructions for one page writes the junk?", "%"),
    Question(
        "bitmap",
        "A block of four pages, when 1 % of all pages are free: how long does the search in a"
        " bitmap take?",
        "instructions",
    ),
    Question("buddy", "And page_alloc?", "instructions"),
)
SEEDS = (1, 2, 3, 4)  # of the memory that is half free
LEVELS = (1, 3, 10, 25, 50, 75, 90, 98, 100)  # per cent of all pages that are free
TIMES = 16  # requests of the kernel's command
SMALL, WANTED = 0, 2  # the orders of these requests
INDEX_ORDERS = (3, 6, 9)
FORK_ORDER = 10  # a program's memory in one piece
GUEST_SECONDS = 600
FREE = re.compile(r"^fragment: (\d+) of (\d+) pages free$", re.MULTILINE)
BLOCKS = re.compile(r"^fragment: free blocks((?: \d+){11})$", re.MULTILINE)
REQUESTS = re.compile(
    r"^fragment: order (\d), page_alloc (\d+), bitmap (\d+), junk (\d+), "
    r"page_free (\d+)$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Request:
    """TIMES requests for blocks of one order: TSC cycles in all."""

    order: int
    page_alloc: int
    bitmap: int
    junk: int
    page_free: int


@dataclass(frozen=True)
class Memory:
    """Memory, thinned out: free pages of all, free blocks by order, requests."""

    percent: int
    free: int
    pages: int
    blocks: tuple[int, ...]
    requests: tuple[Request, ...]

    def whole(self, order: int) -> float:
        """How many aligned blocks of this order are wholly free: larger ones contain several."""
        return sum(n << at - order for at, n in enumerate(self.blocks) if at >= order)

    def unusable(self, order: int) -> float:
        """The share of the free pages that is in blocks of a lower order; 0 without a free page."""
        total = sum(n << at for at, n in enumerate(self.blocks))
        return 1 - (self.whole(order) * 2**order) / total if total else 0.0

    def request(self, order: int) -> Request:
        """The requests for this order."""
        return next(each for each in self.requests if each.order == order)


def expected(pages: float, chance: float, order: int) -> float:
    """Aligned blocks of this order that are wholly free, if each page is free with this chance."""
    return pages / 2**order * chance ** (2**order)


def thin_out(run: Callable[..., str], cases: Sequence[tuple[int, int]]) -> list[Memory]:
    """What the kernel's command prints for each pair of a percentage and a seed."""
    script = "; ".join(f"fragment {percent} {seed}" for percent, seed in cases)
    output = run(script, icount=0, guest_limit=GUEST_SECONDS)
    free, blocks = (printed(pattern, output, len(cases)) for pattern in (FREE, BLOCKS))
    requests = printed(REQUESTS, output, 2 * len(cases))
    return [
        Memory(
            percent=percent,
            free=int(free[at][0]),
            pages=int(free[at][1]),
            blocks=tuple(map(int, blocks[at].split())),
            requests=tuple(Request(*map(int, line)) for line in requests[2 * at : 2 * at + 2]),
        )
        for at, (percent, _) in enumerate(cases)
    ]


def mean(values: Sequence[float]) -> float:
    """The average."""
    return sum(values) / len(values)


def block_rows(halves: Sequence[Memory]) -> list[dict[str, float]]:
    """By order: the aligned blocks that are wholly free, on the average and as expected."""
    pages = mean([each.pages for each in halves])
    return [
        {
            "order": order,
            "blocks": round(mean([each.whole(order) for each in halves]), 3),
            "expected": float(f"{expected(pages, 0.5, order):.3g}"),
        }
        for order in range(len(halves[0].blocks))
    ]


def request_rows(levels: Sequence[Memory]) -> list[dict[str, float]]:
    """By free pages: the instructions of one request for four pages, in both ways."""
    return [
        {
            "free_percent": each.percent,
            "page_alloc": each.request(WANTED).page_alloc / TIMES,
            "bitmap": each.request(WANTED).bitmap / TIMES,
        }
        for each in levels
    ]


def index_rows(levels: Sequence[Memory]) -> list[dict[str, float]]:
    """By free pages: the unusable free space index of some orders."""
    return [
        {"free_percent": each.percent}
        | {f"order_{order}": round(each.unusable(order), 4) for order in INDEX_ORDERS}
        for each in levels
    ]


Rows = Sequence[dict[str, float]]


def plot(blocks: Rows, requests: Rows, index: Rows) -> Figure:
    """Three pictures: free blocks, requests, and free memory that cannot be used."""
    with new_plot(13, 4.8) as figure:
        left, middle, right = figure.subplots(1, 3)
        plot_blocks(left, blocks)
        plot_requests(middle, requests)
        plot_index(right, index)
    return figure


def plot_blocks(axes: Axes, rows: Rows) -> None:
    """What was found and what was expected; nothing found means there is no point."""
    found = [row for row in rows if row["blocks"] > 0]
    shown = [row for row in rows if row["expected"] > 1e-3]
    axes.semilogy([row["order"] for row in shown], [row["expected"] for row in shown], "--",
                  color="grey", label="expected")  # fmt: skip
    axes.semilogy([row["order"] for row in found], [row["blocks"] for row in found], "o",
                  label="this kernel")  # fmt: skip
    axes.set(xlabel="order", ylabel="aligned blocks that are wholly free", xlim=(-0.3, 10.3))
    name_curves(axes, "Half of all pages are free", columns=2)


def plot_requests(axes: Axes, rows: Rows) -> None:
    """One curve for each way to find four pages."""
    for key, label in (("bitmap", "search in a map of bits"), ("page_alloc", "page_alloc")):
        axes.loglog([row["free_percent"] for row in rows], [row[key] for row in rows], "o-",
                    markersize=3, linewidth=1, label=label)  # fmt: skip
    axes.set(xlabel="free pages, %", ylabel="instructions for one request")
    name_curves(axes, "Four pages together", columns=2)


def plot_index(axes: Axes, rows: Rows) -> None:
    """One curve for each order."""
    for order in INDEX_ORDERS:
        axes.plot([row["free_percent"] for row in rows], [row[f"order_{order}"] for row in rows],
                  "o-", markersize=3, linewidth=1, label=f"order {order}")  # fmt: skip
    axes.set(xlabel="free pages, %", ylabel="unusable free space index", ylim=(-0.03, 1.05))
    name_curves(axes, "Free, and of no use", columns=len(INDEX_ORDERS))


def report(blocks: Rows, requests: Rows, index: Rows) -> None:
    """Prints the tables."""
    print("order  whole blocks    expected")
    for row in blocks:
        print(f"{row['order']:5} {row['blocks']:13.2f} {row['expected']:11.3g}")
    print("\nfree, %  page_alloc    bitmap    unusable for orders 3, 6, 9")
    for row, other in zip(requests, index, strict=True):
        shares = " ".join(f"{other[f'order_{order}']:8.3f}" for order in INDEX_ORDERS)
        print(f"{row['free_percent']:7} {row['page_alloc']:11.1f} {row['bitmap']:9.1f}    {shares}")


def results_of(halves: Sequence[Memory], levels: Sequence[Memory]) -> dict[str, float]:
    """What was predicted, as it came out."""
    first = halves[0]
    small = first.request(SMALL)
    fullest = levels[0].request(WANTED)
    return {
        "forks": first.blocks[FORK_ORDER],
        "largest": 2 ** max(order for order, n in enumerate(first.blocks) if n),
        "eights": round(mean([each.whole(3) for each in halves]), 2),
        "junk": round(100 * small.junk / small.page_free, 1),
        "bitmap": round(fullest.bitmap / TIMES, 1),
        "buddy": round(fullest.page_alloc / TIMES, 1),
    }


def figures_of(run: Callable[..., str], sources: str) -> dict[str, int]:
    """What the grader measures again: two memories. `run` runs a script and returns what the kernel
    printed."""
    figures = {}
    cases = [
        (chosen(sources, f"percent {n}", 20, 80), chosen(sources, f"seed {n}", 1, 1_000_000))
        for n in (1, 2)
    ]
    for number, memory in enumerate(thin_out(run, cases), 1):
        small = memory.request(SMALL)
        figures |= {
            f"free pages of memory {number}": memory.free,
            f"free blocks of one page in memory {number}": memory.blocks[0],
            f"instructions of page_alloc in memory {number}": small.page_alloc,
            f"instructions of page_free in memory {number}": small.page_free,
        }
    return figures


def own_figures(build: Path, out: Path, sources: str) -> dict[str, int]:
    """The same of the kernel that was built here."""
    return figures_of(partial(run_script, build), sources)


def measure(options: argparse.Namespace) -> None:
    """Runs the whole measurement and writes its files."""
    build, out = options.build, options.out
    out.mkdir(parents=True, exist_ok=True)
    predicted = predictions(QUESTIONS, options.predict)
    run = partial(run_script, build)
    halves = thin_out(run, [(50, seed) for seed in SEEDS])
    levels = thin_out(run, [(percent, 1) for percent in LEVELS])
    blocks, requests, index = block_rows(halves), request_rows(levels), index_rows(levels)
    write_csv(out / "blocks.csv", blocks)
    write_csv(out / "requests.csv", requests)
    write_csv(out / "index.csv", index)
    save_plot(plot(blocks, requests, index), out / "fragments.svg")
    report(blocks, requests, index)
    print(f"\nThe figures are in {out}/blocks.csv, requests.csv and index.csv,")
    print(f"the plot in {out}/fragments.svg")
    figures = partial(own_figures, build, out)
    finished(5, options, QUESTIONS, predicted, results_of(halves, levels), figures)


def main() -> int:
    """Runs the command line; returns the exit status."""
    options = command_line().parse_args()
    return ended(lambda: measure(options))


if __name__ == "__main__":
    sys.exit(in_a_line("make measure", main))

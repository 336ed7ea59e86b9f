"""`make lab`: your prediction, the random reads of 2010 on your kernel, and a report of them.

    python -m labs.storage.x1 --build build/storage --scale 100 --reads 1000 [--predict '2 1.5']
    python -m labs.storage.x1 --build build/storage --file /dev/sdb      this computer's disk too

Writes x1.html, x1.json, tables and plots, and requests.csv to build/lab/report: what each of a
row's first 10,000 requests cost, in the disk model's time. Without a terminal and without --predict
nothing is predicted.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from labs.storage import disks, random_reads
from labs.storage.disk_model import HDD5400, SECTOR_BYTES
from labs.storage.pages import PREDICTED, Page, both, legend, pictures, plotting
from labs.storage.report import (
    PUBLISHED,
    REQUEST_COLUMNS,
    SAMPLE_COLUMNS,
    TIME_COLUMNS,
    Figures,
    by_name,
    checks,
    deviation,
    explain,
    ratio,
    request_rows,
    sample_rows,
    time_rows,
)
from labs.storage.run import experiment_of, measured, parser_of
from labs.tools.course.measurement import MeasurementError, Question, predictions, write_columns
from labs.tools.machine.command import typed_path
from labs.tools.machine.run import guarded, is_terminal

OUT = Path("build/lab/report")
SEEKRW = Path("build/host/seekrw")
QUESTIONS = (
    Question("ext3", "A file on ext3 (block pointers): a read takes how many times as long?", "x"),
    Question("ext4", "A file on ext4 (extents): a read takes how many times as long?", "x"),
)
DIRECT = {"ext3": "ext3 direct", "ext4": "ext4 direct", "raw": "raw direct"}
COLORS = {"ext3": "C0", "ext4": "C2", "raw": "C1"}
POINTS = 1000
"""Of a line."""
DOTS = 300
"""Requests in a picture: more make one spot of it."""
PARTS = (
    ("seek_ms", "seek 寻道", "C0"),
    ("rotation_ms", "rotation 旋转", "C1"),
    ("transfer_ms", "transfer 传输", "C2"),
    ("overhead_ms", "overhead 开销", "C7"),
)
FIRST_READS = 12
LISTED = 10_000  # requests of a row in requests.csv
POINTER_BLOCK_BYTES = 1025 * 4096
"""What a pointer block is for, with itself."""

REASONS = {
    "ext3 buffered": "The published run took 57 s more than the direct one; 3.7 sectors more in a "
    "request are 3 s of them, and the table does not say what the others are. Its 1.98 requests a "
    "read are of a sample of 60 s; at the beginning no pointer block is in memory yet.",
    "ext4 buffered": "The published sample (60.72 requests/s for 60 s) is 10 % below the mean of "
    "its own run (67.4): something else used the drive in that minute.",
    "ext3 direct": "Half a revolution is what a pointer block costs; the published run waited "
    "5.9 ms for one and the model 6.2: the real drive's tracks are a little longer or its head "
    "switches faster (0.4 ms instead of 0.8 would make 1.37).",
    "ext4 direct": "The drive's seek curve was fitted to raw reads, and nothing to this row.",
    "raw buffered": "The model is fitted to this row: one number, b of the seek curve.",
    "raw direct": "Nobody has measured this row in 2010.",
}
FLAWS = (
    "The row `raw` was published among the direct ones, with 8.00 sectors a request. That is a "
    "page: the device was read through the page cache. A direct read of 512 bytes has 1.00, as the "
    "row ext4 direct shows. The honest row is `raw direct` here; it makes no difference that one "
    "could measure, because 7 sectors pass under the head in 0.04 ms.",
    "The requests per second are samples of 30 or 60 s, and the seconds are of the whole run: tps "
    "x seconds / 100,000 gives 0.90 requests a read for ext4 buffered, and there cannot be fewer "
    "than 1.00.",
    "ext3 makes 91 % more requests and takes 37 to 39 % more time. So a pointer block is no second "
    "random read: it is at most 4 MiB before its data, and costs a short seek and half a turn.",
    "Sectors per request of ext3 direct, 4.38, are a mixture of 1 and 8: (4.38 - 1) / 7 = 48 % of "
    "the requests, or 0.93 for a read, were for pointer blocks. The cache helped 9 of 100 reads.",
)


# --- plots ---


def family(name: str) -> str:
    """ext3, ext4 or raw."""
    return name.split()[0]


def plot_times(figures: Sequence[Figures], predicted: Mapping[str, float]) -> Figure:
    """Bars of the time of a read, and of the sectors of a request, with what was published."""
    with plotting():
        figure, (times, sectors) = pictures(2, 2.6)
        names = [each.name for each in figures]
        colors = [COLORS[family(name)] for name in names]
        for axes, values, published in (
            (times, [f.ms_per_read for f in figures], lambda p: p.ms_per_read),
            (sectors, [f.sectors_per_request for f in figures], lambda p: p.sectors_per_request),
        ):
            axes.barh(names, values, color=colors, alpha=0.75)
            for row, value in enumerate(values):
                write_columns(axes, row, f"{value:.2f}", points=36)
            axes.plot(
                [published(p) for p in PUBLISHED.values()], list(PUBLISHED), "kD", markersize=4,
                label="published 2010 已发表", linestyle="none",
            )  # fmt: skip
            axes.invert_yaxis()
            axes.grid(visible=False, axis="y")
        draw_prediction(times, figures, predicted)
        times.set_xlabel(both("ms for a read (disk model)", "每次读的毫秒数 (磁盘模型)"))
        sectors.set_xlabel(both("sectors of 512 bytes in a request", "每个请求的扇区数 (512 字节)"))
        legend(times)
    return figure


def draw_prediction(axes: Axes, figures: Sequence[Figures], predicted: Mapping[str, float]) -> None:
    """What a person expected: this many times the raw drive's time."""
    base = by_name(figures)["raw direct"].ms_per_read
    if predicted:
        axes.plot(
            [predicted[key] * base for key in predicted], [DIRECT[key] for key in predicted],
            "X", color="#c000c0", markersize=7, linestyle="none", label=PREDICTED,
        )  # fmt: skip


def plot_places(figures: Sequence[Figures]) -> Figure:
    """Where the arm was, and when: three devices side by side."""
    rows = by_name(figures)
    with plotting():
        figure = Figure(figsize=(4.8, 3.6), layout="constrained")
        panels = figure.subplots(1, 3, sharey=True)
        for axes, (key, name) in zip(panels, DIRECT.items(), strict=True):
            draw_places(axes, rows[name])
            axes.set_title(key)
        panels[0].set_ylabel(both("place on the drive, GB", "盘上位置, GB"))
        panels[1].set_xlabel(both("time, s (disk model)", "时间, 秒 (磁盘模型)"))
        figure.legend(
            *panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize=8
        )
    return figure


def draw_places(axes: Axes, row: Figures) -> None:
    """A dot for each of the first requests."""
    ends = list(accumulate(access.total_ms / 1000 for access in row.accesses[:DOTS]))
    for kind, mark, size, fill, label in (
        ("mapping", "C3s", 5, "none", "mapping block 映射块"),
        ("data", "C0.", 3, "full", "data 数据"),
    ):
        chosen = [i for i, each in enumerate(row.kinds[:DOTS]) if each == kind]
        axes.plot(
            [ends[i] for i in chosen],
            [row.requests[i].lba * SECTOR_BYTES / 1e9 for i in chosen],
            mark, markersize=size, markeredgewidth=0.6, fillstyle=fill, label=label,
        )  # fmt: skip


def plot_latencies(figures: Sequence[Figures], predicted: Mapping[str, float]) -> Figure:
    """How many reads took how long."""
    rows = by_name(figures)
    with plotting():
        figure, axes = pictures()
        for key, name in DIRECT.items():
            row = rows[name]
            shares = [1 / len(row.latencies_ms)] * len(row.latencies_ms)
            axes.hist(
                row.latencies_ms, bins=range(46), weights=[100 * share for share in shares],
                histtype="step", color=COLORS[key], linewidth=1.4, label=name,
            )  # fmt: skip
            if key in predicted:
                axes.axvline(
                    predicted[key] * rows["raw direct"].ms_per_read, color=COLORS[key],
                    linestyle="--", linewidth=1, label=f"predicted mean 预测均值: {key}",
                )  # fmt: skip
        axes.set_xlabel(both("ms for a read, with its mapping blocks", "每次读的毫秒数 (含映射块)"))
        axes.set_ylabel(both("% of the reads", "读的百分比"))
        legend(axes)
    return figure


def plot_parts(figures: Sequence[Figures]) -> Figure:
    """Where the time of a read went."""
    with plotting():
        figure, axes = pictures()
        left = [0.0] * len(figures)
        for attribute, label, color in PARTS:
            widths = [getattr(each.per_read, attribute) for each in figures]
            axes.barh([each.name for each in figures], widths, left=left, color=color, label=label)
            left = [a + b for a, b in zip(left, widths, strict=True)]
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(both("ms for a read (disk model)", "每次读的毫秒数 (磁盘模型)"))
        legend(axes)
    return figure


def plot_hits(figures: Sequence[Figures], drive_bytes: int) -> Figure:
    """How many reads had found their mapping blocks in memory, as the run went on; the line is
    chance: with N pointer blocks, read i finds its own with probability 1 - (1 - 1/N)^i."""
    rows = by_name(figures)
    with plotting():
        figure, axes = pictures()
        for name in ("ext3 buffered", "ext3 direct"):
            hits = list(hits_over_time(rows[name]))
            style = "-" if name.endswith("direct") else ":"
            step = max(1, len(hits) // POINTS)
            at = range(1, len(hits) + 1)[::step]
            axes.plot(at, hits[::step], style, color="C0", label=name)
        reads, blocks = rows["ext3 direct"].reads, drive_bytes / POINTER_BLOCK_BYTES
        missed = accumulate((1 - 1 / blocks) ** i for i in range(reads))
        theory = [100 * (1 - total / i) for i, total in enumerate(missed, 1)]
        step = max(1, reads // POINTS)
        at = range(1, reads + 1)[::step]
        axes.plot(at, theory[::step], "k--", linewidth=1, label="chance 概率")
        axes.set_xlabel(both("reads so far", "已完成的读"))
        axes.set_ylabel(both("% that found their pointer block", "指针块命中率, %"))
        legend(axes)
    return figure


def hits_over_time(row: Figures) -> Iterator[float]:
    """In percent of the reads so far, which asked for data."""
    hits = reads = 0
    last = "data"
    for kind in row.kinds:
        if kind == "data":
            reads += 1
            hits += last == "data"
            yield 100 * hits / reads
        last = kind


# --- the report ---


def make_page(
    figures: Sequence[Figures],
    experiment: disks.Experiment,
    predicted: Mapping[str, float],
    own: Mapping | None,
) -> Page:
    """The report, in the order of an experiment."""
    page = Page("x1", "Is raw always faster than a file system?", "裸设备总比文件系统快吗?")
    agreed = sum(len(each.requests) for each in figures)
    page.text(
        "Question", "问题",
        f"{experiment.reads:,} random reads of 512 bytes from a drive of "
        f"{experiment.drive_bytes:,} bytes, with seed {experiment.seed}: through block pointers "
        "(ext3), through extents (ext4), and from the raw drive. How much slower is a file?",
    )  # fmt: skip
    add_prediction(page, figures, predicted)
    page.text(
        "Method", "方法",
        "Your kernel ran seekrw. Its counters (/proc/diskstats), its ring of requests and QEMU "
        f"agree on all {agreed:,} requests, and each read brought the sector of its place. The "
        f"time is that of the disk model: {HDD5400.title}; one request at a time.",
    )  # fmt: skip
    add_tables(page, figures)
    add_plots(page, figures, experiment, predicted)
    page.text("Three sentences", "三句话", explain(figures), after_the_table(figures))
    page.table(
        f"Why each read cost what it cost: the first {FIRST_READS} requests of ext3 direct, ms",
        ["request", "LBA", "sectors", "seek", "rotation", "transfer", "total"],
        first_requests(by_name(figures)["ext3 direct"]),
    )
    page.text("What the published table itself gets wrong", "已发表的表格本身错在哪里", *FLAWS)
    page.text(
        "What would change the answer", "什么会改变答案",
        "Memory for all pointer blocks (2 GB for 2 TB) and more reads than there are of them: each "
        "is read once. Records of 4 MiB: a pointer block for each is nothing. A drive without an "
        "arm: half a turn becomes the time of a small read, and ext3 takes twice as long.",
    )  # fmt: skip
    page.checked(checks(figures))
    if own:
        add_own(page, own, figures)
    return page


def add_prediction(page: Page, figures: Sequence[Figures], predicted: Mapping[str, float]) -> None:
    """Next to what was measured; a read of the raw drive is 1."""
    if not predicted:
        page.text("Prediction", "预测", "None: there was no terminal, and no PREDICT='2 1.5'.")
        return
    rows = [
        [key, predicted[key], ratio(figures, DIRECT[key], "raw direct") or 0.0] for key in predicted
    ]
    page.table(
        "Prediction 预测: times as long as the raw drive", ["row", "predicted", "measured"], rows
    )


def add_tables(page: Page, figures: Sequence[Figures]) -> None:
    """The published table next to ours, and the reasons."""
    then = "Next to the published table 与已发表的表格对照"
    page.table(f"{then}: time 时间", TIME_COLUMNS, time_rows(figures))
    page.table(f"{then}: requests 请求", REQUEST_COLUMNS, request_rows(figures))
    page.table(
        "A sample of /proc/diskstats while seekrw ran, as iostat shows it 运行中的采样 (iostat)",
        SAMPLE_COLUMNS, sample_rows(figures),
    )  # fmt: skip
    page.table(
        "Latency of a read in ms, modelled 延迟 (模型)",
        ["row", "50 %", "90 %", "99 %", "longest", "pointer hits", "map/read"],
        [
            [f.name, *f.percentiles(), f.mapping_hits if f.mapping_requests else "-",
             f.mapping_requests / f.reads]
            for f in figures
        ],
    )  # fmt: skip
    page.text(
        "Why it deviates", "偏差的原因",
        *(f"{f.name} ({deviation(f) or 'not published'}): {REASONS[f.name]}" for f in figures),
    )  # fmt: skip


def add_plots(
    page: Page,
    figures: Sequence[Figures],
    experiment: disks.Experiment,
    predicted: Mapping[str, float],
) -> None:
    """All pictures."""
    page.plot(plot_times(figures, predicted), "Time of a read and length of a request, by row.")
    page.plot(
        plot_places(figures),
        f"The first {DOTS:,} requests. On ext3 data is where its pointer block is: dot in square.",
    )
    page.plot(plot_latencies(figures, predicted), "Latency of direct reads, in classes of 1 ms.")
    page.plot(plot_parts(figures), "Where the time went.")
    page.plot(
        plot_hits(figures, experiment.drive_bytes), "Reads that found their pointer block cached."
    )


def after_the_table(figures: Sequence[Figures]) -> str:
    """The answer to the question."""
    extents = ratio(figures, "ext4 direct", "raw direct") or 0.0
    return (
        f"A file with extents takes {extents:.3f} times as long as the raw drive, so it is not the "
        "file system that costs, but how it finds a block."
    )


def first_requests(row: Figures) -> list[list[object]]:
    """A line for each of the first requests."""
    return [
        [kind, request.lba, request.sectors, access.seek_ms, access.rotation_ms,
         access.transfer_ms, access.total_ms]
        for kind, request, access in zip(
            row.kinds[:FIRST_READS], row.requests, row.accesses, strict=False
        )
    ]  # fmt: skip


def write_requests(path: Path, figures: Sequence[Figures]) -> None:
    """Each row's first requests, with start and parts, in the model's milliseconds."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["row", "kind", "lba", "sectors", "start_ms", "seek_ms", "rotation_ms",
                         "transfer_ms", "overhead_ms"])  # fmt: skip
        for each in figures:
            start = 0.0
            columns = (list(part[:LISTED]) for part in (each.kinds, each.requests, each.accesses))
            for kind, request, access in zip(*columns, strict=True):
                cells = [f"{value:.4f}" for value in (start, *access)]
                writer.writerow([each.name, kind, request.lba, request.sectors, *cells])
                start += access.total_ms


def as_json(
    figures: Sequence[Figures], experiment: disks.Experiment, predicted: Mapping[str, float]
) -> dict:
    """What other programs want to know."""
    return {
        "scale": experiment.scale,
        "reads": experiment.reads,
        "seed": experiment.seed,
        "predicted": dict(predicted),
        "rows": {
            f.name: {
                "ms_per_read": f.ms_per_read,
                "requests_per_read": f.requests_per_read,
                "sectors_per_request": f.sectors_per_request,
                "mapping_hits": f.mapping_hits,
                "tps": f.tps,
                **f.per_read._asdict(),
            }
            for f in figures
        },
    }


# --- this computer's disk ---


def read_own(file: Path, experiment: disks.Experiment) -> dict:
    """seekrw on this computer, reading only, past the page cache where that can be done. Raises
    MeasurementError, with seekrw's words: it refuses a mounted device."""
    command = [str(SEEKRW), "-f", str(file), "-a", str(experiment.reads), "-l", "4096", "-r",
               "-s", str(experiment.seed), "-j"]  # fmt: skip
    for option in (["-d"], []):
        done = subprocess.run([*command, *option], stdout=subprocess.PIPE,
                              stderr=None if is_terminal() else subprocess.PIPE,
                              text=True, check=False)  # fmt: skip
        if done.returncode == 0:
            return json.loads(done.stdout)
        if "no direct I/O" not in (done.stderr or ""):
            break
    raise MeasurementError((done.stderr or "seekrw failed").strip())


def add_own(page: Page, own: Mapping, figures: Sequence[Figures]) -> None:
    """This computer's disk next to the model of 2010 and the virtual one."""
    operations = own["reads"]
    requests = own["requests"]
    rows = [
        ["this computer", own["ns"] / operations / 1e6,
         *(own["percentiles_ns"][p] / 1e6 for p in ("50.0", "90.0", "99.0", "100.0")),
         requests["reads"] / operations if requests else "?"],
        *([f.name, f.ms_per_read, *f.percentiles(), f.requests_per_read] for f in figures),
    ]  # fmt: skip
    columns = ["disk", "ms/read", "50 %", "90 %", "99 %", "longest", "req/read"]
    page.table(f"{own['file']} on this computer, 4096 bytes a read 本机", columns, rows)


# --- the command ---


@contextmanager
def progress_bar(experiment: disks.Experiment) -> Iterator[Callable[[int], None]]:
    """On a terminal, how many of the requests there have been; about 7.8 for six reads."""
    console = Console(stderr=True)
    columns = (TextColumn("requests"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=round(7.81 * experiment.reads))
        yield lambda requests: progress.advance(task, requests)


def predicted_from(given: str) -> dict[str, float]:
    """What a person expects; nothing where nobody can be asked."""
    print("A random read of the raw drive takes some time: call it 1.")
    if not given and not is_terminal():
        print("Nothing is predicted: there is no terminal, and no PREDICT='2 1.5'.")
        return {}
    return predictions(QUESTIONS, given)


def lab(options: argparse.Namespace) -> int:
    """Predict, measure, explain."""
    experiment = experiment_of(options)
    try:
        predicted = predicted_from(options.predict)
        own = read_own(options.file, experiment) if options.file else None
        with progress_bar(experiment) as progress:
            figures = measured(options, experiment, progress)
    except (disks.DiskError, random_reads.LabError, MeasurementError) as error:
        print(f"make lab: {error}", file=sys.stderr)
        return 1
    page = make_page(figures, experiment, predicted, own)
    path = page.write(options.out, as_json(figures, experiment, predicted))
    write_requests(options.out / "requests.csv", figures)
    page.show()
    print(f"The report is {path}.")
    return 0


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = parser_of("make lab")
    parser.add_argument("--predict", default="", help="two numbers, in the questions' order")
    parser.add_argument(
        "--file", type=typed_path, help="read this file or device of this computer, too"
    )
    parser.add_argument("--out", type=Path, default=OUT)
    return lab(parser.parse_args())


if __name__ == "__main__":
    sys.exit(guarded("make lab", main))

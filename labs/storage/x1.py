"""`make lab`: your prediction, the random reads of 2010 on your kernel, and a report of them.

    python -m labs.storage.x1 --build build/storage --scale 100 --reads 1000 [--predict '2 1.5']
    python -m labs.storage.x1 --build build/storage --file /dev/sdb      this computer's disk too

Writes x1.html, x1.json, tables and plots, and requests.csv to build/lab/report: what each of a
row's first 10,000 requests cost, in the disk model's time; and labs/storage/measurement.json, which
is handed in. Without a terminal and without --predict nothing is predicted, and nothing handed in.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from labs.storage import disks, random_reads, sensitivity
from labs.storage.disk_model import HDD5400
from labs.storage.measure import QUESTIONS, own_figures
from labs.storage.pages import Page
from labs.storage.report import (
    MARKS,
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
from labs.storage.x1_plots import (
    DIRECT,
    WINDOW_S,
    plot_hits,
    plot_latencies,
    plot_parts,
    plot_places,
    plot_times,
)
from labs.tools.course.exercises import ROOT, STORAGE
from labs.tools.course.measurement import MeasurementError, finished, predictions
from labs.tools.machine.command import typed_path
from labs.tools.machine.patience import told
from labs.tools.machine.run import guarded, is_terminal

OUT = Path("build/lab/report")
SEEKRW = Path("build/host/seekrw")
FIRST_READS = 12
LISTED = 10_000  # requests of a row in requests.csv

REASONS = {
    "ext3 buffered": "Computed from the published seconds, this run took 57 s more than the direct "
    "one. Here 3.7 sectors more in a request are 3 s of them, and the table does not say what the "
    "others are. Its 1.98 requests a read, computed, are of a sample of 60 s; at the beginning no "
    "pointer block is in memory yet.",
    "ext4 buffered": "The published sample, 60.72 requests a second for 60 s, is below the mean of "
    "its own run, computed 67.4: perhaps something else used the drive in that minute.",
    "ext3 direct": "Half a revolution is what a pointer block costs. By its seconds the run of "
    "2010 waited 5.9 ms for one; the model waits 6.2. Perhaps the real drive's tracks were a "
    "little longer, or its heads switched faster (0.4 ms instead of 0.8 make 1.38 in the model).",
    "ext4 direct": "The seek curve was fitted to raw reads of the same places: no proof.",
    "raw buffered": "The model is fitted to this row: one number, b of the seek curve.",
    "raw direct": "Nobody measured this row in 2010.",
}
FLAWS = (
    "The row `raw` was listed among the direct ones, with 8.00 sectors a request. That is a "
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


# --- the report ---


def make_page(
    figures: Sequence[Figures],
    experiment: disks.Experiment,
    predicted: Mapping[str, float],
    own: Mapping | None,
) -> Page:
    """The report, in the order of an experiment."""
    page = Page("x1", "Is raw always faster than a file system?", "裸设备总比文件系统快吗?")
    if missing := left_out(figures):
        return without_rows(page, figures, experiment, missing)
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
    page.text("What it says", "结论", explain(figures), after_the_table(figures))
    page.table(
        f"Why each read cost what it cost: the first {FIRST_READS} requests of ext3 direct, ms",
        ["request", "LBA", "sectors", "seek", "rotation", "transfer", "total"],
        first_requests(by_name(figures)["ext3 direct"]),
    )
    page.text("What the published table itself gets wrong", "已发表的表格本身错在哪里", *FLAWS)
    page.text(
        "What would change the answer", "什么会改变答案",
        "Two readers instead of one: the arm leaves between a pointer block and its data, and ext3 "
        "takes 1.9 times as long (X36). Memory for all pointer blocks (2 GB for 2 TB) and more "
        "reads than there are of them: each is read once. Records of 4 MiB: a pointer block for "
        "each is nothing. A drive without an arm: half a turn becomes the time of a small read, "
        "and ext3 takes twice as long.",
    )  # fmt: skip
    page.checked(checks(figures))
    if own:
        add_own(page, own, figures)
    return page


def left_out(figures: Sequence[Figures]) -> list[str]:
    """The rows that were not done in time."""
    return [row.name for row in random_reads.ROWS if row.name not in by_name(figures)]


def without_rows(
    page: Page, figures: Sequence[Figures], experiment: disks.Experiment, missing: Sequence[str]
) -> Page:
    """The report of a computer that was too busy for some rows: what there is."""
    page.text(
        "What was left out", "缺少的部分",
        f"{', '.join(missing)}: not done within {random_reads.limit_of(1, experiment):,.0f} seconds"
        " each. The computer is too busy, or too slow for this size: `make lab` again later, or"
        " with SCALE=100. What compares all rows is left out, too.",
    )  # fmt: skip
    add_tables(page, figures)
    page.plot(plot_parts(figures), "Where the time went.")
    page.text("What it says", "结论", explain(figures))
    return page


def add_prediction(page: Page, figures: Sequence[Figures], predicted: Mapping[str, float]) -> None:
    """Next to what was measured; a read of the raw drive is 1."""
    if not predicted:
        page.text("Prediction", "预测", "None: there was no terminal, and no PREDICT='2 1.5'.")
        return
    results = results_of(figures)
    page.table(
        "Prediction: times as long as the raw drive", ["row", "predicted", "measured"],
        [[key, predicted[key], results[key]] for key in predicted],
    )  # fmt: skip


def results_of(figures: Sequence[Figures]) -> dict[str, float]:
    """What the questions ask for."""
    return {each.key: ratio(figures, DIRECT[each.key], "raw direct") or 0.0 for each in QUESTIONS}


def add_tables(page: Page, figures: Sequence[Figures]) -> None:
    """The published table next to ours, and the reasons."""
    then = "Next to the published table"
    page.table(f"{then}: time ({MARKS})", TIME_COLUMNS, time_rows(figures))
    page.table(f"{then}: requests", REQUEST_COLUMNS, request_rows(figures))
    page.table(
        "A sample of /proc/diskstats while seekrw ran, as iostat shows it",
        SAMPLE_COLUMNS, sample_rows(figures),
    )  # fmt: skip
    page.table(
        "Latency of a read in ms, modelled",
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
        f"The first {WINDOW_S:g} s. On ext3 data is where its pointer block is: dot in square; so"
        " fewer"
        " reads are done.",
    )
    page.plot(plot_latencies(figures, predicted), "Latency of direct reads, in classes of 1 ms.")
    page.plot(plot_parts(figures), "Where the time went.")
    page.plot(
        plot_hits(figures, experiment.drive_bytes), "Reads that found their pointer block cached."
    )
    page.plot(
        sensitivity.plot(),
        "What the ratio would be with other short seeks, at full size. Each time the curve's root"
        " is fitted again to 14.78 ms.",
    )
    page.table(
        "The same with other numbers that were chosen (less: ratio, as it is, more)",
        ["chosen", "less", "as it is", "more"], sensitivity.table(),
    )  # fmt: skip


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
                "margin_ms": f.margin_ms,
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
    page.table(f"{own['file']} on this computer, 4096 bytes a read", columns, rows)


# --- the command ---


@contextmanager
def progress_bar(experiment: disks.Experiment) -> Iterator[Callable[[int], None]]:
    """Says which part of the requests there has been, about 7.8 for six reads: on a terminal in one
    line, elsewhere one for each tenth."""
    total, done, step = 7.81 * experiment.reads, 0, 1 if sys.stderr.isatty() else 10

    def advance(requests: int) -> None:
        nonlocal done
        done += requests

    def words() -> str:
        if not done:
            return "make lab: the drives are made or looked at, and the machines start"
        percent = int(min(99, 100 * done / total)) // step * step
        return f"make lab: {percent} % of some {total:,.0f} requests"

    with told(words):
        yield advance


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
        page = make_page(figures, experiment, predicted, own)
        path = page.write(options.out, as_json(figures, experiment, predicted))
        write_requests(options.out / "requests.csv", figures)
        page.show()
        print(f"The report is {path}.")
        if missing := left_out(figures):
            words = ", ".join(missing)
            print(f"make lab: left out, as the time was used up: {words}", file=sys.stderr)
            return 1
        if predicted:
            hand_in(options, predicted, results_of(figures))
    except (disks.DiskError, random_reads.LabError, MeasurementError) as error:
        print(f"make lab: {error}", file=sys.stderr)
        return 1
    return 0


def hand_in(
    options: argparse.Namespace, predicted: Mapping[str, float], results: Mapping[str, float]
) -> None:
    """Measures once more, what the grader does, and writes the file that is handed in."""
    figures = partial(own_figures, options.build, options.out)
    finished(STORAGE, options, QUESTIONS, predicted, results, figures)


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = parser_of("make lab")
    parser.add_argument("--predict", default="", help="two numbers, in the questions' order")
    parser.add_argument(
        "--file", type=typed_path, help="read this file or device of this computer, too"
    )
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--hand-in", type=Path, default=ROOT, help="a tree to write to")
    return lab(parser.parse_args())


if __name__ == "__main__":
    sys.exit(guarded("make lab", main))

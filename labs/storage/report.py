"""What the requests of X1 would have cost on the drive of 2010, next to the published table.

    python3 -m labs.storage.report [--scale 100] [--reads N] [--seed S]

works the requests out on paper, without a guest, and prints the tables. `make lab` has them from a
guest (random_reads.py), and makes pages of them (x1.py). Each row's requests go through the disk
model one after another, and all times are the model's. Sectors are of 512 bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import hypot, sqrt
from statistics import quantiles, stdev
from textwrap import fill

from rich import box
from rich.console import Console
from rich.table import Table

from labs.storage.disk_model import SECTOR_BYTES, Access, Disk, Request, add_up, replay
from labs.storage.disks import (
    FULL_READS,
    Experiment,
    add_experiment_options,
    chosen_experiment,
)
from labs.storage.workload import ExtentLayout, PointerLayout, RawLayout, simulate
from labs.tools.machine.command import Options, in_a_line

KINDS = ("data", "mapping", "other")
WIDTH = 80


@dataclass(frozen=True)
class Published:
    """A row of the table of 27 June 2010: 100,000 reads of 512 bytes on 2 TB. Published are the
    seconds and tps; sectors a request (Blk_read/s over tps) and requests a read (tps times seconds
    over reads) are computed from it."""

    seconds: float
    tps: float
    sectors_per_request: float
    requests_per_read: float
    sample_seconds: int = 30

    @property
    def blocks_per_second(self) -> float:
        """iostat's Blk_read/s, of 512 bytes: its sectors a request are this, divided by tps."""
        return self.tps * self.sectors_per_request

    @property
    def ms_per_read(self) -> float:
        """Milliseconds for one read of the user, as published: to two digits, and a half goes up
        (1465.5 s are 14.66 ms)."""
        return int(self.seconds * 100_000 / FULL_READS + 0.5) / 100


PUBLISHED = {
    "ext3 buffered": Published(2063.6, 95.88, 8.00, 1.98, 60),
    "ext4 buffered": Published(1484.0, 60.72, 485.6 / 60.72, 0.90, 60),
    "ext3 direct": Published(2006.9, 94.93, 4.38, 1.905),
    "ext4 direct": Published(1465.5, 67.90, 1.00, 0.995),
    "raw buffered": Published(1478.5, 67.27, 8.00, 0.995),
}
"""By row. The last one was published as direct: its 8 sectors a request say that it was not. Nobody
published what `raw direct` would have been."""


@dataclass(frozen=True)
class RowRequests:
    """The requests of one row in order, each with its kind: "data", "mapping" or "other". samples:
    how many requests and sectors the guest had counted at one time after another."""

    name: str
    reads: int
    requests: Sequence[Request]
    kinds: Sequence[str]
    samples: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True)
class Sample:
    """What iostat would have shown of a run on the modelled drive: requests and sectors between two
    looks at /proc/diskstats, and the model's seconds between them."""

    requests: int
    sectors: int
    seconds: float

    @property
    def tps(self) -> float:
        """Requests a second."""
        return self.requests / self.seconds

    @property
    def blocks_per_second(self) -> float:
        """iostat's Blk_read/s."""
        return self.sectors / self.seconds


@dataclass(frozen=True)
class Figures:
    """What the table says of one row. Times are of the disk model, in milliseconds."""

    name: str
    reads: int
    requests: Sequence[Request] = field(repr=False)
    kinds: Sequence[str] = field(repr=False)
    accesses: Sequence[Access] = field(repr=False)
    latencies_ms: Sequence[float] = field(repr=False)
    """Of each read that asked the drive, all its requests together."""
    sample: Sample | None = None

    @property
    def seconds(self) -> float:
        """Of all reads."""
        return sum(self.latencies_ms) / 1000

    @property
    def ms_per_read(self) -> float:
        """Milliseconds for one read of the user."""
        return self.seconds * 1000 / self.reads

    @property
    def margin_ms(self) -> float:
        """Half of the interval that has the mean of all such runs with 95 percent: other seeds
        give other reads. Too few reads give infinity."""
        count = len(self.latencies_ms)
        return 1.96 * stdev(self.latencies_ms) / sqrt(count) if count > 1 else float("inf")

    @property
    def per_read(self) -> Access:
        """The mean cost of a user's read, all its requests together."""
        return add_up(self.accesses, self.reads)

    @property
    def sectors(self) -> int:
        """That all requests moved."""
        return sum(request.sectors for request in self.requests)

    @property
    def sectors_per_request(self) -> float:
        """The mean length of a request."""
        return self.sectors / max(1, len(self.requests))

    @property
    def requests_per_read(self) -> float:
        """Requests for data and for mapping blocks."""
        return len(self.requests) / self.reads

    @property
    def tps(self) -> float:
        """Requests a second, in the model's time."""
        return len(self.requests) / self.seconds if self.seconds else 0.0

    @property
    def mapping_requests(self) -> int:
        """Requests for blocks of pointers or extents."""
        return self.kinds.count("mapping")

    @property
    def after_mapping(self) -> list[Access]:
        """The accesses to data that had to read a mapping block first."""
        pairs = zip(self.accesses[1:], self.kinds[1:], self.kinds, strict=False)
        return [access for access, kind, last in pairs if (kind, last) == ("data", "mapping")]

    @property
    def mapping_hits(self) -> int:
        """Reads that found all their mapping blocks in memory."""
        return self.reads - len(self.after_mapping)

    def percentiles(self) -> tuple[float, float, float, float]:
        """What 50, 90 and 99 of 100 reads took at most, and the longest of all."""
        if len(self.latencies_ms) < 2:
            return (self.ms_per_read,) * 4
        cuts = quantiles(self.latencies_ms, n=100, method="inclusive")
        return cuts[49], cuts[89], cuts[98], max(self.latencies_ms)


def measure(run: RowRequests, drive_sectors: int) -> Figures:
    """Puts a row's requests through the disk model.

    Raises ValueError for a request that is not on the drive or has no known kind.
    """
    if len(run.requests) != len(run.kinds) or set(run.kinds) - set(KINDS):
        raise ValueError(f"{run.name}: the kind of each request is one of {', '.join(KINDS)}")
    accesses = replay(run.requests, Disk(drive_sectors)).accesses
    latencies = list(latencies_of(accesses, run.kinds))
    sample = sample_of(run, accesses)
    return Figures(run.name, run.reads, run.requests, run.kinds, accesses, latencies, sample)


def sample_of(run: RowRequests, accesses: Sequence[Access]) -> Sample | None:
    """From one look at the counters to the last one within the published time: from the middle of a
    long run, because at its beginning every pointer is read for the first time; else from the first
    look. None without two looks that differ."""
    limit = PUBLISHED[run.name].sample_seconds if run.name in PUBLISHED else 30
    seconds = [0.0, *accumulate(access.total_ms / 1000 for access in accesses)]
    begin = len(accesses) // 2 if seconds[-1] > 2 * limit else 0
    looks = [look for look in run.samples if look[0] >= begin]
    found = None
    for requests, sectors in looks:
        first, moved = looks[0]
        passed = seconds[requests] - seconds[first]
        if requests > first and passed <= limit:
            found = Sample(requests - first, sectors - moved, passed)
    return found


def latencies_of(accesses: Sequence[Access], kinds: Sequence[str]) -> Iterable[float]:
    """A read ends with the request for its data."""
    ms = 0.0
    for access, kind in zip(accesses, kinds, strict=True):
        ms += access.total_ms
        if kind == "data":
            yield ms
            ms = 0.0
    if ms:
        yield ms


def by_name(figures: Sequence[Figures]) -> dict[str, Figures]:
    """The rows by their names."""
    return {each.name: each for each in figures}


def ratio(figures: Sequence[Figures], name: str, base: str) -> float | None:
    """How many times as long as in `base` a read took in this row; None if one was not run."""
    rows = by_name(figures)
    if name not in rows or base not in rows or not rows[base].seconds:
        return None
    return rows[name].ms_per_read / rows[base].ms_per_read


def ratio_margin(figures: Sequence[Figures], name: str, base: str) -> float:
    """Half of the ratio's interval, of 95 percent: the rows' margins are taken as independent."""
    rows, found = by_name(figures), ratio(figures, name, base)
    parts = (rows[each].margin_ms / rows[each].ms_per_read for each in (name, base))
    return (found or 0.0) * hypot(*parts)


def checks(figures: Sequence[Figures]) -> dict[str, bool]:
    """What the published table and its reading promise. With a few hundred reads chance is larger
    than these limits."""
    rows = by_name(figures)
    published = [(row, PUBLISHED[row.name]) for row in figures if row.name in PUBLISHED]

    def between(low: float, name: str, base: str, high: float) -> bool:
        found = ratio(figures, name, base)
        return found is not None and low <= found <= high

    return {
        "from 1,000 reads on each row takes as long as that of 2010, within 5 percent": all(
            abs(row.ms_per_read / p.ms_per_read - 1) < 0.05 for row, p in published
        ),
        "ext3 takes 1.33 to 1.45 times as long as ext4": all(
            between(1.33, f"ext3 {way}", f"ext4 {way}", 1.45) for way in ("buffered", "direct")
        ),
        "raw takes as long as ext4, within 3 percent": all(
            between(0.97, f"raw {way}", f"ext4 {way}", 1.03) for way in ("buffered", "direct")
        ),
        "ext3 makes 1.85 to 2.0 requests for a read, the others at most 1.02": all(
            1.85 <= row.requests_per_read <= 2.0
            if row.name.startswith("ext3")
            else row.requests_per_read <= 1.02
            for row in figures
        ),
        "a request moves 8 sectors through the page cache, and 1 past it to the raw drive": all(
            round(row.sectors_per_request, 2) == 8 for row in figures if "buffered" in row.name
        )
        and round(rows["raw direct"].sectors_per_request, 2) == 1,
    }


def print_report(figures: Sequence[Figures], console: Console | None = None) -> None:
    """Prints the tables and what they say; each fits 80 columns."""
    console = console or Console()
    console.width = min(WIDTH, console.width) if console.is_terminal else WIDTH
    console.print(_time_table(figures, console))
    console.print(_request_table(figures, console))
    if any(each.sample for each in figures):
        console.print(_sample_table(figures, console))
    console.print(_cost_table(figures, console))
    print(fill(explain(figures), WIDTH), file=console.file)


def _table(console: Console, title: str, columns: Sequence[str], below: str = "") -> Table:
    style = box.ROUNDED if console.is_terminal and not console.legacy_windows else box.ASCII
    table = Table(title=title, title_justify="left", box=style, padding=(0, 1), pad_edge=False,
                  caption=below.translate(PLAIN) or None, caption_justify="left")  # fmt: skip
    for number, column in enumerate(columns):
        table.add_column(
            column.translate(PLAIN), justify="right" if number else "left", no_wrap=True
        )
    return table


TIME_COLUMNS = ("row", "ms/read", "±95 %", "2010 ◇", "dev", "s/100k", "2010 ◆")
REQUEST_COLUMNS = ("row", "req/read", "2010 ◇", "sect/req", "2010 ◇", "tps", "2010 ◆")
SAMPLE_COLUMNS = ("row", "sample, s", "2010 ◆", "tps", "2010 ◆", "Blk_read/s", "2010 ◇")
MARKS = "◆ published, ◇ computed from it; all else is ours"
PLAIN = str.maketrans({"◆": "*", "◇": "o", "±": "+-"})
"""A report may go to a file or through a dumb terminal."""


def deviation(row: Figures) -> str:
    """From the published time of a read."""
    published = PUBLISHED.get(row.name)
    if not published:
        return ""
    seconds = row.ms_per_read * FULL_READS / 1000
    return f"{100 * (seconds / published.seconds - 1):+.1f} %"


def time_rows(figures: Sequence[Figures]) -> list[list[object]]:
    """The rows of TIME_COLUMNS; empty where nothing was published."""
    known = [(each, PUBLISHED.get(each.name)) for each in figures]
    return [
        [f.name, f.ms_per_read, f.margin_ms, p.ms_per_read if p else "", deviation(f),
         f.ms_per_read * 100, p.seconds if p else ""]
        for f, p in known
    ]  # fmt: skip


def request_rows(figures: Sequence[Figures]) -> list[list[object]]:
    """Those of REQUEST_COLUMNS."""
    known = [(each, PUBLISHED.get(each.name)) for each in figures]
    return [
        [f.name, f.requests_per_read, p.requests_per_read if p else "",
         f.sectors_per_request, p.sectors_per_request if p else "", f.tps, p.tps if p else ""]
        for f, p in known
    ]  # fmt: skip


def _time_table(figures: Sequence[Figures], console: Console) -> Table:
    table = _table(console, "next to the published table: the time", TIME_COLUMNS, MARKS)
    for name, ms, margin, ms_then, change, seconds, seconds_then in time_rows(figures):
        cells = (f"{each:.2f}" if each else "" for each in (ms, margin, ms_then))
        ends = (f"{each:.1f}" if each else "" for each in (seconds, seconds_then))
        table.add_row(str(name), *cells, str(change), *ends)
    return table


def _request_table(figures: Sequence[Figures], console: Console) -> Table:
    table = _table(console, "next to the published table: the requests", REQUEST_COLUMNS)
    for name, requests, then, *others in request_rows(figures):
        cells = (f"{each:.2f}" if each else "" for each in others)
        table.add_row(str(name), f"{requests:.3f}", f"{then:g}" if then else "", *cells)
    return table


def _sample_table(figures: Sequence[Figures], console: Console) -> Table:
    table = _table(console, "a sample of /proc/diskstats, as iostat shows it", SAMPLE_COLUMNS)
    for row in sample_rows(figures):
        table.add_row(*(f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in row))
    return table


def sample_rows(figures: Sequence[Figures]) -> list[list[object]]:
    """The samples next to the published ones; empty where there is none."""
    rows: list[list[object]] = []
    for f in figures:
        p, mine = PUBLISHED.get(f.name), f.sample
        rows.append([
            f.name,
            mine.seconds if mine else "", p.sample_seconds if p else "",
            mine.tps if mine else "", p.tps if p else "",
            mine.blocks_per_second if mine else "", p.blocks_per_second if p else "",
        ])  # fmt: skip
    return rows


def _cost_table(figures: Sequence[Figures], console: Console) -> Table:
    columns = ("row", "data", "map", "hits", "seek", "rot", "xfer", "other", "ms/read")
    table = _table(console, "what one read costs, in milliseconds", columns)
    for f in figures:
        a = f.per_read
        parts = (a.seek_ms, a.rotation_ms, a.transfer_ms, a.overhead_ms, f.ms_per_read)
        cells = [
            f"{f.kinds.count('data') / f.reads:.2f}",
            f"{f.mapping_requests / f.reads:.2f}",
            str(f.mapping_hits) if f.mapping_requests else "-",
            *(f"{part:.2f}" for part in parts),
        ]
        table.add_row(f.name, *cells)
    return table


def explain(figures: Sequence[Figures]) -> str:
    """What made the ratio of pointers to extents, in sentences."""
    found = ratio(figures, "ext3 direct", "ext4 direct")
    if found is None:
        return "No ratio: it takes both ext3 direct and ext4 direct."
    before = PUBLISHED["ext3 direct"].seconds / PUBLISHED["ext4 direct"].seconds
    f = by_name(figures)["ext3 direct"]
    second = f.after_mapping
    text = (
        f"Direct reads through block pointers (ext3) took {found:.3f} times as long as through "
        f"extents (ext4), give or take "
        f"{ratio_margin(figures, 'ext3 direct', 'ext4 direct'):.3f}; in 2010 {before:.3f},"
        " computed "
        f"from the published seconds for {FULL_READS:,} reads. Of {f.reads:,} reads, "
        f"{f.mapping_hits:,} found their pointer block in memory and {len(second):,} did not"
    )
    if not second:
        return text + "."
    cost = add_up(second, len(second))
    return (
        f"{text}: these read the pointer block first, and the data, close to it, cost "
        f"{cost.seek_ms:.2f} ms of seek and {cost.rotation_ms:.2f} ms of rotation more, "
        "not a second random read."
    )


def predict(experiment: Experiment) -> list[RowRequests]:
    """The rows on paper, through a page cache that forgets nothing."""
    layouts = {"raw": RawLayout, "ext3": PointerLayout, "ext4": ExtentLayout}
    sectors, runs = experiment.drive_bytes // SECTOR_BYTES, []
    for name in [*PUBLISHED, "raw direct"]:
        layout, way = name.split()
        run = simulate(layouts[layout](sectors), experiment.reads, experiment.seed)
        requests = [
            request if way == "buffered" or mapping else request._replace(sectors=1)
            for request, mapping in zip(run.requests, run.mapping, strict=True)
        ]
        kinds = ["mapping" if mapping else "data" for mapping in run.mapping]
        runs.append(RowRequests(name, experiment.reads, requests, kinds))
    return runs


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = Options("report", "The lab's table, on paper.")
    add_experiment_options(parser)
    experiment = chosen_experiment(parser.parse_args(arguments))
    sectors = experiment.drive_bytes // SECTOR_BYTES
    print_report([measure(run, sectors) for run in predict(experiment)])
    return 0


if __name__ == "__main__":
    raise SystemExit(in_a_line("report", main))

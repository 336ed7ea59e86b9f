"""The lab's table: what the drives' requests would have cost in 2010, and the published figures.

    python3 -m labs.storage.report [--scale 100] [--reads N] [--seed S]
    python3 -m labs.storage.report --trace TRACE.csv --reads N [--scale 100]

The first works the requests out on paper, the second has them from a guest. A trace has the
columns drive, operation (r or w), lba, sectors and kind: data, mapping (a pointer or extent block)
or other. Each drive's requests go through the disk model one after another, and all times are the
model's. Blocks are iostat's: sectors of 512 bytes.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from textwrap import fill
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from labs.storage.disk_model import SECTOR_BYTES, Access, Disk, Request, add_up, replay
from labs.storage.disks import (
    FULL_READS,
    Experiment,
    Parser,
    add_experiment_options,
    chosen_experiment,
)
from labs.storage.workload import ExtentLayout, PointerLayout, RawLayout, simulate

LABELS = {"hdb": "raw", "hdc": "pointers", "hdd": "extents"}
KINDS = ("data", "mapping", "other")
WIDTH = 100


@dataclass(frozen=True)
class Published:
    """A row of the table of 27 June 2010: 100,000 reads of 512 bytes on 2 TB."""

    seconds: float
    ms_per_read: float
    tps: float
    sectors_per_request: float
    requests_per_read: float


PUBLISHED = {
    False: {
        "hdb": Published(1478.5, 14.79, 67.27, 8.00, 0.995),
        "hdc": Published(2063.6, 20.64, 95.88, 8.00, 1.98),
        "hdd": Published(1484.0, 14.84, 60.72, 8.00, 0.90),
    },
    True: {
        "hdb": Published(1478.5, 14.79, 67.27, 8.00, 0.995),
        "hdc": Published(2006.9, 20.07, 94.93, 4.38, 1.905),
        "hdd": Published(1465.5, 14.66, 67.90, 1.00, 0.995),
    },
}
"""By whether the reads went past the page cache, then by drive; `raw` was measured once."""


@dataclass(frozen=True)
class DriveRun:
    """The requests of one drive in order, each with its kind: "data", "mapping" or "other"."""

    drive: str
    reads: int
    requests: Sequence[Request]
    kinds: Sequence[str]


def kinds_by_data(requests: Iterable[Request], data_lbas: Collection[int]) -> list[str]:
    """A request is for data if it covers the LBA of a read, and else for a mapping block."""
    wanted = frozenset(data_lbas)
    return [
        "mapping" if wanted.isdisjoint(range(r.lba, r.lba + r.sectors)) else "data"
        for r in requests
    ]


@dataclass(frozen=True)
class Figures:
    """What the table says of one drive. Times are of the disk model."""

    drive: str
    reads: int
    data_requests: int
    mapping_requests: int
    other_requests: int
    cold_reads: int
    sectors_read: int
    sectors_written: int
    seconds: float
    per_read: Access
    """The mean cost of a user's read, all its requests together."""
    mapping_ms: float
    """The mean time that a cold read took for mapping blocks."""
    after_mapping: Access
    """The mean cost of a data request right after a mapping request."""

    @property
    def requests(self) -> int:
        """All requests."""
        return self.data_requests + self.mapping_requests + self.other_requests

    @property
    def mapping_hits(self) -> int:
        """Reads that found all their mapping blocks in memory."""
        return self.reads - self.cold_reads

    @property
    def ms_per_read(self) -> float:
        """Milliseconds for one read of the user."""
        return self.seconds * 1000 / self.reads

    @property
    def sectors_per_request(self) -> float:
        """The mean length of a request."""
        return (self.sectors_read + self.sectors_written) / max(1, self.requests)

    def per_second(self, count: float) -> float:
        """A count as a rate, in modelled time; 0 when no time passed."""
        return count / self.seconds if self.seconds else 0.0


def measure(run: DriveRun, drive_sectors: int) -> Figures:
    """Puts a drive's requests through the disk model.

    Raises ValueError for a request that is not on the drive or has no known kind.
    """
    if len(run.requests) != len(run.kinds) or set(run.kinds) - set(KINDS):
        raise ValueError(f"{run.drive}: the kind of each request is one of {', '.join(KINDS)}")
    accesses = replay(run.requests, Disk(drive_sectors)).accesses
    mapping = [a for a, kind in zip(accesses, run.kinds, strict=True) if kind == "mapping"]
    second = _after_mapping(accesses, run.kinds)
    cold = max(1, len(second))
    return Figures(
        drive=run.drive,
        reads=run.reads,
        data_requests=run.kinds.count("data"),
        mapping_requests=len(mapping),
        other_requests=run.kinds.count("other"),
        cold_reads=len(second),
        sectors_read=_sectors(run.requests, "r"),
        sectors_written=_sectors(run.requests, "w"),
        seconds=sum(a.total_ms for a in accesses) / 1000,
        per_read=add_up(accesses, run.reads),
        mapping_ms=add_up(mapping, cold).total_ms,
        after_mapping=add_up(second, cold),
    )


def _sectors(requests: Iterable[Request], operation: str) -> int:
    return sum(r.sectors for r in requests if r.operation.startswith(operation))


def _after_mapping(accesses: Sequence[Access], kinds: Sequence[str]) -> list[Access]:
    """The accesses to data that had to read a mapping block first."""
    return [
        access
        for access, kind, before in zip(accesses[1:], kinds[1:], kinds, strict=False)
        if kind == "data" and before == "mapping"
    ]


def print_report(
    figures: Sequence[Figures], direct: bool = False, console: Console | None = None
) -> None:
    """Prints both tables and what they say; `direct`: the reads went past the page cache."""
    console = console or Console()
    console.width = min(WIDTH, console.width) if console.is_terminal else WIDTH
    published = PUBLISHED[direct]
    console.print(_iostat_table(figures, published, console))
    console.print(_cost_table(figures, published, console))
    print(fill(explain(figures, direct), WIDTH), file=console.file)


def _table(console: Console, title: str, columns: Sequence[str]) -> Table:
    style = box.ROUNDED if console.is_terminal and not console.legacy_windows else box.ASCII
    table = Table(title=title, title_justify="left", box=style, padding=(0, 1), pad_edge=False)
    for column in columns:
        table.add_column(column, justify="left" if column == "Device" else "right", no_wrap=True)
    return table


def _label(drive: str) -> str:
    return f"{drive} {LABELS.get(drive, '')}".strip()


def _iostat_table(
    figures: Sequence[Figures], published: dict[str, Published], console: Console
) -> Table:
    columns = ("Device", "tps", "Blk_read/s", "Blk_wrtn/s", "Blk_read", "Blk_wrtn")
    table = _table(console, "iostat, in the model's time", columns)
    for f in figures:
        table.add_row(
            _label(f.drive),
            f"{f.per_second(f.requests):.2f}",
            f"{f.per_second(f.sectors_read):.2f}",
            f"{f.per_second(f.sectors_written):.2f}",
            str(f.sectors_read),
            str(f.sectors_written),
        )
        if p := published.get(f.drive):
            table.add_row("  in 2010", f"{p.tps:.2f}", f"{p.tps * p.sectors_per_request:.2f}",
                          "0.00", "", "", style="dim")  # fmt: skip
    return table


def _cost_table(
    figures: Sequence[Figures], published: dict[str, Published], console: Console
) -> Table:
    columns = ("Device", "req", "data", "map", "sect", "hits", "ms/op", "seek", "rot", "xfer",
               "other", "total s")  # fmt: skip
    table = _table(console, "what one read costs", columns)
    for f in figures:
        table.add_row(_label(f.drive), *_cost_cells(f))
        if p := published.get(f.drive):
            cells = [f"{p.requests_per_read:g}", "", "", f"{p.sectors_per_request:.2f}", "",
                     f"{p.ms_per_read:.2f}", "", "", "", "", f"{p.seconds:.1f}"]  # fmt: skip
            table.add_row("  in 2010", *cells, style="dim")
    return table


def _cost_cells(f: Figures) -> list[str]:
    a = f.per_read
    parts = (f.ms_per_read, a.seek_ms, a.rotation_ms, a.transfer_ms, a.overhead_ms)
    return [
        f"{f.requests / f.reads:.2f}",
        f"{f.data_requests / f.reads:.2f}",
        f"{f.mapping_requests / f.reads:.2f}",
        f"{f.sectors_per_request:.2f}",
        str(f.mapping_hits) if f.mapping_requests else "-",
        *(f"{part:.2f}" for part in parts),
        f"{f.seconds:.1f}",
    ]


def ratio(figures: Sequence[Figures], drive: str, base: str) -> float | None:
    """How many times as long as `base` this drive took for a read; None if one was not run."""
    by_drive = {f.drive: f for f in figures}
    if drive not in by_drive or base not in by_drive or not by_drive[base].seconds:
        return None
    return by_drive[drive].ms_per_read / by_drive[base].ms_per_read


def explain(figures: Sequence[Figures], direct: bool = False) -> str:
    """What made the ratio, in sentences."""
    pointers_to_extents = ratio(figures, "hdc", "hdd")
    if pointers_to_extents is None:
        return "No ratio: it takes both hdc and hdd."
    p, published = next(f for f in figures if f.drive == "hdc"), PUBLISHED[direct]
    before = published["hdc"].seconds / published["hdd"].seconds
    text = (
        f"Block pointers took {pointers_to_extents:.3f} times as long as extents "
        f"(2010: {before:.3f}, for {FULL_READS:,} reads). "
        f"Of {p.reads:,} reads, {p.mapping_hits:,} found their pointers in memory and "
        f"{p.cold_reads:,} did not"
    )
    if not p.cold_reads:
        return text + "."
    second = p.after_mapping
    return (
        f"{text}: these waited {p.mapping_ms:.2f} ms for pointer blocks. The data was close "
        f"to them and cost {second.seek_ms:.2f} ms of seek and {second.rotation_ms:.2f} "
        "ms of rotation more, not a second random read."
    )


def write_csv(figures: Sequence[Figures], path: Path) -> None:
    """One row a drive: every field of Figures, times as its names say."""
    with path.open("w", newline="") as file:
        rows = [_flat(f) for f in figures]
        writer = csv.DictWriter(file, list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows(rows)


def _flat(figures: Figures) -> dict[str, Any]:
    """The parts of an Access become columns of their own: per_read_seek_ms."""
    flat: dict[str, Any] = {}
    for field in fields(figures):
        value = getattr(figures, field.name)
        if isinstance(value, Access):
            flat |= {f"{field.name}_{part}": time for part, time in value._asdict().items()}
        else:
            flat[field.name] = value
    return flat


def read_trace(path: Path, reads: int) -> list[DriveRun]:
    """The drives' runs in a trace file. ValueError names the line that cannot be read."""
    runs: dict[str, DriveRun] = {}
    with path.open(newline="") as file:
        for number, row in enumerate(csv.DictReader(file), start=2):
            try:
                request = Request(row["operation"], int(row["lba"]), int(row["sectors"]))
                run = runs.setdefault(row["drive"], DriveRun(row["drive"], reads, [], []))
                run.requests.append(request)
                run.kinds.append(row["kind"])
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"{path}, line {number}: {error}") from error
    return [runs[drive] for drive in sorted(runs)]


def predict(experiment: Experiment) -> list[DriveRun]:
    """The three drives' runs on paper, through a page cache that forgets nothing."""
    runs = []
    for drive, layout in (("hdb", RawLayout), ("hdc", PointerLayout), ("hdd", ExtentLayout)):
        sectors = experiment.drive_bytes // SECTOR_BYTES
        run = simulate(layout(sectors), experiment.reads, experiment.seed)
        kinds = ["mapping" if mapping else "data" for mapping in run.mapping]
        runs.append(DriveRun(drive, experiment.reads, run.requests, kinds))
    return runs


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = Parser(prog="report", description="The lab's table.")
    parser.add_argument("--trace", type=Path, help="requests, as CSV; else the run on paper")
    parser.add_argument("--direct", action="store_true", help="compare with direct reads")
    parser.add_argument("--csv", type=Path, help="also write the figures here")
    add_experiment_options(parser)
    options = parser.parse_args(arguments)
    experiment = chosen_experiment(options)
    try:
        trace = options.trace
        runs = read_trace(trace, experiment.reads) if trace else predict(experiment)
        figures = [measure(run, experiment.drive_bytes // SECTOR_BYTES) for run in runs]
        if options.csv:
            write_csv(figures, options.csv)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    print_report(figures, options.direct)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

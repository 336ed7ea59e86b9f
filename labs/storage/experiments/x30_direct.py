"""X30: who waits in a direct write, with the lock of the inode and without."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles

from matplotlib.figure import Figure
from simpy import Environment

from labs.storage.disk_model import Model, drive
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.experiments.guest import data_image, run_guest, said_rows
from labs.storage.experiments.waiting import Lock, Task, run
from labs.storage.linux_program import COMPILER
from labs.storage.pages import label, legend, mark_prediction, pictures, ticks
from labs.tools.course.measurement import Question
from labs.tools.guest.initramfs import regular
from labs.tools.machine.qemu_command import Drive
from labs.tools.machine.work_folder import work_folder

DRIVES = 8
UNIT = 128  # sectors on a drive before the next one's turn: 64 KiB
RECORDS = 1024  # of two units each
APART = 40_000  # sectors between two records of a drive: the file covers a part of the stroke
COPY_MS = 2 * UNIT * 512 / 800e6 * 1000  # of a record, at 800 MB/s
DIRTY, CHUNK = 128, 32  # records: how many may be dirty, and what a writer writes back above that
WRITERS = READERS = 4
WRITE_MS, READ_MS = 2.0, 5.0  # between two calls of a task, in the mean
SECONDS, SMALL_SECONDS = 120, 30
ROUNDS, SMALL_ROUNDS = 200, 40  # in the guest
SEED = 30


@dataclass(frozen=True)
class Way:
    """is_direct: past the cache; who takes the inode's lock: writers alone, readers shared."""

    is_direct: bool
    writers_lock: bool
    readers_lock: bool


BUFFERED, CACHED = "buffered, all lock", "buffered, writers lock"
DIRECT, FREE = "direct, all lock", "direct, no lock"
WAYS = {BUFFERED: Way(False, True, True), CACHED: Way(False, True, False),
        DIRECT: Way(True, True, True), FREE: Way(True, False, False)}  # fmt: skip


class Trial:
    """Writers and readers of one file that is striped over drives."""

    def __init__(self, way: Way, seconds: float) -> None:
        self.way, self.end_ms = way, 1000 * seconds
        self.clock, self.random = Environment(), random.Random(SEED)
        self.inode = Lock(self.clock)
        self.drives: list[Model] = [drive("hdd15k") for _ in range(DRIVES)]
        self.free_ms = [0.0] * DRIVES
        self.version: dict[tuple[int, int], int] = {}  # of each half of a record
        self.dirty: dict[int, None] = {}  # records, the oldest first
        self.numbers = 0
        self.torn = 0
        self.latencies: dict[str, list[float]] = {"write": [], "read": []}

    def run(self) -> Data:
        """Until the time is over."""
        tasks = [*(self.task("write", WRITE_MS) for _ in range(WRITERS)),
                 *(self.task("read", READ_MS) for _ in range(READERS))]  # fmt: skip
        run(self.clock, tasks)
        row: Data = {"torn": self.torn}
        for kind, each in self.latencies.items():
            cuts = quantiles(each, n=100, method="inclusive")
            row |= {f"{kind}s": 1000 * len(each) / self.end_ms, f"{kind}_p50": cuts[49],
                    f"{kind}_p99": cuts[98], f"{kind}_cuts": cuts}  # fmt: skip
        return row

    def task(self, kind: str, think_ms: float) -> Task:
        """Calls, and works between them."""
        is_write = kind == "write"
        locks = self.way.writers_lock if is_write else self.way.readers_lock
        while self.clock.now < self.end_ms:
            yield self.clock.timeout(self.random.expovariate(1 / think_ms))
            since, record = self.clock.now, self.random.randrange(RECORDS)
            if locks:
                yield self.inode.alone() if is_write else self.inode.shared()
            yield from self.write(record) if is_write else self.read(record)
            if locks:
                self.inode.give_back()
            self.latencies[kind].append(self.clock.now - since)

    def transfer(self, record: int, half: int, operation: str) -> float:
        """A unit's turn at its drive, first come, first served; returns how long it takes."""
        number = (2 * record + half) % DRIVES
        lba = (2 * record + half) // DRIVES * APART
        start = max(self.clock.now, self.free_ms[number])
        served = self.drives[number].service(start, lba, UNIT, operation)
        self.free_ms[number] = start + served.total_ms
        return self.free_ms[number] - self.clock.now

    def write(self, record: int) -> Task:
        """One half after the other. A writer that makes too much dirty writes back what is oldest,
        and has the lock meanwhile. A drive's queue keeps its order, so what is sent is there for
        any task that asks later."""
        self.numbers += 1
        number = self.numbers
        if not self.way.is_direct:
            self.dirty[record] = None
        for half in (0, 1):
            self.version[record, half] = number
            taken = self.transfer(record, half, "w") if self.way.is_direct else COPY_MS / 2
            yield self.clock.timeout(taken)
        if not self.way.is_direct and len(self.dirty) > DIRTY:
            yield self.clock.timeout(self.written_back(sorted(list(self.dirty)[:CHUNK])))

    def written_back(self, records: Iterable[int]) -> float:
        """All of them at once; returns when the last drive is done."""
        latest = 0.0
        for record in records:
            del self.dirty[record]
            latest = max(latest, *(self.transfer(record, half, "w") for half in (0, 1)))
        return latest

    def read(self, record: int) -> Task:
        """Both drives at once, and then the copy, one half after the other. Half of the records are
        in the cache, and what is dirty."""
        is_cached = not self.way.is_direct and (record % 2 == 0 or record in self.dirty)
        seen = [self.version.get((record, half), 0) for half in (0, 1)]
        if not is_cached:
            both = max(self.transfer(record, half, "r") for half in (0, 1))
            yield self.clock.timeout(both)
        for half in (0, 1) if not self.way.is_direct else ():
            if is_cached:
                seen[half] = self.version.get((record, half), 0)
            yield self.clock.timeout(COPY_MS / 2)
        self.torn += seen[0] != seen[1]


def in_guest(where: Where) -> Data:
    """This kernel: two writers and two readers of one file, past the cache."""
    rounds = SMALL_ROUNDS if where.small else ROUNDS
    with work_folder("images", where.build.parent) as folder:
        image, program = folder / "image", folder / "order_check"
        source = Path(__file__).with_name("order_check.c")
        subprocess.run([*COMPILER, str(source), "-o", str(program)], check=True)
        data_image(image, 64 << 20, {"f": 512 << 10})
        entry = regular("bin/order_check", program.read_bytes())
        done = run_guest(where.build, f"mount -t ext4 /dev/hdb /a && order_check /a/f direct "
                         f"{rounds}", [Drive(image, 1)], [entry])  # fmt: skip
    return said_rows(done)[0]


def measure(where: Where) -> Data:
    """Every way in the model, and the order of this kernel's direct reads and writes."""
    seconds = SMALL_SECONDS if where.small else SECONDS
    rows = [{"way": name, **Trial(way, seconds).run()} for name, way in WAYS.items()]
    return {"rows": rows, "guest": in_guest(where)}


def of(data: Data, way: str) -> Data:
    """A way."""
    return next(row for row in data["rows"] if row["way"] == way)


def result(data: Data) -> float:
    """What the lock takes away from direct writers."""
    return of(data, FREE)["writes"] / of(data, DIRECT)["writes"]


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """How long calls take, and how many there are."""
    times, (upper, lower) = pictures(2, height=2.9)
    for axes, kind, said in ((upper, "read", ("a read, ms", "读, 毫秒")),
                             (lower, "write", ("a write, ms", "写, 毫秒"))):  # fmt: skip
        for row, style in zip(data["rows"], ("-", "--", "-", "--"), strict=True):
            axes.plot(row[f"{kind}_cuts"], range(1, 100), style, linewidth=1.3, label=row["way"])
        axes.set(xscale="log", ylim=(0, 100))
        ticks(axes, (0.2, 0.5, 1, 2, 5, 10, 20, 50))
        label(axes, said, ("calls, %", "调用, %"))
    legend(upper)
    rates, axes = pictures(height=2.9)
    for number, kind in enumerate(("write", "read")):
        axes.bar([place + 0.4 * number - 0.2 for place in range(len(WAYS))],
                 [row[f"{kind}s"] for row in data["rows"]], 0.36,
                 label=("writes 写", "reads 读")[number])  # fmt: skip
    axes.set_xticks(range(len(WAYS)), [name.replace(", ", ",\n") for name in WAYS], fontsize=8)
    axes.set_axisbelow(True)
    label(axes, ("way", "方式"), ("calls a second", "每秒调用"))
    if predicted is not None:
        mark_prediction(axes, predicted * of(data, DIRECT)["writes"])
    legend(axes)
    return [(times, f"{WRITERS} writers and {READERS} readers of one file on {DRIVES} drives"),
            (rates, "The same tasks: how many calls there are in a second")]  # fmt: skip


def tables(data: Data) -> Sequence[Table]:
    """Every way."""
    rows = [(r["way"], r["writes"], r["write_p50"], r["write_p99"], r["reads"], r["read_p50"],
             r["read_p99"], r["torn"]) for r in data["rows"]]  # fmt: skip
    guest = data["guest"]
    return [
        ("Calls a second; median and 99th percentile in ms; reads with halves of two writes",
         ["", "writes/s", "p50", "p99", "reads/s", "p50", "p99", "torn"], rows),
        ("This kernel, 2 writers and 2 readers past the cache", ["", "reads", "torn"],
         [("direct, all lock", guest["reads"], guest["torn"])]),
    ]  # fmt: skip


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    direct, free, buffered, cached = (of(data, way) for way in (DIRECT, FREE, BUFFERED, CACHED))
    return (
        f"With the lock direct writers wait for each other, and for readers: {direct['writes']:.0f}"
        f" writes a second on {DRIVES} drives, and {free['writes']:.0f} without it,"
        f" {result(data):.1f} times as many; a read takes {free['read_p50']:.0f} ms in the median"
        f" instead of {direct['read_p50']:.0f}.",
        f"Buffered writers make {buffered['writes']:.0f} writes a second; one that must write"
        " back has the lock meanwhile, so one of 100 reads takes"
        f" {buffered['read_p99']:.0f} ms or more, although half of the records are in memory:"
        f" without a lock for readers it is {cached['read_p99']:.0f} ms.",
        f"The price is the order: without the lock {free['torn']} direct reads had halves of two"
        f" writes; with it {direct['torn']} had, and {data['guest']['torn']} of"
        f" {data['guest']['reads']:,} on this kernel.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    direct, free, buffered, cached = (of(data, way) for way in (DIRECT, FREE, BUFFERED, CACHED))
    return {
        "direct writers without the lock make over twice as many writes": result(data) > 2,
        "and readers next to them wait less": free["read_p50"] < direct["read_p50"] / 2,
        "buffered writers are faster than direct ones with the lock": buffered["writes"]
        > direct["writes"],
        "readers wait for buffered writers: without their lock p99 falls": cached["read_p99"]
        < buffered["read_p99"],
        "a buffered write mostly takes as long as the copy and the lock": buffered["write_p50"]
        < direct["write_p50"] / 4,
        "with the lock no read has halves of two writes": buffered["torn"] == direct["torn"] == 0,
        "without it some have": free["torn"] > 0,
        "this kernel keeps the order of direct reads and writes": data["guest"]["torn"] == 0,
        "and all its reads were done": data["guest"]["reads"] in (2 * ROUNDS, 2 * SMALL_ROUNDS),
    }  # fmt: skip


ABOUT = About(
    number=30,
    title="Who waits in a direct write?",
    chinese="直接写时谁在等待?",
    question="A file's lock keeps its reads and writes in order. What does it cost if a"
    " call goes to the drives, and if it goes to the page cache?",
    expected="Published without figures: what direct I/O saves a database is the lock and the"
    " copy. Ours: a direct write has the lock for as long as the drive takes, a buffered one for"
    " a copy, until it must write back.",
    ask=Question("times", "Four writers and four readers on eight drives, past the cache: how many"
                 " times as many writes are there without the file's lock?", "times"),
    method="A model: a file of 1,024 records of 128 KiB is striped over eight 15,000 rpm disks, in"
    " units of 64 KiB. Four tasks write records at random, one unit after the other; four read"
    " them, both units at once. Writers take the file's lock alone, readers share it. Buffered: a"
    " copy at 800 MB/s, half of the records in memory; with over 128 records dirty a writer writes"
    " 32 back, with the lock. A read whose halves are of two writes is torn; all copies go at one"
    " pace, so no cached read overtakes a writer. In the guest, where reads"
    " and writes past the cache take the lock of the file, two tasks write and two read 512 KiB;"
    " only the order is checked there, as it must not depend on time.",
    changes="On one drive the drive is the queue, and the lock changes little. A lock for ranges of"
    " the file lets in who works elsewhere: most of what is won, with the order. A database has"
    " locks of its own, so it needs no file's lock. Background write-back takes the waiting off the"
    " writer. On this kernel, as on Linux, buffered reads take no lock.",
)  # fmt: skip

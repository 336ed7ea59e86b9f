"""X35: a random reader next to a streaming writer, and three orders of the queue."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import quantiles

from matplotlib.figure import Figure

from labs.storage.disk_model import Disk, Request, replay
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.experiments.guest import data_image, run_guest
from labs.storage.pages import label, legend, mark_prediction, pictures, ticks
from labs.storage.queue_model import ORDERS, Waiting
from labs.tools.course.measurement import Question
from labs.tools.machine.qemu_command import Drive
from labs.tools.machine.work_folder import work_folder

READER, WRITER = 0, 1
DEPTH = 64  # writes that wait, as write-back sends them
WRITE, READ = 1024, 8  # sectors: 512 KiB and 4 KiB
STREAM_BYTES = 1 << 30  # of the writer's file; then it begins again
SECTORS = 390_702_917  # of a drive of 200 GB: a tenth of the disk of 2010
STREAM_AT = SECTORS // 2  # where the file is
SECONDS, SMALL_SECONDS = 300, 40
DEPTHS, SMALL_DEPTHS = (1, 2, 4, 16, 64), (1, 2)
GUEST_MIB, SMALL_GUEST_MIB = 16, 4  # that dd writes, while seekrw reads
MOST_READS = 1_000_000  # never reached: the reader is ended with the writer
GUEST_SHIFT = 3  # 8 ns an instruction
SLICES_MS = (10, 20, 50, 100, 200)  # of a task, before the other one has its turn
SLICE_MS = 50
SEED = 35
FIFO, LOOK, FAIR = "fifo", "c-look", "fair"
ALONE = {READER: "reader alone", WRITER: "writer alone"}


@dataclass
class Fair:
    """Disk time for each task. A task goes on until it has had a slice, or has nothing that waits;
    then the one that has had least is next. A task that comes back has no claim to what it did not
    use."""

    slice_ms: float
    task: int | None = None
    left_ms: float = 0.0
    had_ms: dict[int, float] = field(default_factory=lambda: {READER: 0.0, WRITER: 0.0})

    def choose(self, at: int, waiting: list[Waiting]) -> Waiting:
        """Within a task upwards, as C-LOOK."""
        here = {each.reader for each in waiting}
        if self.task not in here or self.left_ms <= 0:
            self.task = min(here, key=lambda task: (self.had_ms[task], task))
            self.left_ms = self.slice_ms
        mine = [each for each in waiting if each.reader == self.task]
        return min(mine, key=lambda each: (each.request.lba < at, each.request.lba))

    def spend(self, task: int, ms: float) -> None:
        """The task's request took this long."""
        self.left_ms -= ms
        self.had_ms[task] += ms
        other = WRITER if task == READER else READER
        least = self.had_ms[task] - self.slice_ms
        self.had_ms[other] = max(self.had_ms[other], least)


def reads(seed: int) -> Iterator[Request]:
    """At random, on the whole drive."""
    generator = random.Random(seed)
    while True:
        yield Request("read", generator.randrange(SECTORS - READ), READ)


def writes() -> Iterator[Request]:
    """One after another, again and again."""
    while True:
        for at in range(STREAM_AT, STREAM_AT + STREAM_BYTES // 512, WRITE):
            yield Request("write", at, WRITE)


@dataclass
class Outcome:
    """What a run was: how long each read took, how many writes ended, and the served requests."""

    read_ms: list[float] = field(default_factory=list)
    writes: int = 0
    served: list[Request] = field(default_factory=list)
    total_ms: float = 0.0


def run(order: str, seconds: float, tasks: Sequence[int], slice_ms: float = SLICE_MS,
        depth: int = DEPTH) -> Outcome:  # fmt: skip
    """Both tasks, or one, on a drive. The reader has one read that waits, the writer `depth`
    writes; the next one comes when one has ended, after the host's turnaround."""
    disk, fair, done = Disk(SECTORS), Fair(slice_ms), Outcome()
    sources = {READER: reads(SEED), WRITER: writes()}
    now_ms, at = 0.0, 0
    waiting: list[Waiting] = []

    def begin(task: int, came_ms: float) -> None:
        waiting.append(Waiting(came_ms, came_ms, task, next(sources[task]), []))

    for task in tasks:
        for _ in range(1 if task == READER else depth):
            begin(task, 0.0)
    while now_ms < 1000 * seconds:
        now_ms = max(now_ms, min(each.came_ms for each in waiting))
        here = [each for each in waiting if each.came_ms <= now_ms]
        chosen = fair.choose(at, here) if order == FAIR else ORDERS[order](disk, now_ms, at, here)
        waiting.remove(chosen)
        request = chosen.request
        took_ms = disk.service(now_ms, request.lba, request.sectors, request.operation).total_ms
        now_ms, at = now_ms + took_ms, request.lba + request.sectors
        fair.spend(chosen.reader, took_ms)
        done.served.append(request)
        if chosen.reader == READER:
            done.read_ms.append(now_ms - chosen.begun_ms)
        else:
            done.writes += 1
        begin(chosen.reader, now_ms + disk.of.host_turnaround_ms)
    done.total_ms = now_ms
    return done


def between(requests: Sequence[Request]) -> list[int]:
    """How many writes there are between a read and the next one."""
    found, writes_since = list[int](), 0
    for each in requests:
        if each.operation.startswith("w"):
            writes_since += 1
        elif each.sectors == READ:
            found.append(writes_since)
            writes_since = 0
    return found[1:]


def in_guest(where: Where) -> list[Data]:
    """This kernel's queue, by both of its orders: what the drive was asked while dd wrote, and
    seekrw read past the cache. Only the order counts: the drive answers at once."""
    read = "seekrw -f /a/r -d -a {} -l 4096 -r >/dev/null 2>&1"
    script = (  # the first reads fetch the map, so that later ones do not wait for it
        "echo {} >/sys/block/hdb/queue/scheduler; mount -t ext4 /dev/hdb /a; "
        f"{read.format(20)}; mark 1; {read.format(MOST_READS)} & "
        "dd if=/dev/zero of=/a/w bs=1M count={} conv=fsync 2>/dev/null; kill $!; mark 2; umount /a"
    )
    rows = []
    with work_folder("images", where.build.parent) as folder:
        for order in (FIFO, LOOK):
            image = data_image(folder / "image", 256 << 20, {"r": 32 << 20})
            size = SMALL_GUEST_MIB if where.small else GUEST_MIB
            done = run_guest(where.build, script.format(order, size),
                             [Drive(image, 1)], memory=64, icount=GUEST_SHIFT)  # fmt: skip
            found = sorted(between(done.phases[1].of("hdb")))
            busy = [each for each in found if each > 0]
            rows.append({"order": order, "reads": len(found), "median": busy[len(busy) // 2],
                         "most": busy[-1]})  # fmt: skip
    return rows


def row(name: str, done: Outcome) -> Data:
    """A run's figures."""
    rate = done.writes * WRITE * 512 / 1e6 / done.total_ms * 1000
    found: Data = {"order": name, "rate": rate, "reads": len(done.read_ms) / done.total_ms * 1000}
    if len(done.read_ms) > 1:
        cuts = quantiles(done.read_ms, n=100, method="inclusive")
        found |= {"p50": cuts[49], "p99": cuts[98], "most": max(done.read_ms), "cuts": cuts}
    return found


def measure(where: Where) -> Data:
    """Each task alone, both with each order, and slices of several lengths."""
    seconds = SMALL_SECONDS if where.small else SECONDS
    alone = {task: run(FIFO, seconds, [task]) for task in (READER, WRITER)}
    replayed = replay(alone[READER].served, Disk(SECTORS)).total_ms
    turnaround = Disk(SECTORS).of.host_turnaround_ms
    rows = [row(ALONE[task], done) for task, done in alone.items()]
    rows += [row(order, run(order, seconds, [READER, WRITER])) for order in (FIFO, LOOK, FAIR)]
    slices = [{"slice": each, **row(FAIR, run(FAIR, seconds, [READER, WRITER], each))}
              for each in SLICES_MS]  # fmt: skip
    counts = SMALL_DEPTHS if where.small else DEPTHS
    depths = [{"depth": each, **row(order, run(order, seconds, [READER, WRITER], depth=each))}
              for order in (FIFO, LOOK) for each in counts]  # fmt: skip
    single = between(run(LOOK, seconds / 10, [READER, WRITER], depth=1).served)
    return {"rows": rows, "slices": slices, "depths": depths, "single": max(single),
            "guest": in_guest(where),
            "replay": (replayed - turnaround) / alone[READER].total_ms}  # fmt: skip


def of(data: Data, order: str) -> Data:
    """A run."""
    return next(row for row in data["rows"] if row["order"] == order)


def result(data: Data) -> float:
    """How much shorter the fair order makes the longest reads."""
    return of(data, FIFO)["p99"] / of(data, FAIR)["p99"]


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """How long reads take; what slices of other lengths do."""
    times, axes = pictures()
    for number, each in enumerate(row for row in data["rows"] if "cuts" in row):
        axes.plot(each["cuts"], range(1, 100), ("-", "--")[number % 2],
                  linewidth=1.3, label=each["order"])  # fmt: skip
    axes.set(xscale="log", ylim=(0, 100))
    ticks(axes, (10, 30, 100, 300, 1000, 3000, 10_000))
    label(axes, ("a read, ms", "读, 毫秒"), ("reads, %", "读, %"))
    if predicted is not None and predicted > 0:
        mark_prediction(axes, of(data, FIFO)["p99"] / predicted, is_vertical=True)
    legend(axes)
    price, (upper, lower) = pictures(2, height=2.5)
    slices = [each["slice"] for each in data["slices"]]
    upper.plot(slices, [each["p99"] for each in data["slices"]], "o-", markersize=4)
    lower.plot(slices, [each["rate"] for each in data["slices"]], "o-", markersize=4)
    lower.axhline(of(data, FIFO)["rate"], color="k", linestyle=":", linewidth=1, label=FIFO)
    for picture in (upper, lower):
        picture.set(ylim=(0, None))
    legend(lower)
    said = ("slice of disk time, ms", "磁盘时间片, 毫秒")
    label(upper, said, ("a read, p99, ms", "读的 p99, 毫秒"))
    label(lower, said, ("writer, MB/s", "写者, MB/s"))
    return [
        (times, "A reader next to a writer who has 64 writes of 512 KiB in the queue"),
        (price, "Fair: the longer a slice, the longer a read, and the more is written"),
    ]


def tables(data: Data) -> Sequence[Table]:
    """Every run."""
    none = "-"
    rows = [(r["order"], r.get("p50", none), r.get("p99", none), r.get("most", none), r["reads"],
             r["rate"]) for r in data["rows"]]  # fmt: skip
    slices = [(f"{r['slice']} ms", r["p50"], r["p99"], r["most"], r["reads"], r["rate"])
              for r in data["slices"]]  # fmt: skip
    columns = ["", "median, ms", "p99, ms", "longest, ms", "reads/s", "writer, MB/s"]
    depths = [(f"{r['order']}, {r['depth']}", r["p50"], r["p99"], r["most"], r["reads"], r["rate"])
              for r in data["depths"]]  # fmt: skip
    guest = [(r["order"], r["reads"], r["median"], r["most"]) for r in data["guest"]]
    return [
        ("By order", columns, rows),
        ("Fair, by the slice", columns, slices),
        ("By order, and how many writes wait", columns, depths),
        ("This kernel: reads, and transfers of the writer between two of them (where there are)",
         ["", "reads", "median", "most"], guest),
    ]  # fmt: skip


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    fifo, look, fair = of(data, FIFO), of(data, LOOK), of(data, FAIR)
    guest = next(row for row in data["guest"] if row["order"] == LOOK)
    alone, writer = of(data, ALONE[READER]), of(data, ALONE[WRITER])
    return (
        f"First come, first served, a read waits for all {DEPTH} writes that were there before: one"
        f" of 100 takes {fifo['p99']:.0f} ms or more, and {alone['p99']:.0f} ms without the"
        " writer.",
        f"C-LOOK is worse: the stream is always just ahead of the arm, so a read waits until the"
        f" file ends, {look['most'] / 1000:.1f} s in the worst case; {60 * look['reads']:.1f}"
        f" reads a minute are left. On this kernel {guest['median']} transfer of the writer is"
        f" between two reads in the median, and {guest['most']} at most: its writer has no long"
        " queue.",
        f"An order that gives each task its share of the disk's time has a p99 of"
        f" {fair['p99']:.0f} ms, {result(data):.1f} times less than fifo, and"
        f" {fair['reads']:.0f} reads a second instead of {fifo['reads']:.1f}; the writer"
        f" keeps {fair['rate']:.0f} of {fifo['rate']:.0f} MB/s (alone {writer['rate']:.0f}).",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    fifo, look, fair = of(data, FIFO), of(data, LOOK), of(data, FAIR)
    first, last = data["slices"][0], data["slices"][-1]
    return {
        "the reader alone is the replay of its reads": abs(data["replay"] - 1) < 0.01,
        "fifo: a read waits for the 64 writes before it, within a fifth": abs(
            fifo["p50"] / (DEPTH * WRITE * 512 / 1e3 / of(data, ALONE[WRITER])["rate"]) - 1
        ) < 0.2,
        "c-look: the longest read waits for over half of the stream": look["most"]
        > STREAM_BYTES / 2e3 / of(data, ALONE[WRITER])["rate"],
        "c-look, one write at a time: one is between two reads, in the guest, too": data[
            "single"
        ] == 1 and all(each["median"] == 1 and each["most"] <= 8 for each in data["guest"]),
        "fair: a read's p99 is less than a third of fifo's": result(data) > 3,
        "fair: the writer has over half of what fifo gives it": fair["rate"] > fifo["rate"] / 2,
        "a longer slice: the writer gets more, and reads take longer": last["rate"] > first["rate"]
        and last["p99"] > first["p99"],
    }  # fmt: skip


ABOUT = About(
    number=35,
    title="A reader next to a writer",
    chinese="写者旁边的读者",
    question="One program writes a large file, and another one reads at random. How long does a"
    " read take, and what does the writer lose if the order of the queue is fair to both?",
    expected="No figure was published. Ours: a read waits for all writes before it; an order"
    " that knows the tasks makes that shorter by an order of magnitude, and costs the writer a seek"
    " for each read.",
    ask=Question("times", "64 writes of 512 KiB are in the queue. How many times as long does a"
                 " read in 100 take, first come, first served, as with an order that is fair"
                 " to tasks?",
                 "times"),
    method="On the model of the 5400 rpm disk, of 200 GB: a writer has 64 writes of 512 KiB in the"
    " queue at any time, of a file of 1 GiB in the middle of the disk, again and again; a reader"
    " reads 4 KiB anywhere, and has one read under way. Orders: fifo and C-LOOK, which this"
    " kernel has, and fair: the task that has had least of the disk's time is next, for"
    f" {SLICE_MS} ms at most. 300 seconds of the disk's time. In the guest dd writes a file and"
    " seekrw reads another one past the cache, on a drive that answers at once, so only the order"
    " of the requests counts.",
    changes="A reader that thinks between reads needs a drive that waits a little for its next one"
    " (anticipation), or each read costs the writer a slice. A limit of age for each request bounds"
    " C-LOOK, too. A shorter queue of writes shortens fifo's wait as much. On an SSD there is no"
    " seek to pay.",
)  # fmt: skip

"""X29: what the lock of a block group protects, and who waits for it."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Generator, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

from matplotlib.figure import Figure
from simpy import Environment, Event

from labs.bench.counting import Count, Counter
from labs.storage import fsx
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.experiments.groups import STEPS, Group
from labs.storage.experiments.guest import ExperimentError, run_guest
from labs.storage.experiments.waiting import Lock, Task, closed_form, run
from labs.storage.linux_program import COMPILER
from labs.storage.pages import curves, label, legend, mark_prediction, pictures
from labs.tools.course.measurement import Question
from labs.tools.guest.initramfs import regular
from labs.tools.machine.qemu_command import Drive
from labs.tools.machine.work_folder import work_folder

IMAGE_BYTES = 64 << 20
APPENDS, SMALL_APPENDS = 200, 40
GUEST_SHIFT = 3  # 8 ns an instruction, so that no timer interrupt depends on the host
FIND, CHANGE, PUT = "ext_bitmap_find", "ext_bitmap_change", "bcache_put"  # of the kernel
WRITERS = range(1, 9)
SMALL_WRITERS = (1, 2, 8)
ROUNDS, SMALL_ROUNDS = 6000, 2000  # allocations and releases of each writer
KEPT = 40  # runs that a writer keeps, of up to 8 blocks
ONE, EACH, WHOLE, NONE = "one group", "a group each", "one lock for all", "one group, no lock"
SEED = 29


# ---- the guest ----


def prices(counts: Sequence[Count]) -> tuple[float, float]:
    """Instructions of an append of one block, and of them those between the look at the group and
    the return of its bitmap: the second block that goes back after the change (the first is that of
    the descriptor). Medians: when the drive's interrupt comes changes the whole by some dozen.
    Raises ExperimentError."""
    marks = [number for number, each in enumerate(counts) if each.kind == "mark"]
    whole, held = [], []
    for first, last in zip(marks[::2], marks[1::2], strict=True):
        inside = counts[first : last + 1]
        kinds = [each.kind for each in inside]
        if kinds.count(FIND) != 1 or CHANGE not in kinds:
            continue  # the map grew, too, or the group was full
        back = [each for each in inside[kinds.index(CHANGE) :] if each.kind == PUT][1]
        whole.append(inside[-1].instructions - inside[0].instructions)
        held.append(back.instructions - inside[kinds.index(FIND)].instructions)
    if 2 * len(whole) < len(marks) // 2:
        raise ExperimentError(f"{len(whole)} of {len(marks) // 2} appends allocated one block")
    return median(whole), median(held)


def in_guest(where: Where) -> Data:
    """What an append costs this kernel."""
    counter = Counter(lines=(FIND, CHANGE, PUT))
    with work_folder("images", where.build.parent) as folder:
        image, program = folder / "image", folder / "group_cost"
        source = Path(__file__).with_name("group_cost.c")
        subprocess.run([*COMPILER, str(source), "-o", str(program)], check=True)
        with image.open("wb") as file:
            file.truncate(IMAGE_BYTES)
        fsx.tool("mke2fs", "-q", "-F", "-t", "ext4", "-b", "4096", str(image))
        count = SMALL_APPENDS if where.small else APPENDS
        entry = regular("bin/group_cost", program.read_bytes())
        script = f"mount -t ext4 /dev/hdb /a && group_cost /a/f {count}"
        done = run_guest(where.build, script, [Drive(image, 1)], [entry], counter=counter,
                         icount=GUEST_SHIFT)  # fmt: skip
    whole, held = prices(done.counts)
    return {"append": whole, "held": held}


# ---- several processors ----


Steps = Generator[None, None, int | None]


class Trial:
    """Writers on processors of their own, who allocate and free in groups."""

    def __init__(self, way: str, writers: int, think: float, hold: float) -> None:
        self.way, self.think, self.hold = way, think, hold
        self.clock, self.random = Environment(), random.Random(SEED)
        self.groups = [Group() for _ in range(writers if way in (EACH, WHOLE) else 1)]
        locks = len(self.groups) if way == EACH else 1
        self.locks = [Lock(self.clock) for _ in range(locks)]
        self.waits: list[float] = []

    def run(self, writers: int, rounds: int) -> Data:
        """All of them to their end."""
        total = run(self.clock, (self.writer(number, rounds) for number in range(writers)))
        done = writers * rounds
        waited = sum(lock.waited for lock in self.locks)
        return {
            "way": self.way, "writers": writers, "rate": 1e6 * done / total,
            "waited": 100 * waited / done, "wait": sum(self.waits) / done / 1000,
            "busy": 100 * self.hold * done / len(self.locks) / total,
            "twice": sum(each.twice for each in self.groups),
            "runs": sum(each.wrong_runs for each in self.groups),
            "count": sum(each.wrong_count for each in self.groups),
        }  # fmt: skip

    def writer(self, number: int, rounds: int) -> Task:
        """Works, and then allocates a run, or frees its oldest one."""
        group = self.groups[number % len(self.groups)]
        lock = self.locks[number % len(self.locks)]
        kept: list[tuple[int, int]] = []
        for _ in range(rounds):
            yield self.clock.timeout(self.random.expovariate(1 / self.think))
            since = self.clock.now
            if self.way != NONE:
                yield lock.alone()
            self.waits.append(self.clock.now - since)
            yield from self.change(group, kept)
            if self.way != NONE:
                lock.give_back()

    def change(self, group: Group, kept: list[tuple[int, int]]) -> Task:
        """One step after the other, each a quarter of the time."""
        step = self.random.expovariate(1 / self.hold) / STEPS
        if len(kept) == KEPT:
            yield from self.paced(group.give(*kept.pop(0)), step)
            return
        order = self.random.randrange(4)
        first = yield from self.paced(group.take(order), step)
        if first is not None:
            kept.append((first, order))

    def paced(self, steps: Steps, time: float) -> Generator[Event, object, int | None]:
        """Each step takes this time."""
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return end.value
            yield self.clock.timeout(time)


def measure(where: Where) -> Data:
    """The prices in the guest, and then every way with every number of writers."""
    price = in_guest(where)
    think, rounds = price["append"] - price["held"], SMALL_ROUNDS if where.small else ROUNDS
    writers = SMALL_WRITERS if where.small else WRITERS
    rows = [Trial(way, each, think, price["held"]).run(each, rounds)
            for way in (ONE, WHOLE, EACH, NONE) for each in writers]  # fmt: skip
    exact = []
    for each in writers:
        rate, wait = closed_form(each, think, price["held"])
        exact.append({"writers": each, "rate": 1e6 * rate, "wait": wait / 1000})
    return {"price": price, "rows": rows, "exact": exact}


def of(data: Data, way: str, writers: int = 8) -> Data:
    """A case."""
    return next(r for r in data["rows"] if (r["way"], r["writers"]) == (way, writers))


def result(data: Data) -> float:
    """How many of 100 changes wait."""
    return of(data, ONE)["waited"]


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """Who waits; what is done; what goes wrong."""
    locked = [row for row in data["rows"] if row["way"] != NONE]
    share, axes = pictures()
    curves(axes, locked, "writers", "waited", "way")
    axes.set(ylim=(-3, 103))
    label(axes, ("writers, a processor each", "写者数, 各一个处理器"),
          ("changes that wait, %", "等待的修改, %"))  # fmt: skip
    mark_prediction(axes, predicted)
    legend(axes)
    rate, axes = pictures()
    curves(axes, data["rows"], "writers", "rate", "way")
    axes.plot([row["writers"] for row in data["exact"]], [row["rate"] for row in data["exact"]],
              "k:", label="one group, exact")  # fmt: skip
    axes.set(ylim=(0, None))
    label(axes, ("writers, a processor each", "写者数, 各一个处理器"),
          ("changes a ms", "每毫秒的修改"))  # fmt: skip
    legend(axes)
    return [
        (share, "Changes that find the lock taken"),
        (rate, "Changes of groups in a millisecond, 1 ns an instruction"),
    ]


def tables(data: Data) -> Sequence[Table]:
    """Every case, and what is wrong in the end."""
    rows = [(f"{r['way']}, {r['writers']}", r["rate"], r["waited"], r["wait"], r["busy"])
            for r in data["rows"] if r["way"] != NONE]  # fmt: skip
    wrong = [(f"{r['way']}, {r['writers']}", r["twice"], r["runs"], r["count"])
             for r in data["rows"] if r["way"] in (ONE, NONE)]  # fmt: skip
    price = data["price"]
    return [
        ("Instructions, counted in the guest", ["", "instructions"],
         [("an append of 4 KiB", price["append"]), ("of them with the group's bitmap",
                                                    price["held"])]),
        ("Writers and locks", ["", "changes/ms", "waited, %", "mean wait, us", "lock taken, %"],
         rows),
        ("One group at the end", ["", "blocks given twice", "runs: buddy against bitmap",
                                  "count against bitmap"], wrong),
        ("One group, exact (mean value analysis)", ["writers", "changes/ms", "mean wait, us"],
         [(str(r["writers"]), r["rate"], r["wait"]) for r in data["exact"]]),
    ]  # fmt: skip


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    price, one, each = data["price"], of(data, ONE), of(data, EACH)
    whole, none = of(data, WHOLE), of(data, NONE)
    return (
        f"This kernel needs {price['append']:,.0f} instructions to append a block, and"
        f" {price['held']:,.0f} of them between the look at the group and the return of its bitmap:"
        f" with eight writers in one group {one['waited']:.0f} of 100 changes wait for the lock,"
        f" {one['wait']:.1f} us in the mean.",
        f"With a group each {each['waited']:.0f} of 100 wait, and there are"
        f" {each['rate'] / one['rate']:.1f} times as many changes a millisecond; one lock for all"
        f" groups lets {whole['waited']:.0f} of 100 wait, as one group does.",
        f"Without the lock eight writers were given {none['twice']:,} blocks that another one"
        f" had, {none['runs']:,} runs of the buddy were not those of the bitmap, and the count of"
        f" free blocks was wrong by {none['count']:,}; with it"
        f" {one['twice'] + one['runs'] + one['count']}.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    exact = {row["writers"]: row for row in data["exact"]}
    locked = [row for row in data["rows"] if row["way"] != NONE]
    one = [row for row in data["rows"] if row["way"] == ONE]
    return {
        "the group takes a part of an append's instructions, under a half": 0
        < data["price"]["held"] < data["price"]["append"] / 2,
        "a group each: nobody waits": all(
            row["waited"] == 0 for row in data["rows"] if row["way"] == EACH
        ),
        "one group: the more writers, the more wait": all(
            a["waited"] < b["waited"] for a, b in pairwise(one)
        ),
        "one group: the rate is the exact one within 3 percent": all(
            abs(row["rate"] / exact[row["writers"]]["rate"] - 1) < 0.03 for row in one
        ),
        "one lock for all groups is as bad as one group, within 3 percent": all(
            abs(of(data, WHOLE, row["writers"])["rate"] / row["rate"] - 1) < 0.03 for row in one
        ),
        "with a lock bitmap, buddy and count agree, and no block is given twice": all(
            row["twice"] == row["runs"] == row["count"] == 0 for row in locked
        ),
        "one writer needs no lock": of(data, NONE, 1)["twice"] == of(data, NONE, 1)["runs"] == 0,
        "without it eight writers get blocks that others have": of(data, NONE)["twice"] > 0,
        "and bitmap and buddy disagree": of(data, NONE)["runs"] > 0,
    }  # fmt: skip


ABOUT = About(
    number=29,
    title="What does the lock of a block group protect?",
    chinese="块组的锁保护什么?",
    question="ext4 has a lock for each block group. What would go wrong without it, and who waits"
    " for it, if one to eight processors allocate in one group, or in a group each?",
    expected="No figure was published. Ours: bitmap,"
    " buddy and count of a group change together, so only writers in one group wait.",
    ask=Question("waited", "Eight writers allocate in one group, and a quarter of their work is"
                 " under its lock. How many of 100 changes find it taken?", "percent"),
    method="In the guest, with one processor, QEMU counts the instructions of an append of one"
    " block, past the page cache (medians: the drive's interrupt changes some dozen), and of them"
    " those that work on the group. This kernel has no such"
    " lock: it has one for a mount. On the host a model has one to eight processors at 1 ns an"
    " instruction: a writer works, takes the lock of the group, looks for a run of 1 to 8 blocks in"
    " the buddy, sets bits, changes the buddy and counts, a quarter of the time each; it keeps 40"
    " runs, and frees the oldest. Both times are exponential, with the means of the guest, so the"
    " waits have a closed form.",
    changes="A writer that waits for the drive asks for the lock less often. A spin lock that moves"
    " between processors costs a cache miss, and all wait longer. Writers that reserve"
    " blocks in advance (ext4's preallocation) come to the group once for many blocks. The"
    " allocator of ext4 also gives each file a goal in a group of its own.",
)  # fmt: skip

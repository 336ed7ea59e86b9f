"""X17: what it costs to learn by faults which pages of a file were changed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from matplotlib.figure import Figure

from labs.bench.counting import Count, Counter
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.experiments.guest import data_image, run_guest, said_rows
from labs.storage.pages import curves, label, legend, mark_prediction, pictures, ticks
from labs.tools.course.measurement import Question
from labs.tools.machine.qemu_command import Drive
from labs.tools.machine.work_folder import work_folder

PAGES, SMALL_PAGES = 1024, 200
PERCENTS = (1, 5, 10, 25, 50, 100)
CHANGES = (1, 2, 4, 8, 16, 32, 64)
SMALL_PERCENTS, SMALL_CHANGES = (5, 100), (1, 16)
ROUNDS = 4
WAYS = {  # name: what dirtycost is told
    "tracked": "mmap",
    "tracked, written every 4th round": "-n 4 mmap",
    "not cleaned": "-n 0 mmap",
    "write()": "write",
}
TRACKED, BATCH, FREE, CALL = WAYS


def measure(where: Where) -> Data:
    """Changes pages of a file by each way: more and more of them, then more in each."""
    pages = SMALL_PAGES if where.small else PAGES
    percents = SMALL_PERCENTS if where.small else PERCENTS
    changes = SMALL_CHANGES if where.small else CHANGES
    points = [(percent, 1) for percent in percents] + [(100, each) for each in changes[1:]]
    cases = [(way, *point) for way in WAYS for point in points]
    script = " && ".join(
        f"dirtycost -p {pages} -t {percent} -w {each} -r {ROUNDS} {WAYS[way]} /a/file"
        for way, percent, each in cases
    )
    with work_folder("images", where.build.parent) as folder:
        image = data_image(folder / "image", (16 << 20) + pages * 4096, {})
        done = run_guest(where.build, f"mount -t ext4 /dev/hdb /a && {script}", [Drive(image, 1)],
                         counter=Counter(("space_fault",)))  # fmt: skip
    counts, rows = list(done.counts), []
    for (way, percent, each), said in zip(cases, said_rows(done), strict=True):
        changing, writing = rounds_of(counts, said["every"])
        changed = said["changed"]
        rows.append({
            "way": way, "percent": percent, "changes": each, "changed": changed,
            "faults": mean([c.calls[0] for c in changing]) / changed,
            "change": mean([c.instructions for c in changing]) / changed,
            "back": sum(c.instructions for c in writing) / len(changing) / changed,
        })  # fmt: skip
    return {"rows": rows, "pages": pages}


def rounds_of(counts: list[Count], every: int) -> tuple[list[Count], list[Count]]:
    """Takes a case's marks off the list: what changed pages, without the first batch, in which
    nothing has been cleaned yet but by the start; and what wrote back."""
    changing, writing = [], []
    for number in range(1, ROUNDS + 1):
        changing.append(counts.pop(0))
        changing[-1] = counts.pop(0) - changing[-1]
        if number % every == 0 if every else number == ROUNDS:
            start = counts.pop(0)
            writing.append(counts.pop(0) - start)
    return (changing, writing) if every else (changing[1:], [])


def mean(values: Sequence[float]) -> float:
    """Their mean."""
    return sum(values) / len(values)


def of(data: Data, way: str, percent: int = 100, changes: int = 1) -> Data:
    """A point."""
    key = (way, percent, changes)
    return next(r for r in data["rows"] if (r["way"], r["percent"], r["changes"]) == key)


def result(data: Data) -> float:
    """What the first change of a clean page costs above one of a page that is not clean."""
    return of(data, TRACKED)["change"] - of(data, FREE)["change"]


def call(data: Data) -> float:
    """Instructions of a write() of 64 bytes: by how much more of them cost more."""
    most = max(row["changes"] for row in data["rows"])
    one, many = of(data, CALL), of(data, CALL, changes=most)
    return (many["change"] - one["change"]) / (most - 1)


def even(data: Data) -> str:
    """From how many changes of a page on a mapped page costs less than calls, in words."""
    rows = [row for row in data["rows"] if row["percent"] == 100]
    calls = {row["changes"]: row["change"] for row in rows if row["way"] == CALL}
    mapped = [(row["changes"], row["change"]) for row in rows if row["way"] == TRACKED]
    first = min((number for number, cost in mapped if cost < calls[number]), default=0)
    return {0: "no number of changes on that was tried", 1: "its first change on"}.get(
        first, f"{first} changes on"
    )


def rounds(data: Data) -> list[tuple[float, float]]:
    """By the percentage of changed pages: what a round with its write-back costs, divided by all
    pages of the file."""
    rows = [row for row in data["rows"] if row["way"] == TRACKED and row["changes"] == 1]
    found = [(r["percent"], r["percent"] / 100 * (result(data) + r["back"])) for r in rows]
    return [(0.0, 0.0), *sorted(found)]


def share(data: Data) -> float:
    """The percentage of changed pages from which on tracking costs more than to write all pages
    back, which is done in long runs."""
    limit = of(data, TRACKED)["back"]
    for (low, below), (high, above) in pairwise(rounds(data)):
        if above > limit:
            return low + (high - low) * (limit - below) / (above - below)
    return 100.0


def scattered(data: Data) -> float:
    """What it costs to write back a page whose neighbours have not changed."""
    rows = [row for row in data["rows"] if row["way"] == TRACKED and row["percent"] < 100]
    return max(rows, key=lambda row: row["percent"])["back"]


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """Faults and instructions by share; by changes; against a kernel that does not track."""
    figure, (faults, steps) = pictures(2, height=2.9)
    rows = [row for row in data["rows"] if row["changes"] == 1]
    curves(faults, rows, "percent", "faults", "way")
    curves(steps, rows, "percent", "change", "way")
    pages = ("pages changed in a round, %", "每轮修改的页, %")
    label(faults, pages, ("faults per changed page", "每个修改页的缺页"))
    label(steps, pages, ("instructions per changed page", "每个修改页的指令"))
    steps.set(yscale="log", ylim=(30, 40_000))
    if predicted is not None:
        mark_prediction(steps, min(max(predicted, 40), 30_000))
    legend(steps)
    faults.set(ylim=(-0.05, 1.5))
    legend(faults)
    more, axes = pictures()
    rows = [row for row in data["rows"] if row["percent"] == 100]
    rows = [row for row in rows if row["way"] in (TRACKED, FREE, CALL)]
    curves(axes, rows, "changes", "change", "way")
    axes.set(xscale="log", yscale="log")
    ticks(axes, sorted({row["changes"] for row in rows}))
    label(axes, ("changes of 64 bytes to a page", "每页修改次数 (64 字节)"),
          ("instructions per page", "每页的指令"))  # fmt: skip
    legend(axes)
    knee, axes = pictures()
    axes.plot(*zip(*rounds(data), strict=True), "o-", markersize=4,
              label="tracked: a fault each, these are written")  # fmt: skip
    axes.axhline(of(data, TRACKED)["back"], color="C1", linestyle="--",
                 label="not tracked: all are written")  # fmt: skip
    axes.axvline(share(data), color="grey", linewidth=1, linestyle=":")
    label(axes, pages, ("instructions per page of the file", "文件每页的指令"))
    axes.set(xlim=(0, 101), ylim=(0, None))
    legend(axes)
    return [
        (figure, "One change of 64 bytes to each page; written back after each round, or not"),
        (more, "A page with several changes: one fault, or a call each"),
        (
            knee,
            "From the measured prices: a round with its write-back, without the disk's time."
            " Up to 50 % each changed page is alone; at 100 % they are one run",
        ),
    ]


def tables(data: Data) -> Sequence[Table]:
    """Every point."""
    rows = [(f"{r['way']}, {r['percent']} %, {r['changes']}", r["faults"], r["change"], r["back"])
            for r in data["rows"]]  # fmt: skip
    columns = ["way, pages, changes", "faults", "instructions", "of write-back"]
    prices = [("the fault of a clean page", result(data)), ("a write() of 64 bytes", call(data)),
              ("to write a page back, in a run", of(data, TRACKED)["back"]),
              ("the same, alone", scattered(data))]  # fmt: skip
    return [("For each changed page", columns, rows),
            ("Prices", ["", "instructions"], prices)]  # fmt: skip


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    return (
        f"Each page that was clean costs one fault, {result(data):,.0f} instructions, when it is "
        "changed for the first time after a write-back; further changes cause none, until it is"
        " clean again.",
        f"A write() of 64 bytes costs {call(data):,.0f} instructions and no fault, and the fault"
        f" {result(data) / call(data):.2f} times as much: so a page is cheaper mapped from"
        f" {even(data)} between two write-backs.",
        "A kernel that does not track must write all pages back, in long runs, at"
        f" {of(data, TRACKED)['back']:,.0f} instructions each; scattered pages are a request each,"
        f" at {scattered(data):,.0f}: counted so, tracking pays up to {share(data):.0f} % of the"
        " pages.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    tracked = [row for row in data["rows"] if row["way"] == TRACKED]
    return {
        "one fault for each change from clean to dirty": all(
            abs(row["faults"] - 1) < 0.02 for row in tracked
        ),
        "a quarter of them if every fourth round is written back": abs(
            of(data, BATCH)["faults"] - 0.25
        ) < 0.01,
        "none if nothing is cleaned, and none by write()": all(
            row["faults"] == 0 for row in data["rows"] if row["way"] in (FREE, CALL)
        ),
        "more changes of a page are no more faults": of(data, TRACKED)["faults"]
        == tracked[-1]["faults"],
        "the fault costs between a third and three times of a write() of 64 bytes": call(data) / 3
        < result(data) < 3 * call(data),
        "with many changes a page mapped pages are cheaper than calls": tracked[-1]["change"]
        < of(data, CALL, changes=tracked[-1]["changes"])["change"],
        "a page that is written back alone costs over twice as much as in a run": scattered(data)
        > 2 * of(data, TRACKED)["back"],
        "tracking pays for few changed pages, and not for all": 3 < share(data) < 97,
    }  # fmt: skip


ABOUT = About(
    number=17,
    title="What tracking of dirty pages costs",
    chinese="脏页跟踪的代价",
    question="The kernel must know which pages of a mapped file have changed, so it lets the first"
    " write to each clean page fault. What does that cost, and when is it too much?",
    expected="No figure was published: the workshop of 2010 complains of one fault for each change"
    " from clean to dirty. A batch of rounds shares it; write() has none, and a call for each"
    " change.",
    ask=Question("fault", "A program stores into a clean page of a mapped file, and the page is in"
                 " memory. How many instructions does the fault cost?", "instructions"),
    method="dirtycost changes 64 bytes of each n-th page of a file on ext4, and writes the file"
    " back (msync, fsync) after every round, every fourth, or not at all. A plugin of QEMU counts"
    " instructions, and calls of the kernel's space_fault; waiting for the drive counts nothing."
    " The kernel always tracks: one that does not is worked out from the price of a page's"
    " write-back.",
    changes="A processor pays for a fault with some hundred cycles that are no instructions, and"
    " for the TLB entry that write-back must drop. Large pages make one fault out of 1,024, and"
    " write all of them back. For a disk long runs are cheap, and a page alone costs it a seek; an"
    " SSD wants few pages.",
)  # fmt: skip

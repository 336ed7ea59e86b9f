"""X5: what happens to the throughput when some of the operations write."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from labs.storage.disk_model import CACHES
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.experiments.guest import model, run_guest, sized_disks
from labs.storage.pages import curves, label, legend, mark_prediction, pictures
from labs.tools.course.measurement import Question
from labs.tools.machine.qemu_command import Drive

SCALE = 100
WRITES = (0, 25, 50, 75, 100)
COUNT, SMALL_COUNT = 400, 100
LAYOUTS = {"pointers": ("hdc", 1, "ext3", "/a"), "extents": ("hdd", 2, "ext4", "/b")}
LENGTHS = (512, 4096)
MEMORY = 128


def measure(where: Where) -> Data:
    """Each mix from a cold start; what is dirty at the end is written, and counted."""
    images = sized_disks(where.build, SCALE)
    count = SMALL_COUNT if where.small else COUNT
    cases = [
        (layout, length, way, percent)
        for layout in (["extents"] if where.small else LAYOUTS)
        for length in LENGTHS
        for way in ("buffered", "direct")
        for percent in ((0, 100) if where.small else WRITES)
    ]
    script = [
        "mount -t ext3 /dev/hdc /a; mount -t ext4 /dev/hdd /b; truncate -s 18G /a/big /b/big; "
    ]
    for number, (layout, length, way, percent) in enumerate(cases, 1):
        flag = "-d" if way == "direct" else ""
        place = LAYOUTS[layout][3]
        script.append(f"drop; mark {number}; seekrw -f {place}/big -a {count} -l {length} -s 7 "
                      f"-w {percent} {flag} && sync && ")  # fmt: skip
    drives = [Drive(images[unit], unit + 1) for unit in (1, 2)]
    run = run_guest(where.build, "".join(script) + f"mark {len(cases) + 1}", drives, memory=MEMORY)
    rows = []
    for number, (layout, length, way, percent) in enumerate(cases, 1):
        name, unit, *_ = LAYOUTS[layout]
        phase = run.phases[number]
        seconds = {
            each: phase.seconds(name, model("hdd5400", images[unit], each)) for each in CACHES
        }
        margin = phase.margin(name, model("hdd5400", images[unit])) / seconds["off"]
        rows.append({
            "layout": layout, "length": length, "way": way, "writes": percent,
            "case": f"{layout}, {way}", "per_second": count / seconds["off"],
            "margin": margin * count / seconds["off"],
            "cached": {each: count / seconds[each] for each in CACHES},
            "reads": phase.count(name, "r") / count, "written": phase.count(name, "w") / count,
        })  # fmt: skip
    return {"rows": rows}


def of(data: Data, way: str, length: int, writes: int, layout: str = "extents") -> Data:
    """A point."""
    wanted = (way, length, writes, layout)
    return next(
        row for row in data["rows"]
        if (row["way"], row["length"], row["writes"], row["layout"]) == wanted
    )  # fmt: skip


def result(data: Data) -> float:
    """Requests for a buffered write of 512 bytes."""
    row = of(data, "buffered", 512, 100)
    return row["reads"] + row["written"]


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """One picture for each length, and the requests."""
    figure, both_axes = pictures(2, height=3)
    for axes, length in zip(both_axes, LENGTHS, strict=True):
        curves(axes, [r for r in data["rows"] if r["length"] == length], "writes", "per_second",
               "case")  # fmt: skip
        axes.set(ylim=(0, None))
        label(axes, ("operations that write, %", "写操作, %"),
              (f"operations/s, {length} B each", f"每秒操作数, 每次 {length} B"))  # fmt: skip
        legend(axes)
    counts, axes = pictures(height=2.8)
    rows = [{**r, "requests": r["reads"] + r["written"], "case": f"{r['way']}, {r['length']} B"}
            for r in data["rows"] if r["layout"] == "extents"]  # fmt: skip
    curves(axes, rows, "writes", "requests", "case")
    axes.set(ylim=(0, 2.6))
    label(axes, ("operations that write, %", "写操作, %"), ("requests/operation", "每次操作的请求"))
    mark_prediction(axes, predicted)
    legend(axes)
    cached, axes = pictures(height=2.9)
    points = [{**r, "rate": r["cached"][each], "case": f"{r['way']}, cache {each}"}
              for way in ("buffered", "direct") for each in ("off", "on") for r in data["rows"]
              if (r["layout"], r["length"], r["way"]) == ("extents", 4096, way)]  # fmt: skip
    curves(axes, points, "writes", "rate", "case")
    axes.set(ylim=(0, None))
    label(axes, ("operations that write, %", "写操作, %"),
          ("operations/s, 4096 B each", "每秒操作数, 每次 4096 B"))  # fmt: skip
    legend(axes)
    return [(figure, "Model of the 5400 rpm disk without a cache; the sync at the end is"
                     " included."),
            (cached, "The drive's own cache off and on, extents; it is emptied at the end, and"
                     " that counts"),
            (counts, "Requests for each operation, extents")]  # fmt: skip


def tables(data: Data) -> Sequence[Table]:
    """Every point."""
    rows = [(f"{r['case']}, {r['length']} B", r["writes"], r["per_second"], r["margin"],
             r["reads"], r["written"]) for r in data["rows"]]  # fmt: skip
    cached = [(f"{r['case']}, {r['length']} B", r["writes"],
               *(r["cached"][each] for each in CACHES)) for r in data["rows"]]  # fmt: skip
    columns = ["case", "writes, %", "op/s", "±95 %", "reads/op", "writes/op"]
    return [
        ("The mixes; ±95 %: from the spread of the requests' times", columns, rows),
        (
            "The drive's cache, operations a second",
            ["case", "writes, %", "no cache", "read-ahead", "write cache"],
            cached,
        ),
    ]


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    page, read = of(data, "buffered", 4096, 100), of(data, "buffered", 4096, 0)
    small, direct = of(data, "buffered", 512, 100), of(data, "direct", 4096, 100)
    return (
        f"A buffered write of 512 bytes takes {result(data):.2f} requests: the rest of its page is "
        "read first, and the whole page is written later.",
        f"Buffered writes of whole pages reach {page['per_second']:.0f}/s where reads of them reach"
        f" {read['per_second']:.0f}/s: nobody waits for them, so they are sorted, and the arm"
        " crosses the disk once. Writes of 512 bytes reach"
        f" {small['per_second']:.0f}/s, because the reads before them cannot be sorted.",
        f"Direct writes of pages cost what reads cost, {direct['per_second']:.0f}/s, until the"
        " drive has a cache for them: it takes them at once, sorts them by itself, and reaches"
        f" {direct['cached']['on']:.0f}/s.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    small, page = of(data, "buffered", 512, 100), of(data, "buffered", 4096, 100)
    read, direct = of(data, "buffered", 4096, 0), of(data, "direct", 512, 100)
    reading = of(data, "direct", 512, 0)
    return {
        "a buffered write of 512 bytes reads its page first": 0.9 < small["reads"] < 1.2,
        "and writes it later": 0.7 < small["written"] < 1.3,
        "buffered writes of a page are not preceded by a read": page["reads"] < 0.2,
        "sorted, they are faster than reads": page["per_second"] > 1.3 * read["per_second"],
        "without writes the drive's cache changes nothing, within 3 %": all(
            abs(row["cached"]["on"] / row["per_second"] - 1) < 0.03
            for row in data["rows"] if row["writes"] == 0
        ),
        "direct writes gain more than a half by it": direct["cached"]["on"]
        > 1.5 * direct["cached"]["off"],
        "and nothing by read-ahead alone": abs(
            direct["cached"]["read"] / direct["cached"]["off"] - 1
        ) < 0.05,
        "direct writes cost what direct reads cost, within 15 %": 0.85
        < direct["per_second"] / reading["per_second"] < 1.15,
    }  # fmt: skip


ABOUT = About(
    number=5,
    title="A mix of reads and writes",
    chinese="读写混合",
    question="A reader of 2010's text asked for a mix. How does the throughput change as more of"
    " the random operations write?",
    expected="No figure was published. A buffered write of a part of a page reads the page first:"
    " two requests. Write-back sorts, so whole pages are written faster than they are read, until "
    "the"
    " limit of dirty pages is reached.",
    ask=Question("requests", "How many disk requests does a buffered random write of 512 bytes"
                 " take, its write-back included?", "requests"),
    method="seekrw -w 0 to 100 on /big at 1:100, block pointers and extents, 512 and 4096 bytes,"
    " buffered and direct, each from a cold start; then sync. All requests go through the model of"
    " the 5400 rpm disk, one after another: without a cache of its own; with read-ahead; and with a"
    " cache for writes, too, which is emptied at the end.",
    changes="On a full file system our kernel writes each page back at once, to be sure of room:"
    " the file was cut to 18 GB for that reason. An fsync after each write takes the sorting "
    "away, and adds the journal. A drive with"
    " sectors of 4 KiB reads before it writes 512 bytes. On an SSD sorting wins nothing."
    " The cache of the drive holds all of these writes; more of them than it has room for wait for"
    " the platter. What it holds is lost in a power cut.",
)  # fmt: skip

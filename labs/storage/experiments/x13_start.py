"""X13: how long a blob store takes to open: a walk over the log, or an index."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from labs.storage.disk_model import drive
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.experiments.blobs import build, call, entry, new_store
from labs.storage.experiments.guest import run_guest
from labs.storage.pages import curves, label, legend, mark_prediction, pictures
from labs.storage.published import mark
from labs.tools.course.measurement import Question
from labs.tools.machine.qemu_command import Drive
from labs.tools.machine.work_folder import work_folder

RECORDS = (1000, 4000, 16_000)
SMALL_RECORDS = (500, 1000)
FULL = 10_000_000
SCAN_BYTES, SCAN_SECONDS = 44e9, 510  # published: 8 to 9 minutes for 44 GB
KEY_BYTES = 64


def measure(where: Where) -> Data:
    """Opens stores of several sizes by a walk, and with an index."""
    rows = []
    for records in SMALL_RECORDS if where.small else RECORDS:
        with work_folder("images", where.build.parent) as folder:
            program = build(folder)
            store = new_store(program, folder / "store", records)
            index = folder / "index"
            with index.open("wb") as file:
                file.truncate(records * 24 // 4096 * 4096 + 8192)
            call(program, "save", store, index)
            script = (
                "mark 1; blob -d open /dev/hdb && mark 2 && "
                "blob -d open /dev/hdb /dev/hdc && mark 3"
            )
            drives = [Drive(store, 1), Drive(index, 2)]
            run = run_guest(where.build, script, drives, [entry(program)])
        for phase, way in ((1, "walk"), (2, "index")):
            part = run.phases[phase]
            sectors = sum(part.sectors(each, "r") for each in ("hdb", "hdc"))
            rows.append({
                "way": way, "records": records, "bytes": sectors * 512,
                "seconds": sum(part.seconds(each, drive("hdd15k")) for each in ("hdb", "hdc")),
            })  # fmt: skip
    return {"rows": rows}


def of(data: Data, way: str) -> list[Data]:
    """A curve."""
    return [row for row in data["rows"] if row["way"] == way]


def microseconds(data: Data, way: str) -> float:
    """For a record more: what opening costs at all is not counted."""
    first, last = of(data, way)[0], of(data, way)[-1]
    return max(
        0.01, 1e6 * (last["seconds"] - first["seconds"]) / (last["records"] - first["records"])
    )


def result(data: Data) -> float:
    """Minutes to walk over 10 million records."""
    return microseconds(data, "walk") * FULL / 60e6


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """Both, continued to ten million records."""
    figure, axes = pictures()
    rows = list(data["rows"])
    for way in ("walk", "index"):
        rows.append({"way": way, "records": FULL, "seconds": microseconds(data, way) * FULL / 1e6})
    curves(axes, rows, "records", "seconds", "way")
    mark(axes, [FULL], [SCAN_SECONDS])
    axes.set(xscale="log", yscale="log")
    label(axes, ("records", "记录数"), ("time to open, s", "打开的时间, 秒"))
    if predicted is not None:
        mark_prediction(axes, predicted * 60)
    legend(axes)
    return [(figure, "Requests of the guest on the model of a 15,000 rpm disk; the last point of "
             "each curve is extrapolated.")]  # fmt: skip


def tables(data: Data) -> Sequence[Table]:
    """Every point, and 10 million records."""
    rows = [(f"{r['way']}, {r['records']:,}", r["bytes"], r["seconds"]) for r in data["rows"]]
    full = [("walk, 10 M", microseconds(data, "walk"), result(data) * 60, f"{SCAN_SECONDS} ◆"),
            ("index, 10 M", microseconds(data, "index"),
             microseconds(data, "index") * FULL / 1e6, "7.4 ◇")]  # fmt: skip
    return [("Opened", ["way, records", "bytes read", "model, s"], rows),
            ("At the published size", ["", "us/record", "s", "in 2010, s"], full)]  # fmt: skip


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    ratio = microseconds(data, "walk") / microseconds(data, "index")
    return (
        f"A walk costs {microseconds(data, 'walk'):.0f} us a record, {result(data):.1f} minutes "
        f"for "
        "10 million (computed from the published 8 to 9: 86 MB/s; the model's outer tracks give"
        " 200): it is a "
        "sequential read of everything, although it jumps from head to head.",
        f"The index is read in a {ratio:.0f}th of that, because it has 24 bytes for each record of "
        "some 4,900. With keys of 64 bytes it would be, computed, 610 MiB and 7.4 s.",
        "The index is only a copy of what the log says: if it is old, the walk begins where it "
        "ends,"
        " and if it is gone, at the beginning.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    walk, index = of(data, "walk"), of(data, "index")
    return {
        "a walk reads all of the log": all(r["bytes"] > 4500 * r["records"] for r in walk),
        "its time grows with the records": walk[-1]["seconds"] > 1.3 * walk[0]["seconds"],
        "an index reads less than a fifth": index[-1]["bytes"] < walk[-1]["bytes"] / 5,
        "computed: 44 GB in 510 s are 86 MB/s, within 10 percent": 80
        < SCAN_BYTES / SCAN_SECONDS / 1e6 < 95,
    }  # fmt: skip


ABOUT = About(
    number=13,
    title="Opening a store: walk or index?",
    chinese="打开存储: 扫描还是索引?",
    question="When the published store starts, it reads the head of each record to build its"
    " index. How long does that take, and what does an index file save?",
    expected="Published: 8 to 9 minutes for 10 million records in 44 GB. Computed from it: 86"
    " MB/s and 51 us a record; an index of 64 bytes a key would be 610 MiB, some 7.4 s.",
    ask=Question("minutes", "How many minutes does a walk over 10 million records of 4.4 KB take on"
                 " one disk of 15,000 rpm?", "minutes"),
    method="The guest opens raw stores of 1,000 to 16,000 records with O_DIRECT, by a walk and"
    " with a saved index. QEMU counts; the model gives the time, and time for each record more"
    " gives that of 10 million.",
    changes="Larger records: the walk could skip the data, and would become a random read for"
    " each head, which is slower up to some 500 KB. A walk that checks no contents reads as much.",
)  # fmt: skip

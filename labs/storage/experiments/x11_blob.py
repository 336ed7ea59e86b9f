"""X11: objects in one blob against a file for each: requests per object, from a cold start on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from labs.storage import fsx
from labs.storage.disk_model import Request, drive, replay
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.experiments.blobs import build, call, entry, new_store
from labs.storage.experiments.guest import Phase, run_guest
from labs.storage.pages import curves, label, legend, mark_prediction, pictures
from labs.tools.course.measurement import Question
from labs.tools.machine.qemu_command import Drive
from labs.tools.machine.work_folder import work_folder

OBJECTS, SMALL_OBJECTS = 10_000, 2000
BATCHES = 12
SPREAD = 3000  # times as far apart on the model's disk: 44 GB instead of some 50 MB
MEMORY = 320
MODEL = (2.67, 2.20, 1.90, 1.70, 1.56, 1.46)
STORES = {"raw blob": "hdb", "blob in a file": "hdc", "file per object": "hdd"}


def make_images(directory: Path, program: Path, objects: int) -> list[Drive]:
    """The same objects on three drives: a raw store, a store in ext4, files in ext4."""
    raw = new_store(program, directory / "raw", objects)
    top, many = directory / "top", directory / "many"
    top.mkdir()
    many.mkdir()
    new_store(program, top / "store", objects)
    call(program, "files", many, objects)
    drives = [Drive(raw, 1)]
    for unit, folder in ((2, top), (3, many)):
        image = directory / f"{unit}.img"
        with image.open("wb") as file:
            file.truncate(raw.stat().st_size * 2 + (64 << 20))
        fsx.tool("mke2fs", "-q", "-F", "-t", "ext4", "-d", str(folder), str(image))
        drives.append(Drive(image, unit))
    return drives


def script(objects: int) -> str:
    """Reads batches from each store, each from a cold start; the last store once more when its
    memory was dropped in the middle."""
    batch = objects // 100

    def reads(command: str, first: int, number: int = BATCHES) -> str:
        return f"drop; blob {command} {objects} {number * batch} 5 {batch} {first} && "

    return (
        "mount -t ext4 /dev/hdc /a; mount -t ext4 /dev/hdd /b; "
        + reads("-d get /dev/hdb", 1) + reads("-d get /a/store", 16)
        + reads("readfiles /b", 31)
        + reads("readfiles /b", 46, 3)
        + "true"
    )  # fmt: skip


def seconds_of(requests: Sequence[Request]) -> float:
    """On the 15,000 rpm disk, with the places spread as far as 10 million objects are."""
    disk = drive("hdd15k")
    top = disk.sectors - 4096
    spread = [Request(r.operation, r.lba * SPREAD % top, r.sectors) for r in requests]
    return replay(spread, disk).total_ms / 1000


def measure(where: Where) -> Data:
    """Batch by batch: the requests of each store, and their time on the model."""
    objects = SMALL_OBJECTS if where.small else OBJECTS
    with work_folder("images", where.build.parent) as directory:
        program = build(directory)
        drives = make_images(directory, program, objects)
        run = run_guest(
            where.build, script(objects), drives, [entry(program)], memory=MEMORY, seconds=500
        )
    rows = []
    for first, store in zip((1, 16, 31, 46), (*STORES, "files, dropped"), strict=True):
        for number in range(BATCHES if store in STORES else 3):
            phase: Phase = run.phases[first + number]
            asked = [r for r in phase.of(STORES.get(store, "hdd")) if r.operation == "read"]
            rows.append({
                "store": store, "batch": number + 1,
                "requests": len(asked) / (objects // 100),
                "per_second": objects / 100 / seconds_of(asked) if asked else 0.0,
            })  # fmt: skip
    return {"rows": rows, "objects": objects}


def of(data: Data, store: str) -> list[Data]:
    """A curve."""
    return [row for row in data["rows"] if row["store"] == store]


def result(data: Data) -> float:
    """Requests for an object at the beginning, a file for each."""
    return of(data, "file per object")[0]["requests"]


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """Requests and rate by batch."""
    figure, axes = pictures()
    curves(axes, data["rows"], "batch", "requests", "store")
    axes.plot(range(1, 7), MODEL, "k:", label="model of 10 M objects 理论")
    label(axes, ("batch (each 1 % of the objects)", "批次 (每批为对象数的 1%)"),
          ("requests per object", "每个对象的请求"))  # fmt: skip
    axes.set(ylim=(0, None))
    mark_prediction(axes, predicted)
    legend(axes)
    rate, axes = pictures(height=2.8)
    curves(axes, data["rows"], "batch", "per_second", "store")
    axes.set(ylim=(0, None))
    label(axes, ("batch", "批次"), ("objects/s, one disk", "每秒对象数, 一块盘"))
    legend(axes)
    return [(figure, "From a cold start; counted by QEMU."),
            (rate, "Model of one 15,000 rpm disk, one request at a time")]  # fmt: skip


def tables(data: Data) -> Sequence[Table]:
    """The batches side by side."""
    rows = [(f"{r['store']}, {r['batch']}", r["requests"], r["per_second"]) for r in data["rows"]]
    return [("By store and batch", ["store, batch", "requests/object", "objects/s"], rows)]


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    files, raw, blob = (of(data, s) for s in ("file per object", "raw blob", "blob in a file"))
    ratio = blob[0]["per_second"] / files[0]["per_second"]
    again = of(data, "files, dropped")[0]["requests"]
    return (
        f"At first a file for each object takes {files[0]['requests']:.2f} requests an object and "
        f"the blob {blob[0]['requests']:.2f}, so the blob is {ratio:.1f} times as fast; after "
        f"{BATCHES} batches the files take {files[-1]['requests']:.2f}.",
        f"Dropping the caches brings the files back to {again:.2f}: it is metadata that gets warm, "
        "and not, as the author of 2010 thought, a hardware queue that fills.",
        f"Raw and in a file the blob takes {raw[-1]['requests']:.2f} and "
        f"{blob[-1]['requests']:.2f} requests: once more there is no difference between a device "
        f"and "
        "ext4.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    files, raw, blob = (of(data, s) for s in ("file per object", "raw blob", "blob in a file"))
    dropped = of(data, "files, dropped")[0]["requests"]
    return {
        "the blob takes one request for an object": all(r["requests"] < 1.25 for r in raw[1:]),
        "raw and in a file differ by less than 10 %": abs(
            sum(r["requests"] for r in blob[1:]) / sum(r["requests"] for r in raw[1:]) - 1
        ) < 0.1,
        "files begin with twice as many requests, or more": files[0]["requests"]
        > 1.8 * raw[1]["requests"],
        "files get better": files[-1]["requests"] < 0.85 * files[0]["requests"],
        "dropping the caches takes much of that back": dropped > 1.3 * files[-1]["requests"],
    }  # fmt: skip


ABOUT = About(
    number=11,
    title="One blob, or a file for each object?",
    chinese="一个 blob, 还是每个对象一个文件?",
    question="A store of 10 million objects of 4.4 KB keeps them in one append-only file with an"
    " index in memory. How much does that win over a file for each object?",
    expected="Published: the blob is about 2 times as fast at the beginning, and equal later; 600"
    " requests/s within 200 ms and 1,000 within 300 ms, with two reads a request; no difference"
    " between a block device and ext4. Ours: a model of directory, inode and data gives 2.67,"
    " 2.20, 1.90, 1.70, 1.56, 1.46 requests an object, against 1.00.",
    ask=Question("requests", "How many disk requests does an object in a file of its own take at"
                 " first, from a cold start?", "requests"),
    method="At 1:1000: 10,000 objects in a raw store, in a store on ext4, and in files of which"
    " 100 are in a folder. The guest reads batches of 100 at random, and checks each. QEMU"
    " counts; the model of the 15,000 rpm disk gives the time, with places spread as far apart as"
    " 44 GB are.",
    changes="Larger objects make the first requests cheaper compared with the data. More objects"
    " than memory for inodes never get warm. Reading in the order of inodes warms at once.",
)  # fmt: skip

"""X11: objects in one blob against a file for each: requests per object, from a cold start on."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import exp
from pathlib import Path

from matplotlib.figure import Figure

from labs.storage import fsx
from labs.storage.disk_model import Request, drive, replay
from labs.storage.experiments import margins
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.experiments.blobs import build, call, entry, new_store
from labs.storage.experiments.guest import Phase, run_guest
from labs.storage.load_model import latencies_ms, percentile, rate_within
from labs.storage.pages import curves, label, legend, mark_prediction, pictures
from labs.storage.published import mark
from labs.tools.course.measurement import Question
from labs.tools.machine.qemu_command import Drive
from labs.tools.machine.work_folder import work_folder

OBJECTS, SMALL_OBJECTS = 10_000, 2000
BATCHES = 12
SPREAD = 3000  # times as far apart on the model's disk: 44 GB instead of some 50 MB
MEMORY = 320
PUBLISHED_RATES = (600, 1000)
MODEL = (2.67, 2.20, 1.90, 1.70, 1.56, 1.46)
SERVERS = 32  # disks: two boxes of 16
FOLDER_BLOCKS, INODE_BLOCKS = 100_000, 625_000
"""Of 10 million objects in the load model: a folder of 100 files is a block, so are 16 inodes."""
READS_A_REQUEST = 2
LIMITS_MS = (200, 300)
PART = 0.95  # of the requests that end within a limit: chosen, the source does not say
READ_BEFORE = (0, 100_000, 300_000, 1_000_000, 2_000_000, 4_000_000)  # objects
RATES = (500, 1000, 1500, 2000, 3000, 4000, 5000, 6000, 7000, 8000)  # requests/s
LOAD_SECONDS, LOAD_SEEDS = 2.0, (11, 12, 13)
NEAR = 0.95  # of the blob's rate: then files have met it
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


def rate_of(requests: Sequence[Request], objects: int) -> Data:
    """Objects a second of a batch on the 15,000 rpm disk, with the places spread as far as 10
    million objects are, and half of their interval of 95 percent."""
    if not requests:
        return {"per_second": 0.0, "margin": 0.0}
    disk = drive("hdd15k")
    top = disk.sectors - 4096
    spread = [Request(r.operation, r.lba * SPREAD % top, r.sectors) for r in requests]
    done = replay(spread, disk)
    rate = 1000 * objects / done.total_ms
    return {"per_second": rate, "margin": rate * margins.of_total_ms(done) / done.total_ms}


def misses(read: float, generator: random.Random) -> int:
    """Disk requests for an object in a file of its own, when so many have been read at random: its
    folder's block and its inode's, unless they are in memory, and its data."""
    return (
        1
        + (generator.random() < exp(-read / FOLDER_BLOCKS))
        + (generator.random() < exp(-read / INODE_BLOCKS))
    )


def under_load(read: float | None, seed: int, where: Where) -> Data:
    """A curve: requests of two objects at one rate after another, until the last limit is passed.
    read: objects that were read before; None for the blob, which has its index in memory."""
    disks, seconds = (4, 1.0) if where.small else (SERVERS, LOAD_SECONDS)
    rates, times = [], []
    for rate in RATES:
        many = latencies_ms(
            lambda: [drive("hdd15k") for _ in range(disks)],  # type: ignore[misc]
            rate * disks / SERVERS,
            int(rate * seconds * disks / SERVERS),
            lambda generator: 1 if read is None else misses(read, generator),
            READS_A_REQUEST,
            seed,
        )
        rates.append(float(rate))
        times.append(percentile(many, PART))
        if times[-1] > LIMITS_MS[-1]:
            break
    return {"read": read, "rates": rates, "times": times,
            "within": [rate_within(limit, rates, times) for limit in LIMITS_MS]}  # fmt: skip


def load(where: Where) -> list[Data]:
    """Each state of the caches, with the lowest and the highest rate of all seeds."""
    rows = []
    for read in (None, *(READ_BEFORE[::4] if where.small else READ_BEFORE)):
        runs = [under_load(read, seed, where) for seed in LOAD_SEEDS[: 1 if where.small else None]]
        ends = [[run["within"][n] for run in runs] for n in range(len(LIMITS_MS))]
        rows.append({**runs[0], "least": [min(each) for each in ends],
                     "most": [max(each) for each in ends],
                     "within": [sum(each) / len(each) for each in ends]})  # fmt: skip
    return rows


def met(data: Data, limit: int) -> Data | None:
    """The first state in which files reach the blob's rate, nearly; None if none does."""
    blob, *files = data["load"]
    return next((r for r in files if r["within"][limit] >= NEAR * blob["within"][limit]), None)


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
                **rate_of(asked, objects // 100),
            })  # fmt: skip
    return {"rows": rows, "objects": objects, "load": load(where)}


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
    loads = plot_load(data)
    return [(figure, "From a cold start; counted by QEMU."),
            (rate, "Model of one 15,000 rpm disk, one request at a time"),
            (loads, f"Two reads a request on {SERVERS} such disks: the rate at which"
                    f" {100 * PART:.0f} of 100 requests end in time; bars: all seeds")]  # fmt: skip


def plot_load(data: Data) -> Figure:
    """The rates within both limits, as the files' metadata gets warm."""
    figure, axes = pictures()
    blob, *files = data["load"]
    for number, limit in enumerate(LIMITS_MS):
        axes.axhline(blob["within"][number], color=f"C{number}", linestyle="--",
                     label=f"blob, {limit} ms")  # fmt: skip
        spread = [[r["within"][number] - r["least"][number] for r in files],
                  [r["most"][number] - r["within"][number] for r in files]]  # fmt: skip
        axes.errorbar([r["read"] / 1e6 for r in files], [r["within"][number] for r in files],
                      spread, fmt="o-", color=f"C{number}", markersize=4, capsize=3,
                      label=f"files, {limit} ms")  # fmt: skip
    mark(axes, [0, 0], PUBLISHED_RATES)
    axes.set(ylim=(0, None))
    label(axes, ("million objects read before", "此前已读的对象, 百万"),
          ("requests/s", "每秒请求数"))  # fmt: skip
    legend(axes)
    return figure


def tables(data: Data) -> Sequence[Table]:
    """The batches side by side."""
    rows = [(f"{r['store']}, {r['batch']}", r["requests"], r["per_second"], r["margin"])
            for r in data["rows"]]  # fmt: skip
    loads = [(state(r), *(f"{r['within'][n]:,.0f} ({r['least'][n]:,.0f} to {r['most'][n]:,.0f})"
                          for n in range(len(LIMITS_MS)))) for r in data["load"]]  # fmt: skip
    loads.append(("published ◆", *(f"{rate:,}" for rate in PUBLISHED_RATES)))
    return [("By store and batch; ±95 %: from the spread of the requests' times",
             ["store, batch", "requests/object", "objects/s", "±95 %"], rows),
            (f"Requests a second, two reads each, {SERVERS} disks: mean of the seeds (all of them)",
             ["", *(f"within {limit} ms" for limit in LIMITS_MS)], loads)]  # fmt: skip


def state(row: Data) -> str:
    """What was read before."""
    return "blob" if row["read"] is None else f"files, {row['read']:,} objects read"


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    files, raw, blob = (of(data, s) for s in ("file per object", "raw blob", "blob in a file"))
    ratio = blob[0]["per_second"] / files[0]["per_second"]
    again = of(data, "files, dropped")[0]["requests"]
    return (
        f"At first a file for each object takes {files[0]['requests']:.2f} requests an object and "
        f"the blob {blob[0]['requests']:.2f}, so the blob is {ratio:.1f} times as fast; after "
        f"{BATCHES} batches the files take {files[-1]['requests']:.2f}.",
        f"Dropping the caches brings the files back to {again:.2f}: in this guest, with one request"
        f" at a time, it is metadata that gets warm. {said_of_load(data)}",
        f"Raw and in a file the blob takes {raw[-1]['requests']:.2f} and "
        f"{blob[-1]['requests']:.2f} requests: once more there is no difference between a device "
        f"and "
        "ext4.",
    )


def said_of_load(data: Data) -> str:
    """What the load model says of hardware queues, and of when files meet the blob."""
    blob, cold, found = data["load"][0], data["load"][1], met(data, 0)
    rate, least = blob["within"][0], cold["within"][0]
    text = (
        f"With full queues on {SERVERS} disks the model gives {rate:,.0f} requests/s within"
        f" {LIMITS_MS[0]} ms from the blob and {least:,.0f} from cold files"
    )
    if found is None:
        return f"{text}; after {data['load'][-1]['read']:,} objects they have not met."
    minutes = found["read"] / READS_A_REQUEST / PUBLISHED_RATES[0] / 60
    return (
        f"{text}; they meet, within {100 - 100 * NEAR:.0f} %, when {found['read']:,} objects have"
        f" been read, {minutes:.0f} minutes at {PUBLISHED_RATES[0]} requests/s. The"
        " queues were as full for cold files."
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
        "under load cold files reach less than 0.6 of the blob's rate": data["load"][1]["within"][0]
        < 0.6 * data["load"][0]["within"][0],
        "warm files reach nine tenths of it": data["load"][-1]["within"][0]
        > 0.9 * data["load"][0]["within"][0],
        "a longer limit allows a higher rate": all(
            r["within"][1] >= r["within"][0] for r in data["load"]
        ),
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
    " 44 GB are. Under load: a model of 32 such disks, with queues of 32 by SATF. Requests come at"
    " random; each reads two objects, one after the other, from a random disk. 10 million objects"
    " are in folders of 100 and in tables of 16 inodes a block; a block that was read stays in"
    " memory. No data does, of neither store.",
    changes="The published rates are lower than those of these disks: what held them is not in the"
    " model (copies on both boxes, a network, threads, writes). Larger objects make the first"
    " requests cheaper compared with the data. More objects"
    " than memory for inodes never get warm. Reading in the order of inodes warms at once.",
)  # fmt: skip

"""X34: a backup of what changed: the chunks that a snapshot's table names, against a full copy."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import exp
from pathlib import Path

from matplotlib.figure import Figure

from labs.storage.disk_model import Request, drive, replay
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.experiments.guest import run_guest
from labs.storage.pages import curves, label, legend, mark_prediction, pictures, ticks
from labs.storage.snapshot import contents, read_store
from labs.tools.course.measurement import Question
from labs.tools.machine.qemu_command import Drive
from labs.tools.machine.work_folder import work_folder

ORIGIN, SMALL_ORIGIN = 16 << 20, 4 << 20  # bytes
CHUNKS, SMALL_CHUNKS = (8192, 65_536), (8192,)
SHARES, SMALL_SHARES = (0.01, 0.03, 0.1, 0.3, 1.0), (0.03, 0.3)  # bytes written over bytes there
RESTORED = 0.3  # the share at which the backup is put over the full copy
WRITE = 4096
MODEL_SHARES = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
MODEL_CHUNKS = (8192, 65_536)
READ_WAYS = {"8 KiB": (8192, 0), "8 KiB, gaps too": (8192, 1024), "64 KiB": (65_536, 0)}
SAMPLE, SMALL_SAMPLE = 4000, 500  # chunks that are replayed, neighbours on the drive
STREAM = 2048  # sectors of a request of the full copy
SECTOR = 512


def seeds(share: float) -> tuple[int, int]:
    """Of the writes before the second snapshot, and beyond it."""
    return 34 + int(1000 * share), 3400


def run_one(where: Where, drives: Sequence[Path], chunk: int, writes: int, seed: int) -> None:
    """A snapshot, then random writes to its origin. The machine stops with the snapshot there."""
    line = f"hdb hdc P {chunk // SECTOR}"
    script = (f"echo '{line}' >/proc/snapshots && seekrw -f /dev/hdb -d -a {writes} -l {WRITE} "
              f"-s {seed} -w 100")  # fmt: skip
    on = [Drive(path, unit, writable=True) for unit, path in enumerate(drives, 1)]
    run_guest(where.build, script, on)


def case(where: Where, size: int, chunk: int, share: float) -> Data:
    """A snapshot, writes, and its table. Of RESTORED there is a second snapshot, and more writes:
    what changed between the two, over the full copy, must be what the second has."""
    writes, (before, beyond) = int(share * size / WRITE), seeds(share)
    with work_folder("images", where.build.parent) as folder:
        origin, first, second = folder / "origin", folder / "first", folder / "second"
        full = random.Random(34).randbytes(size)
        origin.write_bytes(full)
        for store in (first, second)[: 1 + (share == RESTORED)]:
            with store.open("wb") as file:
                file.truncate(size + size // 4)
        run_one(where, (origin, first), chunk, writes, before)
        changed = sorted(read_store(first.read_bytes()).copies)
        row: Data = {"is_whole": None}
        if share == RESTORED:
            run_one(where, (origin, second), chunk, size // 100 // WRITE, beyond)
            now = contents(origin.read_bytes(), second.read_bytes())
            restored = bytearray(full)
            for number in changed:
                place = slice(number * chunk, (number + 1) * chunk)
                restored[place] = now[place]
            row = {"is_whole": restored == now != full, "moved_on": origin.read_bytes() != now}
    return {"chunk": chunk, "share": share, "writes": writes, "chunks": size // chunk,
            "changed": len(changed), "part": len(changed) * chunk / size,
            "expected": expected(writes, size // chunk), **row}  # fmt: skip


def expected(writes: float, chunks: float) -> float:
    """The part of the chunks that random writes touch, each within a chunk."""
    return 1 - exp(-writes / chunks)


def runs_of(chosen: Sequence[int], sectors: int, gap: int) -> list[Request]:
    """Reads of these chunks; neighbours are one request, and so are those with at most `gap`
    sectors between them. None is longer than STREAM, unless a chunk is."""
    runs: list[list[int]] = []
    for at in chosen:
        first, after = at * sectors, (at + 1) * sectors
        if runs and first - runs[-1][1] <= gap and after - runs[-1][0] <= STREAM:
            runs[-1][1] = after
        elif runs and first - runs[-1][1] <= gap:
            runs.append([runs[-1][1], after])
        else:
            runs.append([first, after])
    return [Request("read", first, after - first) for first, after in runs]


def milliseconds(requests: Sequence[Request]) -> float:
    """Of these, by the 5400 rpm disk, whose arm is there already."""
    first = requests[0]
    done = replay([first._replace(lba=first.lba - 8, sectors=8), *requests], drive("hdd5400"))
    return done.total_ms - done.accesses[0].total_ms


def hours(chunk: int, gap: int, part: float, sample: int) -> float:
    """To read this part of the chunks of the 2 TB disk in the order of their places: a stretch in
    its middle is replayed."""
    disk = drive("hdd5400")
    sectors, generator = chunk // SECTOR, random.Random(34)
    first = disk.sectors // 2 // sectors
    stretch = int(sample / part)
    chosen = sorted(generator.sample(range(first, first + stretch), sample))
    ms = milliseconds(runs_of(chosen, sectors, gap))
    return ms / sample * part * disk.sectors / sectors / 3_600_000


def full_hours(sample: int) -> float:
    """To read all of it there, 1 MiB at a time."""
    disk = drive("hdd5400")
    first = disk.sectors // 2 // STREAM * STREAM
    reads = [Request("read", first + number * STREAM, STREAM) for number in range(sample // 4)]
    return milliseconds(reads) / len(reads) * disk.sectors / STREAM / 3_600_000


def measure(where: Where) -> Data:
    """What a small drive's store says; and how long a large drive's backup takes by the model."""
    size = SMALL_ORIGIN if where.small else ORIGIN
    rows = [
        case(where, size, chunk, share)
        for chunk in (SMALL_CHUNKS if where.small else CHUNKS)
        for share in (SMALL_SHARES if where.small else SHARES)
    ]
    sample = SMALL_SAMPLE if where.small else SAMPLE
    disk_bytes, model = drive("hdd5400").sectors * SECTOR, []
    for name, (chunk, gap) in READ_WAYS.items():
        for share in MODEL_SHARES:
            part = expected(share * disk_bytes / WRITE, disk_bytes / chunk)
            model.append({"chunk": chunk, "share": share, "part": part, "name": name,
                          "hours": hours(chunk, gap, part, sample)})  # fmt: skip
    return {"rows": rows, "model": model, "full_hours": full_hours(sample), "size": size}


def said(chunk: int) -> str:
    """A size as legends and READ_WAYS have it."""
    return f"{chunk // 1024} KiB"


def of(data: Data, chunk: int, share: float, kind: str = "model") -> Data:
    """A point."""
    return next(r for r in data[kind] if (r["chunk"], r["share"]) == (chunk, share))


def result(data: Data) -> float:
    """Percent of a full copy's bytes when 1 % is written, by the model, in chunks of 64 KiB."""
    return 100 * of(data, 65_536, 0.01)["part"]


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """Bytes, and hours, against the share that was written."""
    bytes_, axes = pictures()
    for number, chunk in enumerate(MODEL_CHUNKS):
        model = [row for row in data["model"] if row["name"] == said(chunk)]
        axes.plot([100 * r["share"] for r in model], [100 * r["part"] for r in model],
                  f"C{number}-", linewidth=1.2, label=f"{said(chunk)}, model")  # fmt: skip
        rows = [row for row in data["rows"] if row["chunk"] == chunk]
        if rows:
            axes.plot([100 * r["share"] for r in rows], [100 * r["part"] for r in rows],
                      f"C{number}" + "os"[number], label="counted in stores")  # fmt: skip
    shares = [100 * share for share in MODEL_SHARES]
    axes.plot(shares, shares, "k:", linewidth=1, label="only the bytes that were written")
    axes.set(xscale="log", yscale="log")
    percent = (0.01, 0.1, 1, 10, 100)
    ticks(axes, percent, percent)
    label(axes, ("bytes written, % of the drive", "写入的字节, 占盘的百分比"),
          ("bytes of the backup, %", "备份的字节, %"))  # fmt: skip
    mark_prediction(axes, predicted)
    legend(axes)
    time, axes = pictures()
    curves(axes, [r | {"percent": 100 * r["share"]} for r in data["model"]], "percent", "hours",
           "name")  # fmt: skip
    axes.axhline(data["full_hours"], color="k", linestyle=":", linewidth=1, label="full copy")
    axes.set(xscale="log", yscale="log")
    ticks(axes, percent, (0.1, 0.3, 1, 3, 10, 30))
    label(axes, ("bytes written, % of the drive", "写入的字节, 占盘的百分比"), ("hours", "小时"))
    legend(axes)
    return [(bytes_, "Random writes of 4 KiB; what was counted, by the tables of the stores"),
            (time, "To read the backup from the 2 TB disk of 5400 rpm, chunk by chunk in the order"
             " of places: the model")]  # fmt: skip


def tables(data: Data) -> Sequence[Table]:
    """Every point."""
    counted = [
        (f"{said(r['chunk'])}, {100 * r['share']:g} %", r["writes"], r["chunks"], r["changed"],
         100 * r["part"], 100 * r["expected"]) for r in data["rows"]
    ]  # fmt: skip
    model = [(f"{r['name']}, {100 * r['share']:g} %", 100 * r["part"], r["hours"])
             for r in data["model"]]  # fmt: skip
    model.append(("full copy", 100.0, data["full_hours"]))
    return [
        (f"Counted, on a drive of {data['size'] >> 20} MiB",
         ["chunks, written", "writes", "chunks", "changed", "changed, %", "model, %"], counted),
        (f"The model, 2 TB: a full copy takes {data['full_hours']:.1f} hours",
         ["chunks, written", "bytes, %", "hours"], model),
    ]  # fmt: skip


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    small, large = (of(data, chunk, 0.01) for chunk in MODEL_CHUNKS)
    every = [row for row in data["model"] if row["name"] == said(MODEL_CHUNKS[0])]
    slower = min(row["share"] for row in every if row["hours"] > data["full_hours"])
    gaps = max(r["hours"] for r in data["model"] if r["name"] == "8 KiB, gaps too")
    counted = next(row for row in data["rows"] if row["share"] == RESTORED)
    return (
        f"When random writes of 4 KiB have written 1 % of a drive, a backup of the changed chunks"
        f" has {100 * small['part']:.1f} % of its bytes with chunks of 8 KiB and"
        f" {100 * large['part']:.1f} % with 64 KiB: a chunk is changed as a whole.",
        f"Of {counted['writes']} writes to a small drive the store's table names"
        f" {counted['changed']} chunks, by 1 - e^(-n/N) it is"
        f" {counted['expected'] * counted['chunks']:.0f}; put over the full copy, those chunks gave"
        " what the second snapshot has, although writes went on.",
        f"Bytes are not hours: at {100 * slower:g} % the changed chunks of 8 KiB take longer to"
        f" read from this disk than all of it ({of(data, MODEL_CHUNKS[0], slower)['hours']:.1f}"
        f" and {data['full_hours']:.1f} hours), though they are"
        f" {100 * of(data, MODEL_CHUNKS[0], slower)['part']:.0f} % of the bytes; if gaps of up to"
        f" 512 KiB are read, too, it is never more than {gaps:.1f} hours.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    hours_of, gaps = ([r["hours"] for r in data["model"] if r["name"] == name]
                      for name in ("8 KiB", "8 KiB, gaps too"))  # fmt: skip
    restored = [row for row in data["rows"] if row["share"] == RESTORED]
    return {
        "full copy and changed chunks give what the second snapshot has": len(restored) > 0
        and all(row["is_whole"] for row in restored),
        "the drive itself has gone on by then": all(row["moved_on"] for row in restored),
        "the table names as many chunks as the formula says, within 10 % or 6": all(
            abs(row["changed"] - row["expected"] * row["chunks"])
            < max(6, 0.1 * row["expected"] * row["chunks"])
            for row in data["rows"]
        ),
        "larger chunks make a larger backup": all(
            of(data, MODEL_CHUNKS[1], share)["part"] > of(data, MODEL_CHUNKS[0], share)["part"]
            for share in MODEL_SHARES[:-1]
        ),
        "a backup of 0.01 % is far faster than a full copy": hours_of[0] < data["full_hours"] / 4,
        "there is a share from which it is slower": max(hours_of) > data["full_hours"],
        "but not by over a fifth if gaps are read, too": max(gaps) < 1.2 * data["full_hours"],
    }  # fmt: skip


ABOUT = About(
    number=34,
    title="A backup of what changed",
    chinese="只备份改变的部分",
    question="A full copy of a drive moves all its bytes. The table of a snapshot names the chunks"
    " that were changed since it was made. How much does a backup of those move, and how long does"
    " it take?",
    expected="No figure was published for this. ZFS and Btrfs send the difference of two snapshots"
    " (the manuals of zfs send and btrfs send): their trees say which blocks are younger, so they"
    " need no table. Ours: of N chunks n random writes touch N(1 - e^(-n/N)).",
    ask=Question("percent", "Random writes of 4 KiB have written 1 % of a drive. How many percent"
                 " of its bytes are in a backup of the changed chunks of 64 KiB?", "percent"),
    method="In the guest: a snapshot of a drive of 16 MiB, and random writes to the drive. The"
    " table of its store says which chunks have changed since. With 30 % there is a second snapshot"
    " then, and more writes: the changed chunks, as the second one has them, are put over the full"
    " copy (labs/storage/snapshot.py). The"
    " model: the formula for 2 TB, and reads of the changed chunks in the order of their places,"
    " one at a time, neighbours together, a stretch of the 5400 rpm disk replayed.",
    changes="Writes that follow one another change few chunks, and the curve comes down to the"
    " dotted line. On an SSD, hours follow the bytes. A drive that keeps what passes under its"
    " heads (this model has no such cache) reads the gaps by itself. A snapshot must be there all"
    " the time, and slows each first write (X27).",
)  # fmt: skip

"""X33: files that are mirrored or striped one by one, and drives that are."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb

from matplotlib.figure import Figure

from labs.storage.disk_model import Disk, Request, replay
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.pages import label, legend, mark_prediction, pictures
from labs.tools.course.measurement import Question

SECTORS = 39_070_288  # of a drive of 20 GB
DRIVES = 2
FILES, FILE_UNITS = 300, 256  # of 64 KiB: files of 16 MiB
UNIT = 128  # sectors: of a stripe, and of a request
KINDS = ("mirrored", "striped", "plain")  # a third of the files are meant to be each
BAD = (1, 4, 16, 64, 256)  # bad sectors of drive 0
TRIALS, SMALL_TRIALS = 400, 60
SEED = 33
OBJECTS, MIRROR, STRIPE, NONE = "raid of objects", "drives mirrored", "drives striped", "no raid"
WAYS = (OBJECTS, MIRROR, STRIPE, NONE)
SHOWN = 64  # bad sectors in the sentences


@dataclass(frozen=True)
class File:
    """copies: for each unit, where it is: drive and sector, once or twice."""

    kind: str
    copies: tuple[tuple[tuple[int, int], ...], ...]


def kept_as(way: str, kind: str) -> str:
    """What becomes of a file that is meant to be of a kind."""
    return {OBJECTS: kind, MIRROR: "mirrored", STRIPE: "striped", NONE: "plain"}[way]


def layout(way: str) -> list[File]:
    """All files, of 16 MiB and one after the other. Plain ones are on the drives in turn."""
    used, files = [0] * DRIVES, []

    def place(drive: int) -> tuple[int, int]:
        used[drive] += UNIT
        return drive, used[drive] - UNIT

    plain = 0
    for number in range(FILES):
        kind = KINDS[number % len(KINDS)]
        copies: list[tuple[tuple[int, int], ...]] = []
        for unit in range(FILE_UNITS):
            match kept_as(way, kind):
                case "mirrored":
                    copies.append(tuple(place(drive) for drive in range(DRIVES)))
                case "striped":
                    copies.append((place(unit % DRIVES),))
                case _:
                    copies.append((place(plain % DRIVES),))
        plain += kept_as(way, kind) == "plain"
        files.append(File(kind, tuple(copies)))
    return files


# ---- bad sectors ----


def owners(files: Sequence[File]) -> dict[tuple[int, int], int]:
    """The file of each unit that has no second copy, by drive and unit."""
    return {(drive, at // UNIT): number for number, file in enumerate(files)
            for unit in file.copies if len(unit) == 1 for drive, at in unit}  # fmt: skip


def lost(single: dict[tuple[int, int], int], bad: int, generator: random.Random) -> set[int]:
    """The files that cannot be read whole, if drive 0 has so many bad sectors, and drive 1 none."""
    sectors = generator.sample(range(SECTORS), bad)
    return {single[0, at // UNIT] for at in sectors if (0, at // UNIT) in single}


def chance(file: File, bad: int) -> float:
    """The same on paper: that one of `bad` sectors is in what the file has on drive 0 alone."""
    mine = UNIT * sum(len(unit) == 1 and unit[0][0] == 0 for unit in file.copies)
    return 1 - comb(SECTORS - mine, bad) / comb(SECTORS, bad)


# ---- rates ----


def requests(file: File) -> Iterator[tuple[int, Request]]:
    """All of it, in order: a unit with two copies is read from the drives in turn by halves of the
    file, so that neither arm jumps."""
    half = len(file.copies) // 2
    for number, unit in enumerate(file.copies):
        drive, at = unit[0] if number < half else unit[-1]
        yield drive, Request("read", at, UNIT)


def read_rate(file: File) -> float:
    """MB/s of a program that reads the whole file with enough requests under way: each drive does
    its own, and the slower one says how long it takes."""
    per_drive: list[list[Request]] = [[] for _ in range(DRIVES)]
    for drive, request in requests(file):
        per_drive[drive].append(request)
    ms = max(replay(each, Disk(SECTORS)).total_ms for each in per_drive)
    return len(file.copies) * UNIT * 512 / 1e6 / ms * 1000


def write_rate(file: File) -> float:
    """The same for a write: every copy of every unit."""
    per_drive: list[list[Request]] = [[] for _ in range(DRIVES)]
    for unit in file.copies:
        for drive, at in unit:
            per_drive[drive].append(Request("write", at, UNIT))
    ms = max(replay(each, Disk(SECTORS)).total_ms for each in per_drive)
    return len(file.copies) * UNIT * 512 / 1e6 / ms * 1000


def measure(where: Where) -> Data:
    """Each way and each kind of file: room, rates, and losses."""
    trials, rows, losses = SMALL_TRIALS if where.small else TRIALS, [], []
    dead: dict[str, int] = {}
    for way in WAYS:
        files = layout(way)
        single, generator = owners(files), random.Random(SEED)
        for kind in KINDS:
            mine = [file for file in files if file.kind == kind]
            middle = mine[len(mine) // 2]
            copies = sum(map(len, middle.copies)) / len(middle.copies)
            rows.append({"way": way, "kind": kind, "kept": kept_as(way, kind), "room": copies,
                         "read": read_rate(middle), "write": write_rate(middle)})  # fmt: skip
        dead |= {f"{way}: {kind}": len({number for (drive, _), number in single.items()
                                        if drive == 0 and files[number].kind == kind})
                 for kind in KINDS}  # fmt: skip
        for bad in BAD:
            found = [lost(single, bad, generator) for _ in range(trials)]
            for number, kind in enumerate(KINDS):
                share = sum(each % len(KINDS) == number for some in found for each in some)
                paper = [chance(file, bad) for file in files if file.kind == kind]
                losses.append({"way": way, "kind": kind, "bad": bad,
                               "lost": share / trials, "paper": sum(paper)})  # fmt: skip
    room = {way: sum(len(unit) for file in layout(way) for unit in file.copies)
            / (FILES * FILE_UNITS) for way in WAYS}  # fmt: skip
    return {"rows": rows, "losses": losses, "room": room, "trials": trials,
            "dead": dead}  # fmt: skip


def of(data: Data, way: str, kind: str) -> Data:
    """Rates of a kind of files."""
    return next(row for row in data["rows"] if (row["way"], row["kind"]) == (way, kind))


def loss(data: Data, way: str, kind: str, bad: int = SHOWN) -> float:
    """Files of a kind that are lost, of FILES / 3."""
    wanted = (way, kind, bad)
    return next(r["lost"] for r in data["losses"] if (r["way"], r["kind"], r["bad"]) == wanted)


def result(data: Data) -> float:
    """Room for a byte of all files."""
    return data["room"][OBJECTS]


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """Losses by bad sectors; rates of each kind; room."""
    losses, axes = pictures()
    curves = ((OBJECTS, kind) for kind in KINDS)
    for number, (way, kind) in enumerate([*curves, (STRIPE, "mirrored")]):
        points = [*(loss(data, way, kind, bad) for bad in BAD), data["dead"][f"{way}: {kind}"]]
        name = f"{way}: {kind}" if way == OBJECTS else f"{way}: meant to be {kind}"
        axes.plot(range(len(points)), points, "-", marker="osD^"[number], markersize=4 + number,
                  fillstyle="none" if number % 2 else "full", label=name)  # fmt: skip
    axes.set_xticks(range(len(BAD) + 1), [*map(str, BAD), "it is\ndead"])
    axes.set(yscale="symlog", ylim=(-0.3, 150))
    axes.minorticks_off()
    axes.set_yticks((0, 1, 10, 100), ("0", "1", "10", "100"))
    label(axes, ("bad sectors of one drive", "一块盘的坏扇区"),
          (f"files lost of {FILES // 3}", f"{FILES // 3} 个文件中丢失的"))  # fmt: skip
    legend(axes)
    rates, axes = pictures()
    for number, kind in enumerate(KINDS):
        axes.bar([place + 0.26 * (number - 1) for place in range(len(WAYS))],
                 [of(data, way, kind)["read"] for way in WAYS], 0.24,
                 label=f"meant to be {kind}")  # fmt: skip
    axes.set_xticks(range(len(WAYS)), [way.replace(" ", "\n", 1) for way in WAYS], fontsize=8)
    axes.set_axisbelow(True)
    label(axes, ("way", "方式"), ("reads a file at, MB/s", "读文件, MB/s"))
    legend(axes)
    room, axes = pictures(height=2.5)
    axes.bar(range(len(WAYS)), [data["room"][way] for way in WAYS], 0.6)
    axes.set_xticks(range(len(WAYS)), [way.replace(" ", "\n", 1) for way in WAYS], fontsize=8)
    axes.set_axisbelow(True)
    axes.set(ylim=(0, 2.4))
    label(axes, ("way", "方式"), ("bytes for a byte", "每字节占用"))
    mark_prediction(axes, predicted)
    legend(axes) if predicted is not None else None
    return [(losses, "One of two drives has bad sectors; the mean of many drives"),
            (rates, "A file of 16 MiB, read whole from both drives at once"),
            (room, "Room for all files, a third of each kind")]  # fmt: skip


def tables(data: Data) -> Sequence[Table]:
    """Everything."""
    rows = [(f"{r['way']}: {r['kind']}", r["kept"], r["room"], r["read"], r["write"])
            for r in data["rows"]]  # fmt: skip
    losses = [(f"{way}: {kind}", *(loss(data, way, kind, bad) for bad in BAD),
               data["dead"][f"{way}: {kind}"])
              for way in WAYS for kind in KINDS]  # fmt: skip
    paper = {(r["way"], r["kind"], r["bad"]): r["paper"] for r in data["losses"]}
    exact = [(f"{way}: {kind}", *(paper[way, kind, bad] for bad in BAD))
             for way in WAYS for kind in KINDS if paper[way, kind, BAD[0]]]  # fmt: skip
    columns = ["", *(f"{bad} bad" for bad in BAD)]
    return [
        ("What a file is meant to be, and what it is", ["", "is", "bytes/byte", "read MB/s",
                                                        "write MB/s"], rows),
        (f"Files lost of {FILES // 3}, by bad sectors of a drive", [*columns, "dead"], losses),
        ("The same on paper; all others lose none", columns, exact),
    ]  # fmt: skip


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    mine = {kind: of(data, OBJECTS, kind) for kind in KINDS}
    return (
        f"With {SHOWN} bad sectors on one drive {loss(data, OBJECTS, 'mirrored'):.0f} of the"
        f" {FILES // 3} mirrored files are lost, {loss(data, OBJECTS, 'striped'):.1f} of the"
        f" striped ones and {loss(data, OBJECTS, 'plain'):.1f} of the plain ones; a drive that"
        f" dies takes {data['dead'][f'{OBJECTS}: mirrored']},"
        f" {data['dead'][f'{OBJECTS}: striped']} and {data['dead'][f'{OBJECTS}: plain']}.",
        f"The striped file is read at {mine['striped']['read']:.0f} MB/s, the mirrored one at"
        f" {mine['mirrored']['read']:.0f} and the plain one at {mine['plain']['read']:.0f}; but"
        f" the mirrored one is written at {mine['mirrored']['write']:.0f} only, the striped one at"
        f" {mine['striped']['write']:.0f}.",
        f"Each file pays for itself: {data['room'][OBJECTS]:.2f} bytes for a byte, where mirrored"
        f" drives take {data['room'][MIRROR]:.0f} for all files, and on striped drives"
        f" {loss(data, STRIPE, 'mirrored'):.1f} of the {FILES // 3} files that were meant to be"
        " safe are lost.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    mine = {kind: of(data, OBJECTS, kind) for kind in KINDS}
    return {
        "what is mirrored is never lost": all(
            row["lost"] == 0 for row in data["losses"]
            if kept_as(row["way"], row["kind"]) == "mirrored"
        ),
        "a drive that dies takes all striped files, half of the plain and no mirrored ones": [
            data["dead"][f"{OBJECTS}: {kind}"] for kind in KINDS
        ] == [0, FILES // 3, FILES // 6],
        "losses are those on paper, within 4 standard deviations": all(
            abs(row["lost"] - row["paper"]) <= 4 * (row["paper"] / data["trials"]) ** 0.5
            for row in data["losses"]
        ),
        "a striped file is read 1.6 to 2.1 times as fast as a plain one": 1.6
        < mine["striped"]["read"] / mine["plain"]["read"] < 2.1,
        "a mirrored one is written as fast as a plain one, within 5 percent": mine["mirrored"][
            "write"
        ] <= 1.05 * mine["plain"]["write"],
        "raid of objects takes 4/3 of the room, mirrored drives twice": abs(
            result(data) - 4 / 3
        ) < 1e-9 and data["room"][MIRROR] == 2,
    }  # fmt: skip


ABOUT = About(
    number=33,
    title="A file that is mirrored, a file that is striped",
    chinese="镜像的文件, 条带的文件",
    question="A file system with two drives (Btrfs, AdvFS) may mirror one file, stripe another, and"
    " leave the others alone; a raid of drives does the same to all. What does each file get, and"
    " what is lost if one drive has bad sectors?",
    expected="No figure was published. Ours: no loss for the mirrored file, the bandwidth of both"
    " drives for the striped one, and room only for those that ask for it.",
    ask=Question("room", "A third of the files is mirrored, a third striped, a third plain. How"
                 " many bytes of the drives does a byte of the files take?", "bytes"),
    method="A model: 300 files of 16 MiB on two drives of 20 GB, in units of 64 KiB; the 5400 rpm"
    " disk says how long each drive's requests take, and the slower drive counts. A mirrored file"
    " is read by halves, one from each drive. One drive gets bad sectors at random, over and over;"
    " a file is lost if a sector of it is bad that has no copy. The chance of that has a closed"
    " form.",
    changes="Bad sectors come in clusters: then fewer files are hit, and those more. With more"
    " drives a striped file is faster, and is lost by more of them. Metadata must be mirrored, or"
    " the mirrored files are not found. Small files gain nothing from stripes: a seek on each"
    " drive. Checksums of data say which copy is right when both can be read.",
    guest=False,
)  # fmt: skip

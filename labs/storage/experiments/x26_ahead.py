"""X26: read-ahead for objects at random places: what it saves, and what it reads for nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence

from matplotlib.figure import Figure

from labs.storage.disk_model import Request, drive, replay
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.pages import curves, label, mark_prediction, pictures
from labs.tools.course.measurement import Question

KIB = 1024
AHEAD = (0, 16, 64, 128, 256, 512)  # KiB
OBJECTS = (4, 64, 1024)  # KiB
DRIVES = ("hdd5400", "sata-ssd")
GETS, SMALL_GETS = 300, 60


def requests(size: int, ahead: int, places: Sequence[int]) -> list[Request]:
    """Objects read from their first byte to their last by a window of read-ahead, at least a page;
    the last window is read whole."""
    window = max(4, ahead) * KIB // 512
    return [
        Request("read", place + at, window)
        for place in places for at in range(0, size * KIB // 512, window)
    ]  # fmt: skip


def measure(where: Where) -> Data:
    """Each drive, size and window."""
    rows = []
    for name in DRIVES:
        for size in OBJECTS:
            generator, model = random.Random(26), drive(name)
            top = model.sectors // 8 - 4096
            places = [8 * generator.randrange(top)
                      for _ in range(SMALL_GETS if where.small else GETS)]  # fmt: skip
            for ahead in AHEAD:
                asked = requests(size, ahead, places)
                moved = sum(each.sectors for each in asked) / 2
                rows.append({
                    "drive": name, "size": size, "ahead": ahead, "object": f"{size} KiB",
                    "ms": replay(asked, drive(name)).total_ms / len(places),
                    "waste": 100 * (1 - size * len(places) / moved),
                })  # fmt: skip
    return {"rows": rows}


def of(data: Data, name: str, size: int, ahead: int) -> Data:
    """A point."""
    wanted = (name, size, ahead)
    return next(r for r in data["rows"] if (r["drive"], r["size"], r["ahead"]) == wanted)


def result(data: Data) -> float:
    """How much longer a page of the SSD takes with 128 KiB."""
    return of(data, "sata-ssd", 4, 128)["ms"] / of(data, "sata-ssd", 4, 0)["ms"]


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """Time relative to none, for each drive; waste."""
    figure, both_axes = pictures(2, height=2.9)
    for axes, name in zip(both_axes, DRIVES, strict=True):
        mine = [{**r, "part": r["ms"] / of(data, name, r["size"], 0)["ms"]}
                for r in data["rows"] if r["drive"] == name]  # fmt: skip
        curves(axes, mine, "ahead", "part", "object")
        axes.set_title(name, loc="left")
        axes.set(yscale="log" if name == "sata-ssd" else "linear")
        label(axes, ("read-ahead, KiB", "预读, KiB"), ("time / without", "耗时 / 无预读"))
        if name == "sata-ssd":
            mark_prediction(axes, predicted)
        axes.legend(fontsize=8)
    waste, axes = pictures(height=2.6)
    curves(axes, [r for r in data["rows"] if r["drive"] == DRIVES[0]], "ahead", "waste", "object")
    axes.set(ylim=(-3, 105))
    label(axes, ("read-ahead, KiB", "预读, KiB"), ("read for nothing, %", "白读的, %"))
    axes.legend(fontsize=8)
    return [(figure, "Objects at random places; 1 is the time with no read-ahead"),
            (waste, "Bytes that nobody asked for")]  # fmt: skip


def tables(data: Data) -> Sequence[Table]:
    """Every point."""
    rows = [(f"{r['drive']}, {r['object']}", r["ahead"], r["ms"], r["waste"])
            for r in data["rows"]]  # fmt: skip
    return [("By drive and object", ["", "read-ahead, KiB", "ms/get", "waste, %"], rows)]


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    disk = [of(data, "hdd5400", 1024, ahead)["ms"] for ahead in (0, 512)]
    return (
        f"An object of 1 MiB takes {disk[0]:.0f} ms page by page and {disk[1]:.0f} ms with 512 KiB "
        "of read-ahead on the disk: the drive reads on by itself, but each request has its own "
        "overhead.",
        f"A page of the SSD takes {result(data):.1f} times as long with 128 KiB, and "
        f"{of(data, 'sata-ssd', 4, 128)['waste']:.0f} % of what it reads is for nothing; the disk "
        "hides that in its turn.",
        "A window as large as the object is best: so a store that knows the length reads it with "
        "one request and switches read-ahead off.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    return {
        "1 MiB is read faster with 128 KiB, on both drives": all(
            of(data, name, 1024, 128)["ms"] < of(data, name, 1024, 0)["ms"] for name in DRIVES
        ),
        "a page is read slower with 128 KiB, on both drives": all(
            of(data, name, 4, 128)["ms"] > of(data, name, 4, 0)["ms"] for name in DRIVES
        ),
        "on the SSD it takes over 5 times as long": result(data) > 5,
        "on the disk less than 1.3 times": of(data, "hdd5400", 4, 128)["ms"]
        < 1.3 * of(data, "hdd5400", 4, 0)["ms"],
        "a window of the object's size wastes nothing": of(data, "hdd5400", 64, 64)["waste"] == 0,
        "a page with 128 KiB wastes 31 of 32 parts": abs(
            of(data, "hdd5400", 4, 128)["waste"] - 100 * 31 / 32
        ) < 0.01,
    }  # fmt: skip


ABOUT = About(
    number=26,
    title="Read-ahead for random objects",
    chinese="随机对象的预读",
    question="A store reads objects of 4 KiB to 1 MiB at random places of a large file. Does"
    " read-ahead help or harm?",
    expected="Published without figures: it helps objects that are at least as large as the window,"
    " and harms small random reads by what they read for nothing.",
    ask=Question("times", "With 128 KiB of read-ahead, how many times as long does a random page of"
                 " a SATA SSD take?", "times"),
    method="Requests on paper: an object is read from its start to its end by windows, at least a"
    " page, one request after another. They are replayed on the models of the 5400 rpm disk and of"
    " the SATA SSD. 300 objects for each point, the seed is explicit.",
    changes="A read-ahead that grows only when reads continue (as kernels do) spares single pages."
    " Several requests at once hide the overhead of small ones on the SSD. Waste fills the page"
    " cache, too, and takes hits from others (X2).",
    guest=False,
)  # fmt: skip

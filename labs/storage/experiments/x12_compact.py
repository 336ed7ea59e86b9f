"""X12: what it costs to get the space of deleted objects back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from matplotlib.figure import Figure

from labs.storage.disk_model import drive
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.experiments.blobs import build, entry, new_store
from labs.storage.experiments.guest import run_guest
from labs.storage.pages import label, legend, mark_prediction, pictures
from labs.tools.course.measurement import Question
from labs.tools.machine.qemu_command import Drive
from labs.tools.machine.work_folder import work_folder

OBJECTS, SMALL_OBJECTS = 3000, 500
PERCENTS = (10, 30, 50, 70, 90)
FIGURES = re.compile(r"objects (\d+) live (\d+) log (\d+) ")


def measure(where: Where) -> Data:
    """For each part deleted: fills a store, deletes, compacts."""
    objects = SMALL_OBJECTS if where.small else OBJECTS
    percents = (30, 70) if where.small else PERCENTS
    with work_folder("images", where.build.parent) as folder:
        program = build(folder)
        store = new_store(program, folder / "store", objects)
        script = [
            f"blob -d fill /dev/hdb {objects} && mark {3 * n + 1} && "
            f"blob -d delete /dev/hdb {objects} {percent} 1 && blob -d open /dev/hdb && "
            f"mark {3 * n + 2} && blob -d compact /dev/hdb && mark {3 * n + 3} && "
            for n, percent in enumerate(percents)
        ]
        drives = [Drive(store, 1)]
        run = run_guest(where.build, "".join(script) + "true", drives, [entry(program)])
    rows = []
    for n, (percent, found) in enumerate(zip(percents, FIGURES.findall(run.said), strict=True)):
        _, live, log = map(int, found)
        phase, disk = run.phases[3 * n + 2], drive("sata-ssd")
        written = phase.sectors("hdb", "w") * 512
        rows.append({
            "deleted": percent, "dead": 100 * (1 - live / log), "log": log, "live": live,
            "copied": written, "amplification": 1 + written / (log - live),
            "theory": 1 / (1 - live / log), "seconds": phase.seconds("hdb", disk),
        })  # fmt: skip
    return {"rows": rows}


def result(data: Data) -> float:
    """Bytes written for each byte won, at 30 % deleted."""
    return next(r["amplification"] for r in data["rows"] if r["deleted"] == 30)


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """Write amplification, and space."""
    rows = data["rows"]
    figure, axes = pictures()
    xs = range(8, 96)
    axes.plot(xs, [100 / x for x in xs], "k:", label="1/d")
    axes.plot([r["dead"] for r in rows], [r["amplification"] for r in rows], "o", label="blob")
    axes.set(yscale="log")
    axes.set_yticks([1, 2, 5, 10], ["1", "2", "5", "10"])
    label(axes, ("dead part of the log when it is compacted, %", "压实时日志中无用的部分, %"),
          ("bytes written per user byte", "每用户字节写的字节"))  # fmt: skip
    mark_prediction(axes, predicted)
    legend(axes)
    space, axes = pictures(height=2.8)
    axes.plot([r["dead"] for r in rows], [r["log"] / r["live"] for r in rows], "o-")
    axes.set(yscale="log")
    axes.set_yticks([1, 2, 5, 10], ["1", "2", "5", "10"])
    label(axes, ("dead part of the log, %", "无用的部分, %"),
          ("space / live bytes", "空间 / 有用字节"))  # fmt: skip
    return [(figure, "Counted by QEMU, against the theory"),
            (space, "Who waits longer pays in space, and without end.")]  # fmt: skip


def tables(data: Data) -> Sequence[Table]:
    """Every point."""
    rows = [(f"{r['deleted']} %", r["dead"], r["log"], r["live"], r["copied"], r["amplification"],
             r["theory"], r["seconds"]) for r in data["rows"]]  # fmt: skip
    columns = ["deleted", "dead, %", "log", "live", "copied", "written/byte", "1/d", "SSD, s"]
    return [("Compaction", columns, rows)]


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    first, last = data["rows"][0], data["rows"][-1]
    return (
        f"With {first['dead']:.0f} % of the log dead each byte of free space costs "
        f"{first['amplification']:.2f} bytes of writing, with {last['dead']:.0f} % only "
        f"{last['amplification']:.2f}: the live rest is what is copied.",
        f"Marking alone costs nothing at first and {last['log'] / last['live']:.1f} times the "
        f"space "
        "at last; the threshold chooses between writes and space, and 1/d is the exchange rate.",
        "While a store is compacted its drive does nothing else, so the slowest requests wait for "
        "a "
        "copy: here they wait for all of it.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    rows = data["rows"]
    return {
        "written bytes for each byte won are 1/d, within 5 %": all(
            abs(r["amplification"] / r["theory"] - 1) < 0.05 for r in rows
        ),
        "they fall as more is dead": all(
            a["amplification"] > b["amplification"] for a, b in pairwise(rows)
        ),
        "the copy is the live records and two superblocks": all(
            0 < r["copied"] - r["live"] <= 16 * 512 for r in rows
        ),
    }


ABOUT = About(
    number=12,
    title="Removal and compaction",
    chinese="删除与压实",
    question="The published store only marks deleted objects. What does it cost to get their space"
    " back, and when should it be done?",
    expected="Nothing was published: it was left unsolved. Theory: a log with a dead part d is"
    " copied but for d, so each byte of new data costs 1 + (1 - d)/d = 1/d bytes of writing.",
    ask=Question("amplification", "30 % of the objects are deleted, then the store is compacted. "
    "How"
                 " many bytes are written for each byte that new objects can use?", "bytes"),
    method="The guest fills a raw store, deletes 10 to 90 percent at random, and compacts: live"
    " records are copied to the other half in the order of the log. QEMU counts the bytes written.",
    changes="Objects that die together (by age) leave areas that are wholly dead, and these cost"
    " nothing. Holes punched into a file give space back without a copy, but only whole blocks, and"
    " they scatter the rest.",
)  # fmt: skip

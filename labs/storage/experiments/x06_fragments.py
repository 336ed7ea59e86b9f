"""X6: how fragmented the extents of a file may get until block pointers would be no worse."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from labs.storage import fsx
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.experiments.guest import run_guest
from labs.storage.experiments.trees import FILE_BYTES, READS, Tree, cost, mapped
from labs.storage.pages import label, legend, mark_prediction, pictures
from labs.tools.course.measurement import Question
from labs.tools.machine.qemu_command import Drive
from labs.tools.machine.work_folder import work_folder

BLOCK, PER_LEAF = 4096, 340
EXTENTS = (16_384, 131_072, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 178_257_920)
POINTERS = Tree(BLOCK, 1024, 1024)


GUEST_EXTENTS = (340, 2720, 10_880)
GUEST_READS = 300


def fragmented(folder: Path) -> Path:
    """An ext4 with a file for each of GUEST_EXTENTS: every second of its blocks is a hole."""
    top, image = folder / "top", folder / "image"
    top.mkdir()
    for extents in GUEST_EXTENTS:
        with (top / str(extents)).open("wb") as file:
            for number in range(extents):
                file.seek(2 * number * BLOCK)
                file.write(b"x" * BLOCK)
            file.truncate(2 * extents * BLOCK)
    with image.open("wb") as file:
        file.truncate((sum(GUEST_EXTENTS) * BLOCK * 5 // 4) + (16 << 20))
    fsx.tool("mke2fs", "-q", "-F", "-t", "ext4", "-b", str(BLOCK), "-d", str(top), str(image))
    return image


def in_guest(where: Where) -> list[Data]:
    """Random direct reads of a sector of each file, from a cold start: requests of a block are
    leaves, and a few on the way to the file."""
    script = "mount -t ext4 -o ro /dev/hdb /a && "
    for number, extents in enumerate(GUEST_EXTENTS, 1):
        script += (f"drop && mark {2 * number} && seekrw -f /a/{extents} -a {GUEST_READS} -d -s 7 "
                   f"&& mark {2 * number + 1} && ")  # fmt: skip
    with work_folder("images", where.build.parent) as folder:
        run = run_guest(where.build, script + "true", [Drive(fragmented(folder), 1)])
    rows = []
    for number, extents in enumerate(GUEST_EXTENTS, 1):
        asked, leaves = run.phases[2 * number].of("hdb"), extents / PER_LEAF
        rows.append({"extents": extents, "leaves": round(leaves),
                     **mapped(asked, GUEST_READS, leaves)})  # fmt: skip
    return rows


def measure(where: Where) -> Data:
    """Each number of extents, and the same file by block pointers; small files in the guest."""
    sample, rows = 20, []
    reads = 20_000 if where.small else READS
    for extents in (EXTENTS[0], 1 << 24, EXTENTS[-1]) if where.small else EXTENTS:
        tree = Tree(BLOCK, FILE_BYTES / BLOCK / extents * PER_LEAF, PER_LEAF)
        rows.append({"extents": extents, "leaves": -(-extents // PER_LEAF),
                     **cost(tree, reads, sample)})  # fmt: skip
    return {"rows": rows, "pointers": cost(POINTERS, reads, sample), "reads": reads,
            "guest": in_guest(where)}  # fmt: skip


def result(data: Data) -> float:
    """Requests for a read with 16 M extents."""
    return 1 + next(row["mapping"] for row in data["rows"] if row["extents"] == 1 << 24)


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """Requests and time by extents, over those of block pointers."""
    figure, both_axes = pictures(2, height=2.9)
    extents = [row["extents"] for row in data["rows"]]
    for axes, key, more in zip(both_axes, ("mapping", "ms"), (1, 0), strict=True):
        axes.plot(extents, [more + row[key] for row in data["rows"]], "o-", markersize=4,
                  label="extents")  # fmt: skip
        axes.axhline(more + data["pointers"][key], color="C1", linewidth=1, label="block pointers")
        axes.set(xscale="log", ylim=(0, None))
    label(both_axes[0], ("extents of a file of 2 TiB", "区段数"),
          ("requests for a read", "每次读的请求数"))  # fmt: skip
    label(both_axes[1], ("extents of a file of 2 TiB", "区段数"), ("ms for a read", "毫秒"))
    mark_prediction(both_axes[0], predicted)
    for axes in both_axes:
        legend(axes)
    own, axes = pictures(height=2.6)
    few = [row["extents"] for row in data["guest"]]
    axes.errorbar(few, [row["mapping"] for row in data["guest"]],
                  [row["margin"] for row in data["guest"]], fmt="o", capsize=3,
                  label="counted, ±95 %")  # fmt: skip
    axes.plot(few, [row["formula"] for row in data["guest"]], "k:", label="formula")
    axes.set(xscale="log", ylim=(0, None))
    label(axes, ("extents of a small file", "区段数"), ("leaves/read", "每次读的叶块"))
    legend(axes)
    return [(figure, f"{data['reads']:,} random reads, from a cold start"),
            (own, f"In the guest: {GUEST_READS} reads, blocks and holes by turns")]  # fmt: skip


def tables(data: Data) -> Sequence[Table]:
    """Every point."""
    rows = [(f"{r['extents']:,} extents", r["leaves"], 1 + r["mapping"], r["ms"], r["margin"])
            for r in data["rows"]]  # fmt: skip
    rows.append(("block pointers", round(POINTERS.lowest), 1 + data["pointers"]["mapping"],
                 data["pointers"]["ms"], data["pointers"]["margin"]))  # fmt: skip
    own = [(f"{r['extents']:,} extents", r["leaves"], r["mapping"], r["margin"], r["formula"])
           for r in data["guest"]]  # fmt: skip
    return [("By extents; ±95 %: from the spread of the requests' times",
             ["", "lowest blocks", "requests/read", "ms/read", "±95 %"], rows),
            ("In the guest; ±95 %: from the spread of the reads",
             ["", "leaves", "leaves/read", "±95 %", "formula"], own)]  # fmt: skip


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    first, last = data["rows"][0], data["rows"][-1]
    return (
        f"In {first['extents']:,} extents of 128 MiB the file needs {first['leaves']} leaves, "
        f"which are soon in memory: {1 + first['mapping']:.2f} requests for a read.",
        f"A thousand times as many extents are {result(data):.2f} requests for a read: the map is "
        "warm as long as there are many more reads than leaves.",
        f"With {last['extents']:,} extents, three blocks long on average, there are as many leaves "
        f"as pointer blocks, and a read costs {last['ms']:.1f} ms, with pointers "
        f"{data['pointers']['ms']:.1f}.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    first, last, pointers = data["rows"][0], data["rows"][-1], data["pointers"]
    return {
        "16,384 extents are 49 leaves": first["leaves"] == 49,
        "in the guest leaves follow the formula, within 0.05": all(
            abs(r["mapping"] - r["formula"]) < 0.05 for r in data["guest"]
        ),
        "they cost less than 0.01 requests for a read": first["mapping"] < 0.01,
        "requests grow with the extents": all(
            a["mapping"] < b["mapping"]
            for a, b in zip(data["rows"], data["rows"][1:], strict=False)
        ),
        "178 million extents have as many leaves as there are pointer blocks": abs(
            last["leaves"] / POINTERS.lowest - 1
        ) < 0.001,
        "there a read needs as many requests, within 0.1": abs(
            last["mapping"] - pointers["mapping"]
        ) < 0.1,
        "and as long, within a tenth": abs(last["ms"] / pointers["ms"] - 1) < 0.1,
    }  # fmt: skip


ABOUT = About(
    number=6,
    title="How fragmented may extents get?",
    chinese="区段能碎到什么程度?",
    question="A file that was written next to others has many short extents. From which number on"
    " is a random read as slow as with block pointers?",
    expected="Published: 16,384 extents in 50+ blocks. Computed from it: a leaf of 340, so 49"
    " leaves and one block above them; the curves meet where there are as many leaves as pointer"
    " blocks, at 178 million extents.",
    ask=Question("requests", "A file of 2 TiB has 16 million extents of 128 KiB. How many requests"
                 " does each of 100,000 random reads cost?", "requests"),
    method="A tree on paper: leaves of 340 extents, each in front of its data, and a cache that"
    " forgets nothing. 100,000 random reads go through it; every 20th is replayed on the model of"
    " the 5400 rpm disk. The guest reads files of 340 to 10,880 extents, and QEMU counts.",
    changes="With less memory than leaves the map never gets warm. Sequential reads pay for each"
    " extent by a seek, long before random ones notice. Leaves far away from their data, as an"
    " allocator under pressure puts them, cost a whole seek instead of half a turn.",
)  # fmt: skip

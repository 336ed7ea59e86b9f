"""X22: what fsck costs: how the time of its passes follows from where the metadata is."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from matplotlib.figure import Figure

from labs.storage.disk_model import Request, drive, replay
from labs.storage.experiments import fsck_trees
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.pages import label, legend, mark_prediction, pictures
from labs.tools.course.measurement import Question

TERABYTES = (1, 2, 5, 10)
GROUP = 262_144  # sectors of a block group: 128 MiB
TABLE = 4096  # sectors of its inode table: 8,192 inodes of 256 bytes
FILES = 100  # of a group, 1 MiB each: 80 percent full. Each has a block of pointers
DIRECTORIES = 2  # blocks of a group that hold names
CHUNK = 32  # sectors of 64 inodes, where inodes are in a tree
SAMPLE, SMALL_SAMPLE = 60, 15  # neighbouring groups that are replayed, for all
PASSES = ("1: inodes", "1: pointers", "2: names", "5: bitmaps")
PICKED = "hdd5400"

NEW, OLD, SORTED = fsck_trees.WAYS

Asked = Callable[[int, random.Random], list[list[Request]]]


def at(group: int, sector: int, sectors: int = 8) -> Request:
    """A read in a group."""
    return Request("read", group * GROUP + sector, sectors)


def scattered(group: int, generator: random.Random, count: int) -> list[Request]:
    """Blocks among the data, in the order of their inodes, which is not that of the places."""
    return [at(group, 8 * generator.randrange(TABLE, GROUP // 8)) for _ in range(count)]


def table(group: int, generator: random.Random) -> list[list[Request]]:
    """ext3: a table of inodes, read whole; pointers and names among the data."""
    return [[at(group, 16, TABLE)], scattered(group, generator, FILES),
            scattered(group, generator, DIRECTORIES), [at(group, 0, 16)]]  # fmt: skip


def extents(group: int, generator: random.Random) -> list[list[Request]]:
    """ext4: files of 1 MiB are mapped by their inodes."""
    return [[at(group, 16, TABLE)], [], scattered(group, generator, DIRECTORIES),
            [at(group, 0, 16)]]  # fmt: skip


def tree(group: int, generator: random.Random) -> list[list[Request]]:
    """Inodes are made where they are needed, 64 at a time, and a tree says where."""
    chunks = [at(group, 8 * generator.randrange(GROUP // 8 - 4), CHUNK)
              for _ in range(-(-FILES // 64) + 1)]  # fmt: skip
    return [chunks, [], scattered(group, generator, DIRECTORIES), [at(group, 0)]]


def together(group: int, generator: random.Random) -> list[list[Request]]:
    """As ffsck proposes: pointers and names of a group follow its table."""
    after = 16 + TABLE
    return [[at(group, 16, TABLE)], [at(group, after, 8 * FILES)],
            [at(group, after + 8 * FILES, 8 * DIRECTORIES)], [at(group, 0, 16)]]  # fmt: skip


LAYOUTS: dict[str, tuple[Asked, str]] = {
    "ext3": (table, PICKED), "ext4": (extents, PICKED), "inode tree": (tree, PICKED),
    "together": (together, PICKED), "ext3, fast device": (table, "pcie-ssd"),
}  # fmt: skip


def seconds(layout: str, groups: int, sample: int) -> list[float]:
    """Of each pass. Pass 1 goes from group to group, its pointers between; then the others."""
    metadata, name = LAYOUTS[layout]
    per_group = [metadata(group, random.Random(group)) for group in range(sample)]
    asked = [
        (number, request) for passes in ((0, 1), (2,), (3,)) for lists in per_group
        for number in passes for request in lists[number]
    ]  # fmt: skip
    done = replay([request for _, request in asked], drive(name))
    costs = [0.0] * len(PASSES)
    for (number, _), access in zip(asked, done.accesses, strict=True):
        costs[number] += access.total_ms
    return [cost / 1000 / sample * groups for cost in costs]


def measure(where: Where) -> Data:
    """Each layout and size. Time is that of the sample for each group."""
    sample, rows = SMALL_SAMPLE if where.small else SAMPLE, []
    for layout in LAYOUTS:
        one = seconds(layout, 1, sample)
        for terabytes in TERABYTES:
            groups = terabytes * 10**12 // (GROUP * 512)
            rows.append({"layout": layout, "terabytes": terabytes, "groups": groups,
                         "passes": [each * groups for each in one]})  # fmt: skip
    part, trees = fsck_trees.CHUNK_GROUPS // (10 if where.small else 1), []
    for way in fsck_trees.WAYS:
        one_chunk = fsck_trees.seconds(way, part, PICKED)
        trees.append({"way": way, **{tree: each / part * rows[1]["groups"]
                                     for tree, each in one_chunk.items()}})  # fmt: skip
    references = rows[1]["groups"] * FILES * fsck_trees.RECORD_BYTES / 2**20
    bitmaps = {str(t): t * 10**12 / 4096 / 8 / 2**20 for t in TERABYTES}
    return {"rows": rows, "bitmap": bitmaps, "trees": trees, "references": references}


def total(data: Data, layout: str, terabytes: int = 2) -> float:
    """Minutes."""
    wanted = (layout, terabytes)
    return next(sum(r["passes"]) / 60 for r in data["rows"]
                if (r["layout"], r["terabytes"]) == wanted)  # fmt: skip


def walk(data: Data, way: str) -> float:
    """Minutes of a check that walks all three trees, of 2 TB."""
    row = next(row for row in data["trees"] if row["way"] == way)
    return sum(row[tree] for tree in fsck_trees.LEAVES) / 60


def result(data: Data) -> float:
    """ext3 over ext4."""
    return total(data, "ext3") / total(data, "ext4")


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """Passes, stacked; time and memory by size."""
    figure, axes = pictures(height=3.6)
    low = [0.0] * len(LAYOUTS)
    two = [row["passes"] for row in data["rows"] if row["terabytes"] == 2]
    for number, name in enumerate(PASSES):
        high = [passes[number] / 60 for passes in two]
        axes.bar([each.replace(" ", "\n") for each in LAYOUTS], high, bottom=low, label=name)
        low = [a + b for a, b in zip(low, high, strict=True)]
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", labelsize=8)
    label(axes, ("layout, 2 TB", "布局, 2 TB"), ("minutes", "分钟"))
    if predicted is not None:
        mark_prediction(axes, predicted * total(data, "ext4"))
    legend(axes)
    sizes, lower = pictures()
    for layout in LAYOUTS:
        lower.plot(TERABYTES, [total(data, layout, t) for t in TERABYTES], "o-", markersize=4,
                   label=layout)  # fmt: skip
    memory = [data["bitmap"][str(t)] for t in TERABYTES]
    lower.plot(TERABYTES, memory, "k:", label="a bitmap of blocks, MiB")
    lower.set(xscale="log", yscale="log")
    lower.set_xticks(TERABYTES, [str(t) for t in TERABYTES])
    lower.minorticks_off()
    label(lower, ("file system, TB", "文件系统, TB"), ("minutes; memory: MiB", "分钟; 内存: MiB"))
    legend(lower)
    walks, axes = pictures(height=3.2)
    ways = ["ext4", *fsck_trees.WAYS]
    axes.bar([0], [total(data, "ext4")], label="tables")
    low = [0.0] * len(fsck_trees.WAYS)
    for tree in fsck_trees.LEAVES:
        high = [row[tree] / 60 for row in data["trees"]]
        axes.bar(range(1, len(ways)), high, bottom=low, label=f"tree of {tree}")
        low = [a + b for a, b in zip(low, high, strict=True)]
    axes.set_xticks(range(len(ways)), [each.replace(", ", ",\n") for each in ways], fontsize=8)
    axes.set_axisbelow(True)
    label(axes, ("file system and order, 2 TB", "文件系统与次序, 2 TB"), ("minutes", "分钟"))
    legend(axes)
    return [(figure, "Passes of a check, 80 percent full, files of 1 MiB"),
            (sizes, "Time and memory grow with the size"),
            (walks, "Tables of ext4, and trees of a file system with copy on write")]  # fmt: skip


def tables(data: Data) -> Sequence[Table]:
    """Every point, in seconds."""
    rows = [(f"{r['layout']}, {r['terabytes']} TB", *r["passes"], sum(r["passes"]) / 60)
            for r in data["rows"]]  # fmt: skip
    memory = [(f"{t} TB", data["bitmap"][str(t)]) for t in TERABYTES]
    memory.append(("2 TB: extents to compare", data["references"]))
    walks = [(row["way"], *(row[tree] for tree in fsck_trees.LEAVES), walk(data, row["way"]))
             for row in data["trees"]]  # fmt: skip
    return [("Seconds by pass", ["", *PASSES, "minutes"], rows),
            ("Walks of trees, 2 TB, seconds by tree", ["", *fsck_trees.LEAVES, "minutes"], walks),
            ("Memory for one bitmap of all blocks; for the extents of a tree", ["", "MiB"],
             memory)]  # fmt: skip


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    return (
        f"To check 2 TB takes {total(data, 'ext3'):.0f} minutes with ext3 and "
        f"{total(data, 'ext4'):.0f} with ext4: the difference is seeks for pointer blocks.",
        f"If the pointers follow the table of inodes it takes {total(data, 'together'):.0f} "
        f"minutes on the same disk, and on a fast device {total(data, 'ext3, fast device'):.1f}: "
        "then the rate counts, and not the arm. A check that walks trees takes"
        f" {walk(data, NEW):.1f} minutes while they are new, {walk(data, OLD):.0f} when their nodes"
        f" have moved, and {walk(data, SORTED):.0f} if it reads those by their places.",
        f"Each bitmap of blocks takes {data['bitmap']['10']:.0f} MiB at 10 TB, and a check needs "
        "several: memory grows with the blocks, not with the files. Extents that are compared with"
        f" their references take {data['references']:.0f} MiB at 2 TB, where a bitmap takes"
        f" {data['bitmap']['2']:.0f}: that grows with the files.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    return {
        "ext3 takes over 5 times as long as ext4": result(data) > 5,
        "together is within twice of ext4": total(data, "together") < 2 * total(data, "ext4"),
        "a fast device takes less than a tenth of ext3's time": total(data, "ext3, fast device")
        < total(data, "ext3") / 10,
        "time grows with the size": total(data, "ext3", 10) > 9 * total(data, "ext3", 1),
        "trees whose nodes have moved take over 5 times as long as new ones": walk(data, OLD)
        > 5 * walk(data, NEW),
        "a check that reads them by place takes less than half of that": walk(data, SORTED)
        < walk(data, OLD) / 2,
        "but not less than one of new trees": walk(data, SORTED) > 0.99 * walk(data, NEW),
        "a bitmap of 10 TB takes 291 MiB": round(data["bitmap"]["10"]) == 291,
    }


ABOUT = About(
    number=22,
    title="What fsck costs",
    chinese="fsck 的代价",
    question="A check reads all metadata. How long does that take by layout and by device, and how"
    " much memory does it need?",
    expected="Published: ffsck checks at rates that approach the disk's sequential bandwidth, as"
    " its file system keeps the pointer blocks of a group in one place. Ours: on a fast device the"
    " rate counts instead of the seeks; memory grows with the blocks.",
    ask=Question("ratio", "How many times as long does a check take with block pointers (ext3) as"
                 " with extents (ext4), if files have 1 MiB?", "times"),
    method="The reads of passes 1, 2 and 5, worked out for neighbouring groups and replayed, one"
    " at a time, on the models of the 5400 rpm disk and of the PCIe SSD; then times the number of"
    " groups. 100 files of 1 MiB in a group, pointers in the order of inodes."
    " Trees: nodes of 16 KiB in metadata chunks that are half full; for each group 3 leaves of"
    " inodes and names, 1 of extents, 7 of the data's checksums. Aged: a node may be anywhere in"
    " its chunk. One chunk is replayed, for all.",
    changes="A checker that sorts its reads, or has several under way, comes nearer to the times"
    " of the other layouts. Tables of inodes that are not in use need not be read (uninit_bg)."
    " Passes 3 and 4 are done in memory. Larger files have fewer pointer blocks for each inode."
    " A tree's nodes have checksums and say who they are, so a part of it can be checked alone, and"
    " while it is in use; a table's inode cannot say that it is none.",
    guest=False,
)  # fmt: skip

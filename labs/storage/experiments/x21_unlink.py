"""X21: files are removed in the order in which a directory lists them, or in that of inodes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from labs.storage import fsx
from labs.storage.disk_model import Request, drive
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.experiments.guest import Phase, run_guest
from labs.storage.pages import label, legend, mark_prediction, pictures, ticks
from labs.storage.published import mark
from labs.tools.course.measurement import Question
from labs.tools.machine.qemu_command import Drive
from labs.tools.machine.work_folder import work_folder

FILES, SMALL_FILES = 20_000, 4000
PUBLISHED_FILES, JOURNAL_MIB = 500_000, 4  # the journal is as small as the files are few
MEMORY = 96  # MiB
BLOCK, INODE = 4096, 256
SECTORS = BLOCK // 512
IMAGE_BYTES = 16 << 30  # sparse; as many inodes in a group as a large file system has
MODES = ("writeback", "ordered", "journal")
ORDERS = {"directory": "order of the directory", "inode": "order of inodes"}
PUBLISHED = {
    "writeback": {"directory": 589.9, "inode": 37.5},
    "ordered": {"directory": 618.0, "inode": 392.0},
    "journal": {"directory": 641.0, "inode": 464.0},
}
"""Seconds for 500,000 files."""

Range = tuple[int, int]


def new_image(path: Path) -> Path:
    """An empty file system; checksums are left out, as in 2010."""
    with path.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    options = f"-t ext4 -b {BLOCK} -I {INODE} -J size={JOURNAL_MIB} -O ^metadata_csum"
    fsx.tool("mke2fs", "-q", "-F", *options.split(), "-E", "lazy_itable_init=1", str(path))
    return path


def tables_of(image: Path) -> list[Range]:
    """Where the tables of inodes are, in sectors: first, and after the last."""
    found = re.findall(r"Inode table at (\d+)-(\d+)", fsx.tool("dumpe2fs", str(image)))
    return [(int(first) * SECTORS, (int(last) + 1) * SECTORS) for first, last in found]


def journal_of(image: Path) -> list[Range]:
    """Where the log is."""
    said = fsx.tool("debugfs", "-R", "blocks <8>", str(image))
    return [(block * SECTORS, (block + 1) * SECTORS) for block in map(int, said.split())]


def blocks_in(requests: Sequence[Request], ranges: Sequence[Range], operation: str) -> int:
    """Blocks that requests of a kind touch there."""
    places = {sector for first, after in ranges for sector in range(first, after, SECTORS)}
    return sum(
        sector in places for each in requests if each.operation.startswith(operation)
        for sector in range(each.lba, each.lba + each.sectors, SECTORS)
    )  # fmt: skip


def script_of(cases: Sequence[tuple[str, str]], files: int) -> str:
    """Each case: new files, and a cold cache; then all files go, and the journal is emptied."""
    parts = []
    for number, (mode, order) in enumerate(cases, 1):
        mount = f"mount -t ext4 -o data={mode} /dev/hdb /a"
        parts.append(
            f"{mount} && mkdir -p /a/d && manyfiles create /a/d {files} && umount /a && drop && "
            f"{mount} && "
            f"mark {2 * number} && manyfiles remove /a/d {order} && umount /a && "
            f"mark {2 * number + 1} && "
        )
    return "".join(parts) + "true"


def row_of(phase: Phase, case: tuple[str, str], files: int, places: Sequence[list[Range]]) -> Data:
    """The figures of a case."""
    mode, order = case
    asked, (tables, journal) = phase.of("hdb"), places
    return {
        "mode": mode, "order": order, "files": files, "seconds": phase.seconds(
            "hdb", drive("hdd5400")), "flushes": phase.count("hdb", "f"),
        "read": blocks_in(asked, tables, "r"), "written": blocks_in(asked, tables, "w"),
        "log": blocks_in(asked, journal, "w"),
    }  # fmt: skip


def measure(where: Where) -> Data:
    """Every mode and order."""
    files = SMALL_FILES if where.small else FILES
    cases = [(mode, order) for mode in MODES for order in ORDERS]
    with work_folder("images", where.build.parent) as folder:
        image = new_image(folder / "image")
        run = run_guest(
            where.build,
            script_of(cases, files),
            [Drive(image, 1)],
            memory=MEMORY,
            seconds=900,
            icount=0,  # or a commit, and a write-back, come in between on a slow machine
        )
        places = [tables_of(image), journal_of(image)]
    return {"rows": [
        row_of(run.phases[2 * number], case, files, places) for number, case in enumerate(cases, 1)
    ]}  # fmt: skip


def of(data: Data, mode: str, order: str) -> Data:
    """A case."""
    return next(row for row in data["rows"] if (row["mode"], row["order"]) == (mode, order))


def ratio(data: Data, mode: str, what: str) -> float:
    """The directory's order over that of inodes."""
    return of(data, mode, "directory")[what] / of(data, mode, "inode")[what]


def result(data: Data) -> float:
    """Of the time, with the mode of the largest published gain."""
    return ratio(data, "writeback", "seconds")


def bars(axes: object, data: Data, what: str, scale: float = 1) -> None:
    """A pair of bars for each mode."""
    for place, order in enumerate(ORDERS):
        at = [number + 0.38 * (place - 0.5) for number in range(len(MODES))]
        heights = [of(data, mode, order)[what] * scale for mode in MODES]
        axes.bar(at, heights, 0.36, label=ORDERS[order])  # type: ignore[attr-defined]
    axes.set_xticks(range(len(MODES)), MODES)  # type: ignore[attr-defined]
    axes.set_axisbelow(True)  # type: ignore[attr-defined]


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """Time by mode and order; blocks of inodes written."""
    times, (upper, lower) = pictures(2, height=2.9)
    bars(upper, data, "seconds")
    label(upper, ("mode of the journal", "日志模式"), ("seconds", "秒"))
    legend(upper)
    ours = [ratio(data, mode, "seconds") for mode in MODES]
    theirs = [PUBLISHED[mode]["directory"] / PUBLISHED[mode]["inode"] for mode in MODES]
    lower.plot(range(len(MODES)), ours, "o", label="here")
    mark(lower, range(len(MODES)), theirs, is_computed=True)
    lower.set_xticks(range(len(MODES)), MODES)
    lower.set(xlim=(-0.5, len(MODES) - 0.5), ylim=(0, None))
    label(lower, ("mode of the journal", "日志模式"), ("times as long", "耗时倍数"))
    mark_prediction(lower, predicted)
    legend(lower)
    counts, axes = pictures(height=3)
    row = {order: of(data, "writeback", order) for order in ORDERS}
    for place, (order, said) in enumerate(ORDERS.items()):
        heights = [row[order][what] / row[order]["files"] for what in ("read", "log", "written")]
        axes.bar([at + 0.38 * (place - 0.5) for at in range(3)], heights, 0.36, label=said)
    axes.axhline(INODE / BLOCK, color="k", linestyle=":", linewidth=1,
                 label="each block of inodes once")  # fmt: skip
    axes.set_xticks(range(3), ["inode blocks\nread", "blocks written\nto the log",
                               "inode blocks\nwritten"])  # fmt: skip
    axes.set(yscale="log")
    ticks(axes, y=(0.05, 0.1, 0.2, 0.5, 1))
    axes.set_axisbelow(True)
    axes.set_ylabel("blocks for each file\n每个文件的块数")
    legend(axes)
    files = data["rows"][0]["files"]
    return [(times, f"{files:,} empty files, on the model of the 5400 rpm disk"),
            (counts, "Counted by QEMU, data=writeback")]  # fmt: skip


def tables(data: Data) -> Sequence[Table]:
    """Every case, and what was published."""
    rows = [(f"{r['mode']}, {r['order']}", r["seconds"], 1000 * r["seconds"] / r["files"],
             r["read"], r["log"], r["written"], r["flushes"]) for r in data["rows"]]  # fmt: skip
    published = [(mode, times["directory"], times["inode"], times["directory"] / times["inode"],
                  ratio(data, mode, "seconds")) for mode, times in PUBLISHED.items()]  # fmt: skip
    return [
        (f"{data['rows'][0]['files']:,} empty files: blocks of inodes, and of the log",
         ["mode, order of", "s", "ms/file", "inodes read", "log written", "inodes written",
          "flushes"], rows),
        (f"Published: {PUBLISHED_FILES:,} files", ["", "directory, s", "inode, s", "ratio",
         "ratio here"], published),
    ]  # fmt: skip


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    listed, sorted_ = (of(data, "writeback", order) for order in ORDERS)
    each = ratio(data, "writeback", "written")
    return (
        f"In the directory's order, which is that of hashes, {listed['files']:,} unlinks write"
        f" {listed['written']:,} blocks of inodes, and in the order of inodes"
        f" {sorted_['written']:,} ({each:.1f} times): {BLOCK // INODE} inodes are in a block,"
        " and only neighbours share its write.",
        f"That takes {result(data):.1f} times as long (computed from 2007: 15.7): between blocks"
        " that are"
        " written the table has gaps, and this disk, which has no cache for writes, turns while it"
        " waits for each.",
        "The three modes cost nearly the same here, because empty files have no contents to treat"
        " in three ways; computed from 2007 are 1.58 and 1.38 with ordered and journal, so the"
        " kernel of"
        " that measurement waited for something else in them.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    rows, files = data["rows"], data["rows"][0]["files"]
    least = files * INODE // BLOCK
    times = [of(data, mode, "directory")["seconds"] for mode in MODES]
    return {
        "from a cold start each block of inodes is read once, in both orders": all(
            least <= row["read"] <= 1.1 * least + 10 for row in rows
        ),
        "in order of inodes each block of them is written once or twice": all(
            least <= of(data, mode, "inode")["written"] <= 2 * least + 10 for mode in MODES
        ),
        "in the directory's order each is written at least twice as often": all(
            ratio(data, mode, "written") > 2 for mode in MODES
        ),
        "and the log gets over twice as much": all(ratio(data, mode, "log") > 2 for mode in MODES),
        "it takes over 1.5 times as long, in each mode": all(
            ratio(data, mode, "seconds") > 1.5 for mode in MODES
        ),
        "the modes differ by less than a fifth": max(times) < 1.2 * min(times),
    }


ABOUT = About(
    number=21,
    title="In which order files are removed",
    chinese="按什么顺序删除文件",
    question="rm removes the files of a directory in the order in which the directory lists them."
    " What does it cost that this is not the order of their inodes?",
    expected="Published for 500,000 empty files: 9 min 49.9 s, and 37.5 s in the order of inodes,"
    " with data=writeback. Computed from the table: 15.7 times; 1.58 times with ordered, 1.38"
    " times with journal.",
    ask=Question("ratio", "A block has 16 inodes. How many times as long does it take to remove"
                 " 20,000 files in the order of the directory as in that of their inodes?",
                 "times"),
    method="manyfiles makes 20,000 empty files with random names on ext4 in the guest; after a"
    " cold start it removes them, and the file system is unmounted. QEMU counts; dumpe2fs says"
    " which blocks are inodes. The journal has 4 MiB for 20,000 files, as 100 MiB for 500,000."
    " Time is that of the requests on the 5400 rpm disk, one after another.",
    changes="A journal that holds all blocks of inodes writes each of them once, whatever the"
    " order. So do reserved inodes: an allocator that hands them out in the order of hashes. A"
    " tool that sorts names by inode, as today's rm does above 10,000, needs memory for all of"
    " them. On an SSD only the count of writes remains. A disk that must seek from block to"
    " block, because others use it, makes the difference larger.",
)  # fmt: skip

"""X31: the sizes of many small files are asked for, in the order of names and of inodes."""

from __future__ import annotations

import random
import subprocess
from collections import OrderedDict
from collections.abc import Sequence
from math import ceil
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from labs.storage.disk_model import Request, drive, replay
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.experiments.guest import Phase, run_guest
from labs.storage.experiments.x21_unlink import BLOCK, INODE, SECTORS, blocks_in, new_image
from labs.storage.experiments.x21_unlink import tables_of as inode_tables
from labs.storage.linux_program import COMPILER
from labs.storage.pages import label, legend, mark_prediction, pictures, ticks
from labs.tools.course.measurement import Question
from labs.tools.guest.initramfs import Entry, regular
from labs.tools.machine.qemu_command import Drive
from labs.tools.machine.work_folder import work_folder

FILES, SMALL_FILES = (2000, 10_000), (2000,)
MODEL_FILES = (2000, 10_000, 100_000, 1_000_000)
SMALL_MODEL_FILES = (2000, 10_000, 100_000)
ORDERS = ("name", "inode")
MEMORY = 96  # MiB of the guest: more than all metadata
CROWDED_FILES, SMALL_CROWDED_FILES = 10_000, 6000
PERCENT, SHARE, CROWDED = 12, 1, 900 << 10  # of the memory for blocks; 1 % is some 900 KiB
LARGE, LITTLE = 1 << 30, 16 << 20  # bytes of the model's cache
PER_BLOCK, NAMES = BLOCK // INODE, 140  # inodes of a block; names of one, as counted
GROUP = 8192  # inodes of a group; 16 tables are one after another
TIMED = 20_000  # requests of the model that are replayed, the last ones
STEP = 16 * GROUP // PER_BLOCK  # blocks of inodes in a row
SPACE = 16 * 32_768  # blocks from one such row to the next
DIRECTORY = 9000  # the block where the model's directory begins, beyond the tables
SECONDS = ("cold", "warm")


def statfiles(folder: Path) -> Entry:
    """The program for the guest."""
    program = folder / "statfiles"
    source = Path(__file__).with_name("statfiles.c")
    subprocess.run([*COMPILER, str(source), "-o", str(program)], check=True)
    return regular("bin/statfiles", program.read_bytes())


def script_of(files: int) -> str:
    """New files, and then both orders, each from a cold cache."""
    mount = "mount -t ext4 /dev/hdb /a"
    parts = [f"{mount} && mkdir /a/d && manyfiles create /a/d {files}"]
    for number, order in enumerate(ORDERS):
        parts.append(f"umount /a && drop && {mount} && statfiles /a/d {order} {4 * number + 1}")
    return " && ".join(parts)


def row_of(phase: Phase, files: int, name: str, tables: Sequence[tuple[int, int]]) -> Data:
    """The figures of a round."""
    asked = phase.of("hdb")
    return {"case": name, "files": files, "requests": len(asked) / files,
            "inodes": blocks_in(asked, tables, "r") / files,
            "ms": 1000 * phase.seconds("hdb", drive("hdd5400")) / files}  # fmt: skip


def in_guest(where: Where, files: int, percent: int = PERCENT) -> list[Data]:
    """Each order, cold and then warm; with this part of the memory for blocks."""
    with work_folder("images", where.build.parent) as folder:
        image = new_image(folder / "image")
        run = run_guest(
            where.build, script_of(files), [Drive(image, 1)], [statfiles(folder)], memory=MEMORY,
            settings=(("cache", str(percent)),), seconds=500,
        )  # fmt: skip
        tables = inode_tables(image)
    return [
        row_of(run.phases[4 * number + 2 + later], files, f"{order}, {how}", tables)
        for number, order in enumerate(ORDERS) for later, how in enumerate(SECONDS)
    ]  # fmt: skip


class Cache:
    """Blocks in memory; the one that was used longest ago goes first."""

    def __init__(self, blocks: int) -> None:
        self.blocks, self.held = blocks, OrderedDict[int, None]()

    def misses(self, block: int) -> bool:
        """Whether it must be read; then it is there."""
        missing = block not in self.held
        if missing and len(self.held) >= self.blocks:
            self.held.popitem(last=False)
        self.held[block] = None
        if not missing:
            self.held.move_to_end(block)
        return missing


def block_of(inode: int) -> int:
    """Where an inode is, in rows of 16 tables."""
    row, place = divmod(inode // PER_BLOCK, STEP)
    return row * SPACE + 100 + place


def model(files: int, order: str, memory: int) -> list[Data]:
    """The same on paper: a directory of blocks of names in the order of hashes, read once for the
    list; then for each file its block of names, and its inode's block."""
    generator, cache = random.Random(31), Cache(memory // BLOCK)
    hashes = generator.sample(range(files), files)
    leaves = [DIRECTORY + place * ceil(files / NAMES) // files for place in hashes]
    order_of = range(files) if order == "inode" else generator.sample(range(files), files)
    for block in sorted(set(leaves)):
        cache.misses(block)
    rows, disk = [], drive("hdd5400")
    for how in SECONDS:
        asked = [
            Request("read", block * SECTORS, SECTORS)
            for number in order_of for block in (leaves[number], block_of(number))
            if cache.misses(block)
        ]  # fmt: skip
        timed = asked[-TIMED:]
        each = replay(timed, disk).total_ms / max(1, len(timed))
        rows.append({"case": f"{order}, {how}", "files": files, "requests": len(asked) / files,
                     "ms": each * len(asked) / files})  # fmt: skip
    return rows


def measure(where: Where) -> Data:
    """The guest with few files; the model with few and with many, with much and little memory."""
    rows = [row for files in (SMALL_FILES if where.small else FILES)
            for row in in_guest(where, files)]  # fmt: skip
    files = SMALL_CROWDED_FILES if where.small else CROWDED_FILES
    crowded = {
        "crowded": in_guest(where, files, SHARE),
        "crowded_model": [row for order in ORDERS for row in model(files, order, CROWDED)],
    }
    counts = SMALL_MODEL_FILES if where.small else MODEL_FILES
    paper = {
        name: [row for files in counts for order in ORDERS for row in model(files, order, memory)]
        for name, memory in (("large", LARGE), ("little", LITTLE))
    }
    return {"rows": rows} | crowded | paper


def of(data: Data, case: str, files: int, kind: str = "rows") -> Data:
    """A case."""
    return next(r for r in data[kind] if (r["case"], r["files"]) == (case, files))


def result(data: Data) -> float:
    """Of the cold time, the most files of the guest."""
    files = data["rows"][-1]["files"]
    return of(data, "name, cold", files)["ms"] / of(data, "inode, cold", files)["ms"]


def curve(data: Data, kind: str, case: str) -> list[Data]:
    """The points of a case, by the number of files."""
    return [row for row in data[kind] if row["case"] == case]


def draw(axes: Axes, data: Data, what: str) -> None:
    """Lines of the model with much and little memory, and the guest's points."""
    for number, order in enumerate(ORDERS):
        case = f"{order}, cold"
        for kind, style, said in (("large", "-", "1 GiB"), ("little", "--", "16 MiB")):
            rows = curve(data, kind, case)
            axes.plot([r["files"] for r in rows], [r[what] for r in rows],
                      f"C{number}{style}", linewidth=(3, 1.2)[number],
                      label=f"{order}, model, {said}")  # fmt: skip
        rows = curve(data, "rows", case)
        axes.plot([r["files"] for r in rows], [r[what] for r in rows],
                  f"C{number}" + "os"[number], fillstyle=("full", "none")[number], markersize=6,
                  label=f"{order}, guest")  # fmt: skip
    axes.set(xscale="log", yscale="log")


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """Requests and time of a stat, against the number of files."""
    figure, axes = pictures()
    draw(axes, data, "requests")
    axes.axhline(INODE / BLOCK, color="k", linestyle=":", linewidth=1,
                 label="each block of inodes once")  # fmt: skip
    ticks(axes, y=(0.05, 0.1, 0.2, 0.5, 1, 2))
    label(
        axes, ("files in the directory", "目录中的文件数"), ("requests a stat", "每次 stat 的请求")
    )
    legend(axes)
    time, axes = pictures()
    draw(axes, data, "ms")
    if predicted is not None:
        mark_prediction(axes, predicted * curve(data, "rows", "inode, cold")[-1]["ms"])
    label(axes, ("files in the directory", "目录中的文件数"), ("ms a stat", "每次 stat 的毫秒"))
    legend(axes)
    return [(figure, "From a cold cache. In the guest both orders make the same number of "
             "requests."),
            (time, "The same requests, on the model of the 5400 rpm disk")]  # fmt: skip


def tables(data: Data) -> Sequence[Table]:
    """Every point."""
    guest = [(f"{r['case']}, {r['files']:,}", r["requests"], r["inodes"], r["ms"])
             for r in data["rows"]]  # fmt: skip
    paper = [(f"{large['case']}, {large['files']:,}", large["requests"], large["ms"],
              little["requests"], little["ms"])
             for large, little in zip(data["large"], data["little"], strict=True)]  # fmt: skip
    crowded = [(f"{r['case']}, {r['files']:,}", r["requests"], m["requests"], r["ms"], m["ms"])
               for r, m in zip(data["crowded"], data["crowded_model"], strict=True)
               if r["case"].endswith("cold")]  # fmt: skip
    return [
        (f"Counted, in a guest with {MEMORY} MiB", ["order, files", "requests/stat",
         "of inodes", "ms/stat"], guest),
        (f"A guest with {SHARE} % of its memory for blocks, and the model with 900 KiB: cold",
         ["order, files", "requests/stat", "model", "ms/stat", "model"], crowded),
        ("The model, with 1 GiB and with 16 MiB for blocks", ["order, files", "1 GiB: requests",
         "ms", "16 MiB: requests", "ms"], paper),
    ]  # fmt: skip


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    files, most = data["rows"][-1]["files"], data["large"][-1]["files"]
    name, inode = of(data, "name, cold", files), of(data, "inode, cold", files)
    warm = of(data, "name, warm", files)
    crowded, sorted_ = (of(data, f"{order}, cold", most, "little") for order in ORDERS)
    tight = data["crowded"][0]
    wide = of(data, "name, cold", most, "large")
    return (
        f"From a cold cache both orders read each block of inodes once: for {files:,} files"
        f" {name['requests']:.4f} requests a stat by name and {inode['requests']:.4f} by inode;"
        f" warm it is {warm['requests']:g}.",
        f"By name a stat takes {result(data):.0f} times as long on this disk"
        f" ({name['ms']:.3f} and {inode['ms']:.4f} ms): as many requests, in another"
        " order.",
        f"Where the blocks of inodes do not fit, the requests differ, too: for {most:,} files and"
        f" 16 MiB the model has {crowded['requests']:.2f} a stat by name and"
        f" {sorted_['requests']:.2f} by inode, because blocks of names do not fit either, with"
        f" 1 GiB {wide['requests']:.3f}; a guest with 1 % of its memory for blocks"
        f" made {tight['requests']:.2f} by name for {tight['files']:,}.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    guest = [r for r in data["rows"] if r["case"].endswith("cold")]
    pairs = [(r, of(data, r["case"], r["files"], "large")) for r in guest
             if any(m["files"] == r["files"] for m in data["large"])]  # fmt: skip
    most = data["large"][-1]["files"]
    crowded = of(data, "name, cold", most, "little")["requests"]
    return {
        "cold: each block of inodes is read once, in both orders": all(
            abs(row["inodes"] * PER_BLOCK - 1) < 0.05 for row in guest
        ),
        "warm: no request": all(
            row["requests"] == 0 for row in data["rows"] if row["case"].endswith("warm")
        ),
        "by inode it is over ten times as fast": all(
            of(data, "name, cold", row["files"])["ms"] > 10 * row["ms"]
            for row in guest if row["case"].startswith("inode")
        ),
        "the model's requests are the guest's, within 5 percent": len(pairs) > 0 and all(
            abs(paper["requests"] / row["requests"] - 1) < 0.05 for row, paper in pairs
        ),
        "and its time, within a quarter": all(
            abs(paper["ms"] / row["ms"] - 1) < 0.25 for row, paper in pairs
        ),
        "with 1 % of the memory for blocks, the model's cold requests are the guest's, within 10"
        " percent": all(
            abs(paper["requests"] / row["requests"] - 1) < 0.1
            for row, paper in zip(data["crowded"], data["crowded_model"], strict=True)
            if row["case"].endswith("cold")
        ),
        "with little memory the order counts in requests, too": crowded
        > 4 * of(data, "name, cold", most, "large")["requests"],
    }  # fmt: skip


ABOUT = About(
    number=31,
    title="stat of many small files",
    chinese="对大量小文件做 stat",
    question="ls -l, a backup, and every tool that compares dates ask for each file's inode. A"
    " directory may have a million files. How many requests does a stat make, and how long does it"
    " take, in the order of names and in that of inodes?",
    expected="No figure was published for this: the notes of 2007 are about removal (X21). A block"
    " has 16 inodes, so by inode 15 of 16 find theirs in memory. By name they do so only while"
    " all blocks of inodes fit into memory.",
    ask=Question("ratio", "A directory has 10,000 files, and the cache is cold. How many times as"
                 " long does it take to stat them by name as by inode?", "times"),
    method="manyfiles makes up to 10,000 empty files with random names on ext4 in the guest."
    " statfiles lists the directory, sorts the names, and calls lstat for each, twice; the caches"
    " are dropped before. QEMU counts; the model of the 5400 rpm disk gives the time. The model on"
    " paper has the directory's blocks, the tables of inodes in rows of 16, and a cache that gives"
    " up what was used longest ago; it goes on to 1,000,000 files. A guest with 1 % of its memory"
    " for blocks, some 900 KiB, is compared with it, too.",
    changes="Linux reads the neighbours of a block of inodes with it (inode_readahead_blks, 32"
    " blocks by default): by name fewer requests, and each longer. A directory whose files are old"
    " and were made at many times has inodes in many groups, and by inode there are gaps. On an"
    " SSD only requests remain, so with enough memory the order is of no account. A memory that is"
    " full of inodes needs no blocks: the model's cache has only blocks.",
)  # fmt: skip

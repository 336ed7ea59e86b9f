"""X14: where mkfs's blocks go, and which options bring them back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from matplotlib.figure import Figure

from labs.storage import fsx
from labs.storage.experiments.account import Account, account_of, rows
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.pages import both, legend, mark_prediction, pictures
from labs.tools.course.measurement import Question
from labs.tools.machine.work_folder import work_folder

KIB = 78_654_240  # of the published partition
FEATURES = "has_journal,ext_attr,{}dir_index,filetype,sparse_super,large_file"
ALL_FEATURES = FEATURES.format("resize_inode,")
FEW_FEATURES = FEATURES.format("")
STEPS = (
    ("as published", "-N 4923392 -J size=128", ALL_FEATURES),
    ("-m 0", "-m 0 -N 4923392 -J size=128", ALL_FEATURES),
    ("^resize_inode", "-m 0 -N 4923392 -J size=128", FEW_FEATURES),
    ("-N 16", "-m 0 -N 16 -J size=128", FEW_FEATURES),
    ("-J size=4", "-m 0 -N 16 -J size=4", FEW_FEATURES),
)
THEN = {"statfs_overhead": 308_992, "used": 46_054, "available": 18_325_336,
        "free": 19_308_514, "reserved": 983_178}  # fmt: skip
"""In blocks: dumpe2fs printed the last two; the others are computed from df's KiB."""
TUNED_FREE, WON = 19_660_649, 1_335_313


def made(options: str, features: str) -> tuple[Account, int]:
    """The account of a new file system of the published size, and dumpe2fs's free blocks."""
    with work_folder("images") as folder:
        image = folder / "image"
        with image.open("wb") as file:
            file.truncate(KIB * 1024)
        words = ["-q", "-F", "-t", "ext3", "-b", "4096", "-I", "256", "-O", f"none,{features}"]
        fsx.tool("mke2fs", *words, "-E", "lazy_itable_init=1", *options.split(), str(image))
        said = fsx.tool("dumpe2fs", "-h", str(image))
        found = re.search(r"^Free blocks: +(\d+)$", said, re.MULTILINE)
        return account_of(image), int(found[1]) if found else -1


def measure(where: Where) -> Data:
    """The account after each option."""
    data: Data = {"steps": []}
    for name, options, features in (STEPS[0], STEPS[-1]) if where.small else STEPS:
        account, dumped = made(options, features)
        data["steps"].append({
            "options": name, "free": account.free, "dumpe2fs": dumped, "used": account.used,
            "statfs_overhead": account.statfs_overhead, "reserved": account.reserved,
            "available": account.available, "missing": account.missing, "lines": rows(account),
        })  # fmt: skip
    return data


def result(data: Data) -> float:
    """GiB that come back."""
    steps = data["steps"]
    return (steps[-1]["available"] - steps[0]["available"]) * 4096 / 2**30


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """A waterfall from the available blocks of the first to those of the last."""
    figure, axes = pictures()
    gib = [step["available"] * 4096 / 2**30 for step in data["steps"]]
    won = [0.0, *(after - before for before, after in pairwise(gib))]
    names = [step["options"] for step in data["steps"]][1:]
    starts = [value - gib[0] for value in gib[:-1]]
    axes.bar([*names, "all"], [*won[1:], gib[-1] - gib[0]], bottom=[*starts, 0],
             color=["C0"] * len(names) + ["C2"])  # fmt: skip
    for place, value in enumerate([*won[1:], gib[-1] - gib[0]]):
        height = (starts[place] if place < len(starts) else 0) + value
        axes.annotate(f"{value:.2f}", (place, height), ha="center", va="bottom", fontsize=9)
    axes.set(ylim=(0, 6))
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", labelsize=8)
    axes.set_xlabel(both("option of mkfs, one after the other", "mkfs 选项 (依次加上)"))
    axes.set_ylabel(both("space won, GiB", "多得的空间, GiB"))
    if predicted is not None:
        mark_prediction(axes, predicted)
        legend(axes)
    return [(figure, "What each option gives back of 75 GiB")]


def tables(data: Data) -> Sequence[Table]:
    """The account as published, and each step."""
    first = data["steps"][0]
    steps = [(s["options"], s["free"], s["reserved"], s["available"], s["missing"])
             for s in data["steps"]]  # fmt: skip
    return [
        ("The account of the published file system", ["", "blocks of 4 KiB"], first["lines"]),
        ("Next to the dump of 2010", ["", "here", "in 2010"],
         [(key, first[key], f"{value:,} {'◆' if key in ('free', 'reserved') else '◇'}")
          for key, value in THEN.items()]),
        ("Option by option", ["", "free", "reserved", "available", "unexplained"], steps),
    ]  # fmt: skip


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    return (
        "Every block has a line: inode tables 307,712, bitmaps 1,202, superblocks and descriptors "
        "78, journal 32,801, reserved descriptors 13,248, two directories 5; nothing is left over.",
        f"The options bring back {result(data):.2f} GiB, and nearly three quarters of it is the "
        "reserve for root, which is free space that only root may use.",
        "The text of 2010 has two slips: 4,301,144 KB 'disappeared' are 3,932,712, and -I 16, the "
        "size of an inode, should be -N 16, their number.",
    )


def checks(data: Data) -> dict[str, bool]:
    """Figures of the dump of 2010, exactly."""
    first, last = data["steps"][0], data["steps"][-1]
    return {
        "the figures of 2010, to the block": all(first[k] == v for k, v in THEN.items()),
        f"tuned, {TUNED_FREE:,} blocks are free": last["free"] == TUNED_FREE,
        f"{WON:,} blocks come back": last["available"] - first["available"] == WON,
        "no block is unexplained": all(step["missing"] == 0 for step in data["steps"]),
        "dumpe2fs says the same": all(step["dumpe2fs"] == step["free"] for step in data["steps"]),
    }


ABOUT = About(
    number=14,
    title="Where do mkfs's blocks go?",
    chinese="mkfs 的块都到哪里去了?",
    question="A new ext3 on 75 GiB offers 69.9 GiB. Which structures hold the rest, and which"
    " options of mkfs give it back?",
    expected="Published in 2010: 19,308,514 blocks free, 983,178 of them reserved; the options"
    " win 4 GB+. Computed: they give back 1,335,313 blocks, 5.09 GiB.",
    ask=Question("won", "How much space do -m 0, ^resize_inode, -N 16 and -J size=4 give back, of"
                 " 75 GiB?", "GiB"),
    method="Debian's mke2fs makes the file system on a sparse file of 78,654,240 KiB, with each"
    " option added. Our own reader adds up the superblock's numbers and the blocks of every inode"
    " (account.py, for any image); dumpe2fs is the second witness.",
    changes="Larger inodes or more of them, a larger journal, and 64-byte descriptors take more;"
    " flex_bg moves tables together and takes nothing. A large disk hides it: all but the journal"
    " are a constant share.",
    guest=False,
)  # fmt: skip

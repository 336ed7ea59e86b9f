"""X2: why buffered reads do not beat direct ones: hits, by the size of the file over the memory."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Sequence
from statistics import fmean

from matplotlib.figure import Figure

from labs.storage import report
from labs.storage.disk_model import Request, drive, replay
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.pages import label, legend, mark_prediction, pictures, ticks
from labs.storage.published import mark
from labs.storage.workload import ExtentLayout
from labs.tools.course.measurement import Question

MEMORY_BYTES = 16_000_000_000
PAGES = 1000  # of the memory in the simulation; a page here stands for many
RATIOS = (0.1, 0.5, 1, 1.25, 2, 5, 10, 50, 100)
READS, SMALL_READS = 20_000, 4000
SEEDS = (2, 3, 4)
HIT_MS = 0.001  # 1,796 instructions for a read from the page cache: labs/bench/STORAGE.md
PUBLISHED = {way: report.PUBLISHED[f"ext4 {way}"].ms_per_read for way in ("buffered", "direct")}


def measure(where: Where) -> Data:
    """Each ratio."""
    reads = SMALL_READS if where.small else READS
    ratios = (0.1, 1, 2, 10, 100) if where.small else RATIOS
    seeds = SEEDS[: 2 if where.small else None]
    return {"rows": [means([one(ratio, reads, seed) for seed in seeds]) for ratio in ratios]}


def means(runs: Sequence[Data]) -> Data:
    """Of the seeds' rows; and the least and the most hits."""
    hits = [row["hits"] for row in runs]
    return {
        **{key: fmean(row[key] for row in runs) for key in runs[0]},
        "ratio": runs[0]["ratio"],
        "least": min(hits),
        "most": max(hits),
    }


def one(ratio: float, reads: int, seed: int) -> Data:
    """A file of `ratio` times the memory: the cache is filled, then random reads are counted."""
    generator, pages, cache = random.Random(seed), round(PAGES * ratio), OrderedDict[int, None]()
    for page in generator.sample(range(pages), min(pages, PAGES)):
        cache[page] = None
    layout, step = ExtentLayout(), MEMORY_BYTES / PAGES / 4096
    direct: list[Request] = []
    buffered: list[Request] = []
    for _ in range(reads):
        page = generator.randrange(pages)
        lba = layout.place(int(page * step)) * 8
        direct.append(Request("read", lba, 1))
        if page not in cache:
            buffered.append(Request("read", lba, 8))
        cache[page] = None
        cache.move_to_end(page)
        if len(cache) > PAGES:
            cache.popitem(last=False)
    hits = 1 - len(buffered) / reads
    return {
        "ratio": ratio, "hits": 100 * hits, "formula": 100 * min(1, 1 / ratio),
        "direct": replay(direct, drive("hdd5400")).total_ms / reads,
        "buffered": replay(buffered, drive("hdd5400")).total_ms / reads + hits * HIT_MS,
    }  # fmt: skip


def of(data: Data, ratio: float) -> Data:
    """A row."""
    return next(row for row in data["rows"] if row["ratio"] == ratio)


def result(data: Data) -> float:
    """Hits with a file of twice the memory, in percent."""
    return of(data, 2)["hits"]


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """Hit rate, and time."""
    ratios = [row["ratio"] for row in data["rows"]]
    figure, axes = pictures(height=2.9)
    dense = [10 ** (each / 20) for each in range(-20, 41)]
    axes.plot(dense, [100 * min(1, 1 / each) for each in dense], "k:", label="memory / file")
    axes.plot(ratios, [row["hits"] for row in data["rows"]], "o", markersize=4, label="simulated")
    axes.set(xscale="log", ylim=(0, 105))
    label(axes, ("file / memory", "文件 / 内存"), ("reads that hit, %", "读命中率, %"))
    mark_prediction(axes, predicted)
    times, lower = pictures()
    for way in ("buffered", "direct"):
        lower.plot(ratios, [row[way] for row in data["rows"]], "o-", markersize=4, label=way)
    mark(lower, [125, 125], list(PUBLISHED.values()), is_computed=True)
    lower.set(xscale="log", ylim=(0, None))
    label(lower, ("file / memory", "文件 / 内存"), ("ms for a read", "每次读, 毫秒"))
    for each in (axes, lower):
        ticks(each, (0.1, 1, 10, 100))
        legend(each)
    return [(figure, "Random reads, when the cache is full"),
            (times, "16 GB of memory, on the model of the 5400 rpm disk")]  # fmt: skip


def tables(data: Data) -> Sequence[Table]:
    """Every point."""
    rows = [(f"file / memory = {r['ratio']:g}", r["hits"],
             f"{r['least']:.2f} to {r['most']:.2f}", r["formula"], r["buffered"],
             r["direct"]) for r in data["rows"]]  # fmt: skip
    rows.append(("computed: 2 TB, 16 GB, cold", "-", "-", "-", *PUBLISHED.values()))
    return [("By the size of the file: means, and the least and the most of three seeds",
             ["", "hits, %", "all seeds", "formula", "buffered, ms", "direct, ms"],
             rows)]  # fmt: skip


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    small, large = of(data, 0.1), of(data, 100)
    return (
        f"A file of a tenth of the memory is read in {1000 * small['buffered']:.0f} us instead of "
        f"{small['direct']:.1f} ms; one of 100 times the memory in {large['buffered']:.2f} instead "
        f"of {large['direct']:.2f} ms.",
        f"Of random reads memory / file hit: {large['hits']:.1f} % for a file of 100 times the "
        "memory. From a cold start fewer do: of the published 100,000 reads, computed, one in"
        " 10,000.",
        "So buffered and direct are the same disk's time: the 7 sectors that a page moves on top of"
        " the one asked for cost some 0.03 ms.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    return {
        "hits are memory / file, within 3 percent of all reads": all(
            abs(row["hits"] - row["formula"]) < 3 for row in data["rows"]
        ),
        "a file that fits is read over 100 times as fast": of(data, 0.1)["buffered"]
        < of(data, 0.1)["direct"] / 100,
        "at a ratio of 100 both are equal within 3 percent": abs(
            of(data, 100)["buffered"] / of(data, 100)["direct"] - 1
        ) < 0.03,
        "the pair of 2010 is equal within 3 percent": abs(
            PUBLISHED["buffered"] / PUBLISHED["direct"] - 1
        ) < 0.03,
    }  # fmt: skip


ABOUT = About(
    number=2,
    title="Why do buffered reads not beat direct ones?",
    chinese="为什么缓冲读不比直接读快?",
    question="A reader of 2010 found that direct I/O makes a large difference; the table has"
    " none. How much does the page cache help random reads?",
    expected="Computed from 2010: 14.84 ms buffered and 14.66 ms direct, with 2 TB and 16 GB."
    " Buffered reads win as the hit rate grows, so only with files that are not much larger than"
    " the memory.",
    ask=Question("hits", "A file of twice the memory is read at random until the page cache is"
                 " full. Which part of the reads hits?", "percent"),
    method="A page cache with LRU, at a scale, full at the start; random reads with three explicit"
    " seeds. Misses read a page of the file in extents, direct reads one sector, on the model of"
    " the 5400 rpm disk. The file begins at the start of the disk, so small files have short"
    " seeks.",
    changes="Reads with locality hit more often than memory / file. A sequential pass over a file"
    " that is larger than the memory never hits (X9). On an SSD a page costs visibly more than a"
    " sector.",
    guest=False,
)  # fmt: skip

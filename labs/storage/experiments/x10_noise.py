"""X10: sequential writers next to random reads, and what an array's cache makes of them."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable, Sequence
from statistics import fmean

from matplotlib.figure import Figure

from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.pages import curves, label, legend, mark_prediction, pictures, ticks
from labs.tools.course.measurement import Question

CACHE = 4096  # blocks of 4 KiB: 16 MiB, 1:1000 of an array's
HOT, COLD = 2500, 100_000  # blocks that nine of ten reads want, and those that the others want
READS, SMALL_READS = 30_000, 20_000
SEEDS = (10, 11, 12, 13, 14)
WRITER_BLOCKS = 32  # a write of 128 KiB
WRITES_PER_READ = 0.25
HIT_MS, MISS_MS = 0.2, 6.0
WRITERS = (0, 1, 2)


class Lru:
    """Blocks by use; a written one goes in like one that is read."""

    def __init__(self) -> None:
        self.blocks: OrderedDict[int, None] = OrderedDict()

    def read(self, block: int) -> bool:
        """Whether it was there."""
        hit = block in self.blocks
        self.blocks[block] = None
        self.blocks.move_to_end(block)
        if len(self.blocks) > CACHE:
            self.blocks.popitem(last=False)
        return hit

    def write(self, block: int) -> None:
        """A block of a writer."""
        self.read(block)


class LruEnd(Lru):
    """Written blocks go in at the end that is thrown out first."""

    def write(self, block: int) -> None:
        """A block of a writer."""
        self.read(block)
        self.blocks.move_to_end(block, last=False)


class Bypass(Lru):
    """Written blocks do not go in."""

    def write(self, block: int) -> None:
        """A block of a writer."""
        self.blocks.pop(block, None)


class TwoQueues(Lru):
    """2Q: a block counts as hot when it is asked for again after it has left a short queue (Johnson
    and Shasha, VLDB 1994)."""

    def __init__(self) -> None:
        super().__init__()
        self.fresh: OrderedDict[int, None] = OrderedDict()
        self.ghosts: OrderedDict[int, None] = OrderedDict()

    def read(self, block: int) -> bool:
        """Whether it was there."""
        if block in self.blocks:
            self.blocks.move_to_end(block)
            return True
        if block in self.fresh:
            return True
        if self.ghosts.pop(block, 0) is None:
            self.blocks[block] = None
        else:
            self.fresh[block] = None
        self.trim()
        return False

    def trim(self) -> None:
        """A quarter for what is fresh; what leaves it is remembered by name only."""
        while len(self.fresh) > CACHE // 4:
            self.ghosts[self.fresh.popitem(last=False)[0]] = None
        while len(self.blocks) > CACHE - CACHE // 4:
            self.blocks.popitem(last=False)
        while len(self.ghosts) > CACHE // 2:
            self.ghosts.popitem(last=False)


POLICIES: dict[str, Callable[[], Lru]] = {
    "LRU": Lru, "LRU, end insert": LruEnd, "2Q": TwoQueues, "bypass": Bypass,
}  # fmt: skip


def run(
    policy: Callable[[], Lru], writers: int, reads: int, seed: int
) -> tuple[float, float, float]:
    """Hit rate of the second half of the reads, and their median and 99th percentile in ms."""
    cache, generator, times = policy(), random.Random(seed), []
    next_block = [10**9 * (n + 1) for n in range(writers)]
    for number in range(reads):
        for n in range(writers if number > reads // 3 else 0):
            if generator.random() < WRITES_PER_READ:
                for block in range(next_block[n], next_block[n] + WRITER_BLOCKS):
                    cache.write(block)
                next_block[n] += WRITER_BLOCKS
        hot = generator.random() < 0.9
        block = generator.randrange(HOT) if hot else HOT + generator.randrange(COLD)
        hit = cache.read(block)
        if number >= reads // 2:
            times.append(
                HIT_MS if hit else MISS_MS * (1 + 0.15 * writers) * generator.uniform(0.5, 1.5)
            )
    hits = sum(time == HIT_MS for time in times) / len(times)
    times.sort()
    return hits, times[len(times) // 2], times[int(len(times) * 0.99)]


def measure(where: Where) -> Data:
    """Each policy with each number of writers."""
    rows = []
    for name, policy in POLICIES.items():
        for writers in (0, 2) if where.small else WRITERS:
            reads = SMALL_READS if where.small else READS
            runs = [run(policy, writers, reads, seed) for seed in SEEDS[: 2 if where.small else 5]]
            hits, p50, p99 = (fmean(each) for each in zip(*runs, strict=True))
            all_hits = [100 * each for each, _, _ in runs]
            rows.append({"policy": name, "writers": writers, "hits": 100 * hits, "p50": p50,
                         "p99": p99, "least": min(all_hits), "most": max(all_hits)})  # fmt: skip
    return {"rows": rows}


def hits(data: Data, policy: str, writers: int) -> float:
    """A point, in percent."""
    return next(r["hits"] for r in data["rows"] if (r["policy"], r["writers"]) == (policy, writers))


def result(data: Data) -> float:
    """LRU with two writers."""
    return hits(data, "LRU", 2)


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """Hits and median."""
    figure, axes = pictures()
    curves(axes, data["rows"], "writers", "hits", "policy")
    axes.set(ylim=(0, 100))
    ticks(axes, WRITERS)
    label(axes, ("sequential writers", "顺序写的个数"), ("reads that hit, %", "读命中率, %"))
    mark_prediction(axes, predicted)
    legend(axes)
    times, axes = pictures(height=2.8)
    curves(axes, data["rows"], "writers", "p50", "policy")
    axes.set(yscale="log")
    ticks(axes, WRITERS, (0.2, 0.5, 1, 2, 5))
    label(axes, ("sequential writers", "顺序写的个数"), ("median read, ms", "读延迟中位数, 毫秒"))
    legend(axes)
    return [(figure, "A cache of 4,096 blocks; nine of ten reads want 2,500 hot ones."),
            (times, "A hit takes 0.2 ms, a miss some 6 ms.")]  # fmt: skip


def tables(data: Data) -> Sequence[Table]:
    """Every point."""
    rows = [(f"{r['policy']}, {r['writers']}", r["hits"], f"{r['least']:.1f} to {r['most']:.1f}",
             r["p50"], r["p99"]) for r in data["rows"]]  # fmt: skip
    columns = ["policy, writers", "hits, %", "all seeds", "p50, ms", "p99, ms"]
    return [("By policy and writers: means, and the least and the most of five seeds", columns,
             rows)]  # fmt: skip


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    return (
        f"Without writers LRU hits {hits(data, 'LRU', 0):.0f} % of the reads, with two "
        f"{result(data):.0f} %: each write of 128 KiB pushes out 32 blocks that somebody wants, "
        "for blocks that nobody will ask for.",
        f"2Q keeps {hits(data, '2Q', 2):.0f} %, and inserting written blocks at the far end or "
        f"not at all {hits(data, 'bypass', 2):.0f} %: a cache that keeps a block only after a "
        "second use is spared.",
        "The slowest reads hardly tell the policies apart, because they are misses with each of "
        "them: look at the median.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    return {
        "without writers LRU hits three of four, or more": hits(data, "LRU", 0) > 70,
        "two writers take nearly all of LRU's hits": result(data) < 30,
        "2Q keeps more than four times as many hits as LRU": hits(data, "2Q", 2)
        > 4 * hits(data, "LRU", 2),
        "bypass loses nothing": abs(hits(data, "bypass", 2) - hits(data, "bypass", 0)) < 3,
    }


ABOUT = About(
    number=10,
    title="The noise of sequential writes",
    chinese="顺序写的噪声",
    question="A database reads at random from an array with a large cache. Then somebody runs dd"
    " if=/dev/zero next to it. What happens to the reads?",
    expected="No figure was published. Ours: with LRU the hit rate goes towards 0; caches that"
    " resist scans lose little.",
    ask=Question("hits", "Without writers nine of ten reads hit a hot set that fits the cache. What"
                 " is LRU's hit rate with two sequential writers?", "percent"),
    method="A model on the host at 1:1000: 4,096 blocks of cache, random reads with five explicit "
    "seeds,"
    " and writers that write 128 KiB after every fourth read. They begin after a third of the "
    "reads;"
    " hits are counted in the second half.",
    changes="Writers that are slower than the reads by the size of the cache do no harm. A hot set"
    " of half the cache survives longer. Direct I/O does not help: the array does not see it.",
    guest=False,
)  # fmt: skip

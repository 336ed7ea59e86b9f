"""X18: which pages of a mapped file stay in memory, and what a hint would change."""

from __future__ import annotations

import random
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path

from matplotlib.figure import Figure

from labs.bench.counting import Counter
from labs.storage.disk_model import Request, drive, replay
from labs.storage.experiments import margins
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.experiments.guest import ExperimentError, counted_rows, run_guest
from labs.storage.pages import label, legend, mark_prediction, pictures
from labs.storage.published import PUBLISHED_LABEL
from labs.tools.course.measurement import Question
from labs.tools.guest.initramfs import regular
from labs.tools.machine.qemu_command import Drive
from labs.tools.machine.work_folder import work_folder

MEMORY = 16  # MiB
TIMES = 4  # the file is this many times as large as the memory
PAGE = 4096
FILE_PAGES = TIMES * (MEMORY << 20) // PAGE
SKEWS = (0.0, 0.5, 0.8, 1.0, 1.2)
SMALL_SKEWS = (0.5, 1.0)
WARM, READS = 16_000, 12_000
SMALL_WARM, SMALL_READS = 6000, 3000
TOGETHER = 32  # pages that the kernel gives back at a time (mm/reclaim.c)
SEED = 2010
BAIDU = 2.0  # times as many reads with a hint; published, without the workload
INSTRUCTION_US = 0.001
READ, MAPPED, TOUCH = "read", "mmap", "touch"
FIFO, SECOND, LRU = "FIFO", "second chance", "LRU"
BLIND, HINTED = "mmap, blind: FIFO (model)", "mmap and a hint: LRU (model)"
IN_GUEST = {READ: FIFO, MAPPED: SECOND}  # what this kernel does


# ---- the reads ----


def places(skew: float, count: int) -> list[int]:
    """Page numbers: the page of rank k is read with a probability of 1 / k^skew; ranks are spread
    over the file."""
    generator = random.Random(SEED)
    pages = list(range(FILE_PAGES))
    generator.shuffle(pages)
    weights = list(accumulate((rank + 1) ** -skew for rank in range(FILE_PAGES)))
    return generator.choices(pages, cum_weights=weights, k=count)


# ---- models of a cache: hits of the reads after the first `warm` ones ----


def hits(found: Iterable[bool], warm: int) -> float:
    """The part of the reads after the first `warm` ones that was in the cache."""
    counted = list(found)[warm:]
    return sum(counted) / len(counted)


def clock(reads: Sequence[int], pages: int, sees_use: bool) -> Iterator[bool]:
    """The ring of mm/second_chance.c. A kernel that does not see that a page was used gives back
    the oldest: FIFO."""
    ring: OrderedDict[int, bool] = OrderedDict()
    for page in reads:
        yield page in ring
        if page in ring:
            ring[page] = sees_use
            continue
        if len(ring) >= pages:
            give_back(ring)
        ring[page] = sees_use


def give_back(ring: OrderedDict[int, bool]) -> None:
    """Takes TOGETHER pages away, looking at each twice at most."""
    looks, freed = 2 * len(ring), 0
    while looks and freed < TOGETHER:
        page, was_used = ring.popitem(last=False)
        looks -= 1
        if was_used:
            ring[page] = False
        else:
            freed += 1


def least_recent(reads: Sequence[int], pages: int) -> Iterator[bool]:
    """LRU: what a kernel can do that is told of each read."""
    known: OrderedDict[int, None] = OrderedDict()
    for page in reads:
        yield page in known
        if page in known:
            known.move_to_end(page)
            continue
        if len(known) >= pages:
            for _ in range(TOGETHER):
                known.popitem(last=False)
        known[page] = None


MODELS: dict[str, Callable[[Sequence[int], int], Iterator[bool]]] = {
    FIFO: lambda reads, pages: clock(reads, pages, sees_use=False),
    SECOND: lambda reads, pages: clock(reads, pages, sees_use=True),
    LRU: least_recent,
}


# ---- the guest ----


def measure(where: Where) -> Data:
    """Reads the same pages by each way in the guest, and gives the list to the models."""
    skews = SMALL_SKEWS if where.small else SKEWS
    warm, reads = (SMALL_WARM, SMALL_READS) if where.small else (WARM, READS)
    lists = {skew: places(skew, warm + reads) for skew in skews}
    cases = [(skew, way) for skew in skews for way in (READ, MAPPED)]
    cases.append((skews[-1], TOUCH))
    script = " && ".join(
        f"drop && pageread -w {warm} {way} /dev/hdb /list-{skew}" for skew, way in cases
    )
    with work_folder("images", where.build.parent) as folder:
        image = numbered(folder / "image")
        entries = [regular(f"list-{skew}", array("I", each).tobytes())
                   for skew, each in lists.items()]  # fmt: skip
        done = run_guest(where.build, script, [Drive(image, 1)], entries, MEMORY,
                         counter=Counter())  # fmt: skip
    rows = []
    for (skew, way), row in zip(cases, counted_rows(done), strict=True):
        rows.append({
            "skew": skew, "way": way, "hits": (found := 1 - row["requests"] / row["reads"]),
            "margin": margins.of_part(found, row["reads"]),
            "instructions": row["count"].instructions / row["reads"],
            "pages": row["kept"], "single": row["sectors"] == 8 * row["requests"],
        })  # fmt: skip
    pages = max(row["pages"] for row in rows)
    if pages <= TOGETHER:
        raise ExperimentError(f"the guest kept {pages} pages of the drive only")
    models = [{"skew": skew, "policy": policy, "hits": hits(model(each, pages), warm)}
              for skew, each in lists.items() for policy, model in MODELS.items()]  # fmt: skip
    return {
        "rows": rows,
        "models": models,
        "pages": pages,
        "file": FILE_PAGES,
        "miss_us": replay([Request("read", 0, 8)], drive("sata-ssd")).total_ms * 1000,
    }


def numbered(path: Path) -> Path:
    """A drive each of whose pages begins with its number."""
    rest = bytes(PAGE - 4)
    with path.open("wb") as file:
        for page in range(FILE_PAGES):
            file.write(page.to_bytes(4, "little") + rest)
    return path


def of(data: Data, way: str, skew: float) -> Data:
    """A way in the guest."""
    return next(r for r in data["rows"] if (r["way"], r["skew"]) == (way, skew))


def modelled(data: Data, policy: str, skew: float) -> float:
    """The hits of a policy."""
    return next(r["hits"] for r in data["models"] if (r["policy"], r["skew"]) == (policy, skew))


def skews_of(data: Data) -> list[float]:
    """In their order."""
    return sorted({row["skew"] for row in data["rows"]})


def best(data: Data) -> tuple[float, float]:
    """The skew at which LRU saves the most misses of FIFO, and how many times as many FIFO has."""
    ratios = {skew: (1 - modelled(data, FIFO, skew)) / (1 - modelled(data, LRU, skew))
              for skew in skews_of(data)}  # fmt: skip
    skew = max(ratios, key=ratios.__getitem__)
    return skew, ratios[skew]


def us_per_read(data: Data, hit: float, instructions: float) -> float:
    """On the SATA SSD, whose misses wait one after another."""
    return (1 - hit) * data["miss_us"] + instructions * INSTRUCTION_US


def result(data: Data) -> float:
    """How many more hits mmap has than read with a skew of 1, in points of a hundred."""
    return 100 * (of(data, MAPPED, 1.0)["hits"] - of(data, READ, 1.0)["hits"])


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """Hits by skew; the time of a read."""
    figure, axes = pictures()
    skews = skews_of(data)
    for policy, style in ((FIFO, "C0-"), (SECOND, "C1-"), (LRU, "C2--")):
        axes.plot(skews, [100 * modelled(data, policy, skew) for skew in skews], style,
                  linewidth=1.2, label=f"model: {policy}")  # fmt: skip
    for way, style in ((READ, "C0o"), (MAPPED, "C1s")):
        axes.plot(skews, [100 * of(data, way, skew)["hits"] for skew in skews], style,
                  markersize=5, label=f"guest: {way}")  # fmt: skip
    if predicted is not None and 1.0 in skews:
        mark_prediction(axes, 100 * of(data, READ, 1.0)["hits"] + predicted)
    label(axes, ("skew of the reads", "访问的偏斜度"), ("found in memory, %", "命中率, %"))
    axes.set(ylim=(0, 100))
    legend(axes)
    ratio, axes = pictures()
    least = {skew: 1 - modelled(data, LRU, skew) for skew in skews}
    for policy, style in ((FIFO, "C0-"), (SECOND, "C1-")):
        axes.plot(skews, [(1 - modelled(data, policy, each)) / least[each] for each in skews],
                  style, linewidth=1.2, label=f"model: {policy}")  # fmt: skip
    for way, style in ((READ, "C0o"), (MAPPED, "C1s")):
        axes.plot(skews, [(1 - of(data, way, each)["hits"]) / least[each] for each in skews],
                  style, markersize=5, label=f"guest: {way}")  # fmt: skip
    axes.axhline(BAIDU, color="grey", linewidth=1, linestyle=":",
                 label=f"{PUBLISHED_LABEL}: twice the reads a second")  # fmt: skip
    label(axes, ("skew of the reads", "访问的偏斜度"), ("misses, LRU's = 1", "未命中 (LRU = 1)"))
    axes.set(ylim=(0.9, 2.1))
    legend(axes)
    return [(figure, f"A drive {TIMES} times as large as the memory, read page by page"),
            (ratio, "How many times as many misses as with LRU")]  # fmt: skip


def ways(data: Data, skew: float) -> list[tuple[str, float, float]]:
    """Each way with its hits, and its time. A hint costs a system call, measured with the greatest
    skew."""
    read, mapped = of(data, READ, skew), of(data, MAPPED, skew)
    told = modelled(data, LRU, skew)
    hint = of(data, TOUCH, skews_of(data)[-1])["instructions"]
    hint -= of(data, MAPPED, skews_of(data)[-1])["instructions"]
    found = [(BLIND, modelled(data, FIFO, skew), mapped["instructions"]),
             ("mmap, here: second chance", mapped["hits"], mapped["instructions"]),
             (HINTED, told, mapped["instructions"] + hint),
             ("read(), here: FIFO", read["hits"], read["instructions"]),
             ("read() with LRU (model)", told, read["instructions"])]  # fmt: skip
    return [(name, hit, us_per_read(data, hit, steps)) for name, hit, steps in found]


def tables(data: Data) -> Sequence[Table]:
    """Guest and model, and the ways."""
    rows = [(f"{skew:g}", 100 * of(data, READ, skew)["hits"], 100 * modelled(data, FIFO, skew),
             100 * of(data, MAPPED, skew)["hits"], 100 * modelled(data, SECOND, skew),
             100 * modelled(data, LRU, skew),
             100 * max(of(data, way, skew)["margin"] for way in IN_GUEST))
            for skew in skews_of(data)]  # fmt: skip
    columns = ["skew", "read, guest", "FIFO, model", "mmap, guest", "second chance, model",
               "LRU, model", "±95 %"]  # fmt: skip
    costs = [(f"{way}, {row['skew']:g}", row["instructions"], "-" if way == READ else row["pages"])
             for row in data["rows"] for way in (row["way"],)]  # fmt: skip
    prices = [(way, 100 * hit, us) for way, hit, us in ways(data, 1.0)]
    return [
        (
            f"Found in memory, %; {data['pages']:,} of {data['file']:,} pages fit. ±95 %: with"
            " other lists of reads; models and guest have the same",
            columns,
            rows,
        ),
        ("Skew 1 on the SATA SSD", ["way", "found, %", "us/read"], prices),
        ("Counted in the guest", ["way, skew", "instructions/read", "mapped pages kept"], costs),
    ]


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    skew, ratio = best(data)
    times = {way: us for way, _, us in ways(data, skew)}
    return (
        f"With a skew of 1 mmap finds {result(data):.1f} of 100 reads more in memory than read(),"
        " because the processor marks the pages that are used, and this kernel's read() marks"
        " none: its pages leave in the order in which they came.",
        "The models, given the same list of reads, are within"
        f" {100 * off(data):.1f} points of the guest, and LRU is at most"
        f" {100 * lead(data):.1f} points better than second chance.",
        f"FIFO misses {ratio:.2f} times as often as LRU at most (skew {skew:g}), so there a hint"
        f" gives {100 * (times[BLIND] / times[HINTED] - 1):.0f} % more reads a second, not 100 % as"
        " published: what is read for the first time is a miss with each of them.",
    )


def off(data: Data) -> float:
    """The largest distance between guest and model."""
    return max(abs(row["hits"] - modelled(data, IN_GUEST[row["way"]], row["skew"]))
               for row in data["rows"] if row["way"] in IN_GUEST)  # fmt: skip


def lead(data: Data) -> float:
    """How much better than second chance LRU is, at most."""
    return max(modelled(data, LRU, skew) - modelled(data, SECOND, skew) for skew in skews_of(data))


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    skewed = [skew for skew in skews_of(data) if 0.7 < skew < 1.1]
    return {
        "guest and model differ by less than 1 point of a hundred": off(data) < 0.01,
        "each miss was a request for one page": all(row["single"] for row in data["rows"]),
        "second chance finds over half a point more than FIFO, in the guest, too": all(
            of(data, MAPPED, skew)["hits"] > of(data, READ, skew)["hits"] + 0.005
            for skew in skewed
        ),
        "LRU is within 5 points of second chance": abs(lead(data)) < 0.05,
        "without skew no policy is better": all(
            abs(modelled(data, FIFO, skew) - modelled(data, LRU, skew)) < 0.02
            for skew in skews_of(data) if skew == 0
        ),
        "a mapped read that is found costs less than a call": of(data, MAPPED, skews_of(data)[-1])[
            "instructions"
        ] < of(data, READ, skews_of(data)[-1])["instructions"],
    }  # fmt: skip


ABOUT = About(
    number=18,
    title="Mapped reads, and a hint for LRU",
    chinese="mmap 读与 LRU 提示",
    question="A program reads through mmap, and the kernel does not see each access. Which pages"
    " does it keep, and is a system call worth while that tells it?",
    expected="Published: Baidu's call that says which mapped pages were used gave 100 % more reads."
    " Ours: FIFO, which is blind, is the worst; second chance is near LRU.",
    ask=Question("points", "Reads with a skew of 1 over a drive of four times the memory: how many"
                 " of 100 does mmap (second chance) find in memory more than read() (FIFO)?",
                 "points"),
    method="pageread reads 64 bytes of a page, by pread or from a map, in the order of a list in"
    " which the page of rank k comes with a probability of 1 / k^skew, without read-ahead; each"
    " page says its number. Misses are the drive's requests. This kernel gives back mapped pages by"
    " second chance, and those of read() in the order in which they came. LRU is not in it: a model"
    " gets the same list, and as many pages as the guest kept. \"touch\" measures what a call for"
    " each read would cost. A miss waits for the SATA SSD; an instruction takes a nanosecond.",
    changes="Reads that come once, such as a scan, push everything out of LRU, too. A kernel that"
    " marks pages in read(), as Linux does, makes the two ways equal. On a 5400 rpm disk a miss is"
    " a hundred times as dear, and the hit rate is all that counts.",
)  # fmt: skip

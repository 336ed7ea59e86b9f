"""X23: a flash drive that hates small writes."""

from __future__ import annotations

import random
from collections.abc import Sequence

from matplotlib.figure import Figure

from labs.storage.disk_model import Request, drive, replay
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.pages import curves, label, legend, mark_prediction, pictures
from labs.storage.published import mark
from labs.tools.course.measurement import Question

SIZES = [512 << power for power in range(14)]  # 512 bytes to 4 MiB
COUNT = 200
RUN_BYTES = 131_072  # what write-back gives a drive at once
DRIVES = ("gkey-flash", "sata-ssd")
ERASE_BLOCK = 65_536


def rate(name: str, requests: list[Request]) -> float:
    """MB/s."""
    moved = sum(request.sectors for request in requests) * 512
    return moved / replay(requests, drive(name)).total_ms / 1000


def writes(size: int, order: str, count: int) -> list[Request]:
    """Requests for `count` writes of a size: one after the other, at random, or as the page cache
    makes them of it: sorted and in long runs."""
    sectors = size // 512
    if order == "cached, then synced":
        step = RUN_BYTES // 512
        return [Request("write", at, step) for at in range(0, max(step, count * sectors), step)]
    places = list(range(count))
    if order == "random":
        random.Random(23).shuffle(places)
    return [Request("write", place * sectors, sectors) for place in places]


def measure(where: Where) -> Data:
    """Both drives, sizes and orders."""
    rows = []
    for name in DRIVES:
        for order in ("sequential", "random", "cached, then synced"):
            for size in SIZES:
                found = rate(name, writes(size, order, COUNT))
                rows.append({"case": f"{name}, {order}", "size": size, "rate": found})
    return {"rows": rows}


def at(data: Data, case: str, size: int) -> float:
    """A point."""
    return next(r["rate"] for r in data["rows"] if (r["case"], r["size"]) == (case, size))


def result(data: Data) -> float:
    """How much faster the cache is, for pages."""
    direct = at(data, "gkey-flash, sequential", 4096)
    return at(data, "gkey-flash, cached, then synced", 4096) / direct


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """Rates by size, and the gain of the cache."""
    figure, axes = pictures(height=4.2)
    curves(axes, data["rows"], "size", "rate", "case")
    axes.axvline(ERASE_BLOCK, color="grey", linestyle=":", linewidth=1)
    mark(axes, [4096, 4096], [0.6, 10.5])
    axes.set(xscale="log", yscale="log")
    axes.set_xticks([512, 4096, 65_536, 1 << 20], ["512 B", "4 KiB", "64 KiB", "1 MiB"])
    label(axes, ("size of a write", "每次写的大小"), ("rate, MB/s", "速率, MB/s"))
    legend(axes)
    gain, axes = pictures(height=2.6)
    ratios = [at(data, "gkey-flash, cached, then synced", size)
              / at(data, "gkey-flash, sequential", size) for size in SIZES]  # fmt: skip
    axes.plot(SIZES, ratios, "o-", markersize=4)
    axes.set(xscale="log", yscale="log")
    axes.set_xticks([512, 4096, 65_536, 1 << 20], ["512 B", "4 KiB", "64 KiB", "1 MiB"])
    label(axes, ("size of a write", "每次写的大小"), ("cached / direct", "缓存 / 直接"))
    if predicted is not None:
        mark_prediction(axes, predicted)
        legend(axes)
    return [(figure, "The dotted line is the erase block of the netbook's flash."),
            (gain, "What the page cache wins on it")]  # fmt: skip


def tables(data: Data) -> Sequence[Table]:
    """Every point."""
    cases = list(dict.fromkeys(row["case"] for row in data["rows"]))
    rows = [(case, *(at(data, case, size) for size in (512, 4096, 65_536, 1 << 20)))
            for case in cases]  # fmt: skip
    return [("MB/s", ["drive, order", "512 B", "4 KiB", "64 KiB", "1 MiB"], rows)]


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    page = at(data, "gkey-flash, sequential", 4096)
    block = at(data, "gkey-flash, sequential", ERASE_BLOCK)
    return (
        f"Direct writes of 4 KiB reach {page:.2f} MB/s and those of a whole erase block "
        f"{block:.1f},"
        " because each smaller one makes the drive rewrite the block.",
        f"Through the page cache the same program is {result(data):.1f} times as fast: write-back "
        "makes whole blocks of its pages.",
        "In order or at random makes no difference to it, as on a disk it would: only the size of "
        "a "
        "write counts.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The published pair, and the step."""
    step = at(data, "gkey-flash, sequential", 65_536) / at(data, "gkey-flash, sequential", 32_768)
    return {
        "direct pages: 600 KB/s": abs(at(data, "gkey-flash, sequential", 4096) - 0.6) < 0.01,
        "cached and synced: 10.5 MB/s within 5 %": abs(
            at(data, "gkey-flash, cached, then synced", 4096) / 10.5 - 1
        ) < 0.05,
        "a step at the erase block: more than twice": step > 2.2,
        "an SSD has no such step": at(data, "sata-ssd, sequential", 65_536)
        < 1.5 * at(data, "sata-ssd, sequential", 32_768),
    }  # fmt: skip


ABOUT = About(
    number=23,
    title="Flash that hates small writes",
    chinese="不擅长小块写入的闪存",
    question="A netbook's flash takes 600 KB/s of direct writes, and 10.5 MB/s when the same data"
    " goes through the page cache and is synced. From which size on does it pay?",
    expected="Published: 600 KB/s direct, 10.5 MB/s cached and synced. Ours: a step at the size"
    " of an erase block.",
    ask=Question("gain", "How many times as fast as direct writes of 4 KiB are the same writes"
                 " through the page cache, on this flash?", "times"),
    method="A model on the host (models/gkey-flash.toml): a write that leaves a part of an erase"
    " block of 64 KiB costs 6.2 ms more. Its two figures are fitted to the published pair, so"
    " they agree with it by construction; the step and the SSD next to it are not. 200 writes of"
    " each size; the cache gives runs of 128 KiB.",
    changes="A drive that writes elsewhere (an SSD) has no step, and pays later when it collects"
    " free blocks. A file system that puts its journal between the data cuts the runs.",
    guest=False,
)  # fmt: skip

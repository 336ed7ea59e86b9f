"""X20: which statistic finds the one disk of sixteen that is nearly broken."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Sequence
from statistics import mean, median

from matplotlib.figure import Figure

from labs.storage.disk_model import Request, drive, replay
from labs.storage.experiments import margins
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.pages import both, label, legend, mark_prediction, pictures, plotting
from labs.tools.course.measurement import Question

DISKS, SICK = 16, 11
READS = 1000
RETRY_MS = (
    11,
    500,
)  # one turn of the platter, to half a second; short ones are as frequent as long
PARTS = (0.0005, 0.001, 0.002, 0.005, 0.01)  # of the sick disk's reads that are retried
EXAMPLE = 0.005
TRIALS, SMALL_TRIALS = 60, 10
LOG2 = [2.0**power for power in range(-3, 11)]  # ms

Detector = Callable[[Sequence[Sequence[float]]], list[float]]


def dm_bucket(ms: float) -> tuple[str, int]:
    """The bucket of the published dm-latency code: 10 us * 100, 10 ms * 100, then 10 s * 100; its
    comment says 100 s for the last, and its divisor makes 10."""
    if ms < 1:
        return "us", int(ms * 100)
    if ms < 1000:
        return "ms", int(ms / 10)
    return "s", min(99, int(ms / 10_000))


def latencies(seed: int, part: float, reads: int) -> list[list[float]]:
    """Of each disk, in ms: random reads on the model of the 5400 rpm disk, and retries on one."""
    healthy = replay_once(seed, DISKS * reads)
    disks = [healthy[number * reads : (number + 1) * reads] for number in range(DISKS)]
    generator = random.Random(seed + 1)
    disks[SICK] = [
        ms + (retry_ms(generator) if generator.random() < part else 0) for ms in disks[SICK]
    ]
    return disks


def retry_ms(generator: random.Random) -> float:
    """How long a request is repeated: each doubling of the time is as likely."""
    least, most = RETRY_MS
    return least * (most / least) ** generator.random()


def replay_once(seed: int, reads: int) -> list[float]:
    """The model's times, drawn again from one long run: a trial needs no new one."""
    if not _pool:
        generator, disk = random.Random(2010), drive("hdd5400")
        requests = [Request("read", generator.randrange(disk.sectors), 1) for _ in range(20_000)]
        _pool.extend(access.total_ms for access in replay(requests, disk).accesses)
    generator = random.Random(seed)
    return generator.choices(_pool, k=reads)


_pool: list[float] = []


def p99(values: Sequence[float]) -> float:
    """The 99th percentile."""
    return sorted(values)[int(len(values) * 0.99)]


def beyond(values: Sequence[float], limit_ms: float) -> float:
    """The part of requests in buckets from this one on."""
    return sum(value >= limit_ms for value in values) / len(values)


def by_peers(disks: Sequence[Sequence[float]]) -> list[float]:
    """How often a disk is over twice the median of the worst requests of its peers."""
    limit = 2 * median(p99(each) for each in disks)
    return [beyond(each, limit) for each in disks]


DETECTORS: dict[str, Detector] = {
    "mean": lambda disks: [mean(each) for each in disks],
    "p99": lambda disks: [p99(each) for each in disks],
    "log2, from 16 ms": lambda disks: [beyond(each, 16) for each in disks],
    "log2, from 64 ms": lambda disks: [beyond(each, 64) for each in disks],
    "10 ms buckets, from 30": lambda disks: [beyond(each, 30) for each in disks],
    "peers": by_peers,
}


def is_found(scores: Sequence[float]) -> bool:
    """Whether the sick disk is singled out: farther from the next one than the others differ."""
    others = sorted(score for number, score in enumerate(scores) if number != SICK)
    spread = others[-1] - others[0]
    return scores[SICK] > others[-1] + 0.5 * spread and scores[SICK] > others[-1]


def measure(where: Where) -> Data:
    """How often each detector finds it, by how often it retries; and the histograms of one case."""
    trials = SMALL_TRIALS if where.small else TRIALS
    rows = []
    for part in PARTS:
        runs = [latencies(1000 * trial, part, READS) for trial in range(trials)]
        for name, detector in DETECTORS.items():
            found = sum(is_found(detector(disks)) for disks in runs) / trials
            rows.append({"part": part, "detector": name, "found": found,
                         "margin": margins.of_part(found, trials)})  # fmt: skip
    disks = latencies(0, EXAMPLE, READS)
    buckets = [[0] * (len(LOG2) + 1) for _ in disks]
    for counts, values in zip(buckets, disks, strict=True):
        for value in values:
            counts[bisect_right(LOG2, value)] += 1
    healthy = {dm_bucket(value) for value in disks[0]}
    means = [mean(each) for each in disks]
    return {"rows": rows, "histograms": buckets, "means": means, "healthy": len(healthy),
            "mean_ratio": means[SICK] / mean(means)}  # fmt: skip


def found(data: Data, detector: str, part: float) -> float:
    """A point."""
    return next(r["found"] for r in data["rows"] if (r["detector"], r["part"]) == (detector, part))


def result(data: Data) -> float:
    """How much slower the sick disk is on average, in percent."""
    return 100 * (data["mean_ratio"] - 1)


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """Sixteen histograms, and how often each detector is right."""
    with plotting():
        small = Figure(figsize=(4.8, 5), layout="constrained")
        for number, axes in enumerate(small.subplots(4, 4, sharex=True, sharey=True).flat):
            color = "C3" if number == SICK else "C0"
            axes.bar(range(len(LOG2) + 1), data["histograms"][number], width=1, color=color)
            axes.set(yscale="log", ylim=(0.7, 2000))
            axes.set_xticks([3, 8, 13], ["1", "32", "1k"], fontsize=8)
            axes.tick_params(axis="y", labelsize=8)
            axes.set_title(f"disk {number}", fontsize=8)
        small.supxlabel(both("latency, ms (buckets double)", "延迟, 毫秒 (每格加倍)"), fontsize=10)
        small.supylabel(both("requests", "请求数"), fontsize=10)
        curve = Figure(figsize=(4.8, 3.6), layout="constrained")
        axes = curve.subplots()
        for number, name in enumerate(DETECTORS):
            mine = [100 * found(data, name, part) for part in PARTS]
            axes.plot([100 * part for part in PARTS], mine, "osD^vP"[number] + "-",
                      fillstyle="none" if number % 2 else "full", markersize=3 + number,
                      linewidth=1, alpha=0.8, label=name)  # fmt: skip
        axes.set(xscale="log", ylim=(-3, 105))
        axes.set_xticks([100 * part for part in PARTS], [f"{100 * part:g}" for part in PARTS])
        axes.set_xlabel(
            both("requests of the sick disk that are retried, %", "故障盘重试的请求, %")
        )
        axes.set_ylabel(both("runs in which it is found, %", "检出率, %"))
        legend(axes)
        means, axes = pictures(height=2.6)
        average = mean(data["means"])
        heights = [100 * (each / average - 1) for each in data["means"]]
        axes.bar(range(DISKS), heights, color=["C3" if n == SICK else "C0" for n in range(DISKS)])
        label(axes, ("disk", "盘号"), ("mean above average, %", "平均延迟高出 %"))
        if predicted is not None:
            mark_prediction(axes, predicted)
            legend(axes)
    return [
        (means, "The means. Chance alone makes those of the healthy disks differ as they do."),
        (small, f"Sixteen disks, {READS} reads each; disk {SICK} retries {EXAMPLE:.1%} of them."),
        (curve, "How often each statistic finds the disk."),
    ]


def tables(data: Data) -> Sequence[Table]:
    """The detectors."""
    columns = ["detector", *(f"{part:.2%}" for part in PARTS)]
    rows = [(name, *(100 * found(data, name, part) for part in PARTS)) for name in DETECTORS]
    widest = 100 * max(row["margin"] for row in data["rows"])
    return [("Runs in which the sick disk is singled out, %, by retried requests; ±95 %:"
             f" {widest:.0f} points at most", columns, rows)]  # fmt: skip


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    average = mean(data["means"])
    healthy = [100 * (m / average - 1) for n, m in enumerate(data["means"]) if n != SICK]
    share = {
        (name, part): f"{100 * found(data, name, part):.0f} %"
        for name in DETECTORS for part in PARTS
    }  # fmt: skip
    return (
        f"In the run that is drawn, with {EXAMPLE:.1%} of its requests retried, the sick disk's"
        f" mean is {result(data):+.1f} % from that of all sixteen, and the healthy ones differ by"
        f" {min(healthy):+.1f} to {max(healthy):+.1f} %. Of all runs with this rate the mean finds"
        f" it in {share['mean', EXAMPLE]}, the best limit in"
        f" {share['10 ms buckets, from 30', EXAMPLE]}.",
        "A limit within what healthy requests take (16 ms) finds nothing, whatever the rate; one"
        " just above the longest of them (10 ms buckets from 30 ms on) finds the most; a higher one"
        " (64 ms, or twice the peers' 99th percentile, some 50 ms) misses some of the short"
        " retries.",
        "The buckets of 2013 put a healthy disk's whole distribution into"
        f" {data['healthy']}: they show retries, and hide everything else; p99 finds the disk in"
        f" {share['p99', EXAMPLE]} of the runs with {EXAMPLE:.1%}, and in"
        f" {share['p99', PARTS[-1]]} of those in which one request in a hundred is slow.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    best, high = "10 ms buckets, from 30", "log2, from 64 ms"
    return {
        "at 0.2 % a limit above the healthy ones finds more than mean and p99": all(
            found(data, best, 0.002) > found(data, name, 0.002) for name in ("mean", "p99")
        ),
        "a limit within the healthy ones finds nothing": all(
            found(data, "log2, from 16 ms", part) <= 0.1 for part in PARTS
        ),
        "a limit far above misses short retries": all(
            found(data, best, part) >= found(data, high, part) for part in PARTS
        )
        and any(found(data, best, part) > found(data, high, part) for part in PARTS),
        "at 0.5 % it is found in nine of ten runs": found(data, best, 0.005) >= 0.9,
        "at 0.1 % mean and p99 are blind": all(
            found(data, name, 0.001) <= 0.5 for name in ("mean", "p99")
        ),
        "a healthy disk fills 2 to 4 of the 10 ms buckets": data["healthy"] in (2, 3, 4),
        "dm: 9.4 ms is in bucket 0": dm_bucket(9.4) == ("ms", 0),
        "dm: the range of seconds is 1000 s": dm_bucket(999_999) == ("s", 99),
    }


ABOUT = About(
    number=20,
    title="Spot the nearly broken disk",
    chinese="找出快要坏的盘",
    question="Sixteen disks have the same load. One of them repeats a few of its requests for 11"
    " to 500 ms: a turn, or many. Which statistic shows it?",
    expected="Published: buckets of 10 ms; in the field 0.2 % of disk time is over twice as slow"
    " as the peers. Ours: the mean hides rare retries, and what a limit finds depends on where it"
    " is: below the longest healthy request, just above it, or far above.",
    ask=Question("mean", "One request in 200 of one disk takes 11 to 500 ms more. By how many"
                 " percent is its mean latency above the average of all?", "percent"),
    method="Random reads on the model of the 5400 rpm disk, 1,000 for each of 16 disks; retries"
    " are drawn with an explicit seed, each doubling of their time as likely. A detector finds"
    " the disk if its score is alone at the top, by half the spread of the others. 60 runs for"
    " each rate.",
    changes="More requests let every counter of slow requests find rarer retries. A shared cause,"
    " such as a bus that is reset, slows all disks, and only a fixed limit shows it then. On an"
    " SSD the healthy buckets are two decades lower.",
    guest=False,
)  # fmt: skip

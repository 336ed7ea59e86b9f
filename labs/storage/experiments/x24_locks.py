"""X24: levels of a cluster's lock: what caching saves, and what a duel of upgrades costs."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from matplotlib.figure import Figure

from labs.storage.experiments import margins
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.experiments.locks import Cluster
from labs.storage.pages import curves, label, legend, mark_prediction, pictures
from labs.tools.course.measurement import Question

NODES = (2, 4, 8)
READS = (0, 0.25, 0.5, 0.75, 0.9, 0.99, 1)
OPERATIONS, SMALL_OPERATIONS = 20_000, 3000  # together
SEEDS, SMALL_SEEDS = (24, 25, 26, 27, 28), (24, 25, 26)
WAYS = {"EX each time": "give back", "cached, drop and ask": "drop",
        "cached, convert and cancel": "cancel", "convert, no cancel": "stuck"}  # fmt: skip
SAFE = list(WAYS)[:3]
STUCK = list(WAYS)[3]


def measure(where: Where) -> Data:
    """Each way with each share of reads and number of nodes."""
    operations, seeds = (SMALL_OPERATIONS, SMALL_SEEDS) if where.small else (OPERATIONS, SEEDS)
    rows = []
    for name, way in WAYS.items():
        for nodes in (4,) if where.small else NODES:
            for reads in (0, 0.5, 0.9, 1) if where.small else READS:
                rows.append({"way": name, "nodes": nodes, "reads": 100 * reads,
                             **runs(way, nodes, reads, operations, seeds)})  # fmt: skip
    return {"rows": rows, "operations": operations}


def runs(way: str, nodes: int, reads: float, operations: int, seeds: Sequence[int]) -> Data:
    """The figures of a point, over all seeds, each with as many operations."""
    clusters = [Cluster(way, nodes, reads, operations // len(seeds), seed) for seed in seeds]
    for cluster in clusters:
        cluster.run()
    messages = [each.messages / each.done for each in clusters]
    waits = [each.waited / each.done for each in clusters]
    return {
        "done": sum(each.done for each in clusters),
        "stopped": min(each.done for each in clusters),
        "cancelled": sum(each.cancelled for each in clusters),
        "messages": mean(messages), "messages_margin": margins.of_mean(messages),
        "ms": mean(waits), "margin": margins.of_mean(waits),
    }  # fmt: skip


def of(data: Data, way: str, reads: float) -> Data:
    """A point with four nodes."""
    wanted = (way, 4, reads)
    return next(r for r in data["rows"] if (r["way"], r["nodes"], r["reads"]) == wanted)


def result(data: Data) -> float:
    """Messages an operation with nine reads of ten."""
    return of(data, SAFE[2], 90)["messages"]


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """Messages and waiting."""
    mine = [r for r in data["rows"] if r["nodes"] == 4 and r["way"] in SAFE]
    figure, axes = pictures()
    curves(axes, mine, "reads", "messages", "way")
    axes.set(ylim=(0, None))
    label(axes, ("operations that read, %", "读操作, %"), ("messages/operation", "每次操作的消息"))
    mark_prediction(axes, predicted)
    legend(axes)
    times, axes = pictures(height=2.8)
    curves(axes, mine, "reads", "ms", "way")
    axes.set(ylim=(0, None))
    label(axes, ("operations that read, %", "读操作, %"), ("wait for the lock, ms", "等待锁, 毫秒"))
    legend(axes)
    return [(figure, "Four nodes, one lock, 5 ms between a node's operations"),
            (times, "A message takes 0.1 ms, an operation 0.2 ms.")]  # fmt: skip


def tables(data: Data) -> Sequence[Table]:
    """Every point."""
    rows = [(r["way"], r["nodes"], r["reads"], r["messages"], r["messages_margin"], r["ms"],
             r["margin"]) for r in data["rows"]]  # fmt: skip
    columns = ["way", "nodes", "reads, %", "messages/op", "±95 %", "wait, ms", "±95 %"]
    ends = [(r["way"], r["nodes"], r["reads"], r["done"], r["cancelled"])
            for r in data["rows"] if r["way"] in (STUCK, SAFE[2])]  # fmt: skip
    return [("By way, nodes and reads; ±95 %: from the runs of the seeds", columns, rows),
            (f"How many of {data['operations']:,} operations came to an end, of all seeds",
             ["way", "nodes", "reads, %", "done", "cancelled"], ends)]  # fmt: skip


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    stuck = of(data, STUCK, 50)
    return (
        f"With reads only a cached PR costs {of(data, SAFE[2], 100)['messages']:.4f} messages an "
        f"operation after warm-up, and EX each time {of(data, SAFE[0], 100)['messages']:.1f}: "
        "readers share what they have.",
        f"When all write, the lock goes round with {of(data, SAFE[2], 0)['messages']:.1f}"
        " messages an operation (request, bast, the lower level, ast), as many as without a cache,"
        f" and an operation waits for {of(data, SAFE[2], 0)['ms']:.2f} ms instead of"
        f" {of(data, SAFE[0], 0)['ms']:.2f}: first the node in the way has to be told.",
        f"Two nodes that have PR and both want EX wait for each other: without a cancel the "
        f"cluster stopped after {stuck['stopped']:,} operations, with it "
        f"{of(data, SAFE[2], 50)['cancelled']} conversions were cancelled and all went on.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    return {
        "reads only: no message after warm-up": of(data, SAFE[2], 100)["messages"] < 0.01,
        "EX each time pays the same for reads as for writes": of(data, SAFE[0], 0)["messages"]
        == of(data, SAFE[0], 100)["messages"],
        "with writes only the lock goes back and forth: over 3 messages an operation": of(
            data, SAFE[2], 0
        )["messages"] > 3,
        "with writes only caching makes an operation wait longer": of(data, SAFE[2], 0)["ms"]
        > of(data, SAFE[0], 0)["ms"],
        "with nine reads of ten caching saves messages": result(data)
        < of(data, SAFE[0], 90)["messages"] / 1.5,
        "a conversion costs no more messages than drop and ask": result(data)
        <= of(data, SAFE[1], 90)["messages"] * 1.02,
        "without a cancel a duel stops the cluster": of(data, STUCK, 50)["done"]
        < data["operations"],
        "all other ways come to their end": all(
            r["done"] == data["operations"] for r in data["rows"] if r["way"] in SAFE
        ),
    }  # fmt: skip


ABOUT = About(
    number=24,
    title="Lock levels of a cluster: NL, PR, EX",
    chinese="集群锁的级别: NL, PR, EX",
    question="Several nodes share a disk, and a lock says who may read and who may write. What does"
    " it save to keep a level until somebody wants it, and to convert PR to EX in place?",
    expected="Published, of OCFS2: a node keeps a lock until another one needs it. Ours: so reads"
    " alone cost no message after warm-up; with one writer the lock goes back and forth; of two"
    " upgrades from PR to EX one is cancelled.",
    ask=Question("messages", "Four nodes, nine of ten operations read, levels are cached. How many"
                 " messages does an operation cost on average?", "messages"),
    method="A simulation in events: the master has a queue, conversions first. It sends a bast to"
    " each node in the way, and an ast to the node that gets the lock. 20,000 operations for each"
    " point, in runs of five seeds. Requests, grants, basts and cancels all count as messages.",
    changes="A master on one of the nodes saves that node's messages. If changes are written to"
    " disk before a lock is lowered, each change of hands is longer by a disk write. More locks"
    " with less sharing bring every point nearer to that of reads only.",
    guest=False,
)  # fmt: skip

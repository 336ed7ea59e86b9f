"""X36: the reads of X1 by several readers at a time, and three orders of a queue."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, quantiles

from matplotlib.figure import Figure

from labs.storage.disk_model import ORDERS, SECTOR_BYTES, drive
from labs.storage.disks import Experiment
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.pages import curves, label, legend, mark_prediction, pictures, ticks
from labs.storage.queue_model import Read, Served, reads_of, serve_all
from labs.storage.report import predict
from labs.tools.course.measurement import Question

READERS, SMALL_READERS = (1, 2, 4, 8, 16, 32), (1, 2, 8)
SEEDS = (2010, 2011, 2012)
MANY = 64  # readers, where the kernel's queue is the longer one
DEPTHS = (1, 2, 4, 8, 16, 32)
LAYOUTS = {"ext3": "ext3 direct", "ext4": "ext4 direct"}


def measure(where: Where) -> Data:
    """Every seed: means, and the least and the most of the ratio and of the rate."""
    runs = [measure_seed(where, seed) for seed in SEEDS[: 2 if where.small else None]]
    return {
        kind: [together(rows) for rows in zip(*(run[kind] for run in runs), strict=True)]
        for kind in ("rows", "cached", "many")
    }


def together(rows: Sequence[Data]) -> Data:
    """The rows of all seeds as one."""
    numbers = [key for key, value in rows[0].items() if isinstance(value, float)]
    row = {**rows[0], **{key: fmean(each[key] for each in rows) for key in numbers}}
    for key in ("ratio", "ext4"):
        row[f"{key}_spread"] = [min(each[key] for each in rows), max(each[key] for each in rows)]
    return row


def measure_seed(where: Where, seed: int) -> Data:
    """Every number of readers with every order, and with a cache; and many readers at drives of
    several depths."""
    experiment = Experiment(100, 1000, seed) if where.small else Experiment(10, 10_000, seed)
    sectors = experiment.drive_bytes // SECTOR_BYTES
    runs = {run.name: run for run in predict(experiment)}
    reads = {name: reads_of(runs[row].requests, runs[row].kinds) for name, row in LAYOUTS.items()}
    rows = [
        one(reads, sectors, readers=readers, depth=readers, drive=order)
        for order in ORDERS
        for readers in (SMALL_READERS if where.small else READERS)
    ]
    cached = [
        one(reads, sectors, "on", readers=readers, depth=readers, drive="satf")
        for readers in (SMALL_READERS if where.small else READERS)
    ]
    many = [
        one(reads, sectors, readers=MANY, depth=depth, kernel="c-look", drive="satf")
        for depth in (DEPTHS[:1] if where.small else DEPTHS)
    ]
    return {"rows": rows, "cached": cached, "many": many}


def one(reads: dict[str, list[Read]], sectors: int, cache: str = "off", **queue: object) -> Data:
    """Both layouts in one case: reads a second, the ratio of times, and a read's time."""
    served: dict[str, Served] = {
        name: serve_all(each, drive("hdd5400", sectors, cache), **queue)  # type: ignore[arg-type]
        for name, each in reads.items()
    }
    row: Data = {**queue, "order": queue["drive"]}
    for name, each in served.items():
        cuts = quantiles(each.latencies_ms, n=100, method="inclusive")
        row |= {name: each.per_second, f"{name}_p50": cuts[49], f"{name}_p99": cuts[98]}
    return row | {"ratio": served["ext3"].total_ms / served["ext4"].total_ms}


def of(data: Data, order: str, readers: int) -> Data:
    """A case."""
    return next(r for r in data["rows"] if (r["order"], r["readers"]) == (order, readers))


def most(data: Data, order: str) -> Data:
    """The case of an order with the most readers."""
    return [row for row in data["rows"] if row["order"] == order][-1]


def cache_gains(data: Data) -> list[float]:
    """By how many percent more reads a second are made with the cache, in each case of satf."""
    return [
        100 * (row[name] / of(data, "satf", row["readers"])[name] - 1)
        for row in data["cached"]
        for name in LAYOUTS
    ]


def result(data: Data) -> float:
    """Two readers, first come, first served."""
    return of(data, "fifo", 2)["ratio"]


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """The ratio, and the rates."""
    readers = sorted({row["readers"] for row in data["rows"]})
    ratio, axes = pictures()
    cached = [{**row, "order": "satf, cache on"} for row in data["cached"]]
    curves(axes, [*data["rows"], *cached], "readers", "ratio", "order")
    axes.set(xscale="log", ylim=(1.3, 2.2))
    ticks(axes, readers)
    label(
        axes, ("readers, one request each", "读者数, 每个一个请求"), ("ext3 / ext4", "ext3 / ext4")
    )
    mark_prediction(axes, predicted)
    legend(axes)
    rate, axes = pictures()
    for layout, style in (("ext4", "-"), ("ext3", "--")):
        for number, order in enumerate(ORDERS):
            mine = [row for row in data["rows"] if row["order"] == order]
            axes.plot([row["readers"] for row in mine], [row[layout] for row in mine], style,
                      marker="osD"[number], markersize=4, color=f"C{number}", linewidth=1.2,
                      label=f"{layout}, {order}")  # fmt: skip
    axes.set(xscale="log", ylim=(0, None))
    ticks(axes, readers)
    label(
        axes, ("readers, one request each", "读者数, 每个一个请求"), ("reads a second", "每秒读数")
    )
    legend(axes)
    return [(ratio, "How many times as long all reads take on ext3 as on ext4"),
            (rate, "Reads a second, on the model of the 5400 rpm disk")]  # fmt: skip


def tables(data: Data) -> Sequence[Table]:
    """Every case."""

    def cells(name: str, row: Data) -> list[object]:
        spreads = [
            "{:{f}} ({:{f}} to {:{f}})".format(row[key], *row[f"{key}_spread"], f=form)
            for key, form in (("ext4", ".0f"), ("ratio", ".2f"))
        ]
        return [name, spreads[0], row["ext3"], spreads[1], row["ext4_p50"], row["ext4_p99"]]

    columns = ["", "ext4, reads/s", "ext3", "ratio", "ext4: median, ms", "p99, ms"]
    return [
        ("The drive's order, readers: means (the least to the most of three seeds)", columns,
         [cells(f"{r['order']}, {r['readers']}", r) for r in data["rows"]]),
        ("The same with the drive's cache: read-ahead of 512 KB in 32 segments", columns,
         [cells(f"satf, {r['readers']}", r) for r in data["cached"]]),
        (f"{MANY} readers: C-LOOK in the kernel, SATF in the drive", columns,
         [cells(f"depth {r['depth']}", r) for r in data["many"]]),
    ]  # fmt: skip


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    alone, two, best = of(data, "fifo", 1), of(data, "fifo", 2), most(data, "satf")
    change = max(cache_gains(data), key=abs)
    return (
        f"With one reader a read takes {alone['ratio']:.2f} times as long on ext3; with two, first "
        f"come, first served, {two['ratio']:.2f} times: the arm leaves for the other reader between"
        " a pointer block and its data. So each request costs a whole seek, and the ratio is that"
        " of the requests.",
        f"First come, first served, more readers make nothing faster ({alone['ext4']:.0f} and "
        f"{most(data, 'fifo')['ext4']:.0f} reads a second on ext4); the shortest access time first"
        f" makes {best['ext4'] / alone['ext4']:.1f} times as many with {best['readers']} readers."
        f" The drive's cache changes no rate by more than {abs(change):.1f} %: of random reads"
        " hardly one is near another.",
        f"The price is waiting: with {best['readers']} readers a read takes"
        f" {best['ext4_p50']:.0f} ms in the median and {best['ext4_p99']:.0f} ms in one of 100"
        f" cases, instead of {alone['ext4_p50']:.0f} and {alone['ext4_p99']:.0f}.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    alone = of(data, "fifo", 1)
    return {
        "one reader: the ratio is that of X1, 1.33 to 1.45": 1.33 < alone["ratio"] < 1.45,
        "one reader: the order is of no account": all(
            abs(of(data, order, 1)["ext4"] / alone["ext4"] - 1) < 1e-6 for order in ORDERS
        ),
        "two readers, fifo: the ratio is that of the requests, 1.85 to 2.0": 1.85
        < result(data) < 2.0,
        "fifo: more readers are no faster, within 3 percent": abs(
            most(data, "fifo")["ext4"] / alone["ext4"] - 1
        ) < 0.03,
        "more readers: satf is faster than c-look, and c-look than fifo": most(data, "satf")["ext4"]
        > most(data, "c-look")["ext4"] > most(data, "fifo")["ext4"],
        "random reads gain less than 5 percent by the drive's cache": all(
            abs(gain) < 5 for gain in cache_gains(data)
        ),
        "a queue makes single reads wait longer": most(data, "satf")["ext4_p99"]
        > 2 * alone["ext4_p99"],
    }  # fmt: skip


ABOUT = About(
    number=36,
    title="X1 with several readers, and a queue",
    chinese="X1: 多个读者与队列",
    question="X1 has one reader, who waits for each read. Servers have many. What is left of the"
    " ratio of 1.4, and what do the orders of a queue win?",
    expected="Nothing was published for the table of 2010. Ours: first come, first served, the"
    " arm goes elsewhere between a pointer block and its data; an order that knows seek and"
    " rotation has the more to choose from, the more wait.",
    ask=Question(
        "ratio",
        "Two readers, first come, first served: how many times as long do all"
        " reads take on ext3 as on ext4?",
        "times",
    ),
    method="The requests of X1 on paper, at a tenth of the size with 10,000 reads and three"
    " seeds. Each reader"
    " has one read under way, and takes the next one when it is done; a pointer block comes"
    " before its data. The drive has all waiting requests in its queue, and the model of the 5400"
    " rpm disk says what each costs from where the arm and the platter are. With the"
    " cache on it reads ahead while nobody waits. In the last table the kernel has a queue, too,"
    " and the drive's is of a limited depth.",
    changes="Readers who read near each other need no queue. A drive that reads a whole track"
    " before it leaves would find some data of a pointer block in its cache, and give everybody"
    " else a turn to wait; this one leaves at once. An order without a limit lets a read at the"
    " edge wait: real drives age their requests. An SSD has no arm, and gains by doing several at"
    " once.",
    guest=False,
)

"""X15: whether a fast drive should interrupt, or be polled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median, mode

from matplotlib.figure import Figure

from labs.bench.counting import Count, Counter
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.experiments.guest import ExperimentError, run_guest
from labs.storage.pages import curves, label, legend, mark_prediction, pictures, ticks
from labs.storage.published import PUBLISHED_LABEL
from labs.tools.course.measurement import Question
from labs.tools.machine.qemu_command import Drive
from labs.tools.machine.work_folder import work_folder

READS, SMALL_READS = 400, 60
BYTES = 4096
ENOUGH = 5  # reads
SLOW = ("throttling.iops-total=200",)
"""For the drive that is waited for: QEMU's own is often there before the processor is halted."""
ASK, CLOCK, END = "ata_answer", "time_ns", "trace_add"  # of the kernel
COUNTER = Counter(lines=(ASK, CLOCK, END), halts=True)
INSTRUCTION_US = 0.001  # a processor of one instruction a nanosecond
DEVICES_US = (0.3, 0.5, 1, 2, 5, 10, 20, 50, 100)
DRIVES = (1, 2, 3, 4)
DEPTHS = (1, 2, 4, 8, 16, 32)
FAST_US = 10  # of the drives in the picture of several
INTERRUPT, POLL, HYBRID, SEVERAL = "interrupt", "poll", "hybrid", "interrupt, a CPU each"
FOUR_SSDS = (60, 80)  # percent of their rate that one processor managed; published


@dataclass(frozen=True)
class Price:
    """Instructions of a read of 4 KiB: the request itself, from the call to its return; to put the
    task to sleep, while the drive works already; and from the interrupt until the task runs."""

    request: float
    sleep: float
    wake: float

    @property
    def extra(self) -> float:
        """What an interrupt costs more than to look at the right time."""
        return self.sleep + self.wake


# ---- the guest ----


def measure(where: Where) -> Data:
    """Counts both ways in the guest, by DMA and by PIO, and works out other drives."""
    reads = SMALL_READS if where.small else READS
    moves = ("dma",) if where.small else ("dma", "pio")
    found = {}
    for move in moves:
        asleep = reads_of(where, f"{move}-interrupt", reads, SLOW)
        awake = reads_of(where, f"{move}-polled", reads)
        if not any(len(looks_of(each)) > 1 for each in awake):  # it had answered before each look
            awake += reads_of(where, f"{move}-polled", ENOUGH, SLOW)
        found[move] = prices(asleep, awake)
    dma = found["dma"]
    price = Price(dma["request"], dma["sleep"], dma["wake"])
    return {"moves": found, "rows": [row(price, way, device) for device in DEVICES_US
                                     for way in (INTERRUPT, POLL, HYBRID)],
            "several": [several(price, way, drives) for way in (INTERRUPT, SEVERAL)
                        for drives in DRIVES],
            "depths": [queued(price, way, depth) for way in (INTERRUPT, POLL)
                       for depth in DEPTHS]}  # fmt: skip


def reads_of(
    where: Where, mode: str, reads: int, options: tuple[str, ...] = ()
) -> list[list[Count]]:
    """The counts of each read: its first mark, what was in between, its last mark."""
    with work_folder("images", where.build.parent) as folder:
        image = folder / "image"
        image.write_bytes(bytes(range(256)) * (8 << 12))
        drive = Drive(image, 1, options=options)
        done = run_guest(where.build, f"callcost direct /dev/hdb {reads} {BYTES}", [drive],
                         settings=(("disk", mode),), counter=COUNTER)  # fmt: skip
    marks = [number for number, count in enumerate(done.counts) if count.kind == "mark"]
    if len(marks) != 2 * reads:
        raise ExperimentError(f"{mode}: {len(marks)} marks, and {reads} reads")
    pairs = zip(marks[::2], marks[1::2], strict=True)
    return [list(done.counts[first : last + 1]) for first, last in pairs]


def prices(asleep: Sequence[Sequence[Count]], awake: Sequence[Sequence[Count]]) -> Data:
    """The instructions of a read in both modes. Timer interrupts, and a clock that has to be asked
    once more, only add: so the least of all reads counts."""
    before, after, sleep = [], [], []
    for each in asleep:
        halts = [count.instructions for count in each if count.kind == "halt"]
        if not halts:  # the drive had answered before the task slept
            continue
        asked = next(count.instructions for count in each if count.kind == ASK)
        before.append(halts[0] - each[0].instructions)
        sleep.append(halts[0] - asked)
        after.append(each[-1].instructions - halts[-1])
    if len(before) < ENOUGH:
        raise ExperimentError("QEMU's drive was too fast: the processor was hardly ever halted")
    looks = [looks_of(each) for each in awake]
    steps = [other - one for seen in looks for one, other in pairwise(seen)]
    look = mode(steps) if steps else 0
    request = min(each[-1].instructions - each[0].instructions
                  - (seen[-1] - seen[0] + look if seen else 0)
                  for each, seen in zip(awake, looks, strict=True))  # fmt: skip
    whole = min(before) + min(after)
    return {
        "request": request, "sleep": min(sleep), "wake": whole - request - min(sleep),
        "interrupt": whole, "look": look,
        "looks": median(len(seen) for seen in looks),
    }  # fmt: skip


def looks_of(read: Sequence[Count]) -> list[int]:
    """When a polled drive was busy: in QEMU it is for as long as this computer takes. Each such
    look is followed by one at the clock; there is one before the first, and one after the last, for
    the trace. So the drive's time, which is not the request's, is from the first of them to the
    last, and one look more."""
    kinds = [count.kind for count in read]
    waiting = read[kinds.index(ASK) : kinds.index(END)]
    clocks = [count.instructions for count in waiting if count.kind == CLOCK]
    return clocks[1:-1]


# ---- the account: drives of any speed ----


def row(price: Price, way: str, device_us: float) -> Data:
    """One request at a time: how long it takes, how long the processor works for it. The hybrid
    sleeps for half of the drive's time, by a timer, and then polls, if that is worth while."""
    request, sleep, wake = (
        each * INSTRUCTION_US for each in (price.request, price.sleep, price.wake)
    )
    if way == INTERRUPT:
        latency = request + max(device_us, sleep) + wake
        busy = request + sleep + wake
    elif way == HYBRID and device_us / 2 > sleep + wake:
        latency = request + device_us
        busy = latency - (device_us / 2 - sleep)
    else:
        latency = busy = request + device_us
    return {"way": way, "device": device_us, "latency": latency, "work": busy,
            "busy": 100 * busy / latency,
            "iops": 1e6 / latency}  # fmt: skip


def several(price: Price, way: str, drives: int) -> Data:
    """Drives with full queues, each of which finishes a request every FAST_US: what part of that
    the processor manages, which takes all interrupts itself; or with one for each drive."""
    work_us = (price.request + price.extra) * INSTRUCTION_US
    asked = drives / FAST_US
    managed = min(asked, (drives if way == SEVERAL else 1) / work_us)
    return {"way": way, "drives": drives, "share": 100 * managed / asked,
            "busy": 100 * managed * work_us / (drives if way == SEVERAL else 1)}  # fmt: skip


def queued(price: Price, way: str, depth: int) -> Data:
    """Requests a second with this many at a time at a drive that works on all of them for FAST_US.
    A task that polls does so for all of them at once."""
    request, extra = price.request * INSTRUCTION_US, price.extra * INSTRUCTION_US
    each = request + (extra if way == INTERRUPT else 0)
    rate = min(depth / (each + FAST_US), 1 / each)
    return {"way": way, "depth": depth, "iops": 1e6 * rate,
            "busy": 100 * rate * each if way == INTERRUPT else 100.0}  # fmt: skip


def crossing(data: Data) -> float:
    """The drive's time in us at which both ways keep the processor busy for equally long."""
    dma = data["moves"]["dma"]
    return (dma["sleep"] + dma["wake"]) * INSTRUCTION_US


def four_us(data: Data) -> tuple[float, float]:
    """The time of drives of which one processor manages what was published, when there are four."""
    work = data["moves"]["dma"]["interrupt"] * INSTRUCTION_US
    low, high = (4 * work * share / 100 for share in FOUR_SSDS)
    return low, high


def result(data: Data) -> float:
    """What the interrupt costs: instructions."""
    dma = data["moves"]["dma"]
    return dma["sleep"] + dma["wake"]


def of(data: Data, way: str, device_us: float) -> Data:
    """A point of one request at a time."""
    return next(r for r in data["rows"] if (r["way"], r["device"]) == (way, device_us))


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """One request at a time: rate and processor; several drives; several requests."""
    figure, (rate, work) = pictures(2, height=2.9)
    rows = [row | {"thousands": row["iops"] / 1000} for row in data["rows"]]
    for way, style in ((INTERRUPT, "o-"), (POLL, "s-"), (HYBRID, "^:")):
        mine = [row for row in rows if row["way"] == way]
        for axes, key in ((rate, "thousands"), (work, "work")):
            axes.plot([row["device"] for row in mine], [row[key] for row in mine], style,
                      markersize=4, linewidth=1.2, label=way)  # fmt: skip
    work.set(yscale="log")
    ticks(work, y=(4, 10, 30, 100))
    for axes in (rate, work):
        axes.set(xscale="log")
        ticks(axes, (0.3, 1, 3, 10, 30, 100))
        axes.axvline(crossing(data), color="grey", linewidth=1, linestyle=":")
        if predicted is not None and predicted > 0:
            mark_prediction(axes, min(max(predicted * INSTRUCTION_US, 0.2), 150), is_vertical=True)
    device = ("time of the drive for a read, us", "磁盘读时间, 微秒")
    label(rate, device, ("thousand reads a second", "千次读/秒"))
    label(work, device, ("processor, us a read", "处理器, 微秒/读"))
    legend(rate)
    more, (share, depth) = pictures(2, height=2.9)
    curves(share, data["several"], "drives", "share", "way")
    share.axhspan(*FOUR_SSDS, color="grey", alpha=0.2, label=f"{PUBLISHED_LABEL}, 4 SSDs")
    share.set(ylim=(0, 105), xticks=DRIVES)
    label(share, (f"drives of {FAST_US} us", "盘数"), ("of their rate, %", "达到的速率, %"))
    legend(share)
    for way in (INTERRUPT, POLL):
        mine = [row for row in data["depths"] if row["way"] == way]
        depth.plot([row["busy"] for row in mine], [row["iops"] / 1000 for row in mine], "o-",
                   markersize=4, linewidth=1.2, label=way)  # fmt: skip
        for each in mine[:3]:
            depth.annotate(str(each["depth"]), (each["busy"], each["iops"] / 1000), fontsize=7,
                           xytext=(-4, 4), textcoords="offset points", ha="right")  # fmt: skip
    label(depth, ("processor busy, %", "处理器占用, %"), ("thousand reads a second", "千次读/秒"))
    legend(depth)
    return [
        (figure, "One read of 4 KiB at a time; dotted: the processor has as much to do"),
        (more, f"Full queues of drives with {FAST_US} us; and 1 to 32 reads at one such drive"),
    ]  # fmt: skip


def tables(data: Data) -> Sequence[Table]:
    """The measured prices, and the account."""
    names = {"request": "the read, answered at the first look", "sleep": "to go to sleep",
             "wake": "to be woken by the interrupt", "interrupt": "all with the interrupt",
             "look": "a look at the drive", "looks": "looks at QEMU's drive"}  # fmt: skip
    moves = data["moves"]
    found = [(said, *(each[name] for each in moves.values())) for name, said in names.items()]
    rows = [(f"{r['way']}, {r['device']} us", r["latency"], r["iops"], r["busy"])
            for r in data["rows"]]  # fmt: skip
    return [
        (f"Counted: a read of {BYTES} bytes, instructions", ["", *moves], found),
        ("One read at a time", ["way, drive", "us/read", "reads/s", "busy %"], rows),
        (f"Full queues, {FAST_US} us", ["way, drives", "of their rate, %", "busy %"],
         [(f"{r['way']}, {r['drives']}", r["share"], r["busy"]) for r in data["several"]]),
        (f"Several reads at a time at one drive of {FAST_US} us", ["way, reads", "reads/s",
         "busy %"], [(f"{r['way']}, {r['depth']}", r["iops"], r["busy"]) for r in data["depths"]]),
    ]  # fmt: skip


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    fast, slow = of(data, INTERRUPT, 5), of(data, INTERRUPT, 100)
    gain = 100 * (of(data, POLL, 5)["iops"] / fast["iops"] - 1)
    last = [row for row in data["several"] if row["way"] == INTERRUPT][-1]
    low, high = four_us(data)
    return (
        f"To sleep and to be woken costs {result(data):,.0f} instructions, so a drive that answers"
        f" within {crossing(data):.1f} us is cheaper to poll, even for the processor; of 5 us"
        f" polling gives {gain:.0f} % more reads a second.",
        f"With 100 us the interrupt keeps the processor busy for {slow['busy']:.0f} % of the time,"
        f" polling for 100 %, and the hybrid for {of(data, HYBRID, 100)['busy']:.0f} % with the"
        " reads a second of polling.",
        f"One processor that takes all interrupts manages {last['share']:.0f} % of four drives with"
        f" {FAST_US} us, and the published 60 to 80 % of four drives with {low:.1f} to {high:.1f}"
        " us.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    dma = data["moves"]["dma"]
    fast, slow = 5, DEVICES_US[-1]
    last = [row for row in data["several"] if row["way"] == INTERRUPT][-1]
    return {
        "a look at the drive takes 20 to 200 instructions": 20 < dma["look"] < 200,
        "to sleep and to be woken costs 300 to 10,000 instructions": 300 < result(data) < 10_000,
        "polling is never slower with one read at a time": all(
            of(data, POLL, device)["iops"] >= of(data, INTERRUPT, device)["iops"]
            for device in DEVICES_US
        ),
        "it gains more with the fastest drive than with the slowest": (
            of(data, POLL, fast)["iops"] / of(data, INTERRUPT, fast)["iops"]
            > of(data, POLL, slow)["iops"] / of(data, INTERRUPT, slow)["iops"]
        ),
        "the cheaper way for the processor changes at that time": all(
            (of(data, POLL, device)["work"] < of(data, INTERRUPT, device)["work"])
            == (device < crossing(data))
            for device in DEVICES_US
        ),
        "with 100 us the interrupt leaves over 80 percent of the processor": of(
            data, INTERRUPT, slow
        )["busy"] < 20,
        "the hybrid is as fast as polling and takes less of the processor": of(
            data, HYBRID, slow
        )["iops"] == of(data, POLL, slow)["iops"] and of(data, HYBRID, slow)["busy"] < 80,
        "of four drives one processor has all it can do": last["busy"] > 99 and last["share"] < 80,
    }  # fmt: skip


ABOUT = About(
    number=15,
    title="Polling against interrupts",
    chinese="轮询还是中断",
    question="An interrupt costs the processor a switch to another task and back. How fast must a"
    " drive be before it is better to poll it?",
    expected="Published as notes of a workshop: with four SSDs one processor is 100 % busy with"
    " interrupts, at 60 to 80 % of their throughput. Published at FAST 2012: polling is better"
    " where the drive is faster than interrupt and switch together.",
    ask=Question("extra", "A read of 4 KiB by DMA: how many more instructions does it take if the"
                 " task sleeps and the interrupt wakes it, than if it looks once, at the right"
                 " time?", "instructions"),
    method="callcost reads 4 KiB of the raw drive in the guest, in the driver's polled and"
    " interrupt modes. A plugin of QEMU counts: up to HLT, from there on, and when the wait"
    " begins. Counts vary by some five; QEMU's own drive is as fast as this computer, so the time"
    " of a drive comes from an account: 0.3 to 100 us, one instruction a nanosecond, one"
    " processor. The hybrid, several drives and deep queues are of the account alone: this kernel"
    " has one request at a time at a channel.",
    changes="An exception costs a real processor more than its instructions: TLB, caches, the way"
    " out of HLT. That moves the crossing to slower drives. Other work for the processor is what"
    " makes interrupts worth while; an interrupt for several requests makes them cheap.",
)  # fmt: skip

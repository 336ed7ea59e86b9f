"""X25: what a trace costs: none, a ring in memory, rings per processor, a line on the console."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from matplotlib.figure import Figure

from labs.storage.disk_model import Request, drive, replay
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.experiments.guest import run_guest
from labs.storage.experiments.rings import Rings
from labs.storage.experiments.waiting import closed_form
from labs.storage.pages import label, legend, mark_prediction, pictures, ticks
from labs.tools.course.measurement import Question

DEVICES = ("hdd5400", "hdd15k", "sata-ssd", "pcie-ssd")
READS = 400
WAYS = ("ring", "print", "serial")
NAMES = {"ring": "ring", "print": "line, fast console", "serial": "line, serial 115200 baud"}
NS_PER_INSTRUCTION = 1.0  # a processor of 10^9 instructions a second
SERIAL_NS = 86_806  # for a byte: 10 bits at 115200 baud
PROCESSORS = (1, 2, 4, 8, 16, 32)
MOVE_NS, SKEW_NS = 100, 100  # of cache lines to another processor; of a clock: chosen
CALLS, SMALL_CALLS = 3000, 1500  # of each processor in the simulation
RATES = (10, 100, 1000, 10_000, 100_000, 1_000_000)
OUTPUT = re.compile(r"^cost (\w+) (\d+) (\d+) (\d+)", re.MULTILINE)
LINE = re.compile(r"^\d+ pread\(.*\n", re.MULTILINE)


def rate(name: str) -> float:
    """Random reads of 512 bytes a second, one at a time."""
    generator, model = random.Random(25), drive(name)
    places = [generator.randrange(model.sectors) for _ in range(READS)]
    return 1000 * READS / replay([Request("read", at, 1) for at in places], model).total_ms


def throughput(call: float, ring: float, processors: int, is_shared: bool) -> float:
    """Calls a second of this many processors, in millions. Only one of them at a time is in a ring
    that they share; on paper, without the cost of moving its cache lines."""
    most = processors / (call + ring)
    return 1000 * (min(most, 1 / ring) if is_shared else most) / NS_PER_INSTRUCTION


def simulated(call: float, ring: float, processors: int, calls: int) -> Data:
    """The same, call by call: a ring for all, one whose lines have to move, and rings of their own
    with clocks that differ."""
    call, ring = call * NS_PER_INSTRUCTION, ring * NS_PER_INSTRUCTION
    shared = Rings(processors, call, ring, True)
    moved = Rings(processors, call, ring, True, move=MOVE_NS)
    alone = Rings(processors, call, ring, False, skew=SKEW_NS)
    return {
        "processors": processors, "one ring": shared.run(calls), "lines move": moved.run(calls),
        "a ring each": alone.run(calls), "disorder": alone.out_of_order(),
        "exact": 1000 * closed_form(processors, call, ring)[0],
    }  # fmt: skip


def measure(where: Where) -> Data:
    """Instructions for a call, in the guest; rates of the devices, from the model."""
    count = 10 if where.small else 50
    said = run_guest(
        where.build, f"echo x >/tmp/x; dd if=/dev/zero of=/tmp/x bs=512 count=1; "
        f"tracecost /tmp/x {count}", [], icount=0,
    ).said  # fmt: skip
    calls = {}
    for name, *steps in OUTPUT.findall(said):
        off, ring, printed = map(int, steps)
        calls[name] = {"off": off, "ring": ring - off, "print": printed - off}
    line = len(LINE.findall(said.replace("\r", ""))[0])
    cost = {"ring": calls["pread"]["ring"], "print": calls["pread"]["print"]}
    cost["serial"] = cost["print"] + line * SERIAL_NS / NS_PER_INSTRUCTION
    contention = [
        {"processors": each, "off": each * 1000 / calls["getpid"]["off"], **{
            name: throughput(calls["getpid"]["off"], calls["getpid"]["ring"], each, is_shared)
            for name, is_shared in (("one ring", True), ("a ring each", False))}}
        for each in PROCESSORS
    ]  # fmt: skip
    rings = [simulated(calls["getpid"]["off"], calls["getpid"]["ring"], each,
                       SMALL_CALLS if where.small else CALLS) for each in PROCESSORS]  # fmt: skip
    return {"calls": calls, "line": line, "cost": cost, "contention": contention, "rings": rings,
            "rates": {name: rate(name) for name in DEVICES}}  # fmt: skip


def overhead(data: Data, way: str, per_second: float) -> float:
    """Percent of the time of one processor, at a rate of calls."""
    return 100 * data["cost"][way] * NS_PER_INSTRUCTION * per_second / 1e9


def result(data: Data) -> float:
    """A line of text, over a record in the ring."""
    return data["cost"]["print"] / data["cost"]["ring"]


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """Overhead by rate; cost of a call; more processors."""
    share, axes = pictures(height=3.4)
    for way in WAYS:
        axes.plot(RATES, [overhead(data, way, each) for each in RATES], label=NAMES[way])
    for name, per_second in data["rates"].items():
        axes.axvline(per_second, color="k", linestyle=":", linewidth=1)
        axes.text(per_second, 1e-5, name, fontsize=7, rotation=90, ha="right", va="bottom")
    axes.axhline(100, color="red", linewidth=1)
    axes.set(xscale="log", yscale="log", ylim=(5e-6, 1e6))
    label(
        axes,
        ("traced reads a second", "每秒跟踪的读次数"),
        ("a processor's time, %", "处理器时间, %"),
    )
    legend(axes)
    cost, axes = pictures(height=2.7)
    for place, way in enumerate(("ring", "print")):
        values = [call[way] / call["ring"] for call in data["calls"].values()]
        axes.bar([n + 0.38 * (place - 0.5) for n in range(len(values))], values, 0.36,
                 label=NAMES[way])  # fmt: skip
    axes.set_xticks(range(len(data["calls"])), list(data["calls"]))
    axes.set_axisbelow(True)
    label(axes, ("system call", "系统调用"), ("cost / that of the ring", "代价 / 环的代价"))
    mark_prediction(axes, predicted)
    legend(axes)
    more, axes = pictures(height=2.9)
    for name in ("off", "a ring each", "one ring"):
        axes.plot(PROCESSORS, [row[name] for row in data["contention"]], "o-", markersize=4,
                  label=name)  # fmt: skip
    axes.set(xscale="log", yscale="log")
    ticks(axes, PROCESSORS)
    label(axes, ("processors", "处理器数"), ("getpid, millions/s", "getpid, 百万次/秒"))
    legend(axes)
    rings, axes = pictures(height=2.9)
    for number, name in enumerate(("a ring each", "one ring", "lines move")):
        axes.plot(PROCESSORS, [row[name] for row in data["rings"]], marker="osD"[number],
                  markersize=4, linewidth=1.2,
                  label="one ring, its lines move" if number == 2 else name)  # fmt: skip
    axes.plot(PROCESSORS, [row["exact"] for row in data["rings"]], "k:", label="one ring, exact")
    axes.set(xscale="log", yscale="log")
    ticks(axes, PROCESSORS)
    label(axes, ("processors", "处理器数"), ("getpid, millions/s", "getpid, 百万次/秒"))
    legend(axes)
    return [
        (share, "1 ns an instruction; dotted: what the devices do, one read at a time"),
        (cost, "Instructions of a record, counted in the guest"),
        (more, "On paper, from the measured cost: one ring lets in one processor at a time"),
        (rings, "Simulated, call by call: who comes to a ring at the same time waits"),
    ]


def tables(data: Data) -> Sequence[Table]:
    """Costs, shares, processors."""
    calls = [(name, call["off"], call["ring"], call["print"])
             for name, call in data["calls"].items()]  # fmt: skip
    shares = [(name, per_second, *(overhead(data, way, per_second) for way in WAYS))
              for name, per_second in data["rates"].items()]  # fmt: skip
    rows = [(str(row["processors"]), row["off"], row["a ring each"], row["one ring"])
            for row in data["contention"]]  # fmt: skip
    rings = [(str(row["processors"]), row["a ring each"], row["one ring"], row["lines move"],
              row["disorder"]) for row in data["rings"]]  # fmt: skip
    return [
        ("Instructions", ["call", "itself", "ring", "line"], calls),
        ("A processor's time, %", ["device", "reads/s", *NAMES.values()], shares),
        ("Millions of getpid a second", ["processors", "off", "a ring each", "one ring"], rows),
        ("Simulated; out of order: neighbours in the merged trace, clocks that are wrong by up to"
         f" {SKEW_NS} ns", ["processors", "a ring each", "one ring", "its lines move",
                            "out of order, %"], rings),
    ]  # fmt: skip


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    call, rates, last = data["calls"]["getpid"], data["rates"], data["rings"][-1]
    return (
        f"A record in the ring takes {data['cost']['ring']:,} instructions, and a line "
        f"{data['cost']['print']:,}: {result(data):.0f} times as many, even on a console that"
        " takes no time; getpid itself takes"
        f" {call['off']:,}.",
        f"At the {rates['hdd5400']:.0f} reads a second of the disk the ring costs "
        f"{overhead(data, 'ring', rates['hdd5400']):.2g} % of a processor, but on a serial line a"
        f" line of {data['line']} bytes takes {data['line'] * SERIAL_NS / 1e6:.1f} ms: "
        f"{overhead(data, 'serial', rates['hdd5400']):.0f} %, and on the SATA SSD "
        f"{overhead(data, 'serial', rates['sata-ssd']):,.0f} %.",
        f"With {last['processors']} processors one ring lets {last['one ring']:.1f} million calls a"
        f" second through, {last['lines move']:.1f} million if its cache lines have to move, and a"
        f" ring for each {last['a ring each']:.1f} million; the price is the order: with clocks"
        f" that are wrong by up to {SKEW_NS} ns, {last['disorder']:.0f} % of neighbours in the"
        " merged trace are the wrong way round.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    rates, rows = data["rates"], data["contention"]
    return {
        "a record costs something, and less than 2,000 instructions": all(
            0 < call["ring"] < 2000 for call in data["calls"].values()
        ),
        "a line costs over 5 times as much": all(
            call["print"] > 5 * call["ring"] for call in data["calls"].values()
        ),
        "at a disk's rate the ring costs less than a tenth of a percent": overhead(
            data, "ring", rates["hdd5400"]
        ) < 0.1,
        "a serial line costs over 10 percent there": overhead(data, "serial", rates["hdd5400"])
        > 10,
        "and cannot follow an SSD": overhead(data, "serial", rates["sata-ssd"]) > 100,
        "simulated, one ring is what mean value analysis says, within 3 percent": all(
            abs(row["one ring"] / row["exact"] - 1) < 0.03 for row in data["rings"]
        ),
        "and never more than on paper, within 3 percent": all(
            row[name] < 1.03 * paper[name] for row, paper in zip(data["rings"], rows, strict=True)
            for name in ("one ring", "a ring each")
        ),
        "lines that move make it slower": all(
            row["lines move"] < row["one ring"] for row in data["rings"][1:]
        ),
        "one processor's trace is in order, that of many clocks is not": data["rings"][0][
            "disorder"
        ] == 0 < data["rings"][-1]["disorder"],
        "one ring stops growing, rings of their own do not": rows[-1]["one ring"]
        == rows[-2]["one ring"] and rows[-1]["a ring each"] > 1.9 * rows[-2]["a ring each"],
    }  # fmt: skip


ABOUT = About(
    number=25,
    title="What a trace costs",
    chinese="跟踪的代价",
    question="To see what a system does somebody must write it down. What does a record cost in a"
    " ring in memory, in a ring for each processor, and as a line on the console?",
    expected="No figure was published. Ours: printk costs orders of magnitude more than a ring, and"
    " one ring for all processors becomes a queue.",
    ask=Question("times", "How many times as many instructions does a line of text on the console"
                 " take as a record in a ring?", "times"),
    method="tracecost in the guest, with -icount: getpid, and reads of 512 bytes from the page"
    " cache; no record, a record of lesson 3's ring (/proc/syscalls), or a line that the program"
    " writes to the console (printk in the kernel is lesson 3's measurement). The rates of devices"
    " are those of the models, one random read at a time. A serial line adds 87"
    " microseconds for a byte. More than one processor is worked out from the measured cost, and"
    " simulated with exponential times: this kernel has one. There, cache lines take 100 ns"
    " to another processor, and clocks are wrong by up to 100 ns; both are chosen.",
    changes="Records of fixed size without text, or one in a hundred, make the ring cheaper."
    " Clocks that all processors share keep the order; a number that all of them count up would be"
    " a ring's lock again. Text may be made later, by the reader: that is what"
    " /proc/syscalls does.",
)  # fmt: skip

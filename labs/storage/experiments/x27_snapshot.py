"""X27: what a writable snapshot of a drive costs those who write to the drive."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from math import hypot
from pathlib import Path

from matplotlib.figure import Figure

from labs.bench.counting import compile_plugin
from labs.storage.disk_model import drive, replay
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.experiments.guest import Phase, run_guest
from labs.storage.linux_program import COMPILER
from labs.storage.pages import both, legend, mark_prediction, pictures
from labs.tools.course.measurement import Question
from labs.tools.guest.initramfs import Entry, regular
from labs.tools.machine.qemu_command import Drive
from labs.tools.machine.work_folder import work_folder

COUNT, SMALL_COUNT = 300, 60
LENGTH = 4096
SECTORS = 39_070_288  # of the lab's drives at 1:100
STORE_SECTORS = SECTORS // 8
DRIVES = (("hdb", SECTORS), ("hdc", STORE_SECTORS))
WAYS = {"no snapshot": "", "P, 4 KiB": "P 8", "P, 8 KiB": "P 16", "P, 64 KiB": "P 128",
        "N, 8 KiB": "N 16"}  # fmt: skip
SMALL_WAYS = ("no snapshot", "P, 8 KiB", "N, 8 KiB")
CACHED = {"ms": "off", "on": "on", "unsafe": "on, no flush"}
TIMES = {"first": "-w 100", "again": "-w 100", "read": "-r"}
MARK = ".globl _start\n_start: xchg %bx, %bx\nmov $1, %eax\nxor %ebx, %ebx\nint $0x80\n"


def programs(place: Path) -> tuple[Entry, Path]:
    """A program that does nothing but mark a place for the plugin, and the plugin."""
    source, program = place / "count.s", place / "count"
    source.write_text(MARK)
    words = [COMPILER[0], "-static", "-nostdlib", str(source), "-o", str(program)]
    subprocess.run(words, check=True)
    return regular("bin/count", program.read_bytes()), compile_plugin(place)


def run_way(where: Where, line: str, count: int) -> tuple[list[Phase], list[float]]:
    """The phases of TIMES, of a guest with a snapshot or without, and the instructions of each."""
    with work_folder("images") as place:
        drives = []
        for unit, sectors in ((1, SECTORS), (2, STORE_SECTORS)):
            with Path(place, str(unit)).open("wb") as file:
                file.truncate(sectors * 512)
            drives.append(Drive(Path(place, str(unit)), unit))
        program, plugin = programs(place)
        script = [f"echo 'hdb hdc {line}' >/proc/snapshots"] if line else []
        for number, (time, words) in enumerate(TIMES.items(), 1):
            file = "/dev/dm-0" if line and time == "read" else "/dev/hdb"
            script.append(f"mark {number}; count; seekrw -f {file} -d -a {count} -l {LENGTH} "
                          f"-s 27 {words}; count")  # fmt: skip
        extra = ("-plugin", f"{plugin},into={place / 'counts'}")
        run = run_guest(where.build, "; ".join(script), drives, [program], extra=extra)
        counts = [int(word) for word in (place / "counts").read_text().split()][::2]
        spent = [after - before for before, after in zip(counts[::2], counts[1::2], strict=True)]
        return [run.phases[number] for number in range(1, len(TIMES) + 1)], spent


def with_caches(phase: Phase, count: int) -> Data:
    """Milliseconds an operation on drives with a cache: as asked, and by drives that say of a flush
    that it is done before anything is. What is left at the end is written in both, and counts."""
    found = {"on": 0.0, "unsafe": 0.0}
    for name, sectors in DRIVES:
        honest = [each for each in phase.of(name) if not each.operation.startswith("f")]
        for key, requests in (("on", phase.of(name)), ("unsafe", honest)):
            disk = drive("hdd5400", sectors, "on")
            total_ms = replay(requests, disk).total_ms
            found[key] += (total_ms + disk.flush(total_ms).transfer_ms) / count
    return found


def measure(where: Where) -> Data:
    """Random writes of the origin, the same ones again, and reads of the snapshot at the same
    places; what one more operation costs is measured, so that the program's start is not."""
    count, rows = SMALL_COUNT if where.small else COUNT, []
    for way in SMALL_WAYS if where.small else WAYS:
        phases, spent = run_way(where, WAYS[way], count)
        for time, phase, instructions in zip(TIMES, phases, spent, strict=True):
            ms = {name: 1000 * phase.seconds(name, drive("hdd5400", sectors)) / count
                  for name, sectors in DRIVES}  # fmt: skip
            margin = hypot(*(1000 * phase.margin(name, drive("hdd5400", sectors)) / count
                             for name, sectors in DRIVES))  # fmt: skip
            rows.append({
                "way": way, "time": time, "instructions": instructions / count,
                "origin": phase.count("hdb", "r") / count,
                "copies": phase.count("hdc", "w") / count,
                "flushes": phase.count("hdc", "f") / count,
                "written": phase.count("hdb", "w") / count,
                "store_reads": phase.count("hdc", "r") / count,
                "sectors": phase.sectors("hdc") / count, "ms_origin": ms["hdb"],
                "ms_store": ms["hdc"], "ms": ms["hdb"] + ms["hdc"],
                "margin": margin, **with_caches(phase, count),
            })  # fmt: skip
    return {"rows": rows, "count": count}


def of(data: Data, way: str, time: str) -> Data:
    """A row."""
    return next(row for row in data["rows"] if (row["way"], row["time"]) == (way, time))


def result(data: Data) -> float:
    """A first write with a snapshot, next to one without."""
    return of(data, "P, 8 KiB", "first")["ms"] / of(data, "no snapshot", "first")["ms"]


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """Milliseconds of a write, on the origin and on the store."""
    figure, axes = pictures(height=3.2)
    ways = list(dict.fromkeys(row["way"] for row in data["rows"]))
    for number, time in enumerate(("first", "again")):
        places = [place + 0.4 * number - 0.2 for place in range(len(ways))]
        rows = [of(data, way, time) for way in ways]
        said = "again 再次写" if number else "first write 第一次写"
        axes.bar(places, [r["ms_origin"] for r in rows], 0.36, color=f"C{number}", label=said)
        axes.bar(places, [r["ms_store"] for r in rows], 0.36, color=f"C{number}", alpha=0.4,
                 bottom=[r["ms_origin"] for r in rows],
                 label=None if number else "on the store 副本盘")  # fmt: skip
    axes.set(ylim=(0, 65))
    axes.set_xticks(range(len(ways)), ways, fontsize=8)
    axes.set_ylabel(both("ms for a write", "每次写的毫秒"))
    axes.set_xlabel(both("kind of snapshot, chunk", "快照类型, 块大小"))
    if predicted is not None:
        mark_prediction(axes, predicted * of(data, "no snapshot", "first")["ms"])
    legend(axes)
    flushes, axes = pictures(height=2.9)
    for number, (key, said) in enumerate(CACHED.items()):
        places = [place + 0.26 * (number - 1) for place in range(len(ways))]
        axes.bar(places, [of(data, way, "first")[key] for way in ways], 0.24, label=said)
    axes.set_xticks(range(len(ways)), ways, fontsize=8)
    axes.set_ylabel(both("ms for a first write", "第一次写的毫秒"))
    axes.set_xlabel(both("kind of snapshot, chunk", "快照类型, 块大小"))
    legend(axes)
    return [
        (figure, f"Random writes of {LENGTH} bytes; model of the 5400 rpm disk for both drives"),
        (flushes, "The drives' own caches, both drives together; at the end they are emptied"),
    ]


def tables(data: Data) -> Sequence[Table]:
    """Every figure."""
    requests = [
        (f"{r['way']}: {r['time']}", r["origin"], r["written"], r["store_reads"], r["copies"],
         r["flushes"])
        for r in data["rows"]
    ]  # fmt: skip
    costs = [(f"{r['way']}: {r['time']}", r["sectors"], round(r["instructions"]), r["ms_origin"],
              r["ms_store"], r["ms"], r["margin"]) for r in data["rows"]]  # fmt: skip
    return [
        ("Requests an operation: reads and writes of the origin; reads, writes and flushes of the "
         "store", ["", "read", "write", "s. read", "s. write", "s. flush"], requests),
        ("What an operation costs: sectors of the store, instructions, ms; ±95 %: from the spread"
         " of the requests' times",
         ["", "sectors", "instr.", "origin", "store", "ms", "±95 %"], costs),
        ("The drives' caches, ms an operation", ["", *CACHED.values()],
         [(f"{r['way']}: {r['time']}", *(r[key] for key in CACHED)) for r in data["rows"]]),
    ]  # fmt: skip


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    first, again = of(data, "P, 8 KiB", "first"), of(data, "P, 8 KiB", "again")
    memory, none = of(data, "N, 8 KiB", "first"), of(data, "no snapshot", "first")
    return (
        f"The first write of a chunk takes {result(data):.1f} times as long as one without a "
        f"snapshot: {first['origin']:.2f} reads of the origin, {first['copies']:.2f} writes and "
        f"{first['flushes']:.2f} flushes of the store come before it. With a cache in"
        f" the drives it takes {first['on']:.1f} ms instead of {first['ms']:.1f}, and without a"
        f" snapshot {none['on']:.1f} instead of {none['ms']:.1f}: a flush waits for what the cache"
        f" was to put off. Drives that ignore flushes would need {first['unsafe']:.1f} ms, and the"
        " snapshot would not be safe.",
        f"The same write again takes {again['ms']:.1f} ms, as without a snapshot "
        f"({of(data, 'no snapshot', 'again')['ms']:.1f} ms): a chunk is copied once.",
        f"With the table in memory only (N) it is {memory['ms']:.1f} ms instead of "
        f"{first['ms']:.1f}, and after a power cut there is no snapshot; the processor spends "
        f"{first['instructions'] - none['instructions']:,.0f} instructions more on a first write.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    first, again = of(data, "P, 8 KiB", "first"), of(data, "P, 8 KiB", "again")
    none, memory = of(data, "no snapshot", "first"), of(data, "N, 8 KiB", "first")
    read = of(data, "P, 8 KiB", "read")
    return {
        "without a snapshot a write is one request": none["written"] == 1 and none["copies"] == 0,
        "a first write: one read, a copy and a sector of the table": first["origin"] > 0.95
        and 1.9 < first["copies"] <= 2 and 1.9 < first["flushes"] <= 2,
        "with caches a first write takes 1.3 times as long by its flushes": first["on"]
        > 1.3 * first["unsafe"],
        "without flushes the cache makes it faster": first["unsafe"] < 0.9 * first["ms"],
        "with the table in memory: a read and a copy, no flush": memory["origin"] > 0.95
        and 0.95 < memory["copies"] <= 1 and memory["flushes"] == 0,
        "again: nothing but the write": again["origin"] == again["copies"] == 0,
        "and in the same time": abs(again["ms"] / of(data, "no snapshot", "again")["ms"] - 1)
        < 0.02,
        "a read of the snapshot is one request, of the store": read["store_reads"] == 1
        and read["origin"] == 0,
        "a first write takes 2 to 5 times as long": 2 < result(data) < 5,
    }  # fmt: skip


ABOUT = About(
    number=27,
    title="What does a snapshot cost?",
    chinese="快照的代价是多少?",
    question="A snapshot keeps what a drive had, while the drive is written. Each chunk is copied"
    " before it is written for the first time. What does a random write cost then, and the next"
    " one to the same place?",
    expected="Nothing was published. Copy on write reads the chunk, writes it elsewhere, and notes"
    " where; the note must be safe before the old contents go. A second write finds it copied.",
    ask=Question("times", "A random write of 4 KiB takes 1. How long does it take when its chunk of"
                 " 8 KiB must be copied first, on 5400 rpm disks?", "times"),
    method="seekrw writes 4 KiB at 300 random places of a drive of 20 GB, past the page cache; then"
    " at the same places; then it reads the snapshot there. P: the table is on the store, too. All"
    " requests go through the model of the 5400 rpm disk, without a cache and with one, each drive"
    " for itself; QEMU counts the instructions, the"
    " program's start among them.",
    changes="Writes that follow one another share a chunk: a larger one is copied for all of them,"
    " and for scattered writes a larger one only moves more. Reads of the snapshot in another order"
    " than that of the writes seek on the store. On an SSD nothing has to seek between"
    " the copy and the table. A drive with a cache that is safe has no flushes to wait for.",
)  # fmt: skip

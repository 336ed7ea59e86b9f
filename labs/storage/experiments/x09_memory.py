"""X9: a benchmark that reads a small file again and again measures memory."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.experiments.guest import data_image, run_guest
from labs.storage.pages import curves, label, legend, mark_prediction, pictures, ticks
from labs.tools.course.measurement import Question
from labs.tools.machine.qemu_command import Drive
from labs.tools.machine.work_folder import work_folder

MEMORY, SMALL_MEMORY = 128, 32  # MiB
FILES = (16, 32, 64, 128, 256)  # MiB
PASSES = (1, 2, 6)
CEILING, COPY = 400.0, 2900.0
"""MB/s that are assumed for a device and for memory. Both are published, of two machines: an array
with two links of 2 Gb, and six processes that read six cached files."""


def measure(where: Where) -> Data:
    """Reads each file once, twice and six times through the cache, and twice past it."""
    memory = SMALL_MEMORY if where.small else MEMORY
    sizes = (memory // 8, memory) if where.small else FILES
    script, cases = [], []
    for size in sizes:
        for passes in PASSES:
            cases.append((size, passes, "buffered"))
        cases.append((size, 2, "direct"))
    for number, (size, passes, way) in enumerate(cases, 1):
        flag = "iflag=direct" if way == "direct" else ""
        reads = f"dd if=/a/{size} of=/dev/null bs=64k {flag} 2>/dev/null; " * passes
        script.append(f"drop; mark {number}; {reads}")
    with work_folder("images", where.build.parent) as folder:
        image = data_image(
            folder / "image", (sum(sizes) + 40) << 20, {str(n): n << 20 for n in sizes}
        )
        done = run_guest(
            where.build, f"mount -t ext4 /dev/hdb /a; {''.join(script)} mark {len(cases) + 1}",
            [Drive(image, 1)], memory=memory,
        )  # fmt: skip
    rows = []
    for number, (size, passes, way) in enumerate(cases, 1):
        asked = passes * (size << 20)
        from_disk = done.phases[number].sectors("hdb", "r") * 512
        seconds = from_disk / CEILING / 1e6 + asked / COPY / 1e6 * (way == "buffered")
        rows.append({
            "case": f"{way} x{passes}", "way": way, "passes": passes, "ratio": size / memory,
            "share": from_disk / asked, "rate": asked / seconds / 1e6,
        })  # fmt: skip
    return {"rows": rows}


def of(data: Data, case: str) -> list[Data]:
    """A curve."""
    return [row for row in data["rows"] if row["case"] == case]


def result(data: Data) -> float:
    """The smallest file, read six times: the share of bytes from the disk, in percent."""
    return 100 * of(data, "buffered x6")[0]["share"]


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """Apparent rates below the ceiling, and where the bytes came from."""
    rate, axes = pictures()
    curves(axes, data["rows"], "ratio", "rate", "case")
    axes.axhline(CEILING, color="red", linewidth=1.5, label="ceiling of the fabric 链路上限")
    axes.set(xscale="log", yscale="log")
    ticks(axes, (0.125, 0.25, 0.5, 1, 2), (350, 400, 600, 1000, 1400))
    label(axes, ("file / memory", "文件 / 内存"), ("apparent rate, MB/s", "表观速率, MB/s"))
    legend(axes)
    share, axes = pictures(height=2.8)
    rows = [{**row, "share": 100 * row["share"]} for row in data["rows"]]
    curves(axes, rows, "ratio", "share", "case")
    axes.set(xscale="log", ylim=(0, 110))
    ticks(axes, (0.125, 0.25, 0.5, 1, 2))
    label(axes, ("file / memory", "文件 / 内存"), ("bytes from the disk, %", "来自磁盘, %"))
    mark_prediction(axes, predicted)
    legend(axes)
    return [(rate, "If the device gives 400 MB/s, and memory copies 2.9 GB/s (both assumed)"),
            (share, "Counted by QEMU: the rest came from the page cache.")]  # fmt: skip


def tables(data: Data) -> Sequence[Table]:
    """Every point."""
    rows = [(r["case"], r["ratio"], 100 * r["share"], r["rate"]) for r in data["rows"]]
    published = [("dd of 512 MB, one process", "815 MB/s"), ("two", "1.46 GB/s"),
                 ("six, on six files", "2.9 GB/s"),
                 ("another machine: two links of 2 Gb", "400 MB/s")]  # fmt: skip
    return [("Read sequentially", ["case", "file/memory", "from disk, %", "MB/s"], rows),
            ("Published ◆, of two machines", ["", "rate"], published)]  # fmt: skip


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    best = max(row["rate"] for row in data["rows"])
    return (
        f"Read six times, a file of an eighth of the memory seems to come at {best:,.0f} MB/s from "
        "a device that gives 400 (both rates are assumed): five of six passes never reached it.",
        "As soon as the file is larger than the memory each pass starts cold, because a sequential "
        "pass throws out what the next one needs first.",
        "A figure above the ceiling is not a fast disk but another experiment: this is a memory "
        "test.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    small, large = of(data, "buffered x6")[0], of(data, "buffered x6")[-1]
    return {
        "a small file's six passes read the disk once": 0.15 < small["share"] < 0.19,
        "they seem faster than the ceiling": small["rate"] > 2 * CEILING,
        "a file as large as the memory is read each time": large["share"] > 0.7,
        "direct reads come from the disk, every time": all(
            0.99 < row["share"] < 1.02 for row in data["rows"] if row["way"] == "direct"
        ),
        "no honest case is above the ceiling": all(
            row["rate"] <= CEILING * 1.01 for row in data["rows"] if row["way"] == "direct"
        ),
    }


ABOUT = About(
    number=9,
    title="This is a memory test",
    chinese="这是内存测试",
    question="A benchmark reads a file with dd and reports more than the connection to the disks"
    " can carry. What did it measure?",
    expected="Published, of one machine: dd of 512 MB gives 815 MB/s with one process, 1.46 GB/s"
    " with two, 2.9 GB/s with six, each on its file, from memory. Published, of another: 1 to 2"
    " GB/s are claimed for an array with links of 400 MB/s. Ours: honest figures need a file of"
    " twice the memory, or direct I/O.",
    ask=Question("share", "A file of an eighth of the memory is read six times. Which part of the"
                 " bytes comes from the disk?", "percent"),
    method="The guest has 128 MiB and reads files of 16 to 256 MiB with dd, from a cold start"
    " each time. QEMU counts what the drive is asked for. The share of the bytes is measured; the"
    " rate follows from it and from two assumed rates: 400 MB/s for these bytes, and 2.9 GB/s for"
    " each byte that memory copies.",
    changes="A replacement policy that keeps a part of a large file (X18) gives hits there, too."
    " More memory moves the knee. A faster fabric makes the error smaller.",
)  # fmt: skip

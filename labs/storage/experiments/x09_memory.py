"""X9: a benchmark that reads a small file again and again measures memory."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.experiments.guest import data_image, model, run_guest
from labs.storage.pages import curves, label, legend, mark_prediction, pictures, ticks
from labs.tools.course.measurement import Question
from labs.tools.machine.qemu_command import Drive
from labs.tools.machine.work_folder import work_folder

MEMORY, SMALL_MEMORY = 128, 32  # MiB
FILES = (16, 32, 64, 128, 256)  # MiB
PASSES = (1, 2, 6)
MODEL = "hdd15k"


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
        disks = [model(MODEL, image) for _ in cases]
        done = run_guest(
            where.build, f"mount -t ext4 /dev/hdb /a; {''.join(script)} mark {len(cases) + 1}",
            [Drive(image, 1)], memory=memory,
        )  # fmt: skip
    rows = []
    for number, (size, passes, way) in enumerate(cases, 1):
        asked = passes * (size << 20)
        phase = done.phases[number]
        from_disk, seconds = (
            phase.sectors("hdb", "r") * 512,
            phase.seconds("hdb", disks[number - 1]),
        )
        rows.append({
            "case": f"{way} x{passes}", "way": way, "passes": passes, "ratio": size / memory,
            "share": from_disk / asked, "rate": asked / seconds / 1e6,
            "drive": from_disk / seconds / 1e6,
        })  # fmt: skip
    return {"rows": rows}


def of(data: Data, case: str) -> list[Data]:
    """A curve."""
    return [row for row in data["rows"] if row["case"] == case]


def ceiling(data: Data) -> float:
    """MB/s of the drive itself, in the best case that reads past the cache."""
    return max(row["drive"] for row in data["rows"] if row["way"] == "direct")


def result(data: Data) -> float:
    """The smallest file, read six times: the share of bytes from the disk, in percent."""
    return 100 * of(data, "buffered x6")[0]["share"]


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """Apparent rates below the ceiling, and where the bytes came from."""
    rate, axes = pictures()
    curves(axes, data["rows"], "ratio", "rate", "case")
    axes.axhline(ceiling(data), color="red", linewidth=1.5, label="the drive itself 磁盘本身")
    axes.set(xscale="log", yscale="log")
    ticks(axes, (0.125, 0.25, 0.5, 1, 2), (200, 400, 800, 1200))
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
    return [(rate, "What dd has read over the seconds of the 15,000 rpm disk's model; memory"
                   " costs nothing here"),
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
    best, drive = (of(data, case)[0]["rate"] for case in ("buffered x6", "direct x2"))
    return (
        f"Read six times, a file of an eighth of the memory seems to come at {best:,.0f} MB/s from"
        f" a drive that gives {drive:,.0f} of that file in the model: five of six passes never"
        " reached it. What memory takes comes on top, so the real figure is lower,"
        " and says even less of the drive.",
        "As soon as the file is as large as the memory each pass starts cold, because a sequential "
        "pass throws out what the next one needs first.",
        "A figure above the ceiling is not a fast disk but another experiment: this is a memory "
        "test.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    small, large = of(data, "buffered x6")[0], of(data, "buffered x6")[-1]
    return {
        "a small file's six passes read the disk once": 0.15 < small["share"] < 0.19,
        "they seem over four times as fast as the same file past the cache": small["rate"]
        > 4 * of(data, "direct x2")[0]["rate"],
        "a file as large as the memory is read each time": large["share"] > 0.7,
        "direct reads come from the disk, every time": all(
            0.99 < row["share"] < 1.02 for row in data["rows"] if row["way"] == "direct"
        ),
        "no honest case is above the ceiling": all(
            row["rate"] <= ceiling(data) * 1.01 for row in data["rows"] if row["way"] == "direct"
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
    " each time. QEMU counts what the drive is asked for. The share of the bytes is measured, and"
    " the requests go through the model of the 15,000 rpm disk, one after another. The apparent"
    " rate is what dd has read over those seconds: an upper bound, as memory takes none. Files on"
    " inner tracks are read more slowly.",
    changes="A replacement policy that keeps a part of a large file (X18) gives hits there, too."
    " More memory moves the knee. A faster drive makes the error smaller: then"
    " the time of memory counts.",
)  # fmt: skip

"""X8: how much to copy at a time, by read and write or by mmap."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from labs.bench.counting import Counter
from labs.storage.disk_model import CACHES, SECTOR_BYTES, drive
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.experiments.guest import counted_rows, data_image, run_guest
from labs.storage.pages import label, legend, mark_prediction, pictures, size_ticks
from labs.tools.course.measurement import Question
from labs.tools.machine.qemu_command import Drive
from labs.tools.machine.work_folder import work_folder

DIRECT = "read, direct"
WAYS = ("read", DIRECT, "mmap", "both")
SIZES = (512, 4096, 32_768, 262_144, 2_097_152, 8_388_608)
SMALL_SIZES = (4096, 65_536, 2_097_152)
FILE, SMALL_FILE = 16 << 20, 2 << 20  # bytes
MEMORY = 64  # MiB
PAGE = 4096
STOCK, LARGE = 4096, SIZES[-1]
SOLARIS = {"mmap": 137.504, "read": 116.217}
"""Published seconds for 1,000 MB: both programs move 8 MB at a time, and one maps its source."""
INSTRUCTION_NS = 1
CACHE_NAMES = dict(zip(CACHES, ("no cache", "read-ahead", "cache on"), strict=True))


def cases_of(sizes: Sequence[int]) -> list[tuple[str, int]]:
    """Direct requests of 512 bytes tell nothing new and take a minute; pages are mapped whole."""
    return [(way, size) for way in WAYS for size in sizes if way == "read" or size >= PAGE]


def measure(where: Where) -> Data:
    """Copies one file in each way, each time from a cold start, and compares the copy."""
    size = SMALL_FILE if where.small else FILE
    cases = cases_of(SMALL_SIZES if where.small else SIZES)
    script = ["mount -t ext4 /dev/hdb /a", "cat /a/from >/a/to"]
    for number, (way, chunk) in enumerate(cases):
        words = f"-b {chunk} " + ("-d read" if way == DIRECT else way)
        script.append(
            f"rm -f /a/to; drop; mark {2 * number + 1}; cpbench -j {words} /a/from /a/to"
            f" && mark {2 * number + 2} && cpbench compare /a/from /a/to"
        )
    with work_folder("images", where.build.parent) as folder:
        image = data_image(folder / "image", 2 * size + (24 << 20), {"from": size})
        done = run_guest(where.build, " && ".join(script), [Drive(image, 1)], memory=MEMORY,
                         counter=Counter(("space_fault",)), icount=0)  # fmt: skip
        sectors = image.stat().st_size // SECTOR_BYTES
    rows = []
    for number, ((way, chunk), said) in enumerate(zip(cases, counted_rows(done), strict=True)):
        phase, count = done.phases[2 * number + 1], said["count"]
        disks = {each: phase.seconds("hdb", drive("hdd15k", sectors, each)) for each in CACHES}
        executed = count.instructions * INSTRUCTION_NS * 1e-9
        rows.append({
            "way": way, "buffer": chunk, "calls": said["calls"], "faults": count.calls[0],
            "kernel": count.kernel, "instructions": count.instructions,
            "requests": phase.count("hdb"), "disk_s": disks["off"],
            "seconds": disks["off"] + executed,
            "cached": {each: seconds + executed for each, seconds in disks.items()},
        })  # fmt: skip
    return {"rows": rows, "bytes": size}


def of(data: Data, way: str, buffer: int = 0) -> Data:
    """A point; without a buffer's size the last one of its curve, the largest."""
    rows = [row for row in data["rows"] if row["way"] == way]
    return next((row for row in rows if row["buffer"] == buffer), rows[-1])


def longer(data: Data, way: str) -> float:
    """By how many percent 4 KiB at a time take longer than the largest buffer."""
    return 100 * (of(data, way, STOCK)["seconds"] / of(data, way)["seconds"] - 1)


def result(data: Data) -> float:
    """Of the copy through the page cache."""
    return longer(data, "read")


def mapped(data: Data) -> float:
    """By how many percent a copy takes longer if its source is mapped, with the largest buffer."""
    return 100 * (of(data, "mmap")["seconds"] / of(data, "read")["seconds"] - 1)


def more_kernel(data: Data) -> float:
    """The kernel's instructions through the page cache against direct I/O, in percent, with the
    largest buffer."""
    return 100 * (of(data, "read")["kernel"] / of(data, DIRECT)["kernel"] - 1)


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """Time, calls and faults by the buffer."""
    time, (axes, cached) = pictures(2, height=2.9)
    work, (calls, steps) = pictures(2, height=2.9)
    megabytes, pages = data["bytes"] / 1e6, data["bytes"] / PAGE
    for way, style in zip(WAYS, ("o-", "s-", "^--", "v:"), strict=True):
        rows = [row for row in data["rows"] if row["way"] == way]
        sizes = [row["buffer"] for row in rows]
        for picture, values in (
            (axes, [1000 * row["seconds"] / megabytes for row in rows]),
            (cached, [1000 * row["seconds"] / megabytes for row in rows if way != DIRECT]),
            (calls, [(row["calls"] + row["faults"]) / pages for row in rows]),
            (steps, [row["kernel"] / pages for row in rows]),
        ):
            if values:
                picture.plot(sizes, values, style, markersize=4, linewidth=1.2, label=way)
    if predicted is not None:
        base = 1000 * of(data, "read")["seconds"] / megabytes
        mark_prediction(cached, base * (1 + predicted / 100))
    drives, own = pictures(height=3.1)
    for number, way in enumerate(("read", DIRECT)):
        rows = [row for row in data["rows"] if row["way"] == way and row["buffer"] >= PAGE]
        for cache, style in zip(CACHES, ("o-", "s--", "^:"), strict=True):
            own.plot([row["buffer"] for row in rows],
                     [1000 * row["cached"][cache] / megabytes for row in rows], style,
                     color=f"C{number}", markersize=4, linewidth=1.2,
                     label=f"{way}, {CACHE_NAMES[cache]}")  # fmt: skip
    buffer = ("bytes at a time", "每次的字节数")
    label(axes, buffer, ("ms per MB", "每 MB 的毫秒"))
    label(cached, buffer, ("ms per MB, cached", "每 MB 的毫秒 (缓存)"))
    label(calls, buffer, ("calls and faults per page", "每页的调用与缺页"))
    label(steps, buffer, ("kernel, instructions per page", "内核指令/页"))
    slowest = max(row["seconds"] for row in data["rows"] if row["way"] != DIRECT)
    cached.set(ylim=(0, 1250 * slowest / megabytes))
    label(own, buffer, ("ms per MB", "每 MB 的毫秒"))
    for each in (axes, cached, calls, steps, own):
        each.set(xscale="log", yscale="linear" if each is cached else "log")
        sizes = {row["buffer"] for row in data["rows"]}
        size_ticks(each, sorted(sizes - {512} if each is own else sizes))
    steps.set_yticks([5000, 10_000, 20_000, 40_000], ["5,000", "10,000", "20,000", "40,000"])
    legend(axes)
    legend(cached)
    legend(calls)
    legend(own)
    return [
        (time, "A cold file copied on one 15,000 rpm disk: the disk's time by the model, and one"
               " ns for an instruction"),
        (drives, "The drive's own cache: off, read-ahead only, and on; at the end it is emptied"),
        (work, "What a page of 4 KiB costs the processor"),
    ]  # fmt: skip


def tables(data: Data) -> Sequence[Table]:
    """Every point, and the comparisons."""
    pages = data["bytes"] / PAGE
    rows = [(f"{r['way']}, {r['buffer']:,}", r["seconds"], r["disk_s"], r["requests"], r["calls"],
             r["faults"], r["kernel"] / pages) for r in data["rows"]]  # fmt: skip
    columns = ["way, buffer", "s", "of it disk", "requests", "calls", "faults", "kernel/page"]
    more = [
        ("4 KiB against the largest buffer, time", "-", f"{result(data):.1f} %"),
        ("the same, direct", "-", f"{longer(data, DIRECT):,.0f} %"),
        ("mapped against read, largest buffer, time", "18.3 % ◇", f"{mapped(data):.1f} %"),
        ("kernel, cached against direct: stock cp; read", "32 % ◆", f"{more_kernel(data):.0f} %"),
    ]
    cached = [(f"{r['way']}, {r['buffer']:,}", *(r["cached"][each] for each in CACHE_NAMES))
              for r in data["rows"]]  # fmt: skip
    return [(f"A file of {data['bytes']:,} bytes", columns, rows),
            ("The drive's cache, s", ["way, buffer", *CACHE_NAMES.values()], cached),
            ("More by", ["", "Solaris, 2007", "here"], more)]  # fmt: skip


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    small, large = of(data, DIRECT, STOCK), of(data, DIRECT)
    both, pages, more = of(data, "both"), data["bytes"] / PAGE, mapped(data)
    return (
        f"Past the page cache the buffer is the request: with 4 KiB the arm moves "
        f"{small['requests']:,} times, and the copy takes {small['seconds'] / large['seconds']:.0f}"
        f" times as long as with the largest buffer; a drive that caches reads and writes leaves"
        f" {small['cached']['on'] / large['cached']['on']:.1f} times of that.",
        f"Through the page cache 4 KiB take {result(data):.1f} % longer, as read-ahead and"
        " write-back"
        f" make the requests; the kernel executes {more_kernel(data):.0f} % more than past it,"
        " because it copies. A drive with"
        " read-ahead and without a cache for writes takes"
        f" {of(data, 'read')['cached']['read'] / of(data, 'read')['seconds']:.1f} times as long:"
        " each request that writes has just missed its turn.",
        f"A source that is mapped takes {abs(more):.1f} % {'longer' if more > 0 else 'less time'}"
        " than one that is read (on Solaris 18.3 % longer, computed: it maps and unmaps 8 MB at a"
        " time). Mapping both files saves the"
        f" copies, and pays with {both['faults'] / pages:.2f} faults a "
        f"page: {both['kernel'] / pages:,.0f} instructions of the kernel, against "
        f"{of(data, 'read')['kernel'] / pages:,.0f} by read and write.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    pages = data["bytes"] / PAGE
    direct = [row["seconds"] for row in data["rows"] if row["way"] == DIRECT]
    cached = [row for row in data["rows"] if row["way"] == "read"]
    return {
        "direct: each larger buffer is faster": direct == sorted(direct, reverse=True),
        "direct: 4 KiB take over ten times as long as the largest": direct[0] > 10 * direct[-1],
        "cached: from 4 KiB on no buffer takes 1.5 times as long as the largest": all(
            row["seconds"] < 1.5 * cached[-1]["seconds"]
            for row in cached if row["buffer"] >= STOCK
        ),
        "direct, 4 KiB: with the drive's cache it takes less than half": of(data, DIRECT, STOCK)[
            "cached"
        ]["on"] < direct[0] / 2,
        "the kernel executes more through the cache than past it": more_kernel(data) > 10,
        "read and write: two calls a buffer, and fsync": all(
            row["calls"] == 2 * -(-data["bytes"] // row["buffer"]) + 1 for row in cached
        ),
        "a page that is mapped is a fault, two with both files; read has none": all(
            abs(of(data, way)["faults"] / pages - count) < 0.1
            for way, count in (("read", 0), ("mmap", 1), ("both", 2))
        ),
        "computed: 137.504 s are 18.3 % more than 116.217 s": abs(
            SOLARIS["mmap"] / SOLARIS["read"] - 1.183
        ) < 0.0005,
    }  # fmt: skip


ABOUT = About(
    number=8,
    title="How much to copy at a time, and mmap",
    chinese="每次拷贝多少, 以及 mmap",
    question="cp reads and writes a few KiB at a time. How much faster is it with 8 MiB, and is"
    " it better still to map the files?",
    expected="Published for 1,000 MB on Solaris: 137.504 s with its cp, which maps 8 MB of the"
    " source at a time, and 116.217 s with one that reads 8 MB; 14.363 and 14.264 s of them in"
    " the kernel. Computed: mapping took 18.3 % longer. Published, too: its cp needs 32 % more"
    " kernel time with a page cache (14.363 s) than on a mount with direct I/O (10.853 s), which"
    " its author could not explain. Nobody has published what a small buffer costs: that is ours.",
    ask=Question("longer", "A cold file is copied through the page cache. By how many percent does"
                 " it take longer with 4 KiB at a time than with 8 MiB?", "percent"),
    method="cpbench copies a file within one ext4, with a cold cache, and ends with fsync; then"
    " the copy is compared. \"both\" maps source and target. QEMU's requests go through the model"
    " of the 15,000 rpm disk, without a cache and with one; a plugin of QEMU counts instructions"
    " and faults. The processor does nothing while the disk works, and executes one instruction a"
    " nanosecond. The guest's clock counts instructions, too, so the thread that writes back"
    " what is 5 s old does not join in where this computer is busy. Nothing is random here: the"
    " figures of a second run are the same, so they have no interval.",
    changes="A second disk for the target: no arm goes to and fro. A kernel whose write-back"
    " waits for many dirty pages gains less from the program's buffer; the one of 2006 gained"
    " more. An SSD does not seek: what is left is the number of calls.",
)  # fmt: skip

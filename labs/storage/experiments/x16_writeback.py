"""X16: how much write-back writes at once, and how a writer is held back."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from labs.storage import fsx
from labs.storage.disk_model import Request, drive, replay
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.experiments.guest import run_guest
from labs.storage.pages import label, legend, mark_prediction, pictures, size_ticks, ticks
from labs.storage.published import mark
from labs.tools.course.measurement import Question
from labs.tools.machine.qemu_command import Drive
from labs.tools.machine.work_folder import work_folder

MB = 1_000_000
CHUNKS = (1, 2, 4, 8, 16, 40, 64)  # MB of a file before the next file's turn
STREAMS, APART = 4, 100_000  # files, and MB from one to the next
REQUEST = 1000  # sectors
MEMORY, LIMITS = 1000, (0.05, 0.1, 0.2, 0.4)
WRITERS, COPY, DISK = 4, 800.0, 80.0  # MB/s
CALL, PAUSE = 1.0, 0.2  # MB of a write(); seconds that a writer sleeps at most
SECONDS, SMALL_SECONDS = 60.0, 20.0
GUEST_MEMORY, SMALL_GUEST_MEMORY = (48, 64, 96, 128, 192, 256), (64, 256)  # MiB
TURNS, TURN = 16, 512  # of each of STREAMS files in the guest, and KiB of a turn
IMAGE_BYTES = 8 << 30  # of their file system
GUEST_BYTES = STREAMS * TURNS * TURN << 10
FLASH, ERASE_BLOCK, SHIFT = "gkey-flash", 65_536, 4096  # its unit, and a wrong start, in bytes
FLASH_SIZES = tuple(kib << 10 for kib in (16, 32, 48, 64, 96, 128, 192, 256, 512, 1024))
FLASH_APART, FLASH_TURNS = 1 << 30, 16
GUEST_SHIFT = 3  # 8 ns an instruction


def rate(name: str, chunk: int, total: int) -> float:
    """MB/s of write-back that takes turns over the files, on a drive."""
    apart = APART if name == "hdd5400" else 10_000
    requests, sectors = [], chunk * MB // 512 // REQUEST * REQUEST
    for turn in range(total // chunk // STREAMS):
        for stream in range(STREAMS):
            start = stream * apart * MB // 512 + turn * sectors
            requests += [Request("write", at, REQUEST)
                         for at in range(start, start + sectors, REQUEST)]  # fmt: skip
    moved = len(requests) * REQUEST * 512 / MB
    return moved / replay(requests, drive(name)).total_ms * 1000


def flash_rate(size: int, shift: int) -> float:
    """MB/s of write-back that writes so many bytes of a file before the next file's turn, on flash
    whose erase blocks show; the first write of each file begins `shift` bytes off."""
    requests = [Request("write", (file * FLASH_APART + turn * size + shift) // 512, size // 512)
                for turn in range(FLASH_TURNS) for file in range(STREAMS)]  # fmt: skip
    return len(requests) * size / MB / replay(requests, drive(FLASH)).total_ms * 1000


def throttled(way: str, chunk: float, limit: float, seconds: float) -> tuple[list[float], Data]:
    """How long each write() takes, in seconds, and the dirty MB over time.

    caller: above the limit a writer writes a chunk itself, after those of others. sleep: the
    kernel writes; above half of the limit a writer sleeps for what it made dirty, over its share of
    the disk's rate, at most PAUSE.
    """
    ready, disk_free, now, dirty = [0.0] * WRITERS, 0.0, 0.0, 0.0
    most, calls, curve = limit * MEMORY, [], []
    while now < seconds:
        writer = min(range(WRITERS), key=ready.__getitem__)
        if way == "sleep":
            dirty = max(0.0, dirty - (ready[writer] - now) * DISK)
        now, pause = ready[writer], 0.0
        dirty += CALL
        if way == "caller" and dirty > most:
            disk_free = max(disk_free, now) + chunk / DISK
            dirty, pause = dirty - chunk, disk_free - now
        elif way == "sleep" and dirty > most / 2:
            share = DISK / WRITERS * max(0.05, 2 * (most - dirty) / (most / 2))
            pause = min(PAUSE, CALL / share)
        calls.append(CALL / COPY * WRITERS + pause)
        ready[writer] = now + calls[-1]
        curve.append((now, dirty))
    return calls, {"time": [t for t, _ in curve[::20]], "dirty": [d for _, d in curve[::20]]}


def runs_of(requests: Sequence[Request]) -> list[int]:
    """Sectors that are written without a gap, one after another."""
    runs, after = list[int](), -1
    for each in requests:
        if each.lba == after:
            runs[-1] += each.sectors
        else:
            runs.append(each.sectors)
        after = each.lba + each.sectors
    return runs


def in_guest(where: Where) -> list[Data]:
    """STREAMS files grow in turns, by one program at a time, with little memory and with much: the
    kernel lets an eighth of it be dirty. Then all is written.

    One program at a time, and time that counts instructions: so neither the speed of this computer
    nor that of its disk says who writes what. With four programs at once the order of their
    requests is that of their waiting, and each run differs.
    """
    files = " ".join(str(each) for each in range(STREAMS))
    script = (
        f"mount -t ext4 /dev/hdb /a && cd /a && mkdir {files} && mark 1 && "
        f"for n in $(seq 0 {TURNS - 1}); do for i in {files}; do "
        f"dd if=/dev/zero of=$i/f bs={TURN}k seek=$n count=1 conv=notrunc 2>/dev/null || exit 1; "
        "done; done; sync; mark 2"
    )
    rows = []
    with work_folder("images", where.build.parent) as folder:
        image = folder / "image"
        with image.open("wb") as file:
            file.truncate(IMAGE_BYTES)
        fsx.tool("mke2fs", "-q", "-F", "-t", "ext4", "-b", "4096", "-E", "lazy_itable_init=1",
                 str(image))  # fmt: skip
        for memory in SMALL_GUEST_MEMORY if where.small else GUEST_MEMORY:
            done = run_guest(where.build, script, [Drive(image, 1)], memory=memory,
                             icount=GUEST_SHIFT)  # fmt: skip
            phase = done.phases[1]
            runs = runs_of([each for each in phase.of("hdb") if each.operation.startswith("w")])
            moved = sum(runs) * 512 / MB
            rows.append({"memory": memory, "runs": len(runs), "run": moved / len(runs),
                         "moved": moved, "rate": moved / phase.seconds("hdb", drive("hdd5400"))
                         })  # fmt: skip
    return rows


CASES = {"caller, 4 MB": ("caller", 4.0), "caller, 40 MB": ("caller", 40.0), "sleep": ("sleep", 0)}


def measure(where: Where) -> Data:
    """The sizes of a turn, and both ways to hold writers back; what the guest's kernel does."""
    total, seconds = (400, SMALL_SECONDS) if where.small else (1600, SECONDS)
    chunks = [{"drive": name, "chunk": chunk, "rate": rate(name, chunk, total)}
              for name in ("hdd5400", "sata-ssd") for chunk in CHUNKS]  # fmt: skip
    rows, curves = [], {}
    for case, (way, chunk) in CASES.items():
        for limit in LIMITS:
            calls, curve = throttled(way, chunk, limit, seconds)
            calls.sort()
            rows.append({"case": case, "limit": limit, "median": calls[len(calls) // 2],
                         "p99": calls[int(len(calls) * 0.99)], "longest": calls[-1],
                         "top": max(curve["dirty"]),
                         "steps": calls[:: max(1, len(calls) // 200)]})  # fmt: skip
            curves[f"{case}, {limit:g}"] = curve
    flash = [{"size": size, "even": flash_rate(size, 0), "shifted": flash_rate(size, SHIFT)}
             for size in FLASH_SIZES]  # fmt: skip
    return {"chunks": chunks, "rows": rows, "curves": curves, "flash": flash,
            "guest": in_guest(where)}  # fmt: skip


def speed(data: Data, name: str, chunk: int) -> float:
    """A point."""
    return next(r["rate"] for r in data["chunks"] if (r["drive"], r["chunk"]) == (name, chunk))


def of(data: Data, case: str) -> Data:
    """A way, with a limit of 20 percent."""
    return next(r for r in data["rows"] if (r["case"], r["limit"]) == (case, 0.2))


def on_flash(data: Data, size: int) -> Data:
    """A point."""
    return next(row for row in data["flash"] if row["size"] == size)


def result(data: Data) -> float:
    """The gain from 4 to 40 MB, in percent."""
    return 100 * (speed(data, "hdd5400", 40) / speed(data, "hdd5400", 4) - 1)


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """The gain of larger turns; dirty pages over time; how long calls take."""
    gain, axes = pictures(height=2.9)
    for name in ("hdd5400", "sata-ssd"):
        gains = [100 * (speed(data, name, c) / speed(data, name, 4) - 1) for c in CHUNKS]
        axes.plot(CHUNKS, gains, "o-", markersize=4, label=name)
    mark(axes, [40], [20])
    axes.set(xscale="log")
    ticks(axes, CHUNKS)
    label(axes, ("MB of a file at a time", "每次写的 MB"), ("faster than 4 MB, %", "比 4 MB 快, %"))
    mark_prediction(axes, predicted)
    legend(axes)
    blocks, axes = pictures(height=2.9)
    for key, said in (("even", "at multiples of 64 KiB 对齐"), ("shifted", "4 KiB off 偏移 4 KiB")):
        axes.plot(FLASH_SIZES, [row[key] for row in data["flash"]], "o-", markersize=4, label=said)
    axes.axvline(ERASE_BLOCK, color="C7", linestyle=":", label="erase block 擦除块")
    axes.set(xscale="log", ylim=(0, None))
    size_ticks(axes, [16 << 10, ERASE_BLOCK, 256 << 10, 1 << 20])
    label(axes, ("bytes of a file at a time", "每次写的字节数"), ("rate, MB/s", "速率, MB/s"))
    legend(axes)
    figure, (upper, lower) = pictures(2, height=2.9)
    for case in CASES:
        curve, row = data["curves"][f"{case}, 0.2"], of(data, case)
        upper.plot(curve["time"], curve["dirty"], linewidth=1, label=case)
        parts = [100 * (n + 1) / len(row["steps"]) for n in range(len(row["steps"]))]
        lower.plot([1000 * each for each in row["steps"]], parts, label=case)
    lower.set(xscale="log")
    label(upper, ("time, s", "时间, 秒"), ("dirty, MB", "脏页, MB"))
    label(lower, ("a write of 1 MB, ms", "写 1 MB, 毫秒"), ("calls, %", "调用, %"))
    legend(lower)
    own, (upper, lower) = pictures(2, height=2.5)
    memory = [row["memory"] for row in data["guest"]]
    for axes, what in ((upper, "run"), (lower, "rate")):
        axes.plot(memory, [row[what] for row in data["guest"]], "o-", markersize=4)
        axes.set(ylim=(0, None))
    label(upper, ("memory, MiB", "内存, MiB"), ("MB without a seek", "连续写的 MB"))
    label(lower, ("memory, MiB", "内存, MiB"), ("rate, MB/s, hdd5400", "速率, MB/s"))
    return [(gain, "Four files take turns; the rate of write-back"),
            (blocks, "The same on the flash of a netbook, which rewrites a whole erase block of"
                     " 64 KiB for a part of one"),
            (figure, "Four writers, 80 MB/s, 1 GB of memory, a limit of 20 percent"),
            (own, "This kernel: four files grow in turns; counted by QEMU")]  # fmt: skip


def tables(data: Data) -> Sequence[Table]:
    """Every point."""
    ways = [(f"{r['case']}, limit {100 * r['limit']:g} %", 1000 * r["median"], 1000 * r["p99"],
             1000 * r["longest"], r["top"]) for r in data["rows"]]  # fmt: skip
    rates = [(f"{c} MB", speed(data, "hdd5400", c), speed(data, "sata-ssd", c)) for c in CHUNKS]
    flash = [(f"{r['size'] >> 10} KiB", r["even"], r["shifted"]) for r in data["flash"]]
    return [("MB/s on flash with erase blocks of 64 KiB", ["at a time", "even", "4 KiB off"],
             flash),
            ("MB/s of write-back", ["at a time", "hdd5400", "sata-ssd"], rates),
            ("A write of 1 MB, ms", ["", "median", "p99", "longest", "dirty MB, most"],
             ways),
            ("In the guest", ["memory", "runs", "MB/run", "MB written", "MB/s"],
             [(f"{r['memory']} MiB", r["runs"], r["run"], r["moved"], r["rate"])
              for r in data["guest"]])]  # fmt: skip


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    small, large = of(data, "caller, 4 MB"), of(data, "caller, 40 MB")
    first, last = data["guest"][0], data["guest"][-1]
    return (
        f"With 40 MB of a file at a time instead of 4 the disk writes {result(data):.0f} % more a "
        "second (published: 20 %), because there are a tenth of the seeks. The"
        " SSD gains nothing by construction: its model has no cost that a longer write saves."
        f" Flash whose erase blocks show has a step at 64 KiB: 32 KiB at a time give"
        f" {on_flash(data, 32 << 10)['even']:.1f} MB/s, 64 KiB"
        f" {on_flash(data, ERASE_BLOCK)['even']:.1f}, 96 KiB"
        f" {on_flash(data, 96 << 10)['even']:.1f}, and 64 KiB that begin 4 KiB off"
        f" {on_flash(data, ERASE_BLOCK)['shifted']:.1f}.",
        f"Writers that write out themselves pay for it: the longest call takes "
        f"{small['longest']:.1f} s with 4 MB and {large['longest']:.1f} s with 40 MB, as all"
        " of them wait for one disk.",
        f"This kernel lets the caller write: {first['run']:.1f} MB without a seek with"
        f" {first['memory']} MiB of memory, {last['run']:.1f} MB and"
        f" {last['rate'] / first['rate']:.1f} times the rate with {last['memory']}."
        f" Writers that sleep for their dirty pages wait {1000 * of(data, 'sleep')['longest']:.0f}"
        " ms at most, and the kernel may write as much at once as is good for the disk.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    return {
        "40 MB instead of 4 MB gain 10 to 35 percent on the disk": 10 < result(data) < 35,
        "on the SSD they gain less than 1 percent": abs(
            speed(data, "sata-ssd", 40) / speed(data, "sata-ssd", 4) - 1
        ) < 0.01,
        "on flash an erase block at a time is over 2.5 times as fast as half of one": on_flash(
            data, ERASE_BLOCK
        )["even"] > 2.5 * on_flash(data, ERASE_BLOCK // 2)["even"],
        "one and a half of them are slower than one": on_flash(data, ERASE_BLOCK * 3 // 2)["even"]
        < on_flash(data, ERASE_BLOCK)["even"],
        "begun elsewhere, it is at most 0.6 times as fast": on_flash(data, ERASE_BLOCK)["shifted"]
        < 0.6 * on_flash(data, ERASE_BLOCK)["even"],
        "in the guest all is written": all(
            row["moved"] > 0.99 * GUEST_BYTES / MB for row in data["guest"]
        ),
        "with 64 MiB of memory over 1 MB without a seek": all(
            row["run"] > 1 for row in data["guest"] if row["memory"] == 64
        ),
        "with the most 1.5 times as much": data["guest"][-1]["run"]
        > 1.5 * data["guest"][0]["run"],
        "and 1.2 times as fast": data["guest"][-1]["rate"] > 1.2 * data["guest"][0]["rate"],
        "writers that write 40 MB wait for over a second": of(data, "caller, 40 MB")["longest"] > 1,
        "with 4 MB it is a tenth of it": of(data, "caller, 4 MB")["longest"]
        < of(data, "caller, 40 MB")["longest"] / 5,
        "writers that sleep wait for 0.21 s at most": of(data, "sleep")["longest"] <= 0.21,
        "the limit holds": all(r["top"] <= r["limit"] * MEMORY * 1.05 + 5 for r in data["rows"]),
    }  # fmt: skip


ABOUT = About(
    number=16,
    title="How much write-back writes at once, and who waits",
    chinese="回写多大一批, 谁等待",
    question="The kernel writes dirty pages file by file. What does it gain by writing more of a"
    " file before the next one, and what does a program notice that writes too fast?",
    expected="Published as notes, without disk or files: 40 MB at a time instead of 4 MB write"
    " out 20 % faster. Ours: if the caller writes it waits long; if it sleeps for what it made"
    " dirty, for 200 ms at most, as the model has it.",
    ask=Question("gain", "Four files are written at once. By how many percent is the disk faster"
                 " with 40 MB of a file at a time than with 4?", "percent"),
    method="Writes of 512 kB for four files that are 100 GB apart, replayed on the models of the"
    " 5400 rpm disk and of the SATA SSD, and shorter ones on that of a netbook's flash."
    " Throttling is a model with four writers, a disk of 80 MB/s"
    " and a limit of dirty pages: the caller writes a chunk, or sleeps. In the"
    f" guest four files of {TURNS * TURN >> 10} MiB grow in turns of {TURN} KiB, with more and more"
    " memory; QEMU counts what is written without a gap, and the model of the disk says how long it"
    " takes. One program writes at a time, so the figures do not depend on this computer.",
    changes="Files that are near each other have short seeks, and gain less. A drive that erases"
    " 1 MB at a time and cannot write elsewhere wants chunks of that size, at its boundaries. One"
    " slow drive next to a fast one needs a limit for each.",
)  # fmt: skip

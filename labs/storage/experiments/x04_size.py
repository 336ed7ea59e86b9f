"""X4: the size of a read, from a sector to 16 MiB."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from labs.storage.disk_model import FULL_SECTORS, Request, drive, replay
from labs.storage.experiments import margins
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.experiments.guest import run_guest, sized_disks
from labs.storage.pages import curves, label, legend, mark_prediction, pictures, size_ticks
from labs.tools.course.measurement import Question
from labs.tools.machine.qemu_command import Drive

SCALE = 100
SIZES = (512, 4096, 65_536, 1 << 20, 4 << 20, 16 << 20)
SMALL_SIZES = (512, 4 << 20)
BYTES = 64 << 20  # read for each point, at most
MOST, LEAST = 200, 8  # reads
PLACES = {"raw": ("hdb", "/dev/hdb"), "pointers": ("hdc", "/a/big"), "extents": ("hdd", "/b/big")}
MODELS = ("hdd5400", "sata-ssd")


def count_of(size: int) -> int:
    """Reads of a size."""
    return max(LEAST, min(MOST, BYTES // size))


def far_apart(requests: Sequence[Request]) -> list[Request]:
    """On a full-size drive: what is a gap at 1:100 is one a hundred times as long there, and what
    follows on still follows on."""
    moved, here, there = [], 0, 0
    for request in requests:
        there = there + (request.lba - here) * (1 if abs(request.lba - here) <= 8192 else SCALE)
        moved.append(Request(request.operation, max(0, there) % (FULL_SECTORS - 65536),
                             request.sectors))  # fmt: skip
        here, there = request.lba + request.sectors, moved[-1].lba + request.sectors
    return moved


def measure(where: Where) -> Data:
    """Each size on each place, from a cold start, with O_DIRECT."""
    images = sized_disks(where.build, SCALE)
    cases = [(size, place) for size in (SMALL_SIZES if where.small else SIZES) for place in PLACES]
    script = ["mount -t ext3 /dev/hdc /a; mount -t ext4 /dev/hdd /b; "]
    for number, (size, place) in enumerate(cases, 1):
        script.append(f"drop; mark {number}; seekrw -f {PLACES[place][1]} -a {count_of(size)} "
                      f"-l {size} -s 4 -r -d && ")  # fmt: skip
    drives = [Drive(image, unit) for unit, image in enumerate(images, 1)]
    run = run_guest(
        where.build, "".join(script) + f"mark {len(cases) + 1}", drives, memory=128, seconds=500
    )
    rows = []
    for number, (size, place) in enumerate(cases, 1):
        asked = run.phases[number].of(PLACES[place][0])
        for name in MODELS:
            disk = drive(name) if name == "hdd5400" else drive(name, FULL_SECTORS)
            done = replay(far_apart(asked), disk)
            seconds = done.total_ms / 1000
            rows.append({
                "place": place, "drive": name, "case": f"{place}, {name}", "size": size,
                "ms": 1000 * seconds / count_of(size),
                "margin": margins.of_total_ms(done) / count_of(size),
                "rate": size * count_of(size) / seconds / 1e6,
                "requests": len(asked) / count_of(size),
            })  # fmt: skip
    return {"rows": rows}


def ratio(data: Data, size: int, name: str = "hdd5400") -> float:
    """Pointers to extents."""
    ms = {r["place"]: r["ms"] for r in data["rows"] if (r["size"], r["drive"]) == (size, name)}
    return ms["pointers"] / ms["extents"]


def result(data: Data) -> float:
    """At 4 MiB."""
    return ratio(data, 4 << 20)


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """Time, rate, and the price of the pointers."""
    figures, sizes = [], sorted({row["size"] for row in data["rows"]})
    for key, names in (
        ("ms", ("ms per read", "每次读, 毫秒")),
        ("rate", ("rate, MB/s", "速率")),
    ):
        figure, axes = pictures()
        curves(axes, data["rows"], "size", key, "case")
        axes.set(xscale="log", yscale="log")
        size_ticks(axes, sizes)
        label(axes, ("bytes per read", "每次读的字节数"), names)
        legend(axes)
        figures.append((figure, "Direct random reads, on two models"))
    figure, axes = pictures(height=2.6)
    for name in MODELS:
        axes.plot(sizes, [ratio(data, size, name) for size in sizes], "o-", label=name)
    axes.set(xscale="log")
    size_ticks(axes, sizes)
    label(axes, ("bytes per read", "每次读的字节数"), ("pointers / extents", "指针 / 区段"))
    mark_prediction(axes, predicted)
    legend(axes)
    return [*figures, (figure, "What block pointers cost")]


def tables(data: Data) -> Sequence[Table]:
    """Every point."""
    rows = [
        (r["case"], r["size"], r["requests"], r["ms"], r["margin"], r["rate"]) for r in data["rows"]
    ]
    return [
        (
            "By size; ±95 %: from the spread of the requests' times",
            ["place, drive", "bytes", "requests/read", "ms/read", "±95 %", "MB/s"],
            rows,
        )
    ]


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    return (
        f"Block pointers cost {100 * ratio(data, 512) - 100:.0f} % at 512 bytes and "
        f"{100 * result(data) - 100:.0f} % at 4 MiB: one pointer block maps 4 MiB, so a long read "
        "needs one or two of them, and no more.",
        "On the disk the time hardly changes up to some 64 KiB, because seek and rotation are 15 "
        "ms "
        "and 64 KiB pass in one; from there on it grows with the size.",
        "On the SSD there is no seek to hide in: a second request for 4 KiB costs nearly what the "
        "first one did.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    return {
        "512 bytes: pointers cost 25 to 60 % more": 1.25 < ratio(data, 512) < 1.6,
        "4 MiB: less than 25 %": ratio(data, 4 << 20) < 1.25,
        "longer reads are faster in MB/s": all(
            a["rate"] < b["rate"] for a in data["rows"] for b in data["rows"]
            if a["case"] == b["case"] and b["size"] >= 64 * a["size"]
        ),
    }  # fmt: skip


ABOUT = About(
    number=4,
    title="The size of a read",
    chinese="每次读多大",
    question="A reader of 2010's text suggested other sizes of I/O. Where do the three devices"
    " become equal?",
    expected="No figure was published. Flat to some 64 KiB, then linear; the price of pointers"
    " vanishes at 4 MiB, because there is one pointer block for each 4 MiB.",
    ask=Question("ratio", "How many times as long as with extents does a random read of 4 MiB take"
                 " with block pointers, on the disk?", "times"),
    method="seekrw -d with 512 bytes to 16 MiB on the three drives at 1:100. The requests that QEMU"
    " saw go through the models, with the gaps between reads 100 times as long.",
    changes="Read-ahead makes small sequential reads long ones. A fragmented file has a limit of "
    "its"
    " own. A disk that turns faster moves the knee to the left.",
)  # fmt: skip

"""X26: read-ahead for objects at random places: what it saves, and what it reads for nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence

from matplotlib.figure import Figure

from labs.storage.disk_model import Model, Request, drive, replay
from labs.storage.experiments import margins
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.experiments.guest import model, run_guest, sized_disks
from labs.storage.pages import curves, label, legend, mark_prediction, pictures
from labs.tools.course.measurement import Question
from labs.tools.machine.qemu_command import Drive

KIB = 1024
AHEAD = (0, 16, 64, 128, 256, 512)  # KiB
OBJECTS = (4, 64, 1024)  # KiB
DRIVES = ("hdd5400", "sata-ssd")
GETS, SMALL_GETS = 300, 60
SCALE = 100
GUEST_GETS, SMALL_GUEST_GETS = 24, 12
READ = "dd if=/b/big of=/dev/null"
WAYS = {"page by page": "bs=4k iflag=direct", "kernel's read-ahead": "bs=4k",
        "one call": "bs={size}k iflag=direct"}  # fmt: skip
"""How the guest reads an object. The driver makes requests of 64 KiB at most."""


def requests(size: int, ahead: int, places: Sequence[int]) -> list[Request]:
    """Objects read from their first byte to their last by a window of read-ahead, at least a page;
    the last window is read whole."""
    window = max(4, ahead) * KIB // 512
    return [
        Request("read", place + at, window)
        for place in places for at in range(0, size * KIB // 512, window)
    ]  # fmt: skip


def guest_script(cases: Sequence[tuple[int, str]], places: Sequence[int]) -> str:
    """Reads the objects, each case with a map in memory and nothing else; places are numbers of
    pages."""
    script = ["mount -t ext4 -o ro /dev/hdd /b && "]
    for number, (size, way) in enumerate(cases, 1):
        block = size if way == "one call" else 4
        script.append(
            f"drop; {READ} bs=4k count=1 iflag=direct; mark {2 * number} && "
            f"for at in {' '.join(map(str, places))}; do {READ} {WAYS[way].format(size=size)} "
            f"skip=$((at * 4 / {block})) count={size // block}; done 2>/dev/null; "
            f"mark {2 * number + 1}; "
        )
    return "".join(script) + "true"


def in_guest(where: Where) -> list[Data]:
    """What the kernel asks the drive for, at 1:100; the times are those of the models."""
    image = sized_disks(where.build, SCALE)[2]
    generator, gets = random.Random(26), SMALL_GUEST_GETS if where.small else GUEST_GETS
    top = image.stat().st_size // 2**20 - 8
    places = [256 * generator.randrange(top) for _ in range(gets)]  # an object is at a MiB
    cases = [(size, way) for size in OBJECTS for way in WAYS]
    run = run_guest(where.build, guest_script(cases, places), [Drive(image, 3)])
    rows = []
    for number, (size, way) in enumerate(cases, 1):
        asked = [each for each in run.phases[2 * number].of("hdd") if each.sectors >= 8]
        moved = sum(each.sectors for each in asked) / 2
        rows.append({
            "size": size, "way": way, "requests": len(asked) / gets, "kib": moved / gets,
            "waste": 100 * max(0.0, 1 - size * gets / moved),
            **{name: of_each(asked, model(name, image), gets) for name in DRIVES},
        })  # fmt: skip
    return rows


def measure(where: Where) -> Data:
    """Each drive, size and window; and the kernel's own read-ahead, in the guest."""
    rows = []
    for name in DRIVES:
        for size in OBJECTS:
            generator, model = random.Random(26), drive(name)
            top = model.sectors // 8 - 4096
            places = [8 * generator.randrange(top)
                      for _ in range(SMALL_GETS if where.small else GETS)]  # fmt: skip
            for ahead in AHEAD:
                asked = requests(size, ahead, places)
                moved = sum(each.sectors for each in asked) / 2
                ms, margin = of_each(asked, drive(name), len(places))
                rows.append({
                    "drive": name, "size": size, "ahead": ahead, "object": f"{size} KiB",
                    "ms": ms, "margin": margin,
                    "waste": 100 * (1 - size * len(places) / moved),
                })  # fmt: skip
    return {"rows": rows, "guest": in_guest(where)}


def of_each(asked: Sequence[Request], on: Model, objects: int) -> tuple[float, float]:
    """Milliseconds an object, and half of their interval of 95 percent: each object's requests
    are added up, so that those after its first, which wait for no seek, do not count as many."""
    times = [each.total_ms for each in replay(asked, on).accesses]
    many = len(times) // objects
    each = [sum(times[at : at + many]) for at in range(0, many * objects, many)]
    return sum(times) / objects, margins.of_mean(each)


def counted(data: Data, size: int, way: str) -> Data:
    """A row of the guest."""
    return next(row for row in data["guest"] if (row["size"], row["way"]) == (size, way))


def of(data: Data, name: str, size: int, ahead: int) -> Data:
    """A point."""
    wanted = (name, size, ahead)
    return next(r for r in data["rows"] if (r["drive"], r["size"], r["ahead"]) == wanted)


def result(data: Data) -> float:
    """How much longer a page of the SSD takes with 128 KiB."""
    return of(data, "sata-ssd", 4, 128)["ms"] / of(data, "sata-ssd", 4, 0)["ms"]


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """Time relative to none, for each drive; waste."""
    figure, both_axes = pictures(2, height=2.9)
    for axes, name in zip(both_axes, DRIVES, strict=True):
        mine = [{**r, "part": r["ms"] / of(data, name, r["size"], 0)["ms"]}
                for r in data["rows"] if r["drive"] == name]  # fmt: skip
        curves(axes, mine, "ahead", "part", "object")
        axes.set(yscale="log" if name == "sata-ssd" else "linear")
        label(axes, ("read-ahead, KiB", "预读, KiB"), (f"time / without, {name}", "耗时 / 无预读"))
        if name == "sata-ssd":
            mark_prediction(axes, predicted)
        legend(axes)
    waste, axes = pictures(height=2.6)
    curves(axes, [r for r in data["rows"] if r["drive"] == DRIVES[0]], "ahead", "waste", "object")
    axes.set(ylim=(-3, 105))
    label(axes, ("read-ahead, KiB", "预读, KiB"), ("read for nothing, %", "无用的读取, %"))
    legend(axes)
    own, (upper, lower) = pictures(2, height=2.6)
    for place, way in enumerate(WAYS):
        at = [number + 0.27 * (place - 1) for number in range(len(OBJECTS))]
        upper.bar(at, [counted(data, s, way)["requests"] for s in OBJECTS], 0.25, label=way)
        lower.bar(at, [counted(data, s, way)["hdd5400"][0] for s in OBJECTS], 0.25)
    for axes in (upper, lower):
        axes.set_xticks(range(len(OBJECTS)), [f"{size} KiB" for size in OBJECTS])
        axes.set_axisbelow(True)
    upper.set(yscale="log")
    label(upper, ("object", "对象"), ("requests/get", "每次的请求"))
    label(lower, ("object", "对象"), ("ms/get, hdd5400", "毫秒, hdd5400"))
    legend(upper)
    return [(figure, "Objects at random places; 1 is the time with no read-ahead"),
            (waste, "Bytes that nobody asked for"),
            (own, "What this kernel asks for, at 1:100, counted by QEMU")]  # fmt: skip


def tables(data: Data) -> Sequence[Table]:
    """Every point."""
    rows = [(f"{r['drive']}, {r['object']}", r["ahead"], r["ms"], r["margin"], r["waste"])
            for r in data["rows"]]  # fmt: skip
    own = [(f"{r['size']} KiB, {r['way']}", r["requests"], r["kib"], r["waste"])
           for r in data["guest"]]  # fmt: skip
    times = [(f"{r['size']} KiB, {r['way']}", *(ms for name in DRIVES for ms in r[name]))
             for r in data["guest"]]  # fmt: skip
    return [("By drive and object; ±95 %: from the spread of the objects' times",
             ["", "read-ahead, KiB", "ms/get", "±95 %", "waste, %"], rows),
            ("In the guest, at 1:100", ["", "requests/get", "KiB/get", "waste, %"], own),
            ("The guest's requests on the models, ms/get",
             ["", *(part for name in DRIVES for part in (name, "±95 %"))], times)]  # fmt: skip


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    disk = [of(data, "hdd5400", 1024, ahead)["ms"] for ahead in (0, 512)]
    own = counted(data, 64, "kernel's read-ahead")
    return (
        f"An object of 1 MiB takes {disk[0]:.0f} ms page by page and {disk[1]:.0f} ms with 512 KiB "
        "of read-ahead on the disk: the drive reads on by itself, but each request has its own "
        "overhead.",
        f"A page of the SSD takes {result(data):.1f} times as long with 128 KiB, and "
        f"{of(data, 'sata-ssd', 4, 128)['waste']:.0f} % of what it reads is for nothing; on "
        "the disk the time for half a turn hides that.",
        "A window as large as the object is best. This kernel's, which doubles as long as reads go "
        f"on, spares single pages, and reads 64 KiB with {own['requests']:.1f} requests and "
        f"{own['waste']:.0f} % for nothing; a store that knows the length asks once.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    return {
        "1 MiB is read faster with 128 KiB, on both drives": all(
            of(data, name, 1024, 128)["ms"] < of(data, name, 1024, 0)["ms"] for name in DRIVES
        ),
        "a page is read slower with 128 KiB, on both drives": all(
            of(data, name, 4, 128)["ms"] > of(data, name, 4, 0)["ms"] for name in DRIVES
        ),
        "on the SSD it takes over 5 times as long": result(data) > 5,
        "on the disk less than 1.3 times": of(data, "hdd5400", 4, 128)["ms"]
        < 1.3 * of(data, "hdd5400", 4, 0)["ms"],
        "a window of the object's size wastes nothing": of(data, "hdd5400", 64, 64)["waste"] == 0,
        "in the guest, page by page, there are as many requests as on paper": all(
            counted(data, size, "page by page")["requests"] == size / 4 for size in OBJECTS
        ),
        "and 1 MiB takes as long, within 15 percent": abs(
            counted(data, 1024, "page by page")["hdd5400"][0]
            / of(data, "hdd5400", 1024, 0)["ms"] - 1
        ) < 0.15,
        "there a single page is not read ahead of": counted(
            data, 4, "kernel's read-ahead"
        )["kib"] < 4.5,
        "and 1 MiB takes less than a tenth of the requests": counted(
            data, 1024, "kernel's read-ahead"
        )["requests"] < counted(data, 1024, "page by page")["requests"] / 10,
        "a page with 128 KiB wastes 31 of 32 parts": abs(
            of(data, "hdd5400", 4, 128)["waste"] - 100 * 31 / 32
        ) < 0.01,
    }  # fmt: skip


ABOUT = About(
    number=26,
    title="Read-ahead for random objects",
    chinese="随机对象的预读",
    question="A store reads objects of 4 KiB to 1 MiB at random places of a large file. Does"
    " read-ahead help or harm?",
    expected="No figure was published. Ours: it helps objects that are at least as large as the"
    " window, and harms small random reads by what they read for nothing.",
    ask=Question("times", "With 128 KiB of read-ahead, how many times as long does a random page of"
                 " a SATA SSD take?", "times"),
    method="Requests on paper: an object is read from its start to its end by windows, at least a"
    " page, one request after another. They are replayed on the models of the 5400 rpm disk and of"
    " the SATA SSD. 300 objects for each point, the seed is explicit. In"
    " the guest dd reads such objects from /big at 1:100: page by page past the cache, through the"
    " kernel's own read-ahead, and with one call; QEMU counts.",
    changes="A read-ahead that grows only when reads continue (as kernels do) spares single pages."
    " Several requests at once hide the overhead of small ones on the SSD. Waste fills the page"
    " cache, too, and takes hits from others (X2).",
)  # fmt: skip

"""X7: the size of a block: pointer blocks fall with its square, and each read moves more."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.experiments.guest import data_image, run_guest
from labs.storage.experiments.trees import READS, Tree, cost, expected, mapped
from labs.storage.pages import label, legend, mark_prediction, pictures
from labs.storage.published import mark
from labs.tools.course.measurement import Question
from labs.tools.machine.qemu_command import Drive
from labs.tools.machine.work_folder import work_folder

SIZES = (1024, 2048, 4096, 8192, 16_384, 32_768, 65_536)
COMPUTED = {1024: 8_400_000, 4096: 524_288, 65_536: 2048}  # of 2 TiB; published is 520K+


GUEST_SIZES = (1024, 2048, 4096)
GUEST_MIB, GUEST_READS = 64, 300


def in_guest(where: Where) -> list[Data]:
    """Random direct reads of a sector of a small file on ext3, from a cold start: what else the
    kernel reads are pointer blocks, and a few blocks on the way to the file."""
    with work_folder("images", where.build.parent) as folder:
        images = [
            data_image(folder / str(size), (GUEST_MIB + 24) << 20, {"f": GUEST_MIB << 20},
                       f"-t ext3 -b {size}") for size in GUEST_SIZES
        ]  # fmt: skip
        script = "".join(
            f"mount -t ext3 -o ro /dev/hd{letter} /{place} && mark {2 * number} && seekrw -f "
            f"/{place}/f -a {GUEST_READS} -d -s 7 && mark {2 * number + 1} && "
            for number, (letter, place) in enumerate(zip("bcd", "abc", strict=True), 1)
        )
        drives = [Drive(image, unit) for unit, image in enumerate(images, 1)]
        run = run_guest(where.build, script + "true", drives)
    rows = []
    for number, (size, drive) in enumerate(zip(GUEST_SIZES, ("hdb", "hdc", "hdd"), strict=True), 1):
        asked = run.phases[2 * number].of(drive)
        blocks = (GUEST_MIB << 20) / size / (size // 4)
        rows.append({"size": size, "blocks": round(blocks),
                     **mapped(asked, GUEST_READS, blocks)})  # fmt: skip
    return rows


def measure(where: Where) -> Data:
    """Each size of block; three of them in the guest, with a small file."""
    rows = []
    for size in (1024, 4096, 65_536) if where.small else SIZES:
        tree, reads = Tree(size, size // 4, size // 4), 20_000 if where.small else READS
        price = cost(tree, reads, sample=20)
        rows.append({"size": size, "blocks": round(tree.lowest), **price,
                     "formula": expected(reads, tree.lowest),
                     "amplification": size * (1 + price["mapping"]) / 512})  # fmt: skip
    return {"rows": rows, "guest": in_guest(where)}


def of(data: Data, size: int) -> Data:
    """A row."""
    return next(row for row in data["rows"] if row["size"] == size)


def result(data: Data) -> float:
    """With the largest block."""
    return of(data, 65_536)["ms"]


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """Pointer blocks and bytes moved; time."""
    sizes = [row["size"] / 1024 for row in data["rows"]]
    figure, axes = pictures()
    axes.plot(sizes, [row["blocks"] for row in data["rows"]], "o-", markersize=4,
              label="pointer blocks 指针块")  # fmt: skip
    mark(axes, [size / 1024 for size in COMPUTED], list(COMPUTED.values()), is_computed=True)
    axes.set(xscale="log", yscale="log")
    label(axes, ("size of a block, KiB", "块大小, KiB"), ("pointer blocks for 2 TiB", "指针块数"))
    other = axes.twinx()
    other.plot(sizes, [row["amplification"] for row in data["rows"]], "s--", color="C1",
               markersize=4, label="bytes moved / bytes asked")  # fmt: skip
    other.set(yscale="log")
    other.set_ylabel("bytes moved / asked\n读放大")
    other.grid(visible=False)
    axes.legend(fontsize=8, loc="lower left", bbox_to_anchor=(0, 1))
    other.legend(fontsize=8, loc="lower right", bbox_to_anchor=(1, 1))
    times, lower = pictures(height=2.8)
    lower.plot(sizes, [row["ms"] for row in data["rows"]], "o-", markersize=4)
    lower.set(xscale="log", ylim=(0, None))
    for each in (axes, lower):
        each.set_xticks(sizes, [f"{size:g}" for size in sizes])
        each.minorticks_off()
    label(lower, ("size of a block, KiB", "块大小, KiB"), ("ms for a read", "每次读, 毫秒"))
    if predicted is not None:
        mark_prediction(lower, predicted)
        legend(lower)
    own, axes = pictures(height=2.6)
    kib = [row["size"] / 1024 for row in data["guest"]]
    axes.errorbar(kib, [row["mapping"] for row in data["guest"]],
                  [row["margin"] for row in data["guest"]], fmt="o", capsize=3,
                  label="counted, ±95 %")  # fmt: skip
    axes.plot(kib, [row["formula"] for row in data["guest"]], "k:", label="formula")
    axes.set_xticks(kib, [f"{each:g}" for each in kib])
    axes.set(ylim=(0, None))
    label(axes, ("size of a block, KiB", "块大小, KiB"), ("pointer blocks/read", "每次读的指针块"))
    legend(axes)
    return [(figure, "Twice the block: a quarter of the pointer blocks"),
            (times, "Random reads of 512 bytes, on the model of the 5400 rpm disk"),
            (own, f"In the guest: {GUEST_READS} reads of {GUEST_MIB} MiB, ext3")]  # fmt: skip


def tables(data: Data) -> Sequence[Table]:
    """Every size."""
    rows = [(f"{r['size']:,} B", r["blocks"], COMPUTED.get(r["size"], "-"), r["mapping"],
             r["formula"], r["ms"], r["margin"], r["amplification"])
            for r in data["rows"]]  # fmt: skip
    columns = ["block", "pointer blocks", "computed", "mapping/read", "formula", "ms/read",
               "±95 %", "moved/asked"]  # fmt: skip
    own = [(f"{r['size']:,} B", r["blocks"], r["mapping"], r["margin"], r["formula"])
           for r in data["guest"]]  # fmt: skip
    return [
        ("By size of a block; ±95 %: from the spread of the requests' times", columns, rows),
        (f"In the guest: {GUEST_READS} reads of a file of {GUEST_MIB} MiB, ext3; ±95 %: from their"
         " spread", ["block", "pointer blocks", "mapping/read", "±95 %", "formula"], own),
    ]  # fmt: skip


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    page, large = of(data, 4096), of(data, 65_536)
    return (
        f"2 TiB need {of(data, 1024)['blocks']:,} pointer blocks of 1 KiB, {page['blocks']:,} of "
        f"4 KiB and {large['blocks']:,} of 64 KiB: there are fewer blocks to point to, and each "
        "points to more.",
        f"A read costs {page['ms']:.1f} ms with 4 KiB and {large['ms']:.1f} ms with 64 KiB, where "
        "all pointer blocks are soon in memory.",
        f"The price: a read of 512 bytes moves {large['amplification']:.0f} times as many, 0.9 ms "
        "on a disk that turns for 11 ms, but most of the time of an SSD's read.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The law, and the shape."""
    return {
        "pointer blocks fall with the square": all(
            abs(r["blocks"] * r["size"] ** 2 - of(data, 4096)["blocks"] * 4096**2) <= 2**33
            for r in data["rows"]
        ),
        "the computed counts": all(
            abs(of(data, size)["blocks"] / count - 1) < 0.01 for size, count in COMPUTED.items()
        ),
        "from 4 KiB on mapping requests follow the formula, within 0.06": all(
            abs(r["mapping"] - r["formula"]) < 0.06 for r in data["rows"] if r["size"] >= 4096
        ),
        "in the guest, too, within 0.05": all(
            abs(r["mapping"] - r["formula"]) < 0.05 for r in data["guest"]
        ),
        "64 KiB reads take less than 0.8 of those of 4 KiB": result(data)
        < 0.8 * of(data, 4096)["ms"],
        "they move over 100 times the bytes asked for": of(data, 65_536)["amplification"] > 100,
    }  # fmt: skip


ABOUT = About(
    number=7,
    title="The size of a block",
    chinese="块的大小",
    question="Some sites gave ext2 bigger blocks instead of waiting for extents. How many pointer"
    " blocks does a file of 2 TiB have then, and what does a random read cost?",
    expected="Published: 520K+ pointer blocks of 4 KB. Computed in the same way: 8.4 million of 1"
    " KiB, 524,288 of 4 KiB, 2,048 of 64 KiB: their number falls with the square of the size."
    " Small reads move more bytes.",
    ask=Question("ms", "With 4 KiB a random read of 512 bytes takes 20 ms. How long does it take"
                 " with blocks of 64 KiB?", "ms"),
    method="A tree of block pointers on paper: each pointer block in front of its data, and a"
    " cache that forgets nothing, 100,000 random reads. Every 20th is replayed on the model of"
    " the 5400 rpm disk. A read fetches one whole block. The formula counts the lowest pointer"
    " blocks alone; with 1 KiB there are so many that the 32,768 blocks above them cost requests,"
    " too. The guest reads a file of 64 MiB on ext3 with blocks of 1, 2 and 4 KiB, and QEMU"
    " counts.",
    changes="A memory that is smaller than the pointer blocks never gets to these figures. Direct"
    " I/O moves only the sector. Blocks larger than a page need a page cache that can hold them,"
    " and small files waste half a block each.",
)  # fmt: skip

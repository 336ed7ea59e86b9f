"""X3: how many requests for pointer blocks a read costs, as more and more reads warm the cache."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from labs.storage import disks
from labs.storage.disk_model import Model
from labs.storage.experiments import margins
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.experiments.guest import Phase, model, run_guest
from labs.storage.experiments.trees import expected
from labs.storage.pages import both, legend, mark_prediction, pictures
from labs.tools.course.measurement import Question
from labs.tools.machine.qemu_command import Drive

READS = (10, 100, 1000, 10_000)
SMALL_READS = (10, 1000)
SHARES = {"roomy": 40, "scarce": 4}  # of the memory, in percent, for mapping blocks
MEMORY = 256
COMPUTED = {1000: 0.999, 10_000: 0.991, 100_000: 0.910, 1_000_000: 0.446, 10_000_000: 0.052}


def measure(where: Where) -> Data:
    """Counts on both files at a hundredth of the size, with much and with little memory for mapping
    blocks."""
    directory = where.build.parent / "disks-100"
    manifest = disks.make_disks(directory, disks.Experiment(reads=1000))
    rows = []
    for name, share in SHARES.items():
        rows += one_run(where, directory, name, share)
    return {"rows": rows, "pointer_blocks": manifest["files"]["hdc"]["mapping_blocks"]}


def one_run(where: Where, directory: Path, cache: str, share: int) -> list[Data]:
    """Both files in one machine, each count from a cold start. What only opening a file reads is
    seen first: it is no part of the map."""
    images = [disks.image_path(directory, each) for each in disks.DRIVES[1:]]
    cases = [
        (reads, drive, place, image)
        for reads in (SMALL_READS if where.small else READS)
        for drive, place, image in zip(("hdc", "hdd"), ("/a", "/b"), images, strict=True)
    ]
    script = ["mount -t ext3 /dev/hdc /a && mount -t ext4 /dev/hdd /b && "]
    script.append("drop && mark 1 && ls -l /a/big /b/big >/dev/null && ")
    for number, (reads, _, place, _) in enumerate(cases, 2):
        script.append(f"drop && mark {number} && seekrw -f {place}/big -a {reads} -d -s 1 && ")
    drives = [Drive(image, unit) for unit, image in enumerate(images, 2)]
    done = run_guest(
        where.build,
        "".join(script) + f"mark {len(cases) + 2}",
        drives,
        memory=MEMORY,
        settings=(("cache", str(share)),),
    )
    return [
        row(done.phases[number], done.phases[1], drive, cache, reads, model("hdd5400", image))
        for number, (reads, drive, _, image) in enumerate(cases, 2)
    ]


def row(phase: Phase, opening: Phase, drive: str, cache: str, reads: int, disk: Model) -> Data:
    """The figures of one file. A direct read of data is one sector; what maps it is a block."""
    others = {request.lba for request in opening.of(drive)}
    mapping = sum(
        request.operation == "read" and request.sectors > 1 and request.lba not in others
        for request in phase.of(drive)
    )
    return {
        "layout": {"hdc": "pointers", "hdd": "extents"}[drive],
        "cache": cache,
        "reads": reads,
        "mapping": mapping / reads,
        "mapping_margin": margins.of_mapping(
            [each for each in phase.of(drive) if each.lba not in others]
        ),
        "ms": phase.seconds(drive, disk) * 1000 / reads,
        "margin": phase.margin(drive, disk) * 1000 / reads,
    }


def chosen(data: Data, layout: str, cache: str) -> list[Data]:
    """One curve."""
    return [r for r in data["rows"] if (r["layout"], r["cache"]) == (layout, cache)]


def result(data: Data) -> float:
    """Pointer blocks for each of 1,000 reads."""
    return next(r["mapping"] for r in chosen(data, "pointers", "roomy") if r["reads"] == 1000)


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """The three curves over the theory."""
    figure, axes = pictures()
    blocks, top = data["pointer_blocks"], max(r["reads"] for r in data["rows"])
    xs = [10 * (top / 10) ** (step / 60) for step in range(61)]
    axes.plot(xs, [expected(x, blocks) for x in xs], "k:", label="(N/n)(1 - exp(-n/N))")
    for layout, cache, style in (("pointers", "roomy", "o"), ("pointers", "scarce", "s"),
                                 ("extents", "roomy", "^")):  # fmt: skip
        rows = chosen(data, layout, cache)
        is_inner = cache == "roomy"  # where both are at one place, both are seen
        axes.plot([r["reads"] for r in rows], [r["mapping"] for r in rows], style,
                  markersize=5 if is_inner else 9, fillstyle="full" if is_inner else "none",
                  label=f"{layout}, {cache} memory")  # fmt: skip
    axes.set(xscale="log", ylim=(-0.03, max(1.1, 0.1 + max(r["mapping"] for r in data["rows"]))))
    axes.set_xlabel(both("random reads of 512 bytes, from a cold start", "随机读次数 (冷启动)"))
    axes.set_ylabel(both("mapping requests per read", "每次读的映射请求"))
    mark_prediction(axes, predicted)
    legend(axes)
    return [(figure, "At 1:100. Points: counted by QEMU. Line: a cache that forgets nothing.")]


def tables(data: Data) -> Sequence[Table]:
    """What was counted, and theory at full size."""
    rows = [(f"{r['layout']}, {r['cache']}", r["reads"], r["mapping"], r["mapping_margin"],
             expected(r["reads"], data["pointer_blocks"]) if r["layout"] == "pointers" else 0.0,
             r["ms"], r["margin"]) for r in data["rows"]]  # fmt: skip
    full = [(f"{n:,} reads", expected(n, 524_288), said) for n, said in COMPUTED.items()]
    return [
        (
            "Counted, at 1:100; ±95 %: from the spread of the reads",
            ["file", "reads", "mapping/read", "±95 %", "theory", "ms/read", "±95 %"],
            rows,
        ),
        ("The theory at 2 TiB, 524,288 pointer blocks", ["", "here", "computed from 2010"], full),
    ]


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    last = chosen(data, "pointers", "roomy")[-1]
    scarce = chosen(data, "pointers", "scarce")[-1]
    whole = chosen(data, "extents", "roomy")[-1]
    blocks = round(whole["mapping"] * whole["reads"])
    return (
        f"After {last['reads']:,} reads a read of the block-pointer file still cost "
        f"{last['mapping']:.3f} mapping requests on average, as the formula says.",
        f"With little memory it cost {scarce['mapping']:.3f} then: pointer blocks that do not fit "
        "are thrown out, and read again.",
        f"The map of the file in extents took {blocks} request{'s' if blocks > 1 else ''} for all "
        f"{whole['reads']:,} reads together: then it is in memory.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The curve is the theory's; scarce memory is above it; extents are warm at once."""
    blocks, rows = data["pointer_blocks"], chosen(data, "pointers", "roomy")
    last = {cache: chosen(data, "pointers", cache)[-1]["mapping"] for cache in SHARES}
    return {
        "pointer requests per read follow the formula, within 0.05 and the few blocks above": all(
            abs(r["mapping"] - expected(r["reads"], blocks)) < 0.05 + 12 / r["reads"] for r in rows
        ),
        "with scarce memory there are at least as many": last["scarce"] >= last["roomy"],
        "the map of the file in extents takes 5 requests at most": all(
            round(r["mapping"] * r["reads"]) <= 5 for r in data["rows"] if r["layout"] == "extents"
        ),
        "at full size 100,000 reads need 0.910": abs(expected(1e5, 524_288) - 0.910) < 0.001,
    }  # fmt: skip


ABOUT = About(
    number=3,
    title="When is the mapping hot?",
    chinese="映射何时变热?",
    question="The text of 2010 says that most of the 520K+ pointer blocks are cold in random I/O."
    " How many of them does a read still cost after n reads?",
    expected="Published: 520K+ pointer blocks for 2 TB, and that most are cold. Computed from it"
    " by (N/n)(1 - exp(-n/N)): 0.999, 0.991, 0.910, 0.446 and 0.052 for 10^3 to 10^7 reads. With"
    " less memory than pointer blocks it never gets warm.",
    ask=Question(
        "mapping",
        "At 1:100 (4,684 pointer blocks): how many pointer blocks does each of "
        "the first 1,000 random reads cost, on average?",
        "requests",
    ),
    method="The guest reads 512 bytes at random places with O_DIRECT from both files, from a cold"
    " start; QEMU's list of requests is the count. Memory for mapping blocks: 40 or 4 percent of"
    " 256 MiB. Times come from the model of the 5400 rpm disk.",
    changes="A larger memory moves nothing before n reaches N. Reads with locality warm the cache"
    " sooner; larger blocks make N smaller with the square of their size (X7).",
)

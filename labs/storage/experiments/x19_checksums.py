"""X19: damage to metadata, and who notices it: without checksums, with CRC-16, and with CRC-32C."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.experiments.damage import (
    BLOCK,
    FEATURES,
    IMAGE_BYTES,
    KINDS,
    WAYS,
    Fault,
    Versions,
    faults_of,
    judged,
    make_versions,
)
from labs.storage.experiments.guest import run_guest
from labs.storage.fsx import ROOT
from labs.storage.linux_program import COMPILER
from labs.storage.pages import both, label, legend, mark_prediction, pictures
from labs.tools.course.measurement import Question
from labs.tools.guest.initramfs import Entry, regular
from labs.tools.machine.qemu_command import Drive
from labs.tools.machine.work_folder import work_folder

FLIPS, SMALL_FLIPS = 8, 1  # of each kind of block
NAMES = dict(zip(FEATURES, ("hdb", "hdc", "hdd"), strict=True))
COST_SOURCES = ("labs/storage/experiments/checksum_cost.c", "fs/ext/checksum.c",
                "fs/jbd2/checksum.c")  # fmt: skip
MEGABYTES = IMAGE_BYTES >> 20
OUTCOMES = {
    "checksum": "a checksum was wrong", "structure": "something else was wrong",
    "wrong answer": "nothing said, wrong answers", "same answer": "nothing said, same answers",
}  # fmt: skip
NOTICED = ("checksum", "structure")
FUNCTIONS = f"""
walk() {{
  cd /a; ls -lRn names other many deep0 deep1 2>&1 | md5sum
  cat deep0 deep1 names/* other/* 2>&1 | md5sum; cd /
}}
try() {{
  dd if=/dev/$1 of=/dev/$1 bs=1M skip={MEGABYTES} count={MEGABYTES} conv=notrunc 2>/dev/null
  dd if=/faults/$2 of=/dev/$1 bs={BLOCK} seek=$3 conv=notrunc 2>/dev/null; drop
  echo "case $2"
  if mount -t ext4 -o errors=continue /dev/$1 /a; then
    walk; mkdir /a/n; manyfiles create /a/n 40; dd if=/dev/zero of=/a/n/big bs=64k count=4
    rm -r /a/many /a/names/names-1 /a/other/other-1
    umount /a; drop; mount -t ext4 -o errors=continue /dev/$1 /a && walk && umount /a
  else echo "hd: no mount"; fi
  echo "end $2"
}}
"""
"""Puts the image as it was, and the damage on it; reads all, makes and removes files, and reads all
again."""


def guest_said(where: Where, folder: Path, images: dict[str, Versions],
               faults: Sequence[tuple[str, Fault]]) -> list[str]:  # fmt: skip
    """What the guest said for each fault; one more before, without damage, for each image."""
    script, entries, drives = [FUNCTIONS], list[Entry](), list[Drive]()
    cases = [(name, 1, images[name].block(1)) for name in images]
    cases += [(name, fault.block, fault.data) for name, fault in faults]
    for number, (name, block, data) in enumerate(cases):
        entries.append(regular(f"faults/{number}", data, 0o444))
        script.append(f"try {NAMES[name]} {number} {block}")
    for unit, (name, image) in enumerate(images.items(), 1):
        path = folder / f"{name}.twice"
        path.write_bytes(image.after * 2)
        drives.append(Drive(path, unit))
    run = run_guest(where.build, "\n".join([*script, "true"]), drives, entries, seconds=900)
    return [run.said.partition(f"case {number}\n")[2].partition(f"end {number}\n")[0]
            for number in range(len(cases))]  # fmt: skip


def sums(said: str) -> list[str]:
    """What the walks gave."""
    return re.findall(r"^([0-9a-f]{32})  -", said, re.MULTILINE)


def outcome(said: str, sound: str) -> str:
    """Which of OUTCOMES a case had; `sound`: what the guest said without damage."""
    complaint = re.compile(r"hd\w?: |\w+: .*(error|Bad|clean|Invalid|No such)")
    complaints = [line for line in said.splitlines() if complaint.match(line)]
    if any("checksum" in line for line in complaints):
        return "checksum"
    if complaints:
        return "structure"
    return "same answer" if sums(said) == sums(sound) else "wrong answer"


def costs(where: Where, folder: Path) -> dict[str, int]:
    """Instructions for each kind of checksum, in the guest."""
    program = folder / "checksum_cost"
    words = [*COMPILER, "-Wno-unused-parameter", f"-I{ROOT}", *(str(ROOT / each) for each in
             COST_SOURCES), "-o", str(program)]  # fmt: skip
    subprocess.run(words, check=True)
    entry = regular("bin/checksum_cost", program.read_bytes())
    said = run_guest(where.build, "checksum_cost", [], [entry], icount=0).said
    return {name: int(steps) for name, steps in re.findall(r"^(\S+-crc\w+) (\d+)", said, re.M)}


def measure(where: Where) -> Data:
    """Every fault on every image, by the guest and by e2fsck; and what a checksum costs."""
    times = SMALL_FLIPS if where.small else FLIPS
    with work_folder("images", where.build.parent) as folder:
        images = {each: make_versions(folder, each) for each in FEATURES}
        faults = [(each, fault) for each, image in images.items() for kind in KINDS
                  for fault in faults_of(image, kind, times, 19)]  # fmt: skip
        said = guest_said(where, folder, images, faults)
        sound = dict(zip(images, said, strict=False))
        rows = [
            {"image": each, "kind": fault.kind, "way": fault.way, "block": fault.block,
             "outcome": outcome(text, sound[each]), "e2fsck": judged(folder, images[each], fault)}
            for (each, fault), text in zip(faults, said[len(images) :], strict=True)
        ]  # fmt: skip
        return {"rows": rows, "sound": {each: sums(text) for each, text in sound.items()},
                "cost": costs(where, folder)}  # fmt: skip


def chosen(data: Data, image: str, way: str = "", kind: str = "") -> list[Data]:
    """Some of the cases."""
    return [row for row in data["rows"] if row["image"] == image
            and way in ("", row["way"]) and kind in ("", row["kind"])]  # fmt: skip


def share(rows: Sequence[Data], *outcomes: str) -> float:
    """How many percent of the cases ended so."""
    return 100 * sum(row["outcome"] in outcomes for row in rows) / max(1, len(rows))


def cases(rows: Sequence[Data]) -> str:
    """How many of a few cases were noticed, in words."""
    return f"{sum(row['outcome'] in NOTICED for row in rows)} of {len(rows)} cases"


def said_of_torn(rows: Sequence[Data]) -> str:
    """Which torn writes pass, and what they do."""
    passed = [row for row in rows if row["outcome"] not in NOTICED]
    if not passed:
        return "Each torn write is noticed."
    kinds = " and ".join(sorted({row["kind"] for row in passed}))
    wrong = sum(row["outcome"] == "wrong answer" for row in passed)
    return (
        f"Of torn writes {len(passed)} of {len(rows)} pass with CRC-32C"
        f" ({100 * len(passed) / len(rows):.0f} %), all of the kind {kinds}; wrong answers"
        f" come of {wrong}."
    )


def result(data: Data) -> float:
    """Of flipped bits without checksums: noticed."""
    return share(chosen(data, "none", "bit flip"), *NOTICED)


def matrix(axes: Axes, data: Data, image: str) -> None:
    """Kinds of blocks against ways of damage: how many percent the kernel noticed."""
    cells = [[chosen(data, image, way, kind) for way in WAYS] for kind in KINDS]
    values = [[share(rows, *NOTICED) if rows else float("nan") for rows in line] for line in cells]
    axes.imshow(values, cmap="RdYlGn", vmin=0, vmax=100, aspect="auto", alpha=0.5)
    for y, line in enumerate(cells):
        for x, rows in enumerate(line):
            text = f"{values[y][x]:.0f}" if rows else "-"
            if share(rows, "wrong answer"):
                text += f"\n{share(rows, 'wrong answer'):.0f} wrong"
            axes.text(x, y, text, ha="center", va="center", fontsize=9, linespacing=0.95)
    axes.set_xticks(range(len(WAYS)), WAYS)
    axes.set_yticks(range(len(KINDS)), KINDS)
    axes.set_title(image, loc="left")
    axes.grid(visible=False)


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """The matrix; outcomes; cost."""
    figure, all_axes = pictures(len(FEATURES), height=4)
    for axes, image in zip(all_axes, FEATURES, strict=True):
        matrix(axes, data, image)
    axes.set_xlabel(both("what happened to the block", "块受到的损坏"))
    outcomes, axes = pictures(height=3)
    bottom = [0.0] * len(FEATURES)
    for name, color in zip(OUTCOMES, ("C2", "C0", "C3", "0.8"), strict=True):
        heights = [share(chosen(data, image, "bit flip"), name) for image in FEATURES]
        axes.bar(list(FEATURES), heights, bottom=bottom, color=color, label=OUTCOMES[name])
        bottom = [low + high for low, high in zip(bottom, heights, strict=True)]
    found = [100 * sum(row["e2fsck"] for row in rows) / len(rows) for rows in
             (chosen(data, image, "bit flip") for image in FEATURES)]  # fmt: skip
    axes.plot(list(FEATURES), found, "k*", markersize=9, label="e2fsck finds")
    axes.set_axisbelow(True)
    axes.set(ylim=(0, 105))
    mark_prediction(axes, predicted)
    label(
        axes,
        ("checksums of the file system", "文件系统的校验和"),
        ("flipped bits, %", "翻转的位, %"),
    )
    legend(axes)
    cost, axes = pictures(height=2.6)
    axes.barh([each.replace("-", ", ") for each in data["cost"]], list(data["cost"].values()))
    axes.set_axisbelow(True)
    axes.set_xlabel(both("instructions for a checksum", "一次校验和的指令数"))
    return [(figure, "Damage that the kernel notices, %; wrong: it gave wrong answers instead, %"),
            (outcomes, "One bit of a block of metadata flips"),
            (cost, "Counted in the guest: descriptor 64 bytes, inode 256, superblock 1024,"
                   " block 4096")]  # fmt: skip


def tables(data: Data) -> Sequence[Table]:
    """Each image and way; costs."""
    rows = []
    for image in FEATURES:
        for way in WAYS:
            these = chosen(data, image, way)
            found = 100 * sum(row["e2fsck"] for row in these) / max(1, len(these))
            rows.append((f"{image}, {way}", len(these), *(share(these, each) for each in OUTCOMES),
                         found))  # fmt: skip
    cells = [
        (f"{kind}, {way}", *(share(these, *NOTICED) if these else "-" for these in
                             (chosen(data, image, way, kind) for image in FEATURES)))
        for kind in KINDS for way in WAYS
    ]  # fmt: skip
    return [
        ("What happened, % of the cases", ["", "cases", *OUTCOMES, "e2fsck finds"], rows),
        ("Noticed by the kernel, %", ["", *FEATURES], cells),
        ("Instructions", ["checksum", "instructions"], list(data["cost"].items())),
    ]


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    none, full = chosen(data, "none", "bit flip"), chosen(data, "crc32c", "bit flip")
    old, cost = chosen(data, "crc16", "bit flip"), data["cost"]
    other = chosen(data, "crc32c", "misdirected")
    return (
        f"Of flipped bits the kernel notices {share(none, *NOTICED):.0f} % without checksums, and "
        f"gives wrong answers for {share(none, 'wrong answer'):.0f} %; CRC-16 covers the "
        f"descriptors only ({share(old, *NOTICED):.0f} %), CRC-32C everything "
        f"({share(full, *NOTICED):.0f} %).",
        f"Another block of the same kind in the place is noticed in {cases(other)} with CRC-32C,"
        " because the number of the inode or of the block is in the sum; a lost write in"
        f" {cases(chosen(data, 'crc32c', 'lost'))}: the old block has its old, right checksum."
        f" {said_of_torn(chosen(data, 'crc32c', 'torn'))}",
        f"An inode's checksum costs {cost['inode-crc32c']:,} instructions and that of a block of 4 "
        f"KiB {cost['block-crc32c']:,}, {cost['block-crc32c'] / 1000:.0f} microseconds of a"
        " processor of one instruction a nanosecond, before a write that takes a disk"
        f" milliseconds; CRC-16, a bit at a time, costs {cost['descriptor-crc16']:,} for one"
        " descriptor.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    full, none = chosen(data, "crc32c", "bit flip"), chosen(data, "none", "bit flip")
    sound = list(data["sound"].values())
    return {
        "without damage all three are read alike, before and after changes": all(
            len(each) == 4 and each[1::2] == sound[0][1::2] for each in sound
        ),
        "with CRC-32C each flipped bit is noticed": share(full, *NOTICED) == 100,
        "and e2fsck finds at least 95 percent of them": 100
        * sum(row["e2fsck"] for row in full) >= 95 * len(full),
        "with CRC-32C no flipped bit gives a wrong answer": share(full, "wrong answer") == 0,
        "without checksums some do, or pass unnoticed": share(none, *NOTICED) < 90,
        "with CRC-16 each flipped bit of a descriptor is noticed": share(
            chosen(data, "crc16", "bit flip", "descriptors"), "checksum"
        ) == 100,
        "with CRC-32C each extent node and directory in a wrong place is noticed": all(
            share(chosen(data, "crc32c", "misdirected", kind), "checksum") == 100
            for kind in ("extent node", "directory")
        ),
        "without checksums another file's extent node gives wrong answers": share(
            chosen(data, "none", "misdirected", "extent node"), "wrong answer"
        ) == 100,
        "a lost inode is noticed by no checksum": share(
            chosen(data, "crc32c", "lost", "inodes"), "checksum"
        ) == 0,
        "CRC-32C of an inode takes less than 2,000 instructions": 100
        < data["cost"]["inode-crc32c"] < 2000,
    }  # fmt: skip


ABOUT = About(
    number=19,
    title="Which damage do checksums of metadata notice?",
    chinese="元数据校验和能发现哪些损坏?",
    question="A bit flips in a block of metadata, or a write goes to a wrong place, is torn, or is"
    " lost. What does the file system notice, what does it say instead, and what does a checksum"
    " cost?",
    expected="No figure was published. Notes of 2010: without checksums nothing is noticed but what"
    " contradicts itself; CRC-16 protects descriptors (uninit_bg), CRC-32C everything. A"
    " misdirected write is noticed only if the place is part of the sum.",
    ask=Question("noticed", "One bit of a block of metadata that is in use flips, and there are no"
                 " checksums. In how many percent of the cases does the kernel notice?", "percent"),
    method="mke2fs makes three ext4 of 4 MiB: no checksums, uninit_bg, metadata_csum; debugfs"
    " changes them, so that each block has an older version. For each fault the guest gets the"
    " image as it was, with one block damaged, mounts it, reads all, makes and removes files,"
    " mounts it again and reads all again. Answers are compared with those without damage;"
    " e2fsck -fn judges the same damage. Instructions: the kernel's functions in a program,"
    " counted with -icount.",
    changes="An inode of 256 bytes does not cross a sector, so a torn block of inodes has whole"
    " inodes, old and new: only a sum of the whole block would notice. Against lost writes helps a"
    " generation in the parent, or a sum that is stored there (as for bitmaps here, in the"
    " descriptor). The processor's CRC32 instruction makes CRC-32C several times cheaper.",
)  # fmt: skip

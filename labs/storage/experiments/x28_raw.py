"""X28: what the raw device costs its owners: eight tasks, on raw sectors and on files."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from labs.storage import fsx
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.experiments.guest import Phase, run_guest
from labs.storage.pages import both, legend, mark_prediction, pictures
from labs.tools.course.measurement import Question
from labs.tools.machine.qemu_command import Drive
from labs.tools.machine.work_folder import work_folder

OBJECTS, UNITS, SMALL_UNITS = 16, 8, 2  # of an object, 64 KiB each
UNIT, FULL = 65_536, 4  # a quarter of the drive is in use
PICKED = 5
MIB = 1 << 20
DRIVES = ("hdb", "hdc", "hdd")


@dataclass(frozen=True)
class Task:
    """Something an owner does, by the penalty of 2010 that it belongs to. before: what happens to
    both stores first. In the commands {at} is where the object begins, {free} where nothing is,
    {n} its length, in units of 64 KiB."""

    penalty: str
    name: str
    raw: str
    file: str
    before: str = "true"


TASKS = (
    Task("backup", "back up all", "dd if=/dev/hdb of=/c/all bs=64k",
         "tar cf /c/all.tar -C /a .", "true"),
    Task("backup", "back up what changed", "dd if=/dev/hdb of=/c/all bs=64k conv=notrunc",
         "cd /a; tar cf /c/new.tar $(find . -type f -newer /c/all.tar)",
         "sleep 2; dd if=/a/o09 of=/a/o05 bs=64k conv=notrunc; "
         "dd if=/a/o09 of=/dev/hdb bs=64k seek={at} conv=notrunc"),
    Task("backup", "restore one", "dd if=/c/all of=/dev/hdb bs=64k skip={at} seek={at} count={n}",
         "tar xf /c/new.tar -C /a ./o05", "rm /a/o05; dd if=/dev/zero of=/dev/hdb bs=64k seek={at} "
         "count={n} conv=notrunc"),
    Task("management", "add 64 KiB to one",
         "dd if=/dev/hdb of=/dev/hdb bs=64k skip={at} seek={free} count={n}; "
         "dd if=/c/more of=/dev/hdb bs=64k seek={end}",
         "cat /c/more >>/a/o05", "dd if=/a/o03 of=/c/more bs=64k count=1"),
    Task("management", "find and repair damage",
         "cmp -l /dev/hdb /c/all | sed -n '1p;$p'; "
         "dd if=/c/all of=/dev/hdb bs=64k skip={bad} seek={bad} count={n}",
         "cd /a; md5sum -c /c/sums | grep FAILED; tar xf /c/all.tar -C /a ./o12",
         "cd /a; md5sum o* >/c/sums; cd /; dd if=/dev/hdb of=/c/all bs=64k; "
         "dd if=/dev/zero of=/a/o12 bs=512 seek=9 count=1 conv=notrunc; "
         "dd if=/dev/zero of=/dev/hdb bs=512 seek=$(({bad} * 128 + 9)) count=1 conv=notrunc"),
    Task("access", "copy one", "dd if=/dev/hdb of=/c/copy bs=64k skip={at3} count={n}",
         "cp /a/o03 /c/copy"),
    Task("access", "which are there, how large?", "strings -n 14 /dev/hdb | grep ^object",
         "ls -l /a"),
    Task("access", "find one by its name", "strings -n 14 /dev/hdb | grep ^object:o03",
         "find /a -name o03"),
)  # fmt: skip


def contents(number: int, size: int) -> bytes:
    """An object; its first line names it."""
    head = f"\nobject:o{number:02} {size:>9}\n".encode()
    return head + random.Random(number).randbytes(size - len(head))


def make_images(folder: Path, units: int) -> list[Drive]:
    """The objects one after another, and as files, on drives of one size; and a drive for
    backups."""
    size = OBJECTS * units * UNIT
    (top := folder / "top").mkdir()
    objects = [contents(number, units * UNIT) for number in range(OBJECTS)]
    for number, each in enumerate(objects):
        (top / f"o{number:02}").write_bytes(each)
    paths = [folder / name for name in DRIVES]
    for path, length in zip(paths, (FULL * size, FULL * size, 12 * size + 16 * MIB), strict=True):
        with path.open("wb") as file:
            file.write(b"".join(objects) if path == paths[0] else b"")
            file.truncate(length)
    for path, source in ((paths[1], ("-d", str(top))), (paths[2], ())):
        fsx.tool("mke2fs", "-q", "-F", "-t", "ext4", "-b", "4096", *source, str(path))
    return [Drive(path, unit) for unit, path in enumerate(paths, 1)]


def places(units: int) -> dict[str, int]:
    """What the owner of the raw store has in his notes."""
    free = OBJECTS * units
    return {"at": PICKED * units, "at3": 3 * units, "bad": 12 * units, "n": units, "free": free,
            "end": free + units}  # fmt: skip


def script_of(units: int) -> str:
    """Each task on raw sectors, and then on files, from a cold cache; at the end both stores are
    compared."""
    mount = "mount -t ext4 /dev/hdc /a && mount -t ext4 /dev/hdd /c"
    notes, parts = places(units), [f"{mount} && touch /a/*"]
    for number, task in enumerate(TASKS):
        parts.append(f"({task.before.format(**notes)}) 2>/dev/null")
        for way, command in enumerate((task.raw, task.file)):
            mark = 4 * number + 2 * way + 1
            parts += ["umount /a && umount /c", "drop", mount, f"mark {mark}"]
            parts += [f"({command.format(**notes)}) 2>/dev/null", "sync", f"mark {mark + 1}"]
    for number in range(OBJECTS):
        at = notes["free"] if number == PICKED else number * units
        count = units + (number == PICKED)
        parts.append(f"dd if=/dev/hdb bs=64k skip={at} count={count} 2>/dev/null | "
                     f"cmp - /a/o{number:02}")  # fmt: skip
    return " && ".join([*parts, "umount /a", "umount /c"])


def moved(phase: Phase) -> dict[str, int]:
    """Bytes that were read from all drives, and written."""
    return {said: 512 * sum(phase.sectors(name, letter) for name in DRIVES)
            for said, letter in (("read", "r"), ("written", "w"))}  # fmt: skip


def measure(where: Where) -> Data:
    """The bytes of each task, both ways."""
    units = SMALL_UNITS if where.small else UNITS
    with work_folder("images", where.build.parent) as folder:
        run = run_guest(where.build, script_of(units), make_images(folder, units))
    rows = []
    for number, task in enumerate(TASKS):
        for way, command in enumerate((task.raw, task.file)):
            figures = moved(run.phases[4 * number + 2 * way + 1])
            rows.append({"task": task.name, "penalty": task.penalty, "way": ("raw", "file")[way],
                         "command": command.format(**places(units)), **figures})  # fmt: skip
    size = OBJECTS * units * UNIT
    return {"rows": rows, "object": units * UNIT, "stored": size, "drive": FULL * size}


def of(data: Data, task: str, way: str) -> float:
    """MiB that a task moved."""
    row = next(r for r in data["rows"] if (r["task"], r["way"]) == (task, way))
    return (row["read"] + row["written"]) / MIB


def result(data: Data) -> float:
    """To back up again after a sixteenth has changed, raw over files."""
    return of(data, TASKS[1].name, "raw") / of(data, TASKS[1].name, "file")


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """MiB of each task, in pairs."""
    figure, axes = pictures(height=3.6)
    names = [task.name for task in TASKS]
    for way, marker in (("raw", "o"), ("file", "s")):
        axes.plot([of(data, name, way) for name in names], range(len(names)), marker,
                  fillstyle="none" if way == "file" else "full", label=way)  # fmt: skip
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.invert_yaxis()
    axes.set(xscale="log")
    axes.set_xlabel(both("MiB moved, logarithmic", "移动的 MiB, 对数坐标"))
    if predicted is not None:
        mark_prediction(axes, predicted * of(data, TASKS[1].name, "file"), is_vertical=True)
    legend(axes)
    return [(figure, "Read and written on all drives; the prediction is for what changed")]


def tables(data: Data) -> Sequence[Table]:
    """The bytes; and the commands."""
    rows = [(f"{task.penalty}: {task.name}", of(data, task.name, "raw"),
             of(data, task.name, "file")) for task in TASKS]  # fmt: skip
    commands = [
        (part, task.name)
        for way in ("raw", "file") for task in TASKS for row in data["rows"]
        if (row["task"], row["way"]) == (task.name, way) for part in row["command"].split("; ")
    ]  # fmt: skip
    half = next(n for n, row in enumerate(commands) if row[0].startswith("tar"))
    return [
        ("MiB moved, read and written on all drives", ["task", "raw", "file"], rows),
        ("Commands on raw sectors: the numbers are in nobody's directory", ["command", "task"],
         commands[:half]),
        ("Commands on files", ["command", "task"], commands[half:]),
    ]  # fmt: skip


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    again, grow, named, copy, repair = (
        [of(data, TASKS[n].name, way) for way in ("raw", "file")] for n in (1, 3, 7, 5, 4)
    )
    return (
        f"Backup: after one of {OBJECTS} objects has changed, raw sectors are copied once more,"
        f" {again[0]:.1f} MiB, and of the files {again[1]:.2f} MiB, {result(data):.0f} times less:"
        " nobody but the file system knows which sectors are in use, and since when.",
        f"Management: to add 64 KiB to an object moves {grow[0]:.2f} MiB on raw sectors, because"
        f" the next object begins there, and {grow[1]:.2f} MiB with files; to find and repair"
        f" damage moves {repair[0]:.1f} and {repair[1]:.1f} MiB.",
        f"Access: a name is found by {named[0]:.1f} MiB of raw sectors or {named[1]:.3f} MiB of"
        f" directory; but to copy an object whose place is known moves {copy[0]:.2f} and"
        f" {copy[1]:.2f} MiB, so there the owner pays with his notes, not with bytes.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape. That both stores were equal at the end, the guest has compared."""
    raw, file = ({task.name: of(data, task.name, way) for task in TASKS} for way in ("raw", "file"))
    drive, size = data["drive"] / MIB, data["object"] / MIB
    all_, again, restore, grow, repair, copy, listed, named = (task.name for task in TASKS)
    return {
        "a raw backup reads and writes the whole drive, each time": all(
            2 * drive <= raw[name] < 2.1 * drive for name in (all_, again)
        ),
        "a backup of files moves what is stored, and no more than a quarter besides": 2
        * data["stored"] / MIB <= file[all_] < 2.5 * data["stored"] / MIB,
        "what changed: one object, read and written, and some metadata": 2 * size
        <= file[again] < 3 * size + 0.5,
        "to restore one object moves one object, on both": all(
            2 * size <= each[restore] < 3 * size + 0.5 for each in (raw, file)
        ),
        "a raw object that grows is moved": raw[grow] >= 2 * size + 0.06 and raw[grow] > file[grow],
        "a copy moves about as much on both": 0.6 < raw[copy] / file[copy] < 1.4,
        "damage: raw reads both drives, files only themselves": raw[repair] > 2 * drive
        and file[repair] < raw[repair] / 2,
        "what is there, and where: raw reads the drive, a directory some blocks": all(
            raw[name] >= drive and file[name] < 0.2 for name in (listed, named)
        ),
    }  # fmt: skip


ABOUT = About(
    number=28,
    title="What did the raw device cost its owners?",
    chinese="裸设备让它的主人付出了什么?",
    question="TFS, Taobao's store of small files, was named in 2010 as a reason to ask: its"
    " developers thought of raw devices as faster. The post lists three penalties: backup and"
    " restoring, management without special tools, access without a convenient method. How many"
    " bytes are they?",
    expected="The penalties were not published as figures. AdvFS of Tru64 Unix had the answer of"
    " its time: direct I/O near the raw disk's speed, and a file system's tools (its data sheet"
    " says so). Ours: a tool that does not know which sectors are in use moves all of them.",
    ask=Question("times", "A quarter of a drive is in use, by 16 objects. One has changed. How many"
                 " times as many bytes does the next backup move on raw sectors as on files?",
                 "times"),
    method="16 objects of 512 KiB, on a raw drive of 32 MiB one after another, and as files on ext4"
    " on a drive of the same size; a third drive has the backups. busybox's dd, tar, find, cp, cmp,"
    " md5sum and strings do each task once on each, from a cold cache, with sync at the end. QEMU"
    " counts the sectors of all three drives. In the end the guest compares all objects.",
    changes="A fuller drive: the raw backup moves as much, and that of the files more. Notes that"
    " say where the last object ends make the first raw backup as small as tar's; notes of what"
    " changed, the second one, too: such notes are the beginning of a file system. A snapshot of"
    " the drive knows what changed without any notes (X34).",
)  # fmt: skip

"""Runs tests/programs/tasks in our kernel, and keeps what the drive and the tasks said.

The drive's requests are in QEMU's log of writes, in their order and with their data. When each was
finished is in the kernel's own trace of requests, read from outside; the tasks report when their
calls began and returned by the same clock. So it is known exactly which requests were finished when
a call returned.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from labs.storage.crash.building import MIB, ROOT, UUID, run_tool
from labs.storage.crash.guest import Recording
from labs.storage.crash.log import read_log
from labs.storage.crash.tasks_model import Model, finished, read_calls
from labs.storage.guest_trace import Record as Trace
from labs.storage.guest_trace import parse_trace
from labs.storage.linux_program import linux_program
from labs.tools.guest.initramfs import archive, regular
from labs.tools.guest.programs import guest_root
from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import Config, Drive

SOURCES = ROOT / "tests/programs/tasks"
PROGRAM = ROOT / "build/tasks/tasks"
KERNEL = ROOT / "build/storage/kernel.elf"
REPORT_BYTES = MIB
DRIVE = "hdb"
SECONDS = 3600


class TasksError(Exception):
    """A guest that did not come to its end, or a record that contradicts itself."""


@dataclass(frozen=True)
class Kind:
    """A kind of file system, how it is mounted, and how many blocks are free (0: all)."""

    name: str
    options: str
    size: int = 9 * MIB
    mount: str = "data=ordered"
    free: int = 0

    @property
    def type(self) -> str:
        """As mount takes it."""
        return self.options.split()[1]

    @property
    def weak(self) -> bool:
        """It has no journal."""
        return self.type == "ext2"


KINDS = {
    kind.name: kind
    for kind in (
        Kind("ext4", "-t ext4 -b 4096"),
        Kind("ext4-1k", "-t ext4 -b 1024", size=4 * MIB),
        Kind("ext4-journal", "-t ext4 -b 1024", size=4 * MIB, mount="data=journal"),
        Kind("ext3", "-t ext3 -b 1024", size=4 * MIB),
        Kind("ext2", "-t ext2 -b 1024", size=3 * MIB, mount="errors=continue"),
        Kind("ext4-full", "-t ext4 -b 4096", free=24),
        Kind("ext3-full", "-t ext3 -b 1024", size=4 * MIB, free=60),
    )
}


def make_image(image: Path, kind: Kind) -> None:
    """An empty file system, always the same."""
    with image.open("wb") as file:
        file.truncate(kind.size)
    seeds = ("-U", UUID, "-E", f"hash_seed={UUID}")
    run_tool("mke2fs", "-q", "-F", *kind.options.split(), *seeds, str(image))


def machine(
    place: Path,
    words: Sequence[object],
    drives: Sequence[Drive],
    kernel: Path = KERNEL,
    icount: int | None = 3,
) -> Config:
    """The kernel with the program as its only one."""
    root = place / "initramfs"
    program = regular("bin/tasks", linux_program(SOURCES, PROGRAM).read_bytes())
    root.write_bytes(archive([*guest_root(ROOT / "build/user/bin", None), program]))
    return Config(
        boot="direct",
        kernel=kernel,
        initramfs=root,
        drives=tuple(drives),
        settings=(
            ("cmd", " ".join(map(str, ("/bin/tasks", "/dev/hdb", *words)))),
            ("disk", "dma-interrupt"),
        ),
        icount=icount,
        screen=False,
        guest_limit=SECONDS,
        wall_limit=SECONDS,
    )


@dataclass(frozen=True)
class Run:
    """What is recorded: so many tasks with so many calls each."""

    kind: str
    tasks: int
    seed: int
    calls: int

    @property
    def name(self) -> str:
        """As ONLY takes it, before the cut."""
        return f"{self.kind}:{self.tasks}:{self.seed}"


@dataclass(frozen=True)
class Record:
    """What came of it: the drive's requests, when each was finished (ns), and the calls."""

    run: Run
    drive: Recording
    ends: list[int]
    model: Model
    said: list[str]  # what the tasks themselves found wrong

    @cached_property
    def first(self) -> int:
        """How many requests there were when the tasks began."""
        return finished(self.ends, min(call.begun for call in self.model.calls))

    def times(self, position: int) -> tuple[float, float]:
        """When the last of these requests was finished, and the next one."""
        last = self.ends[position - 1] if position else -math.inf
        return last, self.ends[position] if position < len(self.ends) else math.inf


def record(what: Run, place: Path, kernel: Path = KERNEL) -> Record:
    """Runs the guest. What it left is in `place`, for `read`. Raises TasksError."""
    kind = KINDS[what.kind]
    place.mkdir(parents=True, exist_ok=True)
    image, disk, log, report = (place / name for name in ("image", "disk", "log", "report"))
    make_image(image, kind)
    disk.write_bytes(image.read_bytes())
    log.write_bytes(b"")
    report.write_bytes(bytes(REPORT_BYTES))
    words = (kind.type, kind.mount, what.tasks, what.seed, what.calls, 1, kind.free, "/dev/hdc")
    drives = (Drive(disk, 1, writable=True, log=log), Drive(report, 2, writable=True))
    config = replace(machine(place, words, drives, kernel), variables=("trace",))
    result = run(config)
    if " calls, " not in result.serial:
        raise TasksError(f"{what.name}: {result.explain()}\n{result.serial[-1500:]}")
    (place / "trace").write_bytes(result.variables["trace"])
    said = [line for line in result.serial.splitlines() if line.startswith("WRONG")]
    (place / "about.json").write_text(json.dumps({"said": said, **vars(what)}))
    run_tool("e2fsck", "-fn", str(disk))
    for scratch in (disk, place / "initramfs"):
        scratch.unlink()
    return read(place)


def read(place: Path) -> Record:
    """What was recorded there. Raises TasksError."""
    about = json.loads((place / "about.json").read_text())
    said = about.pop("said")
    entries = [each for each in read_log(place / "log") if each.data or each.flushes]
    done: list[Trace] = []
    for each in parse_trace((place / "trace").read_bytes())[1]:
        again = each.operation == "F" and (not done or done[-1].operation == "F")
        if each.drive == DRIVE and each.operation in "WF" and not again:
            done.append(each)  # QEMU leaves out a flush that has nothing to do
    ours = [(each.lba, each.sectors) for each in done if each.operation == "W"]
    theirs = [(each.sector, len(each.data) // 512) for each in entries if each.data]
    if ours != theirs or len(done) != len(entries):
        raise TasksError(f"{place}: the kernel's trace and the drive's log differ")
    drive = Recording((place / "image").read_bytes(), entries, [])
    model = Model(read_calls((place / "report").read_bytes()), about["tasks"])
    ends = [each.start_ns + each.duration_ns for each in done]
    return Record(Run(**about), drive, ends, model, said)

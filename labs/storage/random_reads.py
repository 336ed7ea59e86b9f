"""X1: the random reads of 2010, by the program seekrw on the student's kernel.

    boot -> mount -> for each row: drop the caches, seekrw, /proc/diskstats

Three witnesses count, and must agree on every request:

    the kernel      /proc/diskstats, before and after; its ring of requests, with their purposes,
                    which the host reads out of memory while the guest runs
    QEMU            query-blockstats, and the events of its IDE controller

The fourth, seekrw, compares each sector with its stamp. Requests are in units of 512 bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from shutil import copyfile
from typing import Any

from labs.storage import disks
from labs.storage.guest_trace import PAUSE_SETTING, PAUSES, Purpose, Record, RingReader
from labs.tools.guest.programs import COMMAND
from labs.tools.machine.machine import Machine
from labs.tools.machine.qemu_command import Config, Drive
from labs.tools.machine.result import Outcome, Result
from labs.tools.machine.work_folder import work_folder

FILES = {"hdb": "/dev/hdb", "hdc": "/mnt/hdc/big", "hdd": "/mnt/hdd/big"}
MOUNTS = {"hdc": "ext3", "hdd": "ext4"}
QEMU_EVENTS = ("ide_*exec_cmd", "ide_sector_read", "ide_dma_cb")
QEMU_LINE = re.compile(
    r"exec_cmd IDE exec cmd: bus \w+; state (?P<command>\w+)"
    r"|ide_sector_read sector=(?P<lba>\d+) nsectors=(?P<sectors>\d+)"
    r"|ide_dma_cb IDEState (?P<drive>\w+); sector_num=(?P<dma_lba>\d+) n=(?P<dma_sectors>\d+)"
)
FAST = ("aio=io_uring",)
"""A drive's request is done at once, if the host can: else it waits for a thread of QEMU's."""


SAMPLES, SAMPLE_SECONDS = 200, (0.05, 0.2, 1, 4)
"""How often a run is looked at, and how long after one another, from its beginning on: a run takes
seconds or, at full size on a busy computer, many minutes, and its middle must be seen."""


FIRST_SECONDS, READS_PER_SECOND = 120, 125
"""Real seconds that a machine may take: to boot, and for its reads. An idle computer makes some
thousand a second, so a row that passes this has no chance to be done in a useful time."""


class LabError(Exception):
    """The run is not to be trusted, or there was none; the text says why."""


class LateError(LabError):
    """The time of a machine was used up before its rows were done."""


@dataclass(frozen=True)
class Row:
    """A row of the table: one run of seekrw."""

    name: str
    drive: str
    direct: bool

    def command(self, experiment: disks.Experiment) -> str:
        """What the guest's shell runs."""
        return (
            f"seekrw -f {FILES[self.drive]} -a {experiment.reads} -l 512 -r -s {experiment.seed} "
            f"-c -D {self.drive[-1]} {'-d ' if self.direct else ''}-j"
        )


ROWS = (
    Row("ext3 buffered", "hdc", direct=False),
    Row("ext4 buffered", "hdd", direct=False),
    Row("ext3 direct", "hdc", direct=True),
    Row("ext4 direct", "hdd", direct=True),
    Row("raw buffered", "hdb", direct=False),
    Row("raw direct", "hdb", direct=True),
)


@dataclass(frozen=True)
class RowRun:
    """What one run of seekrw asked of its drive, in order, and what seekrw said. samples: how many
    requests and sectors /proc/diskstats had counted of it meanwhile, time after time."""

    row: Row
    records: Sequence[Record]
    said: dict = field(repr=False)
    samples: Sequence[tuple[int, int]] = field(default=(), repr=False)


def drives_of(directory: Path, options: tuple[str, ...] = ()) -> tuple[Drive, ...]:
    """The lab's drives: hdb, hdc and hdd."""
    return tuple(
        Drive(disks.image_path(directory, drive), unit, options=options)
        for unit, drive in enumerate(disks.DRIVES, start=1)
    )


def script(rows: Sequence[Row], experiment: disks.Experiment) -> str:
    """The guest's commands. Mounts are read-only: else a read changes the file's access time."""
    lines = ["set -e"]
    for drive in sorted({row.drive for row in rows} & MOUNTS.keys()):
        lines += [
            f"mkdir -p /mnt/{drive}",
            f"mount -o ro -t {MOUNTS[drive]} /dev/{drive} /mnt/{drive}",
        ]
    for row in rows:
        look = f"grep ' {row.drive} ' /proc/diskstats"
        lines += [
            "echo 3 >/proc/sys/vm/drop_caches",
            f"true 2>/dev/null <{FILES[row.drive]} || true",  # reads its inode
            f"{look} >/samples",
            f"for s in {' '.join(map(str, SAMPLE_SECONDS))}; do for i in $(seq {SAMPLES}); do "
            f"sleep $s; {look}; done; done >>/samples &",
            f"{row.command(experiment)} 2>/errors || {{ cat /errors; exit 1; }}",
            "kill $! 2>/dev/null || :",
            "cat /proc/diskstats",
            "sed 's/^/sample/' /samples",
        ]
    return "\n".join([*lines, ""])


def measure(
    config_of: Callable[[str], Config],
    directory: Path,
    experiment: disks.Experiment,
    rows: Sequence[Row] = ROWS,
    machines: int = 1,
    progress: Callable[[int], None] = lambda requests: None,
) -> list[RowRun]:
    """Runs the rows, in their order; `config_of` makes the machine that runs a command.

    With several machines at a time each row has one of its own, and a row whose time is used up is
    left out; with one an error ends all. `progress` is told how many requests there were since it
    was last told. Raises LabError, also if no row is left.
    """
    groups = [[row] for row in rows] if machines > 1 else [list(rows)]
    work = partial(
        _measure_group if machines == 1 else _measure_or_leave_out,
        directory=directory, experiment=experiment, progress=progress,
    )  # fmt: skip
    configs = [config_of(script(group, experiment)) for group in groups]
    with ThreadPoolExecutor(machines) as pool:
        done = [run for runs in pool.map(work, configs, groups) for run in runs]
    if not done:
        raise LabError(f"no row was done within {limit_of(1, experiment):.0f} seconds")
    return sorted(done, key=lambda run: rows.index(run.row))


def limit_of(rows: int, experiment: disks.Experiment) -> float:
    """Real seconds for a machine that runs so many rows."""
    return FIRST_SECONDS + rows * experiment.reads / READS_PER_SECOND


def _measure_or_leave_out(config: Config, rows: Sequence[Row], **how: Any) -> list[RowRun]:
    """Nothing if the time is used up."""
    try:
        return _measure_group(config, rows, **how)
    except LateError:
        return []


def _measure_group(
    config: Config,
    rows: Sequence[Row],
    directory: Path,
    experiment: disks.Experiment,
    progress: Callable[[int], None],
) -> list[RowRun]:
    seconds = limit_of(len(rows), experiment)
    config = replace(
        config,
        settings=(
            ("cmd", f"/bin/sh /{COMMAND}"),
            ("cache", "45"),
            ("disk", "dma-interrupt"),
            PAUSE_SETTING,
        ),
        guest_limit=100 * seconds,  # a guest that waits for its drive is not at fault
        wall_limit=seconds,
    )
    for options in (FAST, ()):
        with work_folder("requests") as folder:
            log = folder / "log"
            result, ring = _run(
                replace(
                    config,
                    kernel=Path(
                        copyfile(config.kernel, folder / "kernel.elf")
                    ),  # make may renew it
                    drives=drives_of(directory, options),
                    extra=(
                        *PAUSES,
                        "-D",
                        str(log),
                        *(word for e in QEMU_EVENTS for word in ("-trace", e)),
                    ),
                ),
                progress,
            )
            if result.outcome is not Outcome.QEMU_FAILED:
                check_end(result)
                lines = log.read_text() if log.exists() else ""
                return checked(result, ring.records, seen_by_qemu(lines), rows)
    raise LabError(result.explain())


def _run(config: Config, progress: Callable[[int], None]) -> tuple[Result, RingReader]:
    """The finished machine, and all records of the kernel's ring."""
    with Machine(config, interactive=False) as machine:
        ring = RingReader(machine)
        result = machine.wait(lambda: progress(ring.read()), ring.finish)
    return result, ring


def seen_by_qemu(log: str) -> dict[str, list[tuple[int, int]]]:
    """LBA and sectors of each request by drive. QEMU names a drive by an address, and these ascend
    in the order of the drives, each of which has had its partition table read, by PIO."""
    found: dict[str, list[tuple[int, int]]] = {}
    drive = ""
    for command, lba, sectors, dma_drive, dma_lba, dma_sectors in QEMU_LINE.findall(log):
        if command:
            drive = command
        elif dma_drive:
            found.setdefault(dma_drive, []).append((int(dma_lba), int(dma_sectors)))
        elif drive:
            found.setdefault(drive, []).append((int(lba), int(sectors)))
            drive = ""  # the next blocks of the same request
    if len(found) != len(FILES):
        raise LabError(f"{len(found)} drives were read; there are {', '.join(FILES)}")
    return {name: found[address] for name, address in zip(FILES, sorted(found), strict=True)}


def check_end(result: Result) -> None:
    """The guest ended as it should. Raises LabError with its last words: an exercise may be missing
    that the reads need."""
    if result.outcome is not Outcome.ENDED or result.status != 0:
        kind = LateError if result.outcome is Outcome.WALL_LIMIT else LabError
        raise kind(f"{last_words(result.serial)}\n{result.explain(with_output=False)}")


def checked(
    result: Result,
    records: Sequence[Record],
    seen: dict[str, list[tuple[int, int]]],
    rows: Sequence[Row],
) -> list[RowRun]:
    """The rows' runs, if all witnesses agree. Raises LabError."""
    check_end(result)
    mine = {drive: [r for r in records if r.drive == drive] for drive in FILES}
    for drive, theirs in seen.items():
        statistics = result.block_statistics[drive]
        compare(drive, [(r.lba, r.sectors) for r in mine[drive]], theirs)
        compare(f"{drive}, in all", statistics.reads, len(theirs))
        compare(f"{drive}, bytes", statistics.read_bytes, 512 * sum(n for _, n in theirs))
    return [
        _row_run(row, said, mine[row.drive])
        for row, said in zip(rows, what_was_said(result.serial), strict=True)
    ]


def compare(what: str, ours: object, theirs: object) -> None:
    """Raises LabError, which names the first difference."""
    if ours == theirs:
        return
    if isinstance(ours, list) and isinstance(theirs, list):
        pairs = zip(ours, theirs, strict=False)
        place = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(ours), len(theirs)))
        what += f", request {place}"
        ours, theirs = (
            each[place] if place < len(each) else f"{len(each)} requests" for each in (ours, theirs)
        )
    raise LabError(f"the guest and QEMU disagree: {what}: {ours} in the guest, {theirs} in QEMU")


@dataclass
class Said:
    """What the guest printed of a row: seekrw's result; how many reads and sectors each drive had
    had when it was over; and those of its own drive while it ran."""

    result: dict
    end: dict[str, tuple[int, int]] = field(default_factory=dict)
    samples: list[tuple[int, int]] = field(default_factory=list)


def what_was_said(serial: str) -> list[Said]:
    """Of each row."""
    found: list[Said] = []
    for line in serial.splitlines():
        words = line.split()
        if line.startswith("{"):
            found.append(Said(json.loads(line)))
        elif found and line.startswith("sample") and len(words) > 6:
            found[-1].samples.append((int(words[-17]), int(words[-15])))
        elif found and len(words) > 5 and words[2] in FILES:
            found[-1].end[words[2]] = (int(words[3]), int(words[5]))
    return found


def _row_run(row: Row, guest: Said, records: Sequence[Record]) -> RowRun:
    """The drive's last records when the row was over; what was before belongs to mounting."""
    said, (end, _) = guest.result, guest.end[row.drive]
    requests = said["requests"]
    mine = records[end - requests["reads"] : end]
    if sum(record.sectors for record in mine) != requests["sectors_read"]:
        raise LabError(f"{row.name}: the ring has other requests than /proc/diskstats has counted")
    if any(record.operation != "R" or record.purpose is Purpose.OTHER for record in mine):
        raise LabError(f"{row.name}: a request was neither for data nor for a mapping block")
    if said["wrong"]:
        raise LabError(f"{row.name}: {said['wrong']} reads brought a wrong sector")
    samples = [*guest.samples, guest.end[row.drive]]
    return RowRun(row, mine, said, in_row(row, samples, end - len(mine), mine))


def in_row(
    row: Row, samples: Sequence[tuple[int, int]], before: int, records: Sequence[Record]
) -> list[tuple[int, int]]:
    """The samples, counted from the row's first request on; each has the sectors of the requests
    that it counts. Raises LabError."""
    sectors = list(accumulate((each.sectors for each in records), initial=0))
    first, found = 0, []
    for reads, moved in samples:
        if not before <= reads <= before + len(records):
            continue
        if not found:
            first = moved - sectors[reads - before]
        if moved - first != sectors[reads - before]:
            raise LabError(
                f"{row.name}: a sample of /proc/diskstats has other sectors than the ring"
            )
        found.append((reads - before, moved - first))
    return found


def last_words(serial: str) -> str:
    """What the guest said at its end."""
    return "\n".join(serial.splitlines()[-3:])

"""A run of the student's kernel for an experiment: a script in its shell, with drives, and every
disk request as QEMU saw it, by phases.

The script calls `mark N` between phases. It reads from hda, a drive that holds nothing else, at
64 KiB * N: so the marks are in the list of requests itself, whatever the guest's clock says. The
drives answer at once; what the requests cost on a real one, the model says (disk_model.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labs.bench.counting import Count, Counter
from labs.storage import disks, fsx
from labs.storage.disk_model import SECTOR_BYTES, Model, Request, drive, replay
from labs.storage.experiments import margins
from labs.tools.guest.initramfs import Entry
from labs.tools.guest.programs import COMMAND, busybox, guest_root
from labs.tools.machine.linux import said_by
from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import Config, Drive
from labs.tools.machine.result import Outcome, Result
from labs.tools.machine.run import write_archive
from labs.tools.machine.work_folder import work_folder

MARKS = 64
REST = 1900  # characters of a report, after its first line
MARK_BYTES = 65_536
MARK_DRIVE = "hda"
PATTERN = bytes(range(1, 256)) * 4112
PRELUDE = (
    "mark() { dd if=/dev/hda of=/dev/null bs=512 count=1 skip=$(($1 * 128)) 2>/dev/null; }; "
    "drop() { sync; echo 3 >/proc/sys/vm/drop_caches; }; mkdir -p /a /b /c; "
)


class ExperimentError(Exception):
    """A run did not come to its end; the text has the guest's last words."""


@dataclass(frozen=True)
class Phase:
    """What happened between a mark and the next, in order: drive and request."""

    requests: Sequence[tuple[str, Request]]

    def of(self, name: str) -> list[Request]:
        """The requests of one drive."""
        return [request for drive_name, request in self.requests if drive_name == name]

    def count(self, name: str, operation: str = "") -> int:
        """How many requests of a drive begin with these letters."""
        return sum(request.operation.startswith(operation) for request in self.of(name))

    def sectors(self, name: str, operation: str = "") -> int:
        """Their sectors."""
        return sum(r.sectors for r in self.of(name) if r.operation.startswith(operation))

    def seconds(self, name: str, model: Model) -> float:
        """What they take on a drive, one after another, until nothing is in its cache."""
        done = replay(self.of(name), model)
        return (done.total_ms + model.flush(done.total_ms).transfer_ms) / 1000

    def margin(self, name: str, model: Model) -> float:
        """Half of the interval of 95 percent of `seconds`, in seconds, as other seeds would give
        it."""
        return margins.of_total_ms(replay(self.of(name), model)) / 1000


@dataclass(frozen=True)
class GuestRun:
    """What the script said, its phases by the number of the mark, and what a counter counted at the
    marks of its programs (user/measure.h, `instructions_mark`)."""

    said: str
    phases: dict[int, Phase]
    counts: Sequence[Count] = ()


def run_guest(
    build: Path,
    script: str,
    drives: Sequence[Drive],
    programs: Sequence[Entry] = (),
    memory: int = 96,
    settings: tuple[tuple[str, str], ...] = (),
    seconds: float = 600,
    extra: tuple[str, ...] = (),
    counter: Counter | None = None,
    icount: int | None = None,
) -> GuestRun:
    """Runs the script on the storage lab's kernel; `extra` are QEMU's, `icount` as in Config.
    Raises ExperimentError."""
    own = build.parent / "user/bin"
    with work_folder("guest") as directory:
        marks = directory / "marks"
        with marks.open("wb") as file:
            file.truncate(MARKS * MARK_BYTES)
        command = f"{PRELUDE}{script}; echo status: $?"
        files = [*guest_root(own, busybox(), command=command), *programs]
        config = Config(
            boot="direct",
            kernel=build / "kernel.elf",
            initramfs=write_archive(directory, files),
            settings=(("cmd", f"echo from the host; /bin/sh /{COMMAND}"), *settings),
            drives=(Drive(marks, 0), *drives),
            memory=memory,
            icount=icount,
            trace=True,
            guest_limit=seconds,
            wall_limit=seconds,
            output_limit=64 << 20,
            extra=(*extra, *(counter.words(directory, build / "kernel.elf") if counter else ())),
        )
        result = run(config)
        counts = counter.read(directory) if counter else ()
    said, status = said_by(result.serial)
    if status != 0:
        how = "did not come to its end" if status is None else f"ended with {status}"
        raise ExperimentError(f"the guest {how}: {reason(result)}")
    requests = [
        (each.drive, Request(each.operation, each.lba, each.sectors))
        for each in result.all_requests
    ]
    return GuestRun(said, phases_of(requests), counts)


def reason(result: Result) -> str:
    """Why it stopped: what comes first says it, and what the guest printed last comes last."""
    headline, _, rest = result.explain().partition("\n")
    if result.outcome in (Outcome.HANG, Outcome.WALL_LIMIT):
        headline += "\nThis takes longer on a computer that is busy: try again when it is not."
    return f"{headline}\n{rest[-REST:]}".rstrip()


def said_rows(done: GuestRun) -> list[dict[str, Any]]:
    """The lines of JSON that programs said."""
    return [json.loads(line) for line in done.said.splitlines() if line.startswith("{")]


def counted_rows(done: GuestRun) -> list[dict[str, Any]]:
    """The same, each with the count between its two marks. Raises ExperimentError unless there are
    two for each."""
    rows = said_rows(done)
    if len(done.counts) != 2 * len(rows):
        raise ExperimentError(f"{len(rows)} lines of figures, and {len(done.counts)} marks")
    pairs = zip(done.counts[::2], done.counts[1::2], strict=True)
    return [row | {"count": end - start} for row, (start, end) in zip(rows, pairs, strict=True)]


def phases_of(requests: Sequence[tuple[str, Request]]) -> dict[int, Phase]:
    """Cuts a run at its marks; what comes before the first is phase 0."""
    phases: dict[int, list[tuple[str, Request]]] = {0: []}
    number = 0
    for name, request in requests:
        mark = request.lba * SECTOR_BYTES // MARK_BYTES
        if name == MARK_DRIVE and mark > number:
            number = mark
            phases[number] = []
        elif name != MARK_DRIVE:
            phases[number].append((name, request))
    return {number: Phase(each) for number, each in phases.items()}


def model(name: str, image: Path, cache: str = "off") -> Model:
    """A model with the size of an image."""
    return drive(name, image.stat().st_size // SECTOR_BYTES, cache)


def sized_disks(build: Path, scale: int) -> list[Path]:
    """The lab's three images at a scale: raw, block pointers, extents; each of the last two is
    filled by one file, /big. Made once."""
    directory = build.parent / f"disks-{scale}"
    disks.make_disks(directory, disks.Experiment(scale=scale, reads=1))
    return [disks.image_path(directory, each) for each in disks.DRIVES]


def data_image(path: Path, size: int, files: Mapping[str, int], options: str = "-t ext4") -> Path:
    """A file system with files of this many bytes, none of them a hole."""
    with work_folder("files") as folder:
        for each, length in files.items():
            place = folder / each
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("wb") as file:
                for start in range(0, length, len(PATTERN)):
                    file.write(PATTERN[: length - start])
        with path.open("wb") as file:
            file.truncate(size)
        fsx.tool("mke2fs", "-q", "-F", "-b", "4096", *options.split(), "-d", str(folder), str(path))
    return path

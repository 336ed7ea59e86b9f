"""A recorded run's past: machines that are wherever the run has been.

QEMU's record makes the run repeat itself to the instruction, so that going back is running again:
from the start, or from the last snapshot before. A snapshot is loaded by a QEMU that is started for
it (rrsnapshot): one that runs already hangs when it is to load one (QEMU 7.2).
"""

from __future__ import annotations

import re
import shutil
import subprocess
from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from labs.tools.debugging.past.preload import when_repeating
from labs.tools.debugging.past.stub import LOOK_SECONDS, PHYSICAL, Stub, registers_in
from labs.tools.machine.bounded import Standstill
from labs.tools.machine.gdb_protocol import StubError, monitor_packet
from labs.tools.machine.qemu_command import Config
from labs.tools.machine.qemu_process import start_qemu

SPACING = 5_000_000  # instructions between two snapshots: about 50 ms of running again
MOST_SNAPSHOTS = 40
RETRY = 20_000  # instructions, until a snapshot is tried again that could not be made
ROOM = "room"  # the drive that holds the snapshot; the guest does not see it
SNAPSHOT = "place"
IDLE_SECONDS = 20  # in which a machine that could work does nothing: it does not get on
Pace = tuple[float, float]
WORKING: Pace = 3, 1_000_000  # seconds of a processor, and more for each so many instructions
WATCHED: Pace = 2, 5_000_000  # with watchpoints
TRIES = 5  # some snapshots of QEMU 7.2 do not get on: whether one does depends on its threads
SHUTDOWNS = [bytes([each]) for each in range(0x0A, 0x14)]
MANY_INSTRUCTIONS = bytes.fromhex("007fffffff")
VERSION_BYTES = 4
ALTERNATE_STATUS = (0x3F6, 0x376)  # ATA, of the two channels
BUSY, DATA_REQUEST = 1 << 7, 1 << 3
INPUT = re.compile("(f2|f3|66|67)*6[cd]")  # INSB, INSW, INSD, in hexadecimal digits


class StandstillError(StubError):
    """A machine of the past does not get on, and was ended."""


Found = TypeVar("Found")


def tried(work: Callable[[], Found], tries: int = TRIES) -> Found:
    """What `work` returns, which starts machines of its own: begun again where one of them does not
    get on. Raises StandstillError."""
    for _ in range(tries - 1):
        with suppress(StandstillError):
            return work()
    return work()


@dataclass(frozen=True)
class Edit:
    """What a person changed at an instruction count of the run: packets, or monitor commands."""

    count: int
    packet: str


class Past:
    """A machine that repeats the run. It goes forward only."""

    def __init__(
        self, history: History, folder: Path, snapshot: int | None, is_logged: bool = False
    ) -> None:
        """snapshot: where it begins. is_logged: QEMU writes exceptions down, too."""
        self._history = history
        self._folder = folder
        folder.mkdir()
        if snapshot is not None:
            for file in history.folder_of(snapshot).iterdir():
                shutil.copy(file, folder / file.name)
        else:
            history.make_disks(folder)
        config = history.config_in(folder, snapshot is not None)
        channels = ["-S", "-gdb", f"unix:{folder / 'gdb'},server=on,wait=off"]
        channels += ["-chardev", f"file,id=serial,path={folder / 'serial'}"]
        channels += ["-serial", "chardev:serial"]
        if is_logged:
            channels += ["-d", "int,cpu_reset", "-D", str(folder / "interrupts")]
        if history.has_snapshots:
            channels += ["-drive", f"if=none,id={ROOM},format=qcow2,file={folder / ROOM}"]
        self._process = start_qemu(config, folder, channels, environment=when_repeating())
        self.stub = Stub(folder / "gdb", self._process)
        self.count = snapshot or 0
        self._snapshot = snapshot
        self._edited = snapshot if snapshot is not None else -1  # edits up to there are made
        self._edit()

    def end(self) -> None:
        """Ends QEMU."""
        self._process.kill()
        self._process.wait()
        self.stub.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def go(self, count: int) -> None:
        """Runs up to an instruction count, with no breakpoints set. Raises StubError."""
        mark = self._history.next_mark(self.count)
        while self.count < count:
            self.run(min(count, mark))
            if self.count == mark:
                is_kept = self._history.keep(self)
                mark = self._history.next_mark(mark) if is_kept else mark + RETRY

    def run(
        self,
        limit: int,
        is_interrupted: Callable[[], bool] = lambda: False,
        pace: Pace = WORKING,
    ) -> str:
        """Runs up to an instruction count, or to a breakpoint before, at this pace at the least;
        returns the stub's stop packet. `self.count` says where it is. Raises StandstillError."""
        reply, busy = "T05", pace[0] + (limit - self.count) / pace[1]
        while self.count < limit:
            stop = min(limit, self._history.next_edit(self.count))
            self.stub.ask_all(monitor_packet(f"replay_break {stop}"))
            self.stub.send("c")
            reply = self._stopped(is_interrupted, busy)
            self.count = self.stub.count()
            self._edit()
            if self.count != stop:
                break
        return reply

    def step(self) -> str:
        """One instruction, whatever breakpoint is there; returns the stop packet."""
        self.stub.send("s")
        reply = self._stopped()
        self.count = self.stub.count()
        self._edit()
        return reply

    def is_at_input(self) -> bool:
        """Whether the next instruction is INS, which writes to memory what a device has."""
        registers = registers_in(self.stub.ask("g"), ("", "", "", "", "", "", "", "", "eip"))
        return bool(INPUT.match(self.stub.ask(f"m{registers['eip']:x},4")))

    def physical(self, address: int, size: int) -> bytes:
        """Bytes of physical memory; none where there is no memory."""
        on, off = PHYSICAL
        answer = self.stub.ask_all(on, f"m{address:x},{size:x}", off)[1]
        return b"" if answer.startswith("E") else bytes.fromhex(answer)

    def save(self, folder: Path) -> bool:
        """Puts a snapshot of now into a folder. False where QEMU cannot, or had better not: a
        drive's request that is under way is not in the snapshot, and would never end."""
        if any(self._drive_status(port) & (BUSY | DATA_REQUEST) for port in ALTERNATE_STATUS):
            return False
        if self.stub.monitor(f"savevm {SNAPSHOT}").strip():
            return False
        folder.mkdir()
        for file in self._folder.glob("*.qcow2"):
            shutil.copy(file, folder / file.name)
        shutil.copy(self._folder / ROOM, folder / ROOM)
        self.stub.monitor(f"delvm {SNAPSHOT}")
        return True

    def _drive_status(self, port: int) -> int:
        """The status of a channel's drive, read where that changes nothing; 0 without a drive."""
        return int(self.stub.monitor(f"i /b {port:#x}").split("=")[1], 16)

    def _edit(self) -> None:
        """Makes the changes that a person made at this count."""
        for edit in self._history.edits:
            if self._edited < edit.count <= self.count:
                self.stub.ask_all(edit.packet)
        self._edited = max(self._edited, self.count)

    def run_watched(self, limit: int) -> str:
        """The same with watchpoints. They make QEMU 7.2 go round for ever where REP INS writes to
        what is watched."""
        return self.run(limit, pace=WATCHED)

    def _stopped(
        self,
        is_interrupted: Callable[[], bool] = lambda: False,
        busy: float = WORKING[0],
    ) -> str:
        """The stop packet of a machine that runs. Raises StandstillError. The machine is not
        stopped to look how far it is: one that repeats a run may not get on then."""
        standstill = Standstill(self._process.pid, IDLE_SECONDS, busy)
        while True:
            with suppress(TimeoutError):
                return self.stub.receive(LOOK_SECONDS)
            if is_interrupted():
                self.stub.interrupt()
                return self.stub.receive()
            if standstill.is_over():
                self.end()
                if self.count == self._snapshot:
                    self._history.forget(self.count)
                raise StandstillError(
                    f"the run cannot be repeated beyond instruction {self.count:,}"
                )


class History:
    """The run, up to `present`, an instruction count that grows while the machine runs on."""

    def __init__(self, config: Config, directory: Path, is_growing: bool) -> None:
        """config: the machine's, with its record or replay; directory: for what is made here;
        is_growing: QEMU still writes the record."""
        self._config = config
        self._source = config.record or config.replay
        self._directory = directory
        directory.mkdir()
        self._record = directory / "record" if is_growing else self._source
        self._version = b""
        self._copied = -1
        self._snapshots: list[int] = []
        self._forgotten: set[int] = set()
        self._started = 0
        self._told: dict[tuple[int, str], str] = {}
        self.clock = config.clock
        self.present = 0
        self.edits: list[Edit] = []
        # What the card wrote is in a layer of QEMU's own, which no other process can load.
        self.has_snapshots = config.boot != "card"

    def at(self, count: int) -> Past:
        """A machine that is at an instruction count. The caller ends it. Raises StubError."""
        return tried(lambda: self._at(count))

    def _at(self, count: int) -> Past:
        before = bisect_right(self._snapshots, count)
        snapshot = self._snapshots[before - 1] if before else None
        self._started += 1
        self._copy()
        past = Past(self, self._directory / f"past-{self._started}", snapshot)
        try:
            past.go(count)
        except BaseException:
            past.end()
            raise
        return past

    def told(self, count: int, what: str) -> str:
        """What a machine has written up to an instruction count: "serial" or "interrupts"."""
        if (count, what) not in self._told:
            tried(lambda: self._tell(count))
        return self._told[count, what]

    def _tell(self, count: int) -> None:
        self._started += 1
        self._copy()
        folder = self._directory / f"past-{self._started}"
        past = Past(self, folder, None, is_logged=True)
        try:
            past.go(count)
            files = {each: folder / each for each in ("serial", "interrupts")}
            for name, file in files.items():
                words = file.read_text(errors="replace") if file.exists() else ""
                self._told[count, name] = words
        finally:
            past.end()

    def _copy(self) -> None:
        """Takes over what QEMU has recorded by now, in a form that it reads: with the version in
        front, which it writes at its end, and at the end as many instructions as anybody may want.
        The end of the run itself is written too early (labs/tools/debugging/replay.py)."""
        if self._record == self._source or self._copied == self.present:
            return
        self._version = self._version or version_of(self._config.qemu, self._directory)
        body = self._source.read_bytes()[len(self._version) :]
        body = body[:-1] if body[-1:] in SHUTDOWNS else body
        self._record.unlink(missing_ok=True)  # others read the former one still
        self._record.write_bytes(self._version + body + MANY_INSTRUCTIONS)
        self._copied = self.present

    # What the machines ask

    def next_mark(self, count: int) -> int:
        """Where the next snapshot is to be made."""
        spacing = self._spacing()
        return (count // spacing + 1) * spacing if self.has_snapshots else 1 << 62

    def next_edit(self, count: int) -> int:
        """Where a person changed something, after a count."""
        return min((each.count for each in self.edits if each.count > count), default=1 << 62)

    def keep(self, past: Past) -> bool:
        """Makes a snapshot of where the machine is, unless there is one near; False where QEMU
        cannot."""
        spacing, places = self._spacing(), self._forgotten.union(self._snapshots)
        if not any(0 <= past.count - each < spacing // 2 for each in places):
            if not past.save(self.folder_of(past.count)):
                return False
            self._snapshots = sorted([*self._snapshots, past.count])
        return True

    def forget(self, snapshot: int) -> None:
        """Takes away a snapshot whose machine does not get on; there will be none in its place."""
        if snapshot in self._snapshots:
            self._snapshots.remove(snapshot)
            self._forgotten.add(snapshot)
            shutil.rmtree(self.folder_of(snapshot))

    def _spacing(self) -> int:
        """Instructions between two snapshots."""
        return max(SPACING, self.present // MOST_SNAPSHOTS)

    def folder_of(self, snapshot: int) -> Path:
        """Where a snapshot is."""
        return self._directory / f"at-{snapshot}"

    def config_in(self, folder: Path, has_snapshot: bool) -> Config:
        """The machine once more. Each disk has its changes in a file of the folder."""
        drives = tuple(
            replace(each, path=folder / f"{each.name}.qcow2", format="qcow2", writable=True)
            for each in self._config.all_drives()
        )
        return replace(
            self._config,
            image=None if self._config.boot == "disk" else self._config.image,
            drives=drives,
            record=None,
            replay=self._record,
            replay_from=SNAPSHOT if has_snapshot else "",
        )

    def make_disks(self, folder: Path) -> None:
        """The files that a machine writes to, empty."""
        if self.has_snapshots:
            qemu_img("create", "-q", "-f", "qcow2", folder / ROOM, "1M")
        for drive in self._config.all_drives():
            path = drive.path.resolve() if isinstance(drive.path, Path) else drive.path
            backing = ("-F", drive.format, "-b", path)
            qemu_img("create", "-q", "-f", "qcow2", *backing, folder / f"{drive.name}.qcow2")


def qemu_img(*words: object) -> None:
    """Runs qemu-img. Raises StubError with its words."""
    command = ["qemu-img", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise StubError(f"qemu-img failed: {done.stderr.strip()}")


def version_of(qemu: str, directory: Path) -> bytes:
    """How QEMU begins its records."""
    trial = directory / "trial"
    command = [qemu, "-machine", "none", "-nodefaults", "-display", "none", "-S"]
    command += ["-icount", f"shift=3,rr=record,rrfile={trial}", "-monitor", "stdio"]
    subprocess.run(command, input=b"quit\n", capture_output=True, check=False)
    return trial.read_bytes()[:VERSION_BYTES]

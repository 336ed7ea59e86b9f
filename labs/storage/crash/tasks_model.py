"""What a power cut may leave of files that several tasks had used: from the calls that they made.

Each cell (512 bytes) of a file, each file of a task's own and each name has one task that changes
it, so the order of its changes is known, whatever the tasks did at the same time:

    calls on a cell       write A     write B      write C                     -> time
    a sync covers it          begun ------- returned
    a cut                                                 ^  A is safe: A, B or C must be there

A change is safe from when a sync that began after it has returned. Whatever was begun before the
cut may be there, too. Of a task's names a state has those after one of its calls, all together: the
journal knows no half of a rename.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum

CELL, CELLS, WORD = 512, 64, 8
SHARED, TASKS, SLOTS = 2, 4, 4
NO_NAME, DIRECTORY = 100, 254
SYNCHRONOUS = 1
_CALL = struct.Struct("<QQBBBBiIIII")


class Kind(IntEnum):
    """As in tests/programs/tasks/tasks.h."""

    WRITE = 1
    STORE = 2
    PUNCH = 3
    RESIZE = 4
    MSYNC = 5
    FSYNC = 6
    FDATASYNC = 7
    SYNC = 8
    SYNC_DIRECTORY = 9
    CREATE = 10
    LINK = 11
    RENAME = 12
    UNLINK = 13
    MKDIR = 14
    RMDIR = 15
    DROP = 16
    RANGE = 17
    READ = 18
    FILL = 19
    APPEND = 20


OF_DATA = (Kind.WRITE, Kind.STORE, Kind.PUNCH, Kind.RESIZE)
OF_NAMES = (Kind.CREATE, Kind.LINK, Kind.RENAME, Kind.UNLINK, Kind.MKDIR, Kind.RMDIR)
OF_A_FILE = (Kind.MSYNC, Kind.FSYNC, Kind.FDATASYNC)
SYNCS = (*OF_A_FILE, Kind.SYNC, Kind.SYNC_DIRECTORY)


@dataclass(frozen=True)
class Call:
    """A call of a task, with times of the guest in ns. `result` is negative for an error."""

    begun: int
    returned: int
    task: int
    kind: Kind
    file: int
    flags: int
    result: int
    first: int
    count: int
    value: int
    inode: int

    def __str__(self) -> str:
        where = f" file {self.file}" if self.kind in (*OF_DATA, *OF_A_FILE, *OF_NAMES) else ""
        cells = f", {self.count} from {self.first} on" if self.kind in OF_DATA else ""
        cells = f", names {self.first}, {self.count}" if self.kind in OF_NAMES else cells
        number = self.value & 0xFFFFFF
        return (
            f"{self.begun / 1e6:.3f} to {self.returned / 1e6:.3f} ms, task {self.task}, "
            f"call {number}: {self.kind.name.lower()}{where}{cells} = {self.result}"
        )


def read_calls(report: bytes) -> list[Call]:
    """The calls of all tasks; each task's are in their order."""
    _, _, _, total = report[:CELL].split(b"\n")[0].split()
    fields = (_CALL.unpack_from(report, CELL + i * _CALL.size) for i in range(int(total)))
    return [Call(*each[:3], Kind(each[3]), *each[4:]) for each in fields]


Identity = tuple[int, int]
"""A file's number, and which of the files that have had it: the value of its CREATE."""


@dataclass
class Change:
    """A value, from when it may be on the disk, and from when it must be, or a later one."""

    value: object
    begun: float
    safe: float


def span(changes: list[Change], before: float, promised: float) -> list[Change]:
    """The changes of which one must be there, when those begun until `before` may be on the disk,
    and those safe before `promised` are."""
    least = max(i for i, each in enumerate(changes) if each.safe < promised)
    most = max((i for i, each in enumerate(changes) if each.begun <= before), default=0)
    return changes[least : max(least, most) + 1]


@dataclass
class File:
    """What one file has had, by cells, and its sizes, in cells."""

    cells: dict[int, list[Change]] = field(default_factory=dict)
    sizes: list[Change] = field(default_factory=list)

    def of_cell(self, cell: int) -> list[Change]:
        """The changes of a cell: at first it is a hole."""
        return self.cells.setdefault(cell, [Change(0, -math.inf, -math.inf)])

    def is_quiet(self, before: float, promised: float) -> bool:
        """Whether all that was begun until `before` is safe before `promised`."""
        every = [change for changes in (self.sizes, *self.cells.values()) for change in changes]
        return all(each.safe < promised for each in every if each.begun <= before)


@dataclass
class State:
    """The files after recovery: the names of a directory with (inode, is a directory), and what
    files have, by path."""

    names: dict[str, dict[str, tuple[int, bool]]]
    contents: dict[str, bytes]


class Model:
    """What the calls of a recording have promised."""

    def __init__(self, calls: list[Call], tasks: int) -> None:
        self.calls, self.tasks = calls, tasks
        self.files: dict[Identity, File] = {}
        self.names: list[list[Change]] = []
        self._inodes: dict[Identity, int] = {}
        self._identity: dict[int, Identity] = {}  # of each call's value
        for number in range(tasks):
            self._identify([call for call in calls if call.task == number])
        self._syncs = [call for call in calls if call.kind in SYNCS and call.result == 0]
        for number in range(SHARED + tasks):
            size = CELLS if number < SHARED else 0
            self._file((number, 0)).sizes = [Change(size, -math.inf, -math.inf)]
        for number in range(tasks):
            mine = [call for call in calls if call.task == number]
            self._add_data(mine)
            self.names.append(self._changes_of_names(mine))

    def refused(self) -> Iterator[Call]:
        """Syncs that failed: no drive has an error, and room was promised."""
        return (call for call in self.calls if call.kind in SYNCS and call.result < 0)

    def promises(self) -> list[int]:
        """When the calls that make something safe returned."""
        own = (call for call in self.calls if call.flags & SYNCHRONOUS and call.result > 0)
        return sorted(call.returned for call in (*self._syncs, *own))

    def claims(self) -> Iterator[tuple[float, float]]:
        """When each change began, and from when it was said to be safe."""
        every = [*self.names]
        for file in self.files.values():
            every += [file.sizes, *file.cells.values()]
        for each in (change for changes in every for change in changes):
            if math.isfinite(each.begun) and math.isfinite(each.safe):
                yield each.begun, each.safe

    # ---- from calls to changes ----

    def _file(self, identity: Identity) -> File:
        return self.files.setdefault(identity, File())

    def _identify(self, mine: Iterable[Call]) -> None:
        latest: dict[int, int] = {}
        for call in mine:
            if call.kind in (Kind.CREATE, Kind.MKDIR) and call.result >= 0:
                latest[call.file] = call.value
                self._inodes[call.file, call.value] = call.inode
            self._identity[call.value] = (call.file, latest.get(call.file, 0))

    def _safe(self, call: Call, of_name: bool) -> float:
        """From when a change is safe."""
        file = self._identity[call.value]
        found = [
            sync.returned
            for sync in self._syncs
            if sync.begun >= call.returned and self._covers(sync, call, file, of_name)
        ]
        if call.flags & SYNCHRONOUS:
            found.append(call.returned)
        return min(found, default=math.inf) if call.result >= 0 else math.inf

    def _covers(self, sync: Call, call: Call, file: Identity, of_name: bool) -> bool:
        if sync.kind is Kind.SYNC:
            return True
        if sync.kind is Kind.SYNC_DIRECTORY:
            return of_name and sync.file == call.task % 2
        if of_name and sync.kind is not Kind.FSYNC:
            return False
        return self._identity[sync.value] == file

    def _add_data(self, mine: Iterable[Call]) -> None:
        for call in mine:
            identity = self._identity[call.value]
            if call.kind is Kind.CREATE and call.result >= 0:
                self._file(identity).sizes = [Change(0, -math.inf, -math.inf)]
            elif call.kind in OF_DATA:
                self._add_change(self._file(identity), call)

    def _add_change(self, file: File, call: Call) -> None:
        size, end = file.sizes[-1].value, call.first + call.count
        if call.kind is Kind.WRITE and call.result >= 0:
            end = call.first + call.result // CELL
        value = 0 if call.kind in (Kind.PUNCH, Kind.RESIZE) else call.value
        safe = self._safe(call, of_name=False)
        for cell in range(call.first, min(end, CELLS)):
            file.of_cell(cell).append(Change(value, call.begun, safe))
        if call.kind is Kind.RESIZE:
            file.sizes.append(Change(call.first, call.begun, safe))
        elif call.kind is Kind.WRITE and call.result != 0 and end > size:
            file.sizes.append(Change(end, call.begun, safe))

    def _changes_of_names(self, mine: Iterable[Call]) -> list[Change]:
        now: dict[str, Identity] = {}
        changes = [Change({}, -math.inf, -math.inf)]
        for call in mine:
            if call.kind in OF_NAMES and call.result >= 0:
                names = [f"{call.task}n{each}" for each in (call.first, call.count)]
                if call.kind in (Kind.UNLINK, Kind.RMDIR, Kind.RENAME):
                    now.pop(names[0])
                if call.kind in (Kind.CREATE, Kind.MKDIR):
                    now[names[0]] = self._identity[call.value]
                if call.kind in (Kind.LINK, Kind.RENAME):
                    now[names[1]] = self._identity[call.value]
                changes.append(Change(dict(now), call.begun, self._safe(call, of_name=True)))
        return changes

    # ---- judging ----

    def wrong(self, state: State, before: float, promised: float, weak: bool) -> str:
        """What is wrong with a state that has what was begun until `before`, if syncs that returned
        before `promised` count; "" if nothing is. weak: without a journal only what is safe and has
        not been changed since is judged."""
        for number in range(SHARED + self.tasks):
            path = f"/s{number}" if number < SHARED else f"/p{number - SHARED}"
            bad = self._wrong_file((number, 0), path, state, (before, promised), weak)
            if bad:
                return bad
        for task in range(self.tasks):
            bad = self._wrong_names(task, state, (before, promised), weak)
            if bad:
                return bad
        return ""

    def _wrong_names(self, task: int, state: State, times: tuple[float, float], weak: bool) -> str:
        folder = f"/d{task % 2}"
        there = {
            name: each
            for name, each in state.names.get(folder, {}).items()
            if name.startswith(f"{task}n")
        }
        allowed = span(self.names[task], *times)
        if weak and len(allowed) > 1:
            return ""
        first = ""
        for change in allowed:
            wanted = {
                name: (self._inodes[each], each[0] == DIRECTORY)
                for name, each in change.value.items()
            }
            bad = "" if wanted == there else f"task {task} has {there}, expected {wanted}"
            if not bad:
                paths = {
                    f"{folder}/{name}": each
                    for name, each in change.value.items()
                    if each[0] != DIRECTORY
                }
                found = (
                    self._wrong_file(each, path, state, times, weak) for path, each in paths.items()
                )
                bad = next(filter(None, found), "")
            if not bad:
                return ""
            first = bad if not first or wanted == there else first
        return f"{first} [{len(allowed)} states of its names are allowed]"

    def _wrong_file(
        self,
        identity: Identity,
        path: str,
        state: State,
        times: tuple[float, float],
        weak: bool,
    ) -> str:
        data, file = state.contents.get(path), self.files[identity]
        if data is None:
            return f"{path} is missing"
        if weak and not file.is_quiet(*times):
            return ""
        sizes = [each.value for each in span(file.sizes, *times)]
        if not min(sizes) <= len(data) / CELL <= max(sizes):
            return f"{path} has {len(data)} bytes, expected {min(sizes)} to {max(sizes)} cells"
        for cell in range(len(data) // CELL):
            values = {each.value for each in span(file.of_cell(cell), *times)}
            words = {word_of(identity[0], cell, value) for value in values}
            found = {data[at : at + WORD] for at in range(cell * CELL, (cell + 1) * CELL, WORD)}
            if not found <= words:
                said = ", ".join(told(word) for word in sorted(found - words))
                return f"{path}, cell {cell}: {said}; expected {calls_of(values)}"
        return ""


def word_of(file: int, cell: int, value: int) -> bytes:
    """What a cell is full of."""
    return struct.pack("<Q", cell << 48 | file << 32 | value if value else 0)


def told(word: bytes) -> str:
    """A word of a cell in words."""
    value, file, cell = struct.unpack("<IHH", word)
    return f"cell {cell} of file {file}: {calls_of({value})}" if value else "zeros"


def calls_of(values: Iterable[int]) -> str:
    """Which calls have written these values."""
    names = [f"{each >> 24}.{each & 0xFFFFFF}" if each else "zeros" for each in sorted(values)]
    return " or ".join(names)


def finished(ends: list[int], time: int) -> int:
    """How many requests the drive had finished at a time, by when each was."""
    return bisect_right(ends, time)

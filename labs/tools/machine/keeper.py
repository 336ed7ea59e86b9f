"""Cleans up after a process, however that ended: SIGKILL leaves no time to do it oneself.

    python -I -S keeper.py      started by work_folder.py, which writes lines to its standard input:
        + FOLDER                a temporary folder of the owner (the process that started this one)
        - FOLDER                the owner has removed it
        ^ PROCESS START         the owner must not outlive this process (START as in start_time)

Only the owner holds the other end of that pipe, so the input ends when the owner does. Then the
processes that belong to its folders are killed, and the folders are removed. A process belongs to a
folder when its environment says so (FOLDER_VARIABLE), which it hands down to its own children.

What a keeper that was killed itself could not remove, the next keeper removes when it starts.
"""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

FOLDER_VARIABLE = "APPRENTICE_FOLDER"
PREFIX = "apprentice-tmp-"
OURS = 0o700  # mkdtemp's: a folder that a person made, perhaps a clone, has another mode
SHORT_PLACE = Path("/tmp")
LOOK_SECONDS = 0.02
POLITE_LOOKS, LOOKS = 25, 500  # so often processes get SIGTERM, and then SIGKILL, until they end
OWNER_LOOKS = 250  # so often the owner gets SIGTERM: it may have to wait for what it has started
IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGTSTP)


def members(folders: Iterable[str]) -> list[int]:
    """The processes (other than this one) that belong to one of these folders, zombies excluded."""
    marks = {f"{FOLDER_VARIABLE}={folder}".encode() for folder in folders}
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            environment = (entry / "environ").read_bytes().split(b"\0")
            if marks.intersection(environment) and int(entry.name) != os.getpid():
                found.append(int(entry.name))
    return found


def end(folders: Iterable[str]) -> None:
    """Ends all processes of these folders. SIGTERM first: QEMU then gives the terminal its settings
    back. What does not end at once is killed."""
    folders = list(folders)
    for look in range(LOOKS):
        left = members(folders)
        if not left:
            return
        for process in left:
            with suppress(OSError):
                os.kill(process, signal.SIGTERM if look < POLITE_LOOKS else signal.SIGKILL)
                os.kill(process, signal.SIGCONT)
        time.sleep(LOOK_SECONDS)


def remove(folder: str | Path) -> None:
    """Removes a folder with all that is in it, also what its owner may not write to. What cannot be
    removed stays, without an error."""
    for place, names, _ in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            if not os.path.islink(path):
                with suppress(OSError):
                    os.chmod(path, 0o700)
    shutil.rmtree(folder, ignore_errors=True)


def locked(folder: str | Path) -> int | None:
    """Takes the folder's lock; the descriptor that holds it, or None where another has it, or where
    the folder is gone, belongs to another user, or was not made by work_folder.py."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        here, there = os.fstat(descriptor), os.stat(folder)
        is_ours = here.st_uid == os.geteuid() and stat.S_IMODE(here.st_mode) == OURS
        if is_ours and here.st_ino == there.st_ino:
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def sweep(places: Iterable[Path]) -> None:
    """Removes folders that nobody owns any more, and ends what still belongs to them."""
    for place in places:
        for folder in place.glob(f"{PREFIX}*"):
            descriptor = locked(folder)
            if descriptor is not None:
                end([str(folder)])
                remove(folder)
                os.close(descriptor)


def sweep_aside(places: Iterable[Path]) -> None:
    """The same in a process of its own: what others left may be much, and the owner is watched
    meanwhile. Nobody waits for that process."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    if os.fork() == 0:
        try:
            sweep(places)
        finally:
            os._exit(0)


def start_time(process: int) -> str:
    """When a process began, in the kernel's own unit; empty for one that is gone, or a zombie. With
    the number it names a process for good: numbers are used again."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


class Keeper:
    """What the owner has said so far, and whether it still lives."""

    def __init__(self, owner: int) -> None:
        self._owner = owner
        self._owner_ends = os.pidfd_open(owner)
        self._folders: set[str] = set()
        self._chain: set[int] = set()  # descriptors of the processes that the owner depends on
        self._presses = 0  # signals sent to the owner since one of those has ended
        self._is_to_end = False
        self._input = b""

    def run(self) -> None:
        """Watches until the owner has gone; then cleans up."""
        while self._listen():
            if self._is_to_end:
                self._press()
        end(self._folders)
        for folder in self._folders:
            remove(folder)

    def _listen(self) -> bool:
        """Waits for a word of the owner, or the end of a process; False at the owner's end."""
        patience = LOOK_SECONDS if self._is_to_end else None
        watched = [0, self._owner_ends, *self._chain]
        ready, _, _ = select.select(watched, [], [], patience)
        self._is_to_end |= not self._chain.isdisjoint(ready)
        if self._owner_ends in ready:
            self._hear_last_words()
            return False
        return 0 not in ready or self._read()

    def _hear_last_words(self) -> None:
        """What the owner said before it ended may be unread yet."""
        while select.select([0], [], [], 0)[0] and self._read():
            pass

    def _read(self) -> bool:
        """Takes what the owner says; False when that was the last."""
        data = os.read(0, 1 << 16)
        *lines, self._input = (self._input + data).split(b"\n")
        for line in map(os.fsdecode, lines):
            word, rest = line[:1], line[2:]
            if word == "+":
                self._folders.add(rest)
            elif word == "-":
                self._folders.discard(rest)
            elif word == "^":
                self._depend_on(*rest.split(" "))
        return bool(data)

    def _depend_on(self, process: str, start: str) -> None:
        """Watches a process of the owner's chain, which may have gone already."""
        with suppress(OSError):
            descriptor = os.pidfd_open(int(process))
            if start_time(int(process)) == start:
                self._chain.add(descriptor)
                return
        self._is_to_end = True

    def _press(self) -> None:
        """Ends the owner: politely, so that it can tidy up, and then for good."""
        self._presses += 1
        with suppress(OSError):
            patient = self._presses < OWNER_LOOKS
            signal.pidfd_send_signal(
                self._owner_ends, signal.SIGTERM if patient else signal.SIGKILL
            )
            signal.pidfd_send_signal(self._owner_ends, signal.SIGCONT)


def main() -> None:
    """Keeps the process that started this one."""
    keeper = Keeper(os.getppid())
    for each in IGNORED:
        signal.signal(each, signal.SIG_IGN)
    sweep_aside({Path(tempfile.gettempdir()), SHORT_PLACE})
    keeper.run()


if __name__ == "__main__":
    main()

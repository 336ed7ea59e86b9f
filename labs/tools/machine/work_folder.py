"""Temporary folders, and processes that go with them: both end when this process does, however that
comes about, by SIGKILL too.

with work_folder("grade") as folder:
    subprocess.run(command, env=environment_in(folder), ...)

A process of its own, the keeper (keeper.py), outlives this one by a moment and cleans up. A whole
command has its folder by command_folder, and need not think of the environment.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from labs.tools.machine import keeper
from labs.tools.machine.command import CommandError
from labs.tools.machine.keeper import FOLDER_VARIABLE, PREFIX, SHORT_PLACE

SOCKET_PATH_LIMIT = 66  # bytes of a directory's path that leave room for the socket's name
STARTED_BY = "MAKE_PROCESS"  # the process of the make that started us, if one says so
ENDING = (signal.SIGTERM, signal.SIGHUP)
ENDING_SECONDS = 30  # what tidies up takes less
OTHER_PLACES = (Path("/var/tmp"), Path("/dev/shm"), Path(__file__).resolve().parents[3] / "build")


class KeeperLine:
    """The line to this process's keeper, which is started when the first word is sent."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def say(self, word: str) -> None:
        """Sends a line. A keeper that was killed is replaced, without what it knew."""
        with self._lock:
            if self._owner != os.getpid() or self._process.poll() is not None:
                self._start()
            with suppress(BrokenPipeError):
                os.write(self._process.stdin.fileno(), os.fsencode(f"{word}\n"))

    def _start(self) -> None:
        """It has a session of its own, and nothing of this process but the pipe."""
        self._owner = os.getpid()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", keeper.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={k: v for k, v in os.environ.items() if k != FOLDER_VARIABLE},
            cwd="/",
            start_new_session=True,
        )


KEEPER = KeeperLine()


@contextmanager
def work_folder(purpose: str, place: Path | None = None) -> Iterator[Path]:
    """A new, empty folder for a `with` statement, whose path leaves room for a socket's name, or in
    a place of its own: for what is large. It is removed at the end, whatever is in it, also when
    this process is killed before."""
    folder, lock = new_folder(purpose, place)
    try:
        yield folder
    finally:
        keeper.remove(folder)
        os.close(lock)
        KEEPER.say(f"- {folder}")


@contextmanager
def command_folder(purpose: str) -> Iterator[Path]:
    """A work folder for a whole command: all temporary files of this process and of what it starts
    go there, and whatever it has started ends with it, at the latest with the make that runs it.
    Programs in it can be run. Within it a signal that asks for the end raises SystemExit."""
    if STARTED_BY in os.environ:
        end_with_caller()
    before = tempfile.tempdir, dict(os.environ)
    with endings_raise(), work_folder(purpose, place_of_programs()) as folder:
        tempfile.tempdir = str(folder)
        os.environ.update(environment_in(folder))
        try:
            yield folder
        finally:
            tempfile.tempdir = before[0]
            os.environ.clear()
            os.environ.update(before[1])
            keeper.end([str(folder)])


@contextmanager
def endings_raise() -> Iterator[None]:
    """Within it, a signal that asks for the end raises SystemExit, once. For the main thread. Where
    the exception is lost, as in a destructor, SIGALRM ends this process later."""

    def end(number: int, frame: object) -> None:
        for each in ENDING:
            signal.signal(each, signal.SIG_IGN)
        signal.alarm(ENDING_SECONDS)
        raise SystemExit(128 + number)

    before = [(each, signal.signal(each, end)) for each in ENDING]
    try:
        yield
    finally:
        signal.alarm(0)
        for each, handler in before:
            signal.signal(each, handler)


def new_folder(purpose: str, place: Path | None = None) -> tuple[Path, int]:
    """Makes a folder, and locks it: what is not locked, a keeper takes for forgotten."""
    where = str(place.resolve()) if place else short_directory()
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{purpose}-", dir=where))
        KEEPER.say(f"+ {folder}")
        with suppress(FileNotFoundError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.exists():
                return folder, lock
            os.close(lock)
        KEEPER.say(f"- {folder}")


def environment_in(folder: Path, base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment for a process that is to end with this one and its folder, and for all that
    it starts; its temporary files go into the folder. That is a work folder, or is in one, which
    the keeper knows."""
    ours = (each for each in (folder, *folder.parents) if each.name.startswith(PREFIX))
    return {**base, FOLDER_VARIABLE: str(next(ours, folder)), "TMPDIR": str(folder)}


def place_of_programs() -> Path | None:
    """Where programs in a temporary folder can be run, None for its usual place: /tmp is mounted
    without that (noexec) on many machines. Raises CommandError where there is no such place."""
    usual = Path(short_directory() or tempfile.gettempdir())
    if runs_programs(usual):
        return None
    for place in OTHER_PLACES:
        if os.access(place, os.W_OK) and runs_programs(place):
            return place
    raise CommandError(
        f"no program can be run in {usual}, nor in {', '.join(map(str, OTHER_PLACES))} (mounted "
        "noexec, or not writable): set TMPDIR to a folder where it can"
    )


def runs_programs(place: Path) -> bool:
    """Whether the place is there, and not mounted noexec."""
    return place.is_dir() and not os.statvfs(place).f_flag & os.ST_NOEXEC


def short_directory() -> str | None:
    """Where the sockets go: a Unix socket's path is limited to 107 bytes."""
    return str(SHORT_PLACE) if len(tempfile.gettempdir()) > SOCKET_PATH_LIMIT else None


def end_with_caller(of_a_person: bool = False) -> None:
    """From now on this process ends (SIGTERM, then SIGKILL) when the make that started it has
    ended. `of_a_person`: also when one of those above it in its session has, such as the shell of a
    terminal that was closed; else nohup works as ever."""
    process = int(os.environ.pop(STARTED_BY, os.getppid()))
    KEEPER.say(f"^ {process} {keeper.start_time(process) or 'gone'}")
    while of_a_person and (process := parent_of(process)) and is_of_our_session(process):
        KEEPER.say(f"^ {process} {keeper.start_time(process) or 'gone'}")


def is_of_our_session(process: int) -> bool:
    """Whether a process belongs to the session of this one."""
    try:
        return os.getsid(process) == os.getsid(0)
    except ProcessLookupError:
        return False


def parent_of(process: int) -> int:
    """The process that started another; 0 for one that has gone."""
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0

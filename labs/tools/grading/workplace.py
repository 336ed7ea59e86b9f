"""Where a grading run keeps its temporary files, and its end: whatever ends it, nothing stays.

    with workplace() as directory:
        ...

A signal that asks a program to end becomes an exception, so all that was begun is ended and the
folder removed. After SIGKILL the kernel ends what was begun (labs/tools/machine/qemu_process.py,
bubblewrap's --die-with-parent), and the next run removes the folder.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "grading-"
MARK = ".in-use"  # locked while the run lives
ENDING = (signal.SIGTERM, signal.SIGHUP)
PR_SET_PDEATHSIG = 1  # prctl(2)
REMOVING_TRIES, REMOVING_PAUSE = 20, 0.1  # seconds: what was killed may still write something


@contextmanager
def workplace() -> Iterator[Path]:
    """A folder for all temporary files of this process and its children; removed at the end."""
    sweep()
    directory = Path(tempfile.mkdtemp(prefix=PREFIX))
    before = tempfile.tempdir, os.environ.get("TMPDIR")
    with (directory / MARK).open("w") as mark, ending_as_exception():
        fcntl.flock(mark, fcntl.LOCK_EX)
        tempfile.tempdir = os.environ["TMPDIR"] = str(directory)
        try:
            yield directory
        finally:
            tempfile.tempdir = before[0]
            os.environ.pop("TMPDIR")
            os.environ |= {"TMPDIR": before[1]} if before[1] else {}
            remove(directory)


def sweep() -> None:
    """Removes the folders of runs that were killed. Nobody has their locks."""
    for mark in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{MARK}"):
        with suppress(OSError), mark.open("r+") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(mark.parent, ignore_errors=True)


def remove(directory: Path) -> None:
    """Removes a folder in which something may still be written for a moment."""
    for _ in range(REMOVING_TRIES):
        shutil.rmtree(directory, ignore_errors=True)
        if not directory.exists():
            return
        time.sleep(REMOVING_PAUSE)


@contextmanager
def ending_as_exception() -> Iterator[None]:
    """Within it, a signal that asks for the end raises SystemExit, once."""

    def end(number: int, frame: object) -> None:
        for each in ENDING:
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(128 + number)

    before = [(each, signal.signal(each, end)) for each in ENDING]
    try:
        yield
    finally:
        for each, handler in before:
            signal.signal(each, handler)


def die_with_parent() -> None:
    """From now on this process is killed when the thread that started it ends (Linux only)."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

"""For tests of how commands end: processes that carry a mark, and what is left of them."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MARK = "APPRENTICE_TEST"
PATIENCE = 6000  # looks: on a busy host a build or a start takes long
LOOK_SECONDS = 0.05


def marked_environment(folder: Path) -> dict[str, str]:
    """An environment by which all that a command starts can be found, and whose temporary files go
    into `folder`, which is also the mark."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "PYTEST_"))}
    return {**kept, MARK: str(folder), "TMPDIR": str(folder)}


def processes(folder: Path) -> dict[int, str]:
    """The living processes with the mark of `folder`, each with its command line."""
    mark, found = f"{MARK}={folder}".encode(), {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(entry.name)] = line.decode(errors="replace")
    return found


def wait_until(done: Callable[[], object], what: str | Callable[[], str]) -> None:
    """Looks again and again, a bounded number of times; fails with `what` was waited for, which is
    a text, or said by a function when it has been in vain."""
    for _ in range(PATIENCE):
        if done():
            return
        time.sleep(LOOK_SECONDS)
    raise AssertionError(f"waited in vain for {what if isinstance(what, str) else what()}")


def one_of(folder: Path, words: str) -> int:
    """The one process of the mark whose command line fits this expression. Waits for it."""
    found: list[int] = []

    def look() -> bool:
        found[:] = [number for number, line in processes(folder).items() if re.search(words, line)]
        return bool(found)

    wait_until(look, f"a process with {words!r}")
    return found[0]


def nothing_is_left(folder: Path) -> None:
    """Fails when a process or a temporary folder stays; leaves none."""
    try:
        wait_until(
            lambda: not processes(folder) and not left_in(folder),
            lambda: f"the end of {processes(folder)}, and of {left_in(folder)}",
        )
    finally:
        end_all(folder)


def end_all(folder: Path) -> None:
    """Kills what carries the mark."""
    for number in processes(folder):
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)


def left_in(folder: Path) -> list[str]:
    """What lies in the temporary folder."""
    return sorted(os.listdir(folder))

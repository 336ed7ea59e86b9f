"""Limits in real time that only a process can use up which had the chance to run.

Hosts stall and clocks jump: a process tree is stopped (SIGSTOP), a laptop sleeps. All waiting is
therefore done in short steps, and a step counts as a step, however long it took. So these limits
are later than a clock would say, and never early: they are for what has gone wrong, not for
measuring.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

STEP_SECONDS = 0.2


class Patience:
    """A limit of so many real seconds, for a loop that asks again and again whether it is over, at
    least every STEP_SECONDS."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._last = time.monotonic()

    def is_over(self) -> bool:
        """Whether the limit is used up."""
        now = time.monotonic()
        self._left -= min(max(now - self._last, 0), STEP_SECONDS)
        self._last = now
        return self._left < 0


def has_ended(process: subprocess.Popen, seconds: float) -> bool:
    """Waits for the end of a process; False when it has not come within `seconds`."""
    patience = Patience(seconds)
    while True:
        try:
            process.wait(STEP_SECONDS)
            return True
        except subprocess.TimeoutExpired:
            if patience.is_over():
                return False


def communicate(process: subprocess.Popen, seconds: float, words: Any = None) -> tuple[Any, Any]:
    """Popen.communicate with such a limit. Raises subprocess.TimeoutExpired; then the process still
    runs, and may be asked again."""
    patience = Patience(seconds)
    while True:
        try:
            return process.communicate(words, timeout=STEP_SECONDS)
        except subprocess.TimeoutExpired:
            words = None  # it is on its way
            if patience.is_over():
                raise


def processor_times(process: int) -> tuple[float, float]:
    """The seconds for which the threads of a process have run, and for which they would have and
    had to wait for a processor; zeros where Linux does not tell (proc(5), schedstat)."""
    busy = waiting = 0
    with suppress(OSError, ValueError):
        for thread in Path(f"/proc/{process}/task").iterdir():
            ran, waited, _ = map(int, (thread / "schedstat").read_text().split())
            busy, waiting = busy + ran, waiting + waited
    return busy / 1e9, waiting / 1e9


class Standstill:
    """Tells whether a process gets on: it has worked for a long time, or was idle for a while
    although it could have worked. A busy host makes no process late."""

    def __init__(self, process: int, idle_seconds: float, busy_seconds: float) -> None:
        self._process = process
        self._idle_left, self._busy_left = idle_seconds, busy_seconds
        self._last, self._times = time.monotonic(), processor_times(process)

    def is_over(self) -> bool:
        """To be asked again and again, at least every STEP_SECONDS."""
        now, (busy, waiting) = time.monotonic(), processor_times(self._process)
        # A thread that has ended takes its times along.
        worked, waited = max(0, busy - self._times[0]), max(0, waiting - self._times[1])
        self._busy_left -= worked
        self._idle_left -= max(0, min(now - self._last, 2 * STEP_SECONDS) - worked - waited)
        self._last, self._times = now, (busy, waiting)
        return self._idle_left < 0 or self._busy_left < 0


def run_within(
    command: Any, seconds: float, check: bool = False, capture_output: bool = False, **options: Any
) -> subprocess.CompletedProcess:
    """subprocess.run with such a limit. Raises subprocess.TimeoutExpired, with what it had printed,
    and CalledProcessError."""
    pipe, words = subprocess.PIPE, options.pop("input", None)
    streams = {"stdout": pipe, "stderr": pipe} if capture_output else {}
    with tempfile.TemporaryFile() as source:
        if words is not None:  # a file: a pipe's rest is not sent by a communicate that is repeated
            source.write(words.encode() if isinstance(words, str) else words)
            source.seek(0)
            streams["stdin"] = source
        process = subprocess.Popen(command, **streams, **options)
    with process:
        try:
            output, errors = communicate(process, seconds)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(command, process.returncode, output, errors)
    if check:
        done.check_returncode()
    return done

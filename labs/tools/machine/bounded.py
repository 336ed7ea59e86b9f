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

"""A process tree that is stopped, and goes on later, comes to the same verdicts: hosts stall."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.host.units import SEED
from tests.support.endings import end_all, marked_environment, processes
from tests.support.short_limits import SECONDS

ROOT = Path(__file__).resolve().parents[2]
# Machines of each kind: with a clock of instructions and the host's, alone and in conversation.
TESTS = (
    *("test_status", "test_panic", "test_triple_fault", "test_hang", "test_flood"),
    *("test_conversation", "test_conversation_that_ends_early"),
    *("test_conversation_that_takes_too_long", "test_injected_errors"),
)
STOPS = 8
LATEST = 2.5  # seconds from one stop's end to the next stop
LONG_STOP = SECONDS + 1.5


def stop(folder: Path, seconds: float) -> None:
    """Stops all processes of the mark, those that they are just starting too, and lets them go."""
    stopped: set[int] = set()
    while new := processes(folder).keys() - stopped:
        for process in new:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP)
        stopped |= new
    time.sleep(seconds)
    for process in stopped:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGCONT)


@pytest.mark.slow
def test_stops_change_no_verdict() -> None:
    """Each stop is longer than any limit of the machines is here."""
    moments = random.Random(SEED)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "tests.support.short_limits"]
    command += ["-k", "not (test_hang and None)"]  # the clock of a machine without icount goes on
    command += [
        "-p",
        "no:cacheprovider",
        *(f"tests/harness/test_harness.py::{name}" for name in TESTS),
    ]
    with tempfile.TemporaryDirectory(prefix="stops-", dir="/tmp") as name:
        folder = Path(name)
        environment = marked_environment(folder)
        pipe = subprocess.PIPE
        tests = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=pipe, text=True)
        try:
            for _ in range(STOPS):
                time.sleep(moments.uniform(0.2, LATEST))
                if tests.poll() is None:
                    stop(folder, LONG_STOP)
            said = tests.communicate()[0]
        finally:
            end_all(folder)
    assert tests.returncode == 0, said

"""Limits of time (labs/tools/machine/bounded.py): what tells that a process does not get on."""

from __future__ import annotations

import subprocess
import time

from labs.tools.machine.bounded import Standstill

STEP = 0.05


def seconds_until_over(command: list[str], idle: float, busy: float) -> float:
    """How long a process is watched until it is found not to get on."""
    start = time.monotonic()
    with subprocess.Popen(command) as process:
        standstill = Standstill(process.pid, idle, busy)
        while not standstill.is_over():
            time.sleep(STEP)
        process.kill()
    return time.monotonic() - start


def test_a_process_that_sleeps_is_idle():
    assert seconds_until_over(["sleep", "60"], idle=0.3, busy=1000) >= 0.3


def test_a_process_that_goes_round_is_busy():
    """Its time on a processor counts; that it had to wait for one does not."""
    loop = ["sh", "-c", "while :; do :; done"]
    assert seconds_until_over(loop, idle=1000, busy=0.3) >= 0.3

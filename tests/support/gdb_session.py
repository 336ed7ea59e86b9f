"""Starts `make gdb` for tests: a probe is Python that runs inside gdb and says what it saw.

What a probe asks through `run` is what a person would type; it is started as a person starts gdb.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

from labs.tools.machine.bounded import run_within

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "storage"
LAUNCHER = [sys.executable, "-m", "labs.tools.debugging.debug", "--build", str(BUILD)]
SECONDS = 600

PRELUDE = """\
import gdb, json, os, signal, threading, time
said = {{}}
def run(command):
    try:
        return gdb.execute(command, to_string=True)
    except gdb.error as error:
        return f"error: {{error}}"
def memory(address, length):
    return bytes(gdb.selected_inferior().read_memory(address, length)).hex()
def go_to(place):
    run(f"tbreak {{place}}")
    run("continue")
    return run("where-am-i")
def frames():
    frame = gdb.newest_frame()
    while frame:
        if frame.type() == gdb.NORMAL_FRAME:
            yield frame.pc(), frame.name()
        if frame.type() == gdb.SIGTRAMP_FRAME:
            yield frame.pc(), "(trap)"
        frame = frame.older()
def saw(path={path!r}):
    with open(path, "w") as file:
        json.dump(said, file)
"""


def launch(*options: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the launcher to its end."""
    return run_within(
        [*LAUNCHER, *map(str, options)],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        seconds=SECONDS,
        check=False,
    )


def probe(directory: Path, code: str, *options: str) -> dict[str, Any]:
    """Runs a probe in a session of its own; returns what it put into `said`, and the "screen"."""
    answer, file = directory / "said.json", directory / "probe.py"
    file.write_text(PRELUDE.format(path=str(answer)) + textwrap.dedent(code) + "\nsaw()\n")
    done = launch("--batch", file, *options)
    assert answer.exists(), done.stdout + done.stderr
    return json.loads(answer.read_text()) | {"screen": done.stdout}

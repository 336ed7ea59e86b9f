"""What is loaded into QEMU so that it records at once, and repeats at once (preload.c)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from labs.tools.machine.gdb_protocol import StubError

ROOT = Path(__file__).resolve().parents[4]
SOURCE = Path(__file__).with_suffix(".c")


def when_recording(record: Path) -> dict[str, str]:
    """The environment in which QEMU keeps nothing of its record back, so that a run that goes on
    can be repeated up to where it is. Raises StubError."""
    return {"LD_PRELOAD": str(library()), "RECORD_AT_ONCE": str(record)}


def when_repeating() -> dict[str, str]:
    """The environment in which QEMU does not wait where the guest did. Raises StubError."""
    return {"LD_PRELOAD": str(library()), "REPLAY_AT_ONCE": "yes"}


def library() -> Path:
    """The library, which is made where there is none yet."""
    path = ROOT / "build" / "host" / SOURCE.with_suffix(".so").name
    if not path.exists() or path.stat().st_mtime < SOURCE.stat().st_mtime:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        command = ["gcc", "-O2", "-shared", "-fPIC", "-o", str(unfinished), str(SOURCE), "-ldl"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise StubError(f"gcc failed: {done.stderr.strip()}")
        unfinished.replace(path)
    return path

"""QEMU as a process: started in a directory of its own, and ended when we are."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from labs.tools.machine.qemu_command import Config, qemu_command

SOCKET_PATH_LIMIT = 80  # bytes of a directory's path that leave room for the socket's name


def start_qemu(config: Config, directory: Path, channels: Sequence[str]) -> subprocess.Popen[bytes]:
    """Starts the machine with these channels (arguments of QEMU's). What QEMU says goes to
    `directory`/stderr. The caller kills the process, which has a session of its own, and waits for
    it, or its images stay locked."""
    with (directory / "stderr").open("wb") as stderr:
        return subprocess.Popen(
            [*killed_with_us(), *qemu_command(config, directory, channels)],
            stdin=subprocess.DEVNULL,
            stdout=stderr,
            stderr=stderr,
            env={**os.environ, "TMPDIR": str(directory)},
            start_new_session=True,
        )


def killed_with_us() -> list[str]:
    """A prefix that ends a program when this process dies with no chance to do so (Linux only)."""
    return ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []


def short_directory() -> str | None:
    """Where the sockets go: a Unix socket's path is limited to 107 bytes."""
    return "/tmp" if len(tempfile.gettempdir()) > SOCKET_PATH_LIMIT else None

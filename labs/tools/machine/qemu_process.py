"""QEMU as a process: started in a folder of its own (work_folder.py), and ended when we are."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from labs.tools.machine.bounded import has_ended
from labs.tools.machine.qemu_command import Config, qemu_command
from labs.tools.machine.work_folder import endings_raise, environment_in

QUIT_SECONDS = 5


def start_qemu(
    config: Config,
    directory: Path,
    channels: Sequence[str],
    files: Sequence[int] = (),
    environment: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.Popen[bytes]:
    """Starts the machine with these channels (arguments of QEMU's). What QEMU says goes to
    `directory`/stderr; that folder is one of work_folder. The caller kills the process, which has a
    session of its own, and waits for it, or its images stay locked. `files` are descriptors that it
    inherits, `environment` is added to ours."""
    with (directory / "stderr").open("wb") as stderr:
        return subprocess.Popen(
            qemu_command(config, directory, channels),
            stdin=subprocess.DEVNULL,
            stdout=stderr,
            stderr=stderr,
            env=environment_in(directory) | environment,
            start_new_session=True,
            pass_fds=files,
        )


def run_in_terminal(command: Sequence[str], directory: Path) -> int:
    """Runs QEMU in this terminal, and returns its exit status. It ends when we are told to; then it
    gives the terminal its settings back. `directory` is one of work_folder."""
    with endings_raise():
        process = subprocess.Popen(command, env=environment_in(directory))
        try:
            return process.wait()
        finally:
            process.terminate()
            if not has_ended(process, QUIT_SECONDS):
                process.kill()
                process.wait()

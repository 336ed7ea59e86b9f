"""How many instructions a guest has run when it comes to a place: counted from outside, exactly.

QEMU counts instructions (icount) and tells the number wherever the machine is stopped; gdb stops
it. So nothing is added to the code that is measured: no RDTSC in the 512 bytes of the
boot sector.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from labs.tools.debugging.debug import find_gdb
from labs.tools.machine.bounded import run_within
from labs.tools.machine.monitor import Monitor
from labs.tools.machine.qemu_command import Config
from labs.tools.machine.qemu_process import start_qemu
from labs.tools.machine.work_folder import work_folder

START_SECONDS = 60
RUN_SECONDS = 60


class NotReachedError(Exception):
    """The guest did not come to a place; the text says to which, and what it printed last."""


def instructions_to(config: Config, name: str, address: int) -> int:
    """The instructions from power-on to a place: its linear address, and its name for messages.

    The machine, which needs icount, is started for this place alone: guest time may jump while a
    machine is stopped, and then another interrupt of its timer would count. Raises
    NotReachedError.
    """
    if config.icount is None:
        raise ValueError("instructions are counted with icount only")
    with work_folder("stamps") as directory, standing_machine(config, directory) as monitor:
        if not run_to(address, directory / "gdb"):
            words = (directory / "serial").read_text(errors="replace").strip()
            raise NotReachedError(f"the machine never comes to {name}; it printed: {words}")
        return monitor.execute("query-replay")["icount"]


@contextmanager
def standing_machine(config: Config, directory: Path) -> Iterator[Monitor]:
    """The machine before its first instruction, with a socket for gdb."""
    monitor = Monitor()
    monitor.listen(directory / "qmp")
    channels = [
        "-S",
        "-qmp",
        f"unix:{directory / 'qmp'}",
        "-serial",
        f"file:{directory / 'serial'}",
    ]
    channels += ["-gdb", f"unix:{directory / 'gdb'},server=on,wait=off"]
    process = start_qemu(config, directory, channels)
    try:
        monitor.accept(process, START_SECONDS)
        yield monitor
    finally:
        process.kill()
        process.wait()
        monitor.close()


def run_to(address: int, socket: Path) -> bool:
    """Runs the machine up to an address, where it is when gdb has left; false if it never comes
    there. The breakpoint is a hardware one: the code may not be in memory yet."""
    steps = ["set osabi none", f"target remote {socket}", f"thbreak *{address:#x}", "continue"]
    steps += ['printf "stopped at %#x\\n", $pc', "disconnect"]
    command = [known_gdb(), "-nx", "-batch"]
    for step in steps:
        command += ["-ex", step]
    with suppress(subprocess.TimeoutExpired):
        done = run_within(command, RUN_SECONDS, capture_output=True, text=True)
        return f"stopped at {address:#x}\n" in done.stdout
    return False


@cache
def known_gdb() -> str:
    """The gdb to use; it takes a while to try those that are here."""
    return find_gdb()[0]

"""How many instructions a guest has run when it comes to a place: counted from outside, exactly.

QEMU counts instructions (icount) and tells the number wherever the machine is stopped; a breakpoint
stops it. So nothing is added to the code that is measured: no RDTSC in the 512 bytes of the
boot sector. The breakpoint is set as gdb does it ("Debugging with GDB", appendix E), but it is QEMU
who is asked, and again and again, whether the machine has stopped there: some gdb waits for ever
now and then.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labs.tools.machine.bounded import Patience
from labs.tools.machine.monitor import Monitor
from labs.tools.machine.qemu_command import Config
from labs.tools.machine.qemu_process import start_qemu
from labs.tools.machine.work_folder import work_folder

START_SECONDS = 60
RUN_SECONDS = 600  # a backstop: what counts is the guest's own time
LOOK_SECONDS = 0.02


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
        if not run_to(address, directory / "gdb", monitor, config.guest_limit):
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


def run_to(address: int, path: Path, monitor: Monitor, guest_limit: float) -> bool:
    """Runs the machine up to an address, where it stays; false if it ends, or has not come there
    within `guest_limit` guest seconds. The breakpoint is a hardware one: the code may not be in
    memory yet."""
    with socket.socket(socket.AF_UNIX) as stub:
        stub.settimeout(START_SECONDS)
        stub.connect(str(path))
        stub.sendall(packet(f"Z1,{address:x},1"))
        answer = b""
        while packet("OK") not in answer and (more := stub.recv(1 << 10)):
            answer += more
        stub.sendall(packet("c"))  # and no more: any byte would stop the machine
        while stub.recv(1) not in (b"+", b""):  # before that it may not run yet
            pass
        patience = Patience(RUN_SECONDS)
        while (state := monitor.execute("query-status")["status"]) == "running":
            if monitor.whole_seconds() >= guest_limit or patience.is_over():
                return False
            time.sleep(LOOK_SECONDS)
        return state == "debug"


def packet(text: str) -> bytes:
    """A packet of gdb's protocol."""
    return b"$%s#%02x" % (text.encode(), sum(text.encode()) & 0xFF)

"""A second machine that does what a first one did, and keeps a log of its exceptions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from labs.tools.machine.machine import LOG_TAIL
from labs.tools.machine.qemu_command import Config
from labs.tools.machine.qemu_process import start_qemu
from labs.tools.machine.work_folder import work_folder
from tests.support.gdb_stub import GdbStub
from tests.support.guest_memory import writes

ANSWER_SECONDS = 6  # of processor time, for what takes the first machine one


@contextmanager
def logged(config: Config, packets: Sequence[str | tuple[int, bytes]]) -> Iterator[str]:
    """The end of QEMU's log of exceptions, of a machine that gets the same packets."""
    with work_folder("logged") as directory:
        channels = ["-S", "-gdb", f"unix:{directory / 'gdb'},server=on,wait=off"]
        channels += ["-serial", "null", "-d", "int,cpu_reset", "-D", str(directory / "log")]
        process = start_qemu(config, directory, channels)
        try:
            repeat(GdbStub(directory / "gdb", process), packets)
            yield (directory / "log").read_text(errors="replace")[-LOG_TAIL:]
        finally:
            process.kill()
            process.wait()


def repeat(stub: GdbStub, packets: Sequence[str | tuple[int, bytes]]) -> None:
    """Sends the packets that another machine got, up to its last run, and what was put into its
    memory."""
    last = max(i for i, packet in enumerate(packets) if packet == "c")
    for packet in packets[1 : last + 1]:
        for each in [packet] if isinstance(packet, str) else writes(*packet):
            ask_again(stub, each)


def ask_again(stub: GdbStub, packet: str) -> None:
    """Sends a packet, and waits for its answer."""
    answer = stub.ask(packet)
    while answer.startswith("O") and answer != "OK":
        answer = stub.receive(ANSWER_SECONDS)

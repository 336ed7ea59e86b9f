"""QEMU's gdb stub: packets of gdb's remote serial protocol, with bounded waits.

The protocol: "Debugging with GDB", appendix E. Of QEMU's additions to it qRcmd is used here, which
takes commands of QEMU's monitor.
"""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from labs.tools.machine.bounded import processor_times
from labs.tools.machine.gdb_protocol import (
    PACKET,
    START_SECONDS,
    StubError,
    connected,
    framed,
    monitor_packet,
)

POLL_SECONDS = 0.2
MOMENT = 0.2  # seconds
IDLE_SECONDS = 8  # of real time in which QEMU could have worked and had nothing to do


Packet = str | tuple[int, bytes]  # or what was put into memory without one: an address, and data


class StubGone(AssertionError):
    """QEMU has ended, or did not start."""


class GdbStub:
    """A connection to the stub of a QEMU that has just been started."""

    def __init__(self, path: Path, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._received = b""
        self._owed = b""  # an acknowledgement, which goes out with the next packet
        self._looked = self._busy = 0.0  # when that was asked, and QEMU's processor time
        self._used = 0.0  # of that, before it began again
        self.sent: list[Packet] = []  # so far: so another machine can do the same
        self._stream = connection(path, process)
        self.ask("qXfer:features:read:target.xml:0,fff")  # else QEMU sets no single register

    @property
    def process_id(self) -> int:
        """QEMU's process."""
        return self._process.pid

    def close(self) -> None:
        """Lets go of QEMU."""
        self._stream.close()

    def ask(self, request: str) -> str:
        """Sends a packet and returns the answer. Raises TimeoutError, StubGone."""
        self.send(request)
        return self.receive(START_SECONDS)

    def send(self, *requests: str) -> None:
        """Sends packets, all at once: each that waits for an answer costs two changes of tasks."""
        self.sent += requests
        data = b"".join(framed(each.encode()) for each in requests)
        self._stream.sendall(self._owed + data)
        self._owed = b""

    def start(self, *requests: str) -> list[str]:
        """Sends packets, and one with which the guest goes on. Returns the answers to the former,
        which the next packet has acknowledged: anything else would stop the guest."""
        self.send(*requests, "c")
        return [self._next(START_SECONDS) for _ in requests]

    def ask_all(self, *requests: str) -> list[str]:
        """Sends packets at once, and returns the answers."""
        self.send(*requests)
        return [self.receive(START_SECONDS) for _ in requests]

    def begin_again(self, sent: Sequence[Packet]) -> None:
        """The machine is where it was when these packets had been sent."""
        self.sent = list(sent)
        self._used = processor_times(self._process.pid)[0]
        self._looked = 0.0

    def interrupt(self) -> str:
        """Makes the guest stand still, and returns why it does: it may have stopped before."""
        self._stream.sendall(self._owed + b"\x03")
        self._owed = b""
        return self.receive(START_SECONDS)

    def receive(self, seconds: float) -> str:
        """The next packet, which is acknowledged. Raises TimeoutError when QEMU has used up this
        much processor time, or has had nothing to do for long: a busy host does not make a guest
        late."""
        packet = self._next(seconds)
        self._owed = b"+"
        return packet

    def _next(self, seconds: float) -> str:
        """The same, not yet acknowledged."""
        idle, last, before = 0.0, time.monotonic(), None
        while not (match := PACKET.search(self._received)):
            if self._take():
                continue
            now, (busy, waiting) = time.monotonic(), processor_times(self._process.pid)
            first, known = before or (busy, busy + waiting)
            # A step counts as a step: the clock goes on while all of this is stopped.
            idle += max(0, min(now - last, 2 * POLL_SECONDS) - (busy + waiting - known))
            last, before = now, (first, busy + waiting)
            if busy - first > seconds or idle > IDLE_SECONDS:
                raise TimeoutError
        self._received = self._received[match.end() :]
        return match[1].decode()

    def processor_seconds(self) -> float:
        """For how long QEMU has kept a processor for this test, up to a moment ago: looking takes
        longer than most requests."""
        now = time.monotonic()
        if now - self._looked > MOMENT:
            self._looked, self._busy = now, processor_times(self._process.pid)[0]
        return self._busy - self._used

    def _take(self) -> bool:
        """Adds what arrives within a moment; False when there is nothing. Raises StubGone."""
        try:
            received = self._stream.recv(1 << 16)
        except TimeoutError:
            return False
        if not received:
            raise StubGone("QEMU has ended")
        self._received += received
        return True

    def monitor(self, command: str) -> str:
        """Runs a command of QEMU's monitor and returns what it prints."""
        answer, text = self.ask(monitor_packet(command)), ""
        while answer.startswith("O") and answer != "OK":
            text += bytes.fromhex(answer[1:]).decode()
            answer = self.receive(START_SECONDS)
        return text


def connection(path: Path, process: subprocess.Popen[bytes]) -> socket.socket:
    """The connection to QEMU's socket, as soon as there is one. Raises StubGone."""
    try:
        stream = connected(path, process)
    except StubError as error:
        raise StubGone("QEMU did not start the kernel") from error
    stream.settimeout(POLL_SECONDS)
    return stream

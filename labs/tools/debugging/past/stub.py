"""A client of QEMU's gdb stub ("Debugging with GDB", appendix E): packets, answers, the monitor."""

from __future__ import annotations

import re
import select
import subprocess
from collections.abc import Sequence
from pathlib import Path

from labs.tools.machine.bounded import Patience
from labs.tools.machine.gdb_protocol import (
    PACKET,
    START_SECONDS,
    StubError,
    connected,
    framed,
    monitor_packet,
)

COUNT = re.compile(r"instruction count = (\d+)")
LOOK_SECONDS = 0.2
PHYSICAL = "Qqemu.PhyMemMode:1", "Qqemu.PhyMemMode:0"
INTERRUPT = b"\x03"


class Stub:
    """The connection to the stub of a QEMU that has just been started."""

    def __init__(self, path: Path, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._received = b""
        self.stream = connected(path, process)
        self.ask("qXfer:features:read:target.xml:0,fff")  # else QEMU sets no single register

    def close(self) -> None:
        """Lets go of QEMU."""
        self.stream.close()

    def send(self, *packets: str) -> None:
        """Sends packets, all at once."""
        data = b"".join(framed(each.encode("latin-1")) for each in packets)
        try:
            self.stream.sendall(data)
        except OSError as error:
            raise StubError("QEMU has ended") from error

    def interrupt(self) -> None:
        """Asks the machine to stop; the answer comes as after a breakpoint."""
        self.stream.sendall(INTERRUPT)

    def poll(self) -> str | None:
        """A packet that has arrived, or None. Raises StubError."""
        match = PACKET.search(self._received)
        if not match and select.select([self.stream], [], [], 0)[0]:
            self._take()
            match = PACKET.search(self._received)
        if not match:
            return None
        self._received = self._received[match.end() :]
        self.stream.sendall(b"+")
        return match[1].decode("latin-1")

    def receive(self, seconds: float | None = None) -> str:
        """The next packet. Raises StubError, and TimeoutError after so many seconds."""
        patience = Patience(seconds) if seconds is not None else None
        while (packet := self.poll()) is None:
            select.select([self.stream], [], [], 0.1 if patience else 1)
            if patience and patience.is_over():
                raise TimeoutError
        return packet

    def ask(self, packet: str) -> str:
        """Sends a packet, and returns the answer."""
        self.send(packet)
        return self.receive(START_SECONDS)

    def ask_all(self, *packets: str) -> list[str]:
        """Sends packets at once, which saves time, and returns the answers. A command of the
        monitor's has its whole text as the answer."""
        self.send(*packets)
        return [self._text() if each.startswith("qRcmd,") else self.receive() for each in packets]

    def monitor(self, command: str) -> str:
        """Runs a command of QEMU's monitor and returns what it prints."""
        return self.ask_all(monitor_packet(command))[0]

    def count(self) -> int:
        """The instructions that the machine has run."""
        return count_in(self.monitor("info replay"))

    def _text(self) -> str:
        """What the monitor prints, up to its end."""
        text = ""
        while (answer := self.receive(START_SECONDS)).startswith("O") and answer != "OK":
            text += bytes.fromhex(answer[1:]).decode(errors="replace")
        return text

    def _take(self) -> None:
        try:
            data = self.stream.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            raise StubError("QEMU has ended")
        self._received += data


def count_in(text: str) -> int:
    """The number in QEMU's answer to `info replay`. Raises StubError."""
    found = COUNT.search(text)
    if not found:
        raise StubError(
            "QEMU counts no instructions: this machine is neither recorded nor replayed"
        )
    return int(found[1])


def registers_in(answer: str, names: Sequence[str]) -> dict[str, int]:
    """The answer to a packet `g`: the first registers, by name."""
    data = bytes.fromhex(answer[: 8 * len(names)])
    return {
        name: int.from_bytes(data[4 * at : 4 * at + 4], "little") for at, name in enumerate(names)
    }

"""Packets of gdb's remote serial protocol ("Debugging with GDB", appendix E), and the connection to
QEMU's stub, which speaks it. QEMU adds qRcmd, which takes commands of its monitor.
"""

from __future__ import annotations

import re
import socket
import subprocess
import time
from pathlib import Path

from labs.tools.machine.bounded import Patience

PACKET = re.compile(rb"\$([^#]*)#..", re.DOTALL)
START_SECONDS = 60
PRINTED = 500  # characters in an answer: two hexadecimal digits each, at the least


class StubError(Exception):
    """QEMU has ended, or does not go on; the text says which."""


def monitor_packet(command: str) -> str:
    """The packet that runs a command of QEMU's monitor."""
    return "qRcmd," + command.encode().hex()


def monitor_answers(printed: str) -> list[str]:
    """The packets that answer such a command, with what it has printed."""
    parts = [printed[at : at + PRINTED] for at in range(0, len(printed), PRINTED)]
    return [*("O" + part.encode().hex() for part in parts), "OK"]


def framed(data: bytes) -> bytes:
    """A packet as it is sent."""
    return b"$%s#%02x" % (data, sum(data) & 0xFF)


def connected(path: Path, process: subprocess.Popen[bytes]) -> socket.socket:
    """The connection to the socket of a QEMU that has just been started, as soon as there is one.
    Raises StubError."""
    stream = socket.socket(socket.AF_UNIX)
    patience = Patience(START_SECONDS)
    while stream.connect_ex(str(path)) != 0:
        if process.poll() is not None or patience.is_over():
            stream.close()
            raise StubError("QEMU did not start")
        time.sleep(0.005)
    return stream

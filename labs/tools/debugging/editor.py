"""Puts an editor in front of gdb instead of a person: by DAP, the Debug Adapter Protocol, or MI.

gdb 14 and later speak DAP (`gdb -i dap`). An editor asks to launch or to attach to something; the
machine runs already, so what it asks for becomes gdb's `attach` to this session's socket. All else
passes. https://microsoft.github.io/debug-adapter-protocol
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

LENGTH = re.compile(rb"Content-Length: *(\d+)\r?\n")
STDIO, MI = "stdio", "mi"
BEGINNINGS = ("launch", "attach")
HOST = "127.0.0.1"


def server(text: str) -> str:
    """A way to reach an editor, as typed: "stdio", "mi", or a port's number."""
    if text in ("", STDIO, MI) or (text.isdecimal() and 0 < int(text) < 1 << 16):
        return text
    raise argparse.ArgumentTypeError(f"SERVER: {text!r} is not a port's number, stdio, or mi")


def has_dap(gdb: str) -> bool:
    """Whether this gdb speaks DAP."""
    trial = [gdb, "-nx", "-batch", "-ex", "python import gdb.dap"]
    tried = subprocess.run(trial, capture_output=True, text=True, check=False)
    return not tried.stderr.strip()


def serve(
    command: Sequence[str], environment: Mapping[str, str], folder: Path, target: Path, way: str
) -> int:
    """Runs gdb for an editor, and returns gdb's status. `target` is the socket of the machine."""
    if way == STDIO:
        reader = os.fdopen(os.dup(0), "rb")  # not closed: a thread may still read at the end
        return _serve(command, environment, folder, target, reader, sys.stdout.buffer)
    with socket.create_server((HOST, int(way))) as listener:
        print(f"The editor may connect now: DAP at port {way} of {HOST}.", flush=True)
        stream, _ = listener.accept()
    with stream, stream.makefile("rb") as reader, stream.makefile("wb") as writer:
        try:
            return _serve(command, environment, folder, target, reader, writer)
        finally:
            with suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)  # nobody reads any more


def _serve(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    target: Path,
    reader: BinaryIO,
    writer: BinaryIO,
) -> int:
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, cwd=folder, stdin=pipe, stdout=pipe) as gdb:
        relay = Relay(target)
        forth = (relay.to_gdb, reader, gdb.stdin)
        threading.Thread(target=pass_on, args=forth, daemon=True).start()
        pass_on(relay.to_editor, gdb.stdout, writer)
        gdb.kill()  # an editor that has gone says nothing more
        return gdb.wait()


class Relay:
    """Changes the messages that say what is debugged."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._asked: dict[int, str] = {}

    def to_gdb(self, message: dict[str, Any]) -> dict[str, Any]:
        """One of the editor's."""
        if message.get("type") == "request" and message.get("command") in BEGINNINGS:
            self._asked[message["seq"]] = message["command"]
            return {**message, "command": "attach", "arguments": {"target": str(self._target)}}
        return message

    def to_editor(self, message: dict[str, Any]) -> dict[str, Any]:
        """One of gdb's."""
        asked = self._asked.get(message.get("request_seq", -1))
        return {**message, "command": asked} if asked else message


def pass_on(change: Any, reader: BinaryIO, writer: BinaryIO) -> None:
    """Passes messages on until there are no more, or nobody takes them."""
    with suppress(OSError, ValueError):
        while (message := received(reader)) is not None:
            send(writer, change(message))


def received(reader: BinaryIO) -> dict[str, Any] | None:
    """The next message; None at the end. What is between messages is no message."""
    while line := reader.readline():
        if found := LENGTH.search(line):
            while line.strip():
                line = reader.readline()
            return json.loads(reader.read(int(found[1])))
    return None


def send(writer: BinaryIO, message: Mapping[str, Any]) -> None:
    """Sends a message."""
    body = json.dumps(message).encode()
    writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    writer.flush()

"""QEMU's monitor (QMP) as plain calls: a line of JSON to QEMU, and a line back.

QEMU's own client for Python (qemu.qmp) is asynchronous. A command took it twenty times as long, and
its import was half of all that a machine imports.
"""

from __future__ import annotations

import calendar
import json
import os
import select
import socket
import subprocess
import time
from contextlib import suppress
from itertools import count
from pathlib import Path

from labs.tools.machine.bounded import Patience
from labs.tools.machine.qemu_command import RTC_BASE

POLL_SECONDS = 0.02
CHUNK = 1 << 16
Message = dict[str, object]

# The PM timer of the PIIX4 counts QEMU's virtual clock in 24 bits. SeaBIOS maps it here.
PM_TIMER_PORT = 0x608
PM_TIMER_HERTZ = 3_579_545
PM_TIMER_MASK = (1 << 24) - 1


def seconds_of(clock: str) -> int:
    """The seconds since 1970 at a date, or at a date and time, as Config.clock has them."""
    return calendar.timegm(
        time.strptime(clock, "%Y-%m-%dT%H:%M:%S" if "T" in clock else "%Y-%m-%d")
    )


class MonitorLost(ConnectionError):
    """QEMU has gone, or never came."""


class GuestMemoryError(LookupError):
    """No memory is mapped at a guest address."""


class ExecuteError(RuntimeError):
    """QEMU's words on a command that it has refused."""


class Monitor:
    """A QMP session in which QEMU calls us: listen, start QEMU, accept. Times are real seconds."""

    def __init__(self, clock: str = RTC_BASE) -> None:
        """clock: what the guest's had at power-on (Config.clock)."""
        self._clock = clock
        self._listener: socket.socket | None = None
        self._line: socket.socket | None = None  # None before the session, and after its end
        self._received = bytearray()
        self._shutdowns: list[Message] = []  # events that nobody has asked for yet
        self._numbers = count(1)
        self._pipe: int | None = None
        self._watched: list[int] = []  # the pipe, up to its end
        self._tail = bytearray()
        self._tail_limit = 0

    def listen(self, path: Path) -> None:
        """Opens the socket that QEMU is to connect to; its path has at most 107 bytes."""
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(1)

    def accept(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        """Waits for QEMU's greeting. Raises MonitorLost when none comes for `seconds`."""
        patience = Patience(seconds)
        greeting = None
        try:
            while not greeting:
                if process.poll() is not None or patience.is_over():
                    raise MonitorLost("QEMU did not connect to its monitor")
                if self._line:
                    greeting = self._next_message(POLL_SECONDS)
                elif select.select([self._listener], [], [], POLL_SECONDS)[0]:
                    self._line, _ = self._listener.accept()
            self.execute("qmp_capabilities")
        except (ExecuteError, OSError) as error:
            raise MonitorLost("QEMU did not connect to its monitor") from error

    def execute(self, command: str, **arguments: object) -> object:
        """Runs a QMP command. Raises ExecuteError with QEMU's words, MonitorLost after its end."""
        named = {name.replace("_", "-"): value for name, value in arguments.items()}
        number = next(self._numbers)
        words = json.dumps({"execute": command, "arguments": named, "id": number})
        answer: Message | None = None
        try:
            self._require_line().sendall(f"{words}\n".encode())
            while not answer or answer.get("id") != number:  # another one was interrupted
                answer = self._next_message(None)
        except OSError as error:
            raise MonitorLost(f"QEMU ended during {command}") from error
        if "error" in answer:
            raise ExecuteError(answer["error"]["desc"])
        return answer["return"]

    def _require_line(self) -> socket.socket:
        """The session's socket. Raises MonitorLost when there is no session."""
        if not self._line:
            raise MonitorLost("QEMU has ended")
        return self._line

    def _next_message(self, seconds: float | None) -> Message | None:
        """The next message that is no event; None when none came within `seconds`, or when the
        guest has shut down meanwhile. Without a limit (None) it waits for a message. Raises
        MonitorLost."""
        end = None if seconds is None else time.monotonic() + seconds
        is_over = False
        while True:
            while b"\n" in self._received:
                line, _, self._received = self._received.partition(b"\n")
                message = json.loads(line)
                if "event" not in message:
                    return message
                if message["event"] == "SHUTDOWN":
                    self._shutdowns.append(message)
            if is_over or (end is not None and self._shutdowns):
                return None
            left = None if end is None else max(0, end - time.monotonic())
            is_over = left == 0  # after one more look
            self._receive(left)

    def _receive(self, seconds: float | None) -> None:
        """Takes what comes first, within `seconds` (None: whenever). Raises MonitorLost at the
        end."""
        line = self._require_line()
        ready, _, _ = select.select([line, *self._watched], [], [], seconds)
        if self._pipe in ready and not self._read_tail():
            self._watched.clear()
        if line in ready:
            data = b""
            with suppress(ConnectionError):
                data = line.recv(CHUNK)
            if not data:
                self._hang_up()
                raise MonitorLost("QEMU has ended")
            self._received += data

    def _hang_up(self) -> None:
        """Ends the session."""
        if self._line:
            self._line.close()
            self._line = None

    def human(self, command: str) -> str:
        """Runs a command of the human monitor and returns what it prints."""
        return str(self.execute("human-monitor-command", command_line=command))

    def shutdown_event(self, seconds: float) -> Message | None:
        """Waits at most `seconds` for the event SHUTDOWN and returns it. None when there is none,
        soon when the session has ended: then the process is about to."""
        try:
            if not self._shutdowns:
                self._next_message(seconds)
        except MonitorLost:
            time.sleep(min(seconds, POLL_SECONDS))
        return self._shutdowns.pop(0) if self._shutdowns else None

    def whole_seconds(self) -> int:
        """Guest time since power-on by the RTC, which runs on QEMU's virtual clock (-rtc clock=vm).
        A guest that sets its RTC back is left to the limit of real time."""
        fields = self.execute("qom-get", path="/machine", property="rtc-time")
        names = ("tm_mon", "tm_mday", "tm_hour", "tm_min", "tm_sec")
        month, *others = (fields[name] for name in names)
        now = calendar.timegm((fields["tm_year"] + 1900, month % 12 + 1, *others))
        return now - seconds_of(self._clock)

    def instructions(self) -> int:
        """How many instructions the guest has run; for a machine with icount."""
        return self.execute("query-replay")["icount"]

    def guest_seconds(self) -> float:
        """Guest time since power-on: the PM timer, with the RTC to count its rounds of 4.7 s."""
        whole = self.whole_seconds()
        ticks = int(self.human(f"i /w {PM_TIMER_PORT:#x}").split("=")[1], 16)
        if ticks > PM_TIMER_MASK:
            return float(whole)
        period = (PM_TIMER_MASK + 1) / PM_TIMER_HERTZ
        within = ticks / PM_TIMER_HERTZ
        rounds = max(0, round((whole + 0.5 - within) / period))
        return round(rounds * period + within, 6)

    def save_memory(self, command: str, address: int, length: int, path: Path) -> bytes:
        """Guest memory by way of the file `path`: memsave is virtual, pmemsave is physical.
        Raises GuestMemoryError."""
        try:
            self.execute(command, val=address, size=length, filename=str(path))
        except ExecuteError as error:
            raise GuestMemoryError(f"{length} bytes at {address:#010x}: {error}") from error
        return path.read_bytes()

    def keep_tail(self, path: Path, limit: int) -> None:
        """Makes a pipe at `path`, which is read whenever QEMU is waited for; only the last `limit`
        bytes are kept."""
        os.mkfifo(path)
        self._pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self._watched = [self._pipe]
        self._tail_limit = limit

    def _read_tail(self) -> bool:
        """Takes what is in the pipe, at most 64 KiB; false at its end."""
        data = os.read(self._pipe, CHUNK)
        self._tail += data
        del self._tail[: -self._tail_limit]
        return bool(data)

    def tail(self) -> str:
        """The kept end of the pipe. Call it after QEMU's end."""
        while self._read_tail():
            pass
        return self._tail.decode(errors="replace")

    def close(self) -> None:
        """Ends the session. Call it after QEMU's end, and only once."""
        self._hang_up()
        if self._listener:
            self._listener.close()
        if self._pipe is not None:
            os.close(self._pipe)

"""QEMU's monitor (QMP) as plain calls: the asynchronous client runs only while a call waits."""

from __future__ import annotations

import asyncio
import calendar
import logging
import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from qemu.qmp import ExecInterruptedError, ExecuteError, QMPClient, QMPError, StateError
from qemu.qmp.message import Message

from labs.tools.machine.bounded import Patience
from labs.tools.machine.qemu_command import RTC_BASE

# The client logs each lost connection; the harness reports it in its own words.
logging.getLogger("qemu.qmp").setLevel(logging.CRITICAL)

POLL_SECONDS = 0.02

# The PM timer of the PIIX4 counts QEMU's virtual clock in 24 bits. SeaBIOS maps it here.
PM_TIMER_PORT = 0x608
PM_TIMER_HERTZ = 3_579_545
PM_TIMER_MASK = (1 << 24) - 1


def seconds_of(clock: str) -> int:
    """The seconds since 1970 at a date, or at a date and time, as Config.clock has them."""
    return calendar.timegm(
        time.strptime(clock, "%Y-%m-%dT%H:%M:%S" if "T" in clock else "%Y-%m-%d")
    )


def rtc_seconds(fields: dict[str, int], clock: str) -> int:
    """The guest's seconds since power-on: `fields` are those of QEMU's property rtc-time."""
    names = ("tm_mon", "tm_mday", "tm_hour", "tm_min", "tm_sec")
    month, *others = (fields[name] for name in names)
    now = calendar.timegm((fields["tm_year"] + 1900, month % 12 + 1, *others))
    return now - seconds_of(clock)


def seconds_by(whole: int, ticks: int) -> float:
    """Guest seconds since power-on: by the RTC's whole ones, and the PM timer, whose round is
    4.7 s. Without the PM timer, which SeaBIOS switches on, whole ones are all there is."""
    if ticks > PM_TIMER_MASK:
        return float(whole)
    period = (PM_TIMER_MASK + 1) / PM_TIMER_HERTZ
    within = ticks / PM_TIMER_HERTZ
    rounds = max(0, round((whole + 0.5 - within) / period))
    return round(rounds * period + within, 6)


class MonitorLost(ConnectionError):
    """QEMU has gone, or never came."""


class GuestMemoryError(LookupError):
    """No memory is mapped at a guest address."""


class Monitor:
    """A QMP session in which QEMU calls us: listen, start QEMU, accept. Times are real seconds."""

    def __init__(self, clock: str = RTC_BASE) -> None:
        """clock: what the guest's had at power-on (Config.clock)."""
        self._clock = clock
        self._loop = asyncio.new_event_loop()
        self._client = QMPClient("machine")
        self._pipe: int | None = None
        self._tail = bytearray()
        self._tail_limit = 0

    def listen(self, path: Path) -> None:
        """Opens the socket that QEMU is to connect to; its path has at most 107 bytes."""
        self._loop.run_until_complete(self._client.start_server(str(path)))

    def accept(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        """Waits for QEMU; raises MonitorLost when it ends or says nothing for `seconds`."""
        self._loop.run_until_complete(self._accept(process, Patience(seconds)))

    async def _accept(self, process: subprocess.Popen[bytes], patience: Patience) -> None:
        session = asyncio.ensure_future(self._client.accept())
        while not session.done():
            await asyncio.wait({session}, timeout=POLL_SECONDS)
            if process.poll() is not None or patience.is_over():
                session.cancel()
                break
        try:
            await session
        except (QMPError, EOFError, OSError, asyncio.CancelledError) as error:
            raise MonitorLost("QEMU did not connect to its monitor") from error

    def execute(self, command: str, **arguments: object) -> object:
        """Runs a QMP command. Raises ExecuteError with QEMU's words, MonitorLost after its end."""
        try:
            named = {name.replace("_", "-"): value for name, value in arguments.items()}
            return self._loop.run_until_complete(self._client.execute(command, named))
        except (ExecInterruptedError, StateError, EOFError, OSError) as error:
            raise MonitorLost(f"QEMU ended during {command}") from error

    def human(self, command: str) -> str:
        """Runs a command of the human monitor and returns what it prints."""
        return str(self.execute("human-monitor-command", command_line=command))

    def shutdown_event(self, seconds: float) -> Message | None:
        """Waits at most `seconds` for the event SHUTDOWN and returns it."""
        return self._loop.run_until_complete(self._shutdown_event(seconds))

    async def _shutdown_event(self, seconds: float) -> Message | None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                async for event in self._client.events:
                    if event["event"] == "SHUTDOWN":
                        return event
        return None

    def whole_seconds(self) -> int:
        """Guest time since power-on by the RTC, which runs on QEMU's virtual clock (-rtc clock=vm).
        A guest that sets its RTC back is left to the limit of real time."""
        return rtc_seconds(
            self.execute("qom-get", path="/machine", property="rtc-time"), self._clock
        )

    def instructions(self) -> int:
        """How many instructions the guest has run; for a machine with icount."""
        return self.execute("query-replay")["icount"]

    def guest_seconds(self) -> float:
        """Guest time since power-on: the PM timer, with the RTC to count its rounds of 4.7 s."""
        whole = self.whole_seconds()
        return seconds_by(whole, int(self.human(f"i /w {PM_TIMER_PORT:#x}").split("=")[1], 16))

    def save_memory(self, command: str, address: int, length: int, path: Path) -> bytes:
        """Guest memory by way of the file `path`: memsave is virtual, pmemsave is physical.
        Raises GuestMemoryError."""
        try:
            self.execute(command, val=address, size=length, filename=str(path))
        except ExecuteError as error:
            raise GuestMemoryError(f"{length} bytes at {address:#010x}: {error}") from error
        return path.read_bytes()

    def keep_tail(self, path: Path, limit: int) -> None:
        """Makes a pipe at `path` and reads it from now on; only the last `limit` bytes are kept."""
        os.mkfifo(path)
        self._pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self._tail_limit = limit
        self._loop.add_reader(self._pipe, self._read_tail)

    def _read_tail(self) -> bool:
        """Takes what is in the pipe, at most 64 KiB; false at its end."""
        data = os.read(self._pipe, 1 << 16)
        self._tail += data
        del self._tail[: -self._tail_limit]
        if not data:
            self._loop.remove_reader(self._pipe)
        return bool(data)

    def tail(self) -> str:
        """The kept end of the pipe. Call it after QEMU's end."""
        while self._read_tail():
            pass
        return self._tail.decode(errors="replace")

    def close(self) -> None:
        """Ends the session. Call it after QEMU's end, and only once."""
        with suppress(QMPError, EOFError, OSError):
            self._loop.run_until_complete(self._client.disconnect())
        if self._pipe is not None:
            self._loop.remove_reader(self._pipe)
            os.close(self._pipe)
        self._loop.close()

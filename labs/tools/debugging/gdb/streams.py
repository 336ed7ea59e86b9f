"""What comes out of the machine while gdb debugs it: its serial line, and QEMU's interrupt log."""

from __future__ import annotations

import atexit
import os
import queue
import re
import select
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import gdb

KEPT = 1 << 20
SOON = 0.05  # seconds
CHUNK = 1 << 16
TYPING_SECONDS = 0.005
ONE_BYTE = (1).to_bytes(4, "big")
MARK = "| "
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


def start_thread(work: Callable[[], None]) -> None:
    """Starts a thread that gets no signals: those are for gdb, which counts on Ctrl-C."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    threading.Thread(target=work, daemon=True).start()
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def interrupt_soon() -> None:
    """Ctrl-C, when gdb's own thread has left Python again."""
    time.sleep(SOON)
    os.kill(os.getpid(), signal.SIGINT)


def plain(data: bytes | bytearray) -> str:
    """Text without what would move the cursor: GRUB clears the screen."""
    return CONTROL.sub("", data.decode(errors="replace"))


class Tail:
    """The last KEPT bytes of what can be read from a file descriptor, read by a thread so that the
    writer never has to wait. `on_data` is called with each new piece, one at a time."""

    def __init__(self, descriptor: int, on_data: Callable[[bytes], None] | None = None) -> None:
        self._descriptor = descriptor
        self._on_data = on_data
        self._kept = bytearray()
        self._lock = threading.Lock()
        os.set_blocking(descriptor, False)
        start_thread(self._work)

    def text(self) -> str:
        """What is kept, up to this moment."""
        self.drain()
        return plain(self._kept)

    def drain(self) -> None:
        """Takes in what has arrived."""
        while self._take():
            pass

    def _work(self) -> None:
        while self._take() is not None:
            select.select([self._descriptor], [], [])

    def _take(self) -> bytes | None:
        """One piece; nothing is b"", the end of the stream is None."""
        with self._lock:
            try:
                data = os.read(self._descriptor, CHUNK)
            except BlockingIOError:
                return b""
            except OSError:
                return None
            self._kept += data
            del self._kept[:-KEPT]
            if self._on_data:
                self._on_data(data)
        return data or None


def end_at_once() -> None:
    """gdb ends as soon as it has nothing more to do. Else it would destroy events that were posted
    and did not run when Python is gone already, and die of that."""
    if hasattr(gdb.events, "gdb_exiting"):  # since gdb 12
        gdb.events.gdb_exiting.connect(lambda event: atexit.register(leave, event.exit_code))


def leave(status: int) -> None:
    """Ends the process; Python's part of gdb has ended last."""
    gdb.flush()
    os._exit(status)


class Console:
    """The guest's serial line: two pipes, `path` with .in and .out. New output is shown with MARK
    before each line: at once while the guest runs, the rest at the next stop. Where no person
    looks, only whole lines are shown while it runs. gdb's own thread writes all of it: it must not
    come into the middle of what gdb says."""

    def __init__(self, path: Path) -> None:
        end_at_once()
        self._input = os.open(f"{path}.in", os.O_WRONLY)
        self._record = path.with_name("record")
        self._typed: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        start_thread(self._type)
        self._waiting = bytearray()
        self._lock = threading.Lock()  # for what waits
        self._at_line_start = True
        self._is_live = False
        self._is_seen = os.isatty(1)
        self._tail = open_pipe(Path(f"{path}.out"), self._receive)

    def _receive(self, data: bytes) -> None:
        with self._lock:
            self._waiting += data
        if self._is_live:
            gdb.post_event(self._show_live)

    def _show_live(self) -> None:
        """Ctrl-C, while gdb is here, interrupts us and not the guest: gdb gets it once more."""
        try:
            if self._is_live:
                gdb.flush()
                os.write(1, self._shown(only_lines=not self._is_seen).encode())
        except KeyboardInterrupt:
            start_thread(interrupt_soon)

    def _shown(self, only_lines: bool) -> str:
        """What has not been shown yet, or the whole lines of it, with its marks."""
        with self._lock:
            length = self._waiting.rfind(b"\n") + 1 if only_lines else len(self._waiting)
            text = plain(self._waiting[:length])
            del self._waiting[:length]
        pieces = []
        for line in text.splitlines(keepends=True):
            pieces.append(MARK + line if self._at_line_start else line)
            self._at_line_start = line.endswith("\n")
        return "".join(pieces)

    def run(self, is_live: bool) -> None:
        """The guest runs from here on. `is_live`: the screen may be written to meanwhile."""
        gdb.flush()
        self._is_live = is_live

    def stop(self) -> None:
        """The guest has stopped: shows the rest, and closes an open line."""
        self._is_live = False
        self._tail.drain()
        text = self._shown(only_lines=False)
        gdb.write(f"{text}\n" if text and not self._at_line_start else text)
        self._at_line_start = True

    def text(self) -> str:
        """What the guest has written, the last KEPT bytes of it."""
        return self._tail.text()

    def send(self, line: str) -> None:
        """Types a line and Enter. The guest reads it when it runs."""
        for each in f"{line}\n".encode():
            self._typed.put(bytes([each]))

    def _type(self) -> None:
        """Hands one character after the other to QEMU, each when the one before is in the record.
        What is recorded reaches the serial line whether that has room for it or not (QEMU 7.2)."""
        while True:
            character = self._typed.get()
            known = self._record.stat().st_size if self._record.exists() else -1
            os.write(self._input, character)
            while known >= 0 and not is_recorded(self._record, known, character):
                time.sleep(TYPING_SECONDS)


def is_recorded(record: Path, start: int, character: bytes) -> bool:
    """Whether QEMU has written down since then that a character came: its length, and the data."""
    with record.open("rb") as file:
        file.seek(start)
        return ONE_BYTE + character in file.read()


def open_pipe(path: Path, on_data: Callable[[bytes], None] | None = None) -> Tail:
    """What QEMU writes to a pipe."""
    return Tail(os.open(path, os.O_RDONLY | os.O_NONBLOCK), on_data)

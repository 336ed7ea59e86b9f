"""A drive that takes its time: the disk models of disk_model.py as a plugin of nbdkit.

    nbdkit -f -U SOCKET python labs/storage/nbd_plugin.py image=FILE model=hdd5400 scale=0.1

`scale` is the real time of a modelled millisecond: 1 is as slow as the drive, 0.1 ten times faster,
0 does not wait at all and only keeps the account. `cache` is off, read or on (disk_model.CACHES).
`trace` names a file that gets a line for each request (disk_model.TRACE_COLUMNS).

    scale 0      a request begins when the one before has ended, as in disk_model.replay
    scale > 0    the same, and the answer comes when the model says; a request that comes later than
                 GRACE_SECONDS after the one before begins when it comes

So a busy host, which sends the next request a little late, does not change the account, and the
drive catches up.

Requests are served one after another, as the drive does. It runs in the Python of nbdkit, which has
the standard library only. labs/storage/nbd.py starts it.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import IO, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from labs.storage.disk_model import (
    SECTOR_BYTES,
    TRACE_COLUMNS,
    Model,
    Request,
    drive,
    serve,
    trace_line,
)

API_VERSION = 2
GRACE_SECONDS = 0.02
SETTINGS = {"image": "", "model": "hdd5400", "cache": "off", "scale": "0", "trace": ""}


class Account:
    """The model with its clock: what each request costs, and when it is over."""

    def __init__(self, model: Model, scale: float, trace: IO[str] | None) -> None:
        self._model, self._scale, self._trace = model, scale, trace
        self._end_ms = 0.0
        self._began: float | None = None  # when the first request came
        if trace:
            trace.write(TRACE_COLUMNS + "\n")

    def take(self, request: Request) -> None:
        """Serves a request, and waits for as long as the drive would."""
        start_ms = self._end_ms
        if self._began is None:
            self._began = time.monotonic()
        if self._scale:
            now = time.monotonic() - self._began
            if now - start_ms * self._scale / 1000 > GRACE_SECONDS:
                start_ms = now * 1000 / self._scale
        access = serve(self._model, start_ms, request)
        self._end_ms = start_ms + access.total_ms
        if self._trace:
            self._trace.write(trace_line(request, start_ms, access) + "\n")
        if self._scale:
            left = self._began + self._end_ms * self._scale / 1000 - time.monotonic()
            time.sleep(max(0.0, left))


state: dict[str, Any] = {}


# ---- what nbdkit calls ---------------------------------------------------------------------------


def config(key: str, value: str) -> None:
    """A setting of the command line."""
    if key not in SETTINGS:
        raise ValueError(f"there is no setting {key}; there are {', '.join(SETTINGS)}")
    SETTINGS[key] = value


def get_ready() -> None:
    """All settings are known."""
    state["image"] = os.open(SETTINGS["image"], os.O_RDWR)
    state["size"] = os.fstat(state["image"]).st_size // SECTOR_BYTES * SECTOR_BYTES
    model = drive(SETTINGS["model"], state["size"] // SECTOR_BYTES, SETTINGS["cache"])
    trace = None
    if SETTINGS["trace"]:
        trace = Path(SETTINGS["trace"]).open("w", buffering=1)  # noqa: SIM115 (to the end)
    state["account"] = Account(model, float(SETTINGS["scale"]), trace)


def thread_model() -> int:
    """One request at a time."""
    import nbdkit  # only nbdkit has it

    return nbdkit.THREAD_MODEL_SERIALIZE_ALL_REQUESTS


def open(readonly: bool) -> int:  # noqa: A001 (nbdkit's name)
    """A connection; there is nothing to remember of it."""
    return 1


def get_size(handle: int) -> int:
    """Bytes of the drive."""
    return state["size"]


def block_size(handle: int) -> tuple[int, int, int]:
    """The least, the preferred and the greatest length of a request."""
    return (SECTOR_BYTES, SECTOR_BYTES, 32 << 20)


def take(operation: str, offset: int, size: int) -> None:
    """Charges a request to the model. It may begin or end within a sector."""
    first, end = offset // SECTOR_BYTES, -(-(offset + size) // SECTOR_BYTES)
    state["account"].take(Request(operation, first, end - first))


def pread(handle: int, buffer: Any, offset: int, flags: int) -> None:
    """Reads."""
    take("read", offset, len(buffer))
    buffer[:] = os.pread(state["image"], len(buffer), offset)


def pwrite(handle: int, buffer: Any, offset: int, flags: int) -> None:
    """Writes."""
    take("write", offset, len(buffer))
    os.pwrite(state["image"], buffer, offset)


def flush(handle: int, flags: int) -> None:
    """Waits for what the drive's cache holds, if it has one; the image has it already."""
    take("flush", 0, 0)

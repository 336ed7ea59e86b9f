"""The guest's own record of its disk requests, read out of its memory (drivers/disk/trace.h)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

RING_RECORDS = 16384
"""TRACE_RECORDS of drivers/disk/trace.h: what was recorded before the latest ones is gone."""

_HEAD = struct.Struct("<II")
_RECORD = struct.Struct("<QQQHhccBx")


class Purpose(IntEnum):
    """enum block_purpose of drivers/disk/block.h."""

    DATA = 0
    MAPPING = 1
    OTHER = 2


@dataclass(frozen=True)
class Record:
    """One request as the guest made it; times in ns of guest time, `result` 0 or -errno."""

    drive: str
    operation: str
    lba: int
    sectors: int
    purpose: Purpose
    start_ns: int
    duration_ns: int
    result: int


def parse_trace(data: bytes) -> tuple[int, list[Record]]:
    """From the kernel's variable `trace`: how many requests the guest has recorded since boot, and
    the latest RING_RECORDS of them, oldest first."""
    total, _ = _HEAD.unpack_from(data)
    return total, list(_records(data[_HEAD.size :], total))


def requests_measured(data: bytes) -> int:
    """From the same variable: how many requests were made since the measurement began."""
    total, mark = _HEAD.unpack_from(data)
    return total - mark


def _records(ring: bytes, total: int) -> Iterator[Record]:
    for number in range(max(0, total - RING_RECORDS), total):
        fields = _RECORD.unpack_from(ring, number % RING_RECORDS * _RECORD.size)
        start, lba, duration, sectors, result, drive, operation, purpose = fields
        yield Record(
            drive=f"hd{drive.decode()}",
            operation=operation.decode(),
            lba=lba,
            sectors=sectors,
            purpose=Purpose(purpose),
            start_ns=start,
            duration_ns=duration,
            result=result,
        )

"""The guest's own record of its disk requests, read out of its memory (drivers/disk/trace.h)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum

RING_RECORDS = 16384
"""TRACE_RECORDS of drivers/disk/trace.h: what was recorded before the latest ones is gone."""

_HEAD = struct.Struct("<I")
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
    (total,) = _HEAD.unpack_from(data)
    return total, list(_records(data[_HEAD.size :], max(0, total - RING_RECORDS), total))


class RingReader:
    """Reads the ring while the guest fills it, so that nothing is lost. `read_symbol` is that of
    the machine. Raises LookupError if the guest was faster."""

    def __init__(self, read_symbol: Callable[..., bytes]) -> None:
        self._read_symbol = read_symbol
        self.records: list[Record] = []

    def read(self, enough: int = RING_RECORDS // 8, unfinished: int = 1) -> int:
        """Takes what is new, if it is enough. The `unfinished` latest may be half-written."""
        try:
            total = self._total() - unfinished
        except LookupError:  # the kernel has no page tables yet
            return 0
        before = len(self.records)
        if total - before < enough:
            return 0
        ring = self._read_symbol("trace")[_HEAD.size :]
        if self._total() - before > RING_RECORDS:
            raise LookupError("the guest made requests faster than the host could read of them")
        self.records += _records(ring, before, total)
        return total - before

    def finish(self) -> None:
        """Takes the rest, when the guest has stopped."""
        self.read(1, 0)

    def _total(self) -> int:
        return int.from_bytes(self._read_symbol("trace", 4), "little")


def _records(ring: bytes, first: int, total: int) -> Iterator[Record]:
    for number in range(first, total):
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

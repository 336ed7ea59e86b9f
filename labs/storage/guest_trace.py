"""The guest's own record of its disk requests, read out of its memory (drivers/disk/trace.h)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

RING_RECORDS = 16384
"""TRACE_RECORDS of drivers/disk/trace.h: what was recorded before the latest ones is gone."""

_HEAD = struct.Struct("<I")
_RECORD = struct.Struct("<QQQHhccBx")


class PausedMachine(Protocol):
    """What a reader needs of labs.tools.machine.machine.Machine."""

    def read_symbol(self, name: str) -> bytes:
        """The contents of a kernel variable."""

    def is_paused(self) -> bool:
        """Whether the guest has asked to be paused, and is."""

    def go_on(self) -> None:
        """Lets it go on."""


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


PAUSE_PORT = 0x505
"""QEMU's device pvpanic: a guest that writes to it is paused, until it is told to go on."""

PAUSES = ("-device", f"pvpanic,ioport={PAUSE_PORT}", "-action", "panic=pause")
PAUSE_SETTING = ("trace_pause", str(PAUSE_PORT))
"""What a machine whose ring is read needs: options of QEMU's, and a setting of the kernel's."""


class RingReader:
    """Reads the ring while the guest fills it, so that nothing is lost however late the reader is:
    the guest is paused whenever half of the ring is new, and goes on when that was read."""

    def __init__(self, machine: PausedMachine) -> None:
        self._machine = machine
        self.records: list[Record] = []

    def read(self) -> int:
        """Takes what is new from a guest that waits for that, and lets it go on. Returns how many
        records these are."""
        if not self._machine.is_paused():
            return 0
        new = self.finish()
        self._machine.go_on()
        return new

    def finish(self) -> int:
        """Takes what is new, when the guest has stopped. Raises LookupError if it has not paused:
        its kernel is another one."""
        before = len(self.records)
        total, records = parse_trace(self._machine.read_symbol("trace"))
        new = total - before
        if new > len(records):
            raise LookupError(f"{new} requests are new, and the ring has {len(records)} of them")
        self.records += records[len(records) - new :]
        return new


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

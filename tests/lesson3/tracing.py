"""The trace ring of the kernel, read out of its memory, and its reader, called from outside."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from tests.support.remote import SCRATCH, Guest

RECORDS = 1024
LAYOUT = struct.Struct("<QIiI6IiII24sI")
BUFFER = SCRATCH + 0x2000  # what syscall_trace_read copies to
NEXT, LOST = SCRATCH + 0x1000, SCRATCH + 0x1004
MASK = 0xFFFFFFFF


@dataclass(frozen=True)
class Record:
    """struct syscall_record."""

    start: int
    ticks: int
    pid: int
    number: int
    arguments: tuple[int, ...]
    result: int
    sequence: int
    finished: int
    text: bytes
    call: int

    @classmethod
    def of(cls, data: bytes) -> Record:
        """A record from its bytes."""
        start, ticks, pid, number, *rest = LAYOUT.unpack(data)
        result, sequence, finished, text, call = rest[6:]
        return cls(
            start, ticks, pid, number, tuple(rest[:6]), result, sequence, finished,
            text.partition(b"\0")[0], call,
        )  # fmt: skip


class Ring:
    """The ring of a stopped kernel."""

    def __init__(self, guest: Guest) -> None:
        self.guest = guest
        symbol = guest.symbols.find("syscall_trace")
        self.address, self.size = symbol.address, symbol.size
        self._records = self.address + (self.size - RECORDS * LAYOUT.size)

    def switch(self, on: bool) -> None:
        """Tracing on or off."""
        self.guest.write(self.guest.address("syscall_trace_on"), bytes([on]))

    def total(self) -> int:
        """How many records were begun."""
        return self.guest.read_word(self.address)

    def set_total(self, total: int) -> None:
        """As if this many had been."""
        self.guest.write(self.address, struct.pack("<I", total & MASK))

    def place(self, sequence: int) -> int:
        """The address of a record's place."""
        return self._records + sequence % RECORDS * LAYOUT.size

    def record(self, sequence: int) -> Record:
        """What is at a record's place."""
        return Record.of(self.guest.read(self.place(sequence), LAYOUT.size))

    def every(self) -> list[Record]:
        """All places of the ring, in their order."""
        data = self.guest.read(self._records, RECORDS * LAYOUT.size)
        return [Record.of(piece[0]) for piece in struct.iter_unpack(f"{LAYOUT.size}s", data)]

    def contents(self) -> bytes:
        """All of it, as bytes."""
        return self.guest.read(self.address, self.size)

    def read(self, first: int, count: int, lost: int = 0) -> tuple[list[Record], int, int]:
        """syscall_trace_read: what it copied, where it would go on, and what it says was lost,
        with the `lost` that were before."""
        self.guest.write(NEXT, struct.pack("<II", first & MASK, lost))
        self.guest.write(BUFFER + LAYOUT.size * count, b"\x5a" * LAYOUT.size)
        copied = self.guest.call("syscall_trace_read", NEXT, BUFFER, count, LOST)
        following, lost = self.guest.read_words(NEXT, 2)
        data = self.guest.read(BUFFER, LAYOUT.size * copied)
        behind = self.guest.read(BUFFER + LAYOUT.size * count, LAYOUT.size)
        assert behind == b"\x5a" * LAYOUT.size, "more was copied than asked for"
        records = [Record.of(piece[0]) for piece in struct.iter_unpack(f"{LAYOUT.size}s", data)]
        return records, following, lost

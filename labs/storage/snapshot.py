"""A snapshot's contents, on the host: from the images of its origin and of its store.

    python -m labs.storage.snapshot origin.img store.img out.img

The store has the format of Linux's device-mapper target "snapshot" (drivers/disk/snapshot_store.c
says it in words): the kernel's writer and this reader must agree. Only what differs from zeros is
written to the new image.
"""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass
from pathlib import Path

from labs.tools.machine.command import in_a_line

SECTOR = 512
MAGIC = 0x70416E53
HEADER = struct.Struct("<4IQ")  # magic, valid, version, sectors of a chunk; ours: of the origin
ENTRY = struct.Struct("<2Q")  # chunk of the origin, chunk of its copy


class StoreError(ValueError):
    """The store has no valid snapshot; one line."""


@dataclass(frozen=True)
class Store:
    """What a store says: bytes of a chunk, and where the copy of each chunk is, in chunks."""

    chunk: int
    copies: dict[int, int]


def read_store(data: bytes) -> Store:
    """The table of a store. Raises StoreError."""
    magic, valid, version, sectors, _ = HEADER.unpack_from(data)
    if magic != MAGIC:
        raise StoreError("there is no snapshot on it")
    if not valid or version != 1 or sectors not in (8, 16, 32, 64, 128, 256):
        raise StoreError("its snapshot is invalid")
    chunk, copies, table, view = sectors * SECTOR, {}, 1, memoryview(data)
    entries = chunk // ENTRY.size
    while (table + 1) * chunk <= len(data):
        for place, (old, copy) in enumerate(ENTRY.iter_unpack(view[table * chunk :][:chunk])):
            if copy == 0:
                return Store(chunk, copies)
            if copy != table + 1 + place or old in copies:
                raise StoreError(f"entry {len(copies)} is damaged")
            copies[old] = copy
        table += entries + 1
    return Store(chunk, copies)


def contents(origin: bytes, data: bytes) -> bytes:
    """The snapshot, as large as its origin. Raises StoreError."""
    store, made, view = read_store(data), bytearray(origin), memoryview(data)
    for chunk, copy in store.copies.items():
        start = chunk * store.chunk
        length = min(store.chunk, len(origin) - start)
        made[start : start + length] = view[copy * store.chunk :][:length]
    return bytes(made)


def main() -> int:
    """Writes the image; returns the exit status."""
    if len(sys.argv) != 4:
        print("snapshot: expected ORIGIN STORE OUT, three files", file=sys.stderr)
        return 2
    origin, store, out = map(Path, sys.argv[1:])
    try:
        made = contents(origin.read_bytes(), store.read_bytes())
        out.write_bytes(made)
    except (OSError, StoreError, struct.error) as error:
        print(f"snapshot: {error}", file=sys.stderr)
        return 1
    print(f"{out}: {len(made):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(in_a_line("snapshot", main))

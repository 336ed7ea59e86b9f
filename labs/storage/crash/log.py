"""Reads a log of writes and flushes (dm-log-writes, which QEMU's blklogwrites makes, too), and says
of each what it is: an inode table, the journal's commit block, data of a file, ...

    sector 0        {magic 0x6a736677736872, version 1, entries, size of a sector}
    each entry      a sector {sector, count, flags, length of the data}, and then the data

All numbers have 64 bits, little-endian. Flags: 1 flush, 2 FUA, 4 discard, 8 mark.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from labs.storage.crash.building import run_tool

SECTOR = 512
MAGIC = 0x6A736677736872
FLUSH, FUA, DISCARD, MARK = 1, 2, 4, 8
JOURNAL_MAGIC = 0xC03B3998
JOURNAL_KINDS = {1: "descriptor", 2: "commit block", 3: "superblock", 4: "superblock", 5: "revoke"}


class LogError(Exception):
    """A log that contradicts itself."""


@dataclass(frozen=True)
class Entry:
    """A write; without data it is a flush only."""

    sector: int  # in units of 512 bytes
    data: bytes
    flags: int

    @property
    def flushes(self) -> bool:
        """What was written before is safe after it."""
        return bool(self.flags & FLUSH)


def read_log(path: Path) -> Iterator[Entry]:
    """The entries of a log, in their order."""
    with path.open("rb") as file:
        magic, version, count, size = struct.unpack("<4Q", file.read(32))
        if magic != MAGIC or version != 1:
            raise LogError(f"{path}: magic 0x{magic:x}, version {version}: no log of writes")
        if size < SECTOR or size % SECTOR:
            raise LogError(f"{path}: sectors of {size} bytes")
        file.seek(size)
        for number in range(count):
            head = file.read(size)
            if len(head) != size:
                raise LogError(f"{path} ends at entry {number} of {count}")
            sector, sectors, flags, length = struct.unpack("<4Q", head[:32])
            wanted = length if flags & MARK else 0 if flags & DISCARD else sectors * size
            data = file.read(wanted + (-wanted % size if flags & MARK else 0))
            if len(data) < wanted:
                raise LogError(f"{path} ends in entry {number} of {count}")
            yield Entry(sector * size // SECTOR, data[:wanted], flags)


def write_log(path: Path, entries: list[Entry]) -> None:
    """Writes a log, with sectors of 512 bytes."""
    with path.open("wb") as file:
        file.write(struct.pack("<4Q", MAGIC, 1, len(entries), SECTOR).ljust(SECTOR, b"\0"))
        for entry in entries:
            words = (entry.sector, len(entry.data) // SECTOR, entry.flags, 0)
            file.write(struct.pack("<4Q", *words).ljust(SECTOR, b"\0"))
            file.write(entry.data)


class Layout:
    """Where things are in an image."""

    def __init__(self, image: Path) -> None:
        said = run_tool("dumpe2fs", str(image))
        self.block_size = int(re.search(r"^Block size: +(\d+)", said, re.M)[1])
        self.first = int(re.search(r"^First block: +(\d+)", said, re.M)[1])
        self.places: list[tuple[int, int, str]] = [(self.first, self.first, "the superblock")]
        for group in re.split(r"^Group (?=\d)", said, flags=re.M)[1:]:
            self._add_group(group)
        shown = run_tool("debugfs", "-R", "blocks <8>", str(image))
        self.journal = {int(word): at for at, word in enumerate(shown.split())}

    def _add_group(self, text: str) -> None:
        number = int(text.split(":", 1)[0])
        patterns = {
            "block bitmap": r"Block bitmap at (\d+)",
            "inode bitmap": r"Inode bitmap at (\d+)",
            "inode table": r"Inode table at (\d+)-(\d+)",
            "descriptors": r"Group descriptors at (\d+)-(\d+)",
            "copy of the superblock": r"Backup superblock at (\d+)",
        }
        for name, pattern in patterns.items():
            match = re.search(pattern, text)
            if match:
                first, last = int(match[1]), int(match[match.lastindex])
                self.places.append((first, last, f"the {name} of group {number}"))

    def name(self, entry: Entry) -> str:
        """What an entry is, in words."""
        if not entry.data:
            return "flush"
        block = entry.sector * SECTOR // self.block_size
        length = -(-len(entry.data) // self.block_size)
        where = f"block {block}" if length == 1 else f"blocks {block}-{block + length - 1}"
        return f"{self.kind(block, entry.data)} ({where})"

    def kind(self, block: int, data: bytes) -> str:
        """What is in a block, by its place or by its contents."""
        if block in self.journal:
            return f"journal: {self.journal_kind(data)}"
        for first, last, name in self.places:
            if first <= block <= last:
                return name
        return kind_by_contents(data)

    def journal_kind(self, data: bytes) -> str:
        """What a block of the journal is."""
        magic, kind, transaction = struct.unpack(">3I", data[:12])
        if magic != JOURNAL_MAGIC or kind not in JOURNAL_KINDS:
            return "a copy of a block"
        name = JOURNAL_KINDS[kind]
        return name if name == "superblock" else f"{name} of transaction {transaction}"


def kind_by_contents(data: bytes) -> str:
    """A guess at a block that has no fixed place."""
    at, seed = struct.unpack("<2I", data[:8])
    nothing = not any(data)
    if nothing:
        return "zeros"
    if data[:2] == b"\x0a\xf3":
        return "an extent block"
    if struct.unpack("<2I", data[8:16]) == (at + 1, seed):
        return f"data of write {seed}, from byte {(at - 1) * 8} on"
    (length,) = struct.unpack("<H", data[4:6])
    if 8 <= length <= len(data) and length % 4 == 0:
        return "a directory block"
    return "a block of unknown kind"

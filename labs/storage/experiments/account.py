"""Where the blocks of an ext2, ext3 or ext4 go, to the block: the account of X14, of any image.

    python -m labs.storage.experiments.account disk.img

Two independent halves must meet: what the superblock's numbers say mkfs takes (inode tables,
bitmaps, superblocks, descriptors), and what the inodes hold (i_blocks of each one in use). Both,
and the free blocks, are all blocks. Formats: docs.kernel.org, ext4 Data Structures.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from labs.tools.machine.command import in_a_line

SUPERBLOCK = 1024
MAGIC = 0xEF53
SPARSE_SUPER, HUGE_FILE, HAS_64BIT, META_BG, BIGALLOC = 0x1, 0x8, 0x80, 0x10, 0x200
HUGE_INODE = 0x40000
UNUSED_INODES = 0x1  # bg_flags: the inode table has not been used
NAMES = {2: "root directory", 7: "resize inode: reserved descriptors", 8: "journal",
         11: "lost+found"}  # fmt: skip
FILES = "other files and directories"


class AccountError(ValueError):
    """The image cannot be read; one line."""


@dataclass(frozen=True)
class Account:
    """The lines of the account, in blocks, and what df makes of them."""

    block_bytes: int
    blocks: int
    free: int
    reserved: int
    overhead: dict[str, int]
    held: dict[str, int]

    @property
    def statfs_overhead(self) -> int:
        """What statfs takes off the total."""
        return sum(self.overhead.values())

    @property
    def used(self) -> int:
        """df's used blocks."""
        return self.blocks - self.statfs_overhead - self.free

    @property
    def available(self) -> int:
        """df's available blocks."""
        return max(0, self.free - self.reserved)

    @property
    def missing(self) -> int:
        """What no line explains; 0 for a sound file system."""
        return self.used - sum(self.held.values())


def has_copy(group: int) -> bool:
    """With sparse_super: whether a group has a copy of the superblock: 0, 1, powers of 3, 5, 7."""

    def is_power(base: int) -> bool:
        value = base
        while value < group:
            value *= base
        return value == group

    return group < 2 or any(is_power(base) for base in (3, 5, 7))


@dataclass(frozen=True)
class Super:
    """The superblock's fields that count."""

    data: bytes

    def u16(self, at: int) -> int:
        """A field."""
        return int(struct.unpack_from("<H", self.data, at)[0])

    def u32(self, at: int) -> int:
        """A field."""
        return int(struct.unpack_from("<I", self.data, at)[0])

    def wide(self, low: int, high: int) -> int:
        """A field whose upper half counts with 64bit only."""
        return self.u32(low) | (self.u32(high) << 32 if self.u32(0x60) & HAS_64BIT else 0)


def account_of(path: Path) -> Account:
    """The account of an image. Raises AccountError."""
    with path.open("rb") as file:
        file.seek(SUPERBLOCK)
        sb = Super(file.read(1024))
        if len(sb.data) < 1024 or sb.u16(0x38) != MAGIC or sb.u32(0x18) > 6 or not sb.u32(0x20):
            raise AccountError(f"{path} is not ext2, ext3 or ext4")
        if sb.u32(0x60) & META_BG or sb.u32(0x64) & BIGALLOC:
            raise AccountError(f"{path} has meta_bg or bigalloc, which this account does not know")
        block = 1024 << sb.u32(0x18)
        blocks, first = sb.wide(0x04, 0x150), sb.u32(0x14)
        groups = -(-(blocks - first) // sb.u32(0x20))
        width = max(32, sb.u16(0xFE)) if sb.u32(0x60) & HAS_64BIT else 32
        inode_bytes = sb.u16(0x58) or 128
        copies = sum(not sb.u32(0x64) & SPARSE_SUPER or has_copy(group) for group in range(groups))
        descriptors = -(-groups * width // block)
        return Account(
            block_bytes=block,
            blocks=blocks,
            free=sb.wide(0x0C, 0x158),
            reserved=sb.wide(0x08, 0x154),
            overhead={
                "inode tables": groups * -(-sb.u32(0x28) * inode_bytes // block),
                "bitmaps": 2 * groups,
                "superblocks and descriptors": copies * (1 + descriptors)
                + (first if block == 1024 else 0),
            },
            held=held(file, sb, groups, block, width, inode_bytes),
        )


def held(
    file: IO[bytes], sb: Super, groups: int, block: int, width: int, inode_bytes: int
) -> dict[str, int]:
    """The blocks that inodes hold, by name."""
    lines = dict.fromkeys([*NAMES.values(), FILES], 0)
    for number, inode in inodes(file, sb, groups, block, width, inode_bytes):
        units = struct.unpack_from("<I", inode, 0x1C)[0]
        units |= struct.unpack_from("<H", inode, 0x74)[0] << 32
        flags = struct.unpack_from("<I", inode, 0x20)[0]
        lines[NAMES.get(number, FILES)] += units if flags & HUGE_INODE else units * 512 // block
    return lines


def inodes(
    file: IO[bytes], sb: Super, groups: int, block: int, width: int, inode_bytes: int
) -> Iterator[tuple[int, bytes]]:
    """The inodes in use with their numbers, from the parts of the tables that are in use."""
    file.seek((sb.u32(0x14) + 1) * block)
    table = file.read(groups * width)
    per_group, has_flags = sb.u32(0x28), sb.u32(0x64) & 0x410  # uninit_bg or metadata_csum
    for group in range(groups):
        each = table[group * width : (group + 1) * width]
        place = struct.unpack_from("<I", each, 8)[0]
        place |= struct.unpack_from("<I", each, 0x28)[0] << 32 if width > 32 else 0
        flags, unused = (
            struct.unpack_from("<H", each, 0x12)[0],
            struct.unpack_from("<H", each, 0x1C)[0],
        )
        count = per_group - unused if has_flags else per_group
        if (has_flags and flags & UNUSED_INODES) or is_free(each, per_group, group):
            continue
        file.seek(place * block)
        data = file.read(count * inode_bytes)
        for index in range(len(data) // inode_bytes):
            inode = data[index * inode_bytes : (index + 1) * inode_bytes]
            number, links = group * per_group + index + 1, struct.unpack_from("<H", inode, 0x1A)[0]
            if links or number in NAMES:
                yield number, inode


def is_free(descriptor: bytes, per_group: int, group: int) -> bool:
    """Whether no inode of a group is in use."""
    return group > 0 and int(struct.unpack_from("<H", descriptor, 0x0E)[0]) == per_group & 0xFFFF


def rows(account: Account) -> list[tuple[str, int]]:
    """The account as a table."""
    return [
        *account.overhead.items(),
        ("= taken off by statfs", account.statfs_overhead),
        *((name, count) for name, count in account.held.items() if count),
        ("= df's used", account.used),
        ("reserved for root", min(account.reserved, account.free)),
        ("available", account.available),
        ("all blocks", account.blocks),
        ("unexplained", account.missing),
    ]


def main() -> int:
    """Prints the account of an image; status 1 when it does not close."""
    try:
        account = account_of(Path(sys.argv[1]))
    except (IndexError, OSError, AccountError) as error:
        print(f"account: {error if sys.argv[1:] else 'say which image'}", file=sys.stderr)
        return 1
    for name, count in rows(account):
        print(f"{name:<40}{count:>14,}")
    return 1 if account.missing else 0


if __name__ == "__main__":
    sys.exit(in_a_line("account", main))

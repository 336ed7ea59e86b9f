"""Checksums of an image with metadata_csum, put right after its structures were damaged.

A checksum that is wrong hides the damage: the kernel stops there. So what was damaged can get the
checksum that belongs to it, as if a bug had written it. Which blocks have one is read from the
image before it was damaged.
"""

from __future__ import annotations

import struct
from functools import cache

from tests.host.ext.images import SUPER
from tests.storage.journal import crc32c

ALL = 0xFFFFFFFF
TAIL = 12  # bytes at the end of a block of names
NODE, NAMES, VALUES = range(3)  # kinds of blocks that an inode has


def word(data: bytes, at: int) -> int:
    return struct.unpack_from("<I", data, at)[0]


def half(data: bytes, at: int) -> int:
    return struct.unpack_from("<H", data, at)[0]


def descriptor_at(data: bytes, group: int) -> int:
    """Where a group's descriptor is; with meta_bg at the beginning of those that it describes."""
    size, first = 1024 << word(data, SUPER + 24), word(data, SUPER + 20)
    length = half(data, SUPER + 254) if word(data, SUPER + 96) & 0x80 else 32
    block, place = divmod(group, size // length)
    if not word(data, SUPER + 96) & 0x10 or block < max(1, word(data, SUPER + 0x104)):
        return (first + 1 + block) * size + place * length
    start = first + block * (size // length) * word(data, SUPER + 32)
    return (start + (not word(data, SUPER + 100) & 1)) * size + place * length


def crc16(crc: int, data: bytes) -> int:
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xA001 if crc & 1 else 0)
    return crc


class Layout:
    """Where an image has what."""

    def __init__(self, data: bytes) -> None:
        self.size = 1024 << word(data, SUPER + 24)
        self.first, self.per_group = word(data, SUPER + 20), word(data, SUPER + 40)
        self.blocks_per_group = word(data, SUPER + 32)
        self.inode_size = half(data, SUPER + 88)
        self.descriptor = half(data, SUPER + 254) if word(data, SUPER + 96) & 0x80 else 32
        self.places = data
        self.groups = -(-(word(data, SUPER + 4) - self.first) // self.blocks_per_group)
        self.tables = [word(data, self.group(each) + 8) for each in range(self.groups)]
        self.owned: dict[int, tuple[int, int]] = {}
        """A block, its kind and its inode."""
        for number in range(1, self.groups * self.per_group + 1):
            at = self.inode(number)
            mode = half(data, at)
            if half(data, at + 26) == 0:
                continue
            if word(data, at + 0x68):
                self.owned[word(data, at + 0x68)] = VALUES, number
            if word(data, at + 32) & 0x80000:
                self.follow(data, at + 0x28, number, mode >> 12 == 4)

    def group(self, index: int) -> int:
        return descriptor_at(self.places, index)

    def inode(self, number: int) -> int:
        group, index = divmod(number - 1, self.per_group)
        return self.tables[group] * self.size + index * self.inode_size

    def follow(self, data: bytes, at: int, number: int, names: bool) -> None:
        """The blocks of a tree of extents."""
        for entry in range(at + 12, at + 12 + 12 * half(data, at + 2), 12):
            if half(data, at + 6):
                block = word(data, entry + 4)
                self.owned[block] = NODE, number
                self.follow(data, block * self.size, number, names)
            elif names:
                for block in range(half(data, entry + 4)):
                    self.owned[word(data, entry + 8) + block] = NAMES, number


@cache
def layout_of(data: bytes) -> Layout:
    return Layout(data)


class Sums:
    """The checksums of an image, computed again."""

    def __init__(self, before: bytes, data: bytearray) -> None:
        self.layout, self.before, self.data = layout_of(before), before, data
        self.seed = crc32c(ALL, bytes(data[SUPER + 0x68 : SUPER + 0x78]))
        if word(before, SUPER + 96) & 0x2000:
            self.seed = word(data, SUPER + 0x270)

    def put(self, at: int, layout: str, value: int) -> None:
        struct.pack_into(
            "<" + layout, self.data, at, value & (1 << 8 * struct.calcsize(layout)) - 1
        )

    def repair(self) -> None:
        """All that changed: what others sum up comes first."""
        layout, size = self.layout, self.layout.size
        changed = [
            block for block in range(len(self.data) // size)
            if self.data[block * size : (block + 1) * size]
            != self.before[block * size : (block + 1) * size]
        ]  # fmt: skip
        for block in changed:
            if block in layout.owned:
                self.owned(block, *layout.owned[block])
        for group, table in enumerate(layout.tables):
            length = layout.per_group * layout.inode_size // size
            if any(table <= block < table + length for block in changed):
                self.inodes(group)
        for group in range(layout.groups):
            self.group(group)
        self.put(SUPER + 1020, "I", crc32c(ALL, bytes(self.data[SUPER : SUPER + 1020])))

    def of_inode(self, number: int) -> int:
        at = self.layout.inode(number)
        generation = bytes(self.data[at + 0x64 : at + 0x68])
        return crc32c(crc32c(self.seed, struct.pack("<I", number)), generation)

    def owned(self, block: int, kind: int, number: int) -> None:
        size, start = self.layout.size, block * self.layout.size
        data = bytes(self.data[start : start + size])
        if kind == NODE:
            end = min(12 + 12 * half(data, 4), size - 4)
            self.put(start + end, "I", crc32c(self.of_inode(number), data[:end]))
        elif kind == VALUES:
            sum_ = crc32c(self.seed, struct.pack("<Q", block))
            data = data[:16] + bytes(4) + data[20:]
            self.put(start + 16, "I", crc32c(sum_, data))
        elif data[size - 5] == 0xDE:
            sum_ = crc32c(self.of_inode(number), data[: size - TAIL])
            self.put(start + size - 4, "I", sum_)
        else:
            self.node_of_names(start, data, number)

    def node_of_names(self, start: int, data: bytes, number: int) -> None:
        at = 8 if half(data, 4) == len(data) else 32
        limit, count = half(data, at), half(data, at + 2)
        tail = at + 8 * limit
        if tail + 8 > len(data) or count > limit:
            return
        sum_ = crc32c(self.of_inode(number), data[: at + 8 * count])
        self.put(start + tail + 4, "I", crc32c(sum_, data[tail : tail + 4] + bytes(4)))

    def inodes(self, group: int) -> None:
        size = self.layout.inode_size
        for index in range(self.layout.per_group):
            number = group * self.layout.per_group + index + 1
            at = self.layout.inode(number)
            data = self.data[at : at + size]
            if data == self.before[at : at + size]:
                continue
            wide = size > 128 and half(data, 128) >= 4
            data[0x7C:0x7E] = bytes(2)
            if wide:
                data[0x82:0x84] = bytes(2)
            sum_ = crc32c(self.of_inode(number), bytes(data))
            self.put(at + 0x7C, "H", sum_)
            if wide:
                self.put(at + 0x82, "H", sum_ >> 16)

    def group(self, group: int) -> None:
        at, layout = self.layout.group(group), self.layout
        wide = layout.descriptor > 32
        for field, bits, low, high in (
            (0, layout.blocks_per_group, 0x18, 0x38),
            (4, layout.per_group, 0x1A, 0x3A),
        ):
            start = word(self.data, at + field) * layout.size
            sum_ = crc32c(self.seed, bytes(self.data[start : start + bits // 8]))
            if half(self.data, at + 0x12) & (2 if field == 0 else 1):
                continue
            self.put(at + low, "H", sum_)
            if wide:
                self.put(at + high, "H", sum_ >> 16)
        data = self.data[at : at + layout.descriptor]
        data[0x1E:0x20] = bytes(2)
        sum_ = crc32c(crc32c(self.seed, struct.pack("<I", group)), bytes(data))
        self.put(at + 0x1E, "H", sum_)


def repair(before: bytes, data: bytearray) -> None:
    """Puts the checksums right that belong to what is different now, if the image has any."""
    if word(before, SUPER + 100) & 0x410 == 0x10:
        layout = layout_of(before)
        for group in range(layout.groups):
            at = layout.group(group)
            sums = bytes(data[SUPER + 0x68 : SUPER + 0x78]) + struct.pack("<I", group)
            sums += bytes(data[at : at + 0x1E]) + bytes(data[at + 32 : at + layout.descriptor])
            struct.pack_into("<H", data, at + 0x1E, crc16(0xFFFF, sums))
    if word(before, SUPER + 100) & 0x400:
        Sums(before, data).repair()

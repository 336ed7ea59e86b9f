"""What a Multiboot loader says about memory: made to order in the guest's memory, and read back."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from tests.lesson1.support import KERNEL_BASE, MULTIBOOT_LOADER
from tests.support.remote import SCRATCH, Guest
from tests.support.told import expect, fail

MEMORY, MAP = 1 << 0, 1 << 6  # flags: which members are valid
FLAGS_SIZE, MEM_UPPER, MMAP_LENGTH, MMAP_ADDRESS = 4, 8, 44, 48  # offsets of members
INFORMATION_SIZE = 88
INFORMATION, ENTRIES = SCRATCH + 0x1000, SCRATCH + 0x2000  # as the kernel sees them

# struct boot_info of kernel/report/boot_info.h.
COUNT_OFFSET, RANGES_OFFSET = 32, 32 + 4
RANGE_SIZE, MOST_RANGES = 20, 64
AVAILABLE = 1
ENTRY = struct.Struct("<IQQI")  # size, base, length, type
MIB = 1 << 20


@dataclass(frozen=True)
class Range:
    """A range of physical memory, in bytes; and what it is."""

    base: int
    length: int
    type: int = AVAILABLE


@dataclass(frozen=True)
class Entry:
    """An entry of a loader's map. size: what it says of its own length; extra: bytes that it has
    beyond what everybody knows."""

    range: Range
    extra: int = 0
    size: int | None = None

    def encode(self) -> bytes:
        """Its bytes. The extra ones look like a range of memory, to who takes them for one."""
        size = 20 + self.extra if self.size is None else self.size
        known = ENTRY.pack(size, self.range.base, self.range.length, self.range.type)
        return known + (b"\x01\0\0\0" * self.extra)[: self.extra]


def tell(
    guest: Guest,
    entries: Sequence[Entry] | None,
    mem_upper: int | None = None,
    cut: int = 0,
    length: int | None = None,
) -> int | str:
    """Has boot_info_read read a map (None: the loader has none), or mem_upper in KiB, at kmain's
    beginning. Without its flag mem_upper has what was in memory. `cut` bytes of the map's end are
    not counted, or it has another `length`. Returns "panic" when it came to one."""
    data = b"".join(entry.encode() for entry in entries or ())
    flags = (MAP if entries is not None else 0) | (MEMORY if mem_upper is not None else 0)
    counted = len(data) - cut if length is None else length
    information = bytearray(b"\xa5" * INFORMATION_SIZE)
    upper = 0xA5A5 if mem_upper is None else mem_upper
    struct.pack_into("<III", information, 0, flags, 640, upper)
    struct.pack_into("<II", information, MMAP_LENGTH, counted, ENTRIES - KERNEL_BASE)
    guest.write(ENTRIES, data + b"\x01\0\0\0" * 64)
    guest.write(INFORMATION, bytes(information))
    guest.write(guest.address("boot_info"), bytes(RANGES_OFFSET))
    arguments = (MULTIBOOT_LOADER, INFORMATION - KERNEL_BASE)
    result = guest.call("boot_info_read", *arguments, stop_at=("panic",))
    return "panic" if result is None else result


def told(guest: Guest) -> list[Range]:
    """The ranges in boot_info."""
    start = guest.address("boot_info")
    count = guest.read_word(start + COUNT_OFFSET)
    assert count <= MOST_RANGES, f"boot_info.range_count is {count}"
    data = guest.read(start + RANGES_OFFSET, count * RANGE_SIZE)
    return [Range(*fields) for fields in struct.iter_unpack("<QQI", data)]


def require_told(guest: Guest, expected: Sequence[Range]) -> None:
    """The ranges in boot_info are these, in this order."""
    found = told(guest)
    for index, (one, other) in enumerate(zip(found, expected, strict=False)):
        expect(f"boot_info.ranges[{index}]", words(one), words(other))
    expect("ranges in boot_info", len(found), len(expected))


def require_without_map(guest: Guest, upper: int) -> None:
    """Of a loader that gives no map, and mem_upper in KiB, boot_info has one range from 1 MiB on.
    What is below that may be there, too."""
    what = f"boot_info, when the loader gives no map, and {upper} KiB in mem_upper"
    if tell(guest, None, mem_upper=upper) == "panic":
        fail(f"{what}: the kernel panics")
    found = ", ".join(words(each) for each in told(guest) if each.base >= MIB)
    expect(what, found or "none", words(Range(MIB, upper * 1024)))


def words(each: Range) -> str:
    """A range as a person reads it."""
    return f"base {each.base:#x}, length {each.length:#x}, type {each.type}"


def require_usable(guest: Guest, expected: int) -> None:
    """memory_map_usable says this many KiB of the ranges in boot_info."""
    guest.call("memory_map_initialize")
    found = guest.call64("memory_map_usable")
    expect("memory_map_usable, in KiB,", found, expected)


def loader_ranges(guest: Guest, information: int, base: int) -> list[Range]:
    """The map of the real loader, whose information is at this physical address; physical
    memory is seen from `base` on."""
    flags = guest.read_word(base + information)
    assert flags & MAP, "this loader gives no map"
    length = guest.read_word(base + information + MMAP_LENGTH)
    return walked(guest.read(base + guest.read_word(base + information + MMAP_ADDRESS), length))


def walked(data: bytes) -> list[Range]:
    """The ranges of a map, by what each entry says of its own size; Python's sums do not wrap."""
    at, ranges = 0, []
    while at + ENTRY.size <= len(data):
        size, *fields = ENTRY.unpack_from(data, at)
        ranges.append(Range(*fields))
        at += size + 4
    return ranges


def kibibytes(ranges: Sequence[Range]) -> int:
    """The memory in ranges that do not overlap."""
    return sum(each.length for each in ranges if each.type == AVAILABLE) // 1024

"""Exercise S10 from outside: the drive that user/account.c reads is here
(tests/storage/host/account.c), and so is another account of it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from errno import EINVAL
from pathlib import Path

from labs.tools.grading.lab import PROGRAM_STOPPED, ROOT, Lab
from tests.storage.mapping import SANITIZER, cause_in
from tests.support.told import expect, fail, require

SOURCES = ("user/account.c", "kernel/lib/string.c")
HOST = ROOT / "tests/storage/host"
DRIVERS = [HOST / "account.c", HOST / "asked.c"]
SUPER_AT = 1024
MOST = 1 << 20  # bytes of a read
READS = 1000
LINE = re.compile(r"^(\S.{38} ) +(\d+)$", re.MULTILINE)
COUNTED = ("inode tables", "bitmaps", "superblocks and descriptors", "= overhead", "journal",
           "room for descriptors", "directories and files", "= used", "free", "reserved for root",
           "available")  # fmt: skip

# Bits of the three words of features.
SPARSE_SUPER2 = 0x200
JOURNAL_DEVICE, META_BG, HAS_64BIT = 0x8, 0x10, 0x80
SPARSE_SUPER, HUGE_FILE, BIGALLOC = 0x1, 0x8, 0x200
HUGE_INODE = 0x40000

# Where a field of the superblock is, and how it is packed.
FIELDS = {
    "inodes": (0x00, "I"), "blocks": (0x04, "I"), "reserved": (0x08, "I"), "free": (0x0C, "I"),
    "first": (0x14, "I"), "log_block": (0x18, "I"), "blocks_per_group": (0x20, "I"),
    "inodes_per_group": (0x28, "I"), "magic": (0x38, "H"), "revision": (0x4C, "I"),
    "inode_size": (0x58, "H"), "compat": (0x5C, "I"), "incompat": (0x60, "I"),
    "ro_compat": (0x64, "I"), "room": (0xCE, "H"), "descriptor_size": (0xFE, "H"),
    "first_meta_bg": (0x104, "I"), "blocks_high": (0x150, "I"), "reserved_high": (0x154, "I"),
    "free_high": (0x158, "I"), "backup_1": (0x24C, "I"), "backup_2": (0x250, "I"),
}  # fmt: skip

programs: dict[Path, Path] = {}


class Image:
    """A drive. size: bytes; parts: those that are not zeros, by offset."""

    def __init__(self, size: int, parts: Mapping[int, bytes]) -> None:
        self.size, self.parts = size, parts

    def read(self, offset: int, length: int) -> bytes:
        """What is there; less at its end."""
        found = bytearray(max(0, min(length, self.size - offset)))
        for at, part in self.parts.items():
            first, last = max(at, offset), min(at + len(part), offset + len(found))
            if first < last:
                found[first - offset : last - offset] = part[first - at : last - at]
        return bytes(found)


class FileImage(Image):
    """A drive that is a file here."""

    def __init__(self, path: Path) -> None:
        super().__init__(path.stat().st_size, {})
        self._path = path

    def read(self, offset: int, length: int) -> bytes:
        with self._path.open("rb") as file:
            file.seek(offset)
            return file.read(length)


@dataclass(frozen=True)
class Layout:
    """A file system as numbers. held: units of 512 bytes of inodes 7 and 8, or blocks, with
    HUGE_INODE among the flags of inode 8."""

    blocks: int
    block: int = 4096
    blocks_per_group: int = 32768
    inodes_per_group: int = 8192
    inode_size: int = 256
    compat: int = 0
    incompat: int = 0
    ro_compat: int = SPARSE_SUPER
    descriptor_size: int = 64
    free: int = 0
    reserved: int = 0
    first_meta_bg: int = 0
    backups: tuple[int, int] = (0, 0)
    resize_units: int = 0
    journal_units: int = 0
    journal_flags: int = 0
    table: int = 1027  # of group 0
    revision: int = 1
    changed: Mapping[str, int] = field(default_factory=dict)  # what the superblock has instead

    @property
    def first(self) -> int:
        """The first block of group 0."""
        return int(self.block == 1024)

    @property
    def groups(self) -> int:
        """How many there are."""
        return -(-(self.blocks - self.first) // self.blocks_per_group)

    @property
    def width(self) -> int:
        """Bytes of a descriptor."""
        return self.descriptor_size if self.incompat & HAS_64BIT else 32

    def super(self) -> bytes:
        """The superblock."""
        values = {
            "inodes": self.groups * self.inodes_per_group & 0xFFFFFFFF,
            "blocks": self.blocks & 0xFFFFFFFF, "blocks_high": self.blocks >> 32,
            "reserved": self.reserved & 0xFFFFFFFF, "reserved_high": self.reserved >> 32,
            "free": self.free & 0xFFFFFFFF, "free_high": self.free >> 32,
            "first": self.first, "log_block": self.block.bit_length() - 11,
            "blocks_per_group": self.blocks_per_group, "inodes_per_group": self.inodes_per_group,
            "magic": 0xEF53, "revision": self.revision, "inode_size": self.inode_size,
            "compat": self.compat, "incompat": self.incompat, "ro_compat": self.ro_compat,
            "descriptor_size": self.descriptor_size, "first_meta_bg": self.first_meta_bg,
            "backup_1": self.backups[0], "backup_2": self.backups[1],
        }  # fmt: skip
        data = bytearray(1024)
        for name, value in (values | dict(self.changed)).items():
            at, form = FIELDS[name]
            struct.pack_into(f"<{form}", data, at, value)
        return bytes(data)

    def image(self) -> Image:
        """A drive with it, as far as an account looks at it."""
        descriptor = bytearray(64)
        struct.pack_into("<I", descriptor, 8, self.table & 0xFFFFFFFF)
        if self.width > 32:
            struct.pack_into("<I", descriptor, 0x28, self.table >> 32)
        parts = {
            SUPER_AT: self.super(),
            (self.first + 1) * self.block: bytes(descriptor[: self.width]),
        }
        inode = self.inode_size if self.revision else 128
        for number, units, flags in (
            (7, self.resize_units, 0),
            (8, self.journal_units, self.journal_flags),
        ):
            data = bytearray(128)
            struct.pack_into("<II", data, 0x1C, units & 0xFFFFFFFF, flags)
            struct.pack_into("<H", data, 0x74, units >> 32)
            parts[self.table * self.block + (number - 1) * inode] = bytes(data)
        return Image(self.blocks * self.block, parts)

    def has_copy(self, group: int) -> bool:
        """Whether a group has a superblock."""
        if self.compat & SPARSE_SUPER2:
            return group in (0, *self.backups)
        if not self.ro_compat & SPARSE_SUPER or group < 2:
            return True
        for base in (3, 5, 7):
            rest = group
            while rest % base == 0:
                rest //= base
            if rest == 1:
                return True
        return False

    def descriptors_in(self, group: int) -> int:
        """Blocks of descriptors in a group."""
        each = self.block // self.width
        if self.incompat & META_BG and group // each >= self.first_meta_bg:
            return int(group % each in (0, 1, each - 1))
        many = self.first_meta_bg if self.incompat & META_BG else -(-self.groups // each)
        return many if self.has_copy(group) else 0

    def account(self) -> dict[str, int]:
        """What must be said."""
        inode = self.inode_size if self.revision else 128
        lines = {
            "inode tables": self.groups * -(-self.inodes_per_group * inode // self.block),
            "bitmaps": 2 * self.groups,
            "superblocks and descriptors": self.first
            + sum(
                self.has_copy(group) + self.descriptors_in(group) for group in range(self.groups)
            ),
        }
        lines["= overhead"] = sum(lines.values())
        unit = 1 if self.journal_flags & HUGE_INODE else self.block // 512
        lines["journal"] = self.journal_units // unit
        lines["room for descriptors"] = self.resize_units // (self.block // 512)
        lines["= used"] = self.blocks - self.free - lines["= overhead"]
        lines["directories and files"] = (
            lines["= used"] - lines["journal"] - lines["room for descriptors"]
        )
        lines["free"], lines["reserved for root"] = self.free, self.reserved
        lines["available"] = max(0, self.free - self.reserved)
        return lines

    def __str__(self) -> str:
        names = [
            *(["sparse_super"] if self.ro_compat & SPARSE_SUPER else []),
            *(["sparse_super2"] if self.compat & SPARSE_SUPER2 else []),
            *(["meta_bg"] if self.incompat & META_BG else []),
            *(["64bit"] if self.incompat & HAS_64BIT else []),
        ]
        return (
            f"{self.blocks:,} blocks of {self.block} bytes in {self.groups:,} groups"
            f" ({', '.join(names) or 'no feature'})"
        )


# The file system of 2010, and the same with -m 0, ^resize_inode, -N 16 and -J size=4.
SHEET = Layout(
    19_663_560, free=19_308_514, reserved=983_178, resize_units=13_248 * 8,
    journal_units=32_801 * 8,
)  # fmt: skip
TUNED = replace(
    SHEET, inodes_per_group=16, free=19_660_649, reserved=0, resize_units=0, journal_units=1025 * 8
)


@dataclass(frozen=True)
class Said:
    """What the program printed."""

    status: int
    text: str
    errors: str
    reads: int


def account(lab: Lab, image: Image) -> Said:
    """Runs the tree's program on a drive. It must end by itself."""
    if lab.root not in programs or not programs[lab.root].exists():
        programs[lab.root] = lab.host(SOURCES, DRIVERS, "account")
    reads = 0

    def answer(question: bytes) -> bytes:
        nonlocal reads
        reads += 1
        words = question.decode(errors="replace").split()
        numbers = [int(word) for word in words[1:] if re.fullmatch(r"-?\d{1,20}", word)]
        if words[:1] != ["r"] or len(numbers) != 2 or numbers[0] < 0 or not 0 < numbers[1] <= MOST:
            return f"{-EINVAL} .\n".encode()
        data = image.read(*numbers) if reads < READS else b""
        return f"{len(data)} {data.hex()}.\n".encode()

    done = lab.converse(programs[lab.root], answer, "DRIVE")
    text, errors = (each.decode(errors="replace") for each in (done.stdout, done.stderr))
    lab.judging(0)
    stopped = done.returncode in PROGRAM_STOPPED or done.returncode not in (0, 1)
    if stopped or SANITIZER.search(errors) or "not written" in errors:
        fail(f"account: {cause_in(errors, done.returncode)}\n{errors[-1500:]}")
    return Said(done.returncode, text, errors, reads)


def lines_in(said: Said) -> dict[str, int]:
    """The account's lines."""
    return {name.strip(): int(value) for name, value in LINE.findall(said.text)}


def check(lab: Lab, what: object, image: Image, wanted: Mapping[str, int]) -> None:
    """The account of a drive says these lines."""
    said = account(lab, image)
    expect(f"{what}: status", said.status, 0, *said.errors.splitlines()[:2])
    found = lines_in(said)
    for name, value in wanted.items():
        expect(f"{what}: {name}", found.get(name), value)


def check_layout(lab: Lab, layout: Layout) -> None:
    """The whole account of a layout."""
    check(lab, layout, layout.image(), layout.account())


def refused(lab: Lab, what: str, image: Image) -> None:
    """The program says in one line what is wrong, and no figure."""
    said = account(lab, image)
    require(said.status == 1, f"{what}: expected an error and status 1, seen status {said.status}",
            *said.text.splitlines()[:3])  # fmt: skip
    require(said.errors.startswith("account: DRIVE "), f"{what}: expected a message of fail(), "
            f"seen {said.errors[:200]!r}")  # fmt: skip
    require(not said.text, f"{what}: it failed, and prints figures: {said.text[:200]}")

"""The journal's format for the tests of S5, written from its description: logs are made and read,
power cuts computed, and states judged here. A student's program only answers questions.

docs.kernel.org, "ext4 Data Structures and Algorithms", 3.6 Journal (jbd2). Checksums are those of
version 3, or of version 1: one of all descriptors and copies, in the commit block.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from tests.storage.drive import SECTOR, Write

MAGIC = 0xC03B3998
OTHER_MAGIC = {"no magic": bytes(4), "high magic": b"\xff\xff\xff\xff"}
DESCRIPTOR, COMMIT, SUPER, REVOKE = 1, 2, 4, 5
ESCAPED, SAME_UUID, LAST = 1, 2, 8
HAS_REVOKE, HAS_64BIT, HAS_CHECKSUMS, HAS_FAST = 0x1, 0x2, 0x10, 0x20
UUID = b"\x5a" * 16
CRC32C = 4
HAS_VERSION_1 = 0x1  # a compatible feature
CRC32, CRC32_BYTES = 1, 4
ROUND = 40  # how many transactions ago it was an earlier round of the log
ESCAPES = 7  # each seventh block of contents begins like a block of the log


class Layout(NamedTuple):
    """A disk: blocks of a file system, and after them a journal of `log` blocks. Its log begins at
    block `first` of that, and ends before the last `fast` blocks. sectors: of the device, if it is
    larger than that."""

    size: int = 1024
    blocks: int = 48
    log: int = 40
    checksums: bool = True
    log_at: int = 48
    wide: bool = False
    version_1: bool = False
    first: int = 1
    fast: int = 0
    sectors: int = 0

    @property
    def features(self) -> int:
        """Of the journal."""
        wide = HAS_64BIT if self.wide else 0
        fast = HAS_FAST if self.fast else 0
        return HAS_REVOKE | wide | fast | (HAS_CHECKSUMS if self.checksums else 0)

    @property
    def end(self) -> int:
        """Of the log: the block of the journal after its last one."""
        return self.log - self.fast

    @property
    def bytes(self) -> int:
        """Of the whole disk."""
        return (max(self.blocks, self.log_at + self.log)) * self.size


@cache
def crc_table() -> list[int]:
    """What eight steps of the division do to a byte."""
    table = []
    for byte in range(256):
        rest = byte
        for _ in range(8):
            rest = rest >> 1 ^ (0x82F63B78 if rest & 1 else 0)
        table.append(rest)
    return table


@cache
def crc32c(crc: int, data: bytes) -> int:
    """CRC-32C, bits not inverted."""
    table = crc_table()
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc


@cache
def crc32_big_endian(crc: int, data: bytes) -> int:
    """CRC-32 from the highest bit on, bits not inverted."""
    for byte in data:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ (0x04C11DB7 if crc >> 31 else 0)) & 0xFFFFFFFF
    return crc


SEED = crc32c(0xFFFFFFFF, UUID)


def contents(number: int, size: int = 1024) -> bytes:
    """What a block with this number holds. Each seventh must be escaped in a log."""
    word = struct.pack("<I", number)
    first = struct.pack(">I", MAGIC) if number % ESCAPES == 0 else word
    return first + word * (size // 4 - 1)


# ---- making logs --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Transaction:
    """Blocks with their new contents, and revoked blocks. `damage`: what is wrong with it in the
    log: "copy", "descriptor", "commit" (a checksum), "no checksum", "no magic", "high magic" (more
    than the journal's), "no commit", "old commit", "old revoke" (of an earlier round). kind: of a
    block that it has before its commit block, and that no transaction should have; damage "copies":
    a tag is in it, and a copy follows. skipped: how many numbers are missing before its own."""

    blocks: dict[int, bytes]
    revoked: tuple[int, ...] = ()
    damage: str = ""
    kind: int | None = None
    skipped: int = 0


def header(kind: int, sequence: int) -> bytes:
    """How each block of the log begins that is no copy."""
    return struct.pack(">III", MAGIC, kind, sequence)


def super_block(layout: Layout, start: int, sequence: int) -> bytes:
    """The journal's block 0: the log begins at `start` (0: is empty) with a transaction."""
    compatible = HAS_VERSION_1 if layout.version_1 else 0
    place = (layout.first, sequence, start)
    fields = (layout.size, layout.log, *place, 0, compatible, layout.features, 0)
    block = bytearray(header(SUPER, 0) + struct.pack(">9I", *fields))
    block += UUID + struct.pack(">I", 1)
    block += bytes(layout.size - len(block))
    block[0x50] = CRC32C
    block[0x54:0x58] = struct.pack(">I", layout.fast)
    if layout.checksums:
        block[0xFC:0x100] = struct.pack(">I", crc32c(0xFFFFFFFF, bytes(block[:1024])))
    return bytes(block)


def sealed(layout: Layout, block: bytes, at: int) -> bytes:
    """A block of the log with its checksum at a place, where there was 0."""
    block = block.ljust(layout.size, b"\0")
    if not layout.checksums:
        return block
    return block[:at] + struct.pack(">I", crc32c(SEED, block)) + block[at + 4 :]


def transaction_blocks(layout: Layout, each: Transaction, sequence: int) -> list[bytes]:
    """The blocks of the log that a transaction takes."""
    end = layout.size - 4
    blocks: list[bytes] = []
    if each.revoked:
        size = "Q" if layout.wide else "I"
        numbers = struct.pack(f">{len(each.revoked)}{size}", *each.revoked)
        number = sequence - ROUND * (each.damage == "old revoke")
        text = header(REVOKE, number) + struct.pack(">I", 16 + len(numbers)) + numbers
        blocks.append(sealed(layout, text, end))
    tags, copies, flags = b"", [], 0
    for index, (number, data) in enumerate(each.blocks.items()):
        last = LAST if index + 1 == len(each.blocks) else 0
        escaped = ESCAPED if data[:4] == struct.pack(">I", MAGIC) else 0
        copy = bytes(4) + data[4:] if escaped else data
        copies.append(copy)
        tags += tag(layout, number, flags | last | escaped, copy, sequence)
        tags += b"" if flags else UUID
        flags = SAME_UUID
    if tags:
        blocks.append(sealed(layout, header(DESCRIPTOR, sequence) + tags, end))
    place = len(blocks) - 1
    blocks += copies
    commit = sealed(layout, header(COMMIT, sequence - ROUND * (each.damage == "old commit")), 16)
    if layout.version_1 and each.damage != "no checksum":
        sums = b"".join(blocks[place:] if tags else [])
        crc = crc32_big_endian(0xFFFFFFFF, sums)
        commit = commit[:12] + struct.pack(">BBHI", CRC32, CRC32_BYTES, 0, crc) + commit[20:]
    if each.damage == "copy":
        blocks[-1] = blocks[-1][:100] + b"torn" + blocks[-1][104:]
    elif each.damage == "descriptor":
        blocks[place] = blocks[place][:900] + b"torn" + blocks[place][904:]
    elif each.damage in OTHER_MAGIC:
        commit = sealed(layout, OTHER_MAGIC[each.damage] + header(COMMIT, sequence)[4:], 16)
    elif each.damage == "commit":
        commit = commit[:600] + b"torn" + commit[604:]
    if each.kind is not None:
        copies = [contents(9, layout.size)] if each.damage == "copies" else []
        tags = [tag(layout, 40, LAST, copy, sequence) + UUID for copy in copies]
        text = header(each.kind, sequence) + b"".join(tags)
        blocks += [sealed(layout, text, end), *copies]
    return blocks + ([] if each.damage == "no commit" else [commit])


def tag(layout: Layout, number: int, flags: int, copy: bytes, sequence: int) -> bytes:
    """A tag of a descriptor, without a UUID."""
    if layout.checksums:
        crc = crc32c(SEED, struct.pack(">I", sequence) + copy)
        return struct.pack(">IIII", number & 0xFFFFFFFF, flags, number >> 32, crc)
    return struct.pack(">IHH", number, 0, flags)


def disk_with(
    layout: Layout,
    transactions: Sequence[Transaction],
    start: int = 0,
    sequence: int = 100,
    older: bytes = b"",
) -> bytes:
    """A disk on which these transactions are in the log from `start` on (0: from its first block
    on). `older`: what fills the rest of the log."""
    start = start or layout.first
    image = bytearray(
        b"".join(contents(1000 + block, layout.size) for block in range(layout.blocks))
    )
    image = image.ljust(layout.bytes, b"\0")
    for index in range(layout.first, layout.end if older else layout.first):
        put(image, layout, layout.log_at + index, older)
    put(image, layout, layout.log_at, super_block(layout, start, sequence))
    at = start
    for number, each in enumerate(transactions, sequence):
        for block in transaction_blocks(layout, each, number + each.skipped & 0xFFFFFFFF):
            put(image, layout, layout.log_at + at, block)
            at = at + 1 if at + 1 < layout.end else layout.first
    return bytes(image)


def put(image: bytearray, layout: Layout, number: int, block: bytes) -> None:
    """Writes a block of the disk."""
    image[number * layout.size : (number + 1) * layout.size] = block


def block_of(image: bytes, layout: Layout, number: int) -> bytes:
    """A block of the disk."""
    return bytes(image[number * layout.size : (number + 1) * layout.size])


# ---- reading logs -------------------------------------------------------------------------------


@dataclass
class Found:
    """A complete transaction of a log."""

    sequence: int
    copies: list[tuple[int, bytes]] = field(default_factory=list)
    revoked: list[int] = field(default_factory=list)


def transactions_of(image: bytes, layout: Layout) -> list[Found]:
    """The complete transactions of a log, in order."""
    log = [block_of(image, layout, layout.log_at + index) for index in range(layout.log)]
    sequence, start = struct.unpack_from(">II", log[0], 0x18)
    compatible, features = struct.unpack_from(">II", log[0], 0x24)
    checksums, version_1 = bool(features & HAS_CHECKSUMS), bool(compatible & HAS_VERSION_1)
    layout = layout._replace(checksums=checksums, version_1=version_1 and not checksums)
    found: list[Found] = []
    if start == 0:
        return found
    walk = ring(log[: layout.end], layout.first, start)
    while True:
        each = next_transaction(walk, layout, sequence, wide=bool(features & HAS_64BIT))
        if each is None:
            return found
        found.append(each)
        sequence = (sequence + 1) & 0xFFFFFFFF


def ring(log: list[bytes], first: int, start: int) -> Iterator[bytes]:
    """The blocks of a log, once round."""
    yield from log[start:]
    yield from log[first:start]


def next_transaction(
    walk: Iterator[bytes], layout: Layout, sequence: int, *, wide: bool
) -> Found | None:
    """The next one, or None if it is not complete."""
    found, crc = Found(sequence), 0xFFFFFFFF
    for block in walk:
        magic, kind, number = struct.unpack_from(">III", block)
        if (magic, number) != (MAGIC, sequence):
            return None
        if kind == COMMIT:
            fits = has_crc(block, crc) if layout.version_1 else is_intact(layout, block, 16)
            return found if fits else None
        if kind not in (DESCRIPTOR, REVOKE) or not is_intact(layout, block, layout.size - 4):
            return None
        if kind == REVOKE:
            found.revoked += revoked_in(block, wide=wide)
            continue
        copies = take_copies(walk, layout, block, found, wide=wide)
        if copies is None:
            return None
        crc = crc32_big_endian(crc, block + b"".join(copies)) if layout.version_1 else crc
    return None


def has_crc(block: bytes, crc: int) -> bool:
    """Whether a commit block has this checksum of version 1, or none."""
    kind, size, _, stored = struct.unpack_from(">BBHI", block, 12)
    return (kind, size, stored) in ((0, 0, 0), (CRC32, CRC32_BYTES, crc))


def is_intact(layout: Layout, block: bytes, at: int) -> bool:
    """Whether the checksum at a place of a block is right."""
    if not layout.checksums:
        return True
    zero = block[:at] + bytes(4) + block[at + 4 :]
    return struct.unpack_from(">I", block, at)[0] == crc32c(SEED, zero)


def revoked_in(block: bytes, *, wide: bool) -> list[int]:
    """The numbers in a revoke block."""
    (used,) = struct.unpack_from(">I", block, 12)
    size = 8 if wide else 4
    return [int.from_bytes(block[at : at + size], "big") for at in range(16, used, size)]


def take_copies(
    walk: Iterator[bytes], layout: Layout, block: bytes, found: Found, *, wide: bool
) -> list[bytes] | None:
    """Takes the copies after a descriptor. Gives them as they are in the log; None when one is torn
    or missing."""
    at, flags, taken = 12, 0, []
    while not flags & LAST:
        if layout.checksums:
            low, flags, high, crc = struct.unpack_from(">IIII", block, at)
            number, at = low | (high << 32 if wide else 0), at + 16
        else:
            number, crc, flags = struct.unpack_from(">IHH", block, at)
            at += 12 if wide else 8
        at += 0 if flags & SAME_UUID else 16
        copy = next(walk, None)
        if copy is None:
            return None
        if layout.checksums:
            whole = struct.pack(">I", found.sequence) + copy
            if crc != crc32c(SEED, whole):
                return None
        taken.append(copy)
        if flags & ESCAPED:
            copy = struct.pack(">I", MAGIC) + copy[4:]
        found.copies.append((number, copy))
    return taken


def replayed(image: bytes, layout: Layout) -> dict[int, bytes]:
    """What replay writes: the last copy of each block that no later transaction revokes."""
    found = transactions_of(image, layout)
    revoked: dict[int, int] = {}
    for index, each in enumerate(found):
        for number in each.revoked:
            revoked[number] = index
    return {
        number: copy
        for index, each in enumerate(found)
        for number, copy in each.copies
        if revoked.get(number, -1) < index
    }


def copies_to_replay(image: bytes, layout: Layout) -> int:
    """How many copies replay writes, also those that it writes over later."""
    found = transactions_of(image, layout)
    return sum(
        not any(number in later.revoked for later in found[index:])
        for index, each in enumerate(found)
        for number, _ in each.copies
    )


# ---- power cuts ---------------------------------------------------------------------------------


def states(
    image: bytes, writes: Sequence[Write], seed: int, torn: int = 2
) -> Iterator[tuple[int, str, bytearray, set[int]]]:
    """What the disk may hold after a power cut after each write: all of them; and of those since
    the last flush some, others, and only sectors of others. Gives the number of writes, words, the
    disk, and which writes are surely in it, whole."""
    chance = random.Random(seed)
    certain = bytearray(image)
    flushed = 0
    for cut in range(len(writes) + 1):
        if cut and not writes[cut - 1].data:
            for each in writes[flushed:cut]:
                apply(certain, each)
            flushed = cut
        for kind in range(1 + torn * (cut > flushed)):
            state, sure = bytearray(certain), set(range(flushed))
            for index in range(flushed, cut):
                choice = kind and chance.choice(("whole", "none", "torn"))
                if choice == "torn":
                    sectors = range(len(writes[index].data) // SECTOR)
                    apply(state, writes[index], [each for each in sectors if chance.random() < 0.7])
                elif choice != "none":
                    apply(state, writes[index])
                    sure.add(index)
            yield cut, "only some, and some sectors of others" if kind else "all", state, sure


def apply(image: bytearray, write: Write, sectors: Sequence[int] | None = None) -> None:
    """Does a write to a disk; `sectors`: only these of it."""
    at = write.lba * SECTOR
    if sectors is None:
        image[at : at + len(write.data)] = write.data
        return
    for each in sectors:
        part = slice(each * SECTOR, (each + 1) * SECTOR)
        image[at + part.start : at + part.stop] = write.data[part]


# ---- what was written, in words -----------------------------------------------------------------

KINDS = {DESCRIPTOR: "descriptor", COMMIT: "commit block", REVOKE: "revoke block"}


def story(writes: Sequence[Write], layout: Layout, most: int = 8) -> list[str]:
    """What reached the drive last, a line each, for below a message."""
    lines = ["  the drive got, in this order:"]
    for index, each in list(enumerate(writes, 1))[-most:]:
        if not each.data:
            lines.append(f"{index:6}  FLUSH")
            continue
        first = each.lba * SECTOR // layout.size
        blocks = [each.data[at : at + layout.size] for at in range(0, len(each.data), layout.size)]
        words = ", ".join(named(first + n, block, layout) for n, block in enumerate(blocks))
        lines.append(f"{index:6}  {words}")
    return lines


def named(number: int, block: bytes, layout: Layout) -> str:
    """A block that was written."""
    logical = number - layout.log_at
    if not 0 <= logical < layout.log:
        return f"block {number} to its place"
    magic, kind, sequence = struct.unpack_from(">III", block)
    if logical == 0:
        sequence, start = struct.unpack_from(">II", block, 0x18)
        words = f"begins at {start}, transaction {sequence}" if start else "is empty"
        return f"superblock: the log {words}"
    if magic == MAGIC and kind in KINDS:
        return f"log {logical}: {KINDS[kind]} of transaction {sequence}"
    return f"log {logical}: a copy"

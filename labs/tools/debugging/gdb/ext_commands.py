"""Commands about files of a mounted ext file system: an inode, and the map of its blocks."""

from __future__ import annotations

import stat
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from labs.tools.debugging.gdb.commands import Refusal, command, number
from labs.tools.debugging.gdb.ext_inodes import EXTENTS, TIMES, Inode, find_inode, flag_words
from labs.tools.debugging.gdb.open_files import KINDS
from labs.tools.debugging.gdb.storage import Ext, find_ext

MAGIC, DEPTH_MAX = 0xF30A, 5
ENTRY = 12  # bytes of a node's header, and of an entry
UNWRITTEN = 32768  # a longer extent is unwritten, and longer by this
DIRECT = 12
LINES = 400
INDIRECT = ("", "single", "double", "triple")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NANOSECONDS = 1_000_000_000


class Run(NamedTuple):
    """Blocks of a file that are next to each other on the disk."""

    logical: int
    physical: int
    count: int
    unwritten: bool = False

    def __str__(self) -> str:
        last = self.logical + self.count - 1
        where = f"{self.physical}-{self.physical + self.count - 1}"
        note = ", unwritten" if self.unwritten else ""
        return f"{self.logical}-{last} at {where}: {self.count} blocks{note}"


# ---- an inode -----------------------------------------------------------------------------------


@command("disk-inode", "NUMBER [DRIVE]")
def disk_inode(wanted: str, drive: str = "") -> str:
    """An inode of a mounted ext file system: mode, size, blocks, flags, times, where it is."""
    ext = find_ext(drive)
    inode = find_inode(ext, number(wanted))
    kind = KINDS.get(stat.S_IFMT(inode.mode), "not in use" if not inode.mode else "damaged")
    lines = [
        f"{ext.name} inode {inode.number}: {kind}, mode {stat.S_IMODE(inode.mode):04o}, "
        f"{inode.links} links, owner {inode.owner}, group {inode.group}",
        f"size {inode.size} bytes, {inode.sectors} sectors of 512 bytes in use",
        f"flags {flag_words(inode.flags)}",
        *(f"{name:<9}{moment(time)}" for name, time in zip(TIMES, inode.times, strict=False)),
        *inode.words,
    ]
    return "\n".join(lines)


def moment(nanoseconds: int) -> str:
    """A time in UTC, as stat prints it."""
    seconds, rest = divmod(nanoseconds, NANOSECONDS)
    return f"{EPOCH + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S}.{rest:09}"


# ---- its map ------------------------------------------------------------------------------------


@command("extents", "NUMBER [DRIVE]")
def extents(wanted: str, drive: str = "") -> str:
    """The tree that maps an inode's blocks: extents, or the block pointers of ext2 and ext3."""
    ext = find_ext(drive)
    inode = find_inode(ext, number(wanted))
    if stat.S_IFMT(inode.mode) not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
        raise Refusal(f"inode {inode.number} has no blocks")
    if stat.S_ISLNK(inode.mode) and inode.size < len(inode.map):
        target = inode.map[: inode.size].decode(errors="replace")
        raise Refusal(f"inode {inode.number} has no blocks: a short link to {target}")
    blocks = -(-inode.size // ext.block_size)
    tree = Tree(ext)
    lines = [f"{ext.name} inode {inode.number}: {inode.size} bytes, {blocks} blocks"]
    draw = tree.node(inode.map, None, "") if inode.flags & EXTENTS else tree.pointers(inode)
    for line in draw:
        lines.append(line)
        if len(lines) == LINES:
            lines.append("... and more")
            break
    return "\n".join(lines)


class Tree:
    """Draws the map of an inode; no block is drawn twice, so that this ends."""

    def __init__(self, ext: Ext) -> None:
        self._ext = ext
        self._seen: set[int] = set()

    def _read(self, block: int) -> bytes | str:
        """A block of the map; or why it cannot be shown."""
        if not self._ext.has(block):
            return "outside the file system: damaged"
        if block in self._seen:
            return "it is in the tree already: damaged"
        self._seen.add(block)
        data = self._ext.block(block)
        return "not in the cache" if data is None else data

    # extents

    def node(self, data: bytes, depth: int | None, indent: str) -> Iterator[str]:
        """A node, and what is below it. `depth` is what its parent expects; None: it is the
        root."""
        magic, entries, most, own = struct.unpack_from("<HHHH", data)
        yield f"{indent}depth {own}: {entries} of {most} entries"
        room = len(data) // ENTRY - 1
        if magic != MAGIC or entries > min(most, room) or own > DEPTH_MAX:
            yield f"{indent}damaged: magic {magic:#06x}, room for {room} entries"
            return
        if depth not in (None, own):
            yield f"{indent}damaged: its parent expects depth {depth}"
            return
        before = -1
        for index in range(entries):
            first, *rest = struct.unpack_from(
                "<IHHI" if own == 0 else "<IIHH", data, ENTRY * (index + 1)
            )
            if first <= before:
                yield f"{indent}damaged: entry {index} is out of order"
            before = first
            if own == 0:
                yield f"{indent}  {self._extent(first, *rest)}"
            else:
                yield from self._child(first, rest[0] | rest[1] << 32, own - 1, indent + "  ")

    def _extent(self, logical: int, length: int, high: int, low: int) -> str:
        """An entry of a leaf."""
        unwritten = length > UNWRITTEN
        count = length - UNWRITTEN * unwritten
        return self._checked(Run(logical, low | high << 32, count, unwritten))

    def _child(self, first: int, block: int, depth: int, indent: str) -> Iterator[str]:
        """A node in a block of its own."""
        data = self._read(block)
        note = f": {data}" if isinstance(data, str) else ""
        yield f"{indent}from {first} on: block {block}{note}"
        if not isinstance(data, str):
            yield from self.node(data, depth, indent + "  ")

    # block pointers

    def pointers(self, inode: Inode) -> Iterator[str]:
        """The twelve direct pointers and the three trees."""
        words = struct.unpack("<15I", inode.map)
        yield from (f"  {self._checked(run)}" for run in runs(0, words[:DIRECT]))
        first, each = DIRECT, 1
        for level, block in enumerate(words[DIRECT:], 1):
            each *= self._ext.block_size // 4
            if block:
                yield from self._indirect(first, block, level, "")
            first += each

    def _indirect(self, first: int, block: int, level: int, indent: str) -> Iterator[str]:
        """A block of pointers, and what they lead to."""
        data = self._read(block)
        note = f": {data}" if isinstance(data, str) else ""
        yield f"{indent}from {first} on: {INDIRECT[level]} indirect, block {block}{note}"
        if isinstance(data, str):
            return
        words = struct.unpack(f"<{len(data) // 4}I", data)
        if level == 1:
            yield from (f"{indent}  {self._checked(run)}" for run in runs(first, words))
            return
        each = len(words) ** (level - 1)
        for index, word in enumerate(words):
            if word:
                yield from self._indirect(first + index * each, word, level - 1, indent + "  ")

    def _checked(self, run: Run) -> str:
        """A run, with a word if it is impossible."""
        if not run.count:
            return f"{run.logical} at {run.physical}: damaged, no blocks"
        inside = self._ext.has(run.physical) and self._ext.has(run.physical + run.count - 1)
        return str(run) + ("" if inside else ": damaged, outside the file system")


def runs(first: int, words: tuple[int, ...]) -> Iterator[Run]:
    """Pointers that go on on the disk, together; 0 is a hole."""
    run = None
    for logical, word in enumerate(words, first):
        if run and word == run.physical + run.count and word:
            run = run._replace(count=run.count + 1)
            continue
        if run:
            yield run
        run = Run(logical, word, 1) if word else None
    if run:
        yield run

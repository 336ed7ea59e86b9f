"""Exercise S4's second part from outside: an extent tree in memory, in small nodes, so that a few
dozen extents have all depths (tests/storage/host/tree.c). After each change all of the tree is
looked at: what it maps, its order, its keys, its checksums, and what could be one extent.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from itertools import pairwise, zip_longest
from pathlib import Path
from random import Random
from typing import NamedTuple

from labs.tools.grading.lab import ROOT, Lab
from tests.storage.journal import crc32c
from tests.storage.mapping import report
from tests.support.told import expect, fail

SOURCES = (
    "fs/ext/set_extent.c",
    "fs/ext/map_extents.c",
    "fs/jbd2/checksum.c",
    "kernel/lib/string.c",
)
DRIVERS = [ROOT / "tests/storage/host" / name for name in ("tree.c", "asked.c")]
HEADER = struct.Struct("<4HI")
ENTRY = struct.Struct("<I4H")
MAGIC, SEED, NO_SPACE = 0xF30A, 0x2010A001, -28
PLENTY = 20  # new nodes: more than a change needs
LONGEST = 32768  # blocks of an extent; one less if it is unwritten
ENTRIES = 6  # of a node
NODE = HEADER.size + ENTRY.size * ENTRIES + 4  # bytes, with the checksum
SPREAD = 140  # extents that are made at first: more than two levels below the root can have
MOST_BLOCK = 1 << 47

programs: dict[Path, Path] = {}


class Run(NamedTuple):
    """Blocks of a file, and where they are; physical 0: a hole."""

    logical: int
    length: int
    physical: int
    unwritten: bool

    @property
    def end(self) -> int:
        """The block after it."""
        return self.logical + self.length

    def follows(self, before: Run) -> bool:
        """Whether it goes on where another one ends."""
        return (
            before.end == self.logical
            and before.physical + before.length == self.physical
            and before.unwritten == self.unwritten
        )

    def continues(self, before: Run) -> bool:
        """Whether both could be one extent."""
        return self.follows(before) and before.length + self.length <= LONGEST - self.unwritten


class Tree:
    """A file's tree, as it should be, and the changes to it. Answers the program."""

    def __init__(self, chance: Random, count: int, longest: int, grows: bool = False) -> None:
        self.done = 0
        self.runs: list[Run] = []  # what the last tree has, leaf by leaf
        self.depth = self.nodes = 0  # nodes: of the last tree, without its root
        self._chance, self._count, self._longest = chance, count, longest
        self._mapped: list[Run] = []
        self._nodes: dict[int, bytes] = {}
        self._change, self._room = Run(0, 0, 0, False), 0
        self._places = chance.sample(range(SPREAD), SPREAD)
        if grows:
            self._places.sort(reverse=True)

    def answer(self, question: bytes) -> bytes:
        """The line for a line."""
        word, *words = question.decode(errors="replace").split(" ")
        if word == "node" and len(words) == 2:
            self._nodes[int(words[0])] = bytes.fromhex(words[1])
            return b"\n"
        if word == "done" and len(words) == 3:
            self._look(int(words[0]), int(words[1]), bytes.fromhex(words[2]))
            self.done += 1
            self._nodes.clear()
        if self.done >= self._count:
            return b"\n"
        if self._places:
            self._change, self._room = self._first(self._places.pop()), PLENTY
        else:
            self._change, self._room = self._next(), self._chance.choice((0, 1, *[PLENTY] * 3))
        numbers = (*self._change[:3], int(self._change.unwritten), self._room)
        size = f"{NODE} " if word == "next" else ""
        return f"{size}{' '.join(map(str, numbers))}\n".encode()

    # The changes

    def _first(self, place: int) -> Run:
        """Blocks that are next to no others."""
        chance = self._chance
        logical, length = place * (self._longest + 5), chance.randrange(1, self._longest)
        return Run(logical, length, chance.randrange(1, MOST_BLOCK), chance.random() < 0.5)

    def _next(self) -> Run:
        """Into a hole, or inside an extent; often next to another one, on the disk as well."""
        chance = self._chance
        near = chance.choice(self.runs)
        if chance.random() < 0.3 + (len(self.runs) > SPREAD) * 0.3:
            first = chance.randrange(near.length)
            length = chance.randrange(1, near.length - first + 1)
            written = Run(near.logical + first, length, near.physical + first, False)
            return chance.choice((written, written._replace(physical=0)))
        gap = chance.choice((0, 0, 0, 1, 5))
        logical = near.end + gap
        length = min(chance.randrange(1, self._longest), self._hole_at(logical))
        if length == 0:
            return near._replace(unwritten=False)
        off = chance.choice((0, 0, 0, gap, 1, 1 << 32, -1 << 32, 1 << 40))
        physical = near.physical + near.length + off
        if not 0 < physical < MOST_BLOCK:
            physical = chance.randrange(1, MOST_BLOCK)
        return Run(
            logical, length, physical, chance.choice((near.unwritten, chance.random() < 0.5))
        )

    def _hole_at(self, logical: int) -> int:
        """How many blocks from here on are a hole."""
        after = [run.logical for run in self.runs if run.end > logical]
        return max(0, min(after, default=logical + self._longest) - logical)

    # What has come of one

    def _look(self, result: int, held: int, root: bytes) -> None:
        """Looks at the whole tree."""
        run = self._change
        kind = f"{'un' * run.unwritten}written blocks" if run.physical else "a hole"
        where = f"at {run.physical}" if run.physical else ""
        what = f"ext_set_extent: {kind} {run.logical} to {run.end - 1} {where}".strip()
        what += f", with room for {self._room} new nodes" if self._room < PLENTY else ""
        if result != NO_SPACE or self._room == PLENTY:
            expect(f"{what}: result", result, 0)
            self._mapped = changed_map(self._mapped, run)
        expect(f"{what}: nodes that were not given back", held, 0)
        reached: set[int] = set()
        leaves = [*self._leaves(what, root, None, 0, 1 << 32, reached)]
        expect(f"{what}: nodes that nothing leads to", set(self._nodes) - reached, set())
        self.runs, self.nodes = [run for leaf in leaves for run in leaf], len(reached)
        for seen, wanted in zip_longest(joined(self.runs), self._mapped):
            expect(f"{what}: the map", seen, wanted)
        for leaf in leaves:
            for one, other in pairwise(leaf):
                if other.continues(one):
                    fail(f"{what}: these are two extents, and could be one: {one}, {other}")

    def _leaves(
        self, what: str, data: bytes, depth: int | None, begin: int, end: int, reached: set[int]
    ) -> Iterator[list[Run]]:
        """The extents of each leaf below a node, which is looked at."""
        magic, count, _, own_depth, _ = HEADER.unpack_from(data)
        expect(f"{what}: magic of a node", magic, MAGIC)
        expect(f"{what}: depth of a node", own_depth, own_depth if depth is None else depth)
        self.depth = max(self.depth, own_depth)
        if count > (room := (len(data) - HEADER.size) // ENTRY.size):
            fail(f"{what}: a node has {count} entries, and room for {room}")
        entries = [ENTRY.unpack_from(data, HEADER.size + ENTRY.size * i) for i in range(count)]
        keys = [each[0] for each in entries]
        if keys != sorted(set(keys)) or (keys and not begin <= keys[0] <= keys[-1] < end):
            fail(f"{what}: a node has the entries {keys}, and is for blocks {begin} to {end - 1}")
        if own_depth == 0:
            yield [
                Run(key, length - LONGEST * (length > LONGEST), high << 32 | low, length > LONGEST)
                for key, length, high, low in map(decoded, entries)
            ]
            return
        for entry, after in zip(entries, [*keys[1:], end], strict=True):
            block = entry[1] | entry[2] << 16 | entry[3] << 32
            if block in reached or block not in self._nodes:
                fail(f"{what}: an entry leads to block {block}, which is no node of its own")
            reached.add(block)
            child = self._nodes[block]
            stored = int.from_bytes(child[-4:], "little")
            if stored != crc32c(SEED, child[:-4]):
                fail(f"{what}: the checksum of a node of depth {own_depth - 1} is another one's")
            first = ENTRY.unpack_from(child, HEADER.size)[0]
            expect(f"{what}: an entry's key, and the first of its child", entry[0], first)
            yield from self._leaves(what, child, own_depth - 1, entry[0], after, reached)


def changed_map(runs: list[Run], change: Run) -> list[Run]:
    """What is mapped after a change."""
    parts = [change] if change.physical else []
    for run in runs:
        if run.logical < change.logical:
            parts.append(run._replace(length=min(run.length, change.logical - run.logical)))
        if run.end > change.end:
            cut = max(0, change.end - run.logical)
            parts.append(
                Run(run.logical + cut, run.length - cut, run.physical + cut, run.unwritten)
            )
    return joined(sorted(parts))


def joined(runs: Iterable[Run]) -> list[Run]:
    """The same in as few runs as there can be, of any length."""
    found: list[Run] = []
    for run in runs:
        last = found[-1] if found else None
        if last and run.follows(last):
            found[-1] = last._replace(length=last.length + run.length)
        else:
            found.append(run)
    return found


def decoded(entry: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Key, length, and the two halves of an extent's place."""
    key, length, high, low_of_low, high_of_low = entry
    return key, length, high, low_of_low | high_of_low << 16


def changed(lab: Lab, count: int, longest: int, name: str = "", grows: bool = False) -> Tree:
    """Makes random changes to a tree, and looks at it after each. grows: the first ones in the
    file's order."""
    if lab.root not in programs or not programs[lab.root].exists():
        programs[lab.root] = lab.host(SOURCES, DRIVERS, "tree")
    tree = Tree(Random(f"{lab.seed} {name}"), count, longest, grows)
    done = lab.converse(programs[lab.root], tree.answer)
    if tree.done < count or done.returncode != 0:
        lab.judging(tree.done)
        report(done, "ext_set_extent")
    return tree

"""Small file systems, and what may happen to a block of their metadata, for X19.

An image has two versions: as it was made, and after some changes. So a write can be lost (the
block is as before), torn (its first half is new) or misdirected (another block of its kind is over
it); and a bit may flip. The two kinds of trees of a file system, extents and hashed names, are in
it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from labs.storage import fsx

BLOCK, BLOCKS, INODES = 1024, 4096, 1024
IMAGE_BYTES = BLOCK * BLOCKS
GROUP_BLOCKS = 256
MAKE = f"-t ext4 -b {BLOCK} -g {GROUP_BLOCKS} -I 256 -N {INODES} -J size=1"
FEATURES = {
    "none": "64bit,^metadata_csum,^uninit_bg",
    "crc16": "64bit,^metadata_csum,uninit_bg",
    "crc32c": "64bit,metadata_csum",
}
KINDS = (
    "superblock", "descriptors", "block bitmap", "inode bitmap", "inodes", "extent node",
    "directory", "hash tree",
)  # fmt: skip
WAYS = ("bit flip", "misdirected", "torn", "lost")
DIRECTORIES = ("names", "other")
DEEP = ("deep0", "deep1")
EXTENTS, NAMES, MANY = 60, 12, 120
BITMAPS = {"block bitmap": GROUP_BLOCKS // 8, "inode bitmap": INODES * GROUP_BLOCKS // BLOCKS // 8}
"""Bytes of a bitmap that count; the rest of its block is ones."""
INODE_BYTES, LINKS = 256, 0x1A  # where an inode has its number of links
MOST = 3  # blocks of a kind that are treated in each other way
UUID = "6a1c2b7e-0f3d-4c58-9e21-5b7a90d4c3f1"


@dataclass(frozen=True)
class Fault:
    """What happened to a block: its number, and what it holds now."""

    kind: str
    way: str
    block: int
    data: bytes


@dataclass(frozen=True)
class Versions:
    """An image before and after the changes, and its blocks of each kind."""

    before: bytes
    after: bytes
    places: dict[str, list[int]]

    def block(self, number: int) -> bytes:
        """As it is now."""
        return self.after[number * BLOCK : (number + 1) * BLOCK]

    def old(self, number: int) -> bytes:
        """As it was."""
        return self.before[number * BLOCK : (number + 1) * BLOCK]


def make_source(root: Path) -> Path:
    """What is in the image."""
    for name in DIRECTORIES:
        (root / name).mkdir(parents=True)
        for number in range(NAMES):
            (root / name / f"{name}-{number}").write_bytes(bytes([65 + number]) * 700)
    for number, name in enumerate(DEEP):
        with (root / name).open("wb") as file:
            for place in range(0, 2 * EXTENTS, 2):
                file.seek(place * BLOCK)
                file.write(f"{name} {place} {number}".encode().ljust(BLOCK, b"."))
    (root / "many").mkdir()
    for number in range(MANY):
        (root / "many" / f"a-name-of-some-length-{number:04}").touch()
    return root


def make_versions(folder: Path, name: str) -> Versions:
    """An image with checksums of a kind; e2fsck finds nothing in its last version."""
    image, source = folder / name, folder / "source"
    if not source.exists():
        make_source(source)
    with image.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    words = [*MAKE.split(), "-O", FEATURES[name], "-U", UUID, "-E", f"hash_seed={UUID}"]
    fsx.tool("mke2fs", "-q", "-F", *words, "-d", str(source), str(image))
    fsx.tool("e2fsck", "-fyD", str(image), check=False)
    before = image.read_bytes()
    change(image)
    fsx.tool("e2fsck", "-fn", str(image))
    return Versions(before, image.read_bytes(), places_of(image))


def change(image: Path) -> None:
    """Changes a block of almost every kind."""
    script = image.with_suffix(".debugfs")
    text = image.parent / "source" / "names" / "names-0"
    lines = [f"punch /{name} {first} {first + 9}" for name in DEEP for first in (4, 90)]
    lines += [f"rm /{name}/{name}-{number}" for name in DIRECTORIES for number in (2, 9)]
    lines += [f"write {text} /{name}/{name}-new" for name in DIRECTORIES]
    lines += [f"sif /{name}/{name}-{number} mtime @0"
              for name in DIRECTORIES for number in (0, 4, 6)]  # fmt: skip
    script.write_text("\n".join(lines) + "\n")
    fsx.tool("debugfs", "-w", "-f", str(script), str(image))


def places_of(image: Path) -> dict[str, list[int]]:
    """Blocks of each kind that are in use; bitmaps of the two groups that have files."""
    groups = [text for text in re.split(r"\nGroup (?=\d)", fsx.tool("dumpe2fs", str(image)))[1:]
              if "BLOCK_UNINIT" not in text and "INODE_UNINIT" not in text]  # fmt: skip
    found = {kind: [int(match[1]) for text in groups[1::-1]
                    if (match := re.search(rf"{kind.capitalize()} at (\d+)", text))]
             for kind in BITMAPS}  # fmt: skip

    def asked(command: str) -> str:
        return fsx.tool("debugfs", "-R", command, str(image))

    files = [*(f"{name}/{name}-{n}" for name in DIRECTORIES for n in (0, 4)), *DEEP]
    inodes = [int(match[1]) for name in files
              if (match := re.search(r"block (\d+)", asked(f"imap /{name}")))]  # fmt: skip
    nodes = [int(line.split()[7]) for name in DEEP for line in asked(f"ex /{name}").splitlines()
             if re.match(r" *0/ *1 ", line)]  # fmt: skip
    return {
        "superblock": [1], "descriptors": [2], **found, "inodes": list(dict.fromkeys(inodes)),
        "extent node": nodes,
        "directory": [int(asked(f"blocks /{name}").split()[0]) for name in DIRECTORIES],
        "hash tree": [int(asked("blocks /many").split()[0])],
    }  # fmt: skip


def has_links(data: bytes, place: int) -> bool:
    """Whether the inode to which this byte of a block of inodes belongs has a name."""
    links = place // INODE_BYTES * INODE_BYTES + LINKS
    return any(data[links : links + 2])


def flipped(data: bytes, kind: str, generator: random.Random) -> bytes:
    """One bit of a byte that is in use: that is not 0, and not after a bitmap's end or in an inode
    that was removed."""
    used = [place for place, byte in enumerate(data[: BITMAPS.get(kind)])
            if byte and (kind != "inodes" or has_links(data, place))]  # fmt: skip
    changed, place = bytearray(data), generator.choice(used)
    changed[place] ^= 1 << generator.randrange(8)
    return bytes(changed)


def faults_of(image: Versions, kind: str, times: int, seed: int) -> Iterator[Fault]:
    """So many flips of a kind of block, and each other way, as far as it changes something, for as
    many blocks, but no more than MOST."""
    generator, blocks = random.Random(f"{kind} {seed}"), image.places[kind]
    for _ in range(times):
        # Group 0 has metadata only: its bitmap is not read, and e2fsck sets the bits itself.
        block = blocks[0] if kind in BITMAPS else generator.choice(blocks)
        yield Fault(kind, "bit flip", block, flipped(image.block(block), kind, generator))
    most = min(times, MOST)
    for block, other in zip(blocks[:most], (blocks[1:] + blocks[:1])[:most], strict=True):
        new, old, half = image.block(block), image.old(block), BLOCK // 2
        for way, data in (("misdirected", image.block(other)), ("torn", new[:half] + old[half:]),
                          ("lost", old)):  # fmt: skip
            if data != new and (way != "torn" or data != old):
                yield Fault(kind, way, block, data)


def judged(folder: Path, image: Versions, fault: Fault) -> bool:
    """Whether e2fsck finds something wrong."""
    path = folder / "judged"
    at = fault.block * BLOCK
    path.write_bytes(image.after[:at] + fault.data + image.after[at + BLOCK :])
    try:
        fsx.tool("e2fsck", "-fn", str(path))
    except fsx.ExerciseError:
        return True
    return False

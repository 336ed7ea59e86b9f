"""Damaged images that are mounted for writing: kinds of damage that are sound by themselves.

    python -m tests.host.damage.images --seed 1 --count 200

Random bytes (`make fuzz`) rarely make what a bug of another system leaves: a block that two files
have, an inode in use that its bitmap calls free, a directory that is its own child, a list of
orphans with files that are in use. Here every image has such a damage, by a seed; then the library
on the host, with its sanitizers, mounts it and works on it. Wrong is: a crash, a report of a
sanitizer, more than SECONDS, findings of e2fsck of a kind that it did not have before, and a file
that nobody worked on and that e2fsck, which repairs the image, would have kept before.

Five lists of kinds: kinds.py, --more trees.py, --outside outside.py, --newer
features.py and contents.py, --halves halves.py; two of file systems: VARIANTS,
and with --features those of newer features (variants.py).

What the damage itself spreads is no finding: a block that is in use and free at once is given to a
second file by every system (SPREADS).
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from labs.tools.machine.bounded import run_within
from tests.host.damage.contents import NEWER
from tests.host.damage.halves import HALVES
from tests.host.damage.kinds import DIRECTORIES, FILES, KINDS, NEW, damage, pristine
from tests.host.damage.outside import LINKS, OUTSIDE
from tests.host.damage.trees import MORE
from tests.host.damage.variants import FEATURES, VARIANTS
from tests.host.ext.images import ENVIRONMENT, SUPER, debugfs

SECONDS = 600
SLOW = 5  # seconds, for work that takes a tenth of one

# ---- one image ----------------------------------------------------------------------------------


def operations(rng: random.Random) -> list[str]:
    """Work on an image: on what may be damaged, and beside it."""
    lines = ["attributes /A/bar"]
    lines += [f"list {path}" for path in ["/", *DIRECTORIES]]
    lines += [f"read {rng.choice((0, 3000, 70000))} 90000 {path}" for path in FILES]
    for number in range(rng.randrange(15, 40)):
        one = rng.choice([*FILES, *FILES, *NEW, *DIRECTORIES, *LINKS])
        other = rng.choice([path for path in FILES if not path.startswith(one)])
        place = rng.choice([path for path in DIRECTORIES if not path.startswith(one)])
        new, size = f"{place}/n{number}", rng.choice((0, 9, 1024, 5000, 70000))
        lines.append(
            rng.choice(
                (
                    f"create {new}", f"write {one} {size} {rng.choice((9, 5000, 90000))} 7",
                    f"append {one} 3000 8", f"mkdir {new}", f"rmdir {one}", f"unlink {one}",
                    f"rename {one} {new}", f"rename {one} {other}", f"link {one} {new}",
                    f"symlink {'y' * rng.choice((9, 90))} {new}", f"truncate {one} {size}",
                    f"punch {one} 1024 {size + 1}", f"allocate {one} 0 {size + 1}",
                    f"setattr {one} user.c {size % 900} 3", f"removeattr {one} user.b",
                    f"exchange {other} {place}/n1", f"fsync {one}", "sync", f"room {size}",
                    f"open {one}", f"chmod {one} 0600", f"list {rng.choice(DIRECTORIES)}",
                )
            )
        )  # fmt: skip
    return [*lines, "close", "usage"]


# What such a damage spreads when anybody writes: two groups have one bitmap or one table, and a
# block that is in use and free is allocated. Only these families, and only of these kinds.
SPREADS = {
    "index_nodes": ("blocks",),  # a part of a map that no block of the file leads to is not freed
    "extents": ("leaked",),  # the same
    "shared_tables": ("inodes", "blocks", "names"),
    "group_fields": ("inodes", "blocks"),
    "attribute_blocks": ("blocks",),
    "references": ("leaked",),  # a block of attributes that is none stays when its file is gone
    "unwritten": ("blocks", "names"),  # a block that a directory and a file have
    "tables_of_others": ("inodes", "blocks", "names", "maps"),
    "attribute_numbers": ("leaked",),
    "never_used": ("inodes", "blocks", "names"),  # e2fsck stops where the root is free
    "foreign_maps": ("maps", "names"),  # a bitmap that is a block of pointers, too, changes
    "shared_nodes": ("maps", "names"),
    "log_blocks": ("inodes", "blocks", "names", "maps"),  # what is replayed may be anything
    "journal_sums": ("inodes", "blocks", "names", "maps"),
    "new_groups": ("inodes", "blocks", "names"),
    "unused_ends": ("inodes", "blocks", "names"),
    "shared_values": ("blocks",),
    "copied_inodes": ("inodes", "blocks", "names", "maps"),  # two directories are one
    "roots": ("inodes", "blocks", "names", "maps"),
}
# What e2fsck says, by what is wrong: the first that fits.
FAMILIES = {
    "leaked": r"Block bitmap differences:( +-\S+)+$",
    "blocks": r"claimed|[Bb]lock bitmap|[Ff]ree blocks|i_blocks|Clone|/.* \(inode #|BLOCK_UNINIT",
    "inodes": r"[Ii]node bitmap|[Ff]ree inodes|Directories count|zero dtime|nattached|nconnected|"
    r"ref count|orphan|unused inodes",
    "names": r"Entry|entry|[Dd]irectory|\.\.|Salvage|HTREE|hash",
    "maps": r"extent|i_size|illegal block|too big|mode|checksum|imagic|attribute|flag",
}


ENDLESS = "Block bitmap differences:  -1\nclaimed\nnattached\nEntry\nextent\n"


def e2fsck(option: str, image: Path) -> str:
    """What e2fsck says; if it does not end, something of each family."""
    try:
        done = run_within(["e2fsck", option, str(image)], env=ENVIRONMENT, capture_output=True,
                          text=True, seconds=30, check=False)  # fmt: skip
    except subprocess.TimeoutExpired:
        return ENDLESS
    return done.stdout + done.stderr


def is_said_anyway(image: Path) -> re.Pattern[str]:
    """Lines that tell nothing. Superblock and descriptors that e2fsck takes from a copy are old.
    What is in the list of orphans waits for e2fsck: the last has no dtime, and they have blocks
    that nobody else has, some after their end."""
    patterns = ["^Pass", "could be"]
    if "backup" in e2fsck("-fn", image):
        patterns += ["counted=", "superblock is missing", "without extents"]
    if struct.unpack_from("<I", image.read_bytes(), SUPER + 0xE8) != (0,):
        patterns += ["zero dtime", "orphan", "differences:  -", "i_size", "Directories count"]
    return re.compile("|".join(patterns))


def findings(image: Path) -> dict[str, str]:
    """What e2fsck finds, after it has replayed the journal: a line of each family."""
    dropped = is_said_anyway(image)
    copy = Path(shutil.copy(image, image.with_suffix(".check")))
    e2fsck("-yEjournal_only", copy)
    found: dict[str, str] = {}
    for line in filter(lambda line: not dropped.search(line), e2fsck("-fn", copy).splitlines()):
        for family, pattern in FAMILIES.items():
            if re.search(pattern, line):
                found.setdefault(family, line)
                break
    return found


@cache
def blocks_kept(variant: str) -> frozenset[int]:
    """The blocks of the files that nobody works on."""
    with tempfile.NamedTemporaryFile(suffix=".img", prefix="kept-") as file:
        file.write(pristine(variant))
        file.flush()
        image = Path(file.name)
        names = [line.split("/")[5] for line in debugfs(image, ["ls -p /keep", "ls -p /keep/sub"])
                 if line.startswith("/")]  # fmt: skip
        paths = [f"/keep/{way}{name}" for name in names for way in ("", "sub/")]
        found = debugfs(image, ["blocks /keep", *(f"blocks {path}" for path in paths)])
        image.with_suffix(".debugfs").unlink()
    return frozenset(int(each) for line in found for each in line.split() if each.isdigit())


def is_shared(variant: str, said: str) -> bool:
    """Whether the damage says that the files that nobody works on have no blocks of their own."""
    used = re.findall(r" \+\(?(\d+)(?:--(\d+))?", "".join(re.findall("Block bitmap diff.*", said)))
    claimed = re.findall(r"(?m)^Multiply-claimed block\(s\) in inode \d+:(.*)", said)
    used += [(each, "") for line in claimed for each in re.findall(r"\d+", line)]
    blocks = {block for first, last in used for block in range(int(first), int(last or first) + 1)}
    return not blocks.isdisjoint(blocks_kept(variant))


def kept(program: Path, image: Path) -> set[str]:
    """The files that nobody works on, with their contents, once e2fsck has repaired the image."""
    copy = Path(shutil.copy(image, image.with_suffix(".repaired")))
    for _ in range(3):
        if "MODIFIED" not in e2fsck("-fy", copy):
            break
    done = run_within([str(program), str(copy)], input=b"tree /keep\n", capture_output=True,
                      seconds=60, check=False)  # fmt: skip
    return {line for line in done.stdout.decode(errors="replace").splitlines() if "/keep" in line}


@dataclass
class Tried:
    """What became of an image."""

    name: str
    commands: list[str]
    lines: list[str]
    failure: str
    new: dict[str, str]
    lost: list[str]
    """What e2fsck would have kept if nobody had written."""
    seconds: float


def try_image(
    program: Path, folder: Path, seed: int, kinds=KINDS, variants: Collection[str] = VARIANTS
) -> Tried:
    """Makes an image, works on it, and asks e2fsck."""
    image, name, commands = damage(folder, seed, kinds, variants)
    rng = random.Random(seed + 1)
    said = e2fsck("-fn", image)
    before = {*findings(image), *(["inodes"] if "orphan" in said else [])}
    sound = Path(shutil.copyfile(image, folder / "before.img"))
    errors = rng.choice(("continue", "continue", "remount-ro"))
    text = "\n".join(operations(rng)) + "\n"
    failure, began = "", time.monotonic()
    try:
        done = run_within([str(program), str(image), "write", f"errors={errors}"],
                          input=text.encode(), capture_output=True, seconds=SECONDS,
                          check=False)  # fmt: skip
        lines = done.stdout.decode(errors="replace").splitlines()
        if done.returncode not in (0, 1) or done.stderr:
            failure = f"status {done.returncode}: {done.stderr.decode(errors='replace')}"
    except subprocess.TimeoutExpired:
        lines, failure = [], f"not ended after {SECONDS} s"
    seconds = time.monotonic() - began
    after = findings(image)
    shared = is_shared(image.stem.split("_")[0], said)
    lost = set() if shared else kept(program, sound) - kept(program, image)
    spread = {*before, *SPREADS.get(name.split()[2], ())}
    spread |= {"leaked"} if "blocks" in spread else set()
    new = {family: line for family, line in after.items() if family not in spread}
    return Tried(name, commands, lines, failure, new, sorted(lost), seconds)


def main() -> int:
    """Returns 1 if something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--more", action="store_true", help="the kinds of trees.py")
    parser.add_argument("--outside", action="store_true", help="the kinds of outside.py")
    parser.add_argument("--kind", help="only this one")
    parser.add_argument("--newer", action="store_true", help="the kinds of contents.py")
    parser.add_argument("--halves", action="store_true", help="the kinds of halves.py")
    parser.add_argument("--features", action="store_true", help="on FEATURES of variants.py")
    options = parser.parse_args()
    from tests.host.ext.fixtures import host_program  # a plugin of pytest

    program, wrong = host_program(), 0
    kinds = MORE if options.more else OUTSIDE if options.outside else KINDS
    kinds = NEWER if options.newer else HALVES if options.halves else kinds
    variants = FEATURES if options.features else VARIANTS
    if options.kind:
        kinds = {options.kind: kinds[options.kind]}
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        for seed in range(options.seed, options.seed + options.count):
            tried = try_image(program, Path(name), seed, kinds, variants)
            if tried.failure or tried.new or tried.lost or tried.seconds > SLOW:
                wrong += 1
                print(
                    tried.name,
                    tried.commands,
                    tried.failure[:3000],
                    list(tried.new.values())[:6],
                    tried.lost[:4],
                    f"{tried.seconds:.1f} s",
                    flush=True,
                )
            for file in Path(name).iterdir():
                file.unlink()
    print(f"{options.count} images, {wrong} with findings")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())

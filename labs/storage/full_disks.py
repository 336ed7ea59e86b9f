"""`make full-disks`: ways to fill a disk, on several kinds of it: what write() accepted is there
afterwards, whatever else wanted its blocks, and e2fsck finds nothing.

    python -m labs.storage.full_disks --seed 2010 --kind ext3-4k --way names

The program is tests/programs/full. It leaves some blocks free, makes dirty pages, then wants blocks
for names, attributes, maps or data past the cache until there are none, and then writes pages until
none is accepted. After that fsync of each file must succeed, and after umount and mount each page
must be there.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from labs.storage.fsx import BUILD, ROOT, check_of, tool
from labs.storage.linux_program import linux_program
from labs.tools.guest.initramfs import regular
from labs.tools.guest.programs import COMMAND, busybox, guest_root
from labs.tools.machine.command import A_SEED, Options, in_a_line
from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import Config, Drive
from labs.tools.machine.run import write_archive

PROGRAM = BUILD / "full" / "full"
SOURCES = ROOT / "tests/programs/full"
KINDS = {
    "ext2-1k": "-t ext2 -b 1024 -N 4000",
    "ext2-4k": "-t ext2 -b 4096 -N 4000",
    "ext3-1k": "-t ext3 -b 1024 -N 4000 -J size=1",
    "ext3-4k": "-t ext3 -b 4096 -N 4000 -J size=4",
    "ext4-1k": "-t ext4 -b 1024 -N 4000 -J size=1",
    "ext4-4k": "-t ext4 -b 4096 -N 4000 -J size=4",
    "small": "-t ext4 -b 1024 -N 256 -O ^has_journal",
}
MIB = 1 << 20
SIZES = {"small": 1 * MIB}
SIZE = 12 * MIB
WALL_SECONDS = 3600
MEMORY_MIB = 64
LEFT_MOST = 40
"""Blocks that may be left when no page is accepted any more: the worst case of one page and its
map, and what pages have needed less than their worst case."""
WAY = re.compile(r'^\t\{ "([a-z-]+)",', re.MULTILINE)
RESULT = re.compile(
    r"^(\S+): (\d+) pages, (\d+) others, (\d+) blocks left, (\d+) fsyncs failed\n"
    r"lost: (\d+) of (\d+) pages$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Filled:
    """What the program said of one way to fill a disk."""

    way: str
    pages: int
    others: int
    left: int
    failed: int
    lost: int

    def faults(self) -> list[str]:
        """What should not be."""
        return [
            *([f"{self.failed} fsyncs failed"] if self.failed else []),
            *([f"{self.lost} of {self.pages} pages are lost"] if self.lost else []),
            *([f"{self.left} blocks are left"] if self.left > LEFT_MOST else []),
        ]


def ways() -> list[str]:
    """All that the program knows."""
    return WAY.findall((SOURCES / "ways.c").read_text())


def script(names: Iterable[str], seed: int) -> str:
    """Commands for the guest's shell: a way after the other, each on a disk that is empty."""
    return (
        "mkdir -p /mnt; umask 0; "
        f"for way in {' '.join(names)}; do mount /dev/hdb /mnt; "
        f"full work /mnt $way {seed} /log; umount /mnt || echo busy; mount /dev/hdb /mnt; "
        "full check /mnt /log; rm -r /mnt/[!l]* /mnt/link* 2>/dev/null; umount /mnt; done; "
        "echo the end"
    )


def fill(directory: Path, kind: str, names: list[str], seed: int) -> tuple[list[Filled], list[str]]:
    """Runs the ways on an image of this kind. Returns what the program said, and what is wrong."""
    image = directory / "image"
    with image.open("wb") as file:
        file.truncate(SIZES.get(kind, SIZE))
    tool("mke2fs", "-q", "-F", *KINDS[kind].split(), str(image))
    files = guest_root(BUILD / "user/bin", busybox(), command=script(names, seed))
    program = linux_program(SOURCES, PROGRAM)
    config = Config(
        boot="direct",
        kernel=BUILD / "storage/kernel.elf",
        initramfs=write_archive(directory, [*files, regular("bin/full", program.read_bytes())]),
        settings=(("cmd", f"/bin/sh /{COMMAND}"), ("disk", "dma-interrupt")),
        drives=(Drive(image, 1, writable=True),),
        memory=MEMORY_MIB,
        icount=None,
        guest_limit=WALL_SECONDS,
        wall_limit=WALL_SECONDS,
    )
    said = run(config).serial.replace("\r", "")
    found = [Filled(way, *map(int, numbers[:5])) for way, *numbers in RESULT.findall(said)]
    wrong = [f"{kind}, {each.way}: {fault}" for each in found for fault in each.faults()]
    if [each.way for each in found] != names or not said.rstrip().endswith("the end"):
        wrong.append(f"{kind}: {len(found)} of {len(names)} ways have ended:\n{said[-2000:]}")
    checked = check_of(image)
    return found, [*wrong, *([f"{kind}: e2fsck: {checked}"] if checked else [])]


def main() -> int:
    """Returns 0 when nothing is lost."""
    parser = Options("make full-disks")
    parser.add_argument("--seed", type=A_SEED, default=2010)
    parser.add_argument("--kind", choices=[*KINDS, "all"], default="all")
    parser.add_argument("--way", choices=[*ways(), "all"], default="all")
    options = parser.parse_args()
    wrong: list[str] = []
    for kind in KINDS if options.kind == "all" else [options.kind]:
        names = ways() if options.way == "all" else [options.way]
        with tempfile.TemporaryDirectory() as name:
            found, faults = fill(Path(name), kind, names, options.seed)
        wrong += faults
        for each in found:
            print(
                f"{kind:8}  {each.way:15}  {each.pages:4} pages, {each.others:4} others, "
                f"{each.left:3} blocks left, {each.failed} fsyncs failed, {each.lost} pages lost",
                flush=True,
            )
    for fault in wrong[:20]:
        print(fault)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(in_a_line("full_disks", main))

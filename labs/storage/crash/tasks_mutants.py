"""Mutants of the kernel: each has a fault put back that several tasks show, or programs alone."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from labs.storage.crash.building import ROOT
from labs.storage.crash.mutants import LOG, Change

TRIES = 8  # recordings, for a mutant to show
SOURCES = ("Makefile", "boot", "kernel", "mm", "drivers", "fs", "labs", "user", "tests/kernel")
BUILT = ("objects", "constants", "storage", "toolchain", "setup-test")


@dataclass(frozen=True)
class Mutant:
    """What is changed, and the kind of file system and how many tasks show it."""

    what: str
    changes: tuple[Change, ...]
    kind: str = "ext4"
    tasks: int = 4


MUTANTS: dict[str, Mutant] = {
    "no-barrier": Mutant(
        "the drive is never asked to flush",
        (
            (
                LOG,
                "\treturn journal->place.no_barriers ? 0 : block_flush(journal->place.device);",
                "\treturn 0;",
            ),
        ),
        tasks=2,
    ),
    "early": Mutant(
        "a change counts as safe before the commit that makes it so has ended",
        (
            (
                "fs/disk/ext_sync.c",
                "\t\terror = ext_commit(mount->fs);\n",
                "\t\tmount->committed = mount->number;\n\t\terror = ext_commit(mount->fs);\n",
            ),
        ),
    ),
    "names": Mutant(
        "names and maps take blocks that are reserved for what write() has accepted",
        (
            (
                "fs/ext/allocate.c",
                "|| *reserved == 0 || inode->has_reserved)",
                "|| *reserved == 0 || true)",
            ),
            (
                "fs/disk/ext_reserve.c",
                "unsigned tries = TRIES; mount->reserved > 0 && tries > 0",
                "unsigned tries = TRIES; mount->reserved > 0 && tries > TRIES",
            ),
        ),
        kind="ext4-full",
    ),
    "forgotten": Mutant(
        "an inode that is read again counts as safe",
        (
            (
                "fs/disk/ext_inode.c",
                "made->changed_in = made->data_in = *evicted_in(made);",
                "made->changed_in = made->data_in = made->mount->committed;",
            ),
        ),
    ),
}


def build_mutant(name: str, place: Path) -> Path:
    """The kernel with a mutant; only what it changes is compiled. Raises ValueError when a text is
    not there once, CalledProcessError when it cannot be compiled."""
    for each in (*SOURCES, *(f"build/{part}" for part in BUILT)):
        source, target = ROOT / each, place / each
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True)
        elif source.exists():
            shutil.copy2(source, target)
    for file, old, new in MUTANTS[name].changes:
        path = place / file
        text = path.read_text()
        if text.count(old) != 1:
            raise ValueError(f"{name}: {file} has its text {text.count(old)} times")
        path.write_text(text.replace(old, new))
    subprocess.run(["make", "-s", "LESSON=storage", "image-direct"], cwd=place, check=True)
    return place / "build/storage/kernel.elf"

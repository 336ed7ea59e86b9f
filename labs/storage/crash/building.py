"""The laboratory's program, with this tree's library or a mutant of it; and images."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from labs.tools.machine.bounded import run_within

ROOT = Path(__file__).resolve().parents[3]
BUILT = ROOT / "build" / "crash"
LIBRARY = ("fs/ext", "fs/jbd2", "fs/cache")
BELOW = ("drivers/disk", "kernel", "mm", "tests/host")
NOT_LINKED = ("main", "model", "mutate", "commands")  # of the program ext_host
OPTIONS = ("-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-maybe-uninitialized")
SANITIZERS = ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
MIB = 1 << 20
SECONDS = 120  # for one run of a tool
ENVIRONMENT = {
    **os.environ,
    "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin",
    "E2FSPROGS_FAKE_TIME": "1262304000",
}
UUID = "6a1c2b7e-0f3d-4c58-9e21-5b7a90d4c3f1"


@dataclass(frozen=True)
class Variant:
    """A kind of file system, and how it is mounted."""

    name: str
    options: str  # of mkfs
    size: int = 16 * MIB
    small: int = 3 * MIB  # of the images that become full: a journal has 1,024 blocks
    data: str = "ordered"


VARIANTS = {
    variant.name: variant
    for variant in (
        Variant("ext4", "-t ext4"),  # as mkfs.ext4 makes it: blocks of 1 KiB below 512 MiB
        Variant("ext4-4096", "-t ext4 -b 4096", small=9 * MIB),
        Variant("ext3", "-t ext3 -b 1024"),
        Variant("ext4-new", "-t ext4 -b 2048 -O metadata_csum_seed,orphan_file", small=4 * MIB),
        Variant("ext4-plain", "-t ext4 -b 1024 -O ^metadata_csum,^64bit,^flex_bg"),
        Variant("ext4-journal", "-t ext4", data="journal"),
        Variant("ext4-writeback", "-t ext4", data="writeback"),
    )
}


def library_files(root: Path) -> list[Path]:
    """The library's sources."""
    files = [path for folder in LIBRARY for path in sorted((root / folder).glob("*.c"))]
    return [path for path in files if path.parent.name != "cache" or path.name == "bcache.c"]


def harness_files() -> list[Path]:
    """What is linked to it."""
    ext = [
        path for path in (ROOT / "tests/host/ext").glob("*.c") if not path.stem.endswith(NOT_LINKED)
    ]
    crash = (ROOT / "tests/host/crash").glob("*.c")
    return [*sorted(ext), *sorted(crash), ROOT / "kernel/lib/errno.c"]


def fingerprint(texts: Iterable[bytes], *options: str) -> str:
    """Changes with each of these texts, and with how they are compiled."""
    digest = hashlib.sha256(" ".join(options).encode())
    for text in texts:
        digest.update(hashlib.sha256(text).digest())
    return digest.hexdigest()[:16]


def compile_to(target: Path, *command: str | Path, compiler: str = "gcc") -> Path:
    """Runs a compiler that makes a file, unless it is there. Another process waits."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            new = target.with_suffix(f".{os.getpid()}.o")
            subprocess.run([compiler, *map(str, command), "-o", str(new)], check=True)
            new.replace(target)
    return target


def headers_of(root: Path) -> bytes:
    """Changes with every header that the library, or a program with it, may include."""
    headers = [path for folder in LIBRARY for path in sorted((root / folder).glob("*.h"))]
    headers += [path for folder in BELOW for path in sorted((ROOT / folder).rglob("*.h"))]
    return fingerprint(map(Path.read_bytes, headers)).encode()


def objects_of(
    files: Iterable[Path], options: Sequence[str], root: Path = ROOT, compiler: str = "gcc"
) -> list[Path]:
    """Compiles each of the files, with the library's headers of `root`. What was compiled once in
    any tree is not compiled again: of a mutant, the files that it does not change."""
    headers = headers_of(root)
    include = (f"-I{root}", f"-I{ROOT}")
    objects = []
    for path in files:
        name = f"{path.stem}-{fingerprint((path.read_bytes(), headers), *options)}.o"
        target = BUILT / "objects" / name
        objects.append(compile_to(target, *options, *include, "-c", path, compiler=compiler))
    return objects


def linked(
    name: str, objects: Sequence[Path], options: Sequence[str], compiler: str = "gcc"
) -> Path:
    """The program of these objects, in the build folder."""
    code = fingerprint((path.name.encode() for path in objects), *options)
    return compile_to(BUILT / f"{name}-{code}", *options, *objects, compiler=compiler)


def build(root: Path = ROOT, sanitize: bool = False) -> Path:
    """The program with the library of a tree."""
    options = [*OPTIONS, *(SANITIZERS if sanitize else ("-O2",))]
    files = [*library_files(root), *harness_files()]
    return linked("crash", objects_of(files, options, root), options)


def copy_library(place: Path) -> Path:
    """A copy of the library's sources, to make a mutant of. Returns its root."""
    for folder in LIBRARY:
        shutil.copytree(ROOT / folder, place / folder, dirs_exist_ok=True)
    return place


def run_tool(*command: str, allowed: tuple[int, ...] = (0,)) -> str:
    """Runs one of e2fsprogs. Returns what it printed."""
    done = run_within(
        command, capture_output=True, text=True, env=ENVIRONMENT, seconds=SECONDS, check=False
    )
    if done.returncode not in allowed:
        raise RuntimeError(f"{command} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def make_image(image: Path, variant: Variant, source: Path | None = None) -> Path:
    """Makes an image, filled from a directory. Always the same bytes but for the source's times."""
    with image.open("wb") as file:
        file.truncate(variant.size)
    fill = ("-d", str(source)) if source else ()
    seeds = ("-U", UUID, "-E", f"hash_seed={UUID}")
    run_tool("mke2fs", "-q", "-F", *variant.options.split(), *seeds, *fill, str(image))
    return image


@cache
def missing_features() -> frozenset[str]:
    """Variants that this machine's e2fsprogs cannot make."""
    command = ["mke2fs", "-q", "-n", "-F", "-O", "orphan_file", "/dev/null", "16384"]
    done = subprocess.run(command, capture_output=True, env=ENVIRONMENT, check=False)
    return frozenset() if done.returncode == 0 else frozenset({"ext4-new"})


def variant_named(name: str) -> Variant:
    """One of VARIANTS; where e2fsprogs is too old for orphan_file, without it."""
    variant = VARIANTS[name]
    if name in missing_features():
        return replace(variant, options=variant.options.replace(",orphan_file", ""))
    return variant

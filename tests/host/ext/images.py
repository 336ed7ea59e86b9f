"""ext images for the tests, made by mke2fs and debugfs from seeded sources, and what is in them."""

from __future__ import annotations

import os
import random
import re
import stat
import struct
import subprocess
import tempfile
import zlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from labs.tools.machine.bounded import run_within

ROOT = Path(__file__).resolve().parents[3]
SOURCES = [
    *sorted((ROOT / "fs" / "ext").glob("*.c")),
    *sorted((ROOT / "fs" / "jbd2").glob("*.c")),
    ROOT / "fs" / "cache" / "bcache.c",
]
SEED = 20100627
MIB = 1 << 20

DEFAULT_4 = "-t ext4 -b 1024 -N 128 -J size=1"
PLAIN_4 = f"{DEFAULT_4} -O ^metadata_csum"  # a damaged superblock is not hidden by its checksum
PLAIN_2 = "-t ext2 -b 1024 -N 128"

UUID = "6a1c2b7e-0f3d-4c58-9e21-5b7a90d4c3f1"
ENVIRONMENT = {
    **os.environ,
    "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin",
    "E2FSPROGS_FAKE_TIME": "1262304000",
    "MKE2FS_CONFIG": str(Path(__file__).with_name("mke2fs.conf")),
}
OLDEST = "-r 0"  # the revision of 1993
FIRST_INODE = 12  # of the files that mke2fs is given: the one after lost+found
SECONDS = 600  # no tool takes longer on these images

INODE_BLOCK = 0x28  # offset of i_block in an inode, bytes
SUPER = 1024  # offset of the superblock, bytes


def run_tool(*command: str, text: str = "", allowed: tuple[int, ...] = (0,)) -> str:
    """Runs one of the tools. Returns what it printed; an exit status not allowed is an error."""
    done = run_within(
        command,
        input=text,
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        seconds=SECONDS,
        check=False,
    )
    if done.returncode not in allowed:
        raise RuntimeError(f"{command} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def make_image(image: Path, size: int, options: str, source: Path | None = None) -> Path:
    """Makes an image of `size` bytes, filled from a directory. Always the same bytes, but for the
    times of the files where the file system has the feature mmp."""
    image.unlink(missing_ok=True)
    with image.open("wb") as file:
        file.truncate(size)
    fill = ["-d", str(source)] if source else []
    extended = f"hash_seed={UUID},lazy_itable_init=1"
    if OLDEST in options and not knows_revision():
        options, extended = options.replace(OLDEST, ""), f"{extended},revision=0"
    seeds = ["-U", UUID, "-E", extended]
    run_tool("mke2fs", "-q", "-F", *seeds, *fill, *options.split(), str(image))
    if source and "mmp" not in options:  # there debugfs would first wait for other writers
        set_times(image, len({path.lstat().st_ino for path in source.rglob("*")}))
    return image


@cache
def knows_revision() -> bool:
    """Whether this mke2fs has the option -r. From 1.47.2 on it is -E revision=."""
    with tempfile.NamedTemporaryFile() as image:
        command = ["mke2fs", "-q", "-n", "-F", *OLDEST.split(), image.name, "1024"]
        done = subprocess.run(command, capture_output=True, env=ENVIRONMENT, check=False)
    return done.returncode == 0


def set_times(image: Path, count: int) -> None:
    """Gives the first inodes one time: mke2fs copies those of the source, and nobody can choose a
    file's ctime."""
    inodes = range(FIRST_INODE, FIRST_INODE + count)
    debugfs(
        image,
        (f"sif <{each}> {time}time @0" for each in inodes for time in ("a", "c", "m")),
        write=True,
    )


def debugfs(image: Path, commands: Iterable[str], write: bool = False) -> list[str]:
    """Runs debugfs commands in one process. Returns the lines it printed, without the echo."""
    script = image.with_suffix(".debugfs")
    script.write_text("\n".join(commands) + "\n")
    printed = run_tool("debugfs", *(["-w"] if write else []), "-f", str(script), str(image))
    return [line for line in printed.splitlines() if not line.startswith("debugfs:")]


def bmap(image: Path, queries: Iterable[tuple[str, int]]) -> list[tuple[int, bool]]:
    """Asks debugfs for (physical block, unwritten) of (path, logical block); a hole is block 0."""
    lines = debugfs(image, (f"bmap {path} {block}" for path, block in queries))
    return [(int(line.split()[0]), "uninit" in line) for line in lines]


def inode_offset(image: Path, path: str) -> int:
    """Where an inode begins in the image, in bytes. For images with blocks of 1 KiB."""
    text = " ".join(debugfs(image, [f"imap {path}"]))
    match = re.search(r"located at block (\d+), offset 0x([0-9a-f]+)", text)
    if not match:
        raise RuntimeError(text)
    return int(match[1]) * 1024 + int(match[2], 16)


def patch(image: Path, offset: int, layout: str, *values: int) -> None:
    """Overwrites fields of an image; layout is struct's."""
    with image.open("r+b") as file:
        file.seek(offset)
        file.write(struct.pack(layout, *values))


def peek(image: Path, offset: int, layout: str) -> tuple[int, ...]:
    """Reads fields of an image; layout is struct's."""
    with image.open("rb") as file:
        file.seek(offset)
        return struct.unpack(layout, file.read(struct.calcsize(layout)))


def write_blocks(path: Path, block: int, places: Iterable[int], size: int | None = None) -> None:
    """Makes a sparse file with a block that holds its own number at each of the places."""
    with path.open("wb") as file:
        for place in places:
            file.seek(place * block)
            file.write(struct.pack("<Q", place + 1) * (block // 8))
        if size is not None:
            file.truncate(size * block)


def make_source(root: Path, seed: int) -> Path:
    """Makes a directory with files of awkward sizes, names and kinds. Returns it."""
    rng = random.Random(seed)
    (root / "sizes").mkdir(parents=True)
    for size in (0, 1, 511, 512, 513, 1023, 1024, 1025, 4095, 4096, 4097, 12287, 12288, 12289):
        (root / "sizes" / str(size)).write_bytes(rng.randbytes(size))
    for size in (274431, 274432, 274433, 700001):  # 268 blocks of 1 KiB: direct and one indirect
        (root / "sizes" / str(size)).write_bytes(rng.randbytes(size))
    crowd = root / "crowd"
    crowd.mkdir()
    for number in range(400):
        name = f"{number:03d}{'x' * rng.randrange(60)}"
        (crowd / name).write_bytes(rng.randbytes(rng.randrange(40)))
    deep = root / "deep" / "é ü 文件" / ("d" * 255)
    deep.mkdir(parents=True)
    (deep / ("f" * 255)).write_bytes(rng.randbytes(2000))
    write_blocks(root / "holes", 1024, (1, 5, 30, 300, 900), 1000)
    make_links(root)
    os.mkfifo(root / "pipe")
    return root


def make_links(root: Path) -> None:
    """Symbolic links: in the inode and in a block, relative, absolute, chained and circular."""
    target = "sizes/512"
    for length in (59, 60, 61, 1000):  # up to 59 bytes fit into the inode
        (root / f"link{length}").symlink_to(
            "./" * ((length - 9) // 2) + "/" * (length % 2) + target
        )
    (root / "absolute").symlink_to("/sizes/513")
    (root / "directory").symlink_to("sizes/")
    (root / "deep" / "up").symlink_to("../directory/../sizes/1023")
    (root / "loop").symlink_to("loop")
    (root / "chain0").symlink_to("sizes/4097")
    for number in range(1, 10):
        (root / f"chain{number}").symlink_to(f"chain{number - 1}")


def describe(path: Path) -> tuple[int, int, int]:
    """Mode, size and CRC-32 of a file, as the host program's "tree" prints them."""
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        content = os.readlink(path).encode()
    elif stat.S_ISREG(status.st_mode):
        content = path.read_bytes()
    else:
        content = b""
    return status.st_mode, len(content), zlib.crc32(content)


def describe_all(root: Path) -> dict[str, tuple[int, int, int]]:
    """describe() for everything below a directory, by path."""
    return {f"/{path.relative_to(root)}": describe(path) for path in root.rglob("*")}


def extent_node(depth: int, room: int, entries: Iterable[tuple[int, int, int]]) -> bytes:
    """An extent node. Entries are (logical, length, physical); inner nodes have no length."""
    packed = [
        struct.pack("<IHHI", logical, length, physical >> 32, physical & 0xFFFFFFFF)
        if depth == 0
        else struct.pack("<IIHH", logical, physical & 0xFFFFFFFF, physical >> 32, 0)
        for logical, length, physical in entries
    ]
    return struct.pack("<HHHHI", 0xF30A, len(packed), room, depth, 0) + b"".join(packed)

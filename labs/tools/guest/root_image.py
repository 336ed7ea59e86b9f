"""A disk image with a root file system: what the guest would get in its archive, on an ext4."""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from labs.tools.guest.initramfs import Entry, InitramfsError, merged

MIB = 1 << 20
ROOM = 64 * MIB
"""What is free for the guest, besides as much as there is already."""

SECONDS = 600


def write_files(entries: Iterable[Entry], top: Path) -> int:
    """Writes entries below a folder, but for devices, which the kernel brings. Returns how many
    bytes they have."""
    size = 0
    for entry in merged(entries):
        path, mode = top / entry.path, stat.S_IMODE(entry.mode)
        if stat.S_ISDIR(entry.mode):
            path.mkdir(exist_ok=True)
            path.chmod(mode | stat.S_IRWXU)
        elif stat.S_ISLNK(entry.mode):
            path.symlink_to(os.fsdecode(entry.content))
        elif stat.S_ISREG(entry.mode):
            path.write_bytes(entry.content)
            path.chmod(mode)
        size += len(entry.content) + 4096
    return size


def make_root_image(image: Path, entries: Iterable[Entry]) -> None:
    """Makes the image, as plain mkfs.ext4 does. Raises InitramfsError, with the tool's words or the
    cause: there is no room, or nothing can be written there."""
    if not image.parent.is_dir():
        raise InitramfsError(f"{image}: there is no folder {image.parent}")
    try:
        write_image(image, entries)
    except OSError as error:
        raise InitramfsError(f"{image} cannot be made: {error.strerror}") from error


def write_image(image: Path, entries: Iterable[Entry]) -> None:
    """Makes the image next to its place, and moves it there when it is whole. Raises OSError, and
    InitramfsError with the tool's words."""
    with tempfile.TemporaryDirectory(dir=image.parent) as directory:
        top, unfinished = Path(directory, "root"), Path(directory, "image")
        top.mkdir()
        size = (2 * write_files(entries, top) + ROOM) // MIB * MIB
        with unfinished.open("wb") as file:
            file.truncate(size)
        words = ["mkfs.ext4", "-q", "-F", "-d", str(top), "-E", "root_owner=0:0", str(unfinished)]
        try:
            done = subprocess.run(
                words, capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except OSError as error:
            raise InitramfsError(f"{image}: mkfs.ext4: {error.strerror}") from error
        if done.returncode != 0:
            raise InitramfsError(f"{image}: mkfs.ext4: {done.stderr.strip()}")
        unfinished.rename(image)

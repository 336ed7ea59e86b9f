"""The storage lab's three drives, as small as a page can take: hdb raw, hdc ext3, hdd ext4."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from labs.storage.disks import DRIVES, FAKE_TIME, FEATURES, LAZY, MKFS_OPTIONS, UUID

RAW_BYTES, EXT_BYTES = 1 << 20, 16 << 20
SECTOR = 512
FILES = 40


def make(work: Path) -> dict[str, Path]:
    """The images in `work`, the same bytes each time. Raises CalledProcessError."""
    files = work / "files"
    shutil.rmtree(files, ignore_errors=True)
    (files / "docs").mkdir(parents=True)
    (files / "hello.txt").write_text("Hello from a file on this drive\n")
    for number in range(FILES):
        (files / "docs" / f"{number}.txt").write_text(f"file {number}\n" * (30 * number + 1))
    for path in (*files.rglob("*"), files):
        os.utime(path, (int(FAKE_TIME), int(FAKE_TIME)))
    found = {}
    for drive in DRIVES:
        path = found[drive.name] = work / f"{drive.name}.img"
        if not drive.mkfs:
            sectors = (f"sector {n}\n".encode() for n in range(RAW_BYTES // SECTOR))
            path.write_bytes(b"".join(text.ljust(SECTOR, b"\0") for text in sectors))
            continue
        path.write_bytes(b"")
        os.truncate(path, EXT_BYTES)
        uuid = UUID.format(drive.letter)
        options = [*MKFS_OPTIONS, "-O", f"none,{FEATURES[drive.mkfs]}", "-U", uuid]
        options += ["-E", f"{LAZY},hash_seed={uuid},root_owner=0:0", "-d", str(files)]
        environment = {**os.environ, "E2FSPROGS_FAKE_TIME": FAKE_TIME}
        environment["PATH"] = f"{environment.get('PATH', '')}:/usr/sbin:/sbin"
        command = [drive.mkfs, "-q", "-F", *options, str(path)]
        subprocess.run(command, env=environment, check=True, capture_output=True)
    return found

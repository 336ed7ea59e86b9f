"""The crash laboratory: its reader of logs, its judge, and what it says of the library."""

from __future__ import annotations

import struct

import pytest

from labs.storage.crash.building import VARIANTS, make_image
from labs.storage.crash.log import FLUSH, Entry, Layout, LogError, read_log, write_log
from labs.storage.crash.workloads import pattern
from labs.tools.machine.bounded import run_within

SECTOR = 512


# ---- logs ---------------------------------------------------------------------------------------


def test_log_of_qemu_is_read(tmp_path):
    """QEMU's own tool writes through blklogwrites: what it wrote and flushed is in the log."""
    disk, log = tmp_path / "disk.img", tmp_path / "log"
    for path in (disk, log):
        path.write_bytes(bytes(1 << 20 if path == disk else 0))
    options = (
        f"driver=blklogwrites,file.driver=file,file.filename={disk},log.driver=file,"
        f"log.filename={log},log-super-update-interval=1,log-sector-size=512"
    )
    commands = ["write -P 0x11 0 4096", "flush", "write -P 0x22 8192 512", "write -P 0x33 0 512"]
    words = [word for command in commands for word in ("-c", command)]
    run_within(
        ["qemu-io", *words, "--image-opts", options], capture_output=True, seconds=60, check=True
    )
    entries = [entry for entry in read_log(log) if entry.data or entry.flushes]
    writes = [(entry.sector, entry.data) for entry in entries if entry.data]
    assert writes == [(0, b"\x11" * 4096), (16, b"\x22" * 512), (0, b"\x33" * 512)]
    flushes = [number for number, entry in enumerate(entries) if entry.flushes]
    assert 1 in flushes
    again = bytearray(1 << 20)
    for entry in entries:
        again[entry.sector * SECTOR : entry.sector * SECTOR + len(entry.data)] = entry.data
    assert bytes(again) == disk.read_bytes()


def test_log_is_checked(tmp_path):
    log = tmp_path / "log"
    entries = [Entry(5, b"a" * SECTOR, 0), Entry(0, b"", FLUSH)]
    write_log(log, entries)
    assert list(read_log(log)) == entries
    log.write_bytes(log.read_bytes()[: 3 * SECTOR])
    with pytest.raises(LogError, match="ends at entry 1 of 2"):
        list(read_log(log))
    log.write_bytes(bytes(SECTOR))
    with pytest.raises(LogError, match="no log of writes"):
        list(read_log(log))


def test_blocks_are_named(tmp_path):
    """By their place in the image, by the journal's own words, or by what is in them."""
    layout = Layout(make_image(tmp_path / "a.img", VARIANTS["ext4"]))
    journal = min(layout.journal)

    def name(block: int, data: bytes) -> str:
        return layout.name(Entry(block * 2, data.ljust(1024, b"\0"), 0))

    commit = struct.pack(">3I", 0xC03B3998, 2, 7)
    assert (
        name(journal + 5, commit) == f"journal: commit block of transaction 7 (block {journal + 5})"
    )
    assert name(journal + 6, b"x" * 1024).startswith("journal: a copy of a block")
    assert name(1, b"x" * 1024) == "the superblock (block 1)"
    tables = [place for place in layout.places if "inode table" in place[2]]
    assert name(tables[0][0], b"x" * 1024).startswith("the inode table of group 0")
    free = 16000
    assert name(free, pattern(1024, 9)) == f"data of write 9, from byte 0 on (block {free})"
    assert name(free, b"\x0a\xf3").startswith("an extent block")
    assert name(free, b"").startswith("zeros")
    assert layout.name(Entry(0, b"", FLUSH)) == "flush"

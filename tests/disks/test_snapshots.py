"""Writable snapshots of drives (drivers/disk/snapshot.c): every sector of both sides, as programs
read it in the guest and as the host finds it on the images; stores that are full or fail; power
cuts after every request; and a mounted ext4."""

from __future__ import annotations

import hashlib
import random
import re
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from labs.storage.crash.log import Entry, read_log
from labs.storage.experiments.guest import GuestRun, run_guest
from labs.storage.snapshot import StoreError, contents, read_store
from labs.tools.guest.initramfs import regular
from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import Config, DiskError, Drive
from tests.host.ext.images import make_image, run_tool
from tests.support.building import ROOT, make

SECTOR, MIB = 512, 1 << 20
SEED = 27
SIZE = MIB + 3 * SECTOR  # the last chunk is not whole
CHUNK = 16 * SECTOR
UNMAP = ("discard=unmap",)
FAILED = "2>/dev/null || echo failed"
Guest = Callable[..., GuestRun]


@pytest.fixture(scope="module")
def guest() -> Guest:
    """Runs a script with hdb, hdc and hdd; the kernel is built."""
    make("LESSON=storage", "image-direct", "user-programs")

    def start(script: str, *drives: Drive, snapshot: str = "", mode: str = "") -> GuestRun:
        settings = (("disk", mode or "dma-polled"),)
        settings += (("snapshot", snapshot),) if snapshot else ()
        made = [regular("pattern", PATTERN)]
        return run_guest(
            ROOT / "build/storage", script, drives, made, settings=settings, seconds=60
        )

    return start


PATTERN = random.Random(SEED).randbytes(64 * SECTOR)


def image(path: Path, size: int, content: bytes = b"") -> Path:
    path.write_bytes(content.ljust(size, b"\0"))
    return path


def drive(path: Path, unit: int, **fields: object) -> Drive:
    return Drive(path, unit, writable=True, **fields)


class Both:
    """What an origin and its snapshot must contain, and the script that writes both."""

    def __init__(self, content: bytes, seed: int = SEED) -> None:
        self.sides = {"hdb": bytearray(content), "dm-0": bytearray(content)}
        self._random = random.Random(seed)

    def writes(self, count: int, sides: Sequence[str] = ("hdb", "dm-0")) -> str:
        words = []
        for _ in range(count):
            side, sectors = self._random.choice(sides), self._random.choice((1, 3, 8, 16, 17, 40))
            at = self._random.randrange(SIZE // SECTOR - sectors)
            skip = self._random.randrange(64 - sectors)
            piece = PATTERN[skip * SECTOR :][: sectors * SECTOR]
            self.sides[side][at * SECTOR : at * SECTOR + len(piece)] = piece
            ending = "conv=notrunc,fsync" if self._random.random() < 0.5 else "conv=notrunc"
            words.append(f"dd if=/pattern of=/dev/{side} bs=512 skip={skip} seek={at} "
                         f"count={sectors} {ending} 2>/dev/null || echo failed")  # fmt: skip
        return "; ".join(words)

    @property
    def origin(self) -> bytes:
        return bytes(self.sides["hdb"])

    @property
    def snapshot(self) -> bytes:
        return bytes(self.sides["dm-0"])


def table(said: str) -> list[list[str]]:
    """The lines of /proc/snapshots."""
    return [line.split(maxsplit=7) for line in re.findall(r"^dm-\d .*(?: [PN] ).*$", said, re.M)]


def make_snapshot(line: str) -> str:
    return f"echo '{line}' >/proc/snapshots"


# ---- contents -----------------------------------------------------------------------------------


def test_every_sector_of_both(guest, tmp_path):
    """Interleaved writes of both, in pieces that begin and end anywhere; then a second boot goes on
    with the same store."""
    before = random.Random(1).randbytes(SIZE)
    both = Both(before)
    paths = [image(tmp_path / "b", SIZE, before), image(tmp_path / "c", 2 * MIB, b"\xff" * MIB),
             image(tmp_path / "d", SIZE)]  # fmt: skip
    paths[1].write_bytes(b"\0" * 4096 + b"\xff" * (2 * MIB - 4096))  # its tables must be cleared
    drives = [drive(path, unit) for unit, path in enumerate(paths, 1)]
    out = "sync; dd if=/dev/dm-0 of=/dev/hdd bs=4096 2>/dev/null; sync; cat /proc/snapshots"
    first = guest(f"{make_snapshot('hdb hdc P 16')} && {both.writes(25)}; {out}", *drives)
    assert "failed" not in first.said
    assert table(first.said)[0][:5] == ["dm-0", "hdb", "hdc", "P", "16"], first.said
    assert paths[0].read_bytes() == both.origin
    assert paths[2].read_bytes() == both.snapshot != both.origin
    store = paths[1].read_bytes()
    assert contents(both.origin, store) == both.snapshot
    assert int(table(first.said)[0][5]) == len(read_store(store).copies)
    second = guest(f"{both.writes(10)}; {out}", *drives, snapshot="hdb hdc", mode="pio-interrupt")
    assert "failed" not in second.said
    assert paths[2].read_bytes() == both.snapshot
    assert paths[0].read_bytes() == both.origin
    assert contents(both.origin, paths[1].read_bytes()) == both.snapshot


def test_requests_of_both_are_not_merged(guest, tmp_path):
    """Adjacent requests of a snapshot and of its origin wait in one queue; each goes to its own
    side. The host's script submits them at once (tests/kernel/queuetest.c)."""
    images = [image(tmp_path / f"{unit}.img", MIB) for unit in (1, 2)]
    script = "write hdb 8 8; queue hdb fifo R8 dm-0 W16; queue hdb fifo dm-0 W24 hdb W32"
    config = Config(
        boot="direct",
        kernel=ROOT / "build/storage/kernel.elf",
        drives=tuple(drive(path, unit) for unit, path in enumerate(images, 1)),
        script=f"{script}; queue dm-0 fifo R16 hdb R8 dm-0 R24; queue hdb fifo R8 R32",
        settings=(("disk", "dma-polled"), ("snapshot", "hdb hdc N")),
    )
    result = run(config).check()
    assert re.findall(r"^queue: (\d+ requests, \d+ wrong)", result.serial, re.M) == [
        *["2 requests, 0 wrong"] * 2,
        *["3 requests, 0 wrong", "2 requests, 0 wrong"],
    ]
    origin = images[0].read_bytes()
    assert [bool(any(origin[n * SECTOR :][: 8 * SECTOR])) for n in (8, 16, 24, 32)] == [
        *[True, False, False, True]
    ]


def test_discards_of_an_origin(guest, tmp_path):
    """What the origin discards the snapshot keeps; the snapshot itself cannot discard."""
    content = random.Random(SEED).randbytes(SIZE)
    store = drive(image(tmp_path / "c.img", 4 * MIB), 2)
    origin = Drive(image(tmp_path / "b.img", SIZE, content), 1, "raw", (), True, UNMAP)
    script = f"{make_snapshot('hdb hdc N')}; blkdiscard -o 5120 -l 409600 /dev/hdb; sync"
    said = guest(f"{script}; md5sum /dev/dm-0; blkdiscard /dev/dm-0 || echo refused", origin, store)
    assert hashlib.md5(content).hexdigest() in said.said
    assert said.said.count("Operation not supported\nrefused\n") == 1
    left = bytearray(content)
    left[5120 : 5120 + 409600] = bytes(409600)
    assert (tmp_path / "b.img").read_bytes() == left


def test_tables_follow_one_another(guest, tmp_path):
    """Chunks of 8 sectors: 256 entries a table. The whole origin is overwritten, over two tables;
    another boot reads them all. The device is counted like any other."""
    size = 3 * MIB
    before = random.Random(2).randbytes(size)
    paths = [image(tmp_path / "b", size, before), image(tmp_path / "c", 4 * MIB)]
    paths[1].write_bytes(b"\0" * 4096 + b"\xff" * (4 * MIB - 4096))
    drives = [drive(path, unit) for unit, path in enumerate(paths, 1)]
    write = "dd if=/dev/zero of=/dev/hdb bs=64k count=48 conv=notrunc,fsync 2>/dev/null"
    said = guest(
        f"{make_snapshot('hdb hdc P 8')}; {write}; {write}; cat /proc/snapshots", *drives
    ).said
    assert int(table(said)[0][5]) == size // 4096 == 768
    assert paths[0].read_bytes() == bytes(size)
    assert contents(bytes(size), paths[1].read_bytes()) == before
    said = guest(
        "md5sum /dev/dm-0; dd if=/dev/zero of=/dev/dm-0 bs=1M count=3 conv=fsync 2>/dev/null;"
        " cat /proc/diskstats /proc/partitions",
        *drives,
        snapshot="hdb hdc",
    ).said
    assert "md5sum" not in said
    assert contents(bytes(size), paths[1].read_bytes()) == bytes(size)
    stats = re.search(r"^ *253 +0 dm-0((?: \d+)+)$", said, re.M)[1].split()
    assert int(stats[2]) == int(stats[6]) == size // SECTOR
    assert re.search(rf"^ *253 +0 +{size // 1024} dm-0$", said, re.M)


# ---- what goes wrong ----------------------------------------------------------------------------


def test_lines_that_are_refused(guest, tmp_path):
    """Each says why, and changes nothing."""
    sizes = {"b": 4 * MIB, "c": 2 * MIB, "d": MIB}
    paths = [image(tmp_path / name, size) for name, size in sizes.items()]
    make_image(paths[2], MIB, "-t ext2 -b 1024")
    refused = {
        "hdb": "expected", "hdb hdc Q": "expected", "hdb hdc P 12": "a chunk must be",
        "hdb hdc P 512": "a chunk must be", "hdb hdc P 16 x": "expected", "hdx hdc": "no drive hdx",
        "hdb hdb": "another drive", "hdb hdd": "in use", "remove dm-0": "there is no dm-0",
    }  # fmt: skip
    late = {"hdb hdd": "in use", "hdc hdd": "in use", "hdb hdc": "in use", "dm-0 hdd": "in use",
            "remove dm-0": "dm-0 is in use"}  # fmt: skip
    tries = [f"echo 'try {line}'; {make_snapshot(line)} {FAILED}" for line in refused]
    again = [f"echo 'try {line}'; {make_snapshot(line)} {FAILED}" for line in late]
    said = guest(
        f"mount -t ext2 /dev/hdd /a; {'; '.join(tries)}; {make_snapshot('hdb hdc N')}; "
        "dd if=/dev/hdd of=/dev/dm-0 bs=64k count=16 conv=notrunc 2>/dev/null; "
        f"mount -t ext2 /dev/dm-0 /b; {'; '.join(again)}; echo 'try end'; umount /b; umount /a; "
        f"{make_snapshot('hdd hdc')} {FAILED}; {make_snapshot('hdc hdd')} {FAILED}; "
        f"{make_snapshot('dm-0 hdd')} {FAILED}; {make_snapshot('remove dm-0')} && echo removed; "
        "head -c 512 /dev/dm-0 | wc -c; cat /proc/snapshots",
        *[drive(path, unit) for unit, path in enumerate(paths, 1)],
    ).said
    for line, why in [*refused.items(), *late.items()]:
        found = [part for part in said.split("try ") if part.startswith(line + "\n")]
        assert any(why in part and "failed" in part for part in found), (line, found)
    end = said.split("try end")[1]
    assert end.count("failed") == 3 and "removed" in end, end
    assert not table(end)
    assert re.search(r"^0$", end, re.M), end


def header(sectors: int, valid: int = 1) -> bytes:
    """A store without entries, for an origin of this many sectors, with chunks of 16."""
    return struct.pack("<4IQ", 0x70416E53, valid, 1, 16, sectors).ljust(2 * CHUNK, b"\0")


DAMAGED = struct.pack("<2Q", 5, 3)  # the first copy is chunk 2
FAILURES = {  # by what fails: errors, the console's words; and a store that is refused, why
    "full": ((), "its store is full", header(1), "another drive's"),
    "copy": ((2, DiskError("write", 16 * 5)), "its store failed", header(2048, 0), "is invalid"),
    "table": ((2, DiskError("write", 16)), "its table failed", header(2048)[:CHUNK] + DAMAGED,
              "table is damaged"),
    "origin": ((1, DiskError("read", 16 * 20)), "the drive could not be read", b"SnAp",
               "is invalid"),
}  # fmt: skip


@pytest.mark.parametrize("kind", FAILURES)
def test_a_store_that_fails(guest, tmp_path, kind):
    """The origin gets what is written to it. The snapshot is invalid, says so, and is none after a
    boot either; removed, its store may be used again."""
    errors, why, bad, refused = FAILURES[kind]
    before = random.Random(3).randbytes(MIB)
    size = (1 + 1 + 10) * CHUNK if kind == "full" else 2 * MIB
    contents_of = {1: before, 2: header(2048), 3: bad}
    drives = [
        drive(image(tmp_path / f"{unit}", size if unit == 2 else MIB, content), unit,
              errors=errors[1:] if errors and errors[0] == unit else ())
        for unit, content in contents_of.items()
    ]  # fmt: skip
    places = range(8, 30)
    writes = "; ".join(
        f"dd if=/pattern of=/dev/hdb bs=4096 seek={2 * at} count=1 conv=notrunc,fsync {FAILED}"
        for at in places
    )
    said = guest(
        f"{make_snapshot('hdb hdd')} || echo refused; {make_snapshot('hdb hdc')} && echo made; "
        f"{writes}; cat /proc/snapshots; cat /dev/dm-0 >/dev/null; echo read: $?; "
        f"echo x >/dev/dm-0; sync; {make_snapshot('remove dm-0')} && echo removed",
        *drives,
    ).said
    wanted = bytearray(before)
    for at in places:
        wanted[at * CHUNK : at * CHUNK + 4096] = PATTERN[:4096]
    assert (tmp_path / "1").read_bytes() == bytes(wanted)
    assert "on hdd: " in said and refused in said
    assert "refused" in said and "made" in said and "removed" in said, said
    assert f"the snapshot of hdb is invalid: {why}" in said
    assert table(said)[0][7] == f"invalid: {why}"
    assert "read: 1" in said
    with pytest.raises(StoreError, match="no snapshot"):
        read_store((tmp_path / "2").read_bytes())


# ---- power cuts ---------------------------------------------------------------------------------


def test_power_cuts(guest, tmp_path):
    """After each request of a run: the origin has all that was written, the store what it had when
    it was flushed last, and any part of the rest. What they make together is always what the origin
    was."""
    before, size = random.Random(4).randbytes(SIZE), 2 * MIB
    paths = {"hdb": image(tmp_path / "b", SIZE, before), "hdc": image(tmp_path / "c", size)}
    logs = {name: image(tmp_path / f"{name}.log", 0) for name in paths}
    drives = [drive(paths[name], unit, log=logs[name]) for unit, name in enumerate(paths, 1)]
    both = Both(before)
    run = guest(f"{make_snapshot('hdb hdc P 8')}; {both.writes(20, ['hdb'])}; sync", *drives)
    written = {name: [each for each in read_log(path) if each.data] for name, path in logs.items()}
    generator, checked = random.Random(5), 0
    disks, loose = {"hdb": bytearray(before), "hdc": bytearray(size)}, []
    for name, request in run.phases[0].requests:
        if request.operation == "read":
            continue
        if request.operation == "flush":
            apply(disks["hdc"], loose if name == "hdc" else [])
            loose = [] if name == "hdc" else loose
            continue
        entry = written[name].pop(0)
        assert entry.sector == request.lba
        if name == "hdc":
            loose.append(entry)
        else:
            apply(disks["hdb"], [entry])
        if not any(disks["hdc"][:SECTOR]):  # it is being made
            continue
        some = [each for each in loose if generator.random() < 0.5]
        for kept in ([], loose, loose[-1:], some):
            store = bytearray(disks["hdc"])
            apply(store, kept)
            assert contents(bytes(disks["hdb"]), bytes(store)) == before, request
            checked += 1
    assert checked >= 200 and not written["hdb"]
    assert disks["hdb"] == both.origin


def apply(disk: bytearray, entries: Sequence[Entry]) -> None:
    for entry in entries:
        disk[entry.sector * SECTOR : entry.sector * SECTOR + len(entry.data)] = entry.data


# ---- a file system ------------------------------------------------------------------------------


def test_snapshot_of_a_mounted_ext4(guest, tmp_path):
    """It is made while files are being written, and is what ext4 is after a power cut: e2fsck
    replays the journal, and finds nothing else. Mounted beside its origin it has the old
    files, and takes new ones."""
    size = 12 * MIB
    paths = [make_image(tmp_path / "b", size, "-t ext4 -b 4096 -J size=4"),
             image(tmp_path / "c", size), image(tmp_path / "d", size)]  # fmt: skip
    script = f"""
        mount -t ext4 /dev/hdb /a; cd /a
        for i in $(seq 30); do head -c $((i * 1500)) /pattern >f$i; done
        mkdir sub; mv f30 sub; {make_snapshot("hdb hdc P 8")}
        find . -type f | sort | xargs md5sum >/before
        for i in $(seq 1 3 28); do rm f$i; done; cat /pattern /pattern >sub/f30; mkdir new; sync
        dd if=/dev/dm-0 of=/dev/hdd bs=64k 2>/dev/null
        mount -t ext4 /dev/dm-0 /b; cd /b; md5sum -c /before | grep -c ': OK$'
        cat /pattern >only; rm -r sub; cd /; umount /b; umount /a; sync
        echo free: $(cat /proc/snapshots | tail -1)"""
    said = guest(script, *(drive(path, unit) for unit, path in enumerate(paths, 1))).said
    assert re.search(r"^30$", said, re.M), said
    assert run_tool("e2fsck", "-fn", str(paths[0]))
    run_tool("e2fsck", "-E", "journal_only", "-y", str(paths[2]), allowed=(0, 1))
    run_tool("e2fsck", "-fn", str(paths[2]))
    seen = image(tmp_path / "seen", size, contents(paths[0].read_bytes(), paths[1].read_bytes()))
    run_tool("e2fsck", "-fn", str(seen))
    run_tool("debugfs", "-R", f"dump /only {tmp_path}/only", str(seen))
    assert (tmp_path / "only").read_bytes() == PATTERN
    names = run_tool("debugfs", "-R", "ls -p /", str(seen))
    assert "/only/" in names and "/f1/" in names and "/sub/" not in names, names

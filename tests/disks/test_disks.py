"""Drives in all four modes: what is written is on the image, and read again; errors; partitions."""

from __future__ import annotations

import os
import re
import struct
import zlib
from pathlib import Path

import pytest

from labs.tools.machine.qemu_command import DiskError, Drive

SECTOR = 512
MODES = ("dma-interrupt", "dma-polled", "pio-interrupt", "pio-polled")
# A throttled drive answers by the host's clock, so its guest is not counted in instructions.
REAL_TIME = {"icount": None, "guest_limit": 200, "wall_limit": 200}


def written(lba: int, count: int, seed: int) -> bytes:
    """What the command `write DRIVE lba count seed` writes: word i of sector n is made of both."""
    first, end = lba * 64, (lba + count) * 64
    return b"".join(((seed << 48) + word).to_bytes(8, "little") for word in range(first, end))


def empty(path: Path, sectors: int) -> Path:
    with path.open("wb") as image:
        image.truncate(sectors * SECTOR)
    return path


def content(path: Path, lba: int, count: int) -> bytes:
    with path.open("rb") as image:
        return os.pread(image.fileno(), count * SECTOR, lba * SECTOR)


@pytest.fixture
def disk(tmp_path):
    """A writable drive hdb, and its image."""

    def make(sectors: int, unit: int = 1, **options: object) -> Drive:
        path = empty(tmp_path / f"{unit}.img", sectors)
        return Drive(path, unit, writable=True, **options)

    return make


@pytest.fixture
def in_mode(guest):
    """Runs a script with drives in a mode."""
    return lambda mode, script, **fields: guest(script, settings=(("disk", mode),), **fields)


# --- what is written is there ---


@pytest.mark.parametrize("mode", MODES)
def test_counts(in_mode, disk, mode):
    """Every kind of count, on two drives of one channel and one of the other."""
    counts = (1, 2, 15, 16, 17, 128, 255, 256, 600)
    drives = [disk(4000, unit) for unit in (0, 1, 2)]
    commands, expected = [], []
    for drive in drives:
        lba = 3
        for seed, count in enumerate(counts, start=1):
            commands += [
                f"{what} {drive.name} {lba} {count} {seed}" for what in ("write", "verify")
            ]
            expected.append((drive, lba, count, seed))
            lba += count + 1
    result = in_mode(mode, "; ".join(commands), drives=drives, trace=True).check()
    assert f"disks: {mode}" in result.serial
    for drive, lba, count, seed in expected:
        assert content(drive.path, lba, count) == written(lba, count, seed)
        assert content(drive.path, lba + count, 1) == bytes(SECTOR)
    ways = {request.way for request in result.requests["hdb"][1:]}
    assert ways == {mode[:3]}


@pytest.mark.parametrize("mode", MODES)
def test_addresses(in_mode, disk, mode):
    """Up to the last address of LBA28, beyond it (128 GiB), beyond 32 bits, and the last sector."""
    size = (1 << 33) + 5
    places = ((1 << 28) - 9, (1 << 28) - 8, (1 << 28) - 1, 1 << 28, (1 << 32) - 3, size - 8)
    drive = disk(size)
    result = None
    for seed, lba in enumerate(places, start=1):
        script = f"write hdb {lba} 8 {seed}; verify hdb {lba} 8 {seed}"
        result = in_mode(mode, script, drives=[drive], trace=True).check()
        assert content(drive.path, lba, 8) == written(lba, 8, seed)
        assert {r.wide for r in result.requests["hdb"][1:]} == {lba + 8 > 0x0FFFFFFF}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("memory", [64, 1024])
def test_scattered_memory(in_mode, disk, mode, memory):
    """One transfer to and from many pieces, at even addresses, across 64 KiB, and at odd addresses;
    a write that is to be safe at its end is followed by a flush."""
    drive = disk(1000)
    counts = (1, 2, 100, 256)
    script = "; ".join(f"scatter hdb {300 + count} {count} {count}" for count in counts)
    result = in_mode(mode, script, drives=[drive], memory=memory, trace=True).check()
    assert content(drive.path, 556, 256) == written(556, 256, 256)
    operations = [request.operation for request in result.requests["hdb"][1:]]
    assert operations == ["write", "read", "write", "flush", "read"] * len(counts)


def test_memory_that_dma_does_not_reach(guest, disk):
    """The stack of a task is outside the direct map: what goes there goes word by word."""
    script = "write hdb 9 3 4; disk-stack hdb 9 3 4"
    result = guest(script, drives=[disk(100)], trace=True).check()
    assert [(r.operation, r.way, r.sectors) for r in result.requests["hdb"][1:]] == [
        ("write", "dma", 3), ("read", "pio", 1), ("read", "pio", 1), ("read", "pio", 1)
    ]  # fmt: skip


def test_flush_reaches_the_drive(guest, disk):
    drive = disk(100)
    result = guest("write hdb 5; flush hdb", drives=[drive], trace=True).check()
    assert [r.operation for r in result.requests["hdb"]] == ["read", "write", "flush"]
    assert result.block_statistics["hdb"].flushes >= 1


# --- modes ---


def test_modes_by_name(guest):
    result = guest("disk-mode; disk-mode pio-polled; disk-mode; disk-mode sideways")
    assert re.findall(r"^disk-mode: (.*)$", result.serial, re.MULTILINE) == [
        "dma-interrupt", "pio-polled", "pio-polled", "unknown mode sideways"
    ]  # fmt: skip


@pytest.mark.parametrize("icount", [None, 3])
def test_modes_change_under_load(guest, disk, icount):
    """No request is lost, and none finds other sectors, while the mode changes."""
    drives = [disk(8000, unit) for unit in (0, 1)]
    script = "disk-load hda 2; disk-load hdb 2"
    result = guest(script, drives=drives, icount=icount, guest_limit=60).check()
    loads = re.findall(r"disk-load: (\d+) requests, (\d+) changes of mode, 0 wrong", result.serial)
    assert len(loads) == 2
    assert all(int(requests) > 20 and int(changes) > 4 for requests, changes in loads)
    assert "lost" not in result.serial


def test_modes_change_while_the_drive_is_slow(guest, disk):
    """The change waits for the request in flight."""
    drive = disk(8000, options=("throttling.iops-total=100",))
    result = guest("disk-load hdb 3", drives=[drive], **REAL_TIME).check()
    requests, changes = re.search(r"(\d+) requests, (\d+) changes", result.serial).groups()
    assert int(requests) > 6 and int(changes) > 1
    assert "lost" not in result.serial


READS_TRIED = 50  # a drive may have answered before the task sleeps: the host chooses


@pytest.mark.parametrize("mode", MODES)
def test_who_runs_while_a_task_waits(guest_machine, disk, mode):
    """By interrupt the task sleeps, and another one has the processor; who polls keeps it."""
    drive = disk(1000, options=("throttling.iops-total=20",))
    is_polled, ran = mode.endswith("polled"), []
    with guest_machine(None, drives=[drive], settings=(("disk", mode),), **REAL_TIME) as machine:
        machine.expect("leave")
        while len(ran) < (3 if is_polled else READS_TRIED) and "ran" not in ran:
            machine.send(f"disk-share hdb {len(ran)} 1")
            ran.append(machine.expect("another task (ran|did not run)")[1])
    assert ("ran" in ran) != is_polled


# --- errors ---


@pytest.mark.parametrize("mode", MODES)
def test_bad_sector(in_mode, disk, mode):
    """EIO names the drive and the sector; what is beside it was written, and the drive goes on."""
    errors = (DiskError("write", 40), DiskError("read", 60))
    drive = disk(200, errors=errors)
    script = (
        "write hdb 32 16 1; write hdb 41 3 2; verify hdb 41 3 2; write hdb 56 8 3;"
        "verify hdb 56 8 3; verify hdb 61 3 3; flush hdb"
    )
    result = in_mode(mode, script, drives=[drive])
    assert result.status == 1
    for what, lba, bad in (("write", 32, 40), ("read", 56, 60)):
        failed = r" failed: command aborted \(status 0x41, error 0x04\)"
        count = 16 if what == "write" else 8
        assert re.search(rf"hdb: {what} of {count} sectors at LBA {lba}{failed}", result.serial)
        assert (
            len(re.findall(rf"hdb: {what} of 1 sectors at LBA {bad}{failed}", result.serial)) == 2
        )
    said = re.findall(r"^(?:write|verify|flush) hdb: (.*)$", result.serial, re.MULTILINE)
    assert said == ["EIO", "3 sectors", "3 sectors", "8 sectors", "EIO", "3 sectors", "0 sectors"]
    assert content(drive.path, 32, 8) == written(32, 8, 1)
    assert content(drive.path, 40, 1) == bytes(SECTOR)


def test_flush_that_fails(guest, disk):
    """Its error reaches the caller; the drive goes on."""
    drive = disk(100, errors=(DiskError("flush"),), options=("cache.no-flush=off",))
    result = guest("write hdb 5; flush hdb; verify hdb 5", drives=[drive])
    assert "hdb: flush failed: command aborted" in result.serial
    assert "flush hdb: EIO" in result.serial
    assert "verify hdb: 1 sectors" in result.serial


@pytest.mark.parametrize("mode", MODES)
def test_a_drive_that_is_gone(guest_machine, disk, mode):
    """Its medium is taken away: errors, soon, and the drive beside it works on."""
    drives = [disk(100, 0), disk(100, 1)]
    settings = (("disk", mode),)
    with guest_machine(None, drives=drives, settings=settings) as machine:
        machine.expect("leave")
        machine.send("write hdb 7 2 3")
        machine.expect("write hdb: 2 sectors")
        machine._monitor.human("drive_del hdb")
        start = machine.guest_seconds()
        for command in ("verify hdb 7 2 3", "write hdb 9", "flush hdb"):
            machine.send(command)
            machine.expect(f"{command.split()[0]} hdb: (EIO|0 sectors)")
        for command in ("write hda 7 2 3", "verify hda 7 2 3"):
            machine.send(command)
            machine.expect(f"{command.split()[0]} hda: 2 sectors")
        assert machine.guest_seconds() - start < 60


@pytest.mark.parametrize("mode", MODES)
def test_a_cable_that_is_unplugged(in_mode, disk, mode):
    """The bus floats: EIO at once, without waiting; then the drive is back, and works."""
    drives = [disk(100, 1), disk(100, 2)]
    script = (
        "write hdb 7 2 3; disk-unplug hdb; verify hdb 7 2 3; write hdb 8 1; flush hdb;"
        "write hdc 7 2 3; disk-unplug hdb; verify hdb 7 2 3; verify hdc 7 2 3"
    )
    result = in_mode(mode, script, drives=drives, guest_limit=30)
    said = re.findall(r"^(\w+ hd[bc]): (.*)$", result.serial, re.MULTILINE)
    assert [answer for what, answer in said if what.startswith(("write", "verify", "flush"))] == [
        "2 sectors", "EIO", "EIO", "EIO", "2 sectors", "2 sectors", "2 sectors"
    ]  # fmt: skip
    assert result.serial.count("failed: the drive is gone (status 0xff") == 3
    assert result.guest_seconds < 10


@pytest.mark.parametrize("mode", ["dma-interrupt", "pio-interrupt"])
def test_lost_interrupts(in_mode, disk, mode):
    """A request whose interrupt does not come ends when its time is over, and is right."""
    script = "disk-silence hdb; write hdb 7 2 3; verify hdb 7 2 3"
    drive = disk(100)
    result = in_mode(mode, script, drives=[drive], guest_limit=60).check()
    assert result.serial.count("hdb: an interrupt was lost") >= 2
    assert content(drive.path, 7, 2) == written(7, 2, 3)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_drive_that_stops_answering(guest_machine, disk, mode):
    """It is given up after a bounded time, and works when it answers again. What it has read before
    keeps it busy for longer than any attempt takes."""
    drives = [disk(100, 0), disk(100, 1, options=("throttling.iops-total=1000",))]
    settings = (("disk", mode),)
    fields = {"drives": drives, "settings": settings, **REAL_TIME}
    with guest_machine(None, **fields) as machine:
        machine.expect("leave")
        machine.send("write hdb 7 2 3")
        machine.expect("write hdb: 2 sectors")
        throttle(machine, "hdb", 4)
        machine.send("verify hdb 7 2 3")
        machine.send("verify hdb 9 16 0")
        machine.expect(r"hdb: read of \d+ sectors at LBA \d+ failed: the drive stays busy", 100)
        throttle(machine, "hdb", 0)
        machine.send("verify hdb 7 2 3")
        machine.expect("verify hdb: 2 sectors", 100)
        machine.send("write hda 7 2 3")
        machine.expect("write hda: 2 sectors", 100)


def throttle(machine, drive, bytes_a_second):
    """Changes the drive's speed; 0: no limit."""
    machine._monitor.human(f"block_set_io_throttle {drive} {bytes_a_second} 0 0 0 0 0")


# --- partitions ---

BOOT, LINUX, EXTENDED, PROTECTIVE = 0x80, 0x83, 0x05, 0xEE


def entry(kind: int, start: int, sectors: int, boot: int = 0) -> bytes:
    return struct.pack("<B3xB3xII", boot, kind, start, sectors)


def table(*entries: bytes) -> bytes:
    """A sector with a partition table."""
    return (bytes(446) + b"".join(entries)).ljust(510, b"\0") + b"\x55\xaa"


def gpt(ranges: dict[int, tuple[int, int]], sectors: int) -> dict[int, bytes]:
    """Both copies of a GPT, and its protective MBR, by sector."""
    entries = bytearray(128 * 128)
    for number, (first, last) in ranges.items():
        packed = struct.pack("<16s16sQQQ72s", b"a type of 16 byt", b"x" * 16, first, last, 0, b"")
        entries[(number - 1) * 128 : number * 128] = packed
    sum_of_entries = zlib.crc32(entries)

    def header(own: int, other: int, where: int) -> bytes:
        fields = (own, other, 34, sectors - 34, b"d" * 16, where, 128, 128, sum_of_entries)
        head = [struct.pack("<8sII", b"EFI PART", 0x10000, 92), bytes(4)]
        head += [bytes(4), struct.pack("<QQQQ16sQIII", *fields)]
        head[1] = struct.pack("<I", zlib.crc32(b"".join(head)))
        return b"".join(head).ljust(SECTOR, b"\0")

    last = sectors - 1
    return {
        0: table(entry(PROTECTIVE, 1, sectors - 1)),
        1: header(1, last, 2),
        2: bytes(entries),
        last - 32: bytes(entries),
        last: header(last, 1, last - 32),
    }


def place(path: Path, parts: dict[int, bytes]) -> None:
    with path.open("r+b") as image:
        for lba, data in parts.items():
            os.pwrite(image.fileno(), data, lba * SECTOR)


def partitions(serial: str) -> dict[str, tuple[int, int]]:
    """What the kernel says of them: first sector and number of sectors."""
    found = re.findall(r"^(hd[a-d]\d+): (\d+) sectors from (\d+)$", serial, re.MULTILINE)
    return {name: (int(start), int(count)) for name, count, start in found}


def test_mbr(guest, disk):
    """Primary and logical partitions; a request is moved, and counts for both devices."""
    drive = disk(20000)
    place(drive.path, {
        0: table(entry(LINUX, 2048, 1000, BOOT), entry(EXTENDED, 4000, 16000),
                 entry(0, 0, 0), entry(LINUX, 3100, 100)),
        4000: table(entry(LINUX, 63, 500), entry(EXTENDED, 4000, 1000)),
        8000: table(entry(LINUX, 63, 600), entry(0x0F, 8000, 1000)),
        12000: table(entry(LINUX, 1, 700)),
    })  # fmt: skip
    script = "write hdb6 10 20 9; verify hdb6 10 20 9; write hdb4 99; write hdb4 100; drives"
    result = guest(script, drives=[drive])
    assert partitions(result.serial) == {
        "hdb1": (2048, 1000), "hdb4": (3100, 100), "hdb5": (4063, 500), "hdb6": (8063, 600),
        "hdb7": (12001, 700),
    }  # fmt: skip
    assert content(drive.path, 8063 + 10, 20) == written(10, 20, 9)
    assert content(drive.path, 3199, 1) == written(99, 1, 0)
    assert "hdb4: write of 1 sectors at LBA 100: the device has 100 sectors" in result.serial
    counted = re.findall(r"^(hdb\d?) +\d+ +(\d+) +(\d+) +0$", result.serial, re.MULTILINE)
    assert ("hdb6", "1", "20") in counted and ("hdb4", "0", "0") in counted
    assert ("hdb", "5", "24") in counted  # with the four tables


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({0: table(entry(EXTENDED, 10, 500)), 10: table(entry(LINUX, 1, 1), entry(5, 0, 9))},
         "hdb: more logical partitions than 63, or a circle of them"),
        ({0: table(entry(EXTENDED, 10, 500))}, "hdb: no table of logical partitions at sector 10"),
        ({0: table(entry(LINUX, 999, 2))}, "hdb1: 2 sectors from 999 are not on the drive"),
        ({0: table(entry(LINUX, 2**32 - 1, 2**32 - 1))}, "are not on the drive"),
        ({0: table(entry(LINUX, 0, 5))}, "hdb1: 5 sectors from 0 are not on the drive"),
        ({0: table(entry(EXTENDED, 2**32 - 1, 5))}, "hdb: no table of logical partitions"),
        ({0: table(entry(PROTECTIVE, 1, 999))}, "both copies of the GPT are damaged"),
    ],
)  # fmt: skip
def test_damaged_mbr(guest, disk, parts, said):
    """It is said, what is sound is used, and the kernel goes on."""
    drive = disk(1000)
    place(drive.path, parts)
    result = guest("write hdb 900; verify hdb 900", drives=[drive]).check()
    assert said in result.serial


def test_a_boot_sector_is_no_table(guest, disk):
    """Code where the table would be, and an empty sector: nothing is said."""
    drives = [disk(100, 1), disk(100, 2)]
    place(drives[0].path, {0: b"\xeb\x3c\x90".ljust(446, b"x") + b"\x12" * 64 + b"\x55\xaa"})
    result = guest("drives", drives=drives).check()
    assert not partitions(result.serial)
    assert "damaged" not in result.serial and "table" not in result.serial


RANGES = {1: (40, 99), 3: (100, 199), 63: (300, 300)}
AS_FOUND = {"hdb1": (40, 60), "hdb3": (100, 100), "hdb63": (300, 1)}


def test_gpt(guest, disk):
    drive = disk(1000)
    place(drive.path, gpt(RANGES, 1000))
    result = guest("write hdb3 99; write hdb63 0", drives=[drive]).check()
    assert partitions(result.serial) == AS_FOUND
    assert content(drive.path, 199, 1) == written(99, 1, 0)
    assert "GPT" not in result.serial


@pytest.mark.parametrize(
    ("sector", "offset", "said"),
    [
        (1, 0, "has no signature"), (1, 13, "has a wrong size"), (1, 16, "has a wrong checksum"),
        (1, 73, "has a wrong checksum"), (2, 40, "has entries with a wrong checksum"),
    ],
)  # fmt: skip
def test_damaged_gpt(guest, disk, sector, offset, said):
    """The other copy is used; without it there are no partitions."""
    for both in (False, True):
        parts = gpt(RANGES, 1000)
        for each in (sector, 999 if sector == 1 else 967)[: 1 + both]:
            bad = bytearray(parts[each])
            bad[offset] ^= 0xFF
            parts[each] = bytes(bad)
        drive = disk(1000)
        place(drive.path, parts)
        result = guest("drives", drives=[drive]).check()
        assert f"hdb: the GPT header at sector 1 {said}" in result.serial
        assert partitions(result.serial) == ({} if both else AS_FOUND)
        assert ("both copies of the GPT are damaged" in result.serial) == both


@pytest.mark.parametrize(
    ("field", "value"),
    [("<I", (80, 2**32 - 1)), ("<I", (84, 0)), ("<I", (84, 2**31)), ("<Q", (72, 2**64 - 1)),
     ("<Q", (72, 998)), ("<Q", (24, 77))],
)  # fmt: skip
def test_a_gpt_that_lies(guest, disk, field, value):
    """Its checksum is right, and what it says is not."""
    parts = gpt(RANGES, 1000)
    offset, number = value
    for own in (1, 999):
        bad = bytearray(parts[own])
        struct.pack_into(field, bad, offset, number)
        bad[16:20] = bytes(4)
        struct.pack_into("<I", bad, 16, zlib.crc32(bad[:92]))
        parts[own] = bytes(bad)
    drive = disk(1000)
    place(drive.path, parts)
    result = guest("write hdb 900; verify hdb 900", drives=[drive]).check()
    assert "both copies of the GPT are damaged" in result.serial
    assert not partitions(result.serial)

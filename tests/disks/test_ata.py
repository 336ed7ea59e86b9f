"""ATA drives: detection, addresses, errors. What the drive saw is read from QEMU's trace."""

from __future__ import annotations

import errno
import os
import re
import zlib
from pathlib import Path

import pytest

from labs.storage.guest_trace import parse_trace
from labs.tools.machine.disk_trace import Request
from labs.tools.machine.machine import Machine
from labs.tools.machine.qemu_command import DiskError, Drive
from labs.tools.machine.result import Result

SECTOR = 512


def sparse(path: Path, sectors: int, **written: bytes) -> Path:
    """A sparse image with `written` at some sectors: at_LBA=bytes."""
    with path.open("wb") as image:
        image.truncate(sectors * SECTOR)
        for place, data in written.items():
            image.seek(int(place.removeprefix("at_")) * SECTOR)
            image.write(data)
    return path


def pattern(seed: int, sectors: int) -> bytes:
    """Bytes that differ from sector to sector."""
    return b"".join((seed * 7919 + i).to_bytes(4, "little") * 128 for i in range(sectors))


def numbered(first: int, sectors: int) -> bytes:
    """Sectors of a drive on which each holds its own LBA."""
    return b"".join(lba.to_bytes(8, "little") * 64 for lba in range(first, first + sectors))


def sum_line(data: bytes) -> str:
    """What the command `read` says of these sectors."""
    return f"{len(data) // SECTOR} sectors, crc32 {zlib.crc32(data):#010x}"


def asked(result: Result, drive: str) -> list[Request]:
    """What the drive was asked after its partition table."""
    table, *rest = result.requests[drive]
    assert (table.lba, table.sectors) == (0, 1)
    return rest


def test_four_drives(guest, tmp_path):
    """Each drive is found in its place, with its size, and is the one that is read."""
    data = {unit: pattern(unit, 1) for unit in range(4)}
    drives = [
        Drive(sparse(tmp_path / f"{unit}.img", 100 + unit, at_7=data[unit]), unit)
        for unit in range(4)
    ]
    script = "; ".join(f"read hd{letter} 7" for letter in "abcd")
    result = guest(script, drives=drives, trace=True).check()
    for unit, letter in enumerate("abcd"):
        assert f"hd{letter}: QEMU HARDDISK, {100 + unit} sectors" in result.serial
        assert sum_line(data[unit]) in result.serial
        assert [(r.lba, r.sectors) for r in asked(result, f"hd{letter}")] == [(7, 1)]


@pytest.mark.parametrize("present", [(), (1,), (2,), (3,), (1, 3)])
def test_absent_drives(guest, tmp_path, present):
    """A missing drive is said to be missing, at once, and the others work."""
    drives = [Drive(sparse(tmp_path / f"{unit}.img", 100), unit) for unit in present]
    result = guest("drives; read hdb 0", drives=drives)
    for unit, letter in enumerate("abcd"):
        found = f"hd{letter}: QEMU HARDDISK" in result.serial
        assert found == (unit in present)
        assert (f"hd{letter}: no drive" in result.serial) == (unit not in present)
    assert result.status == (0 if 1 in present else 1)
    assert ("hdb: no such drive" in result.serial) == (1 not in present)


def test_cd_drive_is_no_disk(guest):
    """A CD drive answers, but not as a disk; it must not be taken for one."""
    result = guest("drives", boot="grub").check()
    assert "hd" not in result.serial.split("> drives")[1]


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 255, 256])
def test_counts_within_one_request(guest, tmp_path, count):
    """One request is one command, whatever the count; 256 is written as 0."""
    data = pattern(3, 300)
    drive = Drive(sparse(tmp_path / "b.img", 400, at_50=data), 1)
    result = guest(f"read hdb 60 {count}", drives=[drive], trace=True).check()
    assert sum_line(data[10 * SECTOR : (10 + count) * SECTOR]) in result.serial
    assert [(r.lba, r.sectors) for r in asked(result, "hdb")] == [(60, count)]


def test_large_reads_are_split(guest, tmp_path):
    data = pattern(4, 1000)
    drive = Drive(sparse(tmp_path / "b.img", 1000, at_0=data), 1)
    result = guest("read hdb 0 1000", drives=[drive], trace=True).check()
    assert sum_line(data) in result.serial
    assert [(r.lba, r.sectors) for r in asked(result, "hdb")] == [
        (0, 256), (256, 256), (512, 256), (768, 232)
    ]  # fmt: skip


LBA28_END = (1 << 28) - 1  # the last address of 28 bits is no drive's: some refuse it


@pytest.mark.parametrize(
    "lba",
    [LBA28_END - 8, LBA28_END - 7, LBA28_END - 4, LBA28_END - 1, LBA28_END, LBA28_END + 1,
     LBA28_END + 5, (1 << 32) - 2, (1 << 32) + 12345, 3_907_029_168 * 2 - 8],
)  # fmt: skip
def test_addresses_around_the_limits(guest, tmp_path, lba):
    """LBA28 while every sector has an address below 0x0fffffff, LBA48 from there on, and past 32
    bits."""
    data = pattern(5, 8)
    path = sparse(tmp_path / "b.img", 3_907_029_168 * 2)
    with path.open("r+b") as image:
        os.pwrite(image.fileno(), data, lba * SECTOR)
    result = guest(f"read hdb {lba} 8; read hdb {lba}", drives=[Drive(path, 1)], trace=True).check()
    assert sum_line(data) in result.serial
    assert sum_line(data[:SECTOR]) in result.serial
    assert [(r.lba, r.sectors, r.wide) for r in asked(result, "hdb")] == [
        (lba, 8, lba + 8 > 0x0FFFFFFF), (lba, 1, lba + 1 > 0x0FFFFFFF)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("lba", "count"), [(100, 1), (99, 2), (0, 101), (1 << 40, 1), ((1 << 64) - 1, 2)]
)
def test_read_past_the_end(guest, tmp_path, lba, count):
    """Refused before the drive is asked; the kernel goes on."""
    drive = Drive(sparse(tmp_path / "b.img", 100), 1)
    result = guest(f"read hdb {lba} {count}; read hdb 99", drives=[drive], trace=True)
    assert f"hdb: read of {count} sectors at LBA {lba}: the device has 100 sectors" in result.serial
    assert "read: EINVAL" in result.serial
    assert [(r.lba, r.sectors) for r in asked(result, "hdb")] == [(99, 1)]


def test_bad_sector(guest, tmp_path):
    """An error is reported with drive, LBA and status in words, down to the sector; the next read
    works. A request counts as one error, however often it was tried."""
    data = pattern(6, 100)
    path = sparse(tmp_path / "b.img", 100, at_0=data)
    drive = Drive(path, 1, errors=(DiskError("read", 40),))
    result = guest("read hdb 40; read hdb 32 16; read hdb 41; drives", drives=[drive])
    assert result.status == 1
    error = "failed: command aborted (status 0x41, error 0x04)"
    assert result.serial.count(f"hdb: read of 1 sectors at LBA 40 {error}") == 4
    assert result.serial.count(f"hdb: read of 16 sectors at LBA 32 {error}") == 1
    assert sum_line(data[41 * SECTOR : 42 * SECTOR]) in result.serial
    errors = [line.split()[-1] for line in result.serial.splitlines() if line.startswith("hdb  ")]
    assert errors == ["2"]


# The command after a first one takes minutes then. Each read with * finds the drive so, and the
# drive is let go when the kernel has said that it stays busy.
BYTES_A_SECOND = 4
LATE = [("b", 0, 16), ("b", 100, 1, "*"), ("a", 50, 1), ("b", 101, 1), ("b", 102, 2), ("a", 51, 20),
        ("b", 32, 48, "*"), ("b", 104, 1), ("a", 71, 1), ("b", 105, 1), ("b", 106, 3)]  # fmt: skip


def throttle(machine: Machine, rate: int) -> None:
    """Sets the speed of hdb in bytes a second; 0: no limit."""
    machine._monitor.human(f"block_set_io_throttle hdb {rate} 0 0 0 0 0")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["pio-polled", "pio-interrupt", "dma-interrupt"])
def test_late_data_is_nobodys(guest_machine, tmp_path, mode):
    """A drive that answers after its request was given up: the next reads, of this drive and of the
    other one on the channel, have their own sectors. A request is given up at its beginning, and in
    the middle of its data; a second attempt may be in time."""
    image = tmp_path / "a.img"
    image.write_bytes(numbered(0, 200))
    drives = [Drive(image, 0), Drive(image, 1, options=(f"throttling.bps-total={1 << 30}",))]
    fields = {"icount": None, "guest_limit": 300, "wall_limit": 600}
    with guest_machine(None, drives=drives, settings=(("disk", mode),), **fields) as machine:
        machine.expect("leave")
        for letter, lba, count, *late in LATE:
            if late:
                throttle(machine, BYTES_A_SECOND)
                machine.send("read hdb 199")  # what is in debt from here on
            machine.send(f"read hd{letter} {lba} {count}")
            if late:
                machine.expect("failed: the drive stays busy")
                throttle(machine, 0)
            given_up = "|read: ETIMEDOUT" if letter == "b" else ""
            machine.expect(re.escape(sum_line(numbered(lba, count))) + given_up)


def test_durations(guest, tmp_path):
    """The record of a request that took many seconds says so. A second of the throttled drive is
    more than a minute of a guest that polls, and whose instructions take a microsecond."""
    image = tmp_path / "a.img"
    image.write_bytes(numbered(0, 200))
    drives = [Drive(image, 1, options=("throttling.bps-total=256",))]
    machine = {"icount": 10, "settings": (("disk", "pio-polled"),), "guest_limit": 1000}
    script = "read hdb 0 16; read hdb 16"
    result = guest(script, drives=drives, variables=("trace",), **machine)
    total, (_, first, second) = parse_trace(result.variables["trace"])
    assert total == 3
    assert (first.lba, first.sectors) == (0, 16)
    assert (second.lba, second.sectors) == (16, 1)
    assert second.result in (0, -errno.ETIMEDOUT)
    assert 0 < first.duration_ns <= second.start_ns - first.start_ns
    assert 5_000_000_000 <= second.duration_ns <= result.guest_seconds * 1e9


def test_guest_counts_are_qemus_counts(guest, tmp_path):
    """Requests and bytes by the drive, as the kernel counts and as QEMU does."""
    drives = [Drive(sparse(tmp_path / f"{unit}.img", 5000), unit) for unit in (1, 2, 3)]
    script = "read hdb 1 7; read hdb 100; read hdc 17 256; read hdd 4000 1000; drives"
    result = guest(script, drives=drives).check()
    # Each has been asked for its partition table before.
    for letter, requests, sectors in (("b", 3, 9), ("c", 2, 257), ("d", 5, 1001)):
        assert f"hd{letter}           5000 {requests:9} {sectors:14}       0" in result.serial
        statistics = result.block_statistics[f"hd{letter}"]
        # READ MULTIPLE hands over 16 sectors at a time, and QEMU reads as much at once.
        assert statistics.read_bytes == sectors * SECTOR

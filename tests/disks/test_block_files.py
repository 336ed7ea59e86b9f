"""Drives as files: what programs read and write, in /dev, and what the queue makes of it."""

from __future__ import annotations

import random
import re
import struct
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from labs.storage.guest_trace import Record, parse_trace
from labs.tools.guest.programs import COMMAND
from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import Config, DiskError, Drive
from labs.tools.machine.result import Outcome, Result
from labs.tools.machine.run import machine_config, machine_options
from tests.host.ext.images import run_tool
from tests.support.building import ROOT, make, mentioned, shared_folder

COMPILER = ("i686-linux-gnu-gcc", "-O1", "-static", "-D_FILE_OFFSET_BITS=64")
SECTOR, PAGE, SEED = 512, 4096, 11
TRANSFER = 256  # sectors
MODES = ("pio-polled", "dma-polled", "pio-interrupt", "dma-interrupt")
UNMAP = ("discard=unmap",)  # what the guest discards becomes a hole of the image
Said = Callable[..., Result]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of tests/programs/disk, in a folder for the guest's root."""

    def fill(place: Path) -> None:
        for source in (ROOT / "tests/programs/disk").glob("*.c"):
            words = [*COMPILER, str(source), "-o", str(place / source.stem)]
            subprocess.run(words, check=True, capture_output=True)

    try:
        return shared_folder(tmp_path_factory, "device-programs", fill)
    except FileNotFoundError:
        pytest.skip(f"there is no {COMPILER[0]} here")


@pytest.fixture(scope="session")
def storage_config(programs: Path) -> Callable[..., Config]:
    """The lab's kernel with a shell that runs a command: config("ls", drives=(...))."""

    def config(command: str, mode: str = "dma-polled", **fields: object) -> Config:
        make("LESSON=storage", "image-direct", "user-programs")
        words = ["--boot", "direct", "--user", "build/user/bin", "--build", "build/storage"]
        words += ["--programs", str(mentioned(programs, command)), "--command", command]
        made = machine_config(machine_options("test").parse_args(words))
        settings = (*made.settings, ("cmd", f"/bin/sh /{COMMAND}"), ("disk", mode))
        limits = {"guest_limit": 300, "wall_limit": 900, "variables": ("trace",)}
        return replace(made, settings=settings, trace=True, **(limits | fields))

    return config


@pytest.fixture
def said(storage_config: Callable[..., Config]) -> Said:
    """Runs a command to its end; it must end with status 0."""

    def run_command(command: str, **fields: object) -> Result:
        result = run(storage_config(command, **fields))
        assert result.outcome is Outcome.ENDED and result.status == 0, result.explain()
        return result

    return run_command


def blank(path: Path, sectors: int) -> Path:
    with path.open("wb") as image:
        image.truncate(sectors * SECTOR)
    return path


def failures(output: str) -> set[str]:
    assert re.search(r"^1\.\.\d+$", output, re.MULTILINE), output
    return set(re.findall(r"^not ok \d+ (.*)$", output, re.MULTILINE))


# ---- reading and writing ------------------------------------------------------------------------


def pattern(size: int) -> bytes:
    """What the program `device` leaves."""
    return bytes((i * 7 + i // PAGE) % 251 for i in range(size))


@pytest.mark.parametrize("mode", MODES)
def test_promises_of_a_block_device(said, tmp_path, mode):
    """Sizes, ends, ioctls, alignment of direct I/O, one memory for read, write and mmap; and then
    the host finds the contents."""
    size = 1 << 20 if mode != "pio-polled" else 5 << 20
    image = blank(tmp_path / "b.img", size // SECTOR)
    drive = Drive(image, 1, writable=True, options=UNMAP)
    result = said("/device /dev/hdb; sync", mode=mode, drives=(drive,))
    assert failures(result.serial) == set()
    assert image.read_bytes() == pattern(size)


def test_promises_are_those_of_linux(programs, tmp_path):
    """For a file that is as large: this machine has no disk to spare."""
    image = blank(tmp_path / "b.img", (1 << 20) // SECTOR)
    try:
        done = subprocess.run(
            [programs / "device", image, "file"], capture_output=True, text=True, check=False
        )
    except OSError as error:
        pytest.skip(f"this machine does not run i386 programs: {error}")
    if "not ok 1 " in done.stdout:
        pytest.skip("the file system of the temporary directory has no direct I/O")
    assert failures(done.stdout) == set()
    assert image.read_bytes() == pattern(1 << 20)


def test_drives_are_devices(said, tmp_path):
    """Names and numbers are Linux's, and only of the drives that are there."""
    drives = tuple(Drive(blank(tmp_path / f"{unit}", 64), unit) for unit in (0, 1, 3))
    serial = said("ls -l /dev; cat /proc/partitions", drives=drives).serial
    found = re.findall(r"^b\S+ .* (\d+), +(\d+) .* (hd\w+)$", serial, re.MULTILINE)
    assert found == [("3", "0", "hda"), ("3", "64", "hdb"), ("22", "64", "hdd")]
    assert re.findall(r"^ +\d+ +\d+ +32 (hd.)$", serial, re.MULTILINE) == ["hda", "hdb", "hdd"]


def test_an_odd_size(said, tmp_path):
    """A drive of 101 sectors ends in the middle of a page."""
    image = tmp_path / "b.img"
    image.write_bytes(random.Random(SEED).randbytes(101 * SECTOR))
    command = "cmp /dev/hdb /copy && echo same; echo end | dd of=/dev/hdb bs=512 seek=100 2>&1"
    (tmp_path / "root").mkdir()
    result = said(
        f"dd if=/dev/hdb of=/copy 2>/dev/null; {command}; sync; wc -c </dev/hdb",
        drives=(Drive(image, 1, writable=True),),
    )
    assert "same\n" in result.serial
    assert f"\n{101 * SECTOR}\n" in result.serial
    assert image.read_bytes()[100 * SECTOR :].startswith(b"end\n")


@pytest.mark.parametrize("mode", MODES)
def test_errors_reach_who_asked(said, tmp_path, mode):
    bad = 1003
    errors = tuple(DiskError(operation, bad) for operation in ("read", "write"))
    drive = Drive(blank(tmp_path / "b.img", 4096), 1, errors=errors, writable=True)
    result = said(
        f"/errors /dev/hdb {bad}; echo still; ls / >/dev/null", mode=mode, drives=(drive,)
    )
    assert failures(result.serial) == set()
    assert f"LBA {bad} failed" in result.serial


# ---- what was counted ---------------------------------------------------------------------------

WORK = (
    "dd if=/dev/hdb of=/dev/null bs=4096 count=300 2>/dev/null;"
    "dd if=/dev/zero of=/dev/hdb bs=1024 seek=100 count=200 conv=fsync 2>/dev/null;"
    "dd if=/dev/hdb of=/dev/null bs=512 skip=9000 count=7 2>/dev/null; cat /proc/diskstats"
)


def diskstats(serial: str) -> dict[str, list[int]]:
    lines = re.findall(r"^ +\d+ +\d+ (hd\w+)((?: \d+){17})$", serial, re.MULTILINE)
    return {name: list(map(int, fields.split())) for name, fields in lines}


@pytest.mark.parametrize("mode", MODES)
def test_counts_are_those_of_the_host(said, tmp_path, mode):
    """/proc/diskstats against QEMU's counters and its trace. The drive is so slow that it is busy
    for milliseconds."""
    slow = ("throttling.iops-total=100",)
    drive = Drive(blank(tmp_path / "b.img", 20_000), 1, writable=True, options=slow)
    result = said(WORK, mode=mode, drives=(drive,))
    fields = diskstats(result.serial)["hdb"]
    reads, _, read_sectors, read_ms, writes, _, written, write_ms = fields[:8]
    busy, flushes, flush_ms = fields[9], fields[15], fields[16]
    seen = [each for each in result.requests["hdb"] if each.operation in ("read", "write")]
    assert (read_sectors, written) == (
        sum(each.sectors for each in seen if each.operation == "read"),
        sum(each.sectors for each in seen if each.operation == "write"),
    )
    assert (reads, writes) == (
        sum(each.operation == "read" for each in seen),
        sum(each.operation == "write" for each in seen),
    )
    assert written == 400
    host = result.block_statistics["hdb"]
    assert (host.read_bytes, host.written_bytes) == (read_sectors * SECTOR, written * SECTOR)
    assert host.flushes == flushes == 1
    assert 0 < busy <= read_ms + write_ms + flush_ms + 3


def test_the_trace_is_a_file(said, tmp_path):
    """/dev/disktrace gives what the host reads out of the kernel's memory."""
    drive = Drive(blank(tmp_path / "b.img", 4096), 1)
    command = 'dd if=/dev/hdb of=/dev/null bs=8192 2>/dev/null; hexdump -v -e \'32/1 "%02x" "\\n"\''
    result = said(f"{command} </dev/disktrace", drives=(drive,))
    lines = re.findall(r"^[0-9a-f]{64}$", result.serial, re.MULTILINE)
    total, records = parse_trace(result.variables["trace"])
    assert total == len(records) == len(lines) > 10
    head = total.to_bytes(4, "little")
    assert parse_trace(head + b"".join(map(bytes.fromhex, lines)) + bytes(32))[1] == records


@pytest.mark.slow
def test_iostat_of_debian(tmp_path, programs):
    """sysstat's iostat shows the numbers of /proc/diskstats, with -x ratios of them."""
    drive = Drive(blank(tmp_path / "b.img", 20_000), 1, writable=True)
    make("LESSON=storage", "image-direct", "user-programs")
    words = ["--boot", "direct", "--user", "build/user/bin", "--build", "build/storage"]
    words += ["--memory", "256", "--debian", "sysstat"]
    iostat = "S_COLORS=never iostat -d -p ALL -k"
    words += ["--command", f"{WORK}; {iostat}; {iostat} -x"]
    try:
        config = machine_config(machine_options("test").parse_args(words))
    except Exception as error:
        pytest.skip(f"no sysstat here: {error}")
    settings = (*config.settings, ("cmd", f"/bin/sh /{COMMAND}"), ("disk", "dma-polled"))
    result = run(replace(config, settings=settings, drives=(drive,), guest_limit=300)).check()
    fields = diskstats(result.serial)["hdb"]
    shown = re.search(r"^hdb +(.*)$", result.serial, re.MULTILINE)[1].split()
    assert list(map(int, shown[4:6])) == [fields[2] // 2, fields[6] // 2]
    reads, _, sectors, read_ms, writes, _, written, write_ms = fields[:8]
    last = result.serial.rpartition("Device ")[2].splitlines()
    names, rates = last[0], last[1].removeprefix("hdb")
    ratios = dict(zip(names.split(), map(float, rates.split()), strict=True))
    expected = {"r_await": read_ms / reads, "rareq-sz": sectors / 2 / reads}
    expected |= {"w_await": write_ms / writes, "wareq-sz": written / 2 / writes}
    assert {name: ratios[name] for name in expected} == pytest.approx(expected, abs=0.006)
    assert ratios["f/s"] / ratios["w/s"] == pytest.approx(fields[15] / writes, rel=0.1)
    busy = fields[9] / 5 * ratios["rkB/s"] / sectors  # of the time for these sectors, in per cent
    assert ratios["%util"] == pytest.approx(busy, rel=0.1, abs=0.01)


# ---- what is changed without a write -----------------------------------------------------------


def test_discards(said, tmp_path):
    """The image has holes where the guest has discarded, and nothing else has changed. A request
    has up to 64 ranges of ATA's, and all sectors are counted."""
    size, hole = 40 << 20, range(3 * PAGE + SECTOR, 38 << 20)
    content = random.Random(SEED).randbytes(PAGE) * (size // PAGE)
    image = tmp_path / "b.img"
    image.write_bytes(content)
    before = image.stat().st_blocks
    serial = said(
        "tail -c 1000 /dev/hdb >/dev/hdb; sync;"  # its first page has been in the cache
        f"blkdiscard -o {hole.start} -l {len(hole)} /dev/hdb; sync; cat /proc/diskstats",
        drives=(Drive(image, 1, writable=True, options=UNMAP),),
    ).serial
    expected = bytearray(content)
    expected[:1000] = content[-1000:]
    expected[hole.start : hole.stop] = bytes(len(hole))
    assert image.read_bytes() == expected
    assert before - image.stat().st_blocks > len(hole) // SECTOR * 0.9
    discards, merged, sectors, _ = diskstats(serial)["hdb"][11:15]
    assert (discards, merged, sectors) == (1, 0, len(hole) // SECTOR)


def mbr(*ranges: tuple[int, int]) -> bytes:
    """A partition table: first sector and sectors of each."""
    entries = b"".join(struct.pack("<B3xB3xII", 0, 0x83, *each) for each in ranges)
    return bytes(446) + entries.ljust(64, b"\0") + b"\x55\xaa"


def test_partitions_are_read_again(said, tmp_path):
    """The table that the host has left in sector 1 takes the place of the one in sector 0; while a
    partition is open that is refused, and one that is gone cannot be opened."""
    image = blank(tmp_path / "b.img", 1024)
    with image.open("r+b") as file:
        file.write(mbr((64, 100), (200, 300)) + mbr((72, 40)) + bytes(62 * SECTOR))
        for place in (64, 72):
            file.seek(place * SECTOR)
            file.write(f"sector {place}\n".encode().ljust(SECTOR, b"\0"))
    reread = "blockdev --rereadpt /dev/hdb; echo reread $?"
    serial = said(
        "head -c 10 /dev/hdb1; exec 3</dev/hdb2; mknod /old b 3 66;"
        f"dd if=/dev/hdb of=/dev/hdb skip=1 count=1 2>/dev/null; {reread}; exec 3<&-; {reread};"
        "head -c 10 /dev/hdb1; ls /dev/hdb* /sys/block/hdb; grep hdb /proc/partitions;"
        "cd /sys/class/block; cat hdb1/start hdb1/size hdb1/partition; head -c 1 /old;"
        "blockdev --rereadpt /dev/hdb1 || echo refused",
        drives=(Drive(image, 1, writable=True),),
    ).serial
    assert re.findall(r"^sector \d+$|^reread \d$", serial, re.MULTILINE) == [
        *("sector 64", "reread 1", "reread 0", "sector 72")
    ]
    assert "hdb2" not in serial.partition("sector 72")[2]
    assert re.search(r"^ +3 +65 +20 hdb1$", serial, re.MULTILINE)
    assert "\n72\n40\n1\nhead: /old: No such device or address\n" in serial
    assert serial.count("Invalid argument") == 1  # a partition has no table


SYS = {
    "size": "5000",
    "ro": "0",
    "removable": "0",
    "dev": "3:64",
    "inflight": "0 0",
    "queue/logical_block_size": "512",
    "queue/physical_block_size": "512",
    "queue/rotational": "1",
    "queue/scheduler": "fifo [c-look]",
    "queue/discard_granularity": "512",
    "queue/discard_max_bytes": str(64 * 65528 * SECTOR),
    "queue/max_sectors_kb": "128",
    "queue/zoned": "none",
}


def test_files_of_sys(said, tmp_path):
    """Every file of a drive and of its partition, found through each of the links; the counts are
    those of /proc/diskstats."""
    image = blank(tmp_path / "b.img", 5000)
    with image.open("r+b") as file:
        file.write(mbr((64, 100)))
    serial = said(
        "cat /dev/hdb1 >/dev/null; cd /sys/block/hdb; find . -type f | while read f; do "
        'echo "$f = $(cat $f | tr -s "\\n " ";")"; done;'
        "grep hdb /proc/diskstats; cat stat /sys/dev/block/3:65/stat; cd /sys/dev/block/3:65;"
        "pwd -P; cd -P ..; pwd -P; readlink /sys/class/block/hdb1; readlink /sys/block/hdb;"
        "cd /sys/block/hdb/queue; echo fifo >scheduler; cat scheduler; echo first >scheduler;"
        "grep hdb /proc/disks; echo 1 >rotational; rmdir /sys/block; umount /sys; cd /;"
        "umount /sys; ls /sys; mount -t sysfs none /sys && ls /sys",
        drives=(Drive(image, 1),),
    ).serial
    files = dict(re.findall(r"^\./(\S+) = (.*);$", serial, re.MULTILINE))
    assert {name: files.get(name, "").strip(";").replace(";", " ") for name in SYS} == SYS
    assert (
        len(files) > 35 and files["hdb1/start"] == "64" and "DEVNAME=hdb1" in files["hdb1/uevent"]
    )
    lines = re.findall(r"^ *(?:\d+ +){16}\d+$", serial, re.MULTILINE)
    counts = diskstats(serial)
    assert [list(map(int, line.split())) for line in lines] == [counts["hdb"], counts["hdb1"]]
    assert counts["hdb1"][2] == 100
    assert (
        "\n/sys/devices/hdb/hdb1\n/sys/devices/hdb\n../../devices/hdb/hdb1\n../devices/hdb\n"
        "[fifo] c-look\n"
    ) in serial
    assert re.search(r"^hdb +fifo", serial, re.MULTILINE)
    assert "write error: Invalid argument" in serial and "rotational: Permission denied" in serial
    assert "rmdir: '/sys/block': Operation not permitted" in serial
    assert "umount: can't unmount /sys: Device or resource busy" in serial
    assert serial.count("\nblock    class    dev      devices\n") == 1  # not while it is unmounted


# ---- the queue ----------------------------------------------------------------------------------


@dataclass
class Waiting:
    """A request that is submitted."""

    operation: str
    lba: int
    sectors: int

    @property
    def end(self) -> int:
        return self.lba + self.sectors

    def text(self) -> str:
        return "F" if self.operation == "F" else f"{self.operation}{self.lba}x{self.sectors}"


@dataclass
class Model:
    """What drivers/disk/queue.c does, in other words: the transfers for requests that are all
    submitted before the first is waited for."""

    order: str
    position: int
    transfers: list[tuple[str, int, int]] = field(default_factory=list)

    def run(self, requests: list[Waiting]) -> list[tuple[str, int, int]]:
        waiting = list(requests)
        while waiting:
            if waiting[0].operation == "F":
                self.transfers.append(("F", 0, 0))
                self.position = 0
                waiting.pop(0)
                continue
            ends = [i for i, each in enumerate(waiting) if each.operation == "F"]
            free = waiting[: ends[0]] if ends else waiting
            first = free[0] if self.order == "fifo" else min(free, key=self.distance)
            rest = [each for each in free if each is not first]
            low, high = first.lba, first.end
            while more := [each for each in rest if self.touches(each, first, low, high)]:
                rest.remove(more[0])
                low, high = min(low, more[0].lba), max(high, more[0].end)
            waiting = rest + waiting[len(free) :]
            self.transfers.append((first.operation, low, high - low))
            self.position = high
        return self.transfers

    def distance(self, request: Waiting) -> tuple[bool, int]:
        return request.lba < self.position, request.lba

    @staticmethod
    def touches(request: Waiting, first: Waiting, low: int, high: int) -> bool:
        return (
            request.operation == first.operation
            and (request.lba == high or request.end == low)
            and high - low + request.sectors <= TRANSFER
        )


def some_requests(rng: random.Random) -> list[Waiting]:
    """Few places, so that many touch; no two of them overlap."""
    size = rng.choice((1, 8, 8, 60))
    places = rng.sample(range(4096 // size), rng.randrange(2, 20))
    requests = [Waiting(rng.choice("RRW"), place * size, size) for place in places]
    for _ in range(rng.choice((0, 0, 1, 2))):
        requests.insert(rng.randrange(len(requests) + 1), Waiting("F", 0, 0))
    return requests


def transfers_of(records: list[Record]) -> list[tuple[str, int, int]]:
    return [(each.operation, each.lba, each.sectors) for each in records]


@pytest.mark.parametrize("mode", MODES)
def test_order_and_merging(guest, tmp_path, mode):
    """Forty random sets of requests: the transfers, in their order, are those of the model; and
    each request gets its own sectors."""
    rng = random.Random(SEED)
    image = blank(tmp_path / "b.img", 4096)
    sets = [(rng.choice(("fifo", "c-look")), some_requests(rng)) for _ in range(40)]
    lines = ["write hdb 0 4096"]
    expected, position = [], 4096
    for order, requests in sets:
        lines.append(f"queue hdb {order} " + " ".join(each.text() for each in requests))
        model = Model(order, position)
        expected += model.run(requests)
        position = model.position
    result = guest(
        "; ".join(lines),
        drives=[Drive(image, 1)],
        variables=("trace",),
        settings=(("disk", mode),),
        guest_limit=200,
    ).check()
    total, records = parse_trace(result.variables["trace"])
    assert transfers_of(records[-len(expected) :]) == expected
    before = total - len(expected)
    assert transfers_of(records[before - 1 : before]) == [("W", 4096 - TRANSFER, TRANSFER)]
    assert any(sectors > 60 for _, _, sectors in expected)


def test_an_error_is_one_requests_own(guest, tmp_path):
    """Three requests in one transfer, one of them over a bad sector: the other two are good."""
    image = blank(tmp_path / "b.img", 4096)
    drive = Drive(image, 1, errors=(DiskError("read", 1012),))
    script = "write hdb 1000 24; queue hdb c-look R1000 R1008 R1016"
    result = guest(script, drives=[drive], settings=(("disk", "dma-polled"),))
    assert result.status == 1
    assert re.findall(r"^queue: (.*)$", result.serial, re.MULTILINE) == [
        "R1008x8: EIO",
        "3 requests, 1 wrong",
    ]


def test_the_order_is_chosen_while_it_runs(said, tmp_path):
    drive = Drive(blank(tmp_path / "b.img", 4096), 1)
    serial = said(
        "cat /proc/disks; echo hdb fifo >/proc/disks; cat /proc/disks;"
        "echo hdb sorted >/proc/disks || echo refused; echo hdz fifo >/proc/disks || echo refused",
        drives=(drive,),
    ).serial
    assert re.findall(r"^hdb +(\S+)", serial, re.MULTILINE) == ["c-look", "fifo"]
    assert serial.count("\nrefused\n") == 2


# ---- beside a file system -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ext2", "ext4"])
def test_a_mounted_drive_shows_what_is_not_written_yet(said, tmp_path, kind):
    """The file of the drive and the block cache agree: a new name is seen in the raw drive before
    it is on the disk; a copy of the drive can be mounted while its pages are still dirty; and what
    is written raw after unmounting stays."""
    images = [blank(tmp_path / f"{unit}.img", 16384) for unit in (1, 2)]
    run_tool("mkfs.ext4", "-q", "-F", "-t", kind, "-O", "^metadata_csum", str(images[0]))
    result = said(
        "mkdir /mnt; mount -t ext4 /dev/hdb /mnt && head -c 1000 /dev/hdb >/dev/null;"
        "mkdir /mnt/a-new-name; grep -q a-new-name /dev/hdb && echo seen;"
        "echo text >/mnt/a-new-name/file; umount /mnt; cat /dev/hdb >/dev/hdc;"
        "mount -t ext4 /dev/hdc /mnt && cat /mnt/a-new-name/file; umount /mnt;"
        "printf new-label | dd of=/dev/hdc bs=1 seek=1144 conv=fsync 2>/dev/null",
        drives=tuple(Drive(image, unit, writable=True) for unit, image in enumerate(images, 1)),
    )
    assert "seen\ntext\n" in result.serial
    for image in images:
        run_tool("e2fsck", "-fn", str(image))
        assert run_tool("debugfs", "-R", "cat /a-new-name/file", str(image)) == "text\n"
    assert images[1].read_bytes()[1144:1160].startswith(b"new-label\0")

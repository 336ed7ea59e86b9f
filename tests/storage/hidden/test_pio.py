"""Exercise S1, hidden: every count and address, memory in pieces, two drives on a channel, drives
that fail, are late, or are gone. The drives are as strict as hardware, and QEMU's come last."""

from __future__ import annotations

import os
from random import Random

import pytest

from labs.tools.machine.qemu_command import DiskError, Drive
from tests.storage.ata import (
    EIO,
    ETIMEDOUT,
    FLUSH_WIDE,
    LARGE,
    NAMES,
    OK,
    READ,
    READ_BLOCKS,
    READ_BLOCKS_WIDE,
    READ_WIDE,
    WRITE,
    WRITE_BLOCKS,
    WRITE_BLOCKS_FORCED,
    WRITE_BLOCKS_WIDE,
    WRITE_WIDE,
    drives,
)

LBA28_END = (1 << 28) - 1


@pytest.mark.exercise("S1", points=2, gate=True, host=True)
@pytest.mark.parametrize("options", ["l", "lm", "-", "m"])
def test_counts(lab, options):
    """1 to 256 sectors, with and without blocks of 16: all are transferred."""
    random = Random(lab.seed)
    with drives(lab) as ata:
        ata.add("hdb", 100_000, options)
        ata.start()
        for seed, count in enumerate((1, 2, 15, 16, 17, 255, 256), start=10):
            lba = random.randrange(1, 90_000)
            has_blocks = "m" in options and count > 1
            step = ata.read("hdb", lba, count)
            step.require_read("hdb", lba, count)
            step.require_commands(READ_BLOCKS if has_blocks else READ)
            step = ata.write("hdb", lba, count, seed)
            step.require_result(OK)
            step.require_commands(WRITE_BLOCKS if has_blocks else WRITE)
            ata.require_written("hdb", lba, count, seed)


@pytest.mark.exercise("S1", points=2, gate=True, host=True)
@pytest.mark.parametrize("options", ["l", "lm"])
def test_addresses(lab, options):
    """The last sectors of LBA28, the first beyond, addresses above 32 bits, the drive's last
    sector: all are right."""
    count = 3
    places = (0, LBA28_END - 4, LBA28_END - 3, LBA28_END - 1, LBA28_END, LBA28_END + 1,
              0x1234567, (1 << 32) - 2, 0x3_A6B7_C8D9, LARGE - count)  # fmt: skip
    reads = {"l": (READ, READ_WIDE), "lm": (READ_BLOCKS, READ_BLOCKS_WIDE)}[options]
    writes = {"l": (WRITE, WRITE_WIDE), "lm": (WRITE_BLOCKS, WRITE_BLOCKS_WIDE)}[options]
    for lba in places:
        with drives(lab) as ata:
            ata.add("hda", LARGE, options)
            ata.start()
            step = ata.read("hda", lba, count)
            step.require_read("hda", lba, count)
            step.require_commands(reads[lba + count > LBA28_END])
            step = ata.write("hda", lba, count, 9)
            step.require_result(OK)
            step.require_commands(writes[lba + count > LBA28_END])
            ata.require_written("hda", lba, count, 9)


@pytest.mark.exercise("S1", points=1, host=True)
def test_256_sectors_beyond_lba28(lab):
    """256 sectors in LBA48: the count's high byte is written."""
    with drives(lab) as ata:
        ata.add("hda", LARGE, "lm")
        ata.start()
        step = ata.read("hda", 1 << 33, 256)
        step.require_read("hda", 1 << 33, 256)
        step.require_commands(READ_BLOCKS_WIDE)
        ata.write("hda", 1 << 33, 256, 7).require_result(OK)
        ata.require_written("hda", 1 << 33, 256, 7)


@pytest.mark.exercise("S1", points=1, host=True)
def test_pieces(lab):
    """Memory in pieces that begin at odd addresses and end within a block: all bytes are right."""
    pieces = "3@1,1@100,20@3,8@512,1@1"
    with drives(lab) as ata:
        ata.add("hda", 1000, "lm")
        ata.start()
        ata.read("hda", 50, pieces).require_read("hda", 50, 33)
        ata.write("hda", 150, pieces, 9).require_result(OK)
        ata.require_written("hda", 150, 33, 9)


@pytest.mark.exercise("S1", points=2, gate=True, host=True)
def test_two_drives_on_a_channel(lab):
    """Two drives on a channel: each command goes to its own drive."""
    random = Random(lab.seed)
    with drives(lab) as ata:
        for name in ("hda", "hdb", "hdd"):
            ata.add(name, LARGE, random.choice(("lm", "l")))
        ata.start()
        for seed in range(30, 42):
            name = random.choice(("hda", "hdb", "hdd"))
            lba = random.choice((100 * seed, LBA28_END + 9 * seed))
            ata.write(name, lba, 2, seed).require_result(OK)
            ata.require_written(name, lba, 2, seed)
            other = random.choice(("hda", "hdb", "hdd"))
            ata.read(other, 20_000, 2).require_read(other, 20_000, 2)


@pytest.mark.exercise("S1", points=2, host=True)
@pytest.mark.parametrize("error", [0x40, 0x10, 0x04, 0])
@pytest.mark.parametrize("options", ["l", "lm"])
def test_bad_sector_is_eio(lab, options, error):
    """ERR and DF in the first, a middle and the last block: -EIO. The rest of the drive and the
    other drive work."""
    with drives(lab) as ata:
        ata.add("hda", 1000, options)
        ata.add("hdb", 1000, options)
        ata.start()
        for bad, kind in ((100, "r"), (120, "r"), (139, "r"), (100, "w"), (139, "w")):
            ata.set("bad", 0, bad, kind, error, 0)
            if kind == "r":
                ata.read("hda", 100, 40).require_result(EIO)
            else:
                ata.write("hda", 100, 40, 5).require_result(EIO)
            ata.read("hda", 300, 3).require_read("hda", 300, 3)
            ata.read("hdb", 100, 40).require_read("hdb", 100, 40)


@pytest.mark.exercise("S1", points=1, host=True)
def test_error_that_passes(lab):
    """A sector that can be read at the second attempt: success."""
    with drives(lab) as ata:
        ata.add("hda", 1000, "lm")
        ata.start()
        ata.set("bad", 0, 50, "r", 0x40, 1)
        ata.read("hda", 50, 1).require_read("hda", 50, 1)


@pytest.mark.exercise("S1", points=2, host=True)
def test_late_drive(lab):
    """A drive that is given up and answers later: the next read gets its own sectors."""
    with drives(lab) as ata:
        ata.add("hda", 1000, "lm")
        ata.add("hdb", 1000, "l")
        ata.start()
        for count in (1, 20):
            ata.set("late", 0, 8_000_000)
            ata.read("hda", 10, count).require_result(OK, ETIMEDOUT)
            ata.read("hda", 500, 2).require_read("hda", 500, 2)
            ata.read("hdb", 600, 2).require_read("hdb", 600, 2)
            ata.write("hda", 700, 2, 8).require_result(OK)
            ata.require_written("hda", 700, 2, 8)


@pytest.mark.exercise("S1", points=1, host=True)
@pytest.mark.parametrize("mode", ["pio-polled", "pio-interrupt"])
def test_slow_drive(lab, mode):
    """A drive that takes 3 s to its first block, or from a write's last block to its end: it is
    waited for."""
    with drives(lab) as ata:
        ata.add("hda", 1000, "lm")
        ata.start(mode)
        for lba, what in ((40, "late"), (80, "tail")):
            ata.set(what, 0, 3_000_000)
            step = ata.write("hda", lba, 20, lba)
            step.require_result(OK)
            step.require("a drive that takes 3 s is given up", lambda s: not s.said)
            ata.require_written("hda", lba, 20, lba)
        ata.set("late", 0, 3_000_000)
        step = ata.read("hda", 400, 20)
        step.require_read("hda", 400, 20)
        step.require("a drive that takes 3 s is given up", lambda s: not s.said)


@pytest.mark.exercise("S1", points=1, host=True)
@pytest.mark.parametrize("name", ["hdb", "hdc"])
def test_stuck_drive(lab, name):
    """A drive that never answers: -ETIMEDOUT, on both channels. The channel is reset, so that the
    other drive works, and later this one."""
    number = NAMES.index(name)
    with drives(lab) as ata:
        ata.add(name, 1000, "l")
        ata.add(NAMES[number ^ 1], 1000, "l")
        ata.start()
        ata.set("stuck", number, 8_000_000)
        ata.read(name, 10, 1).require_result(ETIMEDOUT)
        ata.read(NAMES[number ^ 1], 500, 3).require_read(NAMES[number ^ 1], 500, 3)
        ata.write(name, 10, 2, 8).require_result(ETIMEDOUT)
        ata.set("stuck", number, 0)
        ata.read(name, 20, 3).require_read(name, 20, 3)


@pytest.mark.exercise("S1", points=1, host=True)
def test_what_failed_is_told(lab):
    """A failed command: the report has the drive's ERROR register."""
    with drives(lab) as ata:
        ata.add("hda", 1000, "l")
        ata.start()
        for error, words in ((0x40, "uncorrectable data"), (0x10, "sector not found")):
            ata.set("bad", 0, 50, "r", error, 0)
            step = ata.read("hda", 50, 1)
            step.require_result(EIO)
            wanted = f"{words} (status 0x41, error {error:#04x})"
            step.require(f"nobody says {wanted}", lambda s, w=wanted: w in "".join(s.said))


@pytest.mark.exercise("S1", points=2, host=True)
def test_with_interrupts(lab):
    """Sleeps: once before each block of a read and after each block of a write, and nowhere else,
    also after a reset."""
    with drives(lab) as ata:
        ata.add("hda", 1000, "lm")
        ata.start("pio-interrupt")
        for at, count, blocks in ((100, 1, 1), (200, 16, 1), (300, 40, 3)):
            for what in ("read", "write"):
                ata.set("bad", 0, 50, "r", 0x40, 1)
                ata.read("hda", 50, 1).require_read("hda", 50, 1)
                write = what == "write"
                step = ata.write("hda", at, count, at) if write else ata.read("hda", at, count)
                if write:
                    step.require_result(OK)
                    ata.require_written("hda", at, count, at)
                else:
                    step.require_read("hda", at, count)
                step.require("an interrupt was lost", lambda s: "was lost" not in "".join(s.said))
                message = f"the task does not sleep {blocks} times"
                step.require(message, lambda s, wanted=blocks: s.sleeps == wanted)


@pytest.mark.exercise("S1", points=1, host=True)
def test_answer_at_once(lab):
    """An interrupt as soon as COMMAND is written: it is not lost. One that comes before that, from
    a drive that was busy, is forgotten."""
    with drives(lab) as ata:
        ata.add("hda", 1000, "lm")
        ata.start("pio-interrupt")
        for lba, what in ((10, "late"), (200, "busy"), (400, "late"), (600, "busy")):
            ata.set(what, 0, 3000 * (what == "busy"))
            step = ata.read("hda", lba, 20)
            step.require_read("hda", lba, 20)
            step.require("an interrupt was lost", lambda s: "was lost" not in "".join(s.said))


@pytest.mark.exercise("S1", points=1, host=True)
def test_drive_that_is_gone(lab):
    """A channel that floats: -EIO at once. A drive that comes back works."""
    with drives(lab) as ata:
        ata.add("hda", 1000, "l")
        ata.add("hdc", 1000, "l")
        ata.start()
        ata.set("gone", 0, 1)
        step = ata.read("hda", 5, 1)
        step.require_result(EIO)
        step.require("a floating bus is waited for", lambda s: "stays busy" not in "".join(s.said))
        ata.read("hdc", 5, 1).require_read("hdc", 5, 1)
        ata.set("gone", 0, 0)
        ata.read("hda", 6, 3).require_read("hda", 6, 3)


@pytest.mark.exercise("S1", points=1, host=True)
@pytest.mark.parametrize("name", ["hda", "hdd"])
def test_drive_whose_neighbour_stays(lab, name):
    """A drive that is unplugged while the other one of its channel stays: its status is 0, and it
    is asked once."""
    number = NAMES.index(name)
    with drives(lab) as ata:
        for each in (number, number ^ 1):
            ata.add(NAMES[each], 1000, "l")
        ata.start()
        ata.set("away", number, 1)
        for step in (ata.read(name, 5, 1), ata.read(name, 5, 3)):
            step.require_result(EIO)
            step.require("a drive that is gone is asked once", lambda s: len(s.said) == 1)
        ata.read(NAMES[number ^ 1], 5, 1).require_read(NAMES[number ^ 1], 5, 1)
        ata.set("away", number, 0)
        ata.read(name, 6, 3).require_read(name, 6, 3)


@pytest.mark.exercise("S1", points=1, host=True)
def test_absent_drives(lab):
    """A second drive alone, and a channel without drives: found, and not found."""
    with drives(lab) as ata:
        ata.add("hdb", 1000, "l")
        step = ata.start()
        step.require("3 drives are absent", lambda s: "".join(s.said).count("no drive") == 3)
        ata.read("hdb", 5, 3).require_read("hdb", 5, 3)


@pytest.mark.exercise("S1", points=2, host=True)
@pytest.mark.parametrize("selected", [0, 1])
def test_what_is_before_the_command(lab, selected):
    """A selected drive that is busy or has data: its registers are not written before that is
    over."""
    with drives(lab) as ata:
        for name in NAMES[:2]:
            ata.add(name, 1000, "l")
        ata.start()
        for asked in (0, 1):
            for number in {selected, asked}:
                ata.read(NAMES[selected], 10, 1).require_read(NAMES[selected], 10, 1)
                ata.set("busy", number, 3_000_000)
                step = ata.read(NAMES[asked], 600, 3)
                step.require_read(NAMES[asked], 600, 3)
                step.require("a drive that is busy for 3 s is given up", lambda s: not s.said)
            ata.read(NAMES[selected], 10, 1).require_read(NAMES[selected], 10, 1)
            ata.set("left", selected)
            ata.read(NAMES[asked], 500, 2).require_read(NAMES[asked], 500, 2)


@pytest.mark.exercise("S1", points=1, host=True)
def test_forced_writes(lab):
    """Forced writes: FUA where the drive has it, also for one sector; a flush afterwards where it
    has not."""
    with drives(lab) as ata:
        ata.add("hda", 1000, "lmf")
        ata.add("hdc", 1000, "lm")
        ata.start()
        step = ata.write("hda", 40, 20, 6, "forced")
        step.require_commands(WRITE_BLOCKS_FORCED)
        ata.require_written("hda", 40, 20, 6)
        step = ata.write("hda", 90, 1, 7, "forced")
        step.require_commands(WRITE_BLOCKS_FORCED)
        ata.require_written("hda", 90, 1, 7)
        step = ata.write("hdc", 40, 20, 6, "forced")
        step.require_commands(WRITE_BLOCKS, FLUSH_WIDE)
        ata.require_written("hdc", 40, 20, 6)


@pytest.mark.exercise("S1", points=2, gate=True, once=True)
def test_qemus_drives(lab, tmp_path):
    """QEMU's drives: data are in the image, a bad sector is an error, and the next one is read."""
    random = Random(lab.seed)
    image = tmp_path / "disk.img"
    image.write_bytes(b"")
    os.truncate(image, 5_000_000_000_000)
    places = [random.randrange(100, 10_000), LBA28_END + random.randrange(9), 1 << 33]
    counts = [random.randrange(1, 300) for _ in places]
    bad = places[0] + counts[0] + 50
    drive = Drive(image, 1, writable=True, errors=(DiskError("read", bad),))
    script = "; ".join(
        f"write hdb {lba} {count} 7; verify hdb {lba} {count} 7"
        for lba, count in zip(places, counts, strict=True)
    )
    script += f"; read hdb {bad}; read hdb {bad + 1}"
    settings = (("disk", "pio-polled"),)
    result = lab.run(script, drives=[drive], settings=settings, trace=True)
    assert "verify hdb: EUCLEAN" not in result.serial
    assert result.serial.count(f"sectors at LBA {bad} failed") >= 1, result.serial[-800:]
    assert "read: EIO" in result.serial
    assert "1 sectors, crc32" in result.serial.split(f"read hdb {bad + 1}")[1]
    with image.open("rb") as file:
        for lba, count in zip(places, counts, strict=True):
            words = ((7 << 48) + word for word in range(lba * 64, (lba + count) * 64))
            wanted = b"".join(word.to_bytes(8, "little") for word in words)
            assert os.pread(file.fileno(), len(wanted), lba * 512) == wanted, f"LBA {lba}"

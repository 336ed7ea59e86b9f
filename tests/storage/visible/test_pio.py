"""Exercise S1: sectors, word by word. The driver runs on this computer, with drives that are as
strict as hardware (tests/storage/host/ata_drives.c), and in QEMU.

Not looked at here, but by the graders: addresses beyond LBA28, more counts around the blocks,
memory in pieces, drives that fail, that are late, that are gone, and commands to both drives of a
channel in turns.
"""

from __future__ import annotations

import zlib

import pytest

from labs.tools.machine.qemu_command import Drive
from tests.storage.ata import OK, READ, WRITE, at_end, drives
from tests.support.told import Usual, expect, require, told

HINT = "make hint EX=S1"
USUAL = (
    Usual("DRQ clear", "each block begins when STATUS says so: wait, then look at DRQ, then move"),
    Usual("400 ns", "ata_settle comes after DEVICE and after COMMAND were written"),
    Usual("BSY set", "ata_send sends when the selected drive is idle (ata_poll), and not before"),
    Usual("SOFT_RESET", "it stays set for RESET_PULSE_NS: wait_ns"),
    Usual("does not know", "ata_identify has found no drive: what does ata_send return, and does "
          "ata_select name the right one of the two?"),
    Usual("does not have the sectors", "are the address and the count in the right registers?"),
)  # fmt: skip


@pytest.mark.exercise("S1", points=1, gate=True, host=True)
def test_reads_a_sector(lab):
    """One sector, of a drive that moves one at a time."""
    with told(USUAL, HINT), drives(lab) as ata:
        ata.add("hda", 5000, "l")
        ata.start()
        step = ata.read("hda", 77, 1)
        step.require_read("hda", 77, 1)
        step.require_commands(READ)


@pytest.mark.exercise("S1", points=1, gate=True, host=True)
def test_writes_a_sector(lab):
    """What was in memory is on the drive, and its neighbours are as before."""
    with told(USUAL, HINT), drives(lab) as ata:
        ata.add("hda", 5000, "l")
        ata.start()
        step = ata.write("hda", 77, 1, lab.seed % 1000 + 10)
        step.require_result(OK)
        step.require_commands(WRITE)
        ata.require_written("hda", 77, 1, lab.seed % 1000 + 10)


@pytest.mark.exercise("S1", points=1, host=True)
def test_several_sectors(lab):
    """Three sectors are one command, and three times DRQ."""
    with told(USUAL, HINT), drives(lab) as ata:
        ata.add("hda", 5000, "l")
        ata.start()
        ata.read("hda", 10, 3).require_read("hda", 10, 3)
        ata.write("hda", 20, 3, 99).require_result(OK)
        ata.require_written("hda", 20, 3, 99)


@pytest.mark.exercise("S1", points=1, host=True)
def test_blocks(lab):
    """A drive that moves 16 sectors at a time: the last block is what is left."""
    last = "a block has drive->multiple sectors, and the last one as many as are left"
    usual = (*USUAL, Usual("(read|write) 0 [0-9]+ 20", last))
    with told(usual, HINT), drives(lab) as ata:
        ata.add("hda", 5000, "lm")
        ata.start()
        ata.read("hda", 200, 16).require_read("hda", 200, 16)
        ata.read("hda", 10, 20).require_read("hda", 10, 20)
        ata.write("hda", 40, 20, 99).require_result(OK)
        ata.require_written("hda", 40, 20, 99)


@pytest.mark.exercise("S1", points=1, host=True)
def test_second_drive(lab):
    """The second drive of a channel has sectors of its own."""
    slave = Usual("hdb", "DEVICE_SLAVE in DEVICE selects the second drive (is_slave)")
    with told((*USUAL[:-1], slave), HINT), drives(lab) as ata:
        ata.add("hda", 5000, "l")
        ata.add("hdb", 5000, "l")
        ata.start()
        ata.read("hdb", 77, 1).require_read("hdb", 77, 1)
        ata.read("hda", 77, 1).require_read("hda", 77, 1)
        ata.write("hdb", 80, 1, 99).require_result(OK)
        ata.require_written("hdb", 80, 1, 99)


@pytest.mark.exercise("S1", points=1, once=True)
def test_reads_in_qemu(lab, tmp_path):
    """The kernel finds a drive, and reads its last sector."""
    data = bytes(range(256)) * 2
    image = tmp_path / "disk.img"
    image.write_bytes(bytes(99 * 512) + data)
    usual = (*USUAL, "the registers of a command, one after the other: replay, then break ata_send")
    with told(usual, HINT):
        drive = Drive(image, 0)
        settings = (("disk", "pio-polled"),)
        result = at_end(lab.run("drives; read hda 99", drives=[drive], settings=settings))
        found = "hda: QEMU HARDDISK" in result.serial
        require(found, "the kernel does not find the drive hda")
        seen = [line for line in result.serial.splitlines() if "crc32" in line]
        wanted = f"1 sectors, crc32 {zlib.crc32(data):#010x}"
        expect("what `read hda 99` prints", seen[-1] if seen else "no checksum", wanted)

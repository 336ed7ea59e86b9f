"""Exercise S2: interrupts and DMA. The drives are as strict as hardware (tests/storage/host), and
in the last test QEMU's.

Not looked at here, but by the graders: memory in other pieces, and out of reach, interrupts from
nobody and between the last look and the sleep, two drives in every mode, errors of the controller,
and a change of the mode while a request is under way.
"""

from __future__ import annotations

import zlib

import pytest

from labs.tools.machine.qemu_command import Drive
from tests.storage.ata import OK, READ_BLOCKS, READ_DMA, WRITE_DMA, at_end, drives
from tests.support.told import Usual, expect, require, told

HINT = "make hint EX=S2"
BORDER = 65536 - 4096  # the first piece begins 4096 bytes after a multiple of 64 KiB
USUAL = (
    Usual("still raises", "on_interrupt reads STATUS; the other status register does not do it"),
    Usual("nothing will wake", "the interrupt came before the sleep: look at is_answered, and "
          "sleep, with interrupts disabled"),
    Usual("interrupts enabled", "wait_sleep_blocked is called with interrupts disabled"),
    Usual("never sleeps", "use sets has_interrupts, and ata_answer then calls sleep_while"),
    Usual("was lost", "is_answered is set by on_interrupt, and looked at before each sleep"),
    Usual("other direction", "TO_MEMORY is for a read; START is written together with it"),
    Usual("old bits", "STATUS_FAULT and STATUS_HAS_INTR are cleared by writing ones"),
    Usual("not stopped", "write COMMAND_REGISTER without START when the drive has answered"),
    Usual("64 KiB", "a region ends at the next multiple of 64 KiB of its address"),
    Usual("table", "entries: physical address, bytes, and LAST in the flags of the last one"),
)  # fmt: skip


@pytest.mark.exercise("S2", points=1, gate=True, host=True)
def test_dma_polled(lab):
    """A read and a write of eight sectors."""
    with told(USUAL, HINT), drives(lab) as ata:
        ata.add("hda", 5000, "lmd")
        ata.start("dma-polled")
        step = ata.read("hda", 70, 8)
        step.require_read("hda", 70, 8)
        step.require_commands(READ_DMA)
        step = ata.write("hda", 90, 8, 33)
        step.require_result(OK)
        step.require_commands(WRITE_DMA)
        ata.require_written("hda", 90, 8, 33)


@pytest.mark.exercise("S2", points=1, gate=True, host=True)
def test_pio_by_interrupt(lab):
    """A read of 40 sectors in three blocks: the task sleeps three times."""
    with told(USUAL, HINT), drives(lab) as ata:
        ata.add("hda", 5000, "lmd")
        ata.start("pio-interrupt")
        ata.set("wire")
        step = ata.read("hda", 70, 40)
        step.require_read("hda", 70, 40)
        step.require_commands(READ_BLOCKS)
        step.require_sleep(True)
        step.require("an interrupt was lost", lambda s: "was lost" not in "".join(s.said))


@pytest.mark.exercise("S2", points=1, host=True)
def test_dma_by_interrupt(lab):
    """Several requests, one after the other."""
    with told(USUAL, HINT), drives(lab) as ata:
        ata.add("hda", 5000, "lmd")
        ata.start("dma-interrupt")
        for lba in (1, 100, 2000):
            step = ata.read("hda", lba, 16)
            step.require_read("hda", lba, 16)
            step.require_sleep(True)
            step.require("an interrupt was lost", lambda s: "was lost" not in "".join(s.said))


@pytest.mark.exercise("S2", points=1, host=True)
@pytest.mark.parametrize("mode", ["dma-interrupt", "pio-interrupt"])
def test_interrupt_that_comes_early(lab, mode):
    """The drive has answered before the task can sleep: it does not sleep for ever."""
    with told(USUAL, HINT), drives(lab) as ata:
        ata.add("hda", 5000, "lmd")
        ata.start(mode)
        for lba in (10, 2000):
            ata.set("late", 0, 0)
            step = ata.read("hda", lba, 2)
            step.require_read("hda", lba, 2)
            step.require("an interrupt was lost", lambda s: "was lost" not in "".join(s.said))


@pytest.mark.exercise("S2", points=1, host=True)
def test_handler_reads_status(lab):
    """Who handles an interrupt makes the drive withdraw it: STATUS is read."""
    with told(USUAL, HINT), drives(lab) as ata:
        ata.add("hda", 5000, "lmd")
        ata.start("pio-interrupt")
        ata.set("wire")
        ata.read("hda", 70, 40).require_read("hda", 70, 40)


@pytest.mark.exercise("S2", points=1, host=True)
def test_interrupt_that_is_lost(lab):
    """The drive is done, and its interrupt never comes: after a while the task looks itself."""
    silent = Usual("nobody says", "sleep_while: the time was over, and yet the drive has an answer")
    with told((silent, *USUAL), HINT), drives(lab) as ata:
        ata.add("hda", 5000, "lmd")
        ata.start("dma-interrupt")
        ata.set("lose", 0, 1)
        step = ata.read("hda", 10, 2)
        step.require_read("hda", 10, 2)
        step.require("nobody says that an interrupt was lost", lambda s: "lost" in "".join(s.said))


@pytest.mark.exercise("S2", points=1, host=True)
def test_border_of_64_kib(lab):
    """Memory that crosses a multiple of 64 KiB, and a piece that is longer than that."""
    with told(USUAL, HINT), drives(lab) as ata:
        ata.add("hda", 5000, "lmd")
        ata.start("dma-polled")
        for count, pieces in ((3, f"3@{BORDER - 512 * 2}"), (200, "200")):
            step = ata.read("hda", 1000, pieces)
            step.require_read("hda", 1000, count)
            step.require_commands(READ_DMA)
            ata.write("hda", 3000, pieces, count).require_result(OK)
            ata.require_written("hda", 3000, count, count)


@pytest.mark.exercise("S2", points=1, once=True)
def test_dma_in_qemu(lab, tmp_path):
    """The kernel reads by DMA, and sleeps meanwhile."""
    data = bytes(range(256)) * 16
    image = tmp_path / "disk.img"
    image.write_bytes(bytes(99 * 512) + data)
    with told(USUAL, HINT):
        disk = [Drive(image, 0)]  # 60 s: each interrupt that is lost costs five
        result = at_end(lab.run("read hda 99 8", drives=disk, trace=True, guest_limit=60))
        lost = [line for line in result.serial.splitlines() if "was lost" in line]
        require(not lost, f"an interrupt was lost: {''.join(lost[:1]).strip()}")
        seen = [line for line in result.serial.splitlines() if "crc32" in line]
        wanted = f"8 sectors, crc32 {zlib.crc32(data):#010x}"
        expect("what `read hda 99 8` prints", seen[-1] if seen else "no checksum", wanted)
        ways = [each.way for each in result.requests["hda"][1:]]
        expect("how QEMU was asked for it", ways, ["dma"])

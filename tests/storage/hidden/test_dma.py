"""Exercise S2, hidden: memory in every kind of pieces, interrupts that come early, late, never or
from nobody, errors of drive and controller, and modes that change during a request."""

from __future__ import annotations

import zlib
from random import Random

import pytest

from labs.tools.machine.qemu_command import Drive
from tests.storage.ata import (
    DISCARD,
    EIO,
    ETIMEDOUT,
    FLUSH_WIDE,
    LARGE,
    OK,
    READ,
    READ_BLOCKS,
    READ_DMA,
    READ_DMA_WIDE,
    WRITE_DMA,
    WRITE_DMA_FORCED,
    WRITE_DMA_WIDE,
    Step,
    drives,
)

MODES = ("dma-interrupt", "dma-polled", "pio-interrupt", "pio-polled")
SLEEPING = ("dma-interrupt", "pio-interrupt")
DMA = ("dma-interrupt", "dma-polled")
FIRST = 4096  # where the first piece begins after a multiple of 64 KiB


def require_no_loss(step: Step) -> None:
    """No interrupt was lost."""
    step.require("an interrupt was lost", lambda s: "was lost" not in "".join(s.said))


def require_way(step: Step, mode: str, code: int) -> None:
    """What a transfer in this mode shows; code: its command by DMA."""
    step.require_sleep(mode in SLEEPING)
    require_no_loss(step)
    if mode in DMA:
        step.require_commands(code)
    else:
        step.require("it goes by DMA", lambda s: all(each.code != code for each in s.commands))


@pytest.mark.exercise("S2", points=2, gate=True, host=True)
@pytest.mark.parametrize("mode", MODES)
def test_every_mode(lab, mode):
    """Changes between all modes: reads and writes of two drives on a channel are right, in LBA28
    and LBA48."""
    before = MODES[3 - MODES.index(mode)]
    random = Random(lab.seed)
    with drives(lab) as ata:
        ata.add("hda", LARGE, "lmd")
        ata.add("hdb", LARGE, "lmd")
        ata.start(before)
        require_way(ata.read("hda", 30, 16), before, READ_DMA)
        ata.set("mode", mode)
        for seed in range(40, 48):
            name, count = random.choice(("hda", "hdb")), random.choice((1, 2, 16, 17, 100, 256))
            lba = seed * 1000 + (random.choice((0, 1)) << 32)
            step = ata.write(name, lba, count, seed)
            step.require_result(OK)
            require_way(step, mode, WRITE_DMA_WIDE if lba >> 32 else WRITE_DMA)
            ata.require_written(name, lba, count, seed)
            step = ata.read(name, lba + 500, count)
            step.require_read(name, lba + 500, count)
            require_way(step, mode, READ_DMA_WIDE if lba >> 32 else READ_DMA)


@pytest.mark.exercise("S2", points=2, host=True)
def test_limits_of_64_kib(lab):
    """Buffers across, up to and of exactly 64 KiB: no entry of the table crosses a multiple of 64
    KiB."""
    to_border = 65536 - FIRST
    pieces = ("256", f"3@{to_border - 512 * 2}", f"3@{to_border - 1000},200", f"128@{to_border}",
              f"4@{to_border - 2048},128", f"1@{to_border - 2},1@65024,2",
              ",".join(["1@2"] * 256))  # fmt: skip
    with drives(lab) as ata:
        ata.add("hda", LARGE, "lmd")
        ata.start("dma-polled")
        for seed, text in enumerate(pieces, start=50):
            count = sum(int(each.partition("@")[0]) for each in text.split(","))
            step = ata.read("hda", seed * 1000, text)
            step.require_read("hda", seed * 1000, count)
            step.require_commands(READ_DMA)
            ata.write("hda", seed * 1000, text, seed).require_result(OK)
            ata.require_written("hda", seed * 1000, count, seed)


@pytest.mark.exercise("S2", points=1, host=True)
def test_many_pieces(lab):
    """Memory that is nowhere contiguous: all pieces arrive."""
    random = Random(lab.seed)
    text = ",".join(f"{random.randrange(1, 3)}@{2 * random.randrange(1, 400)}" for _ in range(100))
    count = sum(int(each.partition("@")[0]) for each in text.split(","))
    with drives(lab) as ata:
        ata.add("hda", LARGE, "lmd")
        ata.start("dma-interrupt")
        step = ata.read("hda", 7000, text)
        step.require_read("hda", 7000, count)
        step.require_commands(READ_DMA)
        ata.write("hda", 9000, text, 5).require_result(OK)
        ata.require_written("hda", 9000, count, 5)


@pytest.mark.exercise("S2", points=1, host=True)
@pytest.mark.parametrize("pieces", ["4@1", "2,2@3", "4s", "2,2s", "4b", "2,2b"])
def test_memory_that_dma_does_not_reach(lab, pieces):
    """Odd addresses, and memory outside the direct map: such requests use PIO."""
    with drives(lab) as ata:
        ata.add("hda", 9000, "lmd")
        ata.start("dma-interrupt")
        step = ata.read("hda", 80, pieces)
        step.require_read("hda", 80, 4)
        step.require_commands(READ_BLOCKS)


@pytest.mark.exercise("S2", points=1, host=True)
@pytest.mark.parametrize("pieces", ["1b", "2,1b,2"])
def test_end_of_the_direct_map(lab, pieces):
    """A buffer that ends where the direct map ends: DMA reaches it."""
    count = sum(int(each.rstrip("b")) for each in pieces.split(","))
    with drives(lab) as ata:
        ata.add("hda", 9000, "lmd")
        ata.start("dma-interrupt")
        step = ata.read("hda", 80, pieces)
        step.require_read("hda", 80, count)
        step.require_commands(READ_DMA)


@pytest.mark.exercise("S2", points=1, host=True)
def test_drive_without_dma(lab):
    """A drive without DMA: it uses PIO, the other one on its channel DMA."""
    with drives(lab) as ata:
        ata.add("hda", 9000, "l")
        ata.add("hdb", 9000, "ld")
        ata.start("dma-interrupt")
        step = ata.read("hda", 80, 1)
        step.require_read("hda", 80, 1)
        step.require_commands(READ)
        step = ata.read("hdb", 80, 1)
        step.require_read("hdb", 80, 1)
        step.require_commands(READ_DMA)


@pytest.mark.exercise("S2", points=1, host=True)
@pytest.mark.parametrize("mode", SLEEPING)
def test_early_interrupt(lab, mode):
    """An interrupt before the task sleeps: it is not lost."""
    with drives(lab) as ata:
        ata.add("hda", 9000, "lmd")
        ata.start(mode)
        for lba in (10, 2000, 4000):
            ata.set("late", 0, 0)
            step = ata.read("hda", lba, 2)
            step.require_read("hda", lba, 2)
            require_no_loss(step)


@pytest.mark.exercise("S2", points=1, host=True)
@pytest.mark.parametrize("mode", SLEEPING)
def test_interrupt_before_the_sleep(lab, mode):
    """An interrupt at the last moment before the sleep: it is not lost."""
    with drives(lab) as ata:
        ata.add("hda", 9000, "lmd")
        ata.start(mode)
        for lba in (10, 2000, 4000):
            ata.set("tight")
            step = ata.read("hda", lba, 2)
            step.require_read("hda", lba, 2)
            require_no_loss(step)


@pytest.mark.exercise("S2", points=1, host=True)
@pytest.mark.parametrize("mode", SLEEPING)
def test_interrupt_after_a_look(lab, mode):
    """An answer that comes just after STATUS has said that the drive is busy: it is not lost."""
    with drives(lab) as ata:
        ata.add("hda", 9000, "lmd")
        ata.start(mode)
        for lba in (10, 2000):
            ata.set("stray", 0)
            ata.set("edge")
            step = ata.read("hda", lba, 2)
            step.require_read("hda", lba, 2)
            require_no_loss(step)


@pytest.mark.exercise("S2", points=1, host=True)
@pytest.mark.parametrize("mode", SLEEPING)
def test_channel_that_floats(lab, mode):
    """A channel that floats after a command, and an interrupt: nobody waits for a drive."""
    with drives(lab) as ata:
        ata.add("hda", 9000, "lmd")
        ata.start(mode)
        ata.set("unplug", 0)
        ata.set("stray", 0)
        step = ata.read("hda", 100, 2)
        step.require_result(EIO)
        step.require_sleep(False)
        ata.set("gone", 0, 0)
        ata.read("hda", 200, 2).require_read("hda", 200, 2)


@pytest.mark.exercise("S2", points=1, host=True)
@pytest.mark.parametrize(("options", "master"), [("lm", ""), ("lmd", "none")])
def test_without_dma(lab, options, master):
    """A drive without DMA, and a channel without a bus master, in a mode with DMA: PIO."""
    with drives(lab) as ata:
        ata.add("hda", 9000, options)
        ata.start(f"dma-interrupt {master}".rstrip())
        step = ata.read("hda", 100, 20)
        step.require_read("hda", 100, 20)
        step.require_commands(READ_BLOCKS)
        require_no_loss(step)


@pytest.mark.exercise("S2", points=1, host=True)
@pytest.mark.parametrize("mode", DMA)
def test_slow_drive(lab, mode):
    """A drive that takes 3 s: it is waited for."""
    with drives(lab) as ata:
        ata.add("hdc", 9000, "lmd")
        ata.start(mode)
        ata.set("late", 2, 3_000_000)
        step = ata.read("hdc", 100, 20)
        step.require_read("hdc", 100, 20)
        step.require("a drive that takes 3 s is given up", lambda s: not s.said)


@pytest.mark.exercise("S2", points=1, host=True)
@pytest.mark.parametrize("mode", SLEEPING)
def test_stray_interrupt(lab, mode):
    """An interrupt while the drive is still busy: it is not taken for the answer."""
    with drives(lab) as ata:
        ata.add("hda", 9000, "lmd")
        ata.start(mode)
        for lba in (10, 2000):
            ata.set("stray", 0)
            step = ata.read("hda", lba, 20)
            step.require_read("hda", lba, 20)
            step.require_commands(READ_DMA if mode in DMA else READ_BLOCKS)
            require_no_loss(step)
            ata.read("hda", lba + 100, 20).require_read("hda", lba + 100, 20)


@pytest.mark.exercise("S2", points=1, host=True)
@pytest.mark.parametrize("mode", SLEEPING)
def test_interrupts_of_nobody_for_ever(lab, mode):
    """Stray interrupts while the drive is busy: the timeout does not begin again."""
    with drives(lab) as ata:
        ata.add("hda", 9000, "lmd")
        ata.start(mode)
        ata.set("strays", 0, 1_000_000)
        ata.set("late", 0, 20_000_000)
        step = ata.read("hda", 500, 1)
        step.require_read("hda", 500, 1)
        step.require("it is not told that the drive stays busy", lambda s: "busy" in str(s.said))
        require_no_loss(step)
        ata.set("strays", 0, 0)
        ata.read("hda", 600, 20).require_read("hda", 600, 20)


@pytest.mark.exercise("S2", points=1, host=True)
@pytest.mark.parametrize("mode", SLEEPING)
def test_lost_interrupt(lab, mode):
    """A lost interrupt: the answer is found at the timeout, and the loss is reported. The next one
    is not late."""
    with drives(lab) as ata:
        ata.add("hda", 9000, "lmd")
        ata.start(mode)
        ata.set("lose", 0, 1)
        step = ata.read("hda", 10, 2)
        step.require_read("hda", 10, 2)
        step.require("nobody says that an interrupt was lost", lambda s: "lost" in "".join(s.said))
        for lba in (500, 600, 700):
            step = ata.read("hda", lba, 2)
            step.require_read("hda", lba, 2)
            require_no_loss(step)


@pytest.mark.exercise("S2", points=2, host=True)
@pytest.mark.parametrize("mode", DMA)
def test_errors(lab, mode):
    """A bad sector is -EIO, a drive that is late is given up, and the controller is stopped each
    time."""
    with drives(lab) as ata:
        ata.add("hda", 9000, "lmd")
        ata.add("hdb", 9000, "lmd")
        ata.start(mode)
        for kind in "rw":
            ata.set("bad", 0, 120, kind, 0x40, 0)
            if kind == "r":
                ata.read("hda", 100, 40).require_result(EIO)
            else:
                ata.write("hda", 100, 40, 5).require_result(EIO)
            ata.read("hdb", 100, 40).require_read("hdb", 100, 40)
            ata.read("hda", 300, 3).require_read("hda", 300, 3)
        ata.set("late", 0, 8_000_000)
        ata.read("hda", 500, 20).require_result(OK, ETIMEDOUT)
        ata.read("hda", 600, 20).require_read("hda", 600, 20)
        ata.read("hdb", 700, 20).require_read("hdb", 700, 20)


@pytest.mark.exercise("S2", points=1, host=True)
@pytest.mark.parametrize("mode", SLEEPING)
def test_each_sleep_is_for_an_answer(lab, mode):
    """Sleeps: one for each answer. A late drive has not lost an interrupt, and each wait has its
    own timeout."""
    with drives(lab) as ata:
        ata.add("hda", 9000, "lmd")
        ata.start(mode)
        wanted = 1 if mode in DMA else 3
        for lba in (10, 2000, 4000):
            step = ata.read("hda", lba, 40)
            step.require_read("hda", lba, 40)
            message = f"the task does not sleep {wanted} times"
            step.require(message, lambda s: s.sleeps == wanted)
        ata.set("late", 0, 8_000_000)
        step = ata.read("hda", 500, 1)
        step.require_read("hda", 500, 1)
        require_no_loss(step)
        step.require("it is not told that the drive stays busy", lambda s: "busy" in str(s.said))
        for lba in (6000, 7000):
            step = ata.read("hda", lba, 40)
            step.require_read("hda", lba, 40)
            step.require(f"after a late answer {message}", lambda s: s.sleeps == wanted)


@pytest.mark.exercise("S2", points=1, host=True)
@pytest.mark.parametrize("mode", DMA)
def test_transfer_without_end(lab, mode):
    """A drive that still moves data at the timeout: the whole transfer is tried again."""
    with drives(lab) as ata:
        ata.add("hda", 9000, "lmd")
        ata.start(mode)
        for lba in (100, 300):
            ata.set("stall", 0)
            step = ata.read("hda", lba, 20)
            step.require_read("hda", lba, 20)
            step.require_commands(READ_DMA, READ_DMA)


@pytest.mark.exercise("S2", points=1, host=True)
@pytest.mark.parametrize("mode", ["dma-polled", "pio-interrupt"])
def test_discard(lab, mode):
    """Discarded sectors: they read as zeros, and no others change."""
    with drives(lab) as ata:
        ata.add("hda", LARGE, "lmdt")
        ata.start(mode)
        step = ata.set("discard", 0, 1 << 33, 20)
        step.require_result(OK)
        step.require_commands(DISCARD)
        step = ata.set("peek", 0, 1 << 33, 20)
        wanted = f"{zlib.crc32(bytes(20 * 512)):08x}"
        step.require("what was discarded has contents", lambda s: s.crc == wanted)
        for lba in (0, (1 << 33) - 1, (1 << 33) + 20):
            ata.read("hda", lba, 1).require_read("hda", lba, 1)


@pytest.mark.exercise("S2", points=1, host=True)
@pytest.mark.parametrize("mode", DMA)
def test_error_of_the_controller(lab, mode):
    """An error of the controller with a satisfied drive: the request fails."""
    with drives(lab) as ata:
        ata.add("hda", 9000, "lmd")
        ata.start(mode)
        ata.set("fault", 0)
        ata.read("hda", 100, 20).require_read("hda", 100, 20)
        ata.set("fault", 0)
        ata.write("hda", 300, 20, 9).require_result(OK)
        ata.require_written("hda", 300, 20, 9)


@pytest.mark.exercise("S2", points=1, host=True)
def test_forced_writes(lab):
    """Forced writes by DMA: with FUA, or with a flush after them on drives without it."""
    with drives(lab) as ata:
        ata.add("hda", 9000, "lmdf")
        ata.add("hdc", 9000, "lmd")
        ata.start("dma-interrupt")
        step = ata.write("hda", 40, 20, 6, "forced")
        step.require_commands(WRITE_DMA_FORCED)
        ata.require_written("hda", 40, 20, 6)
        step = ata.write("hdc", 40, 20, 6, "forced")
        step.require_commands(WRITE_DMA, FLUSH_WIDE)
        require_no_loss(step)
        ata.require_written("hdc", 40, 20, 6)


@pytest.mark.exercise("S2", points=2, host=True)
@pytest.mark.parametrize("before", SLEEPING)
@pytest.mark.parametrize("after", ["dma-polled", "pio-polled"])
def test_mode_changes_during_a_request(lab, before, after):
    """A change of mode during a request: it ends in the old mode, and the next one uses the new
    mode."""
    with drives(lab) as ata:
        ata.add("hda", 9000, "lmd")
        ata.start(before)
        ata.set("switch", after)
        step = ata.read("hda", 100, 40)
        step.require_read("hda", 100, 40)
        require_no_loss(step)
        step = ata.read("hda", 300, 40)
        step.require_read("hda", 300, 40)
        step.require_commands(READ_DMA if after in DMA else READ_BLOCKS)


@pytest.mark.exercise("S2", points=2, once=True)
def test_load_in_qemu(lab, tmp_path):
    """Tasks that write and verify scattered memory while modes change and stray interrupts come:
    all data are right."""
    made = []
    for unit in (0, 1):
        image = tmp_path / f"{unit}.img"
        image.write_bytes(bytes(8000 * 512))
        made.append(Drive(image, unit, writable=True))
    script = "scatter hda 300 200 7; scatter hdb 10 256 8; disk-load hda 1; disk-load hdb 1"
    result = lab.run(script, drives=made, guest_limit=30)
    assert result.status == 0, result.serial[-1500:]
    assert "lost" not in result.serial

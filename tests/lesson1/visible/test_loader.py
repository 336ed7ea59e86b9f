"""Exercise 1.4, the boot loader: the second stage is read, the kernel's segments are placed."""

from __future__ import annotations

from random import Random

import pytest

from tests.lesson1.loading import AREA, STAGE2, boot_disk, random_stage2, require_loaded
from tests.lesson1.support import MULTIBOOT_LOADER, Executable, Segment
from tests.remote import halted, stopped


@pytest.mark.exercise("1.4", points=1)
def test_second_stage_is_read(lab):
    """At the jump to 0x8000, memory there is what the disk has behind the boot sector."""
    stage2 = random_stage2(lab, Random(lab.seed))
    image = boot_disk(lab, "disk.img", stage2)
    with halted(lab, lab.config("", boot="disk", image=image)) as guest:
        guest.run_to(STAGE2, why="boot/mbr.asm")
        assert guest.read(STAGE2, len(stage2)) == stage2, "these are not the sectors from LBA 1 on"


@pytest.mark.exercise("1.4", points=1, host=True)
def test_load_elf(lab):
    """One segment of one sector."""
    text = Random(lab.seed).randbytes(512)
    require_loaded(lab, [Executable(entry=AREA, segments=[Segment(AREA, text, 1024)])])


@pytest.mark.exercise("1.4", points=1)
def test_kernel_is_entered(lab):
    """From the disk to the kernel's first instruction."""
    with stopped(lab, "_start", boot="disk") as guest:
        assert guest.registers()["eax"] == MULTIBOOT_LOADER

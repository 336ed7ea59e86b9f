"""Exercise 1.4, the boot loader: the second stage is read, the kernel's segments are placed.

Not looked at here, but by the graders: disks that fail, files that are damaged, and segments in any
order.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.lesson1.loading import AREA, STAGE2, boot_disk, random_stage2, require_loaded
from tests.lesson1.support import MULTIBOOT_LOADER, Executable, Segment
from tests.support.remote import halted, stopped
from tests.support.told import Usual, expect, told

IN_GDB = "make gdb LESSON=1, then: hbreak *0x7c00, continue, stepi"
STAGE2_WORDS = "the jump to the second stage at 0x8000"


@pytest.mark.exercise("1.4", points=1)
def test_second_stage_is_read(lab):
    """At the jump to 0x8000, memory there is what the disk has after the boot sector."""
    stage2 = random_stage2(lab, Random(lab.seed))
    image = boot_disk(lab, "disk.img", stage2)
    usually = (
        Usual("read stage 2, status 00", "the carry flag means failure: JC fails, JNC goes on"),
        Usual(
            "read stage 2, status (?!00)",
            "AH is not 42h, SI not packet, or DL not [boot_drive] at INT 13h",
        ),
        Usual(
            "incomplete",
            "STAGE2_MAGIC is the last double word, STAGE2_SECTORS * 512 - 4 bytes after "
            "STAGE2_ADDRESS",
        ),
    )
    config = lab.config("", boot="disk", image=image)
    with told(usually, IN_GDB), halted(lab, config) as guest:
        guest.run_to(STAGE2, goal=STAGE2_WORDS, why="boot/mbr.asm")
        found = guest.read(STAGE2, len(stage2))
        same = next((i for i in range(len(stage2)) if found[i] != stage2[i]), len(stage2))
        what = "bytes of memory at 0x8000 that are those of the disk from LBA 1 on"
        expect(what, same, len(stage2))


@pytest.mark.exercise("1.4", points=1, host=True)
def test_load_elf(lab):
    """One segment of 512 bytes in the file, in the middle of a sector, and of 100 bytes more in
    memory; and a file with two of them."""
    usually = (
        Usual(
            r"C does not define|^(?!100 )\d+ bytes .* 0x100\w+: .*\bwritten",
            "a segment goes to its physical address (paddr), which is an index of area->memory",
        ),
        Usual(
            r" 0x101\w+: .*not written",
            "each segment of type PT_LOAD is placed, not the first one alone",
        ),
        Usual("^100 bytes", "what a segment has in memory beyond the file is not zeroed"),
        Usual(
            r"^(?!100 )\d+ bytes .*seen 0x..$",
            "a segment's bytes begin at any offset of the file, not at the sector's beginning",
        ),
    )
    text = Random(lab.seed).randbytes(512)
    with told(usually, "make hint EX=1.4"):
        one = Segment(AREA, text, 1100, memory=len(text) + 100)
        two = Segment(AREA + 4096, text[::-1], 2100)
        files = [Executable(entry=AREA, segments=each) for each in ([one], [one, two])]
        require_loaded(lab, files)


@pytest.mark.exercise("1.4", points=1)
def test_kernel_is_entered(lab):
    """From the disk to the kernel's first instruction."""
    usually = Usual(
        "(?s)^(?!.*gave no entry point)",
        "load_elf refuses our own kernel, or places it elsewhere: see what it printed",
    )
    with told(usually, "make run LESSON=1"), stopped(lab, "_start", boot="disk") as guest:
        magic = guest.registers()["eax"]
        expect("EAX at _start", f"{magic:#x}", f"{MULTIBOOT_LOADER:#x}")

"""The ways to boot: our own loader, GRUB, `qemu -kernel`; and what goes wrong with a disk."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from types import SimpleNamespace

import pytest

from labs.tools.machine.result import Outcome
from tests.support.building import first_is_fast
from tests.support.remote import halted

BANNER = "Apprentice: an i386 kernel to learn from"
MEMORY_LINE = re.compile(r"^memory: .*$", re.MULTILINE)
KERNEL_LBA = 64
STAGE2_LBA = 1
PAGE = 4096
HELP_COLUMN, SCREEN_COLUMNS = 40, 80
LOADER_NAME, RANGE = 32, 20
"""Bytes in struct boot_info: before the number of ranges, and of each."""


@pytest.mark.parametrize("memory", first_is_fast([64, 16, 512]))
@pytest.mark.parametrize("boot", ["disk", "grub", "direct"])
def test_each_way_to_boot_gives_the_same_kernel(guest, boot, memory):
    """Banner and memory map are those of `qemu -kernel` with the same memory."""
    result = guest("memory", boot=boot, memory=memory).check()
    direct = result if boot == "direct" else guest("memory", boot="direct", memory=memory).check()
    assert BANNER in result.serial
    assert memory_map(result.serial) == memory_map(direct.serial)
    usable = re.search(r"memory: (\d+) KiB usable", result.serial)
    assert memory * 1024 - 1024 < int(usable[1]) <= memory * 1024


def memory_map(serial: str) -> list[str]:
    """The lines that describe ranges."""
    return [line for line in MEMORY_LINE.findall(serial) if " - " in line]


def test_help_has_columns(guest):
    """What a command does begins where it does for all others, and ends on the screen."""
    lines = re.findall(r"^  \w.*", guest("help", boot="direct").check().serial, re.MULTILINE)
    assert "  exit [STATUS]" in {line[:HELP_COLUMN].rstrip() for line in lines}
    assert [
        line for line in lines
        if not re.fullmatch(r"\S+( \S+)* +", line[2:HELP_COLUMN]) or not line[HELP_COLUMN:].strip()
        or line[HELP_COLUMN] == " " or len(line) > SCREEN_COLUMNS
    ] == []  # fmt: skip


def test_smallest_machine_tests_itself(guest):
    guest("selftest", boot="disk", memory=16).check()


def test_largest_machine(guest):
    """With 1 GB, what lies above 896 MiB stays unused. The block cache takes none of the
    rest before it needs it."""
    free = re.search(r"memory: (\d+) of", guest("memory", boot="disk", memory=1024).check().serial)
    assert 880 * 1024 < int(free[1]) <= 896 * 1024


@pytest.mark.parametrize("base", [2**64 - PAGE, 2**64 - PAGE + 1, 2**32 + 1])
def test_memory_that_the_kernel_does_not_see(guest_config, base):
    """Ranges at the end of what addresses of 64 bits can say, and of 32: no page is counted."""
    with halted(SimpleNamespace(stuck=[]), guest_config("")) as machine:
        machine.run_to("memory_map_initialize")
        count = machine.address("boot_info") + LOADER_NAME
        ranges = machine.read_word(count)
        machine.write(count + 4 + RANGE * ranges, struct.pack("<QQI", base, 2**64 - base - 1, 1))
        machine.write(count, struct.pack("<I", ranges + 1))
        machine.run_to("bcache_init")
        assert 48 * 256 < machine.call("page_free_count") < 64 * 256


def test_loader_is_named(guest):
    """The Multiboot information comes from whoever loaded the kernel."""
    assert "loaded by Apprentice boot" in guest("", boot="disk").serial
    assert "loaded by GRUB 2" in guest("", boot="grub").serial
    assert "loaded by qemu" in guest("", boot="direct").serial


def test_plain_tcg_boots_as_well(guest):
    """Without -icount the timer's interrupts come when they like."""
    guest("selftest", boot="disk", icount=None).check()


def test_failed_boot_has_a_status(guest, build, tmp_path):
    """With QEMU's exit device the loader's failure is status 62."""
    image = tmp_path / "short.img"
    image.write_bytes(build("build/storage/boot.img").read_bytes()[: KERNEL_LBA * 512])
    assert guest("memory", boot="disk", image=image, debug_exit=True).status == 62


def test_boot_sector_leaves_room(build):
    """At least 40 bytes of code are free below the place of a disk signature, at 440."""
    build("build/storage/boot.img")
    sector = (build("build/storage/mbr.bin")).read_bytes()
    assert len(sector) == 512
    assert sector[510:] == b"\x55\xaa"
    assert not any(sector[400:510])


def patched(tmp_path: Path, image: Path, offset: int, data: bytes) -> Path:
    """A copy of the image with these bytes at the offset."""
    copy = tmp_path / "patched.img"
    content = bytearray(image.read_bytes())
    content[offset : offset + len(data)] = data
    copy.write_bytes(content)
    return copy


def boot_failure(guest, image: Path) -> str:
    """What the loader says; it must end by itself, without a reset."""
    result = guest("memory", boot="disk", image=image)
    assert (result.outcome, result.status) == (Outcome.ENDED, None), result.explain()
    assert BANNER not in result.serial
    return result.serial


def test_second_stage_missing(guest, build, tmp_path):
    """Sectors of zeros instead of the second stage."""
    image = build("build/storage/boot.img")
    stage2 = build("build/storage/stage2.bin").stat().st_size
    bad = patched(tmp_path, image, STAGE2_LBA * 512, bytes(stage2))
    assert "boot: stage 2 is incomplete" in boot_failure(guest, bad)


@pytest.mark.parametrize("sectors", [1, 3])
def test_disk_ends_within_the_second_stage(guest, build, tmp_path, sectors):
    image = tmp_path / "short.img"
    image.write_bytes(build("build/storage/boot.img").read_bytes()[: sectors * 512])
    assert "boot: cannot read stage 2, status" in boot_failure(guest, image)


@pytest.mark.parametrize("sectors", [KERNEL_LBA, KERNEL_LBA + 1, KERNEL_LBA + 200])
def test_disk_ends_within_the_kernel(guest, build, tmp_path, sectors):
    """The loader says where it was reading, and that the disk is too short."""
    image = tmp_path / "short.img"
    image.write_bytes(build("build/storage/boot.img").read_bytes()[: sectors * 512])
    serial = boot_failure(guest, image)
    assert re.search(r"boot: reading the kernel, at LBA \d+\n", serial)
    assert "boot: the disk ends too early or cannot be read" in serial


def test_kernel_cut_short_but_disk_long_enough(guest, build, tmp_path):
    """Zeros where the second half of the kernel should be: no read fails, the sum does."""
    image = build("build/storage/boot.img")
    size = build("build/storage/kernel.loaded").stat().st_size
    half = KERNEL_LBA * 512 + size // 2
    bad = patched(tmp_path, image, half, bytes(size - size // 2))
    assert "the kernel on this disk is damaged or cut short" in boot_failure(guest, bad)


def test_one_bad_sector_under_the_kernel(guest, build):
    """QEMU's disk reports an error on one sector; the loader gives its place, and ends."""
    result = guest("memory", boot="disk", boot_errors=[KERNEL_LBA + 150])
    assert "boot: reading the kernel, at LBA" in result.serial
    assert BANNER not in result.serial


def multiboot_header(kernel: bytes) -> int:
    """The offset of the Multiboot header in the file (specification 0.6.96, section 3.1)."""
    for offset in range(0, 8192 - 12, 4):
        magic, flags, checksum = struct.unpack_from("<III", kernel, offset)
        if magic == 0x1BADB002 and (magic + flags + checksum) % 2**32 == 0:
            return offset
    raise AssertionError("no Multiboot header in the first 8 KiB")


def test_multiboot_header(build):
    kernel = build("build/storage/kernel.elf").read_bytes()
    assert multiboot_header(kernel) % 4 == 0


def test_screen_shows_what_the_serial_line_says(guest_machine):
    """The text screen in guest memory, at 0xb8000, read from outside."""
    with guest_machine(None, boot="disk") as machine:
        machine.expect("apprentice> ", guest_limit=20)
        machine.send("memory")
        machine.expect("apprentice> ", guest_limit=5)
        cells = machine.read_physical(0xB8000, 80 * 25 * 2)[::2]
    rows = [cells[i : i + 80].decode("latin-1").rstrip() for i in range(0, len(cells), 80)]
    assert "apprentice> memory" in rows
    assert rows[-1] == "apprentice>"


def test_prompt_edits_and_ends(guest_machine):
    """A person types, corrects with backspace, gets help for a mistake, and leaves."""
    with guest_machine(None, boot="disk") as machine:
        machine.expect("apprentice> ", guest_limit=20)
        machine.send("drivex\bs")
        machine.expect(r"hda +\d+", guest_limit=5)
        machine.send("nonsense")
        machine.expect("nonsense: no such command; try help", guest_limit=5)
        machine.send("read hda")
        machine.expect("usage: read DRIVE LBA", guest_limit=5)
        machine.send("exit 3")
        assert machine.wait().status == 3

"""What the tests of lesson 1 share: kernels linked in other ways, and ELF files made to order."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from labs.tools.course.source_lists import linked
from labs.tools.grading.elf_limits import kernel_problem
from labs.tools.grading.lab import ROOT, Lab, run_tool
from labs.tools.grading.lab_words import NOT_LOADED
from labs.tools.machine.explain import header_problem
from tests.support.remote import GENERAL, INTERRUPTS, SCRATCH, Guest

KERNEL = "build/lesson1/kernel.elf"
MULTIBOOT_HEADER = 0x1BADB002
MULTIBOOT_LOADER = 0x2BADB002  # in EAX at the entry
HEADER_AREA = 8192
KERNEL_BASE = 0xC0000000
PT_LOAD = 1
JUMP_TO_ITSELF = b"\xeb\xfe"


# The Multiboot header


def multiboot_header(kernel: bytes) -> tuple[int, int, int]:
    """Offset in the file, flags and checksum of the first header that begins with the magic
    number, wherever it is. Fails the test when there is none."""
    offset = kernel.find(struct.pack("<I", MULTIBOOT_HEADER))
    if offset < 0:
        pytest.fail(
            f"{NOT_LOADED}: {header_problem(kernel)}",
            pytrace=False,
        )
    return offset, *struct.unpack_from("<II", kernel, offset + 4)


# Kernels linked in other ways


def toolchain(name: str) -> list[str]:
    """The command of a tool for the i386."""
    chosen = subprocess.run(
        [ROOT / "labs/tools/setup/toolchain.sh", name], capture_output=True, text=True, check=True
    )
    return chosen.stdout.split()


def relink(
    lab: Lab,
    edits: Sequence[tuple[str, str]] = (),
    assembly: str = "",
    options: Sequence[str] = (),
) -> Path:
    """The lab's kernel linked once more: with edits of boot/kernel.ld (a regular expression and
    what replaces it), a source in front of all others, and options for the linker."""
    lab.build(KERNEL)
    script = (lab.root / "boot/kernel.ld").read_text()
    for pattern, replacement in edits:
        script, count = re.subn(pattern, replacement, script)
        assert count, f"boot/kernel.ld has nothing like {pattern}"
    directory = Path(tempfile.mkdtemp(prefix="variant-", dir=lab.root / "build"))
    (directory / "kernel.ld").write_text(script)
    (directory / "first.asm").write_text(assembly)
    place = directory.relative_to(lab.root)
    parts = [str(part) for part in (place / "first.o", *kernel_objects(lab))]
    linker = [*toolchain("ld"), "-nostdlib", "-z", "noexecstack", "-Lbuild/constants", *options]
    try:
        assemble = ["nasm", "-f", "elf32", f"{place}/first.asm", "-o", f"{place}/first.o"]
        run_tool(assemble, lab.root, lab.boxed)
        link = [*linker, "-T", f"{place}/kernel.ld", *parts, "-o", f"{place}/kernel.elf"]
        run_tool(link, lab.root, lab.boxed)
        problem = kernel_problem(directory / "kernel.elf")
        assert not problem, problem
        return Path(shutil.move(directory / "kernel.elf", lab.scratch / "variant.elf"))
    finally:
        shutil.rmtree(directory)


def kernel_objects(lab: Lab) -> list[Path]:
    """The object files of the lesson's kernel, as the Makefile lists them; from the tree's root."""
    sources = [*linked(1, lab.root, lab.core), "labs/lesson1/main.c"]
    parts = [f"build/objects/{source}.o" for source in sources]
    return [Path(part) for part in [*parts, f"{lab.directory}/symbols.o"]]


# Steps


def is_longer(guest: Guest, steps: int, function: str, *arguments: int) -> bool:
    """Whether a call takes more than this many instructions. It is broken off there."""
    before = guest.registers()
    stack = (before["esp"] - 0x200 & ~15) - 4
    guest.write(SCRATCH, JUMP_TO_ITSELF)
    guest.write(stack, struct.pack(f"<{1 + len(arguments)}I", SCRATCH, *arguments))
    guest.set(esp=stack, eip=guest.address(function), eflags=before["eflags"] & ~INTERRUPTS)
    for _ in range(steps):
        guest.step()
    has_returned = guest.registers()["eip"] == SCRATCH
    guest.set(**{name: before[name] for name in GENERAL})
    return not has_returned


# ELF files


@dataclass(frozen=True)
class Segment:
    """A program header, and the bytes that it has in the file at `offset`."""

    address: int
    data: bytes
    offset: int
    memory: int | None = None  # bytes in memory; as many as in the file unless given
    kind: int = PT_LOAD
    file_size: int | None = None  # a wrong number of bytes in the file
    virtual: int | None = None  # 3 GiB higher than the physical address unless given

    def header(self) -> bytes:
        """The 32 bytes of the program header. The virtual address is not the physical one."""
        in_file = len(self.data) if self.file_size is None else self.file_size
        in_memory = in_file if self.memory is None else self.memory
        virtual = self.address + KERNEL_BASE if self.virtual is None else self.virtual
        sizes = (in_file, in_memory, 7, 1)
        places = (self.offset, virtual & 0xFFFFFFFF, self.address)
        return struct.pack("<8I", self.kind, *places, *sizes)


@dataclass(frozen=True)
class Executable:
    """An ELF file for a loader. The fields are those of the header that a test may spoil.
    headers_at: where the program headers are, whatever header_offset says."""

    entry: int
    segments: Sequence[Segment]
    magic: bytes = b"\x7fELF"
    bits: int = 1
    order: int = 1
    kind: int = 2
    machine: int = 3
    header_offset: int = 52
    header_size: int = 32
    header_count: int | None = None
    headers_at: int = 52
    length: int = field(default=0)  # of the whole file, in bytes; longer when the segments are

    def file(self) -> bytes:
        """The file's bytes. What belongs to nobody is 0xaa."""
        count = len(self.segments) if self.header_count is None else self.header_count
        identification = self.magic + bytes([self.bits, self.order, 1]) + bytes(9)
        numbers = (self.kind, self.machine, 1, self.entry, self.header_offset, 0, 0)
        counts = (52, self.header_size, count, 0, 0, 0)
        header = identification + struct.pack("<2H5I6H", *numbers, *counts)
        headers = b"".join(segment.header() for segment in self.segments)
        ends = [segment.offset + len(segment.data) for segment in self.segments if segment.data]
        end = self.headers_at + len(headers)
        content = bytearray(b"\xaa" * max([self.length, 52, end, *ends]))
        content[self.headers_at : end] = headers
        content[:52] = header
        for segment in self.segments:
            if segment.data:
                content[segment.offset : segment.offset + len(segment.data)] = segment.data
        return bytes(content)


def loaded_segments(kernel: bytes) -> list[tuple[int, bytes, int]]:
    """Physical address, bytes in the file and size in memory of each PT_LOAD segment."""
    offset, count = struct.unpack_from("<I", kernel, 28)[0], struct.unpack_from("<H", kernel, 44)[0]
    headers = (struct.unpack_from("<8I", kernel, offset + 32 * i) for i in range(count))
    return [
        (physical, kernel[start : start + in_file], in_memory)
        for kind, start, _, physical, in_file, in_memory, _, _ in headers
        if kind == PT_LOAD and in_memory
    ]

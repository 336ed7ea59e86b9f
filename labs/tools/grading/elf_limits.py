"""What is refused of the files that compilers and linkers made of a student's sources."""

from __future__ import annotations

import struct
from pathlib import Path

OBJECT_BYTES = 1 << 20  # the largest of the reference has 56 KiB
KERNEL_BYTES = 8 << 20  # the largest, with what a debugger reads, has 1.1 MiB
KERNEL_MEMORY = 32 << 20  # from the first byte in memory to the last
HEADER = struct.Struct("<16sHHIIIIIHHHHHH")
PROGRAM_HEADER = struct.Struct("<8I")
SECTION_HEADER = struct.Struct("<10I")
COMPRESSED = 0x800  # of a section's flags
LOADED = 1
SYMBOL = struct.Struct("<IIIBBH")
SYMBOLS, LOCAL = 2, 0  # a section's type; how far a name reaches

# Sections whose contents a linker's plugin would compile: they are not the code that was read.
BYTECODE = (b".gnu.lto_", b".gnu.offload_lto_", b".llvmbc", b".llvm.lto")


def object_problem(data: bytes) -> str:
    """Why an object that was made of a student's file is not taken; empty when it is. Looks at
    bytes only: nothing in them is believed."""
    if data[:6] != b"\x7fELF\x01\x01" or data[16:20] != b"\1\0\3\0":
        return "what was made of it is not an object file for the i386"
    if len(data) > OBJECT_BYTES:
        return f"its object file is larger than {OBJECT_BYTES >> 10} KiB"
    for name in BYTECODE:
        if name in data:
            return (
                f"it has a section {name.decode()}..., which holds code for a linker's plugin; "
                "write the code itself"
            )
    return ""


def names_of(data: bytes) -> tuple[set[bytes], set[bytes]]:
    """The names that an object defines for others, and those that it wants of others, be it only
    if they are there. Of an object that object_problem has let through."""
    _, _, _, _, _, _, offset, _, _, _, _, width, count, _ = HEADER.unpack_from(data)
    places = range(offset, min(offset + width * count, len(data) - SECTION_HEADER.size + 1), width)
    sections = [SECTION_HEADER.unpack_from(data, place) for place in places]
    defined, wanted = set(), set()
    for _, kind, _, _, start, size, link, *_ in sections:
        if kind != SYMBOLS or link >= len(sections):
            continue
        names = data[sections[link][4] :][: sections[link][5]] + b"\0"
        for name, _, _, info, _, section in SYMBOL.iter_unpack(data[start:][: size // 16 * 16]):
            if info >> 4 != LOCAL:
                place = wanted if section == 0 else defined
                place.add(names[name : names.find(b"\0", name)])
    return defined, wanted - {b""}


def kernel_problem(path: Path) -> str:
    """Why a linked kernel is not run; empty when it is. An emulator takes as much memory as the
    program headers ask for."""
    size = path.stat().st_size
    if size > KERNEL_BYTES:
        return f"the kernel's file has {size >> 20} MiB; at most {KERNEL_BYTES >> 20} are taken"
    with path.open("rb") as stream:
        data = stream.read(KERNEL_BYTES)
    if len(data) < HEADER.size:
        return ""
    if any_compressed(data):
        return "the kernel's file has compressed sections"
    _, _, _, _, _, offset, _, _, _, width, count, *_ = HEADER.unpack_from(data)
    places = range(offset, min(offset + width * count, len(data)) - PROGRAM_HEADER.size + 1, 32)
    headers = [PROGRAM_HEADER.unpack_from(data, place) for place in places] if width == 32 else []
    loaded = [(address, memory) for kind, _, _, address, _, memory, *_ in headers if kind == LOADED]
    taken = max((a + m for a, m in loaded), default=0) - min((a for a, _ in loaded), default=0)
    if taken > KERNEL_MEMORY:
        most = KERNEL_MEMORY >> 20
        return f"the kernel takes {taken >> 20} MiB of memory; at most {most} are given"
    return ""


def any_compressed(data: bytes) -> bool:
    """Whether a file has sections that grow when they are read."""
    if b".zdebug_" in data:
        return True
    _, _, _, _, _, _, offset, _, _, _, _, width, count, _ = HEADER.unpack_from(data)
    if width != SECTION_HEADER.size:
        return False
    end = min(offset + width * count, len(data) - width + 1)
    headers = (SECTION_HEADER.unpack_from(data, place) for place in range(offset, end, width))
    return any(flags & COMPRESSED for _, _, flags, *_ in headers)

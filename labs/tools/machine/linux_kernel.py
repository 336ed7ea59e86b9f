"""A Linux kernel that need not decompress itself, which takes QEMU as long as all the rest of its
boot.

A bzImage is a few sectors of real-mode code, which ask the BIOS about the machine, and 32-bit code
for 1 MiB, which decompresses vmlinux, an ELF file (Linux's Documentation/arch/x86/boot.rst has the
fields of the header). Here a dozen instructions are in its place, and the segments of vmlinux,
which they copy to where they belong.
"""

from __future__ import annotations

import lzma
import struct

SECTOR = 512
SETUP_SECTORS, SYSTEM_SIZE, PAYLOAD = 0x1F1, 0x1F4, 0x248  # offsets in a bzImage
ENTRY, HEADERS_COUNT = 0x18, 0x2C  # offsets in an ELF file
HEADER = struct.Struct("<8I")
LOAD = 1
PLACE, PARAGRAPH = 0x100000, 16
XZ = b"\xfd7zXZ"


def unpacked(image: bytes) -> bytes:
    """A bzImage that starts the same kernel sooner; `image` itself if its vmlinux is packed in
    another way than Debian's of today, or has no room."""
    setup = SECTOR * (1 + (image[SETUP_SECTORS] or 4))
    begin, length = struct.unpack_from("<2I", image, PAYLOAD)
    payload = image[setup + begin :][:length]
    if not payload.startswith(XZ):
        return image
    vmlinux = lzma.LZMADecompressor().decompress(payload)
    target, data = segments(vmlinux)
    entry = int.from_bytes(vmlinux[ENTRY : ENTRY + 4], "little")
    code = copier(target, len(data) // 4, entry)
    if PLACE + len(code) + len(data) > target:
        return image
    code += data + bytes(-(len(code) + len(data)) % PARAGRAPH)
    head = bytearray(image[:setup])
    struct.pack_into("<I", head, SYSTEM_SIZE, len(code) // PARAGRAPH)
    return bytes(head) + code


def segments(vmlinux: bytes) -> tuple[int, bytes]:
    """The lowest physical address of a segment, and what is in memory from there on, in whole
    words. What follows is the kernel's own to clear."""
    first, (count,) = vmlinux[ENTRY + 4], struct.unpack_from("<H", vmlinux, HEADERS_COUNT)
    headers = (HEADER.unpack_from(vmlinux, first + HEADER.size * each) for each in range(count))
    found = [header for header in headers if header[0] == LOAD]
    lowest = min(physical for _, _, _, physical, *_ in found)
    memory = bytearray()
    for _, offset, _, physical, size, *_ in sorted(found, key=lambda header: header[3]):
        memory += bytes(physical - lowest - len(memory)) + vmlinux[offset : offset + size]
    return lowest, bytes(memory) + bytes(-len(memory) % 4)


def copier(target: int, words: int, entry: int) -> bytes:
    """Code at PLACE that copies the words after it to `target` and jumps to `entry`. There ESI has
    the address of the boot parameters, as it had before; EBX, EDI and EBP are 0."""
    size = 40
    parts = (
        (b"\x89\xf3",),  # mov ebx, esi
        (b"\xbe", PLACE + size),  # mov esi, what is copied
        (b"\xbf", target),  # mov edi, target
        (b"\xb9", words),  # mov ecx, words
        (b"\xfc\xf3\xa5",),  # cld; rep movsd
        (b"\x89\xde\x31\xdb\x31\xff\x31\xed",),  # mov esi, ebx; xor ebx, ebx; ... edi ... ebp
        (b"\xb8", entry),  # mov eax, entry
        (b"\xff\xe0",),  # jmp eax
    )
    code = b"".join(opcode + b"".join(struct.pack("<I", each) for each in more)
                    for opcode, *more in parts)  # fmt: skip
    return code.ljust(size, b"\x90")

"""The kernel of Debian's Linux without its compression: what is compared with Linux boots it."""

from __future__ import annotations

import lzma
import struct

from labs.tools.machine.linux_kernel import PLACE, segments, unpacked

TEXT, DATA = bytes(range(1, 101)), b"data" * 9
TARGET = 0x1000000


def vmlinux(target=TARGET):
    """An ELF file with two segments, the later one first, and with notes."""
    headers = [
        (1, 0x200, 0, target + 0x1000, len(DATA), 0x8000, 6, 0),
        (1, 0x100, 0, target, len(TEXT), len(TEXT), 5, 0),
        (4, 0x100, 0, target, 8, 8, 4, 0),
    ]
    file = bytearray(0x300)
    file[:4] = b"\x7fELF"
    struct.pack_into("<2I", file, 0x18, target + 16, 52)
    struct.pack_into("<H", file, 0x2C, len(headers))
    for number, header in enumerate(headers):
        struct.pack_into("<8I", file, 52 + 32 * number, *header)
    file[0x100 : 0x100 + len(TEXT)] = TEXT
    file[0x200 : 0x200 + len(DATA)] = DATA
    return bytes(file)


def bzimage(payload):
    head = bytearray(3 * 512)
    head[0x1F1] = 2
    struct.pack_into("<2I", head, 0x248, 100, len(payload))
    return bytes(head) + bytes(100) + payload + b"more"


def test_segments_are_where_they_belong():
    lowest, memory = segments(vmlinux())
    assert lowest == TARGET
    assert memory == TEXT.ljust(0x1000, b"\0") + DATA


def test_what_is_behind_the_setup_copies_the_segments():
    """The code's three numbers say from where, to where, and how many words; then it jumps."""
    image = unpacked(bzimage(lzma.compress(vmlinux())))
    code, memory = image[3 * 512 :], segments(vmlinux())[1]
    begin = code.index(memory)
    words = PLACE + begin, TARGET, len(memory) // 4
    copying = b"\xbe%s\xbf%s\xb9%s" % tuple(struct.pack("<I", each) for each in words)
    assert copying in code[:begin] and b"\xb8" + struct.pack("<I", TARGET + 16) in code[:begin]
    assert struct.unpack_from("<I", image, 0x1F4) == (len(code) // 16,)


def test_a_kernel_that_cannot_be_unpacked_stays_as_it_is():
    """Packed in another way; or so low in memory that its code would be copied over."""
    for image in (bzimage(b"\x1f\x8bgzip"), bzimage(lzma.compress(vmlinux(PLACE + 0x1000)))):
        assert unpacked(image) == image

"""Takes the folder out of an object that NASM has made: where a tree is changes no kernel.

    python3 debug_paths.py FILE.o

gcc has an option for it, -ffile-prefix-map. NASM writes a file's folder as DW_AT_comp_dir, with its
links resolved, into the one unit of .debug_info. Here that becomes ".", and the rest moves up.
"""

from __future__ import annotations

import struct
import sys

HEADER, SECTION = "<HHIIIIIHHHHHH", "<10I"  # of an ELF file, after e_ident; of a section
VERSION = 2  # of DWARF's, that NASM writes
UNIT_HEADER = 11  # bytes: length, version, abbreviations, size of an address
BEFORE_NAME = 1 + 3 * 4  # of the unit's entry: abbreviation, low_pc, high_pc, stmt_list


def sections(data: bytes | bytearray) -> dict[str, int]:
    """Where each section's header is, by name."""
    fields = struct.unpack_from(HEADER, data, 16)
    offset, size, count, names = fields[5], fields[10], fields[11], fields[12]
    places = [offset + size * number for number in range(count)]
    text = struct.unpack_from(SECTION, data, places[names])[4]
    found = {}
    for place in places:
        begin = text + struct.unpack_from("<I", data, place)[0]
        found[bytes(data[begin : data.index(0, begin)]).decode()] = place
    return found


def without_folder(data: bytes) -> bytearray:
    """The object, changed; as it is if it has nothing for a debugger, or in another form."""
    data = bytearray(data)
    found = sections(data)
    if ".debug_info" not in found:
        return data
    header = found[".debug_info"]
    offset, size = struct.unpack_from("<II", data, header + 16)
    if struct.unpack_from("<H", data, offset + 4)[0] != VERSION:
        return data
    name = offset + UNIT_HEADER + BEFORE_NAME
    folder = data.index(0, name) + 1
    end = data.index(0, folder)
    less = end - folder - 1
    data[offset : offset + size] = (
        data[offset:folder] + b"." + data[end : offset + size] + bytes(less)
    )
    (length,) = struct.unpack_from("<I", data, offset)
    struct.pack_into("<I", data, offset, length - less)
    struct.pack_into("<I", data, header + 20, size - less)
    begin, length = struct.unpack_from("<II", data, found[".rel.debug_info"] + 16)
    for place in range(begin, begin + length, 8):
        (where,) = struct.unpack_from("<I", data, place)
        if offset + where >= end:
            struct.pack_into("<I", data, place, where - less)
    return data


if __name__ == "__main__":
    with open(sys.argv[1], "r+b") as file:
        changed = without_folder(file.read())
        file.seek(0)
        file.write(changed)

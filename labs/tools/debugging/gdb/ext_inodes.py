"""Inodes of a mounted ext file system, from the kernel's own structures or from cached blocks."""

from __future__ import annotations

import struct
from typing import NamedTuple

from labs.tools.debugging.gdb.commands import Refusal
from labs.tools.debugging.gdb.kernel_data import container, pointer, structure, walk
from labs.tools.debugging.gdb.storage import Ext, copy_of

DEPTH_AT_MOST = 128  # of the tree of a mount's inodes
META_BG, SPARSE_SUPER, SPARSE_SUPER2 = 0x10, 0x1, 0x200  # of three different feature words
OLD_INODE = 128  # bytes
SUPER_SECTOR = 2
TIMES = ("accessed", "modified", "changed", "created")
FLAGS = {
    0x8: "synchronous",
    0x10: "immutable",
    0x20: "append only",
    0x1000: "hashed directory",
    0x4000: "journalled data",
    0x40000: "huge file",
    0x80000: "extents",
    0x200000: "attributes of its own inode",
    0x10000000: "data in the inode",
}
EXTENTS = 0x80000


class Inode(NamedTuple):
    """An inode. `times` are ns since 1970, without the last where the disk has none; `words` say
    where it was found."""

    number: int
    mode: int
    links: int
    owner: int
    group: int
    flags: int
    size: int
    sectors: int
    times: tuple[int, ...]
    map: bytes
    words: tuple[str, ...]


def find_inode(ext: Ext, number: int) -> Inode:
    """The inode of this number, as new as memory has it. Raises Refusal."""
    count = int(ext.fs["summary"]["inodes"])
    if not 1 <= number <= count:
        raise Refusal(f"{ext.name} has inodes 1 to {count}")
    address = structure_of(ext, number)
    where = place_of(ext, number)
    return from_structure(ext, number, address, where) if address else from_table(number, *where)


# ---- struct disk_inode --------------------------------------------------------------------------


def structure_of(ext: Ext, number: int) -> int:
    """The address of the kernel's struct disk_inode; 0 if there is none."""

    def below(place: int) -> int:
        node = structure("tree_node", place)
        key = int(node["key"])
        return 0 if key == number else pointer(node["left" if number < key else "right"])

    root = pointer(structure("disk_mount", ext.address)["inodes"])
    found = walk(root, below, DEPTH_AT_MOST)
    if found.damage:
        raise Refusal(f"inode {number}: {found.damage}")
    last = found.places[-1] if found.places else 0
    is_there = last and int(structure("tree_node", last)["key"]) == number
    return container(last, "disk_inode", "in_mount") if is_there else 0


def from_structure(
    ext: Ext, number: int, address: int, where: tuple[int, int, bytes | None]
) -> Inode:
    """The kernel's own copy: of a file's size and times it is the truth."""
    each = copy_of("disk_inode", address)
    seen, inner = each["inode"], each["ext"]
    state = [f"struct disk_inode at {address:#010x}, {int(seen['references'])} references"]
    state += [f"{int(each['pages']['dirty'])} dirty pages"] if each["pages"]["dirty"] else []
    state += ["times newer than on the disk"] if each["is_changed"] else []
    ahead = int(each["changed_in"]) - int(structure("disk_mount", ext.address)["committed"])
    state += ["changed since the last commit"] if ahead & 0xFFFFFFFF in range(1, 1 << 31) else []
    words, created = inner["map"], int(inner["created"])
    return Inode(
        number,
        *(int(seen[name]) for name in ("mode", "links", "owner", "group")),
        int(inner["flags"]),
        int(seen["size"]),
        int(inner["blocks"]),
        (*(int(seen[name]) for name in TIMES[:3]), *([created] if created else [])),
        struct.pack("<15I", *(int(words[index]) for index in range(15))),
        (", ".join(state), place_words(*where)),
    )


# ---- the inode table ----------------------------------------------------------------------------


def place_of(ext: Ext, number: int) -> tuple[int, int, bytes | None]:
    """The block of the inode table, the byte in it, and the inode's bytes if both blocks that are
    needed are in the cache; block 0: the descriptor is not."""
    super_ = ext.fs["super"]
    each_group, size = int(super_["s_inodes_per_group"]), int(ext.fs["inode_size"])
    group, index = divmod(number - 1, max(each_group, 1))
    table = table_of(ext, group)
    block, byte = divmod(index * size, ext.block_size)
    if not ext.has(table + block):
        return 0, 0, None
    data = ext.block(table + block)
    return table + block, byte, data and data[byte : byte + size]


def table_of(ext: Ext, group: int) -> int:
    """The first block of a group's inode table; 0 while its descriptor is not in the cache."""
    size = int(ext.fs["summary"]["descriptor_size"])
    index, at = divmod(group, ext.block_size // size)
    data = ext.block(descriptor_block(ext, index))
    if data is None:
        return 0
    descriptor = data[at * size : (at + 1) * size]
    high = int.from_bytes(descriptor[40:44], "little") if size >= 64 else 0
    return int.from_bytes(descriptor[8:12], "little") | high << 32


def descriptor_block(ext: Ext, index: int) -> int:
    """Where block `index` of the descriptors is: as in fs/ext/group.c."""
    super_ = ext.fs["super"]
    in_first = index == 0 or index < int(super_["s_first_meta_bg"])
    if in_first or not int(super_["s_feature_incompat"]) & META_BG:
        return SUPER_SECTOR * 512 // ext.block_size + 1 + index
    group = index * (ext.block_size // int(ext.fs["summary"]["descriptor_size"]))
    if int(super_["s_feature_compat"]) & SPARSE_SUPER2:
        copies = super_["s_backup_bgs"]
        begins = group in (int(copies[0]), int(copies[1]))
    else:
        begins = not int(super_["s_feature_ro_compat"]) & SPARSE_SUPER
    first = int(super_["s_first_data_block"])
    return first + group * int(super_["s_blocks_per_group"]) + begins


def place_words(block: int, byte: int, data: bytes | None) -> str:
    """Where it is on the disk."""
    if not block:
        return "its group's descriptor is not in the cache"
    return f"on the disk in block {block} at byte {byte}{'' if data else ', which is not cached'}"


def from_table(number: int, block: int, byte: int, data: bytes | None) -> Inode:
    """An inode that nobody has used lately, out of its cached block."""
    if not data:
        raise Refusal(f"inode {number} is not in memory: {place_words(block, byte, data)}")
    mode, uid, size, *seconds, _, gid, links, sectors, flags = struct.unpack_from(
        "<HHIIIIIHHII", data
    )
    size |= int.from_bytes(data[108:112], "little") << 32 if mode >> 12 == 8 else 0
    uid_high, gid_high = struct.unpack_from("<HH", data, 120)
    order = (0, 2, 1)  # on the disk: accessed, changed, modified
    times = [time_of(seconds[each], extra_of(data, each)) for each in order]
    if used_bytes(data) >= 152:
        times.append(time_of(*struct.unpack_from("<II", data, 144)))
    sectors |= int.from_bytes(data[116:118], "little") << 32
    return Inode(
        number,
        mode,
        links,
        uid | uid_high << 16,
        gid | gid_high << 16,
        flags,
        size,
        sectors,
        tuple(times),
        data[40:100],
        (place_words(block, byte, data),),
    )


def used_bytes(data: bytes) -> int:
    """How much of an inode has fields."""
    return OLD_INODE + int.from_bytes(data[128:130], "little") if len(data) > OLD_INODE else 0


def extra_of(data: bytes, index: int) -> int:
    """The upper bits of a time: accessed, changed, modified."""
    at = (140, 132, 136)[index]
    return int.from_bytes(data[at : at + 4], "little") if used_bytes(data) >= at + 4 else 0


def time_of(seconds: int, extra: int) -> int:
    """ns since 1970."""
    signed = seconds - (seconds >> 31 << 32) + ((extra & 3) << 32)
    return signed * 1_000_000_000 + (extra >> 2)


def flag_words(flags: int) -> str:
    """The flags that are set."""
    names = [name for bit, name in FLAGS.items() if flags & bit]
    return f"{flags:#x}" + (f" ({', '.join(names)})" if names else "")

"""The storage half in the kernel's memory: drives, cached blocks, mounted ext file systems.

Nothing is read from a disk: what is not in memory is said to be missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import gdb

from labs.tools.debugging.gdb.commands import Refusal, variable
from labs.tools.debugging.gdb.kernel_data import (
    Walk,
    address_of,
    container,
    kernel_type,
    pointer,
    size_of,
    structure,
    text_at,
    walk,
    walk_links,
)
from labs.tools.debugging.gdb.processor import read_linear

DEVICES_AT_MOST = 256
MOUNTS_AT_MOST = 64
CHAIN_AT_MOST = 4096
BCACHE = "fs/cache/bcache.c"
PURPOSES = ("data", "mapping", "other")


def copy_of(type_name: str, address: int) -> gdb.Value:
    """A structure as it is now, read at once: a look at each member alone takes a packet each."""
    return gdb.Value(read_linear(address, size_of(type_name)), kernel_type(type_name))


# ---- drives -------------------------------------------------------------------------------------


def devices() -> Walk:
    """The struct block_devices: drives, and their partitions."""
    first = pointer(variable("first", "drivers/disk/block.c"))
    return walk_links(first, "block_device", "next", DEVICES_AT_MOST)


def device_name(address: int) -> str:
    """ "hdb1"; "?" for what is no device."""
    if not address:
        return "-"
    try:
        return text_at(pointer(structure("block_device", address)["name"]))
    except gdb.MemoryError:
        return "?"


def find_device(name: str) -> int:
    """The device of this name. Raises Refusal."""
    found = {device_name(each): each for each in devices().places}
    if name not in found:
        raise Refusal(f"there is no drive {name} (there is: {', '.join(found) or 'none'})")
    return found[name]


# ---- cached blocks ------------------------------------------------------------------------------


def cached_blocks() -> Walk:
    """The struct cached_blocks, the one used last first."""
    lru = variable("lru", BCACHE)
    most = int(variable("buffers_now", BCACHE)) + 1
    found = walk(pointer(lru["previous"]), previous_link, most, address_of(lru))
    places = [container(each, "cached_block", "in_lru") for each in found.places]
    return Walk(places, found.damage)


def previous_link(link: int) -> int:
    """The one before it in a struct list."""
    return pointer(copy_of("list", link)["previous"])


def bucket(device: int, block: int) -> int:
    """Where the chain of a block begins: as buffer_bucket in fs/cache/bcache.c."""
    buckets = variable("buckets", BCACHE)
    length = buckets.type.range()[1] + 1
    key = (block ^ block >> 32 ^ device) & 0xFFFFFFFF
    return pointer(buckets[(key * 0x9E3779B1 & 0xFFFFFFFF) * length >> 32])


def contents(device: int, block: int, size: int) -> bytes | None:
    """The bytes of a block; None when it is not in the cache. Raises gdb.MemoryError, Refusal."""
    chain = walk_links(bucket(device, block), "cached_block", "chain", CHAIN_AT_MOST)
    for address in chain.places:
        each = copy_of("cached_block", address)
        key = (pointer(each["device"]), int(each["block"]), int(each["size"]))
        if key == (device, block, size):
            return read_linear(pointer(each["data"]), size)
    if chain.damage:
        raise Refusal(f"block {block}: {chain.damage}")
    return None


# ---- mounted file systems -----------------------------------------------------------------------


class Ext(NamedTuple):
    """A mounted ext file system: its struct disk_mount, the copy of its struct ext_fs, its drive,
    and bytes of its blocks."""

    address: int
    fs: gdb.Value
    device: int
    block_size: int

    @property
    def name(self) -> str:
        """Of the drive."""
        return device_name(self.device)

    @property
    def journal(self) -> int:
        """The address of its struct journal; 0 for none."""
        return pointer(self.fs["journal"])

    def block(self, number: int) -> bytes | None:
        """The bytes of a block; None when it is not in the cache."""
        return contents(self.device, number, self.block_size)

    def has(self, block: int) -> bool:
        """Is there such a block?"""
        return 0 < block < int(self.fs["summary"]["blocks"])


def ext_mounts() -> Iterator[Ext]:
    """Every ext file system that is mounted. Raises Refusal for a damaged list, at its end."""
    found = walk_links(pointer(variable("disk_mounts")), "disk_mount", "next", MOUNTS_AT_MOST)
    for address in found.places:
        mount = structure("disk_mount", address)
        if not pointer(mount["fs"]):
            continue  # it is being mounted
        fs = copy_of("ext_fs", pointer(mount["fs"]))
        size = int(fs["summary"]["block_size"])
        if size not in (1024, 2048, 4096):
            raise Refusal(f"struct ext_fs at {pointer(mount['fs']):#010x} is damaged")
        yield Ext(address, fs, pointer(mount["device"]), size)
    if found.damage:
        raise Refusal(f"ext file systems: {found.damage}")


def find_ext(drive: str = "") -> Ext:
    """The ext file system on a drive; without one the only that is mounted. Raises Refusal."""
    names = []
    for each in ext_mounts():
        if drive in ("", each.name):
            names.append(each.name)
            found = each
    if len(names) == 1:
        return found
    if names:
        raise Refusal(f"which drive? Mounted are {', '.join(names)}")
    raise Refusal(f"no ext file system is mounted{f' from {drive}' if drive else ''}")

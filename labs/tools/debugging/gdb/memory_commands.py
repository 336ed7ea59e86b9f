"""Commands about physical memory: free blocks, pages, owners, and the store that overruns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import gdb

from labs.tools.debugging.gdb.commands import Refusal, command, number, table, variable
from labs.tools.debugging.gdb.kernel_data import (
    WORD,
    constant,
    kernel_type,
    noted,
    place,
    pointer,
    size_of,
    structure,
    text_at,
    walk_ring,
    words_from,
)
from labs.tools.debugging.gdb.processor import KERNEL_BASE, symbol_at

PAGE_SHIFT = 12
PAGE_SIZE = 1 << PAGE_SHIFT
RED_BYTES = 8  # of a red zone
BITS = 32  # of a word of a slab's map
CHECKED = "kmalloc_checked"
STATES = {
    "PAGE_RESERVED": "reserved: never handed out",
    "PAGE_FREE": "free",
    "PAGE_USED": "handed out",
    "PAGE_SLAB": "cut into objects",
}


class Block(NamedTuple):
    """A block of pages: the frame of its first page, its state's name, its order, who had it."""

    frame: int
    state: str
    order: int
    owner: int

    @property
    def words(self) -> str:
        """State, size and owner, as a person reads them."""
        state = STATES.get(self.state, self.state)
        if self.state == "PAGE_RESERVED":
            return state
        last = f", last used by {place(self.owner)}" if self.owner else ""
        return f"{state}, {1 << self.order} pages (order {self.order}){last}"


class Object(NamedTuple):
    """An object of a slab: its start, number and bytes, and whether it is handed out."""

    start: int
    index: int
    size: int
    is_used: bool
    cache: str
    has_guard: bool


# ---- pages --------------------------------------------------------------------------------------


def page_frames() -> int:
    """How many frames the page array has. Raises Refusal while there is none."""
    frames = int(variable("page_frames"))
    if not frames or not pointer(variable("page_array")):
        raise Refusal("there is no page array yet (page_array_initialize)")
    return frames


def frame_of(address: int) -> int:
    """The frame that a kernel address is in. Raises Refusal."""
    frame = (address - KERNEL_BASE) >> PAGE_SHIFT
    if address < KERNEL_BASE or frame >= page_frames():
        raise Refusal(
            f"{address:#010x} is in no frame of the page array: give an address of the kernel's "
            f"from {KERNEL_BASE:#x} to {KERNEL_BASE + (page_frames() << PAGE_SHIFT) - 1:#x}"
        )
    return frame


def block_at(frame: int) -> Block:
    """What the frame's own entry says."""
    page = variable("page_array")[frame]
    state = constant("page_state", int(page["state"]))
    return Block(frame, state, int(page["order"]), int(page["owner"]))


def block_of(frame: int) -> Block:
    """The block that a frame is in. Raises Refusal when no block contains it."""
    block = block_at(frame)
    if block.state != "PAGE_TAIL":
        return block
    for order in range(1, orders()):
        block = block_at(frame & -(1 << order))
        if block.state != "PAGE_TAIL" and frame < block.frame + (1 << block.order):
            return block
    raise Refusal(f"frame {frame:#x} is PAGE_TAIL, and in no block: the page array is damaged")


def orders() -> int:
    """How many orders there are."""
    return zone_list(0)["lists"].type.range()[1] + 1


def zone_list(index: int) -> gdb.Value:
    """A zone by its index."""
    return variable("zones")[index]


def zone_name(frame: int) -> str:
    """The zone that a frame is in."""
    for zone in zones():
        if int(zone["first"]) <= frame < int(zone["end"]):
            return text_at(pointer(zone["name"]))
    return "in no zone"


def zones() -> Iterator[gdb.Value]:
    """All zones. Raises Refusal before they are made."""
    page_frames()
    for index in range(variable("zones").type.range()[1] + 1):
        yield zone_list(index)


@command("buddy")
def buddy() -> str:
    """The buddy system: free blocks of each zone by order, and what the zone counts."""
    rows, remarks = [], []
    for zone in zones():
        name, free = text_at(pointer(zone["name"])), int(zone["free"])
        lengths = []
        for order in range(orders()):
            found = walk_ring(zone["lists"][order], page_frames())
            lengths.append(len(found.places))
            remarks += [f"{name}, order {order}: {found.damage}"] if found.damage else []
        rows.append((name, *lengths, free, int(zone["reserve"])))
        pages = sum(length << order for order, length in enumerate(lengths))
        if pages != free:
            remarks.append(f"But the lists of {name} have {pages} pages.")
    heads = ("zone", *(str(order) for order in range(orders())), "pages free", "reserve")
    return noted(table(heads, rows), "\n".join(remarks))


@command("page", "ADDRESS")
def page(address: str) -> str:
    """What the page array says of a page, and of the block that it is in."""
    at = number(address)
    frame = frame_of(at)
    block = block_of(frame)
    lines = [f"{at:#010x} is in frame {frame:#x}, zone {zone_name(frame)}"]
    if block.frame != frame:
        lines.append(f"page {frame - block.frame} of the block at frame {block.frame:#x}")
    return "\n".join([*lines, block.words])


# ---- objects ------------------------------------------------------------------------------------


@command("who-owns", "ADDRESS")
def who_owns(address: str) -> str:
    """What an address is in: block, cache, object, who asked for it, and who freed it."""
    at = number(address)
    block = block_of(frame_of(at))
    if block.state != "PAGE_SLAB":
        guard = KERNEL_BASE + (block.frame << PAGE_SHIFT)
        lines = [f"{at:#010x} is in a block at frame {block.frame:#x}: {block.words}"]
        if block.state == "PAGE_USED" and is_guard(guard):
            lines += guard_lines(guard, at)
        return "\n".join(lines)
    each = object_at(at)
    if isinstance(each, str):
        return f"{at:#010x} is in a slab, and in no object of it: {each}"
    used = "handed out" if each.is_used else "free"
    lines = [
        f"{at:#010x} is in object {each.index} of a slab of {each.cache}: {each.size} bytes at "
        f"{each.start:#010x}, {used}"
    ]
    if each.is_used and each.has_guard:
        lines += guard_lines(each.start, at)
    return "\n".join(lines)


def object_at(address: int) -> Object | str:
    """The object of a slab that an address is in; or what is there instead."""
    slab = structure("slab", address & -PAGE_SIZE)
    cache = slab["cache"].dereference()
    size, start = int(cache["size"]), pointer(slab["objects"])
    index = (address - start) // size
    if address < start:
        return "its structure, map or colour"
    if index >= int(cache["count"]):
        return "the rest after the last object"
    words = words_from((address & -PAGE_SIZE) + size_of("slab"), index // BITS + 1)
    is_used = bool(words[index // BITS] >> index % BITS & 1)
    name = text_at(pointer(cache["name"]))
    has_guard = pointer(cache["magazine"]) != 0 and is_checking()
    return Object(start + index * size, index, size, is_used, name, has_guard)


def is_checking() -> bool:
    """Is kmalloc the one that checks?"""
    return (symbol_at(pointer(variable("kmalloc"))) or "").startswith(CHECKED)


def is_guard(address: int) -> bool:
    """Is there a guard at the beginning of a block? Its red zone says so."""
    red = bytes((0xBB,)) * RED_BYTES
    if not is_checking():
        return False
    words = words_from(address + size_of("guard") - RED_BYTES, RED_BYTES // WORD)
    return b"".join(word.to_bytes(WORD, "little") for word in words) == red


def guard_lines(guard: int, address: int) -> list[str]:
    """What the guard at an object's start knows, for an address in or next to the object."""
    value = structure("guard", guard)
    offset = address - guard - size_of("guard")
    size, owner, freer = (int(value[name]) for name in ("size", "owner", "freer"))
    if owner == 0 or symbol_at(owner) is None:
        return ["in a magazine, or handed out before kmalloc checked: there is no guard"]
    return [
        f"byte {offset} of {size} that kmalloc was asked for (allocation {int(value['serial'])})",
        f"allocated by {place(owner)}",
        f"freed by {place(freer)}: in quarantine" if freer else "not freed",
    ]


@command("watch-redzone", "ADDRESS")
def watch_redzone(address: str) -> str:
    """Stops at the next store that changes a red zone of the object that ADDRESS is in."""
    at = number(address)
    kernel_type("guard")
    guard = guard_of(at)
    value = structure("guard", guard)
    start, size = guard + size_of("guard"), int(value["size"])
    for zone in (start - RED_BYTES, start + size):
        gdb.Breakpoint(
            f"*(unsigned long long *){zone:#x}", gdb.BP_WATCHPOINT, gdb.WP_WRITE, internal=False
        )
    return (
        f"{size} bytes at {start:#010x}, allocated by {place(int(value['owner']))}: gdb stops at "
        f"the store that changes one of the {RED_BYTES} bytes before or after them"
    )


def guard_of(address: int) -> int:
    """The guard of the object that an address is in. Raises Refusal."""
    if not is_checking():
        raise Refusal("kmalloc does not check: there are no red zones (kmalloc_debug_enable)")
    block = block_of(frame_of(address))
    each = object_at(address) if block.state == "PAGE_SLAB" else None
    if isinstance(each, Object) and each.is_used and each.has_guard and is_guard(each.start):
        return each.start
    start = KERNEL_BASE + (block.frame << PAGE_SHIFT)
    if block.state == "PAGE_USED" and is_guard(start):
        return start
    raise Refusal(f"{address:#010x} is in no object of kmalloc's; who-owns says what is there")

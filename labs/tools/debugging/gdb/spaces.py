"""Address spaces, read out of the kernel's memory: areas, and the entries of page tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import gdb

from labs.tools.debugging.gdb.commands import Refusal, variable
from labs.tools.debugging.gdb.kernel_data import (
    KERNEL_BASE,
    WORD,
    address_of,
    container,
    has_member,
    optional,
    pointer,
    structure,
)
from labs.tools.debugging.gdb.open_files import entries_of, is_own_directory
from labs.tools.debugging.gdb.processor import Processor, read_physical, symbol_at
from labs.tools.debugging.gdb.tasks import Task
from labs.tools.debugging.gdb.views import directory_of

PAGE_SHIFT, LARGE_SHIFT = 12, 22
PAGE_SIZE, LARGE_PAGE = 1 << PAGE_SHIFT, 1 << LARGE_SHIFT
ENTRIES = 1024  # of a directory, and of a table
LARGE_PAGES = 1 << 4  # CR4.PSE: Intel SDM volume 3, 4.3
WRITE_PROTECT = 1 << 16  # CR0.WP: 2.5

# mm/space.h, mm/area.h, mm/space_layout.h
READ, WRITE, EXECUTE, PROTECTION = 1, 2, 4, 7
SHARED, STACK, COPIED = 8, 16, 32
SPACE_SHARED = 0xBFFFF000
STACK_USUAL, STACK_GAP = 8 << 20, 1 << 20
STACK_MOST, LIMIT_STACK = 512 << 20, 3  # kernel/linux/memory/limits.c
NO_LIMIT = 0xFFFFFFFF

AREAS_AT_MOST = 65536
NAMES_AT_MOST = 4096  # of files, that are looked at to find the name of one


# ---- entries ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """An entry of a page directory or of a page table: where it is (a physical address), and what
    it has. Intel SDM volume 3, 4.3."""

    place: int
    value: int

    @property
    def is_present(self) -> bool:
        """Whether the processor uses the rest of it."""
        return bool(self.value & 1)

    @property
    def is_writable(self) -> bool:
        """Whether it allows writing."""
        return bool(self.value & 2)

    @property
    def is_user(self) -> bool:
        """Whether it allows user mode anything."""
        return bool(self.value & 4)

    @property
    def is_large(self) -> bool:
        """Of a directory: whether it maps 4 MiB itself."""
        return self.is_present and bool(self.value & 0x80)

    @property
    def target(self) -> int:
        """The physical address of the page or table."""
        return self.value & (-LARGE_PAGE if self.is_large else -PAGE_SIZE) & 0xFFFFFFFF

    def words(self) -> str:
        """Its bits, as a person reads them."""
        if not self.value:
            return "empty"
        parts = ["present" if self.is_present else "not present"]
        parts.append("writable" if self.is_writable else "read-only")
        parts.append("user" if self.is_user else "kernel only")
        names = ((0x20, "accessed"), (0x40, "dirty"), (0x80, "4 MiB"), (0x100, "global"))
        return ", ".join(parts + [name for bit, name in names if self.value & bit])


@dataclass(frozen=True)
class Translation:
    """What a page directory says of an address: its entry, and the table's; None without a table
    (or for a page of 4 MiB)."""

    address: int
    directory: Entry
    table: Entry | None

    @property
    def last(self) -> Entry:
        """The entry that decides which page it is."""
        return self.table or self.directory

    @property
    def has_page(self) -> bool:
        """Whether there is a page that the processor would find."""
        is_complete = self.table is not None or self.directory.is_large
        return is_complete and self.directory.is_present and self.last.is_present

    @property
    def is_writable(self) -> bool:
        """Whether both levels allow writing."""
        return self.directory.is_writable and self.last.is_writable

    @property
    def is_user(self) -> bool:
        """Whether both levels allow user mode."""
        return self.directory.is_user and self.last.is_user

    @property
    def physical(self) -> int:
        """Where the address is in memory; only if there is a page."""
        size = LARGE_PAGE if self.table is None else PAGE_SIZE
        return self.last.target + self.address % size


def physical_word(address: int) -> int:
    """A word of memory."""
    return int.from_bytes(read_physical(address, WORD), "little")


def has_frame(physical: int) -> bool:
    """Whether there can be memory: as far as the page array says, where there is one."""
    frames = optional("page_frames")
    return frames is None or not int(frames) or physical >> PAGE_SHIFT < int(frames)


def translate(directory: int, address: int) -> Translation:
    """Walks as the processor does; `directory` is a physical address. Raises Refusal."""
    place = directory + (address >> LARGE_SHIFT) * WORD
    upper = Entry(place, physical_word(place))
    if not upper.is_present or upper.is_large:
        return Translation(address, upper, None)
    if not has_frame(upper.target):
        raise Refusal(
            f"the page directory is damaged: directory[{address >> LARGE_SHIFT}] is "
            f"{upper.value:#010x}, and there is no memory at {upper.target:#010x}"
        )
    place = upper.target + (address >> PAGE_SHIFT) % ENTRIES * WORD
    return Translation(address, upper, Entry(place, physical_word(place)))


def loaded_directory() -> int:
    """The physical address of the directory that the processor uses. Raises Refusal."""
    processor = Processor()
    if not processor.has_paging:
        raise Refusal("paging is off: every address is a physical one. b kmain and c take you on")
    return processor.registers["CR3"] & -PAGE_SIZE


def kernel_may_write_anywhere() -> bool:
    """Whether the processor lets the kernel write to pages that are read-only."""
    return not Processor().registers["CR0"] & WRITE_PROTECT


# ---- areas --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Area:
    """A struct area: its range, flags, object (0: zeros) and the object's page at its start."""

    start: int
    end: int
    flags: int
    object: int
    index: int

    @property
    def words(self) -> str:
        """Range and protection."""
        return f"{self.start:#010x} to {self.end - 1:#010x}, {self.rights()}, {self.kind()}"

    def rights(self) -> str:
        """As /proc/PID/maps has it, without the last letter."""
        letters = ((READ, "r"), (WRITE, "w"), (EXECUTE, "x"))
        return "".join(letter if self.flags & bit else "-" for bit, letter in letters)

    def kind(self) -> str:
        """Who sees what is written there."""
        return "shared" if self.flags & SHARED else "private"

    def page_of(self, address: int) -> int:
        """The number of the object's page at an address."""
        return self.index + ((address - self.start) >> PAGE_SHIFT)

    def what(self) -> str:
        """What it shows."""
        if self.flags & STACK:
            return "the stack"
        if not self.object:
            return "zeros"
        return f"{object_words(self.object)}, page {self.index} on"


@dataclass(frozen=True)
class Space:
    """A struct space at an address."""

    address: int

    @property
    def value(self) -> gdb.Value:
        """The structure."""
        return structure("space", self.address)

    def areas(self) -> tuple[list[Area], str]:
        """All areas from the lowest on, and what is wrong with their tree. Raises Refusal."""
        if not has_member("space", "areas"):
            raise Refusal("this kernel's spaces have no areas: they come in lesson 6")
        found: list[Area] = []
        for node in nodes(pointer(self.value["areas"])):
            if isinstance(node, str):
                return found, node
            area = area_at(node)
            if area.end <= area.start or (found and area.start < found[-1].end):
                return found, f"the tree of areas is damaged: {area.words} is in no order"
            found.append(area)
        return found, ""


def nodes(root: int) -> Iterator[int | str]:
    """The nodes of a tree (kernel/lib/tree.h) from left to right; what is wrong, as a text, ends
    it."""
    above: list[int] = []
    visited: set[int] = set()
    at = root
    try:
        while at or above:
            while at:
                if at in visited or len(visited) == AREAS_AT_MOST or at < KERNEL_BASE:
                    yield f"the tree of areas is damaged: it goes on at {at:#010x}"
                    return
                visited.add(at)
                above.append(at)
                at = pointer(structure("tree_node", at)["left"])
            at = above.pop()
            yield at
            at = pointer(structure("tree_node", at)["right"])
    except gdb.MemoryError:
        yield f"the tree of areas is damaged: there is no memory at {at:#010x}"


def area_at(node: int) -> Area:
    """The area that a node of the tree is in."""
    area = structure("area", container(node, "area", "node"))
    numbers = (int(area["node"]["key"]), int(area["end"]), int(area["flags"]))
    return Area(*numbers, pointer(area["object"]), int(area["index"]))


def space_of(task: Task) -> Space:
    """A task's space. Raises Refusal."""
    if task.space:
        return Space(task.space)
    why = "it has ended" if task.state == "zombie" else "it is a thread of the kernel"
    raise Refusal(f"{task.title} has no address space: {why}")


def stack_limit(task: Task) -> int:
    """How far the stack of the task's program may grow, in bytes: what it has set, if the kernel
    asks for that."""
    if gdb.lookup_global_symbol("stack_limit") is None or not task.files:
        return STACK_USUAL
    soft = int(structure("files", task.files)["limits"][LIMIT_STACK]["soft"])
    return STACK_USUAL if soft == NO_LIMIT else min(soft, STACK_MOST) & -PAGE_SIZE


def directory_seen(task: Task | None) -> int:
    """The physical address of a task's directory; of the loaded one for None. Raises Refusal."""
    if task is None:
        return loaded_directory()
    space_of(task)
    return directory_of(task)


# ---- what areas show ----------------------------------------------------------------------------


def object_words(address: int) -> str:
    """What an object is: a file's name where it has one."""
    inode = inode_of_object(address)
    if inode is None:
        operations = symbol_at(pointer(structure("memory_object", address)["ops"])) or "?"
        return f"an object of {operations}"
    if int(inode["links"]) == 0:
        return "a file without a name"
    name = name_of_inode(address_of(inode))
    return name or f"file (inode {int(inode['number'])})"


def inode_of_object(address: int) -> gdb.Value | None:
    """The inode of a file in memory that is an object; None for another object."""
    operations = symbol_at(pointer(structure("memory_object", address)["ops"]))
    ours = optional("ops", "fs/memory/ramfs_memory.c")
    if ours is None or operations != symbol_at(address_of(ours)):
        return None
    offset = address_of(structure("ramfs_inode", 0)["file"]["memory"])
    return structure("ramfs_inode", address - offset)["inode"]


def pages_of_object(address: int) -> int | None:
    """How many pages a file in memory has; None where that is not known."""
    inode = inode_of_object(address)
    return None if inode is None else (int(inode["size"]) + PAGE_SIZE - 1) >> PAGE_SHIFT


def name_of_inode(wanted: int) -> str:
    """A path to an inode in the memory file system; "" if none is found in reasonable time."""
    root = optional("root", "fs/vfs/path.c")
    waiting = [("", pointer(root))] if root is not None else []
    looked_at = 0
    while waiting and looked_at < NAMES_AT_MOST:
        path, directory = waiting.pop(0)
        for name, inode in entries_of(directory):
            looked_at += 1
            if inode == wanted:
                return f"{path}/{name}"
            if is_own_directory(inode):
                waiting.append((f"{path}/{name}", inode))
    return ""


# ---- pages --------------------------------------------------------------------------------------


def page_value(physical: int) -> gdb.Value | None:
    """The entry of the page array for an address in memory; None where there is none."""
    frame = physical >> PAGE_SHIFT
    frames = optional("page_frames")
    if frames is None or not has_member("page", "state") or frame >= int(frames):
        return None
    return variable("page_array")[frame]


def references_of(physical: int) -> int | None:
    """How many entries and owners a page has; None for one that is not counted."""
    page = page_value(physical)
    if page is None or int(page["state"]) != int(gdb.parse_and_eval("PAGE_USED")):
        return None
    return int(page["references"])


def is_zero_page(physical: int) -> bool:
    """Whether it is the page of zeros that all programs share."""
    zero = optional("zero_page", "mm/fault.c")
    return zero is not None and address_of(zero) - KERNEL_BASE == physical & -PAGE_SIZE

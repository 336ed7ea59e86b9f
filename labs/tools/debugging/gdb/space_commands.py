"""Commands about virtual memory: a program's areas, the entries of an address, and why an access
does what it does."""

from __future__ import annotations

from dataclasses import dataclass

import gdb

from labs.tools.debugging.gdb.commands import Refusal, command, table
from labs.tools.debugging.gdb.kernel_data import KERNEL_BASE, noted, pointer
from labs.tools.debugging.gdb.memory_commands import block_of
from labs.tools.debugging.gdb.processor import symbol_at
from labs.tools.debugging.gdb.spaces import (
    COPIED,
    LARGE_SHIFT,
    PAGE_SHIFT,
    PAGE_SIZE,
    PROTECTION,
    SHARED,
    SPACE_SHARED,
    STACK,
    STACK_GAP,
    WRITE,
    Area,
    Entry,
    Translation,
    directory_seen,
    is_zero_page,
    kernel_may_write_anywhere,
    page_value,
    pages_of_object,
    references_of,
    space_of,
    stack_limit,
    translate,
)
from labs.tools.debugging.gdb.tasks import Task, find_task

ADDRESS_BITS = 32
KIB = 1024
SEGV_MAPPING = "SIGSEGV (SEGV_MAPERR)"
SEGV_ACCESS = "SIGSEGV (SEGV_ACCERR)"
BUS_ADDRESS = "SIGBUS (BUS_ADRERR)"


def address_in(text: str) -> int:
    """An address, or any expression that has one. Raises Refusal and gdb.error."""
    found = gdb.parse_and_eval(text)
    try:
        value = int(found.address if found.type.code == gdb.TYPE_CODE_FUNC else found)
    except gdb.error as error:
        raise Refusal(f"{text} is not an address: it is a {found.type}") from error
    if not -(1 << ADDRESS_BITS - 1) <= value < 1 << ADDRESS_BITS:
        raise Refusal(f"{value:#x} is not an address: the machine's have {ADDRESS_BITS} bits")
    return value & 0xFFFFFFFF


# ---- areas --------------------------------------------------------------------------------------


@command("areas", "[PID]")
def areas(pid: str = "") -> str:
    """The areas of a task's address space: range, size, protection, and what they show."""
    task = find_task(pid)
    space = space_of(task)
    found, damage = space.areas()
    value = space.value
    rows = [area_row(area) for area in found]
    heads = ("start", "end", "KiB", "may", "", "shows")
    parts = [f"{task.title}: {len(found)} areas, {int(value['pages'])} pages are mapped"]
    parts += [table(heads, rows)] if rows else []
    heap = pointer(value["heap_start"]), pointer(value["heap_end"])
    parts += [f"The heap is {heap[0]:#010x} to {heap[1]:#010x} (brk)."] if any(heap) else []
    size, counted = sum(area.end - area.start for area in found), int(value["size"])
    if not damage and size != counted:
        parts.append(f"But the space counts {counted} bytes, and the areas have {size}.")
    return noted("\n".join(parts), damage)


def area_row(area: Area) -> tuple[object, ...]:
    """One area, as cells of a table."""
    what = area.what()
    if area.object and area.flags & COPIED:
        what += "; has copies of its own"
    size = (area.end - area.start) // KIB
    return f"{area.start:#010x}", f"{area.end:#010x}", size, area.rights(), area.kind(), what


# ---- entries ------------------------------------------------------------------------------------


@command("pte", "ADDRESS [PID]")
def pte(address: str, pid: str = "") -> str:
    """The entries of the page tables for an address, as the processor or as a task sees it."""
    at = address_in(address)
    task = find_task(pid) if pid else None
    found = translate(directory_seen(task), at)
    lines = [f"{at:#010x}{f' in {task.title}' if task else ''}", directory_line(found)]
    if found.table is not None:
        lines.append(entry_line("table", at >> PAGE_SHIFT & 0x3FF, found.table))
    if found.has_page:
        lines.append(f"physical address {found.physical:#010x}: {page_words(found)}")
    else:
        lines.append("no page is there for the processor: an access is a page fault")
    return "\n".join(lines)


def directory_line(found: Translation) -> str:
    """The first of the two entries."""
    return entry_line("directory", found.address >> LARGE_SHIFT, found.directory)


def entry_line(name: str, index: int, entry: Entry) -> str:
    """An entry, its index, and where it leads."""
    words = f"{name}[{index}] = {entry.value:#010x}: {entry.words()}"
    if not entry.value:
        return words
    where = "a table" if name == "directory" and not entry.is_large else "the page"
    return f"{words}; {where} is at {entry.target:#010x}"


def page_words(found: Translation) -> str:
    """What the page array says of the page that an address has."""
    page = page_value(found.physical)
    if page is None:
        return "in no frame of the page array"
    if is_zero_page(found.physical):
        return "the page of zeros that all share"
    frame, references = found.physical >> PAGE_SHIFT, references_of(found.physical)
    if references is None:
        return f"frame {frame:#x}, {block_of(frame).words}"
    owner = symbol_at(int(page["owner"])) or f"{int(page['owner']):#010x}"
    return f"frame {frame:#x}, allocated by {owner}, {counted(references)}"


def counted(references: int) -> str:
    """How many references, in words."""
    return f"{references} reference{'s' if references != 1 else ''}"


# ---- why ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """What an access does: the words, and whether the program's access comes to an end."""

    words: str
    signal: str = ""

    def for_user(self) -> str:
        """For an access of the program's."""
        return f"page fault; {self.words}: {self.signal}" if self.signal else self.words

    def for_kernel(self) -> str:
        """For a copy to or from the program (mm/user_copy.c)."""
        return f"page fault; {self.words}: the call returns EFAULT" if self.signal else self.words


class Place:
    """An address in a task's space: its area, and its entries."""

    def __init__(self, task: Task, address: int) -> None:
        self.address = address
        self.task = task
        self.areas, self.damage = space_of(task).areas()
        self.found = translate(directory_seen(task), address)

    @property
    def page(self) -> int:
        """Where the address's page begins."""
        return self.address & -PAGE_SIZE

    @property
    def area(self) -> Area | None:
        """The area that the address is in."""
        return next((area for area in self.areas if area.start <= self.address < area.end), None)

    @property
    def next(self) -> Area | None:
        """The first area above, without one here."""
        return next((area for area in self.areas if area.start > self.address), None)

    def why_no_stack(self) -> str:
        """Why the stack does not grow to here; "" if it does."""
        above = self.next
        if above is None or not above.flags & STACK:
            return "no area is there"
        if above.end - self.page > (limit := stack_limit(self.task)):
            return f"the stack may not grow beyond {limit // KIB} KiB"
        if any(area.end > self.page - STACK_GAP for area in self.areas if area.start < above.start):
            return f"the stack must stay {STACK_GAP // KIB} KiB away from the area below it"
        return ""

    def answer(self, write: bool) -> Answer:
        """What an access does, as mm/fault.c decides it."""
        area = self.area
        if self.address >= SPACE_SHARED:
            return Answer("no part of the address space that programs have", SEGV_MAPPING)
        if area is None and (why := self.why_no_stack()):
            return Answer(why, SEGV_MAPPING)
        area = area or self.next
        if not area.flags & (WRITE if write else PROTECTION):
            return Answer(f"the area ({area.rights()}) does not allow it", SEGV_ACCESS)
        if self.found.has_page and (self.found.is_writable or not write):
            return Answer("no fault: the entry allows it")
        grows = "" if self.area else f"the stack grows down to {self.page:#010x}, and "
        return self.fault(area, write, grows)

    def fault(self, area: Area, write: bool, before: str) -> Answer:
        """What the fault does that an area allows."""
        if not self.found.table or not self.found.last.value:
            return self.first(area, write, before)
        if not write or self.found.last.is_writable:
            return Answer("page fault; the entry is there, and becomes present again")
        return Answer(f"page fault; {self.copy_on_write(area)}")

    def first(self, area: Area, write: bool, before: str) -> Answer:
        """There is no page yet."""
        if not area.object:
            zeros = "a new page of zeros" if write else "the page of zeros that all share"
            how = "writable" if write else "read-only"
            return Answer(f"page fault; {before}{zeros} is put there, {how}")
        index, pages = area.page_of(self.address), pages_of_object(area.object)
        if pages is not None and index >= pages:
            return Answer(f"the file has {pages} pages, and this is page {index}", BUS_ADDRESS)
        if not write:
            words = f"page {index} of the file is shown, read-only, and those around it"
        elif area.flags & SHARED:
            words = f"page {index} of the file is shown, writable; it is dirty from now on"
        else:
            words = f"a copy of page {index} of the file is put there, writable"
        return Answer(f"page fault; {words}")

    def copy_on_write(self, area: Area) -> str:
        """A page is there, and may not be written to now."""
        physical = self.found.last.target
        references = references_of(physical)
        if area.flags & SHARED:
            return "the file is told that the page becomes dirty, and the entry becomes writable"
        if is_zero_page(physical):
            return "copy on write: a new page of zeros takes the place of the one that all share"
        if references == 1:
            return "copy on write: the page has 1 reference, so the entry becomes writable"
        return f"copy on write: the page has {counted(references or 0)}, so a copy takes its place"


@command("why", "ADDRESS [PID]")
def why(address: str, pid: str = "") -> str:
    """In words: what an address of a task has, and what reading and writing there would do."""
    at, task = address_in(address), find_task(pid)
    place = Place(task, at)
    found = place.found
    lines = [f"{at:#010x} in {task.title}", f"area: {area_words(place)}"]
    lines.append(f"entry: {found_words(found)}")
    reads, writes = place.answer(write=False), place.answer(write=True)
    if found.has_page and found.is_user and place.area is None:
        reads = Answer("no fault: the entry allows it")  # the page that all spaces share
    if at >= KERNEL_BASE:
        user = Answer("the entry is for the kernel only", SEGV_MAPPING)
        lines += access_lines("user mode", "reads", user.for_user(), "writes", user.for_user())
        lines += access_lines(
            "kernel", "reads", own_words(found, False), "writes", own_words(found, True)
        )
    else:
        lines += access_lines("user mode", "reads", reads.for_user(), "writes", writes.for_user())
        kernel = writes.for_kernel()
        if found.has_page and not found.is_writable and kernel_may_write_anywhere():
            kernel = "no fault, although the page is read-only: CR0.WP is 0, as it must not be"
        lines += access_lines("kernel", "reads", reads.for_kernel(), "writes", kernel)
    return noted("\n".join(lines), place.damage)


def access_lines(who: str, *pairs: str) -> list[str]:
    """Two lines: who does what, and what comes of it."""
    actions = zip(pairs[::2], pairs[1::2], strict=True)
    return [f"{who} {action}: {words}" for action, words in actions]


def area_words(place: Place) -> str:
    """Which area an address is in."""
    if place.address >= KERNEL_BASE:
        name = symbol_at(place.address)
        return "none: the kernel's part, the same in every space" + (f"; {name}" if name else "")
    if place.address >= SPACE_SHARED:
        return "none: the page of the kernel's that every space shows, read-only"
    area = place.area
    if area is not None:
        return f"{area.words}; {area.what()}"
    above = place.next
    if above is None:
        return "none, and none above"
    distance = (above.start - place.address + KIB - 1) // KIB
    return f"none; the next one is {distance} KiB above: {above.words}; {above.what()}"


def found_words(found: Translation) -> str:
    """What the page tables have for an address."""
    if found.table is None and not found.directory.is_large:
        return f"none: directory[{found.address >> LARGE_SHIFT}] is empty, so there is no table"
    entry = found.last
    if not entry.value:
        return "empty: no page has been put there"
    if not found.has_page:
        return f"{entry.words()}: a page is kept for it, which the program may not use now"
    rights = "writable" if found.is_writable else "read-only"
    return f"{rights}, {page_words(found)}"


def own_words(found: Translation, write: bool) -> str:
    """What an access of the kernel's to its own memory does."""
    if not found.has_page:
        return "page fault; nothing is there: a panic"
    if write and not found.is_writable and not kernel_may_write_anywhere():
        return "page fault; the page is read-only: a panic"
    return "no fault: the entry allows it"

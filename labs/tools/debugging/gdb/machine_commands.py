"""Commands that look at the machine: where it is, its page tables, its serial line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from labs.tools.debugging.gdb.commands import COMMANDS, Refusal, command, count, last_lines, table
from labs.tools.debugging.gdb.past import is_past
from labs.tools.debugging.gdb.processor import (
    Processor,
    instructions,
    quiet,
    read_physical,
    symbol_at,
)
from labs.tools.debugging.gdb.session import SESSION

# Page directory and page table entries: Intel SDM volume 3, 4.3.
PRESENT, WRITABLE, USER, WRITE_THROUGH, UNCACHED = 1, 2, 4, 8, 16
LARGE, GLOBAL = 1 << 7, 1 << 8
PAGE, LARGE_PAGE = 1 << 12, 1 << 22
CR4_LARGE_PAGES = 1 << 4


@command("apprentice")
def apprentice() -> str:
    """This list."""
    width = max(map(len, COMMANDS))
    return "\n".join(f"{usage:<{width}}  {text}" for usage, text in sorted(COMMANDS.items()))


@command("where-am-i")
def where_am_i() -> str:
    """The processor's mode, where it is, and the next instruction; shown at each stop."""
    return Processor().line()


@command("xi", "[COUNT]")
def examine_instructions(wanted: str = "10") -> str:
    """The next instructions. Unlike x/i $pc it adds the base of CS: right in the BIOS too."""
    lines = instructions(Processor().linear, count(wanted))
    return "\n".join(instruction_line(address, text) for address, text in lines)


def instruction_line(address: int, text: str) -> str:
    """One line of code."""
    name = symbol_at(address)
    return f"  {address:#010x}" + (f" <{name}>" if name else "") + f":  {text}"


@command("console", "[LINES]")
def console(lines: str = "20") -> str:
    """What came out of the serial line last, once more."""
    return last_lines(SESSION.written(), count(lines))


@command("type", "WORD...")
def type_line(*words: str) -> None:
    """Types a line on the serial line; the kernel reads it when it runs (c)."""
    if is_past():
        raise Refusal("the past has its input already; type  now  to come out of it")
    SESSION.console().send(" ".join(words))


@command("core", "FILE")
def core(file: str) -> str:
    """Writes memory and registers to a file: make gdb FILE=... looks at them at any later time."""
    path = Path(file).expanduser().absolute()
    said = quiet(f"monitor dump-guest-memory {path}").strip()
    if said:
        raise Refusal(said)
    return f"To look at it: make gdb FILE={path}"


# Page tables


@dataclass(frozen=True)
class Mapping:
    """One entry: `size` bytes from linear address `start` on are at `physical`."""

    start: int
    physical: int
    size: int
    flags: str

    @property
    def run(self) -> tuple[int, int, str]:
        """Equal for entries that continue one another."""
        return self.start - self.physical, self.size, self.flags


@command("page-directory")
def page_directory() -> str:
    """Which linear addresses are mapped, to where, and how; entries that continue are joined."""
    processor = Processor()
    if not processor.has_paging:
        raise Refusal("paging is off: linear addresses are physical addresses")
    root = processor.registers["CR3"] & ~(PAGE - 1)
    rows = list(mapping_rows(root, bool(processor.registers["CR4"] & CR4_LARGE_PAGES)))
    heads = ("linear", "physical", "KiB", "pages", "who, how")
    return f"page directory at {root:#010x} (cr3)\n" + table(heads, rows)


def mapping_rows(root: int, has_large_pages: bool) -> Iterator[tuple[object, ...]]:
    """The runs of mappings, as rows of a table."""
    runs = groupby(mappings(root, has_large_pages), key=lambda mapping: mapping.run)
    for _, group in runs:
        run = list(group)
        first, last = run[0], run[-1]
        end = last.start + last.size - 1
        pages = f"{len(run)} x {first.size // 1024} KiB"
        place = f"{first.start:#010x} - {end:#010x}"
        yield place, f"{first.physical:#010x}", len(run) * first.size // 1024, pages, first.flags


def mappings(root: int, has_large_pages: bool) -> Iterator[Mapping]:
    """What is present, by address. The rights are those of directory and table together."""
    for index, entry in present_entries(root):
        if entry & LARGE and has_large_pages:
            yield Mapping(index * LARGE_PAGE, entry & -LARGE_PAGE, LARGE_PAGE, flag_words(entry))
            continue
        for inner, page in present_entries(entry & -PAGE):
            rights = page & (entry | ~(WRITABLE | USER))
            start = index * LARGE_PAGE + inner * PAGE
            yield Mapping(start, page & -PAGE, PAGE, flag_words(rights))


def present_entries(address: int) -> Iterator[tuple[int, int]]:
    """The entries of the table at a physical address that are present, with their numbers."""
    memory = read_physical(address, PAGE)
    for index in range(PAGE // 4):
        entry = int.from_bytes(memory[index * 4 : index * 4 + 4], "little")
        if entry & PRESENT:
            yield index, entry


def flag_words(entry: int) -> str:
    """Who may do what; where the processor has been (accessed, dirty) is left out."""
    words = ["user" if entry & USER else "kernel", "writable" if entry & WRITABLE else "read-only"]
    words += [word for bit, word in ((GLOBAL, "global"), (UNCACHED, "uncached")) if entry & bit]
    return ", ".join([*words, "write-through"] if entry & WRITE_THROUGH else words)

"""Names for addresses: the symbol table and the line table of a kernel's ELF file."""

from __future__ import annotations

from bisect import bisect_right
from contextlib import suppress
from functools import cached_property, lru_cache
from io import BytesIO
from operator import attrgetter, itemgetter
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from elftools.dwarf.lineprogram import LineProgram
    from elftools.elf.sections import Symbol as ElfSymbol

MOST_LINES = 500_000  # rows of an object's line table; the largest kernel has 45,000 in all
KERNEL, LOADER = "kernel.elf", "stage2.elf"  # of one folder of the build
KERNEL_BASE = 0xC0000000  # kernel/cpu/memory_layout.h

# The first MiB of a PC, as our loader uses it; the last area must end where that does.
AREAS = (
    (0, 0x400, "the interrupt vectors of real mode"),
    (0x7C00, 0x7E00, "the boot sector (boot/mbr.asm)"),
    (0xC0000, 0x100000, "the BIOS"),
    (0, 0x100000, "memory below 1 MiB that holds no code"),
)


class Symbol(NamedTuple):
    """A name in the kernel; `size` is in bytes and 0 where the assembler gave none. A function is
    more than a label, such as the linker script's."""

    address: int
    is_function: bool
    size: int
    name: str
    is_code: bool


class Symbols:
    """The symbols of an ELF file. Without a file there are none, and addresses stay numbers."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        symbols = read_symbols(path) if path else []
        self._by_name = {symbol.name: symbol for symbol in symbols}
        self._code = sorted(symbol for symbol in symbols if symbol.is_code)
        loader = path.parent / LOADER if path and path.name == KERNEL else None
        self.loader = Symbols(loader) if loader and loader.exists() else None

    def find(self, name: str) -> Symbol:
        """The symbol `name`; raises KeyError that says which file has no such symbol."""
        if name not in self._by_name:
            raise KeyError(f"no symbol {name} in {self.path}")
        return self._by_name[name]

    def describe(self, address: int, is_return: bool = False) -> str:
        """The address in words: "0xc0101234 page_free+0x12 (buddy.c:88)". A return address belongs
        to the call before it, which may be the last instruction of its function."""
        place = address - is_return
        symbol = self._function(place)
        if symbol is None:
            return f"{address:#010x}{self._elsewhere(place)}"
        line = self._line(place)
        source = f" ({line})" if line else ""
        return f"{address:#010x} {symbol.name}+{address - symbol.address:#x}{source}"

    def _elsewhere(self, address: int) -> str:
        """What is at an address that is in no function of the file: our own loader, which was built
        beside the kernel; the kernel's code as it is seen before paging; a part of the PC."""
        if self.loader and (words := self.loader.describe(address).partition(" ")[2]):
            return f" {words} of our boot loader"
        if self.path and self._function(address + KERNEL_BASE):
            words = self.describe(address + KERNEL_BASE).partition(" ")[2]
            return f" {words}, at its physical address"
        names = [name for start, end, name in AREAS if start <= address < end]
        return f" in {names[0]}" if self.loader and names else ""

    def start_of(self, address: int) -> int | None:
        """Where the function begins that holds this address; None where no function is."""
        symbol = self._function(address)
        return symbol.address if symbol else None

    def code_between(self, low: int, high: int) -> list[int]:
        """Where functions and labels begin, from `low` on and below `high`."""
        return [each.address for each in self._code if low <= each.address < high]

    def _function(self, address: int) -> Symbol | None:
        """The function at an address. One without a size ends at most a page later."""
        index = bisect_right(self._code, address, key=attrgetter("address")) - 1
        symbol = self._code[index] if index >= 0 else None
        return symbol if symbol and address < symbol.address + (symbol.size or 4096) else None

    def _line(self, address: int) -> str:
        return self._lines.at(address) if self.path else ""

    @cached_property
    def _lines(self) -> Lines:
        return Lines(self.path)


class Lines:
    """The line tables of an ELF file. That of an object which was linked into it is read when one
    of its addresses is asked for: all of them take seconds."""

    def __init__(self, path: Path) -> None:
        from elftools.elf.elffile import ELFFile  # not needed for names, and slow to load

        elf = ELFFile(BytesIO(path.read_bytes()))
        self._information = elf.get_dwarf_info() if elf.has_dwarf_info() else None
        self._objects = self._information.get_aranges() if self._information else None
        self._rows: dict[int, list[tuple[int, str]]] = {}

    def at(self, address: int) -> str:
        """The "file:line" of an address; empty where none is known."""
        known = self._objects and self._objects.entries
        unit = self._objects.cu_offset_at_addr(address) if known else None
        rows = [] if unit is None else self._rows_of(unit)
        index = bisect_right(rows, address, key=itemgetter(0)) - 1
        return rows[index][1] if index >= 0 else ""

    def _rows_of(self, unit: int) -> list[tuple[int, str]]:
        """The rows of the object whose debug information is at this offset."""
        if unit not in self._rows:
            information = self._information
            program = information.line_program_for_CU(information.get_CU_at(unit))
            self._rows[unit] = sorted(unit_lines(program)[:MOST_LINES]) if program else []
        return self._rows[unit]


@lru_cache(maxsize=8)
def load(path: Path | None, modified: int) -> Symbols:
    """The symbols of a file as it was at `modified` (nanoseconds), read once."""
    return Symbols(path)


def symbols_of(path: Path | None) -> Symbols:
    """The symbols of a file, read again only after it has changed."""
    return load(path, path.stat().st_mtime_ns if path else 0)


def read_symbols(path: Path) -> list[Symbol]:
    """The named functions, labels and objects of an ELF file; none of another one, such as the
    kernel of Debian's Linux, or of one that is damaged."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile  # slow to load, and few commands need it

    with path.open("rb") as stream, suppress(ELFError):
        table = ELFFile(stream).get_section_by_name(".symtab")
        entries = table.iter_symbols() if table else ()
        return [symbol for entry in entries if (symbol := symbol_of(entry))]
    return []


def symbol_of(entry: ElfSymbol) -> Symbol | None:
    """A table entry that names a place in the kernel; an assembler's local labels are left out."""
    kind = entry["st_info"]["type"]
    is_label = kind == "STT_NOTYPE"
    if kind not in ("STT_FUNC", "STT_OBJECT", "STT_NOTYPE") or not entry.name:
        return None
    if entry["st_shndx"] in ("SHN_UNDEF", "SHN_ABS") or (is_label and "." in entry.name):
        return None
    is_function, is_code = kind == "STT_FUNC", kind != "STT_OBJECT"
    return Symbol(entry["st_value"], is_function, entry["st_size"], entry.name, is_code)


def unit_lines(program: LineProgram) -> list[tuple[int, str]]:
    """The rows of one object: addresses and "file:line", "" where a sequence of known lines ends.
    DWARF 5 counts files from 0, older versions from 1."""
    first = 0 if program["version"] >= 5 else 1
    names = [PurePath(entry.name.decode(errors="replace")).name for entry in program["file_entry"]]
    states = (entry.state for entry in program.get_entries() if entry.state)
    return [
        (state.address, "" if state.end_sequence else f"{names[state.file - first]}:{state.line}")
        for state in states
        if 0 <= state.file - first < len(names)
    ]

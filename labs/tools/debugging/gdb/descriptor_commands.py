"""The command that shows the descriptor tables: GDT, IDT and TSS, as they are loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby

import gdb

from labs.tools.debugging.gdb.commands import Refusal, command, variable
from labs.tools.debugging.gdb.processor import Processor, Segment, read_linear, symbol_at

# Intel SDM volume 3, table 3-2: the types of system descriptors.
SYSTEM_TYPES = {
    0x1: "16-bit TSS",
    0x2: "LDT",
    0x3: "16-bit TSS, busy",
    0x4: "16-bit call gate",
    0x5: "task gate",
    0x6: "16-bit interrupt gate",
    0x7: "16-bit trap gate",
    0x9: "TSS",
    0xB: "TSS, busy",
    0xC: "call gate",
    0xE: "interrupt gate",
    0xF: "trap gate",
}
TASK_GATE = 0x5
TABLE_LIMIT = 256 * 8
TASK_STATE_HEAD = 12
REAL_MODE_VECTORS = ("IDT", 0, 0x3FF)


@dataclass(frozen=True)
class Descriptor:
    """Eight bytes of a descriptor table: Intel SDM volume 3, 3.4.5 and 6.11."""

    low: int
    high: int

    @property
    def kind(self) -> int:
        """The type field."""
        return self.high >> 8 & 0xF

    @property
    def ring(self) -> int:
        """The privilege level that may use it."""
        return self.high >> 13 & 3

    @property
    def is_present(self) -> bool:
        """Whether it may be used at all."""
        return bool(self.high >> 15 & 1)

    @property
    def base(self) -> int:
        """Of a segment: its linear address."""
        return self.low >> 16 | (self.high & 0xFF) << 16 | self.high & 0xFF000000

    @property
    def limit(self) -> int:
        """Of a segment: its last byte."""
        limit = self.low & 0xFFFF | self.high & 0xF0000
        return limit << 12 | 0xFFF if self.high >> 23 & 1 else limit

    @property
    def selector(self) -> int:
        """Of a gate: the segment or task it leads to."""
        return self.low >> 16

    @property
    def offset(self) -> int:
        """Of a gate: the address in that segment."""
        return self.low & 0xFFFF | self.high & 0xFFFF0000

    @property
    def name(self) -> str:
        """What it is."""
        if not self.high >> 12 & 1:
            return SYSTEM_TYPES.get(self.kind, f"reserved type {self.kind:#x}")
        if not self.kind & 8:
            return "data, writable" if self.kind & 2 else "data"
        return f"{'32' if self.high >> 22 & 1 else '16'}-bit code"

    def words(self) -> str:
        """What it is, and for whom."""
        return f"{self.name}, ring {self.ring}" + ("" if self.is_present else ", not present")


Entry = tuple[int, Descriptor]


@command("descriptors")
def descriptors() -> str:
    """The descriptor tables (GDT, IDT) and the task state (TSS), as they are loaded."""
    processor = Processor()
    if not processor.is_protected:
        base, limit = processor.tables["IDT"]
        return (
            "Real mode has no descriptors: a segment begins at 16 times its number, and the\n"
            f"addresses of the interrupt handlers are at {base:#010x}, limit {limit:#x}."
        )
    users = segment_users(processor)
    parts = [
        table("GDT", processor, lambda entries: gdt_lines(entries, users)),
        table("IDT", processor, idt_lines),
        handlers(),
        task_state(processor.segments["TR"]),
    ]
    return "\n".join(filter(None, parts))


def table(name: str, processor: Processor, lines: Callable[[list[Entry]], Iterator[str]]) -> str:
    """A table under its heading."""
    base, limit = processor.tables[name]
    head = f"{name} at {base:#010x}, limit {limit:#x}"
    if (name, base, limit) == REAL_MODE_VECTORS:
        return f"{head}: the BIOS's vectors for real mode; no gates yet"
    try:
        return "\n".join([head, *lines(list(entries(base, limit)))])
    except gdb.MemoryError:
        return f"{head}: the boot loader's; it is not mapped any more"


def entries(base: int, limit: int) -> Iterator[Entry]:
    """The descriptors of a table that are not empty; `limit` is its last byte."""
    length = min(limit + 1, TABLE_LIMIT) // 8 * 8
    memory = read_linear(base, length) if length else b""
    for at in range(0, length, 8):
        descriptor = Descriptor(little(memory[at : at + 4]), little(memory[at + 4 : at + 8]))
        if descriptor.low | descriptor.high:
            yield at // 8, descriptor


def little(memory: bytes) -> int:
    """A number as the processor stores it."""
    return int.from_bytes(memory, "little")


def segment_users(processor: Processor) -> dict[int, str]:
    """Which segment registers hold which entry of the GDT."""
    users: dict[int, list[str]] = {}
    for name, segment in processor.segments.items():
        users.setdefault(segment.selector >> 3, []).append(name.lower())
    return {index: "  <- " + ", ".join(names) for index, names in users.items()}


def gdt_lines(table_entries: list[Entry], users: dict[int, str]) -> Iterator[str]:
    """A line for each segment: selector, kind, first byte and limit, who uses it."""
    for index, each in table_entries:
        place = f"{each.base:#010x} + {each.limit:#x}"
        yield f"  {index * 8:#04x}  {each.words():<24}  {place}{users.get(index, '')}"


def idt_lines(table_entries: list[Entry]) -> Iterator[str]:
    """A line for each run of gates of the same kind: where the first and the last lead."""
    for _, group in groupby(table_entries, key=lambda entry: gate_kind(entry[1])):
        (first, gate), *others = group
        last, end = others[-1] if others else (first, gate)
        vectors = f"{first} to {last}" if others else str(first)
        names = " to ".join(dict.fromkeys((handler_name(gate), handler_name(end))))
        target = f"selector {gate.selector:#x}" + (f": {names}" if names else "")
        yield f"  {vectors:<10}  {gate.words()}, {target}"


def gate_kind(gate: Descriptor) -> tuple[int, int]:
    """Equal for gates that differ only in their offset."""
    return gate.high & 0xFFFF, gate.selector


def handler_name(gate: Descriptor) -> str:
    """Where a gate leads; a task gate has no address."""
    return "" if gate.kind == TASK_GATE else symbol_at(gate.offset) or f"{gate.offset:#010x}"


def handlers() -> str:
    """What the kernel calls for which vector."""
    try:
        array = variable("handlers", "kernel/cpu/trap.c")
    except Refusal:
        return ""
    memory = read_linear(int(array.address), array.type.sizeof)
    words = [little(memory[at : at + 4]) for at in range(0, len(memory), 4)]
    lines = ["Registered with the kernel (trap_register)"]
    for address, group in groupby(range(len(words)), key=words.__getitem__):
        first, *others = group
        vectors = f"{first} to {others[-1]}" if others else str(first)
        if address:
            lines.append(f"  {vectors:<10}  {symbol_at(address) or f'{address:#010x}'}")
    return "\n".join(lines) if lines[1:] else ""


def task_state(register: Segment) -> str:
    """The TSS of the current task: the stack for traps from ring 3, mostly."""
    if register.selector == 0:
        return "TSS: none is loaded (tr is 0)"
    memory = read_linear(register.base, TASK_STATE_HEAD)
    link, esp0, ss0 = (little(memory[at : at + 4]) for at in (0, 4, 8))
    name = symbol_at(register.base) or ""
    text = f"TSS at {register.base:#010x} {name} (tr {register.selector:#x}): "
    text += f"traps from ring 3 take the stack {ss0 & 0xFFFF:#x}:{esp0:#010x}"
    return text + (f"; came from task {link & 0xFFFF:#x}" if link & 0xFFFF else "")

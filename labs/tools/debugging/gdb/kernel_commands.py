"""Commands that look into the kernel: its log, its disk requests, its memory map, its traps."""

from __future__ import annotations

from collections.abc import Iterator

import gdb

from labs.tools.debugging.gdb.commands import (
    Refusal,
    command,
    count,
    last_lines,
    number,
    table,
    variable,
)
from labs.tools.debugging.gdb.processor import Processor, read_linear, symbol_at
from labs.tools.debugging.gdb.session import SESSION
from labs.tools.debugging.gdb.unwinding import stack_pointer, trap_frame_at
from labs.tools.machine.explain import (
    DOUBLE_FAULT,
    PAGE_FAULT,
    RECORD,
    VECTOR_NAMES,
    WITH_SELECTOR,
    Fault,
    fault_report,
    page_fault_words,
    selector_words,
)

EXCEPTIONS = 32
FRAMES_AT_MOST = 64
TRAP_FUNCTIONS = ("trap_panic", "trap_dispatch")  # a trap frame is their first argument
MEMORY_TYPES = {1: "usable", 2: "reserved", 3: "ACPI tables", 4: "ACPI NVS", 5: "defective"}
PURPOSES = {0: "data", 1: "mapping", 2: "other"}


class GdbSymbols:
    """What the reports of labs/tools/machine/explain.py ask of a symbol table, answered by gdb."""

    def describe(self, address: int) -> str:
        """The address with its name, and its line where there is one."""
        name = symbol_at(address)
        place = gdb.find_pc_line(address)
        line = f" ({place.symtab.filename}:{place.line})" if place.symtab else ""
        return f"{address:#010x}" + (f" {name}{line}" if name else "")


@command("klog", "[LINES]")
def klog(lines: str = "20") -> str:
    """What the kernel printed last, out of its memory: also after a hang, and without a console."""
    length = int(variable("log_length"))
    ring = variable("log_ring")
    size = ring.type.sizeof
    memory = read_linear(int(ring.address), size)
    start = length % size if length > size else 0
    text = (memory[start:] + memory[:start])[: min(length, size)]
    return last_lines(text.decode(errors="replace"), count(lines))


@command("disk-requests", "[COUNT]")
def disk_requests(wanted: str = "10") -> str:
    """The last disk requests of the kernel's trace ring, oldest first."""
    trace = variable("trace")
    total = int(trace["total"])
    ring = trace["ring"]
    size = ring.type.range()[1] + 1
    numbers = range(max(0, total - min(count(wanted), size)), total)
    heads = ("number", "at us", "took us", "drive", "operation", "LBA", "sectors", "for", "result")
    rows = [request_row(index, ring[index % size]) for index in numbers]
    return "\n".join([*([table(heads, rows)] if rows else []), f"{total} requests since the boot"])


def request_row(index: int, record: gdb.Value) -> tuple[object, ...]:
    """One record of the ring, as cells of a table."""
    purpose = int(record["purpose"])
    result = int(record["result"])
    return (
        index,
        int(record["start_ns"]) // 1000,
        int(record["duration_ns"]) // 1000,
        "hd" + chr(int(record["drive"])),
        {"R": "read", "W": "write"}.get(chr(int(record["operation"])), "?"),
        int(record["lba"]),
        int(record["sectors"]),
        PURPOSES.get(purpose, purpose),
        "done" if result == 0 else f"error {result}",
    )


@command("memory-map")
def memory_map() -> str:
    """Physical memory, as the boot loader told it and as the kernel put it in order."""
    told = variable("boot_info")
    if int(told["range_count"]) == 0:
        raise Refusal("the kernel has not read it yet (boot_info_read)")
    loader = told["loader"].string(errors="replace")
    parts = [f"As {loader} told it:", ranges(told["ranges"], int(told["range_count"]))]
    try:
        normalized = variable("ranges", "mm/memory_map.c")
        number_of_ranges = int(variable("range_count", "mm/memory_map.c"))
        parts += ["In order:", ranges(normalized, number_of_ranges)]
    except Refusal:
        parts.append("This kernel does not put it in order.")
    return "\n".join(parts)


def ranges(array: gdb.Value, length: int) -> str:
    """The first `length` ranges of an array, a line each."""
    limit = array.type.range()[1] + 1
    return "\n".join(memory_range(array[index]) for index in range(min(length, limit))) or "  none"


def memory_range(each: gdb.Value) -> str:
    """One range, with its size in KiB."""
    base, length, kind = int(each["base"]), int(each["length"]), int(each["type"])
    words = MEMORY_TYPES.get(kind, f"type {kind}")
    return f"  {base:#011x} - {base + length - 1:#011x} {length // 1024:>9} KiB  {words}"


@command("trap-frame", "[ADDRESS]")
def trap_frame(address: str = "") -> str:
    """A struct trap_frame in words: the one at ADDRESS, or that of the trap being handled."""
    place = number(address) if address else current_trap_frame()
    if place is None:
        raise Refusal("no trap is being handled here; give the address of a frame")
    frame = trap_frame_at(place)
    return "\n".join([trap_sentence(frame), *register_lines(frame), f"frame at {place:#010x}"])


def current_trap_frame() -> int | None:
    """The address of the innermost trap's frame, found on the stack of calls."""
    for frame in stack():
        if frame.name() in TRAP_FUNCTIONS and frame.older():
            argument = int(frame.older().read_register("esp")) & 0xFFFFFFFF
            return int.from_bytes(read_linear(argument, 4), "little")
    return None


def stack() -> Iterator[gdb.Frame]:
    """The frames from the innermost on."""
    frame = gdb.newest_frame()
    for _ in range(FRAMES_AT_MOST):
        if frame is None:
            return
        yield frame
        frame = frame.older()


def trap_sentence(frame: gdb.Value) -> str:
    """What happened, and where."""
    vector, error, eip = (int(frame[name]) for name in ("vector", "error_code", "eip"))
    if vector >= EXCEPTIONS:
        words = f"interrupt, vector {vector:#x}"
    else:
        name = VECTOR_NAMES.get(vector, "reserved")
        words = f"exception {vector}, {name}, error code {error:#x}{error_words(vector, error)}"
    return f"{words}\nat {GdbSymbols().describe(eip)}, ring {int(frame['cs']) & 3}"


def error_words(vector: int, error: int) -> str:
    """An error code in words, with the address for a page fault."""
    cr2 = Processor().registers["CR2"]
    if vector == DOUBLE_FAULT:
        return f": on the way to a handler there was another, cr2 is {cr2:#010x}"
    if vector == PAGE_FAULT:
        return f": {page_fault_words(error)} {cr2:#010x} (cr2)"
    if vector in WITH_SELECTOR and error:
        return f": {selector_words(error)}"
    return ""


def register_lines(frame: gdb.Value) -> list[str]:
    """The registers of a trap frame."""
    values = {name: int(frame[name]) for name in ("eax", "ebx", "ecx", "edx", "esi", "edi", "ebp")}
    values["esp"] = stack_pointer(frame)
    values |= {name: int(frame[name]) for name in ("eip", "eflags", "cs", "ds", "es", "fs", "gs")}
    if values["cs"] & 3:
        values["ss"] = int(frame["user_ss"])
    cells = [f"{name:>8} {value & 0xFFFFFFFF:08x}" for name, value in values.items()]
    return ["".join(cells[index : index + 4]) for index in range(0, len(cells), 4)]


@command("last-fault")
def last_fault() -> str:
    """The last exception in words: what, where, for which address; or a triple fault's chain."""
    log = SESSION.interrupt_log()
    if "Triple fault" in log:
        return fault_report(log, GdbSymbols())
    place = current_trap_frame()
    if place is not None and int(trap_frame_at(place)["vector"]) < EXCEPTIONS:
        return trap_sentence(trap_frame_at(place))
    return logged_fault(log)


def logged_fault(log: str) -> str:
    """The last exception in QEMU's log; the kernel may have dealt with it long ago."""
    records = list(RECORD.finditer(log))
    for record in reversed(records):
        fault = Fault.from_match(record, log[record.end() : record.end() + 1500])
        if fault.vector < EXCEPTIONS:
            return f"{fault.describe(GdbSymbols())}\n(no longer being handled)"
    return "No exception so far (as far back as QEMU's log is kept)."

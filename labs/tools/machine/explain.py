"""Failures in words: panics, chains of exceptions, and machines that hang."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from labs.tools.machine.symbols import Symbols

PANIC = re.compile(r"^PANIC: .*", re.MULTILINE)
PANIC_STATUS = 63  # kernel/cpu/machine.h
PANIC_LINES = 60
MAX_FRAMES = 24
PUSH_EBP = b"\x55"  # the first instruction of a function with a frame
PROTECTED_MODE = 1
INTERRUPT_FLAG = 0x200
HALTED = "HLT=1"
JUMP_TO_ITSELF = b"\xeb\xfe"
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # moves the cursor, or clears the screen: GRUB's

# Intel SDM volume 3, table 6-1; the names are those that the kernel uses (kernel/cpu/trap.c).
VECTOR_NAMES = {
    0: "divide error",
    1: "debug exception",
    2: "non-maskable interrupt",
    3: "breakpoint",
    4: "overflow",
    5: "bound range exceeded",
    6: "invalid opcode",
    7: "device not available",
    8: "double fault",
    10: "invalid TSS",
    11: "segment not present",
    12: "stack-segment fault",
    13: "general protection fault",
    14: "page fault",
    16: "x87 floating-point error",
    17: "alignment check",
    18: "machine check",
    19: "SIMD floating-point exception",
}
DOUBLE_FAULT, PAGE_FAULT = 8, 14
WITH_SELECTOR = (10, 11, 12, 13)

RECORD = re.compile(
    r"^ *(?P<number>\d+): v=(?P<vector>\w+) e=(?P<error>\w+) i=(?P<software>\d) cpl=(?P<ring>\d) "
    r"IP=(?P<selector>\w+):(?P<pointer>\w+) pc=(?P<linear>\w+) SP=(?P<stack>\w+:\w+)",
    re.MULTILINE,
)
REGISTER = re.compile(r"\b([A-Z][A-Z0-9]{1,2}) *= *([0-9a-f]{4,8})\b")
CODE_BASE = re.compile(r"^CS =[0-9a-f]{4} ([0-9a-f]{8})", re.MULTILINE)


# Multiboot 0.6.96, section 3.1.
HEADER_MAGIC, HEADER_BYTES, HEADER_ALIGNMENT = 0x1BADB002, 8192, 4
LOADED_BY_ADDRESS = 1 << 16  # of the flags


def header_problem(kernel: bytes) -> str:
    """What is wrong with the Multiboot header of a kernel's file, as a sentence without its end;
    empty when one is good. The magic number may be in the file by chance as well."""
    magic = HEADER_MAGIC.to_bytes(4, "little")
    problems, offset = [], kernel.find(magic)
    while offset >= 0:
        problems.append(problem_of_header(kernel, offset))
        offset = kernel.find(magic, offset + 1)
    if not problems:
        return (
            f"the file has no Multiboot header: no word of it is {HEADER_MAGIC:#x} (exercise 1.1 "
            "is not written yet, or boot/kernel.ld drops the section .multiboot)"
        )
    return "" if "" in problems else problems[0]


def problem_of_header(kernel: bytes, offset: int) -> str:
    """What is wrong with the header at an offset of the file; empty when nothing is."""
    at = f"the Multiboot header is at offset {offset} of the file"
    words = [int.from_bytes(kernel[at : at + 4], "little") for at in range(offset, offset + 12, 4)]
    total = sum(words) % (1 << 32)
    if offset + 12 > HEADER_BYTES:
        return (
            f"{at}, and a loader looks only at the first {HEADER_BYTES} bytes: boot/kernel.ld must "
            "name the section .multiboot first"
        )
    if offset % HEADER_ALIGNMENT:
        return f"{at}, which is not a multiple of {HEADER_ALIGNMENT}"
    if total:
        return (
            "the Multiboot header has a wrong checksum: "
            f"{words[0]:#x} + flags {words[1]:#x} + checksum {words[2]:#x} must be 0 in 32 bits, "
            f"and is {total:#x}"
        )
    if words[1] & LOADED_BY_ADDRESS:
        return (
            f"the Multiboot header's flags are {words[1]:#x}: bit 16 says that five addresses "
            "follow the checksum, and none does"
        )
    return ""


def parse_registers(text: str) -> dict[str, int]:
    """The registers in QEMU's "info registers": EAX, EIP, EFL, CR0, CS (the selector) and so on."""
    return {name: int(value, 16) for name, value in REGISTER.findall(text)}


def register_lines(text: str) -> str:
    """The lines of a register dump that a reader needs: the general and the control registers."""
    wanted = ("EAX=", "ESI=", "EIP=", "CS =", "SS =", "GDT=", "IDT=", "CR0=")
    return "\n".join("  " + line for line in text.splitlines() if line.startswith(wanted))


def panic_report(serial: str) -> str:
    """What the kernel said from its last panic on."""
    starts = [match.start() for match in PANIC.finditer(serial)]
    return "\n".join(serial[starts[-1] :].splitlines()[:PANIC_LINES]) if starts else ""


def last_lines(serial: str, count: int = 10) -> str:
    """The end of the serial output, or a word that there is none."""
    lines = CONTROL.sub("", serial).splitlines()[-count:]
    if not lines:
        return "Nothing was printed on the serial line."
    return "The last lines on the serial line:\n" + "\n".join("  | " + line for line in lines)


def backtrace(
    registers: dict[str, int], read: Callable[[int, int], bytes], symbols: Symbols
) -> list[str]:
    """The callers by the chain of saved ebp, innermost first. `read` raises LookupError where no
    memory is; a chain that does not rise ends there."""
    frames = frameless_caller(registers, read, symbols)
    frame = registers["EBP"]
    while frame and len(frames) < MAX_FRAMES:
        try:
            pair = read(frame, 8)
        except LookupError:
            break
        caller, above = int.from_bytes(pair[4:], "little"), int.from_bytes(pair[:4], "little")
        frames.append(symbols.describe(caller, is_return=True))
        if above <= frame:
            break
        frame = above
    return frames


def frameless_caller(
    registers: dict[str, int], read: Callable[[int, int], bytes], symbols: Symbols
) -> list[str]:
    """The caller of a function that has no frame (yet): the word on top of the stack."""
    start = symbols.start_of(registers["EIP"])
    if start is None:
        return []
    try:
        if read(start, 1) == PUSH_EBP and registers["EIP"] > start + 1:
            return []
        caller = int.from_bytes(read(registers["ESP"], 4), "little")
    except LookupError:
        return []
    return [symbols.describe(caller, is_return=True)]


def standstill_report(dump: str, read: Callable[[int, int], bytes], symbols: Symbols) -> str:
    """Where a machine is: `dump` is QEMU's "info registers" of the stopped guest."""
    registers = parse_registers(dump)
    linear = linear_address(dump, registers)
    halted = ", halted" if HALTED in dump else ""
    masked = "" if registers["EFL"] & INTERRUPT_FLAG else ", interrupts disabled"
    ring = registers["CS"] & 3
    lines = [f"It stopped at {where_in(symbols, linear)} (ring {ring}{halted}{masked})."]
    if registers["CR0"] & PROTECTED_MODE:
        callers = backtrace(registers, read, symbols)
        lines += ["Called from:", *("  " + caller for caller in callers)] if callers else []
    return "\n".join([*lines, "Registers:", register_lines(dump)])


def is_stuck(dump: str, read: Callable[[int, int], bytes]) -> bool:
    """Whether only a reset can end what the processor does, with interrupts disabled: it is halted,
    or jumps to the same instruction for ever. `read` raises LookupError where no memory is."""
    registers = parse_registers(dump)
    if registers["EFL"] & INTERRUPT_FLAG:
        return False
    with suppress(LookupError):
        code = read(linear_address(dump, registers), len(JUMP_TO_ITSELF))
        return HALTED in dump or code == JUMP_TO_ITSELF
    return False


def linear_address(dump: str, registers: dict[str, int]) -> int:
    """Where the processor is: EIP in its code segment."""
    base = CODE_BASE.search(dump)
    return registers["EIP"] + (int(base[1], 16) if base else 0)


def where_in(symbols: Symbols, linear: int) -> str:
    """An address in words; of one that nothing is known about, that there is no code."""
    place = symbols.describe(linear)
    return place if " " in place else f"{place}, where no code is"


@dataclass(frozen=True)
class Fault:
    """One exception or interrupt in the log of "-d int", with the registers that follow it."""

    vector: int
    error: int
    linear: int
    place: str
    stack: str
    dump: str

    @classmethod
    def from_match(cls, match: re.Match[str], dump: str) -> Fault:
        """Takes a matched record and the text up to the next one."""
        numbers = (int(match[name], 16) for name in ("vector", "error", "linear"))
        return cls(*numbers, f"{match['selector']}:{match['pointer']}", match["stack"], dump)

    @property
    def name(self) -> str:
        """The vector in words."""
        return f"vector {self.vector} ({VECTOR_NAMES.get(self.vector, 'an interrupt')})"

    def describe(self, symbols: Symbols) -> str:
        """What happened, and where."""
        return f"{self.what()}, at {where_in(symbols, self.linear)}, CS:EIP {self.place}"

    def what(self) -> str:
        """What happened, and for which address or descriptor."""
        return f"{self.name}, error code {self.error:#x}{self._detail()}"

    def _detail(self) -> str:
        if self.vector == PAGE_FAULT:
            return f" ({page_fault_words(self.error)} {parse_registers(self.dump)['CR2']:#010x})"
        if self.vector in WITH_SELECTOR and self.error:
            return f" ({selector_words(self.error)})"
        return ""

    def follows(self, other: Fault) -> bool:
        """Whether delivering `other` raised this one: nothing was executed or pushed in between."""
        return (self.place, self.stack) == (other.place, other.stack)


def page_fault_words(error: int) -> str:
    """The three bits of a page fault's error code."""
    who = "user" if error & 4 else "kernel"
    what = "writing" if error & 2 else "reading"
    why = "protected" if error & 1 else "unmapped"
    return f"{who} {what} {why} address"


def selector_words(error: int) -> str:
    """An error code that names a descriptor."""
    table = "IDT" if error & 2 else "LDT" if error & 4 else "GDT"
    return f"{table} entry {error >> 3}"


def fault_report(log: str, symbols: Symbols) -> str:
    """The chain of exceptions before the reset, from the log of "-d int,cpu_reset". An empty log is
    that of a second run without a reset."""
    if not log:
        return "Run a second time to find the cause, the machine was not reset."
    end = log.rfind("Triple fault")
    if end < 0:
        return "It was not a triple fault: the guest asked for a reset (port 0x64, 0x92 or 0xcf9)."
    matches = list(RECORD.finditer(log, 0, end))
    limits = [match.start() for match in matches[1:]] + [end]
    records = [
        Fault.from_match(match, log[match.end() : limit])
        for match, limit in zip(matches, limits, strict=True)
    ]
    first = first_of_chain(records)
    lines = [f"First: {records[first].describe(symbols)}."]
    for record in records[first + 1 :]:
        lines.append(f"Then, while that was delivered: {record.what()}.")
    lines += earlier_words(records[:first])
    lines += ["Registers at the first:", register_lines(records[first].dump)]
    return "\n".join(lines)


def first_of_chain(records: Sequence[Fault]) -> int:
    """The index of the exception whose delivery failed, and led to the last one."""
    first = len(records) - 1
    while first > 0 and records[first].follows(records[first - 1]):
        first -= 1
    return first


def earlier_words(records: Sequence[Fault], count: int = 50) -> list[str]:
    """What was delivered before the chain, the most frequent first: a storm shows here."""
    names = Counter(record.name for record in records[-count:])
    if not names:
        return []
    listed = ", ".join(f"{number} x {name}" for name, number in names.most_common(5))
    return [f"Among the {sum(names.values())} before it: {listed}."]

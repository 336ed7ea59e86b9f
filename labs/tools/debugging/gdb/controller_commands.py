"""The command about the interrupt controllers: which interrupts are held back, and by what."""

from __future__ import annotations

import re
from typing import NamedTuple

import gdb

from labs.tools.debugging.gdb.commands import Refusal, command, table
from labs.tools.debugging.gdb.kernel_data import optional, pointer
from labs.tools.debugging.gdb.processor import Processor, symbol_at

IRQS = 16
CASCADE = 2  # the IRQ of the first controller that the second one is wired to
INTERRUPTS = 1 << 9  # EFLAGS.IF: Intel SDM volume 3, 2.3
REPORT = re.compile(r"^pic(\d): irr=(\w\w) imr=(\w\w) isr=(\w\w).*?irq_base=(\w\w)", re.MULTILINE)


class Controllers(NamedTuple):
    """The registers of the two 8259A, a bit for each IRQ, and the vector of each one's first."""

    requested: int
    masked: int
    in_service: int
    vectors: tuple[int, ...]


@command("pic")
def pic() -> str:
    """The interrupt controllers: which IRQs are masked, requested, and in service (no EOI yet)."""
    now = controllers()
    rows = [row_of(irq, now) for irq in range(IRQS) if is_of_interest(irq, now)]
    heads = ("IRQ", "vector", "handler", "state")
    shown = table(heads, rows) if rows else "All IRQs are masked."
    return "\n".join([shown, *sentences(now)])


def controllers() -> Controllers:
    """What QEMU tells of them. Raises Refusal."""
    found = REPORT.findall(gdb.execute("monitor info pic", to_string=True))
    if len(found) != 2:
        raise Refusal("QEMU shows no pair of interrupt controllers (monitor info pic)")
    registers = [[int(field, 16) for field in fields] for _, *fields in sorted(found)]
    requested, masked, in_service = (
        registers[0][index] | registers[1][index] << 8 for index in range(3)
    )
    return Controllers(requested, masked, in_service, (registers[0][3], registers[1][3]))


def is_of_interest(irq: int, now: Controllers) -> bool:
    """Whether there is something to say about it. A masked IRQ that nobody requests is quiet."""
    return bool((~now.masked | now.requested | now.in_service) >> irq & 1)


def row_of(irq: int, now: Controllers) -> tuple[object, ...]:
    """An IRQ, as cells of a table."""
    states = (("masked", now.masked), ("requested", now.requested), ("in service", now.in_service))
    words = [word for word, bits in states if bits >> irq & 1]
    vector = now.vectors[irq // 8] + irq % 8
    return irq, vector, handler_of(irq), ", ".join(words) or "quiet"


def handler_of(irq: int) -> str:
    """The function that the kernel calls for it; "" where there is none, or no kernel yet."""
    if irq == CASCADE:
        return "(IRQ 8 to 15)"
    handlers = optional("handlers", "drivers/clock/pic.c")
    address = pointer(handlers[irq]) if handlers is not None else 0
    return symbol_at(address) or "" if address else ""


def sentences(now: Controllers) -> list[str]:
    """What holds interrupts back."""
    lines = []
    if now.in_service:
        first = next(irq for irq in range(IRQS) if now.in_service >> irq & 1)
        lines.append(
            f"IRQ {first} is in service: until its EOI is sent, no IRQ of equal or lower priority "
            "is delivered."
        )
    if not Processor().registers["EFL"] & INTERRUPTS:
        lines.append("The processor has interrupts disabled (IF is 0).")
    return lines

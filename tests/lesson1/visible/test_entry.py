"""Exercise 1.2, the first instructions: do they come to kmain, with a clear BSS, and with what the
loader gave?

Not looked at here, but by the graders: other flags that a loader may leave, a BSS whose length is
no multiple of four, and the alignment of the stack.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.support.remote import INTERRUPTS, KERNEL_BASE, Guest, stopped
from tests.support.told import Usual, expect, require, told

INTERRUPT_MASKS = (0x21, 0xA1)  # the ports where both interrupt controllers take a mask
JUNK, GUARD = b"\xa5", 64  # bytes on both sides of the BSS that must stay
IN_GDB = "make gdb LESSON=1 BOOT=direct, then: hbreak _start, continue, stepi"


@pytest.mark.exercise("1.2", points=1, gate=True)
def test_kmain_is_reached(lab):
    """From _start, through boot/paging.asm, to kmain."""
    usually = (
        "ESP is not boot_stack_top when something is pushed or called, after paging is on",
        "EBX, EDX or EBP are not kept until they are needed",
        Usual("loops in _start", "bss_start or bss_end is not physical, so ECX is 3 GiB off"),
    )
    with told(usually, IN_GDB), stopped(lab, "_start") as guest:
        guest.run_to("kmain", why="_start was reached; see boot/entry.asm")


@pytest.mark.exercise("1.2", points=1)
def test_bss_is_zero(lab):
    """A loader need not clear the BSS: here there is junk in it at _start, and zeros before paging.
    What is before it stays, and what follows it."""
    usually = (
        Usual("before the BSS", "EDI begins at physical(bss_start), not below it"),
        "rep stosb is missing, or ECX is not the number of bytes (rep stosd counts words)",
        "EDI is bss_start, and not physical(bss_start): before paging, addresses are physical",
    )
    with told(usually, IN_GDB), stopped(lab, "_start") as guest:
        start, end = (guest.address(name) - KERNEL_BASE for name in ("bss_start", "bss_end"))
        guest.write(start - GUARD, JUNK * (GUARD + end - start + GUARD))
        guest.run_to("enable_paging", why="the BSS is cleared before that")
        require_zero(guest, start, end)
        for side, address in (("before", start - GUARD), ("after", end)):
            found = changed(guest.read(address, GUARD))
            require(found == 0, f"memory {side} the BSS was changed: {found} bytes")


def require_zero(guest: Guest, start: int, end: int) -> None:
    """Each byte from start up to end is 0."""
    data = guest.read(start, end - start)
    dirty = next((i for i, byte in enumerate(data) if byte), None)
    seen = "all zero" if dirty is None else f"not zero from bss_start + {dirty:#x} on"
    expect("the BSS when enable_paging is called", seen, "all zero")


def changed(data: bytes) -> int:
    """How many bytes are no longer junk."""
    return len(data) - data.count(JUNK)


@pytest.mark.exercise("1.2", points=1, gate=True)
def test_arguments(lab):
    """kmain(magic, information) gets what was in EAX and EBX at _start, on the boot stack, with
    interrupts disabled."""
    random = Random(lab.seed)
    usually = (
        Usual("of EBX", "the last argument is pushed first: information (EBX), then magic"),
        Usual(
            "of EBX",
            "kmain is reached by JMP: CALL pushes a return address on top of the arguments",
        ),
        Usual(r"seen 0x\w+$", "EAX is used, to clear the BSS, before the magic number is saved"),
        Usual("ESP at kmain", "the stack grows down, so ESP begins at boot_stack_top"),
        Usual("interrupts", "CLI is missing: a loader may leave any flags"),
    )
    with told(usually, IN_GDB), stopped(lab, "_start") as guest:
        for port in INTERRUPT_MASKS:
            guest.out8(port, 0xFF)
        flags = guest.registers()["eflags"] | INTERRUPTS
        guest.set(eax=random.getrandbits(32), ebx=random.getrandbits(32), eflags=flags)
        before = guest.registers()
        guest.run_to("kmain")
        stack = guest.registers()["esp"]
        for offset, name, source in ((4, "magic", "eax"), (8, "information", "ebx")):
            what = f"{name}, kmain's argument at ESP + {offset}, for {source.upper()} at _start"
            found, given = guest.read_word(stack + offset), before[source]
            if found != given:
                expect(what, f"{found:#x}{whose(found, before)}", f"{given:#x}")
        require_own_stack(guest, stack)
        state = "enabled" if guest.registers()["eflags"] & INTERRUPTS else "disabled"
        expect("interrupts at kmain after a loader that enables them", state, "disabled")


def require_own_stack(guest: Guest, stack: int) -> None:
    """ESP is in the boot stack, with room below it."""
    low, top = guest.address("boot_stack"), guest.address("boot_stack_top")
    if not low < stack < top:
        place = f"boot_stack {'-' if stack <= low else '+'} {abs(stack - low):#x}"
        expect("ESP at kmain", place, "between boot_stack and boot_stack_top, near the top")


def whose(value: int, registers: dict[str, int]) -> str:
    """The register that had this value at _start, if one had."""
    names = [name.upper() for name in ("eax", "ebx") if registers[name] == value]
    return f" (the value of {names[0]})" if names else ""

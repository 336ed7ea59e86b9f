"""Exercise 1.2, the first instructions: entered by a loader that keeps to the specification and
does no more. Memory is full of junk, and what may be in a register or a flag is in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import pytest

from tests.lesson1.support import KERNEL_BASE, MULTIBOOT_LOADER, relink
from tests.support.remote import Guest, stopped

JUNK = b"\xcc"
GUARD = 64  # bytes around the BSS that must stay
DIRECTION, INTERRUPT = 0x400, 0x200
INTERRUPT_MASKS = (0x21, 0xA1)  # the ports where both interrupt controllers take a mask
TAIL = ". += {}; bss_end = .;"
FIRST_STEPS = 4  # instructions, of which one disables interrupts


def physical(guest: Guest, place: str) -> int:
    """Where a symbol is while paging is off."""
    return guest.address(place) - KERNEL_BASE


@contextmanager
def entered(lab, flags: int = 0x2, **fields: object) -> Iterator[tuple[Guest, Random]]:
    """The kernel at its entry, with random registers, no stack, and these flags."""
    random = Random(lab.seed)
    with stopped(lab, "_start", **fields) as guest:
        registers = {name: random.getrandbits(32) for name in ("ecx", "edx", "esi", "edi", "ebp")}
        guest.set(eax=MULTIBOOT_LOADER, esp=0xF0000000, eflags=flags, **registers)
        yield guest, random


def fill_bss(guest: Guest) -> tuple[bytes, bytes]:
    """Fills the BSS with junk, and what is on both sides of it: the end of the symbol table, and
    what follows. Returns the guards before and after it."""
    start, end = physical(guest, "bss_start"), physical(guest, "bss_end")
    guest.write(start - GUARD, JUNK * (GUARD + end - start + GUARD))
    return JUNK * GUARD, JUNK * GUARD


def require_clear(guest: Guest, guards: tuple[bytes, bytes]) -> None:
    """At kmain: zeros from end to end, but for the page directory and the stack in use."""
    start, end = guest.address("bss_start"), guest.address("bss_end")
    used = [(guest.address("kernel_page_directory"), 4096), stack_in_use(guest)]
    content = bytearray(guest.read(start, end - start))
    for address, length in used:
        content[address - start : address - start + length] = bytes(length)
    dirty = [start + i for i, byte in enumerate(content) if byte]
    assert not dirty, (
        f"{len(dirty)} bytes of {len(content)} are not zero, the first at {dirty[0]:#x}"
    )
    assert guest.read(start - GUARD, GUARD) == guards[0], "memory before the BSS was changed"
    assert guest.read(end, GUARD) == guards[1], "memory after the BSS was changed"


def stack_in_use(guest: Guest) -> tuple[int, int]:
    """The top of the boot stack, with some room for what was pushed and popped before kmain."""
    top = guest.address("boot_stack_top")
    return top - 256, 256


@pytest.mark.exercise("1.2", points=2)
def test_bss_is_zero(lab):
    """The BSS after a loader that left junk there: every byte is 0."""
    with entered(lab) as (guest, _):
        guards = fill_bss(guest)
        guest.run_to("kmain")
        require_clear(guest, guards)


@pytest.mark.exercise("1.2", points=2, host=True)
@pytest.mark.parametrize("tail", [1, 2, 3])
def test_bss_of_any_length(lab, tail):
    """A BSS whose length is not a multiple of four: the byte after its last one keeps its value."""
    kernel = relink(lab, edits=[(r"bss_end = \.;", TAIL.format(tail))])
    with entered(lab, kernel=kernel) as (guest, _):
        guards = fill_bss(guest)
        guest.run_to("kmain")
        require_clear(guest, guards)


@pytest.mark.exercise("1.2", points=1, host=True)
def test_bss_of_no_bytes(lab):
    """An empty BSS: nothing is cleared. A count of 0 is not 2^32."""
    moved = [(r"bss_start = \.;", ""), (r"bss_end = \.;", "bss_end = .; bss_start = .;")]
    with entered(lab, kernel=relink(lab, edits=moved)) as (guest, _):
        guards = fill_bss(guest)
        guest.run_to("kmain")
        require_clear(guest, guards)


@pytest.mark.exercise("1.2", points=2)
def test_direction_flag(lab):
    """A loader that leaves the direction flag set: clearing goes upwards, and C begins with the
    flag clear."""
    with entered(lab, flags=0x2 | DIRECTION) as (guest, _):
        guards = fill_bss(guest)
        guest.run_to("kmain")
        assert not guest.registers()["eflags"] & DIRECTION, "the direction flag is set at kmain"
        require_clear(guest, guards)


@pytest.mark.exercise("1.2", points=1)
def test_interrupts_are_off(lab):
    """A loader that leaves interrupts enabled: kmain begins with interrupts disabled."""
    with entered(lab) as (guest, _):
        for port in INTERRUPT_MASKS:
            guest.out8(port, 0xFF)
        guest.set(eflags=0x2 | INTERRUPT)
        for _ in range(FIRST_STEPS):
            guest.step()
        assert not guest.registers()["eflags"] & INTERRUPT, (
            f"interrupts are enabled after {FIRST_STEPS} instructions: one that comes finds none"
        )
        guest.run_to("kmain")
        assert not guest.registers()["eflags"] & INTERRUPT, "interrupts are enabled at kmain"


@pytest.mark.exercise("1.2", points=2)
def test_any_arguments(lab):
    """EAX and EBX from the loader: kmain gets both unchanged, right or wrong."""
    with entered(lab) as (guest, random):
        magic, information = random.getrandbits(32), random.getrandbits(32)
        guest.set(eax=magic, ebx=information)
        fill_bss(guest)
        guest.run_to("kmain")
        stack = guest.registers()["esp"]
        found = (guest.read_word(stack + 4), guest.read_word(stack + 8))
        assert found == (magic, information), (
            f"EAX was {magic:#x}, EBX was {information:#x}; kmain got {found[0]:#x}, {found[1]:#x}"
        )


@pytest.mark.exercise("1.2", points=2)
def test_stack(lab):
    """The stack at kmain: all of the boot stack is free, and ESP is 16-byte aligned before the
    call."""
    with entered(lab) as (guest, _):
        guest.run_to("kmain")
        stack, top = guest.registers()["esp"], guest.address("boot_stack_top")
        assert guest.address("boot_stack") < stack < top, f"ESP is {stack:#x}"
        assert top - stack <= 64, f"{top - stack} bytes of the stack are used already"
        assert (stack + 4) % 16 == 0, f"ESP was {stack + 4:#x} at the call"


@pytest.mark.exercise("1.2", points=1)
def test_frames_end_here(lab):
    """EBP at kmain: it is 0, so that a backtrace ends there."""
    with entered(lab) as (guest, _):
        guest.run_to("kmain")
        assert guest.registers()["ebp"] == 0, "EBP is not zero at kmain"

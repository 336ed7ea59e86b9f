"""Exercise 2.2, hidden: every register that real mode leaves, seen from outside."""

from __future__ import annotations

import random
from contextlib import contextmanager

import pytest

from tests.lesson2.support import DIRECTION, INTERRUPTS, Lab, loader_symbols, switched_on

CODE32, DATA32 = 0x08, 0x10
# Bits of CR0 that do nothing to the loader: MP, EM, TS, NE, WP, AM, NW and CD.
HARMLESS = 0x02 | 0x04 | 0x08 | 0x20 | 0x10000 | 0x40000 | 0x60000000
PAST_FAR_JUMP = 3  # instructions after CR0 is written; the manual says the first
STEPS = 64  # enough for any sensible solution


@contextmanager
def at_entrance(lab: Lab, **registers: int):
    """The second stage, about to enter protected mode for the first time; and what is there."""
    symbols = loader_symbols(lab)
    with switched_on(lab, boot="disk") as machine:
        machine.run_to(symbols.find("enter_protected_mode").address)
        machine.set(**registers)
        yield machine, symbols


def enter(machine, symbols) -> None:
    """Goes on to the caller, after the near call of 16-bit code."""
    top = machine.registers()["esp"] & 0xFFFF
    machine.run_to(int.from_bytes(machine.read(top, 2), "little"))


@pytest.mark.exercise("2.2", points=1, gate=True)
def test_boots_from_disk(lab):
    """A boot from the disk enters protected mode more than a hundred times: each character that the
    loader prints goes to the BIOS."""
    status = random.Random(lab.seed).randrange(1, 60)
    result = lab.run(f"memory; exit {status}", boot="disk", memory=32).check(status)
    assert "boot: loaded by Apprentice boot" in result.serial


@pytest.mark.exercise("2.2", points=2, gate=True)
def test_descriptor_table(lab):
    """GDTR: the table's linear address, and the offset of its last byte."""
    with at_entrance(lab) as (machine, symbols):
        enter(machine, symbols)
        base, limit = machine.tables()["GDT"]
    table, end = symbols.find("gdt").address, symbols.find("gdt_end").address
    assert base == table, f"the GDT register has base {base:#x}; the table is at {table:#x}"
    assert limit == end - table - 1, f"limit {limit:#x} for a table of {end - table} bytes"


@pytest.mark.exercise("2.2", points=3, gate=True)
def test_every_segment_register_is_new(lab):
    """CS, DS, ES, FS, GS and SS: each has its new selector, and the hidden part that belongs to
    it."""
    with at_entrance(lab) as (machine, symbols):
        enter(machine, symbols)
        segments = machine.segments()
    for name in ("CS", "DS", "ES", "FS", "GS", "SS"):
        segment = segments[name]
        expected = CODE32 if name == "CS" else DATA32
        assert segment.selector == expected, f"{name} is {segment.selector:#x}, not {expected:#x}"
        assert (segment.base, segment.limit) == (0, 0xFFFFFFFF), f"{name} is not flat: {segment}"
        assert segment.flags & 4, f"{name} is a 16-bit segment: {segment}"


@pytest.mark.exercise("2.2", points=2)
def test_interrupts_are_off(lab):
    """The interrupt flag on entry: clear before the vectors of real mode become invalid. The caller
    finds them disabled, and the next call of the BIOS finds its vectors."""
    with at_entrance(lab) as (machine, _):
        machine.set(eflags=machine.registers()["eflags"] | INTERRUPTS)
        top, limit = machine.registers()["esp"] & 0xFFFF, machine.tables()["IDT"]
        for _ in range(STEPS):
            machine.step()
            if machine.dump()["CR0"] & 1:
                break
        flags, table = machine.registers()["eflags"], machine.tables()["IDT"]
        assert machine.dump()["CR0"] & 1, "protected mode is not on after 64 instructions"
        assert not flags & INTERRUPTS, "interrupts are enabled on the way into protected mode"
        machine.run_to(int.from_bytes(machine.read(top, 2), "little"))
        flags, behind = machine.registers()["eflags"], machine.tables()["IDT"]
    assert not flags & INTERRUPTS, "interrupts are enabled for the caller"
    assert table == behind == limit, "this code changes the IDT register"


@pytest.mark.exercise("2.2", points=2, gate=True)
def test_stack_is_the_same(lab):
    """ESP: the caller's SP plus two, though real mode left garbage in its upper half."""
    garbage = random.Random(lab.seed).randrange(1, 0x10000) << 16
    with at_entrance(lab) as (machine, symbols):
        top = machine.registers()["esp"] & 0xFFFF
        machine.set(esp=garbage | top)
        enter(machine, symbols)
        esp = machine.registers()["esp"]
    assert esp == top + 2, (
        f"ESP was {garbage | top:#x} and is {esp:#x}; the caller wants {top + 2:#x}"
    )


@pytest.mark.exercise("2.2", points=1)
@pytest.mark.parametrize("are_set", [True, False])
def test_other_bits_of_cr0_stay(lab, are_set):
    """CR0: only bit 0 changes, and other bits do not lead anywhere else."""
    with at_entrance(lab) as (machine, symbols):
        now = machine.dump()["CR0"]
        before = now | HARMLESS if are_set else now & ~HARMLESS
        machine.set_control("cr0", before)
        enter(machine, symbols)
        after = machine.dump()["CR0"]
    assert after == before | 1, f"CR0 was {before:#x} and is {after:#x}"


@pytest.mark.exercise("2.2", points=1)
def test_other_registers_stay(lab):
    """EBX, ECX, EDX, EBP, ESI and EDI: all 32 bits are unchanged. String instructions of the caller
    count up, as before."""
    chooser = random.Random(lab.seed)
    before = {name: chooser.getrandbits(32) for name in ("ebx", "ecx", "edx", "ebp", "esi", "edi")}
    with at_entrance(lab, **before) as (machine, symbols):
        enter(machine, symbols)
        after = machine.registers()
    for name, value in before.items():
        assert after[name] == value, f"{name.upper()} was {value:#x} and is {after[name]:#x}"
    assert not after["eflags"] & DIRECTION, "the direction flag was clear, and is set"


@pytest.mark.exercise("2.2", points=1)
def test_far_jump_follows_at_once(lab):
    """The write to CR0, step by step: GDTR is loaded before it, and the far jump is the next
    instruction."""
    with at_entrance(lab) as (machine, symbols):
        for _ in range(STEPS):
            machine.step()
            if machine.dump()["CR0"] & 1:
                break
        assert machine.dump()["CR0"] & 1, "protected mode is not on after 64 instructions"
        assert machine.tables()["GDT"][0] == symbols.find("gdt").address, "the GDT comes first"
        for _ in range(PAST_FAR_JUMP):
            machine.step()
            if machine.registers()["cs"] == CODE32:
                return
    pytest.fail("no far jump follows the write to CR0: CS keeps its old meaning")


@pytest.mark.exercise("2.2", points=1)
def test_entry_after_a_bios_call(lab):
    """The second entry, from bios_call: the same rules hold, and ESP is what it was there."""
    symbols = loader_symbols(lab)
    entrance = symbols.find("enter_protected_mode").address
    with switched_on(lab, boot="disk") as machine:
        machine.run_to(symbols.find("bios_call").address)
        esp = machine.registers()["esp"]
        home = machine.read_words(esp, 1)[0]
        machine.run_to(entrance)
        machine.set(esp=0x5A5A0000 | machine.registers()["esp"] & 0xFFFF)
        machine.run_to(home)
        after, segments = machine.registers(), machine.segments()
    assert after["esp"] == esp + 4, f"ESP is {after['esp']:#x} after the BIOS call"
    assert {segments[name].selector for name in ("DS", "ES", "FS", "GS", "SS")} == {DATA32}

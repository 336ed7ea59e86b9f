"""Exercise 2.5, hidden: the page directory in memory, and what the processor makes of
it."""

from __future__ import annotations

import random
import struct

import pytest

from labs.tools.machine.result import Outcome
from tests.lesson2.support import KERNEL_BASE, SCRATCH, run_recorded, stopped_at

ENTRIES, LARGE_PAGE = 1024, 4 << 20
FIRST, MAPPED = KERNEL_BASE // LARGE_PAGE, 224  # 896 MiB
FLAGS = 0x083  # present, writable, 4 MiB; ring 0
PRESENT, ACCESSED, DIRTY = 0x01, 0x20, 0x40
NUMERIC_ERROR, WRITE_PROTECT, ALIGNMENT, PAGING = 1 << 5, 1 << 16, 1 << 18, 1 << 31
DEBUGGING, PAGE_SIZE, FXSAVE = 1 << 3, 1 << 4, 1 << 9  # of CR4
PAGE_FAULT = 14
GENERAL = ("eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi")  # by their numbers
STEPS = 1000  # from paging_is_on to higher_half
NO_MEMORY = 0xFFFF8000  # the BIOS's ROM: what is pushed there is lost


def directory(machine) -> tuple[int, ...]:
    """The entries that CR3 leads to, without the bits that the processor sets by itself."""
    words = machine.read_physical_words(machine.dump()["CR3"] & ~0xFFF, ENTRIES)
    return tuple(word & ~(ACCESSED | DIRTY) for word in words)


@pytest.mark.exercise("2.5", points=3, gate=True)
def test_page_directory(lab):
    """The page directory: 224 entries and no other, though memory was full of junk before. Entry 0
    has a test of its own."""
    junk = random.Random(lab.seed).randbytes(4096)
    with stopped_at(lab, "_start") as machine:
        machine.write(machine.address("kernel_page_directory") - KERNEL_BASE, junk)
        machine.run_to(machine.address("kmain"))
        entries = directory(machine)
    for index, entry in enumerate(entries[1:], 1):
        page = index - FIRST
        expected = page * LARGE_PAGE | FLAGS if 0 <= page < MAPPED else 0
        assert entry == expected, f"entry {index} is {entry:#010x}, not {expected:#010x}"


@pytest.mark.exercise("2.5", points=2, gate=True)
def test_control_registers(lab):
    """CR0, CR3 and CR4: paging, write protection and 4 MiB pages are enabled, CR3 has no flags, and
    the other bits are unchanged."""
    with stopped_at(lab, "enable_paging") as machine:
        machine.set_control("cr4", DEBUGGING | FXSAVE)
        before = machine.dump()["CR0"] | NUMERIC_ERROR | ALIGNMENT
        machine.set_control("cr0", before)
        machine.run_to(machine.address("higher_half"))
        after = machine.dump()
        table = machine.address("kernel_page_directory") - KERNEL_BASE
    assert after["CR3"] == table, f"CR3 is {after['CR3']:#x}; the directory is at {table:#x}"
    assert table % 4096 == 0
    assert after["CR0"] & PAGING, "paging is off"
    assert after["CR0"] & WRITE_PROTECT, "the kernel may write to read-only pages"
    assert after["CR0"] == before | PAGING | WRITE_PROTECT, (
        f"CR0 was {before:#x} and is {after['CR0']:#x}"
    )
    assert after["CR4"] == DEBUGGING | FXSAVE | PAGE_SIZE, f"CR4 is {after['CR4']:#x}"


@pytest.mark.exercise("2.5", points=1)
def test_registers_are_kept(lab):
    """EBX and EDX, which carry the loader's values: unchanged, although ESP points to no memory."""
    seeded = random.Random(lab.seed)
    ebx, edx = seeded.getrandbits(32), seeded.getrandbits(32)
    with stopped_at(lab, "enable_paging") as machine:
        machine.set(ebx=ebx, edx=edx, esp=NO_MEMORY)
        reached = machine.run_to(machine.address("higher_half"))
        after = machine.registers()
    assert reached >= KERNEL_BASE
    assert (after["ebx"], after["edx"]) == (ebx, edx), "EBX or EDX was changed"


# Run by the guest right after enable_paging: tables of our own, then a read below the kernel.
IDT, GDT, HANDLER, CODE = SCRATCH + 0x1000, SCRATCH + 0x2000, SCRATCH + 0x3000, SCRATCH
POINTERS = SCRATCH + 0x2800
FLAT_CODE, FLAT_DATA = 0x00CF9A000000FFFF, 0x00CF92000000FFFF


def read_by_the_processor(machine, address: int) -> bool:
    """Whether the processor itself, with what it remembers, can read this address."""
    gate = (HANDLER & 0xFFFF) | 8 << 16 | 0x8E00 << 32 | (HANDLER >> 16) << 48
    machine.write(IDT + 8 * PAGE_FAULT, struct.pack("<Q", gate))
    machine.write(GDT, struct.pack("<3Q", 0, FLAT_CODE, FLAT_DATA))
    machine.write(POINTERS, struct.pack("<HI2xHI", 0x17, GDT, 0x7FF, IDT))
    code = b"\x0f\x01\x15" + struct.pack("<I", POINTERS)  # lgdt
    code += b"\x0f\x01\x1d" + struct.pack("<I", POINTERS + 8)  # lidt
    code += b"\xea" + struct.pack("<IH", CODE + len(code) + 7, 8)  # jmp far, to the next
    code += b"\xa1" + struct.pack("<I", address)  # mov eax, [address]
    machine.write(CODE, code)
    machine.set(eip=CODE, esp=SCRATCH + 0x8000, eflags=2)
    return machine.run_to(CODE + len(code), HANDLER) != HANDLER


@pytest.mark.exercise("2.5", points=3)
def test_identity_map_is_gone(lab):
    """The identity map: it is gone afterwards, from the TLB, too. The same memory is visible 3 GiB
    higher."""
    for address, there in (("enable_paging", False), (0x1234, False), (KERNEL_BASE + 0x1234, True)):
        with stopped_at(lab, "enable_paging") as machine:
            place = machine.address(address) if isinstance(address, str) else address
            machine.run_to(machine.address("higher_half"))
            found = read_by_the_processor(machine, place)
        assert found == there, f"{place:#x} can {'still' if found else 'not'} be read"


def flushed(code: bytes, registers: dict[str, int]) -> range:
    """The addresses of which an instruction flushes the TLB: all after a load of CR0, CR3 or CR4,
    those of a large page after INVLPG; or none."""
    if code[:2] == b"\x0f\x22" and code[2] >> 3 & 7 in (0, 3, 4):
        return range(1 << 32)
    if code[:2] != b"\x0f\x01" or code[2] >> 3 & 7 != 7 or code[2] >> 6 == 3:
        return range(0)
    mode, base, rest, place = code[2] >> 6, code[2] & 7, code[3:], 0
    if base == 4:  # a SIB byte: scale, index, base
        sib, rest, base = rest[0], rest[1:], rest[0] & 7
        index = sib >> 3 & 7
        place += registers[GENERAL[index]] << (sib >> 6) if index != 4 else 0
    if mode == 0 and base == 5:
        place += struct.unpack_from("<i", rest)[0]
    else:
        shift = struct.unpack_from(("<0s", "<b", "<i")[mode], rest)[0]
        place += registers[GENERAL[base]] + (shift or 0)
    start = place % (1 << 32) // LARGE_PAGE * LARGE_PAGE
    return range(start, start + LARGE_PAGE)


@pytest.mark.exercise("2.5", points=2)
def test_its_own_translation_is_flushed(lab):
    """The TLB after entry 0 is cleared: it is flushed, or address 0's page is invalidated. QEMU
    forgets all large pages with either, so that QEMU alone would not show a wrong one."""
    with stopped_at(lab, "paging_is_on") as machine:
        end, entry = machine.address("higher_half"), machine.address("kernel_page_directory")
        first = machine.read_word(entry) & ~(ACCESSED | DIRTY)
        assert first == FLAGS, f"entry 0 was {first:#x}, not {FLAGS:#x}"
        flushes, steps = [], 0
        while (now := machine.registers())["eip"] != end and steps < STEPS:
            gone = not machine.read_word(entry) & PRESENT
            flushes += [flushed(machine.read(now["eip"], 8), now)] if gone else []
            machine.step()
            steps += 1
    assert any(0x100000 in each for each in flushes), "the TLB still has the first 4 MiB"


@pytest.mark.exercise("2.5", points=2)
def test_faults(lab):
    """Address 0 and the first address above the map: both cause a page fault."""
    for kind, address in (("null", 0x1234), ("wild", 0xF8000000)):
        result, traps = run_recorded(lab, f"crash {kind}")
        assert result.outcome is Outcome.PANIC, f"crash {kind}: nothing happened"
        last = traps[-1]
        found = last.vector, last.error_code, last.ring, last.registers["CR2"]
        assert found == (PAGE_FAULT, 2, 0, address), f"crash {kind}: {found}"


@pytest.mark.exercise("2.5", points=1)
@pytest.mark.parametrize("memory", [16, 1024])
def test_other_amounts_of_memory(lab, memory):
    """Machines with 16 MiB and with 1 GiB: both boot with the same map."""
    result = lab.run("memory; exit 5", memory=memory).check(5)
    assert "KiB free" in result.serial


@pytest.mark.exercise("2.5", points=2)
def test_user_mode_has_no_access(lab):
    """Kernel pages in user mode: reads, writes and jumps fault as protection violations."""
    seeded = random.Random(lab.seed)
    pages = [0, 1, MAPPED - 1, *(seeded.randrange(MAPPED) for _ in range(3))]
    places = [KERNEL_BASE + page * LARGE_PAGE + seeded.randrange(LARGE_PAGE - 4) for page in pages]
    script = "; ".join(f"probe read {place:#x}; probe write {place:#x}" for place in places)
    result, traps = run_recorded(lab, script)
    result.check()
    seen = [(t.error_code, t.registers["CR2"]) for t in traps if (t.ring, t.vector) == (3, 14)]
    assert seen == [(code, place) for place in places for code in (5, 7)]

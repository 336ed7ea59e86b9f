"""Exceptions in words, panics with backtraces, and the clock."""

from __future__ import annotations

import dataclasses
import re
import struct
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from labs.tools.machine.result import Outcome, ktap
from tests.lesson1.frames import Code
from tests.support.building import ROOT, make
from tests.support.remote import halted

# Intel SDM volume 3, table 6-1.
NAMES = {
    0: "divide error",
    1: "debug exception",
    2: "non-maskable interrupt",
    3: "breakpoint",
    4: "overflow",
    5: "bound range exceeded",
    6: "invalid opcode",
    7: "device not available",
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
WITH_ERROR_CODE = {10, 11, 12, 13, 14, 17, 21, 29, 30}
KERNEL_CODE, INTERRUPTS = 0x08, 0x200
COM1 = 0x3F8
THREAD_LOCAL, PRESENT = 0x3B, 0x00CFF2000000FFFF  # a program's selector, and its descriptor


@pytest.fixture
def raised(guest_config) -> Callable[..., str]:
    """What the kernel says when an exception comes while it stands at its prompt: the vector's stub
    is entered as the processor does."""

    def said(vector: int, code: int = 0) -> str:
        with halted(SimpleNamespace(stuck=[]), guest_config("")) as machine:
            machine.run_to("prompt")
            before = machine.registers()
            words = [before["eip"], KERNEL_CODE, before["eflags"]]
            words[:0] = [code] if vector in WITH_ERROR_CODE else []
            stack = before["esp"] - 4 * len(words)
            machine.write(stack, struct.pack(f"<{len(words)}I", *words))
            stub = machine.read_word(machine.address("trap_stubs") + 4 * vector)
            machine.set(esp=stack, eip=stub, eflags=before["eflags"] & ~INTERRUPTS)
            return machine.finish()

    return said


@pytest.mark.slow
def test_selftests(guest):
    """The tests inside the kernel: the plan is kept, and all pass."""
    lines = ktap(guest("selftest").check())
    assert len(lines) >= 10
    assert all(line.ok for line in lines)


@pytest.mark.parametrize("vector", [v for v in range(32) if v != 8])
def test_every_exception_is_reported(raised, vector):
    """The vector's stub makes a right frame: with or without an error code of the processor's."""
    name = NAMES.get(vector, "reserved exception")
    code = 0x1A if vector in WITH_ERROR_CODE else 0
    serial = raised(vector, code)
    assert f"PANIC: exception {vector}, {name} (error code {code:#x})" in serial
    assert callers(serial)[:2] == ["prompt", "first_task"]


@pytest.mark.parametrize(
    ("kind", "words", "function"),
    [
        ("divide", "exception 0, divide error", "divide"),
        ("null", "wrote to address 0x00001234: no page is there", "null_pointer"),
        ("wild", "wrote to address 0xf8000000: no page is there", "wild_pointer"),
        ("stack", "exception 8, double fault (error code 0x0)", "unmapped_stack"),
    ],
)  # fmt: skip
def test_real_crashes(guest, kind, words, function):
    """The processor's own exceptions, each with the line of callers that led to it."""
    result = guest(f"crash {kind}")
    assert result.outcome is Outcome.PANIC
    assert result.status == 63
    assert words in result.serial
    expected = [function, "run_crash", "monitor_execute", "monitor_script", "prompt"]
    expected.append("first_task")
    if kind == "stack":  # where the stack is bad there is no return address on it
        expected.remove("run_crash")
    assert callers(result.serial)[: len(expected)] == expected


def callers(serial: str) -> list[str]:
    """The functions of the backtrace, the innermost first."""
    return re.findall(r"^backtrace: 0x[0-9a-f]{8} (\w+)\+0x", serial, re.MULTILINE)


def test_panic(guest):
    """A message, and the callers."""
    result = guest("panic")
    assert (result.outcome, result.status) == (Outcome.PANIC, 63)
    assert "PANIC: asked for by the command line" in result.serial
    assert callers(result.serial)[:4] == [
        "run_panic", "monitor_execute", "monitor_script", "prompt"
    ]  # fmt: skip


@pytest.mark.parametrize("lesson", ["1", "storage"])
def test_backtraces_have_a_name_for_each_function(lesson):
    """Also for those that are OPTIONAL, and are there."""
    folder = ROOT / f"build/{'storage' if lesson == 'storage' else f'lesson{lesson}'}"
    make(f"LESSON={lesson}", "image-direct")
    code = Code(folder / "kernel.elf")
    table = (folder / "symbols.c").read_text()
    named = {int(each, 16) for each in re.findall(r"^\t\{ 0x(\w+), ", table, re.MULTILINE)}
    assert len(named) > 50 and set(code.starts) - named == set()


def test_user_and_kernel_page_faults_are_told_apart(raised):
    """Error code bits: present, write, user, reserved, fetch (Intel SDM volume 3, 4.7)."""
    assert "user code wrote to address" in raised(14, 6)
    assert "the page is protected" in raised(14, 1)
    assert "executed at address" in raised(14, 0x14)
    assert "a reserved bit is set" in raised(14, 9)


def test_selectors_are_named(raised):
    """Error code bits: an external event, the table, the entry (Intel SDM volume 3, 6.13)."""
    assert "(error code 0x1228): entry 581 of the GDT" in raised(13, 0x1228)
    assert "entry 3 of the IDT, during an external event" in raised(13, 3 * 8 + 3)


def test_an_interrupt_finds_no_selector_without_descriptor(guest_config):
    """When a program's descriptors go, GS is null before: between any two instructions an interrupt
    may come, and its return loads GS."""
    with halted(SimpleNamespace(stuck=[]), guest_config("")) as machine:
        machine.run_to("prompt")
        before, place = machine.registers(), machine.tables()["GDT"][0] + (THREAD_LOCAL & ~7)
        machine.write(place, struct.pack("<Q", PRESENT))
        stack = before["esp"] - 0x100
        machine.write(stack, struct.pack("<2I", before["eip"], machine.text(bytes(24))))
        machine.set(esp=stack, eip=machine.address("descriptors_set_thread_local"), gs=THREAD_LOCAL)
        seen = set()
        while machine.registers()["eip"] != before["eip"]:
            is_there = machine.read(place, 8) == struct.pack("<Q", PRESENT)
            seen.add((machine.registers()["gs"], is_there))
            machine.step()
        assert seen >= {(THREAD_LOCAL, True), (0, False)}
        assert not [each for each in seen if each[0] and not each[1]]


def test_triple_fault_is_explained(guest):
    """The first exception of the chain, though the kernel could not report it."""
    result = guest("crash triple")
    assert result.outcome is Outcome.TRIPLE_FAULT
    assert "invalid opcode" in result.explain()
    assert "empty_table" in result.explain()


LOOP = 0x10
"""In the port's modem control: what is sent comes back."""


def test_interrupt_that_nobody_waits_for(guest_config):
    """IRQ 4 may come when the terminal has just given the line back: the byte stays in the port."""
    make("LESSON=3", "build/lesson3/kernel.elf")
    config = dataclasses.replace(guest_config(""), kernel=ROOT / "build/lesson3/kernel.elf")
    with halted(SimpleNamespace(stuck=[]), config) as machine:
        machine.run_to("prompt")
        machine.out8(COM1 + 4, LOOP)
        machine.out8(COM1, ord("x"))
        machine.call("serial_interrupt")
        assert machine.call("serial_get") == ord("x")


@pytest.mark.slow
def test_hang_is_explained(guest):
    """Registers, and the name of the function that goes round and round."""
    result = guest("crash hang", guest_limit=5)
    assert result.outcome is Outcome.HANG
    assert "stop" in result.explain()
    assert "run_crash" in result.explain()


def test_unhandled_interrupt_vector(raised):
    assert "interrupt vector 200 has no handler" in raised(200)


def test_debug_exit_gives_qemu_the_status(guest):
    """isa-debug-exit: QEMU ends with 2 * (0x10 + status) + 1, which the harness turns back."""
    assert guest("exit 5", debug_exit=True).status == 5
    assert guest("panic", debug_exit=True).status == 63


def test_failing_command_gives_the_script_its_status(guest):
    result = guest("nonsense; memory")
    assert result.status == 1
    assert "> memory" in result.serial, "the script goes on"


def test_wrong_arguments_are_named(guest):
    script = "read hda x; read hdz 0; read hda 0 9999; exit 99; crash; crash softly"
    result = guest(script, boot="disk")
    for words in (
        "x is not a number",
        "hdz: no such drive",
        "SECTORS must be 1 to 1024, not",
        "99 is not a status from 0 to 61",
        "usage: crash KIND",
        "crash: not one of",
    ):
        assert words in result.serial

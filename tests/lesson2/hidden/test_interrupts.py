"""Exercise 2.3, hidden: every vector, every register, from the gate to IRET.

The kernel is stopped, and the processor is sent into each gate with registers of our choice. What
trap_dispatch was given is read there, and its return is played by hand.
"""

from __future__ import annotations

import random
import struct
from contextlib import contextmanager

import pytest

from tests.lesson2.support import (
    DIRECTION,
    DOUBLE_FAULT_TASK,
    FRAME,
    INTERRUPTS,
    KERNEL_CODE,
    KERNEL_DATA,
    SCRATCH,
    TIMER,
    USER_BASE,
    USER_CODE,
    USER_DATA,
    WITH_ERROR_CODE,
    Lab,
    mask_all_lines,
    stopped_at,
    trap_frame,
)
from tests.support.remote import Guest

VECTORS = range(256)
DOUBLE_FAULT = 8
GENERAL = ("eax", "ecx", "edx", "ebx", "ebp", "esi", "edi")
DATA_SEGMENTS = ("ds", "es", "fs", "gs")
SELECTORS = (KERNEL_CODE, KERNEL_DATA, USER_CODE, USER_DATA & ~3, USER_DATA)  # ring 0 loads them
FLAGS_KEPT = 0xED5  # interrupts, direction, and the six that arithmetic sets
INT, INT3, UD2 = b"\xcd", b"\xcc", b"\x0f\x0b"
CODE, STACK = SCRATCH, SCRATCH + 0x8000
HANDLER_STACK = 0x200
WAY_BACK = 64  # instructions, enough for any sensible solution


class Traps:
    """A stopped kernel that is sent into its gates."""

    def __init__(self, machine: Guest, seed: int) -> None:
        self.machine = machine
        self.random = random.Random(seed)
        self.dispatch = machine.address("trap_dispatch")
        base, _ = machine.tables()["IDT"]
        words = machine.read_words(base, 2 * len(VECTORS))
        pairs = zip(words[::2], words[1::2], strict=True)
        self.gates = [low & 0xFFFF | high & 0xFFFF0000 for low, high in pairs]

    def random_registers(self) -> dict[str, int]:
        """Values that show which register a word was saved from."""
        chosen = {name: self.random.getrandbits(32) for name in GENERAL}
        selectors = self.random.sample(SELECTORS, len(DATA_SEGMENTS))
        chosen |= dict(zip(DATA_SEGMENTS, selectors, strict=True))
        flags = self.random.getrandbits(32) & FLAGS_KEPT | DIRECTION | 2
        return chosen | {"eflags": flags, "esp": STACK - 4 * self.random.randrange(64)}

    def enter(self, vector: int, code: int, registers: dict[str, int]) -> int:
        """Sends the processor into a gate, as INT or with a frame and an error code of ours.
        Returns the address after it."""
        machine, home = self.machine, CODE + 2
        if vector in WITH_ERROR_CODE:
            words = (code, home, KERNEL_CODE, registers["eflags"])
            stack = registers["esp"] - 4 * len(words)
            machine.write(stack, struct.pack("<4I", *words))
            entry = self.stub(vector)
            flags = registers["eflags"] & ~INTERRUPTS
            machine.set(**registers | {"esp": stack, "eip": entry, "eflags": flags})
        else:
            machine.write(CODE, INT + bytes([vector]))
            machine.set(**registers | {"eip": CODE})
        assert machine.resume() == self.dispatch
        return home

    def stub(self, vector: int) -> int:
        """Where a vector enters the kernel. The double fault's gate has no stub: it names a
        task."""
        if vector != DOUBLE_FAULT:
            return self.gates[vector]
        return self.machine.read_words(self.machine.address("trap_stubs") + 4 * vector, 1)[0]

    def check_frame(self, vector: int, code: int, registers: dict[str, int], home: int) -> int:
        """The frame tells all that was. Returns its address."""
        address, frame = trap_frame(self.machine)
        what = f"vector {vector}, in the frame"
        for name in (*GENERAL, *DATA_SEGMENTS, "eflags"):
            mask = 0xFFFF if name in DATA_SEGMENTS else 0xFFFFFFFF
            if name == "eflags":
                mask = FLAGS_KEPT
            assert frame[name] & mask == registers[name] & mask, (
                f"{what}: {name} is {frame[name]:#x}, and was {registers[name]:#x}"
            )
        expected_code = code if vector in WITH_ERROR_CODE else 0
        assert frame["vector"] == vector, f"{what}: the vector is {frame['vector']:#x}"
        assert frame["error_code"] == expected_code, (
            f"{what}: the error code is {frame['error_code']:#x}, not {expected_code:#x}"
        )
        assert frame["eip"] == home, f"{what}: eip is {frame['eip']:#x}, not {home:#x}"
        assert frame["cs"] & 0xFFFF == KERNEL_CODE, f"{what}: cs is {frame['cs']:#x}"
        pusha = address + 4 * FRAME.index("gs")
        assert frame["esp"] == pusha, f"{what}: ESP is {frame['esp']:#x}; PUSHA saves {pusha:#x}"
        return address

    def check_handler(self, vector: int) -> None:
        """C code finds what it needs."""
        now = self.machine.registers()
        assert not now["eflags"] & DIRECTION, f"vector {vector}: C code with the direction flag set"
        assert not now["eflags"] & INTERRUPTS, f"vector {vector}: the handler can be interrupted"
        assert (now["ds"], now["es"]) == (KERNEL_DATA, KERNEL_DATA), (
            f"vector {vector}: DS and ES are {now['ds']:#x} and {now['es']:#x} in the handler"
        )

    def leave(self, argument: int | None = None) -> None:
        """Returns from trap_dispatch as C does: with other values in EAX, ECX and EDX. argument:
        what it leaves in the word of its argument, which belongs to it."""
        machine = self.machine
        now = machine.registers()
        if argument is not None:
            machine.write(now["esp"] + 4, struct.pack("<I", argument))
        (home,) = machine.read_words(now["esp"], 1)
        junk = {name: self.random.getrandbits(32) for name in ("eax", "ecx", "edx")}
        machine.set(**junk, esp=now["esp"] + 4, eip=home)

    def check_return(self, vector: int, registers: dict[str, int], home: int) -> None:
        """Everything is as it was."""
        with self.machine.stopping_at(home):
            assert self.machine.resume() == home, f"vector {vector}: IRET does not go back"
        now = self.machine.registers()
        for name, value in registers.items():
            mask = FLAGS_KEPT if name == "eflags" else 0xFFFFFFFF
            assert now[name] & mask == value & mask, (
                f"vector {vector}: {name} was {value:#x}, and is {now[name]:#x} after the trap"
            )

    def go_through(self, vector: int) -> None:
        """One trap, all the way."""
        registers, code = self.random_registers(), self.random.getrandbits(16)
        home = self.enter(vector, code, registers)
        self.check_frame(vector, code, registers, home)
        self.leave()
        self.check_return(vector, registers, home)


@contextmanager
def traps(lab: Lab):
    """The kernel at its prompt, with every IRQ masked, stopping at each trap."""
    with stopped_at(lab, "prompt") as machine:
        mask_all_lines(machine)
        chosen = Traps(machine, lab.seed)
        with machine.stopping_at(chosen.dispatch):
            yield chosen


@pytest.mark.exercise("2.3", points=2, gate=True)
def test_table_in_memory(lab):
    """The IDT: 256 gates, interrupt gates for ring 0 with a stub each, and a task gate for vector
    8."""
    with stopped_at(lab, "prompt") as machine:
        base, limit = machine.tables()["IDT"]
        assert limit == 8 * len(VECTORS) - 1, f"the IDT register's limit is {limit:#x}"
        words = machine.read_words(base, 2 * len(VECTORS))
        stubs = machine.read_words(machine.address("trap_stubs"), len(VECTORS))
        text = range(machine.address("text_start"), machine.address("text_end"))
    assert len(set(stubs)) == len(VECTORS), "each vector has a stub of its own"
    for vector, (low, high) in enumerate(zip(words[::2], words[1::2], strict=True)):
        kind, selector = high & 0xFFFF, low >> 16
        if vector == DOUBLE_FAULT:
            assert (kind, selector) == (0x8500, DOUBLE_FAULT_TASK), "vector 8 has a task gate"
            continue
        offset = low & 0xFFFF | high & 0xFFFF0000
        assert offset in text and offset == stubs[vector], f"gate {vector} goes to {offset:#x}"
        assert selector == KERNEL_CODE, f"gate {vector} has selector {selector:#x}"
        assert kind == 0x8E00, (
            f"gate {vector}: bits {kind:#06x}; a present interrupt gate for ring 0 has 0x8e00"
        )


@pytest.mark.exercise("2.3", points=1)
def test_gate_for_another_ring(lab):
    """gate_set with another ring: type and ring stay apart."""
    seeded = random.Random(lab.seed)
    vector, offset = seeded.randrange(48, 256), seeded.getrandbits(32)
    with stopped_at(lab, "prompt") as machine:
        base, _ = machine.tables()["IDT"]
        found = {}
        for ring in range(4):
            machine.call(machine.address("gate_set"), vector, KERNEL_CODE, offset, 0x8F, ring)
            found[ring] = machine.read_words(base + 8 * vector, 2)
    for ring, words in found.items():
        kind = 0x8F00 | ring << 13
        expected = (offset & 0xFFFF | KERNEL_CODE << 16, offset & 0xFFFF0000 | kind)
        assert words == expected, f"gate_set with ring {ring}: {words[0]:#x} {words[1]:#x}"


@pytest.mark.exercise("2.3", points=3, gate=True)
def test_exceptions_keep_every_register(lab):
    """Vectors 0 to 31: the frame is right, and every register comes back."""
    with traps(lab) as kernel:
        for vector in range(32):
            kernel.go_through(vector)


@pytest.mark.exercise("2.3", points=2)
def test_every_other_vector(lab):
    """Vectors 32 to 255 by INT: every register comes back. At the second clock rate every fifth
    vector is tried."""
    step = 1 if lab.mode == "icount" else 5
    with traps(lab) as kernel:
        for vector in range(32 + lab.seed % step, 256, step):
            kernel.go_through(vector)


@pytest.mark.exercise("2.3", points=1)
def test_what_c_code_finds(lab):
    """In trap_dispatch, whatever was interrupted: the direction flag is clear, interrupts are
    disabled, and DS and ES are the kernel's."""
    with traps(lab) as kernel:
        for vector in (0, 3, 14, 0x42, 0x80):
            registers = kernel.random_registers() | {"eflags": INTERRUPTS | DIRECTION | 2}
            kernel.enter(vector, 0, registers | {"es": USER_DATA, "ds": USER_DATA})
            kernel.check_handler(vector)


@pytest.mark.exercise("2.3", points=1)
def test_handler_may_change_its_argument(lab):
    """A handler that changes its argument: the frame is found all the same. By the calling
    convention the argument belongs to the function."""
    with traps(lab) as kernel:
        for vector in (3, 14, 0x42):
            registers = kernel.random_registers()
            home = kernel.enter(vector, 0, registers)
            kernel.leave(argument=kernel.random.getrandbits(32))
            kernel.check_return(vector, registers, home)


@pytest.mark.exercise("2.3", points=1)
def test_handler_may_change_the_frame(lab):
    """A frame that trap_dispatch changes: the interrupted code gets the new values."""
    with traps(lab) as kernel:
        before = kernel.random_registers()
        home = kernel.enter(0x80, 0, before)
        address = kernel.check_frame(0x80, 0, before, home)
        after = kernel.random_registers() | {"esp": before["esp"]}
        while any(after[name] == before[name] for name in DATA_SEGMENTS):
            after |= dict(zip(DATA_SEGMENTS, kernel.random.sample(SELECTORS, 4), strict=True))
        words = [after[name] for name in ("edi", "esi", "ebp")] + [0xBAD]
        words += [after[name] for name in ("ebx", "edx", "ecx", "eax", "gs", "fs", "es", "ds")]
        kernel.machine.write(address, struct.pack("<12I", *words))
        kernel.machine.write(address + 4 * 16, struct.pack("<I", after["eflags"]))
        kernel.leave()
        kernel.check_return(0x80, after, home)


@pytest.mark.exercise("2.3", points=1)
def test_interrupts_stay_off_until_iret(lab):
    """From the return of trap_dispatch to IRET: interrupts stay disabled. An interrupt there would
    find half a frame."""
    with traps(lab) as kernel:
        for vector in (3, 14, 0x80):
            registers = kernel.random_registers() | {"eflags": INTERRUPTS | 2}
            home = kernel.enter(vector, 0, registers)
            kernel.leave()
            for _ in range(WAY_BACK):
                kernel.machine.step()
                now = kernel.machine.registers()
                if now["eip"] == home:
                    break
                assert not now["eflags"] & INTERRUPTS, (
                    f"vector {vector}: interrupts are enabled at {now['eip']:#x}, before IRET"
                )
            assert now["eip"] == home, f"vector {vector}: IRET does not go back"


@pytest.mark.exercise("2.3", points=2)
def test_nested_exceptions(lab):
    """Exceptions in handlers: each returns to the one before."""
    with traps(lab) as kernel:
        visits = []
        for vector in (3, 14, 0x42, 17, 6):
            registers, code = kernel.random_registers(), kernel.random.getrandbits(16)
            if visits:
                registers["esp"] = kernel.machine.registers()["esp"] - HANDLER_STACK
            home = kernel.enter(vector, code, registers)
            kernel.check_frame(vector, code, registers, home)
            visits.append((vector, registers, home, kernel.machine.registers()))
        for vector, registers, home, handler in reversed(visits):
            kernel.machine.set(**handler)
            kernel.leave()
            kernel.check_return(vector, registers, home)


@pytest.mark.exercise("2.3", points=1, gate=True)
def test_real_exceptions(lab):
    """INT3, UD2, a wrong selector and a wrong address: the frame has the right EIP and the
    processor's error code."""
    cases = (
        (INT3, 3, 0, 1),
        (UD2, 6, 0, 0),
        (b"\x8e\xe0", 13, 0x1228, 0),  # mov fs, ax
        (b"\x89\x03", 14, 2, 0),  # mov [ebx], eax
        (b"\xf7\xf1", 0, 0, 0),  # div ecx
    )
    with traps(lab) as kernel:
        for code, vector, error, length in cases:
            registers = kernel.random_registers() | {"eax": 0x1228, "ebx": 0xF8000000, "ecx": 0}
            registers |= {"ds": KERNEL_DATA, "eip": CODE}
            kernel.machine.write(CODE, code)
            kernel.machine.set(**registers)
            kernel.machine.resume()
            _, frame = trap_frame(kernel.machine)
            found = frame["vector"], frame["error_code"], frame["eip"] - CODE
            assert found == (vector, error, length), f"{code.hex()}: {found}"


@pytest.mark.exercise("2.3", points=2)
def test_interrupts_of_user_mode(lab):
    """A timer interrupt in user mode: the frame has the user's segments and stack, and IRET
    restores them."""
    with stopped_at(lab, "prompt", "probe work") as machine:
        machine.run_to(USER_BASE)
        machine.run_to(machine.address("trap_dispatch"))
        address, frame = trap_frame(machine)
        esp, ss = machine.read_words(address + 4 * 17, 2)
        inside = machine.registers()
        machine.run_to(frame["eip"])
        after = machine.registers()
    assert frame["vector"] == TIMER
    assert [frame[name] & 0xFFFF for name in (*DATA_SEGMENTS, "cs")] == [
        *[USER_DATA] * 4,
        USER_CODE,
    ]
    assert (inside["ds"], inside["es"]) == (KERNEL_DATA, KERNEL_DATA)
    assert (after["esp"], after["ss"]) == (esp, ss)
    for name in (*GENERAL, *DATA_SEGMENTS, "cs", "eip"):
        assert after[name] == frame[name] & 0xFFFFFFFF, f"{name} after the interrupt"
    assert after["eflags"] & INTERRUPTS

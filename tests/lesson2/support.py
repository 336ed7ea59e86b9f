"""What the tests of lesson 2 share: QEMU's record of traps, and scratch memory in the guest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from labs.tools.grading.lab import Lab
from labs.tools.machine.explain import RECORD, parse_registers
from labs.tools.machine.symbols import Symbols, symbols_of
from tests.support.remote import Guest, halted, stopped

KERNEL_BASE = 0xC0000000
KERNEL_CODE, KERNEL_DATA, USER_CODE, USER_DATA = 0x08, 0x10, 0x1B, 0x23
KERNEL_TASK, DOUBLE_FAULT_TASK = 0x28, 0x30
USER_BASE = 0x08000000
USER_STACK = USER_BASE + (4 << 20) - 16  # where a probe's argument is

INTERRUPTS, DIRECTION, PRIVILEGE = 0x200, 0x400, 0x3000
TIMER = 32

# Intel SDM volume 3, table 6-1; 21, 29 and 30 are newer than its first editions.
WITH_ERROR_CODE = {8, 10, 11, 12, 13, 14, 17, 21, 29, 30}

# Conventional memory that neither the kernel nor the loader needs any more, as the kernel sees it.
SCRATCH = KERNEL_BASE + 0x50000
LOOP, LOOP_STACK = SCRATCH + 0xF000, SCRATCH + 0xF000
JUMP_TO_ITSELF = b"\xeb\xfe"

FRAME = (
    "edi", "esi", "ebp", "esp", "ebx", "edx", "ecx", "eax", "gs", "fs", "es", "ds",
    "vector", "error_code", "eip", "cs", "eflags",
)  # fmt: skip
FRAME_BYTES = 4 * 19  # with the user's stack


@dataclass(frozen=True)
class Trap:
    """An exception or interrupt in QEMU's record, with the registers of before."""

    vector: int
    error_code: int
    ring: int
    is_instruction: bool  # INT n or INT3; where its gate is shut, the exception follows
    registers: dict[str, int]

    @property
    def eip(self) -> int:
        """Where it happened."""
        return self.registers["EIP"]


def recorded_traps(text: str) -> Iterator[Trap]:
    """The traps in QEMU's log of "-d int"."""
    found = list(RECORD.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    for match, end in zip(found, ends, strict=False):
        yield Trap(
            vector=int(match["vector"], 16),
            error_code=int(match["error"], 16),
            ring=int(match["ring"]),
            is_instruction=match["software"] == "1",
            registers=parse_registers(text[match.end() : end]),
        )


def run_recorded(lab: Lab, script: str, extra: Sequence[str] = (), **fields: object):
    """Runs a script; returns the result, and the traps that QEMU has seen since the power-on.
    extra: more of QEMU's options."""
    log = lab.scratch / "interrupts"
    log.unlink(missing_ok=True)
    result = lab.run(script, extra=(*extra, "-d", "int", "-D", str(log)), **fields)
    text = log.read_text(errors="replace") if log.exists() else ""
    return result, list(recorded_traps(text))


def user_exceptions(traps: list[Trap]) -> list[Trap]:
    """Those that ring 3 caused itself; the hardware's interrupts are left out."""
    own = (trap for trap in traps if trap.ring == 3 and not trap.is_instruction)
    return [trap for trap in own if trap.vector not in range(32, 48)]


def stopped_at(lab: Lab, symbol: str, script: str | None = None, **fields: object):
    """The lab's kernel, stopped where a function of it begins."""
    return stopped(lab, symbol, script, **fields)


def switched_on(lab: Lab, script: str | None = None, **fields: object):
    """The lab's machine before its first instruction."""
    return halted(lab, lab.config(script, **fields))


def mask_all_lines(machine: Guest) -> None:
    """No interrupt comes any more."""
    machine.out8(0x21, 0xFF)
    machine.out8(0xA1, 0xFF)


def go_round(machine: Guest) -> None:
    """Lets the stopped kernel go round at LOOP, with a stack of its own and interrupts enabled."""
    machine.write(LOOP, JUMP_TO_ITSELF)
    machine.set(eip=LOOP, esp=LOOP_STACK, eflags=INTERRUPTS | 2)


def trap_frame(machine: Guest) -> tuple[int, dict[str, int]]:
    """At the beginning of trap_dispatch: where the frame is that it was given, and its words."""
    (address,) = machine.read_words(machine.registers()["esp"] + 4, 1)
    return address, dict(zip(FRAME, machine.read_words(address, len(FRAME)), strict=True))


def loader_symbols(lab: Lab) -> Symbols:
    """The symbols of our own loader's second stage."""
    lab.build("build/lesson2/boot.img")
    return symbols_of(Path(lab.build("build/lesson2/stage2.elf")))

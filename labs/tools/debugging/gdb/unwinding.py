"""How gdb gets from a frame to its caller where the compiler has left no description.

That is beyond the task gate of a double fault, where no code is, and in 16-bit code. Beyond a trap
it is described (entries.s).
"""

from __future__ import annotations

import gdb
from gdb.unwinder import Unwinder, register_unwinder

from labs.tools.debugging.gdb.processor import KERNEL_BASE, Processor, symbol_at

WORD = 0xFFFF
LOWEST = 16  # a stack pointer that is below every other: gdb wants callers to have a higher one
SHARED_PAGE = 0xBFFFF000  # mm/space.h
SYSENTER_INT_80 = b"\x0f\x34\xcd\x80"  # what is before it
BOOT_CODE = range(0x7C00, 0x10000)
EMPTY_STACKS = (0x7C00, 0xFFF0)  # the boot sector's and the second stage's
GENERAL_REGISTERS = ("eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi")
REGISTERS = (*GENERAL_REGISTERS, "eip", "eflags", "cs", "ss", "ds", "es", "fs", "gs")
TASK_STATE = {"eip": 32, "ebx": 52, "esp": 56, "ebp": 60, "esi": 64, "edi": 68}  # offsets


class FrameId:
    """What makes a frame this one and no other."""

    def __init__(self, sp: int, pc: int) -> None:
        self.sp = gdb.Value(sp).cast(gdb.lookup_type("unsigned int"))
        self.pc = gdb.Value(pc).cast(gdb.lookup_type("unsigned int"))


class Teleport:
    """Makes gdb take other registers for those of the caller of the newest frame. That is how a
    task is shown that does not run (labs/tools/debugging/gdb/views.py)."""

    def __init__(self) -> None:
        self.registers: dict[str, int] | None = None

    def go(self, registers: dict[str, int] | None) -> None:
        """From now on; None: back to the truth."""
        self.registers = registers
        gdb.invalidate_cached_frames()


TELEPORT = Teleport()


class AssemblyUnwinder(Unwinder):
    """Finds the callers of the kernel's and the loader's assembly."""

    def __init__(self) -> None:
        super().__init__("apprentice")

    def __call__(self, pending: gdb.PendingFrame) -> gdb.UnwindInfo | None:
        """Returns the caller's registers, or None: then gdb finds them itself."""
        try:
            if TELEPORT.registers is not None and pending.level() == 0:
                return caller(pending, LOWEST, TELEPORT.registers, LOWEST)
            if pending.architecture().name() == "i8086":
                return from_16_bit_code(pending)
            return from_32_bit_code(pending)
        except (gdb.error, LookupError):
            return None


def register(pending: gdb.PendingFrame, name: str) -> int:
    """A register of the frame, unsigned."""
    return int(pending.read_register(name)) & 0xFFFFFFFF


def word(address: int, size: int = 4) -> int:
    """A number in memory."""
    return int.from_bytes(bytes(gdb.selected_inferior().read_memory(address, size)), "little")


def caller(
    pending: gdb.PendingFrame, start: int, registers: dict[str, int], stack: int | None = None
) -> gdb.UnwindInfo:
    """The answer to gdb: this frame's identity (its stack and where its code begins), and the
    registers of its caller, as far as they differ."""
    stack = register(pending, "esp") if stack is None else stack
    info = pending.create_unwind_info(FrameId(stack, start))
    for name in REGISTERS:
        value = pending.read_register(name)
        if name in registers:
            value = gdb.Value(registers[name]).cast(value.type)
        info.add_saved_register(name, value)
    return info


def from_32_bit_code(pending: gdb.PendingFrame) -> gdb.UnwindInfo | None:
    """A wild pointer was called: the return address is still on top of the stack. Or the processor
    has changed tasks."""
    stack, pc = register(pending, "esp"), register(pending, "eip")
    name = symbol_at(pc - 1 if pending.level() > 0 else pc)  # a call may be a function's last word
    if name is None and (called_from := symbol_at(word(stack) - 1)) and "+" in called_from:
        return caller(pending, pc, {"eip": word(stack), "esp": stack + 4})
    if name and name.startswith("double_fault+"):
        return caller(pending, pc, before_task_switch())
    if pc >= SHARED_PAGE and pc < KERNEL_BASE:
        return from_shared_page(pending, pc, stack)
    return None


def from_shared_page(pending: gdb.PendingFrame, pc: int, stack: int) -> gdb.UnwindInfo | None:
    """Where SYSENTER's calls come back to in ring 3 (kernel/syscall/shared_page.asm): EBP, EDX, ECX
    and the address to return to are on the stack."""
    if word(pc - len(SYSENTER_INT_80)) != int.from_bytes(SYSENTER_INT_80, "little"):
        return None
    names = ("ebp", "edx", "ecx", "eip")
    registers = {name: word(stack + 4 * index) for index, name in enumerate(names)}
    return caller(pending, pc, registers | {"esp": stack + 16})


def trap_frame_at(address: int) -> gdb.Value:
    """The struct trap_frame at an address."""
    return gdb.Value(address).cast(gdb.lookup_type("struct trap_frame").pointer()).dereference()


def stack_pointer(frame: gdb.Value) -> int:
    """ESP before the trap. One from ring 0 pushes none; PUSHA saw it, further down."""
    if int(frame["cs"]) & 3:
        return int(frame["user_esp"])
    between = int(frame["user_esp"].address) - int(frame["gs"].address)
    return int(frame["esp_ignored"]) + between


def before_task_switch() -> dict[str, int]:
    """The registers that the processor saved when it took a task gate: the current task state
    begins with the selector of the one before. Intel SDM volume 3, figure 7-2."""
    processor = Processor()
    previous = word(processor.segments["TR"].base, 2) & ~7
    descriptor = word(processor.tables["GDT"][0] + previous, 8)
    state = descriptor >> 16 & 0xFFFFFF | descriptor >> 32 & 0xFF000000
    return {name: word(state + offset) for name, offset in TASK_STATE.items()}


def from_16_bit_code(pending: gdb.PendingFrame) -> gdb.UnwindInfo:
    """Right at the first instruction of what CALL and INT enter, and as long as nothing is pushed.

    That is what `next` needs to step over a call or a BIOS interrupt. The BIOS has its code in
    other segments than ours, which is segment 0. Labels are no functions, so all of it is taken for
    one. Where the stack cannot be understood the caller is 0.
    """
    stack = register(pending, "ss") * 16 + (register(pending, "esp") & WORD)
    is_ours = register(pending, "cs") == 0
    pushed = 2 if is_ours else 6  # IP, or IP, CS and FLAGS
    pc = word(stack, 2)
    if stack in EMPTY_STACKS or pc not in BOOT_CODE or not (is_ours or word(stack + 2, 2) == 0):
        pc = 0
    registers = {"eip": pc, "cs": 0, "esp": register(pending, "esp") + pushed}
    return caller(pending, BOOT_CODE.start, registers)


def install() -> None:
    """Tells gdb of it."""
    register_unwinder(None, AssemblyUnwinder(), replace=True)

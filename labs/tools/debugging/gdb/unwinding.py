"""How gdb gets from a frame to its caller where the compiler has left no description.

That is beyond the task gate of a double fault, where no code is, in 16-bit code, in the kernel's
assembly (assembly.py), and where a handler of a signal returns to. Beyond a trap it is described
(entries.s).
"""

from __future__ import annotations

import gdb
from gdb.unwinder import Unwinder, register_unwinder

from labs.tools.debugging.gdb import assembly
from labs.tools.debugging.gdb.border import BORDER
from labs.tools.debugging.gdb.processor import KERNEL_BASE, Processor, symbol_at

WORD = 0xFFFF
LOWEST = 16  # a stack pointer that is below every other: gdb wants callers to have a higher one
SHARED_PAGE = 0xBFFFF000  # mm/space.h
BOOT_CODE = range(0x7C00, 0x10000)
EMPTY_STACKS = (0x7C00, 0xFFF0)  # the boot sector's and the second stage's
GENERAL_REGISTERS = ("eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi")
REGISTERS = (*GENERAL_REGISTERS, "eip", "eflags", "cs", "ss", "ds", "es", "fs", "gs")
TRAPS = (
    "trap_stub_",
    "trap_common",
    "syscall_",
    "sysenter_entry",
    "bad_stack",
    "program_begin",
    "to_user",
)
OUTERMOST = ("_start", "enable_paging", "paging_is_on", "higher_half", "thread_begin")
DESCRIBED = ("trap_dispatch", "syscall_dispatch", "trap_return", "task_before_user")  # entries.s
SIGNAL_RETURNS = {  # code, and where the registers are from the stack pointer on
    bytes.fromhex("58b877000000cd80"): 4,  # POP EAX; sigreturn
    bytes.fromhex("b877000000cd80"): 0,
    bytes.fromhex("b8ad000000cd80"): 160,  # rt_sigreturn
}
CONTEXT = ("edi", "esi", "ebp", "esp", "ebx", "edx", "ecx", "eax")  # after four segments
CONTEXT_EIP = 14 * 4
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
        except (gdb.error, assembly.Unknown, LookupError):
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
    if pc == BORDER:
        return None
    name = symbol_at(pc - 1 if pending.level() > 0 else pc)  # a call may be a function's last word
    if name is None and (called_from := symbol_at(word(stack) - 1)) and "+" in called_from:
        return caller(pending, pc, {"eip": word(stack), "esp": stack + 4})
    if name and name.startswith("double_fault+"):
        return caller(pending, pc, before_task_switch())
    if pc < KERNEL_BASE and (found := from_signal_return(pending, pc, stack)):
        return found
    if pc >= SHARED_PAGE and pc < KERNEL_BASE:
        return from_way_out(pending, pc, pc)
    return from_assembly(pending, pc)


def from_assembly(pending: gdb.PendingFrame, pc: int) -> gdb.UnwindInfo | None:
    """In the kernel's assembly. A function is followed from its start; a trap, and what has taken
    another stack, to its end."""
    is_newest = pending.level() == 0
    if not is_newest and assembly.called_before(pc).startswith(DESCRIBED):
        return None
    label = assembly.label_of(pc if is_newest else pc - 1)
    if label is None or label.name in OUTERMOST:
        return None
    if not label.name.startswith(TRAPS):
        found = assembly.caller_of_function(label.address, pc, registers_in(pending))
        if found is not None:
            stack = found["esp"]
            return caller(pending, label.address, known(found), stack)
    return from_way_out(pending, pc, label.part)


def from_way_out(pending: gdb.PendingFrame, pc: int, start: int) -> gdb.UnwindInfo | None:
    """What the code will go back to when it ends."""
    run = assembly.Run(registers_in(pending))
    way = run.to_end(pc)
    if way is None:
        return None
    stack = way.registers["esp"]
    if way.by == "iret":
        is_there = stack not in run.written  # not when the code is about to push it
        return across_border(pending, start, way.registers, stack) if is_there else None
    if way.by == "ret":
        found = {**way.registers, "eip": run.word(stack), "esp": stack + 4}
        return caller(pending, start, known(found), stack)
    found = {**way.registers, "eip": way.registers["edx"], "esp": way.registers["ecx"]}
    return caller(pending, start, known(found), LOWEST)


def across_border(
    pending: gdb.PendingFrame, start: int, registers: assembly.Registers, stack: int
) -> gdb.UnwindInfo:
    """The caller is a frame without code, and its caller what IRET goes to: `stack` is where its
    registers are. This frame's identity is the one that entries.s gives it."""
    outside = word(stack + 12) if word(stack + 4) & 3 else stack + 12
    return caller(pending, start, known({**registers, "eip": BORDER, "esp": stack}), outside)


def from_signal_return(pending: gdb.PendingFrame, pc: int, stack: int) -> gdb.UnwindInfo | None:
    """Where a handler of a signal has returned to: the program goes on with the registers in the
    struct sigcontext on its stack."""
    code = bytes(gdb.selected_inferior().read_memory(pc, max(map(len, SIGNAL_RETURNS))))
    for begin, offset in SIGNAL_RETURNS.items():
        if code.startswith(begin):
            context = stack + offset
            values = {name: word(context + 16 + 4 * at) for at, name in enumerate(CONTEXT)}
            return across_border(pending, pc, values, context + CONTEXT_EIP)
    return None


def registers_in(pending: gdb.PendingFrame) -> assembly.Registers:
    """The general registers of the frame."""
    return {name: register(pending, name) for name in GENERAL_REGISTERS}


def known(registers: assembly.Registers) -> dict[str, int]:
    """Those of which the value is known."""
    return {name: value for name, value in registers.items() if value is not None}


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

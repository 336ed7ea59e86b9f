"""Seeing the machine as another task sees it: with its registers, and with its address space.

gdb finds a caller's registers by asking what the callee has saved. So a task that waits is shown as
the caller of whatever the processor does just now: an unwinder answers with the task's registers
for the newest frame (unwinding.py). Its memory is seen through CR3, which is changed
meanwhile; the machine is stopped, and does not notice.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import gdb

from labs.tools.debugging.gdb.commands import Refusal
from labs.tools.debugging.gdb.kernel_data import KERNEL_BASE, has_member, pointer, structure
from labs.tools.debugging.gdb.processor import Processor, quiet
from labs.tools.debugging.gdb.tasks import Task
from labs.tools.debugging.gdb.unwinding import GENERAL_REGISTERS, TELEPORT

GDB_SAYS = "<signal handler called>"


@contextmanager
def address_space(task: Task) -> Iterator[None]:
    """Memory below the kernel is the task's meanwhile. A thread of the kernel has none, and sees
    that of the task before it."""
    before = Processor().registers["CR3"]
    wanted = directory_of(task) if task.space else before
    try:
        set_directory(wanted, before)
        yield
    finally:
        set_directory(before, wanted)


def set_directory(wanted: int, now: int) -> None:
    """Changes CR3, if it is another one."""
    if wanted != now:
        quiet(f"set $cr3 = {wanted:#x}")


def directory_of(task: Task) -> int:
    """The physical address of a task's page directory. Raises Refusal."""
    if not task.space:
        raise Refusal(f"{task.title} has no address space")
    if not has_member("space", "directory"):
        raise Refusal("this kernel's struct space has no directory")
    return pointer(structure("space", task.space)["directory"]) - KERNEL_BASE


@contextmanager
def seen_as(task: Task, registers: dict[str, int] | None) -> Iterator[None]:
    """gdb's newest frame but one is the task's; the selected one, too. With registers None the
    frames stay the processor's."""
    level = gdb.selected_frame().level()  # a frame itself does not outlive the changes
    with address_space(task):
        try:
            TELEPORT.go(registers)
            if registers is not None:
                select(1)
            yield
        finally:
            TELEPORT.go(None)
            select(level)


def select(level: int) -> None:
    """Selects a frame without a word."""
    frame = gdb.newest_frame()
    while frame.level() < level and frame.older() is not None:
        frame = frame.older()
    frame.select()


def registers_of(task: Task) -> dict[str, int] | None:
    """What the task will go on with: in the kernel, or in ring 3 if it has not been there yet.
    None: it has the processor. Raises Refusal."""
    if task.is_current:
        return None
    frame = task.user_frame() if task.is_new else None
    return task.saved_registers() if frame is None else frame_registers(frame)


def frame_registers(frame: gdb.Value) -> dict[str, int]:
    """The user registers in a trap frame."""
    names = [name for name in GENERAL_REGISTERS if name != "esp"]
    values = {name: int(frame[name]) for name in (*names, "eip", "cs", "eflags")}
    return values | {"esp": int(frame["user_esp"])}


def backtrace(task: Task) -> str:
    """The task's calls, in the kernel and in its program."""
    registers = registers_of(task)
    with seen_as(task, registers):
        text = quiet("backtrace").replace(GDB_SAYS, "<trap or system call>")
    if registers is None:
        return text
    lines = text.splitlines(keepends=True)
    own = [index for index, line in enumerate(lines) if line.startswith("#1 ")]
    return "".join(lines[own[0] :]) if own else text

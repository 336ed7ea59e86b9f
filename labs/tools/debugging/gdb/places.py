"""Where a task is, in few words."""

from __future__ import annotations

from labs.tools.debugging.gdb.processor import Processor
from labs.tools.debugging.gdb.programs import PROGRAMS
from labs.tools.debugging.gdb.tasks import IDLE, NEW_TASK, TRAP, Call, Task, in_ring_3

NAMES_SHOWN = 3

# What is between a task's own business and the switch to another one.
WAITING_FILES = ("kernel/task/sched", "kernel/task/wait")
WAITING_NAMES = (TRAP, "trap_dispatch", "trap_return", "syscall_leave", *NEW_TASK)


def place_of(task: Task) -> str:
    """Where a task is, in few words."""
    if task.state == "zombie":
        return ending(int(task.process["status"])) if task.process is not None else "has ended"
    if task.is_new:
        return "has not run yet"
    if task.pid == IDLE:
        return "idles"
    if task.is_current and task.space and in_ring_3():
        return f"ring 3, {user_place(task, Processor().registers['EIP'])}"
    calls = [call for call in task.calls() if is_own_business(call)]
    frame = None if calls else task.user_frame()
    if frame is not None:
        return f"ring 3, {user_place(task, int(frame['eip']))}"
    return in_few_words(calls) or "?"


def in_few_words(calls: list[Call]) -> str:
    """The innermost functions, and the file of the first."""
    names = list(dict.fromkeys(call.name for call in calls))[:NAMES_SHOWN]
    if calls and calls[0].file:
        names[0] += f" ({calls[0].file})"
    return " < ".join(names)


def is_own_business(call: Call) -> bool:
    """Whether a function says what the task wants, and not just how it waits."""
    return not call.file.startswith(WAITING_FILES) and call.name not in WAITING_NAMES


def user_place(task: Task, eip: int) -> str:
    """A user address, with its name if gdb has the symbols of the task's program just now."""
    return f"{eip:#010x} {PROGRAMS.symbol(task, eip)}".rstrip()


def ending(status: int) -> str:
    """How a task has ended: the status of wait4 in words."""
    signal = status & 0x7F
    return f"ended by signal {signal}" if signal else f"ended with status {status >> 8 & 0xFF}"

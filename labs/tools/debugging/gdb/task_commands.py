"""Commands about tasks: which there are, where they are, and a look at the machine as they see
it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import gdb

from labs.tools.debugging.gdb.commands import Refusal, command, table
from labs.tools.debugging.gdb.kernel_commands import register_lines
from labs.tools.debugging.gdb.kernel_data import noted
from labs.tools.debugging.gdb.places import place_of
from labs.tools.debugging.gdb.processor import quiet
from labs.tools.debugging.gdb.programs import PROGRAMS, path_of
from labs.tools.debugging.gdb.scheduling import class_cell, class_heading, milliseconds
from labs.tools.debugging.gdb.tasks import Task, all_tasks, find_task, in_ring_3
from labs.tools.debugging.gdb.views import backtrace, registers_of, seen_as

HEADS = ("", "pid", "parent", "state", "name", "ms")

# What is allowed with another task's registers: nothing that lets the machine run.
LOOKS = (
    *("backtrace", "bt", "where", "info", "i", "print", "p", "output", "x", "list", "l", "frame"),
    *("f", "disassemble", "ptype", "whatis"),
)


@command("tasks")
def tasks() -> str:
    """Every task: parent, state, what the scheduling class knows, where it is or waits."""
    found, damage = all_tasks()
    rows = [task_row(task) for task in found]
    heads = (*HEADS, class_heading(), "where")
    return noted(table(heads, rows), damage)


def task_row(task: Task) -> tuple[object, ...]:
    """One task, as cells of a table; a structure that cannot be read is said."""
    mark = "*" if task.is_current else ""
    try:
        cells = (task.pid, task.parent, task.state, task.name, milliseconds(task))
        return mark, *cells, class_cell(task), place_of(task)
    except gdb.error as error:
        return mark, "?", "", "", "", "", "", f"damaged, at {task.address:#010x}: {error}"


@command("task", "[PID]")
def task_command(pid: str = "") -> str:
    """A task's user registers, and its calls in the kernel and in its program."""
    task = find_task(pid)
    parts = [headline(task), place_of(task)]
    if task.state == "zombie":
        return "\n".join(parts)
    parts.append(ring_3_lines(task))
    with PROGRAMS.of(task):
        parts.append(new_task_line(task) + backtrace(task))
    return "\n".join(filter(None, parts))


def headline(task: Task) -> str:
    """Who it is."""
    path = path_of(task)
    words = f"{task.title}, {task.state}, parent {task.parent}"
    return words + (f", runs {path}" if path else ", a thread of the kernel" * (not task.space))


def ring_3_lines(task: Task) -> str:
    """Its registers in ring 3, if it has been there."""
    frame = task.user_frame()
    if frame is not None:
        return "Registers in ring 3:\n" + "\n".join(register_lines(frame))
    if task.is_current and task.space and in_ring_3():
        return "The processor is in ring 3: info registers."
    return ""


def new_task_line(task: Task) -> str:
    """What there is to say before the calls."""
    if task.is_new:
        return "It has not run yet. It will begin with:\n"
    return "Calls, the innermost first:\n"


@command("in-task", "PID COMMAND...")
def in_task(pid: str, *words: str) -> str:
    """Another command (bt full, info locals, p, x) with the registers and the memory of a task."""
    if not words or words[0].partition("/")[0] not in LOOKS:
        raise Refusal(f"one of {', '.join(LOOKS)} may follow")
    task = find_task(pid)
    with PROGRAMS.of(task), seen_as(task, registers_of(task)), no_calls():
        return quiet(" ".join(words))


@contextmanager
def no_calls() -> Iterator[None]:
    """An expression may not call a function: that would let the machine run."""
    with suppress(gdb.error):  # new in gdb 10
        quiet("set may-call-functions off")
    try:
        yield
    finally:
        with suppress(gdb.error):
            quiet("set may-call-functions on")

"""The kernel's tasks, read out of its memory: which there are, and where each of them is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import gdb

from labs.tools.debugging.gdb.commands import Refusal, number, variable
from labs.tools.debugging.gdb.kernel_data import (
    KERNEL_BASE,
    WORD,
    Walk,
    container,
    enumerator,
    has_member,
    optional,
    pointer,
    size_of,
    structure,
    text,
    walk_links,
    walk_ring,
    words_from,
)
from labs.tools.debugging.gdb.processor import Processor, symbol_at
from labs.tools.debugging.gdb.unwinding import trap_frame_at

TASKS_AT_MOST = 512  # twice TASK_LIMIT
FRAMES_AT_MOST = 64
STACK_BYTES = 8192  # mm/kernel_stack.h
IDLE = 0
USER_CODE = 0x1B  # kernel/cpu/selectors.h
SWITCH_FRAME = ("edi", "esi", "ebx", "ebp", "eip")  # kernel/task/switch.h
FRAME_EIP = 14 * WORD  # offset in struct trap_frame
TRAP = "trap_common"
NEW_TASK = ("thread_begin", "program_begin")


class Call(NamedTuple):
    """A function on a task's kernel stack: its name and its file."""

    name: str
    file: str


@dataclass(frozen=True)
class Task:
    """A struct task at an address."""

    address: int

    @cached_property
    def value(self) -> gdb.Value:
        """The structure."""
        return structure("task", self.address)

    @property
    def pid(self) -> int:
        """Its number; 0 is the idle task."""
        return int(self.value["pid"])

    @property
    def name(self) -> str:
        """Of the program, or of the thread of the kernel."""
        return text(self.value["name"])

    @property
    def title(self) -> str:
        """How it is called in sentences."""
        return f"task {self.pid} ({self.name})"

    @property
    def is_current(self) -> bool:
        """Whether the processor works for it."""
        return current_address() == self.address

    @property
    def parent(self) -> int:
        """The parent's pid, or 0."""
        parent = pointer(self.process["parent"]) if self.process is not None else 0
        task = pointer(structure("process", parent)["task"]) if parent else 0
        return int(structure("task", task)["pid"]) if task else 0

    @cached_property
    def process(self) -> gdb.Value | None:
        """Its struct process; None for a kernel thread."""
        address = pointer(self.value["process"])
        return structure("process", address) if address else None

    @property
    def files(self) -> int:
        """The address of its struct files; 0 for a kernel thread, and after its end."""
        return pointer(self.process["files"]) if self.process is not None else 0

    @property
    def space(self) -> int:
        """The address of its struct space; 0 for a thread of the kernel, and after its end."""
        return pointer(self.value["space"])

    @property
    def state(self) -> str:
        """What it does, in a word."""
        state = enumerator(self.value["life"], "TASK_")
        return "running" if state == "ready" and self.is_current else state

    @property
    def stack(self) -> range:
        """Its stack in the kernel; what there is of the boot stack for the idle task; else none."""
        bottom = pointer(self.value["kernel_stack"])
        if not bottom and self.pid == IDLE:
            bottom = pointer(self.value["esp"])
        return range(bottom, bottom + STACK_BYTES) if bottom else range(0)

    @property
    def saved_esp(self) -> int:
        """Where switch_to has left its registers; 0 when it has not, or in no stack of the task."""
        esp = pointer(self.value["esp"])
        return esp if esp in self.stack and not self.is_current else 0

    @property
    def is_new(self) -> bool:
        """Whether it has never had the processor."""
        words = words_from(self.saved_esp, len(SWITCH_FRAME)) if self.saved_esp else []
        return bool(words) and symbol_at(words[-1]) in NEW_TASK

    def saved_registers(self) -> dict[str, int]:
        """What it will go on with in the kernel: struct switch_frame. Raises Refusal."""
        words = words_from(self.saved_esp, len(SWITCH_FRAME)) if self.saved_esp else []
        if not words:
            raise Refusal(f"{self.title} has no registers on its stack: its esp is damaged")
        esp = self.saved_esp + len(words) * WORD
        return dict(zip(SWITCH_FRAME, words, strict=True)) | {"esp": esp}

    def user_frame(self) -> gdb.Value | None:
        """The struct trap_frame with its user registers; None while it has none: a thread of
        the kernel, or a task whose registers the processor holds."""
        if not self.space or (self.is_current and in_ring_3()):
            return None
        address = pointer(self.value["frame"]) or entry_frame()
        try:
            frame = trap_frame_at(address)
            return frame if int(frame["cs"]) & 0xFFFF == USER_CODE else None
        except gdb.MemoryError:
            return None

    def calls(self) -> list[Call]:
        """The functions on its kernel stack from the innermost on, by frame pointers."""
        if self.is_current:
            return calls_of_processor()
        if not self.saved_esp:
            return []
        registers = self.saved_registers()
        return calls_from(registers["eip"], registers["ebp"], self.stack)


def in_ring_3() -> bool:
    """Whether the processor runs a program."""
    return Processor().segments["CS"].selector & 3 == 3


def entry_frame() -> int:
    """Where the trap frame begins that the last entry from user mode has made: below the stack
    pointer in the task state. 0 when the stack is above it: then the kernel has left that trap."""
    state = optional("kernel_task")
    if state is None:
        return 0
    start = int(state["state"]["esp0"]) - size_of("trap_frame")
    return start if Processor().registers["ESP"] <= start else 0


# ---- which there are ----------------------------------------------------------------------------


def current_address() -> int:
    """Where the current task is; 0 before there are tasks. Raises Refusal."""
    return pointer(variable("current"))


def current_task() -> Task:
    """The task that the processor works for. Raises Refusal."""
    address = current_address()
    if not address:
        raise Refusal("there are no tasks yet")
    return Task(address)


def all_tasks() -> tuple[list[Task], str]:
    """Every task, by age, the idle task last; and what is wrong with their list. Raises Refusal."""
    current_task()
    single = optional("task", "kernel/task/task_single.c")
    if single is not None:
        return [Task(int(single.address))], ""
    found = walk_ring(variable("all_tasks", "kernel/task/task.c"), TASKS_AT_MOST)
    tasks = [Task(container(link, "task", "in_all")) for link in found.places]
    idle = optional("idle", "kernel/task/sched.c")
    return tasks + ([Task(int(idle.address))] if idle is not None else []), found.damage


def find_task(pid: str) -> Task:
    """The task of a pid; "" means the current one. Raises Refusal."""
    if not pid:
        return current_task()
    wanted = number(pid)
    tasks, damage = all_tasks()
    for task in [*tasks, current_task()]:
        if task.pid == wanted:
            return task
    raise Refusal(f"there is no task {wanted}" + (f" ({damage})" if damage else ""))


def names_by_pid() -> dict[int, str]:
    """The names of the tasks that are there now."""
    return {task.pid: task.name for task in all_tasks()[0]}


def queued_tasks(head: gdb.Value) -> tuple[list[Task], str]:
    """The tasks in a queue of the scheduler, and what is wrong with it."""
    found = walk_ring(head, TASKS_AT_MOST)
    return [Task(container(link, "task", "schedule", "in_queue")) for link in found.places], (
        found.damage
    )


def held_mutexes(task: Task) -> Walk:
    """The mutexes that a task holds."""
    if not has_member("task", "held") or not pointer(task.value["held"]):
        return Walk([])
    return walk_links(pointer(task.value["held"]), "mutex", "next_held", TASKS_AT_MOST)


# ---- where they are -----------------------------------------------------------------------------


def function_at(pc: int) -> tuple[str, str]:
    """The function that an address is in, not one that is inlined there, and its file."""
    block = gdb.block_for_pc(pc)
    found = None
    while block is not None and not block.is_static and not block.is_global:
        found = block.function or found
        block = block.superblock
    if found is not None:
        return found.name, found.symtab.filename
    return re.split(r"[+.]", symbol_at(pc) or f"{pc:#010x}")[0], ""  # a label is part of a function


def call_at(pc: int, is_return: bool = True) -> Call:
    """The function of an address; one to return to belongs to the call before it."""
    return Call(*function_at(pc - is_return))


def calls_from(eip: int, ebp: int, stack: range) -> list[Call]:
    """Follows the chain of frame pointers upwards in a stack; a trap in between is passed."""
    calls = [call_at(eip)]
    while len(calls) < FRAMES_AT_MOST and ebp in stack and ebp % WORD == 0:
        older, pc, argument = words_from(ebp, 3) or (0, 0, 0)
        if pc < KERNEL_BASE:
            break
        calls.append(call_at(pc))
        if calls[-1].name == TRAP:
            calls += interrupted(argument)
        if older <= ebp:
            break
        ebp = older
    return calls


def interrupted(frame: int) -> list[Call]:
    """The function of the kernel that a trap has interrupted."""
    eip, cs = words_from(frame + FRAME_EIP, 2) or (0, 3)
    return [] if cs & 3 else [call_at(eip, is_return=False)]


def calls_of_processor() -> list[Call]:
    """The functions of the kernel that the processor is in, as gdb knows them."""
    calls: list[Call] = []
    frame = gdb.newest_frame()
    while frame is not None and len(calls) < FRAMES_AT_MOST:
        pc = frame.pc()
        if pc >= KERNEL_BASE and frame.type() == gdb.NORMAL_FRAME:
            calls.append(call_at(pc, is_return=bool(calls)))
        frame = frame.older()
    return calls

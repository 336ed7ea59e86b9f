"""Commands about what a task has: its memory, its open files, its signals."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from itertools import groupby

import gdb

from labs.tools.debugging.gdb.commands import Refusal, command, table
from labs.tools.debugging.gdb.kernel_data import KERNEL_BASE, has_member, noted, pointer, structure
from labs.tools.debugging.gdb.machine_commands import CR4_LARGE_PAGES, PAGE, mapping_rows
from labs.tools.debugging.gdb.open_files import (
    Entry,
    describe,
    kind_of,
    open_files,
    path_of_directory,
)
from labs.tools.debugging.gdb.processor import Processor, symbol_at
from labs.tools.debugging.gdb.programs import PROGRAMS
from labs.tools.debugging.gdb.tasks import Task, find_task
from labs.tools.debugging.gdb.views import directory_of

SPACE_START = 0x08000000  # mm/space.h

# Linux's numbers on the i386: asm/fcntl.h and asm/signal.h.
ACCESS = {0: "r", 1: "w", 2: "rw"}
FILE_FLAGS = {0o2000: "append", 0o4000: "non-blocking", 0o200000: "directory"}
ACTION_FLAGS = {
    0x1: "no SIGCHLD when a child stops",
    0x2: "no zombies",
    0x4: "information",
    0x08000000: "other stack",
    0x10000000: "restart",
    0x40000000: "not blocked meanwhile",
    0x80000000: "once",
}
SIGNALS = 64
FIRST_OF_REAL_TIME = 32
DEFAULT, IGNORE = 0, 1


# ---- memory -------------------------------------------------------------------------------------


@command("space", "[PID]")
def space(pid: str = "") -> str:
    """What a task has mapped below the kernel: what it asked for, and what the processor finds."""
    task = find_task(pid)
    directory = directory_of(task)
    rows = [row for row in all_rows(directory) if int(str(row[0])[:10], 16) < KERNEL_BASE]
    heads = ("linear", "physical", "KiB", "pages", "who, how")
    parts = [f"{task.title}: space at {task.space:#010x}"]
    if has_member("space", "mapped"):
        parts.append(table(("linear", "KiB", "what"), list(slot_rows(task))))
    parts.append(f"page directory at {directory:#010x}, below the kernel:")
    parts.append(table(heads, rows) if rows else "nothing")
    return "\n".join(parts)


def all_rows(directory: int) -> Iterator[tuple[object, ...]]:
    """What a page directory maps, as rows of a table."""
    return mapping_rows(directory, bool(Processor().registers["CR4"] & CR4_LARGE_PAGES))


def slot_rows(task: Task) -> Iterator[tuple[object, ...]]:
    """The runs of pages that the program has asked for (mm/space_slot.c)."""
    value = structure("space", task.space)
    bits = value["mapped"]
    words = [int(bits[index]) for index in range(bits.type.range()[1] + 1)]
    start, end = int(value["heap_start"]), int(value["heap_end"])
    pages = range(len(words) * 32)

    def kind(page: int) -> str:
        if not words[page // 32] >> page % 32 & 1:
            return ""
        address = SPACE_START + page * PAGE
        if address < start:
            return "program"
        return f"heap, to {end:#010x}" if address < end else "mapped"

    for what, group in groupby(pages, key=kind):
        run = list(group)
        if what:
            first, last = SPACE_START + run[0] * PAGE, SPACE_START + (run[-1] + 1) * PAGE - 1
            words_shown = "stack" if run[-1] == pages[-1] else what
            yield f"{first:#010x} - {last:#010x}", len(run) * PAGE // 1024, words_shown


# ---- files --------------------------------------------------------------------------------------


@command("files", "[PID]")
def files(pid: str = "") -> str:
    """A task's open files: descriptor, access, kind, where it reads or writes next, and which."""
    task = find_task(pid)
    address = task.files
    if not address:
        raise Refusal(f"{task.title} has no files")
    found, damage = open_files(task)
    directory = pointer(structure("files", address)["directory"])
    heads = ("fd", "how", "kind", "at", "uses", "which", "")
    shown = table(heads, [file_row(entry) for entry in found]) if found else "none is open"
    where = path_of_directory(directory) or "?"
    return noted(f"{task.title}, in the directory {where}\n{shown}", damage)


def file_row(entry: Entry) -> tuple[object, ...]:
    """A descriptor, as cells of a table."""
    file = entry.file
    flags = int(file["flags"])
    words = [word for bit, word in FILE_FLAGS.items() if flags & bit]
    words += ["closed by exec"] if entry.closes else []
    return (
        entry.descriptor,
        ACCESS.get(flags & 3, "?"),
        kind_of(file),
        int(file["offset"]),
        int(file["references"]),
        describe(file),
        ", ".join(words),
    )


# ---- signals ------------------------------------------------------------------------------------


@command("signals", "[PID]")
def signals(pid: str = "") -> str:
    """A task's signals: which wait, which are blocked, and what the others do."""
    task = find_task(pid)
    if task.process is None:
        raise Refusal(f"{task.title} is a kernel thread: it gets no signals")
    value = task.process["signals"]
    parts = [
        f"{task.title}",
        f"pending: {signal_set(int(value['pending']))}",
        f"blocked: {signal_set(int(value['blocked']))}",
    ]
    if int(value["is_suspended"]):
        parts.append(f"in sigsuspend; blocked afterwards: {signal_set(int(value['saved']))}")
    if int(value["stack"]["size"]):
        stack = value["stack"]
        parts.append(f"other stack: {int(stack['size'])} bytes at {int(stack['address']):#010x}")
    with PROGRAMS.of(task):
        rows = list(action_rows(value["actions"]))
    heads = ("signal", "what it does", "flags", "blocks meanwhile")
    parts.append(table(heads, rows) if rows else "All do what they do by default.")
    return "\n".join(parts)


def action_rows(actions: gdb.Value) -> Iterator[tuple[object, ...]]:
    """The signals whose action is not the default one."""
    for number in range(1, SIGNALS + 1):
        action = actions[number - 1]
        handler = int(action["handler"])
        if handler == DEFAULT:
            continue
        flags = int(action["flags"])
        words = ", ".join(word for bit, word in ACTION_FLAGS.items() if flags & bit)
        does = "is ignored" if handler == IGNORE else handler_words(handler)
        yield signal_name(number), does, words, signal_set(int(action["mask"]))


def handler_words(address: int) -> str:
    """A handler in the program."""
    name = symbol_at(address)
    return f"{address:#010x} {name}" if name else f"{address:#010x}"


def signal_set(bits: int) -> str:
    """The signals of a set: bit n - 1 is signal n."""
    names = [signal_name(bit + 1) for bit in range(SIGNALS) if bits >> bit & 1]
    if len(names) > SIGNALS // 2:
        missing = [signal_name(bit + 1) for bit in range(SIGNALS) if not bits >> bit & 1]
        return "all" + (f" but {', '.join(missing)}" if missing else "")
    return ", ".join(names) or "none"


def signal_name(number: int) -> str:
    """Its name on Linux for x86."""
    if number < FIRST_OF_REAL_TIME:
        try:
            return signal.Signals(number).name
        except ValueError:
            return f"signal {number}"
    return f"SIGRT{number - FIRST_OF_REAL_TIME}"

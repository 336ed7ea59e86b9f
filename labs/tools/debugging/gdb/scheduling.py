"""What the scheduler knows of tasks (kernel/task/sched.h), in words."""

from __future__ import annotations

from typing import NamedTuple

import gdb

from labs.tools.debugging.gdb.kernel_data import optional, pointer, text_at
from labs.tools.debugging.gdb.tasks import Task

NOBODY = 127  # PRIORITY_NONE


class Class(NamedTuple):
    """A scheduling class: its file, the variable with its queue or queues, and the heading of what
    it knows of a task."""

    file: str
    queue: str
    heading: str


CLASSES = {
    "rr": Class("kernel/task/sched_round_robin.c", "queue", "rr: ticks left"),
    "mlfq": Class("kernel/task/sched_mlfq.c", "queues", "mlfq: level, ms left there"),
    "fair": Class("kernel/task/sched_fair.c", "queue", "fair: ms of virtual time ahead"),
}


def class_name() -> str:
    """Which class is in use; "" where there is no scheduler."""
    chosen = optional("sched_class")
    return text_at(pointer(chosen.dereference()["name"])) if chosen is not None else ""


def class_heading() -> str:
    """What a class's column shows."""
    name = class_name()
    return CLASSES[name].heading if name in CLASSES else name


def class_cell(task: Task) -> str:
    """What the class in use knows of a task; niceness and loans where there are any."""
    name = class_name()
    if not name or task.pid == 0:
        return ""
    schedule = task.value["schedule"]
    cells = {"rr": quantum, "mlfq": level, "fair": ahead}
    words = [cells[name](schedule)] if name in cells else []
    if int(schedule["nice"]):
        words.append(f"nice {int(schedule['nice'])}")
    if int(schedule["donated"]) != NOBODY:
        words.append(f"lent priority {int(schedule['donated'])}")
    return ", ".join(words)


def quantum(schedule: gdb.Value) -> str:
    """Round robin: ticks."""
    return str(int(schedule["quantum"]))


def level(schedule: gdb.Value) -> str:
    """Feedback: the level, and the processor time until it sinks."""
    return f"{int(schedule['level'])}, {in_ms(int(schedule['left']))}"


def ahead(schedule: gdb.Value) -> str:
    """Fair: how much more it has had than the one with the least; less than nothing for one that
    has slept. The clock wraps around."""
    minimum = optional("minimum", CLASSES["fair"].file)
    if minimum is None:
        return "?"
    difference = (int(schedule["virtual_time"]) - int(minimum)) % (1 << 64)
    return in_ms(difference - (difference >> 63 << 64))


def in_ms(stamps: int) -> str:
    """Time stamps in milliseconds, to the microsecond."""
    khz = stamps_per_ms()
    return f"{stamps / khz:.3f}" if khz else "?"


def stamps_per_ms() -> int:
    """How fast the time-stamp counter runs; 0 when that is not known yet."""
    khz = optional("khz", "kernel/task/time.c")
    return int(khz) if khz is not None else 0


def milliseconds(task: Task) -> object:
    """Processor time since the task began; "" where it is not counted."""
    khz = stamps_per_ms()
    if not khz or not class_name():
        return ""
    return int(task.value["schedule"]["total"]) // khz

"""Commands about who gets the processor: the queue of those who are ready, and the last changes."""

from __future__ import annotations

from collections.abc import Iterator

import gdb

from labs.tools.debugging.gdb.commands import Refusal, command, count, table, variable
from labs.tools.debugging.gdb.kernel_data import constant, noted, optional
from labs.tools.debugging.gdb.places import place_of
from labs.tools.debugging.gdb.scheduling import (
    CLASSES,
    class_cell,
    class_heading,
    class_name,
    in_ms,
)
from labs.tools.debugging.gdb.tasks import current_task, names_by_pid, queued_tasks


@command("runqueue")
def runqueue() -> str:
    """Who waits for the processor, in the order in which they get it, class by class."""
    name = class_name()
    if not name:
        raise Refusal("this kernel has no scheduler: it comes in lesson 4")
    parts = [f"{current_task().title} runs; turns of {int(variable('sched_quantum'))} ticks"]
    total = 0
    for each in sorted(CLASSES, key=lambda other: other != name):
        shown, length = class_queue(each, is_used=each == name)
        parts.append(shown)
        total += length
    counted = optional("queued", "kernel/task/sched.c")
    if counted is not None and int(counted) != total:
        parts.append(f"But the scheduler has counted {int(counted)} (queued in sched.c).")
    return "\n".join(parts)


def class_queue(name: str, is_used: bool) -> tuple[str, int]:
    """The tasks in a class's queue, and how many there are."""
    heads = list(queue_heads(name))
    if not heads:
        return f"{name}: this kernel does not have its queue", 0
    rows: list[tuple[object, ...]] = []
    damages = []
    for level, head in enumerate(heads):
        tasks, damage = queued_tasks(head)
        damages += [f"queue {level}: {damage}"] if damage else []
        for task in tasks:
            rows.append((level, task.pid, task.name, class_cell(task), place_of(task)))
    title = f"{name} ({'in use' if is_used else 'not in use'}): "
    if not rows:
        return noted(title + "nobody waits", "\n".join(damages)), 0
    text = table(("queue", "pid", "name", class_heading(), "where"), rows)
    return noted(f"{title}{len(rows)} waiting\n{text}", "\n".join(damages)), len(rows)


def queue_heads(name: str) -> Iterator[gdb.Value]:
    """The queues of a class, the highest priority first."""
    queue = optional(CLASSES[name].queue, CLASSES[name].file)
    if queue is None:
        return
    if queue.type.code != gdb.TYPE_CODE_ARRAY:
        yield queue
        return
    for index in range(queue.type.range()[1] + 1):
        yield queue[index]


@command("sched-trace", "[COUNT]")
def sched_trace(wanted: str = "20") -> str:
    """The last changes of tasks, oldest first: who gave up the processor, to whom, and why."""
    trace = variable("sched_trace")
    total, ring = int(trace["total"]), trace["ring"]
    size = ring.type.range()[1] + 1
    numbers = range(max(0, total - min(count(wanted), size)), total)
    names = names_by_pid()
    rows: list[tuple[object, ...]] = []
    before = 0
    for index in numbers:
        record = ring[index % size]
        stamp = int(record["stamp"])
        rows.append(change_row(index, record, names, in_ms(stamp - before) if before else ""))
        before = stamp
    heads = ("number", "ms since", "pid", "name", "why", "to", "name")
    shown = [table(heads, rows)] if rows else []
    return "\n".join([*shown, f"{total} changes since the boot"])


def change_row(
    index: int, record: gdb.Value, names: dict[int, str], since: str
) -> tuple[object, ...]:
    """One record of the ring, as cells of a table."""
    before, after = int(record["from"]), int(record["to"])
    why = constant("sched_reason", int(record["reason"])).removeprefix("SCHED_").lower()
    gone = "(ended)"
    return index, since, before, names.get(before, gone), why, after, names.get(after, gone)

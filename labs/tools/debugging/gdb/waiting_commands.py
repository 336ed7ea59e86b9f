"""Commands about tasks that wait for one another: wait queues, and locks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import gdb

from labs.tools.debugging.gdb.commands import command, table
from labs.tools.debugging.gdb.kernel_data import (
    KERNEL_BASE,
    WORD,
    Walk,
    container,
    has_member,
    kernel_type,
    noted,
    optional,
    place,
    pointer,
    size_of,
    structure,
    walk_links,
    walk_ring,
    word_at,
    words_from,
)
from labs.tools.debugging.gdb.machine_commands import PAGE
from labs.tools.debugging.gdb.open_files import is_pipe, open_files
from labs.tools.debugging.gdb.places import in_few_words, is_own_business, place_of
from labs.tools.debugging.gdb.processor import symbol_at
from labs.tools.debugging.gdb.tasks import Task, all_tasks, held_mutexes

WAITERS_AT_MOST = 4096
CHAIN_AT_MOST = 64
NANOSECONDS = 1_000_000_000


class Place(NamedTuple):
    """A task's place in a wait queue: a struct waiter, and the queue's address."""

    task: Task
    waiter: int
    queue: int
    is_woken: bool


@command("waiting")
def waiting() -> str:
    """Wait queues and who waits in them, in order; and those who wait for a time only."""
    tasks, damage = all_tasks()
    rows: list[tuple[object, ...]] = []
    for task in tasks:
        if task.is_current or task.state not in ("sleeping", "blocked"):
            continue
        queues = [queue_cells(found, tasks) for found in places_of(task)] or [("no queue", "")]
        until = deadline_of(task)
        for name, woken in queues:
            rows.append((name, task.pid, task.name, task.state, woken, until, place_of(task)))
    if not rows:
        return noted("Nobody waits.", damage)
    heads = ("queue", "pid", "name", "how", "woken", "until (s)", "where")
    return noted(table(heads, sorted(rows, key=lambda row: str(row[0]))), damage)


def queue_cells(found: Place, tasks: list[Task]) -> tuple[str, str]:
    """A queue's name, with what is wrong with it; and whether the waiter has been woken."""
    chain = waiters_in(found.queue)
    words = queue_name(found.queue, tasks)
    if chain.damage:
        words += f" ({chain.damage})"
    elif len(chain.places) > 1:
        words += f", place {chain.places.index(found.waiter) + 1} of {len(chain.places)}"
    return words, "yes" if found.is_woken else "no"


def waiters_in(queue: int) -> Walk:
    """The struct waiters of a queue, in the order in which they came."""
    first = pointer(structure("wait_queue", queue)["first"])
    return walk_links(first, "waiter", "next", WAITERS_AT_MOST)


# ---- where a task's places are ------------------------------------------------------------------


def places_of(task: Task) -> list[Place]:
    """A task's places in wait queues. They are on its stack or, those of a long poll, in a page
    that the stack points to; a word that looks like one must be in its queue's list, too."""
    if not task.saved_esp:
        return []
    stack = range(task.saved_esp, task.stack.stop)
    words = words_from(stack.start, len(stack) // WORD)
    on_stack = [stack.start + index * WORD for index, word in enumerate(words)]
    found = list(real_places(task, on_stack, words))
    return found or list(places_in_page(task, words))


def real_places(task: Task, addresses: list[int], words: list[int]) -> Iterator[Place]:
    """Of these addresses and what is there, those that are a struct waiter of the task in a
    queue."""
    for address, word in zip(addresses, words, strict=True):
        if word == task.address and (found := place_at(task, address)):
            yield found


def place_at(task: Task, address: int) -> Place | None:
    """The struct waiter at an address, if that is one: the queue's list must lead to it."""
    try:
        waiter = structure("waiter", address)
        queue = pointer(waiter["queue"])
        if queue < KERNEL_BASE or address not in waiters_in(queue).places:
            return None
        return Place(task, address, queue, bool(int(waiter["is_woken"])))
    except gdb.MemoryError:
        return None


def places_in_page(task: Task, words: list[int]) -> Iterator[Place]:
    """The array of struct waiters that one of these words points to."""
    size = size_of("waiter")
    for start in dict.fromkeys(word for word in words if is_page(task, word)):
        address = start
        while address - start < WAITERS_AT_MOST * size and first_word(address) == task.address:
            found = place_at(task, address)
            if found is None:
                break
            yield found
            address += size


def is_page(task: Task, word: int) -> bool:
    """Whether a word may point to a page of the kernel's memory outside of the task's stack."""
    return word >= KERNEL_BASE and word % PAGE == 0 and word not in task.stack


def first_word(address: int) -> int:
    """The word in memory; 0 where there is none."""
    try:
        return word_at(address)
    except gdb.MemoryError:
        return 0


# ---- what a queue belongs to --------------------------------------------------------------------


def queue_name(queue: int, tasks: list[Task]) -> str:
    """A wait queue in words: its symbol, or what it is a part of."""
    if name := symbol_at(queue):
        return member_name(queue, name.partition("+")[0]) or name
    for task in tasks:
        process = task.process
        if process is not None and int(process["children"].address) == queue:
            return f"children of {task.title}"
        if queue in task.stack:
            return f"{queue:#010x}, on the stack of {task.title}"
    if name := pipe_queue(queue, tasks):
        return name
    return f"{queue:#010x}"


def member_name(queue: int, variable: str) -> str:
    """The member of a variable of the kernel's that the queue is; "" if it is none."""
    symbol = gdb.lookup_static_symbol(variable) or gdb.lookup_global_symbol(variable)
    if symbol is None or symbol.type.strip_typedefs().code != gdb.TYPE_CODE_STRUCT:
        return ""
    value = symbol.value()
    for field in symbol.type.fields():
        if int(value[field].address) == queue and str(field.type) == "struct wait_queue":
            return f"{variable}.{field.name}"
    return ""


def pipe_queue(queue: int, tasks: list[Task]) -> str:
    """The name of a pipe's queue, if it is one: of those that are open."""
    for pipe in {pointer(file["private"]) for task in tasks for file in pipes_of(task)}:
        for member in ("data", "room"):
            value = structure("pipe", pipe)[member]
            if int(value.address) == queue:
                return f"{member} of the pipe {pipe:#010x}"
    return ""


def pipes_of(task: Task) -> Iterator[gdb.Value]:
    """A task's open files that are pipes."""
    return (entry.file for entry in open_files(task)[0] if is_pipe(entry.file))


def deadline_of(task: Task) -> str:
    """When its timer wakes a task, in seconds since the boot; "" without one."""
    timers = optional("timers", "kernel/task/timer.c")
    if timers is None or not task.saved_esp:
        return ""
    for link in walk_ring(timers, WAITERS_AT_MOST).places:
        timer = container(link, "timer", "in_order")
        if timer in task.stack:
            deadline = int(structure("timer", timer)["deadline"])
            return f"{deadline / NANOSECONDS:.6f}"
    return ""


# ---- locks --------------------------------------------------------------------------------------


@command("locks")
def locks() -> str:
    """Mutexes that somebody holds or waits for: the owner, who waits; and circles of tasks that
    wait for each other."""
    kernel_type("mutex")
    tasks, damage = all_tasks()
    owners, damages = mutexes(tasks)
    rows = [mutex_row(mutex, tasks) for mutex in sorted(owners)]
    notes = [damage, *damages, *circles(tasks)]
    heads = ("mutex", "owner", "who waits for it", "what the owner does")
    shown = table(heads, rows) if rows else "No mutex is held, and nobody waits for one."
    return "\n".join([shown, *filter(None, notes)])


def mutexes(tasks: list[Task]) -> tuple[set[int], list[str]]:
    """The mutexes that are held or waited for, by address, and what is wrong with the lists."""
    found: set[int] = set()
    damages = []
    for task in tasks:
        held = held_mutexes(task)
        found |= {*held.places, waited_for(task)}
        damages += [f"held by {task.title}: {held.damage}"] if held.damage else []
    return found - {0}, damages


def waited_for(task: Task) -> int:
    """The mutex that a task waits for, or 0."""
    return pointer(task.value["waiting"]) if has_member("task", "waiting") else 0


def mutex_row(mutex: int, tasks: list[Task]) -> tuple[object, ...]:
    """A mutex, as cells of a table."""
    owner = owner_of(mutex)
    title = next((task.title for task in tasks if task.address == owner), None)
    waiting_here = [task.title for task in tasks if waited_for(task) == mutex]
    where = next((business(task) for task in tasks if task.address == owner), "")
    owner_words = title or (f"? ({owner:#010x} is not a task)" if owner else "nobody")
    return place(mutex), owner_words, ", ".join(waiting_here), where


def owner_of(mutex: int) -> int:
    """The address of the task that holds a mutex; 0 when it is free, or not to be read."""
    try:
        return pointer(structure("mutex", mutex)["owner"])
    except gdb.MemoryError:
        return 0


def business(task: Task) -> str:
    """What the owner does now."""
    return in_few_words([call for call in task.calls() if is_own_business(call)])


def circles(tasks: list[Task]) -> Iterator[str]:
    """A sentence for each circle of tasks that wait for each other's mutexes."""
    told: set[int] = set()
    for task in tasks:
        chain = chain_of(task, tasks)
        if len(chain) > 1 and chain[-1] == task and task.address not in told:
            told |= {each.address for each in chain}
            yield f"Deadlock: {' waits for '.join(each.title for each in chain)}."


def chain_of(task: Task, tasks: list[Task]) -> list[Task]:
    """A task, the owner of the mutex that it waits for, and so on; up to itself again."""
    by_address = {each.address: each for each in tasks}
    chain = [task]
    while len(chain) < CHAIN_AT_MOST and (mutex := waited_for(chain[-1])):
        owner = by_address.get(owner_of(mutex))
        if owner is None:
            break
        chain.append(owner)
        if owner == task or owner in chain[:-1]:
            break
    return chain

"""What students write is what runs: a shell on lesson 6's kernel, with all that the breadth adds,
comes through the functions of the lessons. None has another one in its place; what a shell does not
reach is listed with a reason."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from labs.tools.course.exercises import Exercise, load, regions
from labs.tools.course.source_lists import linked
from labs.tools.debugging.host_replay import functions_of
from tests.support.gdb_guest import guest_probe, shell
from tests.support.gdb_session import ROOT

pytestmark = pytest.mark.slow

LABEL = re.compile(r"^(\w+):", re.MULTILINE)

# A pipe, a subshell, a redirection, children in the background, and a sleep.
SCRIPT = """
echo one | cat > /tmp/x
(cd /proc; ls | wc -l)
for i in 1 2 3; do cat /tmp/x & done; wait
sleep 0.1
"""

# All functions of a file, or one.
NOT_REACHED = {
    "kernel/report/backtrace.c": "a panic's",
    "kernel/report/symbols.c": "a panic's",
    "kernel/syscall/syscall_trace.c": "calls are not traced",
    "kernel/task/lock.c": "no two tasks want one lock",
    "kernel/task/sched_fair.c": "another policy was chosen",
    "kernel/task/sched_mlfq.c": "another policy was chosen",
    "kernel/task/semaphore.c": "drives have some",
    "mm/audit.c": "nobody asked for an audit",
    "mm/kmalloc_debug.c": "the allocator that checks was not chosen",
    "mm/page_cache.c": "of files on drives",
    "mm/second_chance.c": "memory is not short",
    "kernel/cpu/descriptor.c:descriptor_unpack": "a command shows descriptors",
    "kernel/cpu/task_state.c:task_state_allow_port": "no program uses a port",
    "kernel/syscall/gate.c:syscall_find": "the gate has it inside",
    "kernel/syscall/shared_page.asm": "programs see it at another address",
    "kernel/syscall/sysenter.c:sysenter_fix_up": "no bad stack comes",
    "kernel/syscall/sysenter_entry.asm:bad_stack": "no bad stack comes",
    "kernel/task/thread.c:kthread_exit": "no thread ends",
    "kernel/task/wait.c:msleep": "drives wait so",
    "kernel/task/wait.c:wait_join": "the functions that sleep have it inside",
    "kernel/task/wait.c:wait_leave": "the functions that sleep have it inside",
    "kernel/task/wait.c:wait_wake_one": "semaphores wake so",
    "mm/kmalloc.c:krealloc": "nothing grows so",
    "mm/kmalloc.c:size_plain": "nothing grows so",
    "mm/memory_map.c:memory_map_usable": "a command shows it",
    "mm/slab.c:slab_cache_destroy": "no cache ends",
    "mm/slab.c:slab_shrink": "memory is not short",
    "mm/user_copy.c:user_copy_fix_up": "all addresses are good",
}

# Each place is a breakpoint until it is reached. A function that is in its callers has none.
COUNT = """
said["reached"], points = [], {{}}
for name, place in json.loads({places!r}).items():
    point = gdb.Breakpoint(place, type=gdb.BP_HARDWARE_BREAKPOINT)
    if point.pending:
        point.delete()
    else:
        points[name] = point
while points:
    run("continue")
    hit = [name for name, point in points.items() if point.hit_count]
    if not hit:
        break
    for name in hit:
        points.pop(name).delete()
    said["reached"] += hit
said["left"] = list(points)
"""


def labels_of(exercise: Exercise) -> list[str]:
    """The labels of assembly that the exercise's blanks are behind, or have in them."""
    names = []
    for path in (path for path in exercise.files if path.endswith(".asm")):
        text = (ROOT / path).read_text()
        found = list(LABEL.finditer(text))
        for region in (each for each in regions(text) if each.exercise == exercise.id):
            before = [each for each in found if each.start() <= region.start][-1:]
            within = [each for each in found if region.start < each.start() < region.end]
            names += [f"{path}:{each[1]}" for each in before + within]
    return names


def places() -> dict[str, str]:
    """Each function that a student writes for lesson 6's kernel, and what gdb calls it."""
    own = set(linked(6, ROOT))
    names = [name for each in load() for name in (*functions_of(each.id), *labels_of(each))]
    return {
        name: name if ".c:" in name else f"*&{name.partition(':')[2]}"
        for name in names
        if name.partition(":")[0] in own
    }


def test_a_shell_runs_what_students_write(tmp_path: Path) -> None:
    """busybox's shell on lesson 6's kernel comes to all of these functions but a few."""
    every = places()
    reasons = set(NOT_REACHED)
    assert reasons <= {*every, *(name.partition(":")[0] for name in every)}
    wanted = {k: v for k, v in every.items() if not {k, k.partition(":")[0]} & reasons}
    said = guest_probe(tmp_path, COUNT.format(places=json.dumps(wanted)), 6, **shell(SCRIPT))
    assert said["left"] == [], "a shell does not come to what students write"
    assert len(said["reached"]) > 80

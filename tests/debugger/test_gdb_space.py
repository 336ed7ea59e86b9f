"""`make gdb`: the commands about virtual memory, on lesson 6's kernel."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support.gdb_guest import command, guest_probe, rows

PROBE = """
said["off"] = [run(each) for each in ("pte 0x7c00", "areas", "why 0")]
run("tbreak space_map")
run("continue")
run("tbreak space_fault")
run("continue")
said["first"] = int(gdb.parse_and_eval("address"))
said["empty"] = run("pte address"), run("why address")
run("finish")
at = said["first"]
said["there"] = run(f"pte {at}"), run(f"why {at}"), run(f"pte {at} current->pid")
run("tbreak copy_on_write")
run("continue")
at = said["copied"] = int(gdb.parse_and_eval("address"))
pid = int(gdb.parse_and_eval("current->pid"))
said["pid"] = pid
said["before"] = run(f"why {at}"), run(f"pte {at}")
said["tasks"] = run("tasks")
run("delete")
run("finish")
said["after"] = run(f"why {at}"), run(f"pte {at}")
said["areas"] = run("areas"), run(f"areas {pid}")
said["text"] = run("why 0x8049000")
said["null"] = run("why 0x10")
program = int(gdb.parse_and_eval("current->process->strings_end")) & -4096
said["grown"] = run(f"why {program - 0x10000}")
said["below"] = run(f"why {program - 0x900000}")
run("set var current->process->files->limits[3].soft = 0x100000")
said["limited"] = run(f"why {program - 0x180000}")
run("set var current->process->files->limits[3].soft = -1")
said["kernel"] = run("why &kmain"), run("pte &kmain"), run("why &current")
said["file"] = run("why 0x804f000")
said["heap"] = run("why current->space->heap_end - 1")
said["shared page"] = run("why 0xbffff000")
said["bad"] = {
    each: run(each)
    for each in (
        *("areas 999", "areas 0", "pte 0x100000000", "pte nosuch", "pte 0x8048000 999"),
        *("why", "why 1 2 3", "why *current", "why kmain", "why 8 0"),
    )
}
run("set var $size = current->space->size")
run("set var current->space->size = 1")
said["miscounted"] = run("areas")
run("set var current->space->size = $size")
run("set var $left = current->space->areas->left")
run("set var current->space->areas->left = current->space->areas")
said["circle"] = run("areas"), run("why 0x10")
run("set var current->space->areas->left = (struct tree_node *)0xfffff000")
said["nowhere"] = run("areas")
run("set var current->space->areas->left = $left")
run("set var $entry = current->space->directory[0x20]")
run("set var current->space->directory[0x20] = 0xfff00067")
said["no table"] = run("pte 0x8048000 current->pid")
run("set var current->space->directory[0x20] = $entry")
said["whole"] = run("areas")
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Before paging; the first fault; a copy on write of the shell's; bad input; and damage."""
    return guest_probe(tmp_path_factory.mktemp("probe"), PROBE, lesson=6, **command("hello | cat"))


def lines(answer: str) -> dict[str, str]:
    """What `why` says: of the area, the entry, and each kind of access."""
    return dict(line.split(": ", 1) for line in answer.splitlines()[1:] if ": " in line)


def test_before_paging(seen: dict[str, Any]) -> None:
    entry, *others = seen["off"]
    assert "paging is off: every address is a physical one" in entry
    assert all("the kernel does not run yet" in answer for answer in others)


def test_first_fault(seen: dict[str, Any]) -> None:
    """exec's own write to the page where the program's data ends: no entry, then a copy of its
    own."""
    entry, before = seen["empty"]
    assert "table[79] = 0x00000000: empty" in entry
    assert "no page is there for the processor" in entry
    assert re.search(r"rw-, private; /bin/sh, page \d+ on", lines(before)["area"])
    for who in ("user mode", "kernel"):
        assert "a copy of page 7 of the file is put there" in lines(before)[f"{who} writes"]
        assert "of the file is shown, read-only" in lines(before)[f"{who} reads"]
    entry, after, of_task = seen["there"]
    assert "table[79] = " in entry and "allocated by page_copy" in entry
    assert entry.splitlines()[1:] == of_task.splitlines()[1:]
    assert lines(after)["user mode writes"] == "no fault: the entry allows it"


def test_copy_on_write(seen: dict[str, Any]) -> None:
    """The same address before and after: another frame, which is the program's own."""
    before, after = (lines(seen[when][0]) for when in ("before", "after"))
    assert "read-only, frame" in before["entry"] and "2 references" in before["entry"]
    assert before["user mode reads"] == "no fault: the entry allows it"
    assert "the page has 2 references, so a copy takes its place" in before["user mode writes"]
    assert "writable, frame" in after["entry"] and "1 reference" in after["entry"]
    assert after["kernel writes"] == "no fault: the entry allows it"
    frames = [re.search(r"frame (0x\w+)", each["entry"])[1] for each in (before, after)]
    assert frames[0] != frames[1]


def test_areas(seen: dict[str, Any]) -> None:
    mine, of_pid = seen["areas"]
    assert mine == of_pid == seen["whole"]
    title, *rest = mine.splitlines()
    assert re.fullmatch(rf"task {seen['pid']} \(sh\): \d+ areas, \d+ pages are mapped", title)
    found = [line for line in rows("\n".join(rest)) if line[0].startswith("0x")]
    assert int(title.split()[3]) == len(found)
    starts, ends = ([int(line[cell], 16) for line in found] for cell in (0, 1))
    assert all(end <= start for end, start in zip(ends, starts[1:], strict=False))
    assert [int(line[2]) for line in found] == [
        (end - start) // 1024 for start, end in zip(starts, ends, strict=True)
    ]
    assert found[0][5] == "/bin/sh, page 0 on" and found[-1][5] == "the stack"
    assert "r-x" in mine and "The heap is 0x" in mine and "But" not in mine


def test_what_is_refused(seen: dict[str, Any]) -> None:
    text, null, grown, below = (lines(seen[each]) for each in ("text", "null", "grown", "below"))
    assert text["user mode writes"].endswith("(r-x) does not allow it: SIGSEGV (SEGV_ACCERR)")
    assert text["kernel writes"].endswith("(r-x) does not allow it: the call returns EFAULT")
    assert null["area"].startswith("none; the next one is ")
    assert null["user mode reads"].endswith("no area is there: SIGSEGV (SEGV_MAPERR)")
    assert null["kernel reads"].endswith("no area is there: the call returns EFAULT")
    assert "the stack grows down to 0x" in grown["user mode writes"]
    assert "a new page of zeros is put there, writable" in grown["user mode writes"]
    assert "the stack may not grow beyond 8192 KiB: SIGSEGV" in below["user mode reads"]
    assert "may not grow beyond 1024 KiB" in lines(seen["limited"])["user mode reads"]


def test_kernel_addresses(seen: dict[str, Any]) -> None:
    why, entry, data = seen["kernel"]
    assert "the same in every space; kmain" in lines(why)["area"]
    assert "SIGSEGV (SEGV_MAPERR)" in lines(why)["user mode reads"]
    assert "4 MiB" in entry and "table[" not in entry
    assert lines(data)["kernel writes"] == "no fault: the entry allows it"
    shared = lines(seen["shared page"])
    assert shared["user mode reads"] == "no fault: the entry allows it"
    assert "SIGSEGV" in shared["user mode writes"]


@pytest.mark.parametrize(
    ("typed", "cause"),
    [
        ("areas 999", "there is no task 999"),
        ("areas 0", "task 0 (idle) has no address space: it is a thread of the kernel"),
        ("pte 0x100000000", "0x100000000 is not an address: the machine's have 32 bits"),
        ("pte nosuch", 'No symbol "nosuch"'),
        ("pte 0x8048000 999", "there is no task 999"),
        ("why", "usage: why ADDRESS [PID]"),
        ("why 1 2 3", "usage: why ADDRESS [PID]"),
        ("why 8 0", "task 0 (idle) has no address space"),
        ("why *current", "*current is not an address: it is a struct task"),
    ],
)
def test_bad_input(seen: dict[str, Any], typed: str, cause: str) -> None:
    assert cause in seen["bad"][typed]
    assert "Error occurred" not in seen["bad"][typed]


def test_damage_shows(seen: dict[str, Any]) -> None:
    assert re.search(r"But the space counts 1 bytes, and the areas have \d+", seen["miscounted"])
    areas, why = seen["circle"]
    assert "the tree of areas is damaged: it goes on at 0x" in areas
    assert "the tree of areas is damaged" in why
    assert "there is no memory at 0xfffff000" in seen["nowhere"]
    assert "directory[32] is 0xfff00067, and there is no memory" in seen["no table"]

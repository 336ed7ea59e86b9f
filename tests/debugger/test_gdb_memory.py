"""`make gdb`: the commands about physical memory, on lesson 5's kernel."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support.gdb_guest import by_name, guest_probe, rows

HEADS = ["zone", *map(str, range(11)), "pages free", "reserve"]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Before there is a page array; one request for a page; one for an object; an overrun of it;
    and damage."""
    return guest_probe(
        tmp_path_factory.mktemp("probe"),
        """
        run("tbreak page_array_initialize")
        run("continue")
        said["too early"] = [run(each) for each in ("buddy", "page 0xc0200000")]
        run("tbreak buddy_take")
        run("continue")
        said["before"] = run("buddy")
        run("finish")
        said["after"] = run("buddy")
        said["page"] = run("page page_address($)"), run("who-owns (int)page_address($)")
        run("tbreak pool_alloc")
        run("continue")
        run("tbreak kmalloc_checked")
        run("continue")
        size = int(gdb.parse_and_eval("size"))
        run("finish")
        at = int(gdb.parse_and_eval("(unsigned)$eax"))
        said["size"], said["at"] = size, at
        said["object"] = run(f"who-owns {at + 5}"), run(f"page {at}")
        said["slab"] = run(f"who-owns {at & -4096}")
        said["reserved"] = run("page 0xc0000000"), run("who-owns &kmain")
        said["nowhere"] = run("page 0x8048000"), run("watch-redzone &kmain")
        said["watch"] = run(f"watch-redzone {at}")
        said["watchpoints"] = run("info breakpoints")
        said["tail"] = run("page 0xc0000000 + (page_frames << 12) - 0x100000")
        run("delete")
        run("tbreak space_set_heap")
        run("continue")
        at = "0x8048000 current->pid"
        said["lesson 6"] = run("areas current->pid"), run(f"why {at}"), run(f"pte {at}")
        run("set var zones[1].free = zones[1].free + 3")
        said["miscounted"] = run("buddy")
        run("set var zones[1].free = zones[1].free - 3")
        run("set var zones[1].lists[10].next = 0")
        said["damaged"] = run("buddy")
        """,
        lesson=5,
        script="run /bin/hello",
    )


def test_before_there_is_a_page_array(seen: dict[str, Any]) -> None:
    for answer in seen["too early"]:
        assert "there is no page array yet" in answer


def blocks(answer: str, zone: str) -> list[int]:
    """Free blocks of a zone by order."""
    return [int(cell) for cell in by_name(answer, zone)[1:12]]


def pages(answer: str) -> int:
    return sum(
        n << order for zone in ("DMA", "Normal") for order, n in enumerate(blocks(answer, zone))
    )


def test_buddy_counts_free_blocks(seen: dict[str, Any]) -> None:
    """One page less after a request of order 0, and what was split is in the lists."""
    before, after = seen["before"], seen["after"]
    assert re.split(r"  +", before.splitlines()[0]) == HEADS
    assert len(rows(before)) == 2
    assert pages(before) == sum(int(row[-2]) for row in rows(before))
    assert pages(before) == pages(after) + 1
    assert "damaged" not in before + after and "But" not in before + after


def test_object_of_kmalloc(seen: dict[str, Any]) -> None:
    """Cache, size, and the function that asked."""
    inside, page = seen["object"]
    assert re.search(
        r"in object \d+ of a slab of kmalloc-\d+: \d+ bytes at 0x\w+, handed out", inside
    )
    assert f"byte 5 of {seen['size']} that kmalloc was asked for (allocation 0)" in inside
    assert "allocated by" in inside and "not freed" in inside
    assert "cut into objects, 1 pages (order 0)" in page
    assert "in no object of it: its structure, map or colour" in seen["slab"]


def test_not_an_object(seen: dict[str, Any]) -> None:
    assert all("reserved: never handed out" in answer for answer in seen["reserved"])
    outside, no_object = seen["nowhere"]
    assert "is in no frame of the page array" in outside
    assert "is in no object of kmalloc's" in no_object


def test_red_zones_are_watched(seen: dict[str, Any]) -> None:
    assert f"{seen['size']} bytes at {seen['at']:#010x}" in seen["watch"]
    found = re.findall(r"hw watchpoint .*\*\(unsigned long long \*\)(0x\w+)", seen["watchpoints"])
    assert [int(each, 16) for each in found] == [seen["at"] - 8, seen["at"] + seen["size"]]


def test_damage_shows(seen: dict[str, Any]) -> None:
    assert re.search(r"But the lists of Normal have \d+ pages", seen["miscounted"])
    assert "Normal, order 10: the list is damaged" in seen["damaged"]


def test_commands_of_lesson_6(seen: dict[str, Any]) -> None:
    """What needs areas says when they come; page tables there are already."""
    areas, why, entry = seen["lesson 6"]
    assert "they come in lesson 6" in areas and "they come in lesson 6" in why
    assert "directory[32] = " in entry and "4 MiB" in entry

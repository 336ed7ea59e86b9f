"""Lesson 5's measurement: what theory expects of free blocks, and the shape of the figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from labs.bench import bench
from labs.lesson5 import measure as fragments
from labs.tools.grading.lab import ROOT, Lab
from tests.lesson5.support import DMA_END, LARGEST, outside
from tests.lesson5.zones import NORMAL, Zones
from tests.tools.test_measurements import check_curve, measured, rows

KERNEL = ROOT / "build/lesson6/kernel.elf"
MEMORY = fragments.Memory(percent=50, free=14, pages=32, blocks=(2, 2, 0, 1), requests=())


def test_expected_blocks() -> None:
    """Of 16,384 pages that are half free: 8 blocks of order 3, 0.016 of order 4."""
    assert fragments.expected(16384, 0.5, 3) == 8
    assert fragments.expected(16384, 0.5, 4) == pytest.approx(1 / 64)
    assert fragments.expected(16384, 1, 10) == 16


def test_whole_blocks_are_also_in_larger_ones() -> None:
    assert [MEMORY.whole(order) for order in range(4)] == [14, 6, 2, 1]


def test_unusable_free_space() -> None:
    assert MEMORY.unusable(0) == 0
    assert MEMORY.unusable(3) == pytest.approx(6 / 14)
    assert MEMORY.unusable(4) == 1


def test_price_of_a_single_page(build: Callable[[str], Path]) -> None:
    """Of half of memory that is free, a page comes without a split, and goes without a merge: with
    the call in a loop 44 instructions and 63. Another compiler may need some more."""
    build("all-lessons")
    output = bench.boot(bench.machine(KERNEL, script="fragment 50 1"))
    found = [fragments.Request(*map(int, each)) for each in fragments.REQUESTS.findall(output)]
    single = next(each for each in found if each.order == fragments.SMALL)
    assert single.page_alloc <= 48 * fragments.TIMES
    assert single.page_free <= 66 * fragments.TIMES


def test_price_of_splits_and_merges(build: Callable[[str], Path], tmp_path: Path) -> None:
    """A page takes 38 instructions, with a split 94, and with each further one 19 more; to give it
    back takes 53, with a merge 121, and with each further one 22 more."""
    build("all-lessons")
    lab = Lab(lesson=6, root=ROOT, seed=1, mode="icount", scratch=tmp_path)
    with outside(lab, Zones) as run:
        for splits in range(6):
            run.begin()
            run.give_range(NORMAL, DMA_END + LARGEST - (1 << splits), 1 << splits)
            run.give_range(NORMAL, DMA_END + LARGEST, LARGEST)
            taken, page = run.kernel.cost("page_alloc", 0, enabled=1)
            given, _ = run.kernel.cost("page_free", page, 0, enabled=1)
            assert taken <= (78 + 20 * splits if splits else 40), splits
            assert given <= (102 + 23 * splits if splits else 55), splits


@pytest.mark.slow
def test_figures(tmp_path: Path) -> None:
    """Blocks are as expected, and no fork works; the buddy system's requests have a bound, the
    map's have none; larger blocks are harder to get."""
    files = measured(5, tmp_path)
    blocks = rows(files["blocks.csv"])
    for row in blocks[:3]:
        assert float(row["blocks"]) == pytest.approx(float(row["expected"]), rel=0.1)
    assert all(float(row["blocks"]) == 0 for row in blocks[5:])
    for number, column in enumerate(("expected", "blocks")):
        check_curve("lesson5_blocks", number, blocks, "order", column)
    requests = rows(files["requests.csv"])
    for number, column in enumerate(("bitmap", "page_alloc")):
        check_curve("lesson5_requests", number, requests, "free_percent", column)
    assert max(float(row["page_alloc"]) for row in requests) < 400
    first, last = (float(requests[at]["bitmap"]) for at in (0, -1))
    assert first > 100 * last
    index = rows(files["index.csv"])
    for number, order in enumerate(fragments.INDEX_ORDERS):
        check_curve("lesson5_index", number, index, "free_percent", f"order_{order}")
    for row in index:
        three, six, nine = (float(row[f"order_{order}"]) for order in (3, 6, 9))
        assert 0 <= three <= six <= nine <= 1
    assert b"</svg>" in files["fragments.svg"]

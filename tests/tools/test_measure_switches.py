"""Lesson 4's measurement: the model of the TLB, and the shape of the figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from labs.lesson4 import measure as switches
from tests.tools.test_measurements import check_curve, measured, on_slides, rows

KERNEL_PAGES = switches.KERNEL_PAGES
SAME, KEPT, OTHER = switches.CASES


@pytest.mark.parametrize("pages", [0, 8, 24])
def test_model_of_a_small_footprint(pages: int) -> None:
    """All fits: a load of CR3 costs each page anew, but for global ones."""
    assert switches.misses(SAME, pages) == 0
    assert switches.misses(KEPT, pages) == pages
    assert switches.misses(OTHER, pages) == pages + KERNEL_PAGES


@pytest.mark.parametrize("case", switches.CASES)
def test_model_of_a_large_footprint(case: switches.Case) -> None:
    """Nothing that was used a turn ago is there: it does not matter what is kept."""
    assert switches.misses(case, 256) == 256 + KERNEL_PAGES


def test_larger_tlb_never_misses_more() -> None:
    for case in switches.CASES:
        for pages in switches.PAGES:
            found = [switches.misses(case, pages, entries) for entries in (64, 128, 512)]
            assert found == sorted(found, reverse=True)


@pytest.mark.slow
def test_figures(tmp_path: Path) -> None:
    """Instructions do not depend on the pages, cycles do; shorter turns leave less work. Who naps
    beside four others waits for four turns under round robin, for the tick under fair shares. The
    fast processor works a quarter of what it does for a student, which takes most of the time."""
    less = "fast, slow = measure.PROCESSORS; from dataclasses import replace;"
    less += "measure.PROCESSORS = (replace(fast, rounds=fast.rounds // 4), slow)"
    files = measured(4, tmp_path, less)
    pictures = {"switches.svg", "prediction.svg"}
    assert set(files) == {"switches.csv", "quanta.csv", "delays.csv", *pictures}
    table = rows(files["switches.csv"])
    for number, case in enumerate((SAME, KEPT, OTHER)):
        mine = [row for row in table if row["case"] == case.name]
        check_curve("lesson4_switches", number, mine, "pages", "cycles")
        instructions = [float(row["instructions"]) for row in mine]
        assert max(instructions) - min(instructions) < 0.1 * min(instructions)
        assert {round(float(row["loads"])) for row in mine} == {int(case.flushes)}
        cycles = [float(row["cycles"]) for row in mine]
        assert cycles[-1] > 50 * cycles[0] or case.flushes
    quanta = rows(files["quanta.csv"])
    for number, processor in enumerate(switches.PROCESSORS):
        mine = [row for row in quanta if row["processor"] == processor.name]
        check_curve("lesson4_quanta", number, mine, "quantum_ms", "useful_percent")
        left = [float(row["useful_percent"]) for row in mine]
        assert left == sorted(left, reverse=True)
        assert 0 < left[-1] < left[0] <= 100.1
    delays = {row["sched_class"]: float(row["delay_ms"]) for row in rows(files["delays.csv"])}
    assert on_slides("lesson4_delays") == [pytest.approx([*delays.values()], rel=0.1)]
    assert 70 < delays["rr"] < 90
    assert 8 < delays["fair"] < 12
    assert delays["fair"] <= delays["mlfq"] < 20

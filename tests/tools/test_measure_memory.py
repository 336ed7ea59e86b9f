"""Lesson 6's measurement: the bill of a fork, misses of a chase, and the shape of the figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from labs.lesson6 import measure as memory
from labs.tools.course.exercises import ROOT
from tests.tools.test_measurements import built, check_curve, measured, rows


def test_share_from_which_copying_is_cheaper() -> None:
    """1,000 for the fork, 2,048 for each page that is written; copying all 256 takes 1,024 each."""
    table = [
        {"written": 0, "instructions": 1000, "copy_all": 1000 + 256 * 1024},
        {"written": 256, "instructions": 1000 + 256 * 2048, "copy_all": 1000 + 256 * 1024},
    ]
    assert memory.price(table) == (2048, 50)


@pytest.mark.parametrize(
    ("pages", "entries", "in_page", "share"),
    [(64, 64, 1, 0), (80, 64, 1, 1), (8192, 8, 1024, 0), (128, 128, 1, 0)],
)
def test_misses_of_a_chase(pages: int, entries: int, in_page: int, share: float) -> None:
    """A ring that is larger than the TLB misses each time: what comes next was just forgotten."""
    assert memory.misses(pages, entries, in_page) == share


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lesson", "figure", "texts"),
    [
        (5, memory.SLOT, ("labs/lesson6/README.md", "slides/lesson6.md")),
        (6, 13_000, ("labs/lesson6/README.md", "labs/bench/README.md")),
    ],
)
def test_fork_takes_what_the_texts_say(lesson: int, figure: int, texts: tuple[str, ...]) -> None:
    """The texts name a fork's instructions, roughly, in lessons 5 and 6."""
    output = memory.run_programs(built(lesson), "run /bin/memcost fork", icount=0, guest_limit=60)
    (steps,) = (int(found[3]) for found in memory.COST.findall(output))
    assert steps == pytest.approx(figure, rel=0.04)
    for text in texts:
        assert f"{figure:,}" in (ROOT / text).read_text(encoding="utf-8"), text


@pytest.mark.slow
def test_figures(tmp_path: Path) -> None:
    """Copy on write costs by the page that is written; a fork without one is far below lesson 5's.
    Programs touch less than they map. Fault-around helps who reads all, and hurts who does not."""
    files = measured(6, tmp_path)
    forks = rows(files["forks.csv"])
    for number, column in enumerate(("instructions", "copy_all", "linux")):
        check_curve("lesson6_forks", number, forks, "written_percent", column)
    costs = [int(row["instructions"]) for row in forks]
    assert costs == sorted(costs)
    assert costs[0] < memory.SLOT / 20
    page, share = memory.price([{k: float(v) for k, v in row.items()} for row in forks])
    assert memory.COPY < page < 2 * memory.COPY
    assert 30 < share < 100
    for row in rows(files["touched.csv"]):
        assert 0 < int(row["touched"]) < int(row["mapped"])
        assert int(row["faults_around_16"]) <= int(row["faults_around_1"])
    around = rows(files["around.csv"])
    for number, column in enumerate(("step_1", "step_16")):
        check_curve("lesson6_around", number, around, "around", column)
    every = [float(row["step_1"]) for row in around]
    assert every == sorted(every, reverse=True)
    assert every[0] > 5 * every[-1]
    assert float(around[4]["step_16"]) > float(around[0]["step_16"])
    for number, column in enumerate(("small", "large")):
        check_curve("lesson6_reach", number, rows(files["reach.csv"]), "pages", column)
    reach = {int(row["pages"]): (float(row["small"]), float(row["large"])) for row in
             rows(files["reach.csv"])}  # fmt: skip
    assert (reach[64][0], reach[8192][1]) == (1, 1)
    assert reach[80][0] > 100 and reach[9216][1] > 10
    assert b"</svg>" in files["memory.svg"]

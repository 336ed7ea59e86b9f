"""The comparison of drives and files with Linux: what the program and the plugin say, and the kept
table."""

from __future__ import annotations

import pytest

from labs.bench import storage
from labs.bench.counting import Count, Counter
from labs.bench.storage import Figure, comparison, figures, mode_table, table
from labs.bench.table import START, STOP
from labs.storage.fsx import ExerciseError

SAID = """row create 10 requests 0 idle 0 of 2000
row unlink 10 requests 5 idle 1000 of 2000
"""


def side(instructions: float) -> dict[str, Figure]:
    return {row: Figure(instructions, instructions / 2, 1, 0.5) for row in storage.ROWS}


def test_the_program_and_the_plugin_are_compiled(tmp_path):
    assert all(each.stat().st_size > 0 for each in storage.compile_all(tmp_path))


def test_two_marks_are_a_row():
    found = figures(SAID, [1000, 10, 2000, 110, 5000, 200, 5500, 200])
    assert found["create"] == Figure(100, 10, 0, 0)
    assert found["unlink"] == Figure(50, 0, 0.5, 0.5)
    assert found["create_unlink"] == Figure(150, 10, 0.5, 0.5)
    with pytest.raises(ExerciseError, match="2 rows, and 3 marks"):
        figures(SAID, [1, 2, 3, 4, 5, 6])


def test_counts_of_functions_and_halts(tmp_path):
    (tmp_path / "counts").write_text("100 10 70 3 mark\n160 10 120 4 halt\n175 12 121 9 0\n")
    first, halt, last = Counter(("time_ns",), ("ata_answer",), halts=True).read(tmp_path)
    assert [first.kind, halt.kind, last.kind] == ["mark", "halt", "ata_answer"]
    assert last - first == Count(75, 2, 51, (6,))
    (tmp_path / "counts").write_text("100 10 70\n")
    assert Counter().read(tmp_path) == [Count(100, 10, 70, ())]


def test_the_tables():
    assert "| stat, of 10,000 files | 4,000 | 1,000 | 0.25 | 0.25 | 1.00 | 1.00 | 256 |\n" in table(
        side(1000), side(4000)
    )
    assert "| stat, of 10,000 files | - | 1,000 |  |  | - | 1.00 | 256 |\n" in table(side(1000), {})
    assert "| dma-polled | 7 instructions, idle 50 % |" in mode_table({"dma-polled": side(7)})
    found = side(100) | {"extents_512": Figure(110, 0, 1.03, 0)}
    assert "of 512 bytes of a file by extents takes +3.0 % requests and +10.0 %" in comparison(
        found
    )


def test_the_kept_table_has_every_row():
    text = storage.README.read_text()
    kept = text.partition(START)[2].partition(STOP)[0]
    for title in storage.ROWS.values():
        assert f"| {title} |" in kept

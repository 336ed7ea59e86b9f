"""Right solutions that are written in other ways (tests/other_ways), as data."""

from __future__ import annotations

from dataclasses import replace

import pytest

from labs.tools.course.exercises import every_lesson
from labs.tools.grading.test_run import TestResult
from labs.tools.proving.prove import WAYS_A_LESSON
from labs.tools.proving.prove_mutants import MutantError, changed_files
from labs.tools.proving.prove_ways import read_way, way_error, ways_of


@pytest.mark.parametrize("lesson", every_lesson())
def test_every_other_way_applies(lesson):
    """And another way is more than a few words of the reference's."""
    assert len(ways_of(lesson)) >= WAYS_A_LESSON
    for each in ways_of(lesson):
        assert changed_files(each), each.name
        assert sum(new.count("\n") for _, _, new in each.edits) > 2, each.name


def test_other_way_covers_text_to_its_end(tmp_path):
    """Without the end's text in the file the change does not apply."""
    path = tmp_path / "1.3-x.toml"
    table = 'exercise = "1.3"\ntitle = "t"\nfile = "kernel/lib/format.c"\n'
    path.write_text(f'{table}old = "/* SOLUTION 1.3 {{"\nuntil = "}} SOLUTION 1.3 */"\nnew = "x"\n')
    files = changed_files(read_way(path))
    assert b"SOLUTION" not in files["kernel/lib/format.c"]
    path.write_text(f'{table}old = "/* SOLUTION 1.3 {{"\nuntil = "no such"\nnew = "x"\n')
    with pytest.raises(MutantError, match="no 'no such' follows"):
        changed_files(read_way(path))


def test_wrong_other_way_is_told():
    """A way that did not pass each test, or has no test, does not hold."""
    way = ways_of(1)[0]
    passed = TestResult(way.job_name, way.exercise, "t", "", 1, True, True, "", "icount")
    assert way_error(way, [passed]) == ""
    assert "t (icount): w" in way_error(way, [passed, replace(passed, passed=False, words="w")])
    assert "no test" in way_error(way, [])

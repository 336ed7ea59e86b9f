"""The measurement and the answers that are handed in: what scores, and what every bad file says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from labs.tools.course.exercises import ROOT, lessons, of_lesson
from labs.tools.course.handed_in import (
    COURSE,
    HandedInError,
    Measurement,
    answers_path,
    chosen,
    compare,
    measurement_path,
    read_answers,
    read_measurement,
    same_answer,
    sources_of,
)
from labs.tools.course.measurement import MeasurementError, Question, predictions
from labs.tools.grading.grade import build_reference
from labs.tools.grading.grade_parts import part_jobs, parts_of
from labs.tools.grading.grade_report import Score, scores_of, text_report
from labs.tools.grading.test_run import run_tests
from labs.tools.proving.prove import hand_in_reference
from tests.support.building import make

GOOD = {"sources": "1", "prediction": {"a": 1}, "result": {"a": 2.5}, "figures": {"x": 100}}
M, A = measurement_path(1), answers_path(1)


def written(**changes: object) -> bytes:
    return json.dumps(GOOD | changes).encode()


# ---- files ---------------------------------------------------------------------------------------


def test_good_measurement() -> None:
    assert read_measurement(written(), M) == Measurement("1", {"a": 1}, {"a": 2.5}, {"x": 100})


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"x" * 20_000, "larger than 16 KiB"),
        (b'{"sources": "\xff"}', "not UTF-8: byte 13"),
        (b"[" * 10_000, "nested too deeply"),
        (b"{", "not as make measure writes it: Expecting"),
        (b"[1, 2]", 'no "sources"'),
        (written(sources=7), 'no "sources"'),
        (written(prediction={}), 'has no "prediction"'),
        (written(result=[1]), 'has no "result"'),
        (written(figures={"x": "100"}), "something else than numbers: x"),
        (written(figures={"x": True}), "something else than numbers: x"),
        (written(figures={"x": float("nan")}), "something else than numbers: x"),
        (written(figures={"x": float("inf")}), "something else than numbers: x"),
        (b'{"sources": "1", "prediction": {"a": ' + b"9" * 9000 + b"}}", "not as make measure"),
        (written(figures={"x": 10**400}), "something else than numbers"),
        (written(figures={"\ud800": "1"}), r"something else than numbers: \ud800"),
    ],
)
def test_bad_measurement(data: bytes, words: str) -> None:
    with pytest.raises(HandedInError, match=re.escape(words)) as error:
        read_measurement(data, M)
    assert str(error.value).startswith(M)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"#" * 20_000, "larger than 16 KiB"),
        (b'1 = "\xc3"', "not UTF-8: byte 5"),
        (b"1 = " + b"[" * 10_000, "nested too deeply"),
        (b"1 = DL\n", "put answers in quotes"),
        (b"1 = [2]\n", "answer 1 should be a number or a word"),
        (b"3 = { a = 1 }\n", "answer 3 should be a number or a word"),
        (b'2 = "' + b"a" * 100 + b'"\n', "answer 2 should be a number or a word"),
        (b"1 = " + b"9" * 9000, "answer"),
        (b"1 = 0x" + b"f" * 9000, "answer 1 should be a number or a word"),
    ],
)
def test_bad_answers(data: bytes, words: str) -> None:
    with pytest.raises(HandedInError, match=re.escape(words)) as error:
        read_answers(data, A)
    assert str(error.value).startswith(A)


def test_form_of_an_answer_does_not_matter() -> None:
    text = b'1 = 0x7c00\n2 = " 0X7C00 "\n3 = "31744"\n4 = "  Ecx"\n'
    given = read_answers(text, A)
    assert all(same_answer(given[number], "0x7c00") for number in "123")
    assert same_answer(given["4"], "ECX")
    assert given["5"] == ""
    assert not same_answer("7c00", "0x7c00")
    assert not same_answer("0x7c01", "0x7c00")
    assert not same_answer("cx", "ecx")


def test_figures_are_those_of_the_kernel() -> None:
    """To a tenth: compilers differ. The sources decide first."""
    handed = read_measurement(written(), M)
    for figure in (92, 100, 110):
        compare(handed, "1", {"x": figure}, 1)
    for sources, figures, words in (
        ("2", {"x": 100}, "measured with other exercise files"),
        ("1", {"x": 80}, "x is 100, but this kernel gives 80"),
        ("1", {"x": 100, "y": 1}, "not those of this lesson"),
    ):
        with pytest.raises(HandedInError, match=words):
            compare(handed, sources, figures, 1)


def test_sources_choose_the_points(tmp_path: Path) -> None:
    """Spaces and line ends do not matter; every other change does, also that of the course."""
    for each in of_lesson(1):
        for path in each.files:
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text((ROOT / path).read_text())
    same = sources_of(tmp_path, 1)
    changed = tmp_path / "kernel/lib/format.c"
    changed.write_bytes(changed.read_bytes().replace(b"\n", b" \r\n"))
    assert sources_of(tmp_path, 1) == same
    (tmp_path / COURSE).parent.mkdir(exist_ok=True)
    (tmp_path / COURSE).write_text("a-word\n")
    assert sources_of(tmp_path, 1) != same
    (tmp_path / COURSE).unlink()
    changed.write_text(changed.read_text() + "int x;\n")
    assert sources_of(tmp_path, 1) != same
    numbers = {chosen(str(i), "size", 10, 13) for i in range(100)}
    assert numbers == {10, 11, 12, 13}


# ---- predictions ---------------------------------------------------------------------------------

ASKED = (Question("a", "How many?", "calls"), Question("b", "How long?", "ms"))


@pytest.mark.parametrize("given", ["3 4.5", "3, 4.5", " 3  4.5 "])
def test_predictions(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert predictions(ASKED, given) == {"a": 3, "b": 4.5}
    assert "1. How many? (calls)" in capsys.readouterr().out


@pytest.mark.parametrize("given", ["", "3", "3 4 5", "3 many", "3 nan"])
def test_no_measurement_without_predictions(given: str) -> None:
    with pytest.raises(MeasurementError, match="2 numbers in the order of the questions"):
        predictions(ASKED, given)


@pytest.mark.parametrize("lesson", lessons())
def test_handout_has_the_questions(lesson: int) -> None:
    """Those of the measurement, as many and in the order of PREDICT, and where answers go."""
    text = (ROOT / f"labs/lesson{lesson}/README.md").read_text()
    part = text.partition("## The measurement")[2]
    told = re.findall(r"^(\d)\. ", part.partition("Then measure")[0], re.MULTILINE)
    (example,) = re.findall(r"PREDICT='(.+?)'", part)
    assert len(told) == len(example.split()) == len(module_of(lesson).QUESTIONS)
    for path in (measurement_path, answers_path):
        assert path(lesson) in text
    for part in parts_of(lesson):
        assert f"| {part.points} |" in text.partition("## What you hand in")[2]


def module_of(lesson: int):
    return __import__(f"labs.lesson{lesson}.measure", fromlist=["measure"])


def test_prediction_is_asked_before_anything_runs(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "labs.lesson2.measure", "--build", str(tmp_path)]
    done = subprocess.run(
        [*command, "--out", str(tmp_path), "--hand-in", str(tmp_path)],
        cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("make measure: it begins with your prediction, 4 numbers")
    assert list(tmp_path.iterdir()) == []


def test_who_draws_nothing_does_not_wait_for_matplotlib() -> None:
    """The grader needs the questions and the figures, and starts often."""
    names = ", ".join(f"labs.lesson{lesson}.measure" for lesson in lessons())
    code = f"import sys, {names}; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


# ---- graded --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], dict[str, Score]]:
    """What the reference's kernel of lesson 2 gets for files that are handed in."""
    build_reference(2)
    work = tmp_path_factory.mktemp("work")
    jobs = [job for job in part_jobs(of_lesson(2), ROOT, work, "seed") if job.name[2] != "0"]

    def grade(tree: Path) -> dict[str, Score]:
        these = [replace(job, handed_in=str(tree)) for job in jobs]
        results = run_tests(these, ["tests/lesson2"], 1)
        return {score.exercise.id[2]: score for score in scores_of(parts_of(2), results)}

    return grade


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the reference hands in of lesson 2."""
    make("LESSON=2", "image-disk")
    tree = tmp_path_factory.mktemp("own")
    hand_in_reference(2, tree)
    return tree


def laid(tree: Path, measurement: bytes, answers: bytes) -> Path:
    """A tree with these files."""
    (tree / "labs/lesson2").mkdir(parents=True)
    (tree / measurement_path(2)).write_bytes(measurement)
    (tree / answers_path(2)).write_bytes(answers)
    return tree


@pytest.mark.slow
def test_own_figures_and_right_answers(graded, own: Path) -> None:
    scores = graded(own)
    assert (scores["M"].points, scores["A"].points) == (10, 5)


@pytest.mark.slow
def test_figures_of_another_kernel(graded, own: Path, tmp_path: Path) -> None:
    """Those of other sources, under their own name and under that of this kernel; some right and
    some wrong answers."""
    other, module = "0123456789abcdef", module_of(2)
    theirs = module.own_figures(ROOT / "build/lesson2", tmp_path, other)
    table = json.loads((own / measurement_path(2)).read_bytes()) | {"figures": theirs}
    answers = (own / answers_path(2)).read_text()
    wrong = re.sub(r"^([12] = ).*$", r'\g<1>"12345"', answers, flags=re.MULTILINE)
    for sources, words in (
        (other, "other exercise files"),
        (table["sources"], "this kernel gives"),
    ):
        tree = tmp_path / sources
        data = json.dumps(table | {"sources": sources}).encode()
        scores = graded(laid(tree, data, wrong.encode()))
        assert scores["M"].points == 0
        assert scores["A"].points == 3
        report = text_report(list(scores.values()))
        assert words in report
        assert "answer 1 is not right" in report
        assert "71" not in report.partition("2.A The answers\n")[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"x" * (10 << 20), "is larger than 256 KiB"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"1 = " + b"[" * 16_000, "is nested too deeply"),
    ],
)
def test_files_that_are_meant_to_harm(graded, tmp_path: Path, data: bytes, words: str) -> None:
    scores = graded(laid(tmp_path / "tree", data, data))
    assert [scores[name].points for name in "MA"] == [0, 0]
    assert f"{answers_path(2)} {words}" in text_report(list(scores.values()))

"""The grader's plan and its scores, on a lesson of tests that need no kernel."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from labs.tools.course.exercises import ROOT, by_id, of_lesson
from labs.tools.grading.grade import seed_of
from labs.tools.grading.grade_report import gradescope, junit, scores_of, text_report, total
from labs.tools.grading.grade_words import advice, own_report
from labs.tools.grading.lab_course import settled
from labs.tools.grading.lab_plan import Job, jobs_of, parameters
from labs.tools.grading.lab_words import SLOWER
from labs.tools.grading.test_run import TestRunError, results_of, run_tests

LESSON_1 = of_lesson(1)

SMALL_LESSON = """
import os
import pathlib
import pytest

seen = []

@pytest.mark.exercise("1.1")
@pytest.mark.parametrize("number", range(4))
def test_one_process_in_order(lab, number):
    seen.append((number, lab.mode))
    assert seen == [(i, mode) for i in range(4) for mode in ("icount", "slower")][:len(seen)]

@pytest.mark.exercise("1.2")
def test_ends_its_process(lab):
    died = pathlib.Path(__file__).with_name("died")
    if "PYTEST_XDIST_WORKER" in os.environ and not died.exists():
        died.touch()
        os._exit(9)

@pytest.mark.exercise("1.3", points=3)
def test_passes(lab):
    "It passes."

@pytest.mark.exercise("1.3", points=1)
@pytest.mark.parametrize("number", [1, 2])
def test_half(lab, number):
    assert number == 1, f"the number is {number}"

@pytest.mark.exercise("1.3", points=1)
def test_only_slower_fails(lab):
    assert lab.mode == "icount", "a number that varies"

@pytest.mark.exercise("1.4", gate=True)
def test_gate(lab):
    assert False, "the gate \\ud800"

@pytest.mark.exercise("1.4", points=9, host=True)
def test_behind_the_gate(lab):
    pass

@pytest.mark.exercise("1.5")
@pytest.mark.parametrize("number", range(5))
def test_hangs(lab, number):
    lab.stuck.append("hang")
    raise ValueError(f"/tmp/somewhere/{number} after 1.25 s of guest time")
"""


CONFTEST = 'pytest_plugins = ["labs.tools.grading.lab", "labs.tools.grading.lab_plan"]\n'


@pytest.fixture(
    scope="module", params=[pytest.param(number, marks=pytest.mark.slow) for number in (1, 2)]
)
def small_lesson(request, tmp_path_factory):
    """The results of the small lesson by one process and by two."""
    directory = tmp_path_factory.mktemp("small")
    (directory / "conftest.py").write_text(CONFTEST)
    (directory / "test_small.py").write_text(SMALL_LESSON)
    jobs = [Job("a", str(ROOT), thorough=False), Job("b", str(ROOT), exercise="1.3")]
    return run_tests(jobs, [f"-c{ROOT / 'pyproject.toml'}", str(directory)], request.param)


def test_both_kernels_share_the_clock_rates():
    options = {"--tree": ROOT, "--seed": "", "--note": "", "--core": False, "--kernel": 0}
    options |= {"--both-kernels": True, "--either-kernel": False}
    whole, core = jobs_of(SimpleNamespace(getoption=options.get))
    assert (whole.core, whole.modes, whole.machines) == (False, ("icount",), False)
    assert (core.core, core.modes, core.machines) == (True, ("slower",), True)
    assert (whole.no_once, core.no_once) == (True, False), "what runs once runs on the core"


EITHER_KERNEL = """
import pytest

@pytest.mark.exercise("1.1", gate=True)
def test_gate(lab): ...

@pytest.mark.exercise("1.1")
@pytest.mark.parametrize("number", range(20))
def test_numbers(lab, number): ...

@pytest.mark.exercise("1.2", once=True)
def test_once(lab): ...

@pytest.mark.exercise("1.2", host=True)
def test_host(lab): ...
"""


def test_either_kernel_has_each_test(tmp_path):
    """A gate runs on both, each other test on one, and both kernels have many of them."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_small.py").write_text(EITHER_KERNEL)
    command = [sys.executable, "-m", "pytest", f"-c{ROOT / 'pyproject.toml'}", str(tmp_path)]
    command += ["-q", "--collect-only", "--either-kernel"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = re.findall(r"::(\w+)\[(\w+)(?:-(\d+))?\]", done.stdout)
    modes = {name: [mode for each, mode, _ in found if each == name] for name, _, _ in found}
    assert modes["test_gate"] == ["icount", "slower"]
    assert (modes["test_once"], modes["test_host"]) == (["slower"], ["host"])
    assert sorted(int(n) for name, _, n in found if name == "test_numbers") == [*range(20)]
    assert Counter(modes["test_numbers"]).most_common()[-1][1] >= 4


def test_a_function_among_the_parameters_is_named():
    """Its address is another one in each process: the mode and the seed come from these words."""
    item = SimpleNamespace(callspec=SimpleNamespace(params={"wrong": job_of, "number": 7}))
    assert parameters(item) == [("number", "7"), ("wrong", "job_of")]


def job_of(results, name):
    return [result for result in results if result.job == name]


def test_points_are_weighted_and_shared(small_lesson):
    scores = scores_of(LESSON_1, job_of(small_lesson, "b"))
    assert [score.points for score in scores] == [0, 0, 12 * 3.5 / 5, 0, 0, 0]
    assert {result.exercise for result in job_of(small_lesson, "b")} == {"1.3"}


def test_words(small_lesson):
    words = {result.name: result.words for result in job_of(small_lesson, "b")}
    assert words["test_passes"] == ""
    assert words["test_half[2]"] == "the number is 2"
    assert words["test_only_slower_fails"].startswith(SLOWER)


def test_while_nothing_works_an_exercise_has_nothing(small_lesson):
    results = job_of(small_lesson, "a")
    score = scores_of(LESSON_1, results)[3]
    assert score.points == 0
    assert [test.words for test in score.tests] == [
        "the gate ?",
        "not run: nothing of this exercise works yet",
    ]


def test_a_kernel_hangs_twice_and_no_more(small_lesson):
    words = [result.words for result in job_of(small_lesson, "a") if result.exercise == "1.5"]
    assert words == ["ValueError: 0", "ValueError: 1"] + 3 * [
        "not run: the kernel did not end in 2 runs before"
    ]


def test_a_group_is_run_in_order_by_one_process(small_lesson):
    words = [result.words for result in job_of(small_lesson, "a") if result.exercise == "1.1"]
    assert words == 4 * [""]


def test_what_a_dead_process_took_along_is_run_again(small_lesson):
    (result,) = [each for each in job_of(small_lesson, "a") if each.exercise == "1.2"]
    assert result.passed


def test_reports(small_lesson):
    scores = scores_of(LESSON_1, job_of(small_lesson, "a"), {"1.4": ["boot/mbr.asm is missing"]})
    parsed = json.loads(gradescope(scores, "seed"))
    assert parsed["score"] == total(scores) == 8 + 12 + 8.4
    assert [test["max_score"] for test in parsed["tests"]] == [8, 12, 12, 20, 16, 12]
    assert "boot/mbr.asm is missing" in parsed["tests"][3]["output"]
    suites = ElementTree.fromstring(junit(scores))
    assert suites.find("testsuite[3]").get("failures") == "2"
    assert "total" in text_report(scores)
    assert str(ROOT) not in text_report(scores)


def test_advice(small_lesson):
    scores = scores_of(LESSON_1, job_of(small_lesson, "a"))
    assert "help:   make hint EX=1.3" in advice(scores[2], scores, set())
    assert "replay: make replay TEST=test_half[2]" in advice(scores[2], scores, set())


def failed(exercise: str, words: str) -> dict:
    item = {"job": "", "exercise": exercise, "test": f"t{exercise}::test_a", "title": "a"}
    return item | {"gate": False, "mode": "icount", "points": 1, "passed": False, "words": words}


def report_of(*records: dict) -> str:
    return own_report(scores_of(LESSON_1, results_of(list(records), list(records))))


def test_what_an_exercise_needs_is_named():
    report = report_of(failed("1.3", "x"), failed("1.5", "y"), failed("1.6", "z"))
    assert "1.6 needs 1.3 and 1.5, which do not pass yet: begin there" in report


def test_what_does_not_build_is_said_once():
    words = "it does not build: x.c:1: error: expected ';'"
    report = report_of(failed("1.2", words), failed("1.3", words))
    assert report.count("x.c:1: error: expected ';'") == 1
    assert "1.2 The first instructions\n" not in report


@pytest.mark.parametrize(
    ("file", "what", "command"),
    [
        ("drivers/disk/ata.c", "The kernel does not build", "image-disk shows"),
        ("user/seekrw.c", "A program does not build", "user-programs shows"),
        ("labs/storage/locks/master.c", "A program does not build", "fix that first"),
    ],
)
def test_the_command_that_shows_an_error_builds_the_file(file, what, command):
    report = report_of(failed("1.2", f"it does not build: {file}:1: error: expected ';'"))
    assert what in report and command in report
    assert report.count("make LESSON") == (command != "fix that first")


def test_one_reason_is_said_once_and_the_first_exercise_is_named():
    words = "QEMU does not load the kernel: the file has no Multiboot header"
    report = report_of(failed("1.1", words), failed("1.2", words))
    assert report.count("no Multiboot header") == 1
    assert "1.2 needs 1.1, which does not pass yet: begin there" in report
    assert "make replay" not in report


def test_what_fails_at_the_other_clock_rate_only_is_replayed_there():
    report = report_of(failed("1.3", "x") | {"mode": "slower"})
    assert "replay: make replay TEST=test_a MODE=slower" in report


def test_what_the_kernel_names_comes_first():
    report = report_of(failed("1.3", "x"), failed("1.6", "exercise 1.4 is not written yet (l)"))
    assert "1.6 needs 1.4, not written yet: begin there" in report
    assert "1.6 needs 1.3" not in report


def test_advice_offers_a_replay_of_a_machine_only():
    item = {"job": "", "exercise": "1.3", "test": "t::test_a", "title": "", "gate": False}
    item |= {"mode": "icount", "points": 1, "passed": False}
    for words, offered in (("it does not build: x.c:1", False), ("it stands still", True)):
        scores = scores_of(LESSON_1, results_of([item], [item | {"words": words}]))
        told = own_report(scores)
        assert ("replay: make replay TEST=test_a" in told) is offered


def test_advice_offers_a_replay_of_a_program_on_this_computer():
    item = {"job": "", "exercise": "1.3", "test": "t::test_a", "title": "", "gate": False}
    item |= {"mode": "host", "points": 1, "passed": False, "words": "expected 1, seen 2"}
    for has_program in (False, True):
        scores = scores_of(LESSON_1, results_of([item], [item | {"program": has_program}]))
        words = own_report(scores)
        assert ("replay: make replay TEST=test_a\n" in words + "\n") is has_program


@pytest.mark.slow
def test_broken_tests_are_an_error(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_broken.py").write_text("import nothing_at_all\n")
    with pytest.raises(TestRunError, match="nothing_at_all"):
        run_tests([Job("", str(ROOT))], [f"-c{ROOT / 'pyproject.toml'}", str(tmp_path)], 1)


def test_two_variants_of_one_name_are_an_error(tmp_path):
    """A test's name has the beginning of its parameters: two runs would count as one."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    long = "x" * 40
    (tmp_path / "test_twice.py").write_text(
        "import pytest\n"
        '@pytest.mark.exercise("1.1")\n'
        f'@pytest.mark.parametrize("text", ["{long}1", "{long}2"])\n'
        "def test_twice(lab, text):\n"
        "    pass\n"
    )
    with pytest.raises(TestRunError, match="two variants of a test have one name"):
        run_tests([Job("", str(ROOT))], [f"-c{ROOT / 'pyproject.toml'}", str(tmp_path)], 1)


# ---- the report as a function of what came of each test ------------------------------------------


PASSED = ("passed", "slow", "idle")


def records(job: str, *tests: tuple[str, str, str]) -> list[dict]:
    """What came of tests of exercise 1.3: name, mode, and "passed", "failed", "stuck" or "skipped",
    or a way to pass: "slow", "idle"; a name that begins with "gate" is a gate."""
    return [
        {"job": job, "exercise": "1.3", "test": f"t::{name}", "mode": mode}
        | {"gate": name.startswith("gate"), "passed": came in PASSED, "words": came}
        | {"ran": came != "skipped", "stuck": came == "stuck"}
        | {"processor": 100.0 if came == "slow" else 0.1, "real": 3000.0 if came == "idle" else 0.1}
        for name, mode, came in tests
    ]


def words_of(known: list[dict]) -> list[str]:
    return [each["words"].removeprefix("not run: ") for each in known]


HUNG = "the kernel did not end in 2 runs before"


def test_report_does_not_depend_on_who_ran_what():
    """Three hung in two processes: the third would not have been run by one."""
    came = records("a", *((f"{i}", "icount", "stuck") for i in range(3)), ("3", "icount", "passed"))
    known, missing = settled(came, came[::-1], set())
    assert words_of(known) == ["stuck", "stuck", HUNG, HUNG]
    assert missing == []


def test_report_has_what_was_left_out_without_reason():
    """A process that died took a hang along: what was not run after it is run."""
    came = records("a", ("0", "icount", "stuck"), ("1", "icount", "passed"))
    came += records("a", ("2", "icount", "skipped"), ("3", "icount", "stuck"))
    came += records("a", ("4", "icount", "passed"))
    known, missing = settled(came, came, set())
    assert missing == [came[2]]
    known, missing = settled(came, came + records("a", ("2", "icount", "stuck")), set())
    assert words_of(known) == ["stuck", "passed", "stuck", HUNG, HUNG]
    assert missing == []


def test_report_behind_gates_and_behind_icount():
    came = records("a", ("gate[1]", "icount", "passed"), ("gate[1]", "slower", "failed"))
    came += records("a", ("gate[2]", "icount", "failed"), ("gate[2]", "slower", "passed"))
    came += records("a", ("x", "icount", "passed"))
    known, _ = settled(came, came, set())
    other = "it failed at the other clock rate"
    assert words_of(known) == ["passed", "failed", "failed", other, "passed"]
    came = [each | {"passed": False} for each in came]
    known, _ = settled(came, came, set())
    assert words_of(known)[-1] == "nothing of this exercise works yet"
    known, _ = settled(came, came, {"a"})
    assert known[-1]["ran"]


def test_one_gate_is_enough_and_a_visible_one_is_not():
    item = {"job": "", "exercise": "1.3", "title": "", "mode": "icount", "points": 1, "words": ""}
    places = {"v/visible/t::gate": True, "h/hidden/t::one": False, "h/hidden/t::two": False}

    def points(**passed: bool) -> float:
        came = [
            item | {"test": test, "gate": True, "passed": passed.get(test[-3:], known)}
            for test, known in places.items()
        ]
        rest = item | {"test": "h/hidden/t::rest", "gate": False, "passed": True}
        return scores_of(LESSON_1, results_of([*came, rest], [*came, rest]))[2].points

    assert points() == 0
    assert points(one=True) == 12 * 3 / 4


@pytest.mark.parametrize("way", ["slow", "idle"])
def test_an_exercise_has_so_much_time(way):
    """A kernel that is slow, and never too slow for one test, does not keep the grader for ever."""
    came = records("a", *((f"{i}", "icount", way) for i in range(5)))
    known, _ = settled(came, came, set())
    out = "the tests before it have taken all the time that an exercise has"
    assert words_of(known) == [way] * 3 + [out] * 2
    assert not known[-1]["passed"]


def test_what_was_never_run_has_failed():
    item = {"job": "", "exercise": "1.3", "test": "t::test_a", "title": "", "gate": False}
    planned = [item | {"mode": mode, "points": 1} for mode in ("icount", "slower")]
    (result,) = results_of(planned, [planned[0] | {"passed": True, "words": ""}])
    assert not result.passed
    assert result.mode == "slower"
    assert "not run" in result.words


def test_seed_is_that_of_the_code(tmp_path):
    """A blank or a comment more is no other try; another number is."""
    place = tmp_path / "mm/buddy.c"
    place.parent.mkdir()
    seeds = []
    for text in (b"int a = 1; /* one */\n", b"int  a\t= 1;\n\n// two\n", b"int a = 2;\n"):
        place.write_bytes(text)
        seeds.append(seed_of(tmp_path, [by_id("5.2")]))
    assert seeds[0] == seeds[1] != seeds[2]

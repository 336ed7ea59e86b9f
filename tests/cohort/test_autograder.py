"""What platforms get: results in their formats, and bundles that are run here as their
documentation says that they run them."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from labs.tools.cohort import autograder, exports, platform
from labs.tools.cohort.autograder import FORMATS, assessment, bundle, grader_files
from labs.tools.cohort.course import leaks
from labs.tools.cohort.one import Result, asked_of
from labs.tools.cohort.reader import Reading
from labs.tools.course.exercises import ROOT
from labs.tools.course.student_tree import contents
from labs.tools.grading.grade_report import Score, total
from labs.tools.machine.command import CommandError
from tests.cohort.fake_one import fake_test

SCHEMAS = Path(__file__).with_name("schemas")
COLOUR = "\x1b"


def valid(name: str, table: object) -> None:
    """Raises an error where that is not what the platform documents."""
    library = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    schema = json.loads((SCHEMAS / f"{name}.json").read_text())
    library.Draft202012Validator.check_schema(schema)
    library.Draft202012Validator(schema).validate(table)


def result(words: str = "one two", **changes: object) -> Result:
    """A half-finished submission of lesson 1: hidden tests fail, and of 1.4 also the gate."""
    scores = []
    for number, exercise in asked_of(1).items():
        text = "two three" if number == "1.4" else words
        names = ("one", "two", "three")
        tests = tuple(fake_test(number, text, name, name == "one") for name in names)
        scores.append(Score(exercise, tests, ("x.c is missing",) if number == "1.2" else ()))
    made = Result("anna.zip", "anna.zip", Reading(notes=["odd"], hints={"1.3": 2}), "5eed",
                  tuple(scores))  # fmt: skip
    return replace(made, **changes)


REFUSED = Result("x", "x", Reading(refusal="it is empty"))


def test_gradescope_has_each_test_with_its_visibility():
    table = json.loads(exports.gradescope(result(), "after_published"))
    valid("gradescope", table)
    known = {(test["name"], test["number"]): test for test in table["tests"]}
    assert len(known) == len(table["tests"]) == 3 * len(asked_of(1))
    for test in known.values():
        is_hidden = test["name"].endswith("three")
        assert test["visibility"] == ("after_published" if is_hidden else "visible")
        assert (test["status"] == "passed") == (test["score"] == test["max_score"])
    assert table["score"] == pytest.approx(sum(t["score"] for t in table["tests"]), abs=0.05)
    assert sum(test["max_score"] for test in table["tests"]) == pytest.approx(100, abs=0.01)
    passed = known["1.4 It says two", "1.4"]
    assert passed["score"] == 0 and passed["output"].startswith("passed, but nothing of this")
    assert "again: make replay" not in json.dumps(known["1.3 It says three", "1.3"])


def test_a_refusal_has_a_result_everywhere():
    table = json.loads(exports.gradescope(REFUSED))
    valid("gradescope", table)
    assert table["score"] == 0 and "not graded: it is empty" in table["output"]
    table = json.loads(exports.prairielearn(REFUSED))
    valid("prairielearn", table)
    assert table == {"gradable": False, "format_errors": ["it is empty"]}
    valid("autolab", json.loads(exports.autolab(REFUSED)))


def test_prairielearn_has_points_in_each_test():
    table = json.loads(exports.prairielearn(result()))
    valid("prairielearn", table)
    assert table["score"] == pytest.approx(total(result().scores) / 100, abs=1e-4)
    assert sum(test["max_points"] for test in table["tests"]) == pytest.approx(100, abs=0.01)
    hidden = [test for test in table["tests"] if "hidden tests of" in test["name"]]
    assert len(hidden) == len(asked_of(1)) and hidden[0]["output"] == "0 of 1 passed"
    assert "It says three" not in json.dumps(table)


def test_the_schemas_refuse_what_hides_points():
    table = json.loads(exports.prairielearn(result()))
    del table["tests"][3]["max_points"]
    with pytest.raises(Exception, match="'max_points' is a required property"):
        valid("prairielearn", table)
    table = json.loads(exports.gradescope(result()))
    table["tests"][0]["visibility"] = "never"
    with pytest.raises(Exception, match="'never' is not one of"):
        valid("gradescope", table)


def test_autolab_has_a_score_for_each_problem():
    table = json.loads(exports.autolab(result()))
    valid("autolab", table)
    yaml = pytest.importorskip("yaml")
    known = yaml.safe_load(assessment(1))
    assert {each["name"] for each in known["problems"]} == set(table["scores"])
    assert sum(each["max_score"] for each in known["problems"]) == 100
    assert known["general"]["handin_filename"] == "lesson1.zip"


def test_a_result_that_is_too_large_is_not_written():
    with pytest.raises(ValueError, match="bytes, of 900000 at most"):
        exports.as_json({"x": "y" * 900_000})


@pytest.mark.parametrize("form", platform.FORMATS)
def test_a_platform_gets_its_result_and_nothing_else(tmp_path, monkeypatch, capsys, form):
    monkeypatch.setattr(platform, "build_reference", lambda lesson: None)
    monkeypatch.setattr(platform.sandbox, "require", lambda: None)
    monkeypatch.setattr(platform, "grade", lambda job, files, work: result())
    words = ["--format", form, "--lesson", "1", "--submission", str(tmp_path)]
    assert platform.main([*words, "--output", str(tmp_path / "results/results.json")]) == 0
    said = capsys.readouterr().out
    if form == "autolab":
        text = said.splitlines()[-1]
        assert "1.3 Formatted printing" in said and COLOUR not in said
    else:
        text = (tmp_path / "results/results.json").read_text()
        assert said == ""
    valid(form, json.loads(text))


def test_without_a_sandbox_it_is_said_at_once(tmp_path, monkeypatch):
    def missing() -> None:
        raise platform.sandbox.SandboxUnavailable("no user namespaces: do this")

    monkeypatch.setattr(platform, "build_reference", lambda lesson: None)
    monkeypatch.setattr(platform.sandbox, "require", missing)
    words = ["--format", "autolab", "--lesson", "1", "--submission", str(tmp_path)]
    with pytest.raises(CommandError, match="no user namespaces: do this"):
        platform.main(words)


# ---- bundles -------------------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch):
    """Bundles whose grader is three files."""
    few = {"Makefile": b"all:\n", "labs/x.py": b"#!/x\n", "tests/lesson1/hidden/test_x.py": b""}
    monkeypatch.setattr(autograder, "grader_files", lambda: few)
    return few


def members(data: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return {each.name: archive.extractfile(each).read() for each in archive}


def test_bundle_of_gradescope_is_run_as_it_says(tmp_path, small):
    """setup.sh and run_autograder are at the zip's top; the latter calls the grader with the
    platform's folders."""
    data = bundle("gradescope", 1, "after_published")["autograder.zip"]
    source = tmp_path / "source"
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        archive.extractall(source)
        modes = {each.filename: each.external_attr >> 16 & 0o777 for each in archive.infolist()}
    assert modes == {"setup.sh": 0o755, "run_autograder": 0o755, "apprentice.tar.gz": 0o644}
    assert members((source / "apprentice.tar.gz").read_bytes()) == small
    words = called(tmp_path, source / "apprentice", ["bash", source / "run_autograder"],
                   AUTOGRADER=str(tmp_path))  # fmt: skip
    assert words.submission == f"{tmp_path}/submission"
    assert words.output == f"{tmp_path}/results/results.json"
    assert (words.format, words.lesson, words.hidden) == ("gradescope", "1", "after_published")


def called(tmp_path: Path, place: Path, command: list, **environment: str) -> SimpleNamespace:
    """The options with which a script calls the grader, whose Python is a stub here."""
    python = place / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >{tmp_path}/called\n')
    python.chmod(0o755)
    subprocess.run(command, check=True, cwd=tmp_path, env={**os.environ, **environment})
    words = (tmp_path / "called").read_text().splitlines()
    assert words[:2] == ["-m", "labs.tools.cohort.platform"]
    options = dict(zip(words[2::2], words[3::2], strict=True))
    return SimpleNamespace(**{name[2:]: value for name, value in options.items()})


def test_bundle_of_prairielearn_is_run_as_it_says(tmp_path, small):
    files = bundle("prairielearn", 1, "visible")
    info = json.loads(files["questions/lesson1/info.json"])
    assert info["gradingMethod"] == "External" and info["title"] == "Loading the kernel"
    options = info["externalGradingOptions"]
    assert options["enabled"] and options["timeout"] <= 600 and not options["enableNetworking"]
    assert b'file-names="lesson1.zip"' in files["questions/lesson1/question.html"]
    assert b"COPY run.sh /run.sh" in files["image/Dockerfile"]
    assert options["entrypoint"] == "/run.sh"
    (tmp_path / "run.sh").write_bytes(files["image/run.sh"])
    words = called(tmp_path, tmp_path / "apprentice", ["bash", tmp_path / "run.sh"],
                   APPRENTICE=str(tmp_path / "apprentice"), GRADE=str(tmp_path))  # fmt: skip
    assert words.submission == f"{tmp_path}/student"
    assert words.output == f"{tmp_path}/results/results.json"


def test_bundle_of_autolab_is_run_as_it_says(tmp_path, small):
    files = bundle("autolab", 1, "visible")
    assert set(files) == {"autograde-Makefile", "autograde.tar", "lesson1.yml"}
    (tmp_path / "autograde.tar").write_bytes(files["autograde.tar"])
    (tmp_path / "Makefile").write_bytes(files["autograde-Makefile"])
    words = called(tmp_path, tmp_path / "apprentice", ["make", "-s"],
                   APPRENTICE=str(tmp_path / "apprentice"))  # fmt: skip
    assert words.submission == f"{tmp_path}/lesson1.zip" and words.format == "autolab"


def test_bundle_of_classroom50_has_nothing_that_a_student_may_not_read(tmp_path):
    """The runner's environment, a checkout and a stub of the visible grader: a result."""
    files = bundle("classroom50", 1, "visible")
    tree = members(files["template.tar.gz"])
    assert list(leaks(1, tree)) == [] and "visible.py" in tree
    assert tree.keys() - contents(1).keys() == {"visible.py"}
    checkout, here = tmp_path / "checkout", tmp_path / "bundle"
    here.mkdir()
    (here / "autograder.py").write_bytes(files["autograder.py"])
    few = dict.fromkeys(("boot/entry.asm", "boot/mbr.asm"), b"")
    few |= {"Makefile": b"setup-test:\n", ".venv/bin/python": b"#!/bin/sh\ncat boot/*.asm\n"}
    (here / "template.tar.gz").write_bytes(autograder.archive(few))
    line = [{"test-name": "1.2 x", "passed": True, "score": 12, "max-score": 12, "output": ""}]
    (checkout / "boot").mkdir(parents=True)
    (checkout / "boot/entry.asm").write_text(json.dumps(line))
    (checkout / "boot/mbr.asm").symlink_to("/etc/passwd")
    from labs.tools.course.start import commit

    commit(checkout, "Handed in")
    names = ("CLASSROOM", "ASSIGNMENT", "USERNAME", "COMMIT_URL", "RELEASE_URL")
    environment = {name: name.casefold() for name in names}
    environment |= {"SUBMISSION_TAG": "submit/1-a", "CLASSROOM50_BUNDLE_DIR": str(here)}
    done = subprocess.run(
        [sys.executable, here / "autograder.py"], cwd=checkout, check=True, capture_output=True,
        env={**os.environ, **environment}, text=True,
    )  # fmt: skip
    assert "boot/mbr.asm is missing, a link, or too large" in done.stdout
    table = json.loads((checkout / "result.json").read_text())
    valid("classroom50", table)
    assert (table["score"], table["max-score"], table["tests"]) == (12, 12, line)
    assert table["datetime"] == "2026-01-01T00:00:00Z" and table["review"] == "commit_url"
    assert "| 1.2 x | 12 of 12 |" in (checkout / "release-body.md").read_text()


def test_what_grades_is_in_a_bundle():
    paths = set(grader_files())
    assert {"Makefile", "labs/author.mk", "labs/tools/cohort/platform.py", "boot/entry.asm"} < paths
    assert {path for path in paths if path.startswith("tests/lesson1/hidden/")}
    assert not [path for path in paths if path.startswith(("slides/", "tests/mutants/"))]


def test_a_bundle_is_the_same_each_time(tmp_path, small):
    for form in FORMATS[:3]:
        assert bundle(form, 1, "visible") == bundle(form, 1, "visible")
        words = ["--format", form, "--lesson", "1", "--output", str(tmp_path / form)]
        assert autograder.main(words) == 0
    assert (tmp_path / "prairielearn/image/run.sh").stat().st_mode & 0o111
    assert {path.name for path in ROOT.glob("labs/tools/cohort/bundles/*")} == set(FORMATS)

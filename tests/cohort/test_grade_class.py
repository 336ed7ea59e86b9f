"""A class: its jobs, killed and gone on with, its rules, its table and its pages."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest

from labs.tools.cohort import grade_class
from labs.tools.cohort.grade_class import file_name, submissions_in
from labs.tools.cohort.report import cell, losses, to_read
from labs.tools.cohort.rules import Rules, Student, owner_of, read_roster, read_rules
from labs.tools.course.exercises import ROOT, by_id
from labs.tools.course.submit import graded_files
from labs.tools.grading.grade_report import Score
from labs.tools.grading.sandbox import SandboxUnavailable
from labs.tools.grading.test_run import TestResult
from labs.tools.machine.command import CommandError, in_a_line

FAKE = f"{sys.executable} -m tests.cohort.fake_one"
COMMAND = (
    "import sys; from labs.tools.cohort import grade_class as g;"
    f"g.GRADE_ONE = {FAKE!r}; g.build_reference = g.sandbox.require = lambda *_: None;"
    "sys.exit(g.in_a_line(g.PROGRAM, g.main))"
)
WORDS = ("one two", "one two three", "one", "one two three")
ROSTER = "id,name\nanna,Ann Example\nben,Ben\ncarla,Carla\ndora,Dora <Doe>\n"
RULES = """\
[lesson.1]
due = 2026-10-14T23:59:00Z
late_days = 2
cost = 10
attempts = 2
counts = "best"

[free_days]
ben = 1

[handed_in]
"anna.zip" = 2026-10-14T20:00:00Z
"anna-2.zip" = 2026-10-15T20:00:00Z
"anna-3.zip" = 2026-10-15T21:00:00Z
"ben.zip" = 2026-10-15T20:00:00Z
"""


def hand_in(folder: Path, name: str, words: str) -> None:
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / name, "w") as archive:
        for path in graded_files(1):
            archive.writestr(path, words)
        archive.writestr("submission.json", json.dumps({"lesson": "1", "hints": {"1.3": 2}}))


@pytest.fixture(scope="module")
def class_(tmp_path_factory) -> Path:
    """Six submissions, two of which are refused, a roster and rules."""
    place = tmp_path_factory.mktemp("class")
    names = ("anna.zip", "anna-2.zip", "anna-3.zip", "ben.zip")
    for name, words in zip(names, WORDS, strict=True):
        hand_in(place / "in", name, words)
    (place / "in/=cmd|x.rar").write_bytes(b"Rar!\x1a\7")
    (place / "in" / "d\nora<script>").mkdir()
    (place / "in/.DS_Store").write_bytes(b"")
    (place / "roster.csv").write_bytes(b"\xef\xbb\xbf" + ROSTER.replace("\n", "\r\n").encode())
    (place / "rules.toml").write_text(RULES)
    return place


def words_for(place: Path, output: str, jobs: int = 2) -> list[str]:
    words = ["--lesson=1", f"--submissions={place / 'in'}", f"--output={place / output}"]
    more = [f"--roster={place / 'roster.csv'}", f"--rules={place / 'rules.toml'}"]
    return [sys.executable, "-c", COMMAND, *words, *more, f"--jobs={jobs}"]


def run(place: Path, output: str, jobs: int = 2) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words_for(place, output, jobs), cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def graded(class_) -> Path:
    done = run(class_, "out")
    assert done.returncode == 0, done.stderr
    assert "6 submissions, " in done.stdout and " an hour and core" in done.stdout
    assert sorted(line[:7] for line in done.stdout.splitlines()[:6])[0].startswith("1 of 6:")
    return class_ / "out"


def files_of(output: Path) -> dict[str, bytes]:
    """All that is not for going on."""
    paths = (path for path in output.rglob("*") if path.is_file())
    found = {str(path.relative_to(output)): path.read_bytes() for path in paths}
    return {name: data for name, data in found.items() if not name.startswith("work/")}


def table_of(output: Path) -> dict[str, dict[str, str]]:
    with (output / "grades.csv").open(newline="") as stream:
        return {row["submission"] or row["student"]: row for row in csv.DictReader(stream)}


def test_killed_and_run_again_it_is_the_same(class_, graded):
    """SIGKILL, when one more result is there, and again; then to the end."""
    results = class_ / "again/work/results"
    for count in (1, 3):
        process = subprocess.Popen(
            words_for(class_, "again"), cwd=ROOT, stdout=subprocess.DEVNULL, process_group=0
        )
        while process.poll() is None and len(list(results.glob("[!.]*.json"))) < count:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert not (class_ / "again/grades.csv").exists()
    before = {path.name: path.stat().st_mtime_ns for path in results.glob("[!.]*.json")}
    assert run(class_, "again").returncode == 0
    assert files_of(class_ / "again") == files_of(graded)
    kept = {path.name: path.stat().st_mtime_ns for path in results.glob("[!.]*.json")}
    assert before and before.items() <= kept.items()


def test_what_is_handed_in_again_is_graded_again(tmp_path, monkeypatch):
    hand_in(tmp_path / "in", "a.zip", "one")
    hand_in(tmp_path / "in", "b.zip", "one")
    results = tmp_path / "work/results"
    names = ("a.zip", "b.zip", "gone.zip")

    def done() -> set[str]:
        grade_class.write_jobs(1, tmp_path / "in", tmp_path / "work")
        return {path.stem for path in results.glob("*.json")}

    results.mkdir(parents=True)
    done()
    for name in names:
        (results / f"{name}.json").write_text("")
    assert done() == {"a.zip", "b.zip"}
    hand_in(tmp_path / "in", "a.zip", "one two")
    assert done() == {"b.zip"}
    monkeypatch.setenv("APPRENTICE_SECRET", "another")
    assert done() == set()


def test_table_of_grades(graded):
    table = table_of(graded)
    assert [row["status"] for row in table.values()].count("refused") == 2
    assert table["carla"]["status"] == "nothing" and table["carla"]["points"] == "0"
    first, second, third = (table[f"anna{n}.zip"] for n in ("", "-2", "-3"))
    assert [each["counts"] for each in (first, second, third)] == ["no", "yes", "no"]
    assert (second["days late"], second["before late days"], second["points"]) == ("1", "80", "72")
    assert third["why"] == "attempt 3, of 2"
    assert table["ben.zip"]["points"] == "80" and table["ben.zip"]["days late"] == "1"
    assert table["'=cmd|x.rar"]["why"].startswith("it is a RAR archive")
    assert sum(float(second[f"1.{n}"]) for n in "1234560MA") == 80


class Links(HTMLParser):
    """A page's links, and its tags."""

    def __init__(self) -> None:
        super().__init__()
        self.links, self.tags, self.text = [], set(), ""

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.links += [value for name, value in attrs if name in ("href", "src")]

    def handle_data(self, data):
        self.text += f" {data}"


def page(path: Path) -> Links:
    read = Links()
    read.feed(path.read_text())
    return read


def test_pages_open_from_a_folder_and_nothing_is_a_tag(graded):
    paths = [graded / "index.html", *(graded / "students").glob("*.html")]
    assert len(paths) == 7
    for path in paths:
        read = page(path)
        assert not {"script", "b", "Doe"} & read.tags
        for link in read.links:
            name, _, mark = link.partition("#")
            target = path.parent / name if name else path
            assert target.is_file() and (not mark or f'id="{mark}"' in target.read_text()), link


def test_page_of_a_student_has_a_reason_for_each_point(graded):
    (path,) = (graded / "students").glob("anna-3*")
    text = " ".join(page(path).text.split())
    assert "1.3 Formatted printing: 8 of 12 points lost" in text
    assert "expected It says two seen expected two, but there is <b>oneone</b> again" in text
    assert "make hint EX=1.3 LAYER=2" in text and "make replay TEST=test_two" in text
    assert "make grade EX=1.3 (the test itself, test_three, is the instructor's)" in text
    assert "make LESSON=1 measure" in text and "labs/lesson1/answers.toml" in text


def test_what_the_handout_replaces_is_not_called_unwritten():
    words = "exercise 1.3 is not written yet (labs/lesson1/README.md)"
    test = TestResult("1.3", "1.3", "t.py::test", "It is so", 1, True, False, words, "icount")
    score = Score(by_id("1.3"), (test,), ("serial.c does not compile: error",))
    (loss,) = losses(score)
    assert loss.seen.startswith("the handout's file is in place of yours") and loss.points == 12
    assert to_read(score).startswith("what is wrong with the files")
    assert losses(Score(by_id("1.3"), (test,)))[0].seen == words


def test_losses_are_what_is_missing():
    """Of tests that weigh nothing, too."""
    for weight in (0, 1, 3.3):
        tests = [
            TestResult(
                "1.3", "1.3", f"t.py::test{n}", "", w, n == 0, n < 2, f"no {n % 2}", "icount"
            )
            for n, w in enumerate((1, 2, weight, weight, weight))
        ]
        score = Score(by_id("1.3"), tuple(tests))
        found = losses(score)
        assert sum(each.points for each in found) == pytest.approx(12 - score.points, abs=0.02)
        assert [each.more for each in found] == [1, 0]


def test_page_of_the_class(graded):
    text = " ".join(page(graded / "index.html").text.split())
    assert "Submissions: 6, of which 2 are refused. Students with a grade: 2; without" in text
    assert "Dora <Doe>" in text and "70 to 80 1" in text and "80 to 90 1" in text
    assert "Handed in before it was due" in text and "1.3 Formatted printing 12 of 12 2 2 0" in text


def test_what_has_no_grade_is_told(class_, monkeypatch, capsys):
    monkeypatch.setattr(grade_class, "GRADE_ONE", "false")
    monkeypatch.setattr(grade_class, "build_reference", lambda *_: None)
    words = words_for(class_, "none")[3:]
    assert in_a_line("x", lambda: grade_class.main(words)) == 1
    assert capsys.readouterr().err == "x: 6 of 6 have no grade yet, as =cmd|x.rar: run it again\n"

    def missing() -> None:
        raise SandboxUnavailable("no box: do this")

    monkeypatch.setattr(grade_class.sandbox, "require", missing)
    assert in_a_line("x", lambda: grade_class.main(words)) == 1
    assert capsys.readouterr().err == "x: no box: do this\n"


@pytest.mark.parametrize("words", [("", "x"), ("x", ""), (".", "x")])
def test_a_class_that_is_nowhere_is_told(words, capsys):
    """make hands down a variable that nobody has set as an empty word."""
    given = [
        f"--{name}={word}" for name, word in zip(("submissions", "output"), words, strict=True)
    ]
    assert in_a_line("x", lambda: grade_class.main(["--lesson=1", *given])) == 1
    assert capsys.readouterr().err.startswith("x: say where: make grade-class LESSON=1 SUBM")


def test_a_class_without_submissions_is_told(tmp_path):
    (tmp_path / "__MACOSX").mkdir()
    with pytest.raises(CommandError, match="is empty: a folder, a zip or a tar each"):
        submissions_in(tmp_path)


def test_names_of_files_are_of_plain_letters():
    names = [
        "a b",
        "a\nb",
        "ä",
        "a%b",
        "~a",
        ".a",
        "..",
        "$(x)",
        "a" * 300,
        "a" * 299 + "b",
        "\udce4",
    ]
    made = [file_name(each) for each in names]
    assert len(set(made)) == len(names) and max(map(len, made)) <= 80
    assert all(set(each) <= set("abcdefghijklmnopqrstuvwxyzABCDEF0123456789+._-") for each in made)
    assert not any(each.startswith(".") for each in made)


# ---- the files of data ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("anna.zip", "anna"),
        ("ANNA-2.tar.gz", "anna"),
        ("annabel.zip", "annabel"),
        ("Ann Example_4711_assignsubmission_file", "anna"),
        ("team7-x", "carla"),
        ("annalisa.zip", None),
    ],
)
def test_whose_a_submission_is(name, owner):
    roster = [Student("anna", "Ann Example"), Student("annabel"), Student("carla", "", "team7")]
    found = owner_of(name, roster)
    assert (found.id if found else None) == owner
    assert owner_of("eva@2.zip", []) == Student("eva")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name\nx\n", 'its first line is to be "id,name"'),
        ("id,name\na,x\na,y\n", ":3: a is there twice"),
        ("id,name\n,x\n", ":2: there is no id"),
        ("id,name\na,Muster, Anna\n", ":2: it has more columns"),
        ("id,name\n\udce4,x\n", "not UTF-8, byte 8 of it"),
    ],
)
def test_a_roster_that_is_wrong_is_a_line(tmp_path, text, words):
    (tmp_path / "r.csv").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(CommandError, match=r"^ROSTER=") as error:
        read_roster(tmp_path / "r.csv")
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[lesson.1]\ndue = 2026-10-14T23:59:00", "due is to be a time with its zone"),
        ("[lesson.1]\ndue = 2026-10-14", "due is to be a time with its zone"),
        ("[lesson.1]\nlate = 1", "there is no rule late"),
        ("[lesson.1]\ncost = -1", "cost is to be a number from 0"),
        ("[lesson.1]\ncost = '1'", "cost is to be a number from 0"),
        ("[lesson.1]\ncounts = 'first'", 'counts is "last" or "best"'),
        ("lesson = 1", "1 is to be a table"),
        ("free = 1", "there is no rule free"),
        ("[", "r.toml: "),
    ],
)
def test_rules_that_are_wrong_are_a_line(tmp_path, text, words):
    (tmp_path / "r.toml").write_text(text)
    with pytest.raises(CommandError, match=r"^RULES=") as error:
        read_rules(tmp_path / "r.toml", 1)
    assert words in str(error.value)


def test_late_days_are_counted_as_they_begin():
    due = datetime(2026, 10, 14, 12, tzinfo=UTC)
    hours = {"a": 0, "b": 1, "c": 24, "d": 25, "e": 72, "f": 73}
    came = {name: due.replace(day=14 + h // 24, hour=12 + h % 24 % 12) for name, h in hours.items()}
    rules = Rules(due, late_days=3, cost=20, free_days={"x": 1}, handed_in=came)
    assert [rules.days_late(name) for name in "abcdef"] == [0, 1, 1, 2, 3, 4]
    assert [rules.share(name, "") for name in "abcdefg"] == [1, 0.8, 0.8, 0.6, 0.4, 0, 1]
    assert [rules.share(name, "x") for name in "abf"] == [1, 1, 0.4]


def test_no_cell_is_a_formula():
    assert [cell(text) for text in ("=1", "+1", "-1", "@x", "a=1", "")] == [
        "'=1", "'+1", "'-1", "'@x", "a=1", "",
    ]  # fmt: skip


def test_snakemake_does_the_same_jobs(class_, graded):
    """On this machine's processors, where make snakemake has installed it."""
    if not (ROOT / "build/snakemake/bin/snakemake").exists():
        pytest.skip("Snakemake is not installed: make snakemake")
    done = subprocess.run(
        [*words_for(class_, "cluster"), "--cluster=local"], cwd=ROOT, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert files_of(class_ / "cluster") == files_of(graded)


def test_a_cluster_without_snakemake_is_told(monkeypatch):
    monkeypatch.setattr(grade_class.shutil, "which", lambda *_, **__: None)
    with pytest.raises(CommandError, match="make snakemake installs it"):
        grade_class.snakemake("slurm", 2)


@pytest.mark.parametrize("cluster", ["slurm", "kubernetes"])
def test_each_clusters_plugin_is_pinned(cluster):
    """With all that it needs beside Snakemake's own; make installs that list."""
    setup = ROOT / "labs/tools/setup"
    lines = (setup / f"requirements-{cluster}.txt").read_text().splitlines()
    names = [line.partition("==")[0] for line in lines if line[:1] not in ("", "#", "-")]
    assert f"snakemake-executor-plugin-{cluster}" in names
    assert all("==" in line for line in lines if line[:1] not in ("", "#", "-"))
    common = (setup / "requirements-cluster.txt").read_text()
    assert not [name for name in names if f"\n{name}==" in common]
    words = ["make", "-n", "snakemake", f"CLUSTER={cluster}"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert f"requirements-{cluster}.txt" in done.stdout

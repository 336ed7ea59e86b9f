"""What students read, in the language of their shell: complete, not stale, and nothing else."""

# ruff: noqa: RUF001 (Chinese has its own commas and colons)

from __future__ import annotations

import json
import re
from functools import cache

import pytest

from labs.tools.course import hint
from labs.tools.course.exercises import ROOT, load, name_of
from labs.tools.grading.grade_report import Score, gradescope, scores_of, text_report
from labs.tools.grading.grade_words import own_report
from labs.tools.grading.test_run import TestResult
from labs.tools.machine import language

MESSAGES = ROOT / "labs/locale/zh_CN/messages"
GOLDEN = sorted((ROOT / "tests/mistakes/golden").glob("*.txt"))
HANZI = re.compile(r"[\u4e00-\u9fff]")
TABLE = re.compile(r"\S.* (?:\d+/\d+|hidden) .* of |total .* of |exercise +tests +points$")
SAME = re.compile(r"\S+\.c:N: error: |\d+  FLUSH$")  # a compiler's words, and names
SOURCES = ("labs/tools/grading", "labs/tools/course", "labs/tools/machine", "tests/support")
KERNEL = ("kernel/report/panic.c", "kernel/cpu/trap.c", "kernel/task/task.c")
CONTINUED = re.compile(r'"\n\s*f?"')
TYPED = ("next: ", "help: ", "replay: ")
QUOTED = re.compile(
    r"'[^']*'|\"[^\"]*\"|`[^`]*`|实际为.(?:seekrw|Inode).*|\[[^]]*\]"
)  # of programs
ENGLISH = re.compile(r"(?:\b[a-z]{2,} ){3}[a-z]{2,}")
LEAST = 6  # letters of a piece of a message that is looked for


@pytest.fixture
def chinese(monkeypatch):
    monkeypatch.delenv("LC_ALL", raising=False)
    monkeypatch.setenv("LANGUAGE", "zh_CN.UTF-8")


def is_prose(paragraph: str) -> bool:
    """Whether a paragraph of a hint has a line that is neither code nor a drawing."""
    return any(line and not line.startswith(("\t", " ")) for line in paragraph.split("\n"))


def hint_messages(lesson: int) -> set[str]:
    """The titles of a lesson's exercises, and the paragraphs of their hints."""
    own = [each for each in load() if each.lesson == lesson]
    texts = [text.strip("\n").split("\n\n") for each in own for text in each.hints]
    return {each.title for each in own} | {p for text in texts for p in text if is_prose(p)}


@cache
def in_chinese() -> dict[str, dict[str, str]]:
    """The messages by file."""
    return {path.stem: language.messages_of(path) for path in MESSAGES.glob("*.po")}


@pytest.mark.parametrize("lesson", range(1, 8))
def test_hints_are_translated(lesson):
    """In the files of their lesson or of an earlier one: a student's tree has no later ones."""
    known = set().union(*(in_chinese()[name_of(each)] for each in range(1, lesson + 1)))
    assert hint_messages(lesson) - known == set(), "without a translation"


def lines_of_students() -> list[str]:
    """What `make grade` says after each usual mistake; without what is no sentence."""
    found = {line.strip() for path in GOLDEN for line in path.read_text().splitlines()}
    own = {f"{each.id} {each.title}" for each in load()}
    return sorted(
        each
        for each in found - own
        if each and not (each.startswith("=") or TABLE.match(each) or SAME.match(each))
    )


def test_what_the_grader_says_is_translated(chinese):
    lines = lines_of_students()
    assert len(lines) > 1000
    assert [each for each in lines if not HANZI.search(language.told(each))] == []
    sentences = [each for each in lines if not each.startswith(TYPED)]
    left = [each for each in sentences if ENGLISH.search(QUOTED.sub("", language.told(each)))]
    assert left == [], "a part of it has no translation"
    causes = [each for each in lines if each.startswith("usually: ")]
    known = language.catalogue("zh_CN").exact
    assert [each for each in causes if each.removeprefix("usually: ") not in known] == []


def test_no_message_is_stale():
    """Each is a hint's or a title, is said after a usual mistake, or is in a source in pieces."""
    hints = set().union(*map(hint_messages, range(1, 8)))
    golden = "\n".join(lines_of_students())
    written = said_by_sources()
    for name, messages in in_chinese().items():
        for message in messages.keys() - hints:
            pieces = re.split(language.FIELD, message.replace("\n", "\\n"))[::2]
            long = [each for each in pieces if len(each.strip()) >= LEAST] or [max(pieces, key=len)]
            found = message in golden or all(each in golden or each in written for each in long)
            assert found, (name, message)


def said_by_sources() -> str:
    """The text of programs, strings that go on in the next line joined, and of the kernel."""
    paths = [path for folder in SOURCES for path in (ROOT / folder).rglob("*.py")]
    programs = CONTINUED.sub("", "\n".join(path.read_text() for path in paths))
    kernel = [(ROOT / path).read_text() for path in KERNEL]
    return "\n".join([programs, *kernel])


def test_fields_of_a_message_are_those_of_its_translation():
    for messages in in_chinese().values():
        for message, string in messages.items():
            asked, given = (sorted(language.FIELD.findall(each)) for each in (message, string))
            assert asked == given or not asked, message


def test_a_hint_in_chinese(chinese):
    exercise = next(each for each in load() if each.id == "1.3")
    page = hint.page(exercise, 1, False)
    assert page.startswith("练习 1.3，格式化输出：kernel/lib/format.c")
    assert "要让它工作，先要有 1.2。" in page and "先写 drivers/console/serial.c：" in page
    assert "还有 3 层" in page


def some_scores() -> list[Score]:
    """Of an exercise that fails."""
    words = "EDI: expected 0, seen 1\n  usually: the stack grows down, so ESP begins at"
    failed = TestResult("", "1.2", "tests/x.py::test_a", "", 1, False, False, words, "tcg")
    return scores_of([each for each in load() if each.id == "1.2"], [failed])


def test_a_report_in_chinese_and_files_in_english(chinese, monkeypatch):
    """What programs read is the same in every language."""
    scores = some_scores()
    seen, files = own_report(scores), (gradescope(scores, "7"), text_report(scores))
    assert "test_a：EDI：应为 0，实际为 1" in seen and "提示：make hint EX=1.2" in seen
    assert {language.columns(line) for line in seen.splitlines()[:3]} == {57}
    monkeypatch.setenv("LC_ALL", "C")
    plain = own_report(scores)
    assert not HANZI.search(plain) and plain.startswith("exercise     ")
    assert (gradescope(scores, "7"), text_report(scores)) == files
    assert json.loads(files[0])["tests"][0]["output"].endswith("EDI: expected 0, seen 1")


@pytest.mark.parametrize(
    ("variables", "asked"),
    [
        ({"LANG": "zh_CN.UTF-8"}, ["zh_CN"]),
        ({"LANG": "de_DE.UTF-8", "LANGUAGE": "zh_CN:en"}, ["zh_CN", "en"]),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, []),
        ({"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "en_US.UTF-8"}, ["en_US"]),
        ({}, [""]),
    ],
)
def test_languages_of_a_shell(variables, asked):
    assert language.languages(variables) == asked


def test_fields_lines_and_columns(monkeypatch):
    messages = {"{what}: expected {a}, seen {b}": "{what}：应为 {a}，实际为 {b}", "a bit": "一位"}
    messages["next: {step}"] = "下一步：{step}"
    catalogue = language.Catalogue(messages)
    monkeypatch.setattr(language, "chosen", lambda: catalogue)
    text = "a bit: expected 1, seen 2\n    next: a bit\n\nanything else"
    assert language.told(text) == "一位：应为 1，实际为 2\n    下一步：一位\n\nanything else"
    assert language.columns("一位 1") == 6
    assert (language.left("一", 4), language.right("一", 4)) == ("一  ", "  一")

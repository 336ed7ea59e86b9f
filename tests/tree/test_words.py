"""What a student reads is in the field's words, and the glossary has them."""

from __future__ import annotations

import re

import pytest

from tests.support import words

ROOT = words.ROOT
GLOSSARY = ROOT / "labs" / "glossary.md"
ROW = re.compile(r"^\| (.*?) \|$", re.MULTILINE)
HANZI = re.compile(r"[\u4e00-\u9fff]")
HOW = "\nThe field's word instead, please; python -m tests.support.words FILE lists a file's."


def rows() -> list[list[str]]:
    """The entries of the glossary, each as its columns."""
    found = [row.split(" | ") for row in ROW.findall(GLOSSARY.read_text(encoding="utf-8"))]
    return [row for row in found if row[0] != "term"]


def test_no_private_words() -> None:
    found = [str(each) for name in words.seen() for each in words.findings(name)]
    if found:
        pytest.fail("\n" + "\n".join(found) + HOW, pytrace=False)


@pytest.mark.parametrize(
    ("name", "text", "refused"),
    [
        ("kernel/a.c", "/* The handler of IRQ 12 sends an EOI. */ int behind;", []),
        ("kernel/a.c", "/* What lies\n * behind it. */", ["lies", "behind"]),
        ("kernel/a.c", 'panic("a task shall"\n      " not");', ["shall"]),
        ("kernel/a.c", 'f("it waits,"\n  " for nobody is there");', [", for nobody is"]),
        ("boot/a.asm", "stands: mov eax, 1 ; it stands here", ["stands"]),
        ("labs/a/README.md", "```c\nlies\n```\nA `lie` is\n```console\n$ x\nanew\n```\n", ["anew"]),
        ("labs/tools/a.py", 'behind = 1\nprint("parted by ;")  # mended', ["mended", "parted by"]),
        ("labs/a.svg", "<title>hangs on</title><text x='behind'>END</text>", ["hangs on"]),
        ("kernel/a.c", "/* Waits, for the timer may be off. PIC stands for it. */", 1),
        ("kernel/a.c", "/* With interrupts\n * off; one interrupts on the way. */", 1),
        ("kernel/a.c", "/* Interrupts are on again: it switches interrupts off. */", 2),
        ("labs/a/README.md", "Who sleeps a lot stays. Who sleeps?", 1),
        ("labs/a/README.md", "- Who gets a file gives it back.\n- Who has it?\n", 1),
        (
            "mm/a.c",
            "/* It is no page; there is no page; it is no longer a page. */",
            ["is no page"],
        ),
        (
            "mm/a.c",
            "/* So many bytes, so many that it wraps, across a border. */",
            ["So many", "border"],
        ),
        ("labs/tools/a.py", '"""It is no page."""', []),
        (
            "mm/a.c",
            "/* It gives the processor\n * away each 10 ms. */",
            ["gives the processor away", "each 10 ms"],
        ),
        ("mm/a.c", "/* Only in an own space, each of the ten. */", ["an own"]),
        ("kernel/a.c", "/* Between the look and the sleep. */", ["the look"]),
    ],
)
def test_finds_private_words(name: str, text: str, refused: list[str] | int) -> None:
    found = words.in_text(name, text)
    if isinstance(refused, int):
        assert len(found) == refused
    else:
        assert [each.text for each in found] == refused


def test_glossary_has_three_columns() -> None:
    entries = rows()
    assert 80 <= len(entries) <= 180
    for entry in entries:
        assert len(entry) == 3 and all(entry), entry
        assert HANZI.search(entry[1]) and not HANZI.search(entry[0] + entry[2]), entry
    terms = [entry[0] for entry in entries]
    assert len(set(terms)) == len(terms), "a term has two entries"


def test_glossary_terms_are_used() -> None:
    """Each in some text of the course; hyphens, blanks and an s at the end do not matter."""
    plain = re.compile(r"[\s-]+")
    read = [name for name in words.seen() if name != "labs/glossary.md"]
    used = plain.sub(
        " ", " ".join(words.texts(n, (ROOT / n).read_text(errors="replace")) for n in read)
    )
    used = used.lower()
    unused = [
        t for t, _, _ in rows() if not re.search(rf"\b{re.escape(plain.sub(' ', t.lower()))}", used)
    ]
    assert not unused, f"no text of the course uses {unused}"


def test_opening_sentences_name_their_file() -> None:
    """Tables of the handouts show them by themselves: a thing, not a clause of what it does."""
    wrong = re.compile(r"^(?:/\*\n \* |/\* |; )(?:What|Who|Whose)\b")
    folders = ("boot/", "drivers/", "fs/", "kernel/", "mm/", "user/", "labs/")
    names = [name for name in words.seen() if name.startswith(folders)]
    texts = {n: (ROOT / n).read_text(errors="replace") for n in names if n[-2:] in (".c", ".h")}
    assert len(texts) > 300
    assert not [name for name, text in texts.items() if wrong.match(text)]


NO_TERMS = {
    *("before anything is written", "function calling sequence", "magazines and vmem"),
    *("pc hardware", "the boot loader", "limited direct execution"),
    *("interrupt and exception handling", "switching to protected mode"),
    *(
        "the art of computer programming",
        "core part",
        "going back in time",
        "full part",
        "skim",
        "ignore",
        "loses",
        "gains",
    ),
    "at the store",
}
"""What handouts print in italics besides terms: titles, and words that are stressed."""


@pytest.mark.parametrize("lesson", range(1, 7))
def test_new_terms_are_in_the_glossary(lesson):
    """Each term in italics, in its singular too: the handout says that it is there."""
    glossary = (ROOT / "labs/glossary.md").read_text().lower()
    terms = set(re.findall(r"^\| ([^|]+?) \|", glossary, re.MULTILINE)) | NO_TERMS
    text = (ROOT / f"labs/lesson{lesson}/README.md").read_text()
    found = {each.lower() for each in re.findall(r"\*([a-zA-Z][a-zA-Z '-]{2,40})\*", text)}
    assert {each for each in found if each not in terms and each.removesuffix("s") not in terms
            and not re.search(rf"\b{re.escape(each)}\b", glossary)} == set()  # fmt: skip


INCLUDED = re.compile(r"^```\{literalinclude\} (\S+)\n((?::.*\n)*)```$", re.MULTILINE)
NO_CODE = re.compile(r"""'(?:[^'\\]|\\.)'|"(?:[^"\\\n]|\\.)*"|/\*.*?\*/|//[^\n]*""", re.DOTALL)


def excerpts(page, folder):
    """Path and text of each excerpt from C."""
    for path, options in INCLUDED.findall(page):
        if not path.endswith((".c", ".h")):
            continue
        told = {name: text.strip('"') for name, text in re.findall(r":([\w-]+): (.+)", options)}
        lines = (folder / path).resolve().read_text(encoding="utf-8").split("\n")
        begin = next(n for n, line in enumerate(lines) if told["start-at"] in line)
        end = len(lines)
        for name, more in (("end-at", 1), ("end-before", 0)):
            if name in told:
                later = range(begin + 1 - more, len(lines))
                end = next(n for n in later if told[name] in lines[n]) + more
        yield path, "\n".join(lines[begin:end])


def open_braces(text):
    """By how many of them an excerpt does not balance, whatever its strings and comments say."""
    code = NO_CODE.sub("", text)
    return sum(abs(code.count(one) - code.count(other)) for one, other in ("{}", "()", "[]"))


@pytest.mark.parametrize(
    "page",
    [*ROOT.glob("slides/*.md"), *ROOT.glob("labs/*/README.md")],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_an_excerpt_is_whole(page):
    """Not a function or a structure without its end: its braces balance."""
    wrong = [
        (path, text.partition("\n")[0])
        for path, text in excerpts(page.read_text(encoding="utf-8"), page.parent)
        if open_braces(text) and (page.stem, path) not in CUT
    ]
    assert wrong == []


CUT = {("storage", "../drivers/disk/ata_wait.c"), ("storage", "../fs/cache/direct.c")}
"""Excerpts that end early on purpose: the rest does not matter to their page."""


def test_an_excerpt_that_is_cut_is_found():
    assert open_braces("if (a) {\n\tf('{', \"}\"); /* } */") == 1
    assert open_braces("if (a) {\n\tf('{');\n}") == 0

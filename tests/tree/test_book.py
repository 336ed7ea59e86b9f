"""The book: handouts, storage lab, glossary; as pages, as a PDF, as an EPUB, as plain Markdown."""

from __future__ import annotations

import re
import zipfile
from html import unescape
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

from labs.tools.course import book
from labs.tools.course import drawings as shown
from slides.pdf import browser
from tests.support.building import WHOLE, shared_folder
from tests.support.paper import tags
from tests.tree.test_handouts import INCLUDE, LESSONS, ROOT, handout

pytestmark = pytest.mark.slow

pytest.importorskip("sphinx_markdown_builder")
CHAPTERS = [f"lesson{number}" for number in LESSONS] + ["storage"]
CHINESE = ROOT / "labs/locale/zh_CN/LC_MESSAGES"
CODE = re.compile(r"`[^`]+`")
HANZI = re.compile(r"[\u4e00-\u9fff]")
DRAWING = re.compile(r"!\[(.+?)\]\((drawings/\w+\.svg)\)", re.DOTALL)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The book as Sphinx writes it; every warning is an error."""
    return shared_folder(tmp_path_factory, "book", lambda place: book.make_book(place) and None)


def source(chapter: str) -> str:
    return (ROOT / "labs" / chapter / "README.md").read_text()


def drawings(chapter: str) -> list[str]:
    return [path for _, path in DRAWING.findall(source(chapter))]


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_handout_as_a_page(out: Path, lesson: int) -> None:
    """With its drawings and its excerpts."""
    page = (out / f"html/lesson{lesson}/README.html").read_text()
    assert page.count("<img") >= len(drawings(f"lesson{lesson}")) >= 5
    assert page.count('class="highlight') >= len(INCLUDE.findall(handout(lesson))) >= 5


LINK = re.compile(
    r'<a class="drawing (only-light|only-dark)[^>]* href="([^"]+)"[^>]*>\s*<img alt="([^"]+)"[^>]* '
    r'src="([^"]+)" />'
)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_drawings_on_a_page(out: Path, chapter: str) -> None:
    """Each twice, for a light page and for a dark one, as a link to the drawing itself; its text is
    what the drawing says of itself."""
    page = out / f"html/{chapter}/README.html"
    links = LINK.findall(page.read_text())
    assert len(links) == 2 * len(drawings(chapter))
    for kind, target, text, source in links:
        assert target == source and source.endswith(".dark.svg") == (kind == "only-dark")
        drawing = (page.parent / source).read_text()
        assert unescape(text) == shown.said(drawing)
        assert ("#ffffff" in drawing) == (kind == "only-light")


@pytest.mark.parametrize("lesson", LESSONS)
def test_background_explains(lesson: int) -> None:
    """In paragraphs, at least as long as a class talks about it; the files come last, folded."""
    text = handout(lesson)
    told = text.partition("## Background")[2].partition("\n## ")[0]
    prose = re.sub(r"```.*?```", "", told, flags=re.DOTALL)
    prose = re.sub(r"^[|!#].*$", "", prose, flags=re.MULTILINE)
    assert 2000 < len(prose.split()) < 4000
    assert not re.search(r"^\d+\. ", prose, re.MULTILINE)
    last = text.rpartition("\n## ")[2]
    assert last.startswith("The files of this lesson") and "<details>" in last


@pytest.mark.skipif(not browser(), reason="needs chromium (apt-get install chromium)")
def test_on_paper(out: Path) -> None:
    """Tagged, in its language, with a title, an outline, and a text for each drawing."""
    pypdf = pytest.importorskip("pypdf")
    paper = pypdf.PdfReader(out / "apprentice.pdf")
    root = paper.trailer["/Root"]
    assert paper.metadata.title.startswith("Apprentice") and root["/Lang"] == "en"
    assert root["/MarkInfo"]["/Marked"] and root["/ViewerPreferences"]["/DisplayDocTitle"]
    found = [*tags(root["/StructTreeRoot"])]
    texts = [text for kind, text in found if kind == "/Figure"]
    assert len(texts) == sum(len(drawings(each)) for each in CHAPTERS) and all(texts)
    assert {"/H1", "/H2", "/H3", "/P", "/Table", "/TH", "/Code"} <= {kind for kind, _ in found}
    titles = [each.title for part in paper.outline for each in part if not isinstance(each, list)]
    lessons = [title for title in titles if title.startswith("Lesson")]
    assert len(lessons) == 6 and lessons[5] == "Lesson 6: Virtual memory"
    folded = (out / "singlehtml/index.html").read_text()
    assert "<details>" not in folded and folded.count("<details open>") > 30


@pytest.mark.skipif(not (WHOLE and browser()), reason="make check-book, with chromium")
def test_on_paper_in_chinese(tmp_path: Path) -> None:
    """The same, and each drawing's text is Chinese."""
    pypdf = pytest.importorskip("pypdf")
    book.make_book(tmp_path, "zh_CN")
    paper = pypdf.PdfReader(tmp_path / "apprentice.pdf")
    root = paper.trailer["/Root"]
    assert HANZI.search(paper.metadata.title) and root["/Lang"].startswith("zh")
    assert root["/MarkInfo"]["/Marked"] and root["/ViewerPreferences"]["/DisplayDocTitle"]
    texts = [text for kind, text in tags(root["/StructTreeRoot"]) if kind == "/Figure"]
    assert len(texts) == sum(len(drawings(each)) for each in CHAPTERS)
    assert all(text and HANZI.search(text) for text in texts)


def test_as_an_epub(out: Path) -> None:
    with zipfile.ZipFile(out / "apprentice.epub") as file:
        names = file.namelist()
        assert file.testzip() is None and names[0] == "mimetype"
        assert file.read("mimetype") == b"application/epub+zip"
    chapters = {f"{each}/README.xhtml" for each in CHAPTERS}
    assert chapters <= set(names)
    assert sum(name.endswith(".svg") for name in names) >= sum(len(drawings(c)) for c in CHAPTERS)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_as_plain_markdown(out: Path, chapter: str) -> None:
    """Its excerpts are in it, and its drawings are beside it."""
    folder = out / "markdown" / chapter
    page = (folder / "README.md").read_text()
    assert "literalinclude" not in page
    for path, options in INCLUDE.findall(source(chapter)):
        start = re.search(r':start-at: "(.+)"', options)[1]
        assert start in page, path
    assert {path for _, path in DRAWING.findall(page)} == set(drawings(chapter))
    assert all((folder / path).is_file() for path in drawings(chapter))


# ---- in Chinese ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def templates(out: Path) -> Path:
    """The texts to translate."""
    return book.sphinx("gettext", out, (), read="read-gettext")


def test_all_pages_are_translated(templates: Path) -> None:
    asked = {path.relative_to(templates).with_suffix(".po") for path in templates.rglob("*.pot")}
    assert {Path(f"{each}/README.po") for each in CHAPTERS} <= asked
    assert asked == {path.relative_to(CHINESE) for path in CHINESE.rglob("*.po")}


@pytest.mark.parametrize(
    "path", sorted(CHINESE.rglob("*.po")), ids=lambda p: p.parent.name + p.stem
)
def test_the_translation_is_whole(templates: Path, path: Path) -> None:
    """Each text as it is now; what is not Chinese is a name, a number, or a file's first line. Code
    alone is the same in all languages."""
    template = templates / path.relative_to(CHINESE).with_suffix(".pot")
    asked = {str(m.id) for m in read_po(template.open("rb")) if m.id}
    given = {str(m.id): m for m in read_po(path.open("rb")) if m.id}
    code = {text for text in asked if not re.search("[A-Za-z]", CODE.sub("", text))}
    assert not asked - code - given.keys(), "without a translation"
    assert not given.keys() - asked, "not in the handout any more"
    for text, message in given.items():
        assert message.string and not message.fuzzy, text
        assert HANZI.search(message.string) or message.string == text, text


def test_the_chapters_in_chinese(out: Path) -> None:
    """Codes are as many as in the English text; Sphinx finds each link and each drawing (this with
    WHOLE, since it takes a quarter of a minute; make book LANGUAGE=zh_CN does, too)."""
    if WHOLE:
        book.sphinx("dummy", out, ("-D", "language=zh_CN"), read="read-chinese")
    for path in CHINESE.rglob("*.po"):
        for message in read_po(path.open("rb")):
            codes, told = (CODE.findall(str(text)) for text in (message.id, message.string))
            assert len(told) == len(codes), message.id

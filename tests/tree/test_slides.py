"""The slides build without a warning, show real code and no solutions, and need no network."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

from labs.storage.experiments import x14_account
from labs.storage.experiments.trees import expected
from labs.storage.report import PUBLISHED
from tests.support import slide_sizes
from tests.support.building import shared_folder

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SLIDES = ROOT / "slides"
DECKS = sorted(path.stem for path in SLIDES.glob("*.md") if path.stem != "README")
CHINESE = SLIDES / "locale/zh_CN/LC_MESSAGES"
HANZI = re.compile(r"[\u4e00-\u9fff]")
EXCERPT = re.compile(r"^```\{literalinclude\} (\S+)\n((?::.*\n)*)```$", re.MULTILINE)
SOLUTION = re.compile(r"SOLUTION S?\d+(?:\.\d+)? \{[^\n]*\n(.*?)\} SOLUTION", re.DOTALL)
SLIDES_AT_LEAST = 12
SIZES = "sizes.json"


class Deck(HTMLParser):
    """What a built deck holds: the titles of its slides, its excerpts, what it refers to, its text,
    and how many parts of it appear with a key."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.titles: list[str] = []
        self.excerpts: list[str] = []
        self.references: list[str] = []
        self.text = ""
        self.hidden = 0
        self._texts: list[str] | None = None  # where text goes now
        self._in_pre = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.references += [value for name, value in attrs if name in ("src", "href") and value]
        self.hidden += "fragment" in (dict(attrs).get("class") or "").split()
        self._in_pre |= tag == "pre"
        if tag in ("h1", "h2"):
            self._texts = self.titles
        elif tag == "code" and self._in_pre:
            self._texts = self.excerpts
        else:
            return
        self._texts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_pre &= tag != "pre"
        if tag in ("h1", "h2", "pre"):
            self._texts = None

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._texts is not None:
            self._texts[-1] += data


def sphinx(
    source: Path, target: Path, builder: str = "revealjs", options: tuple[str, ...] = ()
) -> subprocess.CompletedProcess:
    """Builds the slides in `source`; a warning is an error."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", builder]
    command += ["-d", str(target.parent / f"{target.name}-doctrees"), *options]
    command += [str(source), str(target)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the built decks, which the processes of a run have together."""
    return decks_in(tmp_path_factory, "slides")


@pytest.fixture(scope="module")
def chinese(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same in Chinese."""
    return decks_in(tmp_path_factory, "slides-zh", ("-D", "language=zh_CN"))


def decks_in(factory: pytest.TempPathFactory, name: str, options: tuple[str, ...] = ()) -> Path:
    """Builds the decks, and has a browser say how large their slides are."""

    def fill(place: Path) -> None:
        done = sphinx(SLIDES, place / "html", options=options)
        assert done.returncode == 0, done.stderr
        if slide_sizes.browser():
            found = slide_sizes.sizes([place / "html" / f"{deck}.html" for deck in DECKS])
            (place / "html" / SIZES).write_text(json.dumps(found))

    return shared_folder(factory, name, fill) / "html"


def deck_of(built: Path, name: str) -> Deck:
    return Deck((built / f"{name}.html").read_text(encoding="utf-8"))


def source_of(name: str) -> str:
    return (SLIDES / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", DECKS)
def test_a_deck_has_its_slides(built, name):
    titles = re.findall(r"^##? (.+)$", EXCERPT.sub("", source_of(name)), re.MULTILINE)
    assert [title.strip() for title in deck_of(built, name).titles] == titles
    assert name == "index" or len(titles) >= SLIDES_AT_LEAST


@pytest.mark.parametrize("name", DECKS)
def test_excerpts_show_code(built, name):
    """Each in its place, longer than two lines, and short enough to be read from the last row."""
    excerpts = deck_of(built, name).excerpts
    assert len(excerpts) == len(EXCERPT.findall(source_of(name)))
    for excerpt in excerpts:
        lines = excerpt.strip("\n").split("\n")
        assert 3 <= len(lines) <= 24, excerpt
        assert max(len(line.expandtabs(8)) for line in lines) <= 100, excerpt


@pytest.mark.skipif(not slide_sizes.browser(), reason="needs chromium (apt-get install chromium)")
@pytest.mark.parametrize("language", ["built", "chinese"])
@pytest.mark.parametrize("name", DECKS)
def test_slides_fit_on_the_wall(name, language, request):
    """Each as chromium lays it out, with all of its code."""
    decks = request.getfixturevalue(language)
    found = json.loads((decks / SIZES).read_text())[name]
    assert len(found) == len(deck_of(decks, name).titles)
    for title, height, width in found:
        assert height <= slide_sizes.HEIGHT, f"{name}: {title}: {height} of {slide_sizes.HEIGHT} px"
        assert width <= slide_sizes.WIDTH, f"{name}: {title}: {width} of {slide_sizes.WIDTH} px"


@pytest.mark.skipif(not slide_sizes.browser(), reason="needs chromium (apt-get install chromium)")
def test_a_slide_that_is_too_full_is_found(tmp_path):
    (tmp_path / "conf.py").write_text((SLIDES / "conf.py").read_text())
    shutil.copytree(SLIDES / "static", tmp_path / "static")
    code = "\n".join(f"line {number}" for number in range(30))
    (tmp_path / "index.md").write_text(f"# A\n\n## Full\n\n```text\n{code}\n```\n\n## Empty\n")
    assert sphinx(tmp_path, tmp_path / "html").returncode == 0
    _, full, empty = slide_sizes.sizes([tmp_path / "html" / "index.html"])["index"]
    assert full[1] > slide_sizes.HEIGHT > empty[1]


@pytest.mark.parametrize("name", DECKS)
def test_no_excerpt_shows_a_solution(built, name):
    """Students see the slides. Lines that say nothing (braces, a lone `cli`) may be anywhere."""
    shown = {line.strip() for text in deck_of(built, name).excerpts for line in text.split("\n")}
    for path, _ in EXCERPT.findall(source_of(name)):
        source = (SLIDES / path).read_text(encoding="utf-8")
        solutions = SOLUTION.findall(source)
        assert len(solutions) == source.count("} SOLUTION"), f"{path}: its marks do not pair"
        for solution in solutions:
            lines = {line.strip() for line in solution.split("\n") if len(line.strip()) >= 16}
            assert lines, f"{path}: a solution without a line to look for"
            assert not lines & shown, f"{path}: {lines & shown}"


def test_excerpts_say_where_they_come_from():
    for name in DECKS:
        for path, options in EXCERPT.findall(source_of(name)):
            assert path.removeprefix("../") in options, f"{name}: {path} has no caption"


@pytest.mark.parametrize("name", DECKS)
def test_nothing_comes_from_the_network(built, name):
    """Every reference is a file of the build, and so is what the style sheets load."""
    references = [reference.split("?")[0] for reference in deck_of(built, name).references]
    local = [built / reference for reference in references if not reference.startswith("#")]
    for path in local:
        assert path.is_file(), f"{name}: {path.relative_to(built)}"
    assert len([path for path in local if path.suffix == ".css"]) >= 3
    styles = [path for path in local if path.suffix == ".css"]
    while styles:
        style = styles.pop()
        for address in re.findall(r"url\(['\"]?([^)'\"]+)", style.read_text(encoding="utf-8")):
            if address.startswith("data:"):
                continue
            path = style.parent / re.split(r"[?#]", address)[0]
            assert path.is_file(), f"{style.name}: {address}"
            if path.suffix == ".css":
                styles.append(path)


def test_drawings_stand_alone():
    for path in (SLIDES / "drawings").glob("*.svg"):
        text = path.read_text(encoding="utf-8").replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert "http" not in text, path.name
        assert "<title>" in text, path.name


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The texts that a translation must have, a catalogue for each deck."""

    def fill(place: Path) -> None:
        done = sphinx(SLIDES, place / "pot", builder="gettext")
        assert done.returncode == 0, done.stderr

    return shared_folder(tmp_path_factory, "gettext", fill) / "pot"


@pytest.mark.parametrize("path", sorted(CHINESE.glob("*.po")), ids=lambda path: path.stem)
def test_the_translation_is_whole(templates, path):
    """Each text of the deck as it is now; what is not Chinese is a name or a number."""
    asked = {str(m.id) for m in read_po((templates / f"{path.stem}.pot").open("rb")) if m.id}
    given = {str(m.id): m for m in read_po(path.open("rb")) if m.id}
    assert not asked - given.keys(), "without a translation"
    assert not given.keys() - asked, "not in the deck any more"
    for text, message in given.items():
        assert message.string and not message.fuzzy, text
        assert HANZI.search(message.string) or message.string == text, text


def test_the_chinese_slides_are_built(chinese):
    assert "逐位看描述符" in deck_of(chinese, "lesson2").titles
    assert "指针块在哪里" in deck_of(chinese, "storage").titles


@pytest.mark.parametrize("name", DECKS)
def test_answers_wait_for_a_key(built, chinese, name):
    """What is marked in the source is hidden at first, in both languages."""
    marked = source_of(name).count("{.fragment}\n")
    for decks in (built, chinese):
        deck = deck_of(decks, name)
        assert deck.hidden == marked
        assert "{.fragment}" not in deck.text


def copy_of_sources(directory: Path) -> Path:
    """The slides and all that they show, elsewhere. Returns the directory of the slides."""
    shutil.copytree(SLIDES, directory / "slides")
    for path, _ in (match for name in DECKS for match in EXCERPT.findall(source_of(name))):
        copy = directory / "slides" / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(SLIDES / path, copy)
    return directory / "slides"


def test_an_anchor_that_is_gone_stops_the_build(tmp_path):
    slides = copy_of_sources(tmp_path)
    loader = tmp_path / "boot" / "loader.c"
    loader.write_text(loader.read_text().replace("bool a20_is_open(", "bool a20_gate_is_open("))
    done = sphinx(slides, tmp_path / "html")
    assert done.returncode != 0
    assert "pattern not found: static bool a20_is_open(void)" in done.stderr


def test_a_source_that_is_gone_stops_the_build(tmp_path):
    slides = copy_of_sources(tmp_path)
    (tmp_path / "kernel/lib/multiboot.h").unlink()
    done = sphinx(slides, tmp_path / "html")
    assert done.returncode != 0
    assert "multiboot.h" in done.stderr


def test_figures_of_the_storage_deck():
    """What was published, and what follows from a formula, is what the lab compares with."""
    text = source_of("storage")
    for name, row in PUBLISHED.items():
        shown = "raw, listed under direct" if name == "raw buffered" else name
        sectors = f"{row.sectors_per_request:.2f}"
        assert f"| {shown} | {row.seconds} | {row.tps:.2f} | {sectors} |" in text
        again = rf"\| {name} \| [\d.]+ \| [\d.]+ \| {row.ms_per_read:.2f} \|"
        assert re.search(again, text), name
    for reads in (100_000, 1_000_000, 10_000_000):
        assert f"| {reads:,} | {expected(reads, 524_288):.3f} | " in text
    account = re.findall(r"^\| [a-z ,]+ \| ([\d,]+) \| (?:`-.*`)? ?\|$", text, re.MULTILINE)
    missing = x14_account.KIB // 4 - x14_account.THEN["available"]
    assert sum(int(blocks.replace(",", "")) for blocks in account) == missing
    assert f"The options win {x14_account.WON:,} blocks" in text

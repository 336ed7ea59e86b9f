"""The slides build without a warning, show real code and no solutions, and need no network. They
fill two hours by their notes, fit on the wall, and what they tell to type works.

Of what a browser lays out `make test` takes the decks of SAMPLE, and it types the commands of those
of TYPED; `make check-slides` takes all.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

from labs.storage.experiments import x14_account
from labs.storage.experiments.trees import expected
from labs.storage.report import PUBLISHED
from labs.tools.machine.bounded import run_within
from slides import draw
from slides.pdf import browser, print_deck
from tests.support import slide_sizes
from tests.support.building import WHOLE, make, shared_folder
from tests.support.built_decks import Deck, sphinx
from tests.support.decks import (
    DECKS,
    FENCE,
    LECTURES,
    SLIDES,
    classes_of,
    pages_of,
    sessions_of,
    shell_steps,
    source_of,
)
from tests.support.dialogues import SECONDS, missing, walked
from tests.support.paper import tags
from tests.tree.test_handouts import machine_options

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
CHINESE = SLIDES / "locale/zh_CN/LC_MESSAGES"
HANZI = re.compile(r"[\u4e00-\u9fff]")
QUOTED = re.compile(r'"[^"`]*[\u4e00-\u9fff][^"`]*"|\uff1a"')
EXCERPT = re.compile(r"^```\{literalinclude\} (\S+)\n((?::.*\n)*)```$", re.MULTILINE)
SOLUTION = re.compile(r"SOLUTION S?\d+(?:\.\d+)? \{[^\n]*\n(.*?)\} SOLUTION", re.DOTALL)
SLIDES_AT_LEAST = 12
SAMPLE = DECKS if WHOLE else ("lesson2", "storage")
TYPED = LECTURES if WHOLE else ("lesson2", "lesson5")
PRINTED = LECTURES if WHOLE else ("lesson2",)
LOWEST, SMALLEST = 0.6, 16  # a page ends below this part of its height; pixels of a label
SIZES = "sizes.json"
needs_browser = pytest.mark.skipif(
    not browser(), reason="needs chromium (apt-get install chromium)"
)


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
        if browser():
            found = slide_sizes.sizes([place / "html" / f"{deck}.html" for deck in SAMPLE])
            (place / "html" / SIZES).write_text(json.dumps(found))

    return shared_folder(factory, name, fill) / "html"


def deck_of(built: Path, name: str) -> Deck:
    return Deck((built / f"{name}.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", DECKS)
def test_a_deck_has_its_slides(built, name):
    titles = [page.title for page in pages_of(source_of(name))]
    assert [title.strip() for title in deck_of(built, name).titles] == titles
    assert name == "index" or len(titles) >= SLIDES_AT_LEAST


@pytest.mark.parametrize("name", DECKS)
def test_excerpts_show_code(built, name):
    """Each in its place, longer than two lines, and short enough to be read from the last row."""
    kinds = [kind for kind, _ in FENCE.findall(source_of(name)) if kind != "{toctree}"]
    shown = deck_of(built, name).excerpts
    assert len(shown) == len(kinds)
    for kind, excerpt in zip(kinds, shown, strict=True):
        lines = excerpt.strip("\n").split("\n")
        assert 3 <= len(lines) <= 24 or kind != "{literalinclude}", excerpt
        assert max(len(line.expandtabs(8)) for line in lines) <= 100, excerpt


@needs_browser
@pytest.mark.parametrize("language", ["built", "chinese"])
@pytest.mark.parametrize("name", SAMPLE)
def test_slides_fit_on_the_wall(name, language, request):
    """Each as chromium lays it out, with all of its code."""
    decks = request.getfixturevalue(language)
    found = [slide_sizes.Slide(*each) for each in json.loads((decks / SIZES).read_text())[name]]
    assert len(found) == len(deck_of(decks, name).titles)
    for slide in found:
        size = f"{name}: {slide.title}: {slide.width} x {slide.height}, ends at {slide.end:.0f} px"
        assert slide.height <= slide_sizes.HEIGHT and slide.width <= slide_sizes.WIDTH, size
        assert slide.end >= LOWEST * slide_sizes.HEIGHT or slide.sentence or name == "index", size
        for drawing, label in slide.drawings:
            assert label >= SMALLEST, f"{name}: {slide.title}: {drawing}: {label:.1f} px"


SMALL_LABEL = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1280 400"><title>A word</title>
<text x="9" y="50" font-size="12">a word</text></svg>
"""


@needs_browser
def test_a_slide_that_is_too_full_is_found(tmp_path):
    (tmp_path / "conf.py").write_text((SLIDES / "conf.py").read_text())
    shutil.copytree(SLIDES / "static", tmp_path / "static")
    code = "\n".join(f"line {number}" for number in range(30))
    (tmp_path / "small.svg").write_text(SMALL_LABEL)
    (tmp_path / "index.md").write_text(
        f"# A\n\n## Full\n\n```text\n{code}\n```\n\n## Empty\n\n{{.sentence}}\nAlone.\n\n"
        "## Small\n\n![A word](small.svg)\n"
    )
    assert sphinx(tmp_path, tmp_path / "html").returncode == 0
    _, full, empty, small = slide_sizes.sizes([tmp_path / "html" / "index.html"])["index"]
    assert full.height > slide_sizes.HEIGHT > empty.height
    assert empty.end < LOWEST * slide_sizes.HEIGHT < full.end
    assert [each.sentence for each in (full, empty, small)] == [False, True, False]
    ((_, label),) = small.drawings
    assert 0 < label < SMALLEST


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
        assert re.search(r"<title[ >]", text), path.name


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
        assert not QUOTED.search(message.string), "“ and ” are the quotes of Chinese"


def test_the_chinese_slides_are_built(chinese):
    assert "处理器压入" in (chinese / "_images/entry.svg").read_text(encoding="utf-8")
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


# ---- notes, and what is typed --------------------------------------------------------------------


@pytest.mark.parametrize("name", LECTURES)
def test_a_class_by_its_notes(name):
    """Each page says how long it takes, and together they fill the time; two stops are live."""
    for pages in classes_of(name):
        assert [page.title for page in pages if not page.minutes] == []
        assert 110 <= sum(page.minutes for page in pages) <= 140
        assert 36 <= len(pages) <= 44
        assert [page.title for page in pages if page.wrong_answers not in (0, 2)] == []
        assert sum(page.wrong_answers == 2 for page in pages) >= 10
        live = [page for page in pages if "```gdb" in page.shown]
        assert len(live) >= 2 and sum(page.minutes for page in live) >= 20


@pytest.mark.parametrize("name", LECTURES)
def test_notes_are_beside_their_pages(built, chinese, name):
    """Where the speaker's window looks for them, with their form, and in both languages."""
    for decks, minutes in ((built, r"\d+ min\. "), (chinese, r"\d+ 分钟。")):
        text = (decks / f"{name}.html").read_text(encoding="utf-8")
        notes = re.findall(r'<aside class="notes">(.*?)</aside>\s*</section>', text, re.DOTALL)
        assert len(notes) == len(pages_of(source_of(name)))
        assert all(re.match(rf"\s*<p>{minutes}", each) for each in notes)


LAB = ("--build", "build/storage", "--user", "build/user/bin", "--reads", "1000", "--scale", "100")
OPTIONS = {"BOOT": "--boot", "SCRIPT": "--script", "CMD": "--command"}


def program_of(name: str, under_gdb: bool = False) -> list[str]:
    """What `make run` or `make gdb` starts for the deck's kernel, which is built first."""
    if name == "storage":
        make("LESSON=storage", "image-direct", "image-disk", "user-programs", "build/host/lab-file")
        return [sys.executable, "-m", "labs.storage.run", *LAB, *(["--gdb"] if under_gdb else [])]
    module = "labs.tools.debugging.debug" if under_gdb else "labs.tools.machine.run"
    options = machine_options(int(name.removeprefix("lesson")))
    return [sys.executable, "-m", module, *options]


def options_of(command: str, name: str) -> tuple[list[str], dict[str, str]]:
    """The options that make gives to the program, and the settings that are none of them."""
    settings = dict(word.split("=", 1) for word in shlex.split(command) if "=" in word)
    assert settings.pop("LESSON") == name.removeprefix("lesson"), command
    given = {word: settings.pop(word) for word in OPTIONS if word in settings}
    return [each for word, text in given.items() for each in (OPTIONS[word], text)], settings


@pytest.mark.parametrize("name", TYPED)
def test_shell_commands_show_what_the_deck_shows(name):
    """`make run` with a script, or one of the host's programs on a file that was built."""
    for step in shell_steps(source_of(name)):
        words = shlex.split(step.command)
        if words[0] == "make":
            if "measure" in words:
                continue  # tests/tools/test_measurements.py
            assert "run" in words, f"how shall {step.command} be checked?"
            options, others = options_of(step.command, name)
            assert not others, step.command
            command = [*program_of(name), *options]
        else:
            assert "build/" in step.command, f"how shall {step.command} be checked?"
            program_of(name)
            command = ["bash", "-c", step.command]
        done = run_within(
            command, cwd=ROOT, capture_output=True, text=True, seconds=SECONDS, check=False
        )
        line = missing(step.shows, done.stdout)
        assert line is None, f"{step.command} does not show {line!r}:\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("name", TYPED)
def test_live_stops_work_as_printed(name, tmp_path):
    """Each session of gdb, as `make gdb` begins it. A root that is not there is made."""
    for number, session in enumerate(sessions_of(source_of(name))):
        options, others = options_of(session.command, name)
        if root := others.pop("ROOT", None):
            options += ["--root", str(tmp_path / f"{number}-{root}")]
        assert not others, session.command
        walked([*program_of(name, under_gdb=True), *options], session.walk, tmp_path)


@pytest.mark.parametrize("name", LECTURES)
def test_make_knows_every_command_of_a_deck(name):
    parts = ("Makefile", "labs/author.mk", "labs/storage/lab.mk")
    rules = "".join((ROOT / each).read_text() for each in parts)
    for target in re.findall(r"(?:`|\$ )make (?:\w+=\S+ )*([a-z-]+)", source_of(name)):
        assert re.search(rf"^{target}:", rules, re.MULTILINE), f"make {target}"


TWO_SESSIONS = """\
# A

```console
$ make gdb LESSON=1
```

## B

```gdb
(gdb) p 1
(gdb) p 2
```

:::{revealjs-notes}
10 min. Look.

- Wrong: no.

```gdb
(gdb) p 1
$1 = 1
(gdb) p 2
$2 = 2
```

```gdb
(gdb) p 3
```
:::

## C

```console
$ make gdb LESSON=2
```
"""


def test_pages_and_sessions_are_told_apart():
    pages = pages_of(TWO_SESSIONS)
    told = [(page.title, page.minutes, page.wrong_answers) for page in pages]
    assert told == [("A", 0, 0), ("B", 10, 1), ("C", 0, 0)]
    first, second = sessions_of(TWO_SESSIONS)
    typed = [(step.command, step.shows) for step in first.walk]
    assert typed == [("p 1", ("$1 = 1",)), ("p 2", ("$2 = 2",)), ("p 3", ())]
    assert second.command == "make gdb LESSON=2" and not second.walk


@pytest.mark.parametrize("plot", draw.figures(), ids=lambda plot: plot["name"])
def test_plots_are_drawn_from_their_figures(plot, tmp_path):
    """The same bytes again, in both languages."""
    for language, end in draw.LANGUAGES.items():
        draw.draw(plot, language, tmp_path / "again.svg")
        kept = draw.PLOTS / (plot["name"] + end)
        assert (tmp_path / "again.svg").read_bytes() == kept.read_bytes(), "make slides PLOTS=yes"


# ---- on paper ------------------------------------------------------------------------------------


@needs_browser
@pytest.mark.parametrize("name", PRINTED)
def test_a_deck_as_pdf(chinese, name):
    """A page a slide, tagged, with the deck's title, language and alternative texts."""
    pypdf = pytest.importorskip("pypdf")
    paper = pypdf.PdfReader(print_deck(chinese / f"{name}.html"))
    root = paper.trailer["/Root"]
    assert len(paper.pages) == len(deck_of(chinese, name).titles)
    assert paper.metadata.title == deck_of(chinese, name).titles[0]
    assert root["/Lang"].startswith("zh")
    assert root["/MarkInfo"]["/Marked"] and root["/ViewerPreferences"]["/DisplayDocTitle"]
    kinds = [*tags(root["/StructTreeRoot"])]
    assert {"/H1", "/H2", "/P", "/Figure"} <= {kind for kind, _ in kinds}
    assert all(text for kind, text in kinds if kind == "/Figure")


# ---- what breaks ---------------------------------------------------------------------------------


def copy_of_sources(directory: Path) -> Path:
    """The slides of lesson 1 and all that they show, elsewhere. Returns their directory."""
    slides = directory / "slides"
    shutil.copytree(SLIDES, slides, ignore=shutil.ignore_patterns("*.md", "locale"))
    (slides / "index.md").write_text("# Decks\n\n```{toctree}\nlesson1\n```\n")
    shutil.copy(SLIDES / "lesson1.md", slides)
    shutil.copytree(ROOT / "labs/lesson1/drawings", directory / "labs/lesson1/drawings")
    for path, _ in EXCERPT.findall(source_of("lesson1")):
        copy = slides / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(SLIDES / path, copy)
    return slides


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

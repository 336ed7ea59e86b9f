"""axe's rules (WCAG 2.1 AA, and its best practice) hold for the pages of the book, in both
languages, on a phone and in the dark, for all slides of the decks, and for the lab's report.

`make test` looks at a sample, `make check-book` at every page.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from labs.tools.course import book
from tests.lab.test_lab_report import figures, make_lab  # noqa: F401 (fixtures)
from tests.support.access import PHONE, WALL, WINDOW, Visit, complaints, require_axe
from tests.support.building import WHOLE, shared_folder
from tests.support.built_decks import sphinx
from tests.support.decks import DECKS, SLIDES

pytestmark = pytest.mark.slow
SAMPLE = ("lesson1/README.html", "reference/make.html", "search.html")
only_whole = pytest.mark.skipif(not WHOLE, reason="a sample only: make check-book takes all pages")


@pytest.fixture(autouse=True)
def axe() -> None:
    require_axe()


def visits_of(pages: Path) -> list[Visit]:
    """Each page of a book twice: on a phone, and in the dark."""
    found = sorted(path for path in pages.rglob("*.html") if "_static" not in path.parts)
    assert len(found) >= 18
    sizes = ((PHONE, False), (WINDOW, True))
    return [Visit(page, *size) for page, size in product(found, sizes)]


def test_a_sample_of_the_book(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    """Code and tables that are wider than a phone, drawings in the dark, the search page."""
    made = shared_folder(tmp_path_factory, "book", lambda place: book.make_book(place) and None)
    light, dark, search = (made / "html" / name for name in SAMPLE)
    assert complaints([Visit(light), Visit(dark, WINDOW, dark=True), Visit(search)], tmp_path) == []


def test_what_is_wrong_is_found(tmp_path: Path) -> None:
    """A picture without a text, a faint word, a page that is too wide."""
    page = tmp_path / "wrong.html"
    page.write_text(
        '<html lang="en"><title>A page</title><main><h1 style="width: 900px">A page</h1>'
        '<img src="x.svg"><p style="color: #bbb">faint</p></main>'
    )
    found = "\n".join(complaints([Visit(page)], tmp_path))
    assert "image-alt" in found and "color-contrast" in found and "px too wide" in found


@only_whole
@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_every_page_of_the_book(language: str, tmp_path: Path) -> None:
    made = book.sphinx("html", tmp_path, ("-D", f"language={language}"))
    assert complaints(visits_of(made), tmp_path) == []


@only_whole
@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_every_slide(language: str, tmp_path: Path) -> None:
    """A deck as it opens, and with all of its slides at once, as they are printed."""
    done = sphinx(SLIDES, tmp_path / "html", options=("-D", f"language={language}"))
    assert done.returncode == 0, done.stderr
    pages = [tmp_path / "html" / f"{name}.html" for name in DECKS]
    visits = [Visit(page, WALL, every=every) for page, every in product(pages, (False, True))]
    assert complaints(visits, tmp_path) == []


@only_whole
def test_the_report_of_the_lab(make_lab, tmp_path: Path) -> None:  # noqa: F811 (a fixture)
    status, said, folder = make_lab("--predict", "2 1.5")
    assert status == 0, said
    pages = sorted(folder.glob("*.html"))
    assert pages
    visits = [Visit(page, *size) for page in pages for size in ((PHONE, False), (WINDOW, True))]
    assert complaints(visits, tmp_path) == []

"""The drawings of handouts and slides can be read, in both languages, on a light page and on a dark
one: no text leaves the picture, none is on a line, under a box or on other text. Each says in words
what it shows."""

from __future__ import annotations

import re
from html import unescape
from itertools import product
from pathlib import Path

import pytest

from labs.tools.course import drawings as shown
from tests.support import drawings

ROOT = Path(__file__).resolve().parents[2]
DRAWINGS = sorted(
    str(path.relative_to(ROOT)) for path in ROOT.glob("[ls][al][bi]*/**/drawings/*.svg")
)
BOOK, DECKS = ROOT / "labs/locale", ROOT / "slides/locale"
WORD, HANZI = re.compile("[A-Za-z]{2}"), re.compile(r"[\u4e00-\u9fff]")
LANGUAGES = {"en": {}, "zh_CN": shown.words("zh_CN", BOOK, DECKS)}
TEXTS = {("#1f2933", "black"), ("#52606d", "grey")}


def drawing(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def says(name: str) -> set[str]:
    """All texts of a drawing that have a word."""
    return {unescape(m[2]) for m in shown.TEXT.findall(drawing(name)) if WORD.search(m[2])}


@pytest.mark.parametrize(("name", "language"), [*product(DRAWINGS, LANGUAGES)])
def test_can_be_read(name: str, language: str) -> None:
    problems = drawings.findings(shown.translated(drawing(name), LANGUAGES[language]))
    assert not problems, f"{name}: {'; '.join(problems)}"


@pytest.mark.parametrize("folder", ["labs", "slides"])
def test_all_that_drawings_say_is_translated(folder: str) -> None:
    """What is not Chinese is a name; no text is in both catalogues."""
    given = shown.words("zh_CN", ROOT / folder / "locale")
    asked = set().union(*(says(name) for name in DRAWINGS if name.startswith(folder)))
    if folder == "slides":
        asked -= shown.words("zh_CN", BOOK).keys()
    assert not asked - given.keys(), "without a translation"
    everywhere = set().union(*(says(name) for name in DRAWINGS if name.startswith(folder)))
    assert not given.keys() - everywhere, "in no drawing any more"
    for text, string in given.items():
        assert HANZI.search(string) or string == text, text


@pytest.mark.parametrize("name", DRAWINGS)
def test_says_in_words_what_it_shows(name: str) -> None:
    """In sentences, and more than its title does: this is its alternative text."""
    text = drawing(name)
    title, _, described = shown.said(text).partition(shown.END["en"])
    assert len(title.split()) >= 2 and len(described.split()) >= 20, described
    assert described[0].isupper() or described.split()[0] in text.partition("</desc>")[2]
    assert described.endswith(".") and title not in described
    assert HANZI.search(shown.said(shown.translated(text, LANGUAGES["zh_CN"])))


@pytest.mark.parametrize("name", [name for name in DRAWINGS if name.startswith("labs/")])
def test_has_a_dark_variant(name: str) -> None:
    """Each colour has one for a dark page."""
    dark = shown.dark(drawing(name))
    assert f'fill="{shown.PAPER}"' in dark
    assert not re.search(r"(?:fill|stroke)(?:=\"|: *)(?![ #]|none|url)", dark), (
        "a colour by its name"
    )


@pytest.mark.parametrize("is_dark", [False, True])
def test_texts_are_seen_on_their_boxes(is_dark: bool) -> None:
    """4.5 to 1 at least, black or grey on each colour of a box, as WCAG asks."""
    boxes = set(re.findall(r'<rect[^>]* fill="(#\w+)"', "".join(map(drawing, DRAWINGS))))
    boxes &= shown.DARK.keys()
    assert len(boxes) >= 8
    for (text, _), box in product(TEXTS, boxes - {"#1f2933"}):
        pair = (shown.DARK[text], shown.DARK[box]) if is_dark else (text, box)
        if not (text == "#52606d" and box in ("#93c5fd", "#fca5a5")):  # small ones, without text
            assert contrast(*pair) >= 4.5, (text, box)


def contrast(one: str, other: str) -> float:
    """WCAG's contrast of two colours."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_a_drawing_with_a_colour_of_its_own_is_found() -> None:
    with pytest.raises(KeyError, match="#123456"):
        shown.dark('<rect fill="#123456"/>')


@pytest.mark.parametrize(
    ("inside", "problems"),
    [
        ('<text x="10" y="40">short</text>', []),
        ('<text x="160" y="40">rather long</text>', ["'rather long' leaves the picture"]),
        (
            '<text x="10" y="40">a word</text><polyline points="0,0 60,90" stroke="#000"/>',
            ["'a word' is on a line"],
        ),
        (
            '<polyline points="0,0 60,90" stroke="#000"/><rect x="5" y="20" width="100" '
            'height="30" fill="#fff"/><text x="10" y="40">a word</text>',
            [],
        ),
        (
            '<text x="10" y="40">a word</text><rect x="5" y="20" width="100" height="30" '
            'fill="#fff"/>',
            ["'a word' is under a box"],
        ),
        (
            '<text x="10" y="40">one word</text><text x="60" y="44">another</text>',
            ["'one word' and 'another' overlap"],
        ),
        (
            '<text x="20" y="40" text-anchor="middle">middle</text>',
            ["'middle' leaves the picture"],
        ),
        (
            '<rect x="100" y="30" width="90" height="30" fill="#fff" stroke="#000"/>'
            '<text x="80" y="50">across it</text>',
            ["'across it' is on a line"],
        ),
        (
            '<rect x="100" y="30" width="90" height="30" fill="#fff" stroke="#000"/>'
            '<text x="110" y="50">in it</text>',
            [],
        ),
        (
            '<path d="M0,30 C50,30 100,30 190,30" stroke="#000"/><text x="10" y="35">on it</text>',
            ["'on it' is on a line"],
        ),
    ],
)
def test_finds_what_is_wrong(inside: str, problems: list[str]) -> None:
    start = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 100">'
    assert drawings.findings(f"{start}{inside}</svg>") == problems

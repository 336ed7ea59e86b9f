"""How each slide of built decks looks: chromium lays it out, on a page as wide as the deck's, with
all that a key brings. Code that the style sheet would let one scroll counts in full: nobody scrolls
on a wall. A browser takes a second to start, so one page has all decks.

Without chromium there is no answer (slides.pdf.browser() is None).
`python -m tests.support.slide_sizes DIRECTORY/lesson1.html` prints a line a slide.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from labs.tools.machine.bounded import run_within
from slides.pdf import command

WIDTH, HEIGHT = 1280, 720  # slides/conf.py: revealjs_script_conf
SECONDS = 900
SCRIPT = re.compile(r"<script.*?</script>", re.DOTALL)
ASK = """
<script>
const slides = [...document.querySelectorAll(".slides > section > section")];
const found = [];
for (const each of document.querySelectorAll(".slides")) each.style.width = "%dpx";
for (const code of document.querySelectorAll("pre code")) code.style.maxHeight = "none";
for (const slide of slides) {
  slide.parentNode.style.display = slide.style.display = "block";
  const widths = [slide, ...slide.querySelectorAll("pre code")].map((each) => each.scrollWidth);
  const title = slide.querySelector("h1, h2").textContent;
  const deck = slide.closest("[data-deck]").dataset.deck;
  const top = slide.getBoundingClientRect().top;
  const parts = [...slide.querySelectorAll("h1, h2, p, li, pre, td, img")];
  const ends = parts.map((each) => each.getBoundingClientRect().bottom - top);
  const alone = slide.querySelector(".sentence") !== null;
  const drawings = [...slide.querySelectorAll("img")].map((each) =>
    [each.getAttribute("src"), each.clientWidth, each.clientHeight]);
  const size = [slide.scrollHeight, Math.max(...widths), Math.max(...ends)];
  found.push([deck, title, ...size, alone, drawings]);
  slide.parentNode.style.display = slide.style.display = "none";
}
document.body.textContent = "sizes" + JSON.stringify(found) + "sizes";
</script>
"""


class Drawing(NamedTuple):
    """A drawing on a slide, and how high its smallest letters are there, in the deck's pixels."""

    name: str
    label: float


class Slide(NamedTuple):
    """A slide, in the deck's pixels. `end` is where the lowest thing on it ends; `sentence`: it is
    a single one, on purpose."""

    title: str
    height: int
    width: int
    end: float
    sentence: bool
    drawings: list[Drawing]


def one_page(decks: Sequence[Path]) -> str:
    """The decks as one page without scripts: the first one's head, and all bodies."""
    texts = [SCRIPT.sub("", each.read_text(encoding="utf-8")) for each in decks]
    bodies = [re.search(r"<body[^>]*>(.*)</body>", text, re.DOTALL)[1] for text in texts]
    head = texts[0].partition("</head>")[0]
    named = zip(decks, bodies, strict=True)
    body = "".join(f'<div data-deck="{deck.stem}">{each}</div>' for deck, each in named)
    return f"{head}</head><body>{body}{ASK % WIDTH}</body></html>"


def sizes(decks: Sequence[Path]) -> dict[str, list[Slide]]:
    """The slides of decks, by the deck's name. All decks are in one folder."""
    page = decks[0].with_name(f"{decks[0].stem}-sizes.html")
    page.write_text(one_page(decks), encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="browser-") as profile:
        options = ("--dump-dom", "--virtual-time-budget=5000", f"--window-size={WIDTH},{HEIGHT}")
        done = run_within(
            [*command(profile, *options), page.as_uri()],
            capture_output=True,
            text=True,
            seconds=SECONDS,
            check=True,
        )
    page.unlink()
    text = re.search(r"sizes(\[.*\])sizes", done.stdout, re.DOTALL)[1]
    found: dict[str, list[Slide]] = {deck.stem: [] for deck in decks}
    for deck, *slide, drawings in json.loads(text.replace("&amp;", "&").replace("&gt;", ">")):
        shown = [
            Drawing(name, label_height(decks[0].parent / name, *size)) for name, *size in drawings
        ]
        found[deck].append(Slide(*slide, shown))
    return found


def label_height(path: Path, width: float, height: float) -> float:
    """The smallest font of a drawing that is shown in a box of this size: pixels of the deck."""
    fonts, (wide, high) = fonts_and_size(path)
    return min(fonts) * min(width / wide, height / high)


@cache
def fonts_and_size(path: Path) -> tuple[list[float], tuple[float, float]]:
    """The sizes of a drawing's texts, and its own; by its style sheet, or as matplotlib says it."""
    text = path.read_text(encoding="utf-8")
    wide, high = ElementTree.fromstring(text).attrib["viewBox"].split()[2:]
    styles = re.findall(r"\{([^}]*)\}|style=\"([^\"]*)\"", text)
    fonts = [
        float(size)
        for style in map("".join, styles)
        for size in re.findall(r"font(?:-size)?: ?[^;]*?([\d.]+)px", style)
    ]
    fonts += map(float, re.findall(r'font-size="([\d.]+)', text))
    assert fonts, f"{path.name}: a drawing without a font's size"
    return fonts, (float(wide), float(high))


if __name__ == "__main__":
    for slides in sizes([Path(each) for each in sys.argv[1:]]).values():
        for number, each in enumerate(slides, 1):
            labels = " ".join(f"{name}: {height:.1f}" for name, height in each.drawings)
            print(
                f"{number:3} {each.end:5.0f} {each.height:5} {each.width:5}  {each.title} {labels}"
            )

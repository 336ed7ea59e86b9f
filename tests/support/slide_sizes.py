"""How large each slide of built decks is: chromium lays it out, on a page as wide as the deck's.
Code that the style sheet would let one scroll counts in full: nobody scrolls on a wall. A browser
takes a second to start, so one page has all decks.

Without chromium there is no answer (`browser()` is None), and what asks must do without one.
`python -m tests.support.slide_sizes DIRECTORY/lesson1.html` prints a line a slide.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from labs.tools.machine.bounded import run_within

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
  found.push([deck, title, slide.scrollHeight, Math.max(...widths)]);
  slide.parentNode.style.display = slide.style.display = "none";
}
document.body.textContent = "sizes" + JSON.stringify(found) + "sizes";
</script>
"""


def browser() -> str | None:
    """The path of chromium, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


def one_page(decks: Sequence[Path]) -> str:
    """The decks as one page without scripts: the first one's head, and all bodies."""
    texts = [SCRIPT.sub("", each.read_text(encoding="utf-8")) for each in decks]
    bodies = [re.search(r"<body[^>]*>(.*)</body>", text, re.DOTALL)[1] for text in texts]
    head = texts[0].partition("</head>")[0]
    named = zip(decks, bodies, strict=True)
    body = "".join(f'<div data-deck="{deck.stem}">{each}</div>' for deck, each in named)
    return f"{head}</head><body>{body}{ASK % WIDTH}</body></html>"


def sizes(decks: Sequence[Path]) -> dict[str, list[tuple[str, int, int]]]:
    """By the deck's name: title, height and width of each slide, in the deck's pixels. All decks
    are in one folder."""
    page = decks[0].with_name(f"{decks[0].stem}-sizes.html")
    page.write_text(one_page(decks), encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="browser-") as profile:
        command = [browser(), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
        command += [f"--user-data-dir={profile}", "--virtual-time-budget=5000"]
        done = run_within(
            [*command, f"--window-size={WIDTH},{HEIGHT}", page.as_uri()],
            capture_output=True,
            text=True,
            seconds=SECONDS,
            check=True,
        )
    page.unlink()
    text = re.search(r"sizes(\[.*\])sizes", done.stdout, re.DOTALL)[1]
    found: dict[str, list[tuple[str, int, int]]] = {deck.stem: [] for deck in decks}
    for deck, *slide in json.loads(text.replace("&amp;", "&").replace("&gt;", ">")):
        found[deck].append(tuple(slide))
    return found


if __name__ == "__main__":
    for slides in sizes([Path(each) for each in sys.argv[1:]]).values():
        for number, (title, height, width) in enumerate(slides, 1):
            print(f"{number:3} {height:5} {width:5}  {title}")

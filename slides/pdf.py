"""Built decks as PDF, a page a slide, by Chromium: `make slides PDF=yes`.

    .venv/bin/python -m slides.pdf build/slides/lesson1.html ...

Each PDF lies beside its deck. It is tagged: its title, its language, its headings and the
alternative texts of its drawings are those of the deck.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path

from labs.tools.machine.bounded import run_within

SECONDS = 300  # for a deck, at most
PATIENCE = 20_000  # milliseconds of the page's own clock until it is laid out
TRIES = 5
SLIDE, PAGE = re.compile(r"<h[12]>"), re.compile(rb"/Type /Page$", re.MULTILINE)


def browser() -> str | None:
    """The path of chromium, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


def command(profile: str, *options: str) -> list[str]:
    """Chromium without a window, with an empty profile in this directory."""
    shown = [browser(), "--headless", "--no-sandbox", "--disable-gpu"]
    return [*shown, f"--user-data-dir={profile}", *options]


def print_deck(deck: Path) -> Path:
    """Writes the PDF of a built deck; returns its path. On a busy machine chromium may print before
    the deck is laid out: then again. Raises RuntimeError when it fails TRIES times, and
    CalledProcessError or TimeoutExpired (of subprocess) when chromium does not end well."""
    path = deck.with_suffix(".pdf")
    slides = len(SLIDE.findall(deck.read_text(encoding="utf-8")))
    for _ in range(TRIES):
        print_page(f"{deck.resolve().as_uri()}?print-pdf", path)
        pages = len(PAGE.findall(path.read_bytes()))
        if pages == slides:
            return path
    raise RuntimeError(f"{path}: {pages} pages, and its deck has {slides}")


def print_page(address: str, path: Path) -> None:
    """Has chromium write the PDF of a page to `path`: tagged, with an outline. Raises
    CalledProcessError or TimeoutExpired (of subprocess)."""
    with tempfile.TemporaryDirectory(prefix="browser-") as profile:
        options = [f"--virtual-time-budget={PATIENCE}", "--no-pdf-header-footer"]
        options += ["--export-tagged-pdf", "--generate-pdf-document-outline"]
        run_within(
            [*command(profile, *options), f"--print-to-pdf={path}", address],
            capture_output=True,
            seconds=SECONDS,
            check=True,
        )


def main() -> int:
    """Prints the decks that are named; returns the exit status."""
    if browser() is None:
        print("make slides: PDF=yes needs chromium (apt-get install chromium)", file=sys.stderr)
        return 1
    for deck in map(Path, sys.argv[1:]):
        print(print_deck(deck))
    return 0


if __name__ == "__main__":
    sys.exit(main())

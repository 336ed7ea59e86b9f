"""Decks as Sphinx builds them, and what such a deck holds."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path


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

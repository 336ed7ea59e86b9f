"""Drawings as Sphinx shows them: what they say in the page's language, and, on the pages of the
book, a dark variant and a link that enlarges them.

A drawing is an SVG with a title and a description. Both together are its alternative text, so that
this is kept in one place. Catalogues are LANGUAGE/drawings.po in a folder of translations.
"""

from __future__ import annotations

import posixpath
import re
from html import escape, unescape
from pathlib import Path
from typing import Any

from babel.messages.pofile import read_po
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.osutil import relative_uri

TEXT = re.compile(r"(<(text|title|desc)\b[^>]*>)([^<]*)(</\2>)")
COLOUR = re.compile(r"#[0-9a-f]{6}\b")

PAPER = "#131416"  # the background of furo's dark pages
DARK = {
    "#ffffff": PAPER,
    "#1f2933": "#e6e9ee",
    "#52606d": "#a9b4c0",
    "#9aa5b1": "#74808c",
    "#cbd5e1": "#4b5563",
    "#1f3a5f": "#9cc2f0",
    "#b91c1c": "#f28b8b",
    "#dbeafe": "#1e3450",
    "#dcfce7": "#17402b",
    "#fef3c7": "#46380f",
    "#fee2e2": "#562426",
    "#ede9fe": "#38305c",
    "#f1f5f9": "#24292f",
    "#e5e7eb": "#30363d",
    "#93c5fd": "#2f5f96",
    "#fde68a": "#4f3f0a",
    "#fca5a5": "#8f3a3d",
}
"""Each colour of a drawing, and what it is on a dark page."""

ENLARGE = {"en": "Enlarge the drawing", "zh_CN": "放大这张图"}
END = {"en": ". ", "zh_CN": "。"}


def words(language: str, *folders: Path) -> dict[str, str]:
    """What drawings say, in a language: of the catalogues that are there, the last one first."""
    found: dict[str, str] = {}
    for path in (folder / language / "drawings.po" for folder in folders):
        if path.exists():
            with path.open("rb") as file:
                found |= {str(m.id): str(m.string) for m in read_po(file) if m.id}
    return found


def translated(drawing: str, known: dict[str, str]) -> str:
    """The drawing with all that it says in another language."""
    return TEXT.sub(
        lambda m: m[1] + escape(known.get(unescape(m[3]), unescape(m[3])), quote=False) + m[4],
        drawing,
    )


def dark(drawing: str) -> str:
    """The drawing for a dark page. Raises KeyError if DARK lacks one of its colours."""
    return COLOUR.sub(lambda colour: DARK[colour[0]], drawing)


def said(drawing: str, end: str = END["en"]) -> str:
    """What the drawing says: its title and its description; nothing if it has none."""
    parts = {kind: unescape(text) for _, kind, text, _ in TEXT.findall(drawing) if kind != "text"}
    return end.join(parts[each] for each in ("title", "desc") if parts.get(each))


def is_drawing(name: str) -> bool:
    """Is it one of ours? Plots, which matplotlib has made, are not."""
    return posixpath.basename(posixpath.dirname(name)) == "drawings" and name.endswith(".svg")


class Drawings:
    """The drawings of a Sphinx project."""

    def __init__(self, app: Sphinx, *folders: str) -> None:
        self.app = app
        self.folders = [Path(app.srcdir, folder) for folder in folders]
        app.connect("builder-inited", self.begin)
        app.connect("doctree-resolved", self.show)

    def begin(self, app: Sphinx) -> None:
        """Takes over where the builder copies pictures: an EPUB is packed right after that."""
        self.words = words(app.config.language, *self.folders)
        self.has_dark = app.builder.name == "html"
        copy = getattr(app.builder, "copy_image_files", None)
        if copy is None:
            return

        def copy_and_draw() -> None:
            copy()
            self.draw()

        app.builder.copy_image_files = copy_and_draw

    def draw(self) -> None:
        """Writes the variants of the copies that the builder has made."""
        folder = Path(self.app.outdir, self.app.builder.imagedir)
        for uri, name in self.app.builder.images.items():
            if is_drawing(uri):
                drawing = Path(self.app.srcdir, uri).read_text(encoding="utf-8")
                drawing = translated(drawing, self.words)
                (folder / name).write_text(drawing, encoding="utf-8")
                if self.has_dark:
                    (folder / dark_name(name)).write_text(dark(drawing), encoding="utf-8")

    def show(self, app: Sphinx, doctree: nodes.document, name: str) -> None:
        """Gives the page's drawings their texts; pages of the book have links and dark ones. What
        is to be translated is the page's own text."""
        if app.builder.name == "gettext":
            return
        language = app.config.language
        for image in [*doctree.findall(nodes.image)]:
            if not is_drawing(image["uri"]):
                continue
            drawing = Path(app.srcdir, image["uri"]).read_text(encoding="utf-8")
            image["alt"] = said(translated(drawing, self.words), END[language]) or image["alt"]
            if self.has_dark:
                self.enlarge(image, name)

    def enlarge(self, image: nodes.image, page: str) -> None:
        """Puts two links in its place, of which a page shows one: to the light drawing, and to the
        dark one."""
        builder: Any = self.app.builder
        folder = relative_uri(builder.get_target_uri(page), builder.imagedir)
        light = self.app.env.images[image["uri"]][1]
        image["loading"] = "lazy"
        links = []
        for kind, file in (("only-light", light), ("only-dark", dark_name(light))):
            shown = image.deepcopy()
            if file != light:  # it is not copied, but made
                shown["uri"] = f"{folder}/{file}"
                shown["candidates"] = {"*": shown["uri"]}
            link = nodes.reference("", "", shown, refuri=f"{folder}/{file}", internal=True)
            link["reftitle"] = ENLARGE[self.app.config.language]
            link["classes"] = ["drawing", kind]
            links.append(link)
        image.parent.replace(image, links)


def dark_name(name: str) -> str:
    """What the dark variant of a built drawing is called."""
    return f"{name.removesuffix('.svg')}.dark.svg"

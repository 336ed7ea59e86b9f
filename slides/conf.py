"""The slides: a deck for each lesson and for the storage lab, made by Sphinx with reveal.js; code
comes out of the source.

    .venv/bin/python -m sphinx -W -b revealjs slides build/slides

An excerpt is a `literalinclude` between two texts of the source. When such a text is gone, Sphinx
warns, and -W makes that an error: a slide cannot show code that is no more. No excerpt may reach
into a SOLUTION region, for students see the slides.
"""

from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxTranslator
from sphinx_revealjs._ext.notes import revealjs_notes

from labs.tools.course import accessible
from labs.tools.course.drawings import Drawings

project = "Apprentice"
author = "The authors of Apprentice"
project_copyright = author
language = "en"

extensions = ["myst_parser", "sphinx_revealjs"]
# attrs_block: "{.fragment}" above a paragraph or a table, which then appears with the next key
myst_enable_extensions = ["colon_fence", "attrs_block"]
exclude_patterns = ["README.md"]
smartquotes = False  # in a slide full of code a quote is a quote

# Translations: slides/locale/LANGUAGE/LC_MESSAGES/DECK.po, kept by sphinx-intl.
locale_dirs = ["locale"]
gettext_compact = False
gettext_additional_targets = ["image"]

# The decks. Everything they load lies beside them: a lecture hall may have no network.
revealjs_static_path = ["static"]
revealjs_css_files = ["deck.css"]
revealjs_js_files = ["print.js"]
revealjs_script_plugins = [
    {"src": "revealjs/plugin/highlight/highlight.js", "name": "RevealHighlight"},
    {"src": "revealjs/plugin/notes/notes.js", "name": "RevealNotes"},
]
revealjs_style_theme = "white"
revealjs_script_conf = {
    "width": 1280,
    "height": 720,
    "margin": 0.04,
    "hash": True,
    "controls": True,
    "slideNumber": "c/t",
    "transition": "none",
    "center": False,
    "pdfSeparateFragments": False,
    "pdfMaxPagesPerSlide": 1,
}


def begin_notes(self: SphinxTranslator, node: revealjs_notes) -> None:
    """What the speaker's window (key s) shows beside a page."""
    self.body.append('<aside class="notes">')


def end_notes(self: SphinxTranslator, node: revealjs_notes) -> None:
    """The same."""
    self.body.append("</aside>\n")


def setup(app: Sphinx) -> None:
    """Keeps the form of notes: sphinx-revealjs makes one text of their paragraphs and lists."""
    Drawings(app, "../labs/locale", "locale")
    accessible.setup(app)
    app.add_node(revealjs_notes, override=True, revealjs=(begin_notes, end_notes))

"""The handouts as pages: `make handouts`. As Markdown they read well, too, but without excerpts.

Code is included from the source by its first and last words. When such words are gone, Sphinx
warns, and -W makes that an error: a handout cannot show code that is no more. No excerpt may reach
into a SOLUTION region, for students read the handouts.
"""

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx
from sphinx.config import Config

from labs.tools.course import accessible
from labs.tools.course.drawings import Drawings
from labs.tools.course.references import Reference

project = "Apprentice"
author = "The authors of Apprentice"
project_copyright = author
language = "en"
version = "1"

extensions = ["myst_parser"]
include_patterns = [
    "index.md",
    "debugging.md",
    "glossary.md",
    "lesson*/README.md",
    "storage/README.md",
    "reference/*.md",
]
smartquotes = False
html_theme = "furo"
TITLES = {"en": "Apprentice: the handouts", "zh_CN": "Apprentice 讲义"}
html_show_sourcelink = False
epub_exclude_files = [".buildinfo"]

# Translations: labs/locale/LANGUAGE/LC_MESSAGES/..., kept by sphinx-intl.
locale_dirs = ["locale"]
gettext_compact = False
gettext_additional_targets = ["image"]


def name_the_book(_: Sphinx, config: Config) -> None:
    """Its title is in its language, which the command line may have set."""
    config.html_title = config.html_short_title = config.epub_title = TITLES[config.language]


def setup(app: Sphinx) -> None:
    """A dialogue with gdb is text; its (gdb) lines are run by the tests. Drawings: see there."""
    app.add_lexer("gdb", TextLexer)
    app.connect("config-inited", name_the_book)
    app.add_directive("reference", Reference)
    Drawings(app, "locale")
    accessible.setup(app)

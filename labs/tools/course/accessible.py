"""What the themes of book and decks leave out for people who use a keyboard, a screen reader or a
magnifier: names of the bars at the sides, a heading of the search page, keys that scroll what is
wider than a phone, decks that can be enlarged. `make check-book` asks axe about the pages."""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

NAMES = {
    "en": {"sidebar-drawer": "All pages", "toc-drawer": "This page", "search": "Search"},
    "zh_CN": {"sidebar-drawer": "所有页面", "toc-drawer": "本页", "search": "搜索"},
}
CHANGES = {
    builder: [(re.compile(pattern, re.DOTALL), new) for pattern, new in changes]
    for builder, changes in {
        "every": [(r"<th\b([^>]*)>(?:<p></p>)?</th>", r"<td\1></td>")],
        "html": [
            (r'<aside class="(sidebar-drawer|toc-drawer)', r'<aside aria-label="{\1}" class="\1'),
            (r'(?<!</h1>)<div id="search-results">', r"<h1>{search}</h1>\g<0>"),
            (r'(<div class="highlight"><pre)>', r'\1 tabindex="0">'),
            (r'<div (class="table-wrapper)', r'<div tabindex="0" \1'),
        ],
        "revealjs": [
            (r", maximum-scale=1.0, user-scalable=no", ""),
            (r'<div class="slides" role="main">', '<div class="slides">'),
            (
                r'(<body>\s*)(<div class="reveal">.*?)(<script src="_static/revealjs)',
                r'\1<main style="display: contents">\2</main>\3',
            ),
        ],
    }.items()
}


def accessible(page: str, builder: str, language: str) -> str:
    """A page that Sphinx has written, with what it lacks. A page that has it stays as it is."""
    for pattern, new in [*CHANGES["every"], *CHANGES.get(builder, ())]:
        page = pattern.sub(new, page)
    for name, text in NAMES[language].items():
        page = page.replace(f'aria-label="{{{name}}}"', f'aria-label="{text}"')
        page = page.replace(f"<h1>{{{name}}}</h1>", f"<h1>{text}</h1>")
    return page


def finish(app: Sphinx, error: Exception | None) -> None:
    """Changes the pages that have been written."""
    if error or app.builder.name not in ("html", "singlehtml", "revealjs"):
        return
    for path in Path(app.outdir).rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        changed = accessible(page, app.builder.name, app.config.language)
        if changed != page:
            path.write_text(changed, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Called by conf.py."""
    app.connect("build-finished", finish)

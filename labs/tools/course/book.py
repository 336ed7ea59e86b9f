"""`make book`: handouts, storage lab and glossary as pages, as a PDF, as an EPUB, and as plain
Markdown with its excerpts.

    python -m labs.tools.course.book build/book

    build/book/html/index.html	pages; what `make handouts` makes
    build/book/apprentice.pdf	tagged, with an outline; made by chromium, left out without it
    build/book/apprentice.epub
    build/book/markdown/	for a code host, an e-mail, a diff

Sphinx reads the sources once; each format is written from what it has read.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from labs.tools.machine.command import Options, in_a_line, typed_path

PROGRAM = "make book"
SOURCES = Path(__file__).parents[2]
NAME = "apprentice"
OPTIONS = {
    "singlehtml": ("-D", "html_theme=basic"),
    "markdown": ("-D", "extensions=myst_parser,sphinx_markdown_builder"),
}
DRAWING = re.compile(r"(!\[[^\]]*\]\()([^)]+/)?(drawings/\w+\.svg\))")
PAPER = """<style>
@page { size: A4; margin: 20mm 18mm; }
body { font: 10.5pt/1.45 "DejaVu Serif", "Noto Serif CJK SC", serif; margin: 0; max-width: none; }
pre, code { font: 8.5pt/1.35 "DejaVu Sans Mono", "Noto Sans Mono CJK SC", monospace; }
pre { background: #f4f4f4; padding: 2mm; white-space: pre-wrap; }
.toctree-wrapper > section { break-before: page; }
h1, h2, h3, h4 { break-after: avoid; }
img { max-width: 100%; max-height: 200mm; } table { border-collapse: collapse; }
td, th { border: 0.3pt solid #999; padding: 1mm 2mm; text-align: left; vertical-align: top; }
pre, img, tr { break-inside: avoid; } a { color: #1a4f8a; } summary { font-weight: bold; }
.sphinxsidebar, .related, .footer, .headerlink { display: none; }
</style>"""


def sphinx(kind: str, out: Path, options: tuple[str, ...], read: str = "read") -> Path:
    """Writes one format to out/kind; returns that folder. out/read has what Sphinx has read of the
    sources. A warning is an error: raises CalledProcessError (of subprocess), and Sphinx has said
    why."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", kind, "-d", str(out / read)]
    subprocess.run([*command, *OPTIONS.get(kind, ()), *options, SOURCES, out / kind], check=True)
    return out / kind


def for_paper(page: str) -> str:
    """A page as it is printed: what is folded is open, and chapters begin on a new page."""
    opened = re.sub(r"<details(?! open)", "<details open", page)
    return opened.replace("</head>", PAPER + "</head>", 1)


def make_markdown(folder: Path) -> None:
    """Puts the drawings beside the pages that show them: the builder writes the text alone."""
    for page in folder.glob("*/README.md"):
        text = DRAWING.sub(r"\1\3", page.read_text(encoding="utf-8"))
        page.write_text(text, encoding="utf-8")
        if (drawings := SOURCES / page.parent.name / "drawings").is_dir():
            shutil.copytree(drawings, page.parent / "drawings", dirs_exist_ok=True)


def make_book(out: Path, language: str = "en") -> list[Path]:
    """All formats; returns what was made. Raises CalledProcessError."""
    from slides import pdf  # not in a student's tree

    options = ("-D", f"language={language}")
    made = [sphinx("html", out, options) / "index.html"]
    page = sphinx("singlehtml", out, options) / "index.html"
    page.write_text(for_paper(page.read_text(encoding="utf-8")), encoding="utf-8")
    if pdf.browser():
        made.append(out / f"{NAME}.pdf")
        pdf.print_page(page.resolve().as_uri(), made[-1])
    made.append(out / f"{NAME}.epub")
    shutil.copyfile(next(sphinx("epub", out, options).glob("*.epub")), made[-1])
    make_markdown(sphinx("markdown", out, options))
    return [*made, out / "markdown"]


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = Options(PROGRAM)
    parser.add_argument("out", metavar="FOLDER", type=typed_path)
    parser.add_argument("--language", default="en")
    options = parser.parse_args()
    try:
        made = make_book(options.out, options.language)
    except subprocess.CalledProcessError:
        return 1
    for path in made:
        print(path)
    if not any(path.suffix == ".pdf" for path in made):
        print("no PDF: that needs chromium (apt-get install chromium)", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(in_a_line(PROGRAM, main))

"""`make picture`: the README's picture, labs/first_run.svg, of what a newcomer sees: a shell on the
last lesson's kernel, and the storage lab's first table. Both are run here. What the picture shows
is the same on every machine: it names no version and no time of the host's.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from io import StringIO
from xml.etree import ElementTree

from rich.console import Console
from rich.text import Text

from labs.tools.course.exercises import ROOT
from labs.tools.machine.command import in_a_line

PICTURE = ROOT / "labs/first_run.svg"
WIDTH = 80
TYPED = ("seq 3 | sort -r | head -1", "yes | head -c 1000000 | sha1sum")
"""In the guest's shell; each answers with one line."""

FONTS = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
"""They would be fetched from elsewhere; a browser has a font of its own whose letters are equally
wide."""


def lines_of(*arguments: str) -> list[str]:
    """What make prints. Raises subprocess.CalledProcessError."""
    command = ["make", "-s", "run", *arguments]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=-1, check=True)
    return done.stdout.decode().splitlines()


def shell() -> list[str]:
    """What is typed at the shell, and what it answers."""
    answers = lines_of("CMD=" + "; ".join(TYPED))
    return [
        line for pair in zip(TYPED, answers, strict=True) for line in (f"~ # {pair[0]}", pair[1])
    ]


def table(printed: Sequence[str]) -> list[str]:
    """Of what `make run` prints without a terminal, all to the end of the first table, and the
    ratio of the two file systems."""
    rows = [i for i, line in enumerate(printed) if line.startswith("+")]
    ratio = next(i for i, line in enumerate(printed) if line.startswith("Direct reads through"))
    end = next(i for i in range(ratio, len(printed)) if "reads. " in printed[i])
    last = printed[end][: printed[end].index("reads.") + len("reads.")]
    return [*printed[: rows[1] + 1], "...", *printed[ratio:end], last]


def drawn(lines: Sequence[str]) -> str:
    """The lines as an SVG."""
    console = Console(record=True, width=WIDTH, file=StringIO(), legacy_windows=False)
    for line in lines:
        style = "bold green" if line.startswith(("$ ", "~ # ")) else ""
        console.print(Text(line, style=style), no_wrap=True)
    return FONTS.sub("", console.export_svg(title="Apprentice", unique_id="run"))


def shown() -> list[str]:
    """The picture's lines."""
    text = PICTURE.read_text(encoding="utf-8")
    rows: dict[float, str] = {}
    for element in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}text"):
        if element.get("class") == "run-title":
            continue
        y = float(element.get("y", "0"))
        rows[y] = rows.get(y, "") + (element.text or "").replace("\N{NO-BREAK SPACE}", " ")
    return [rows[y].rstrip() for y in sorted(rows)]


def session() -> list[str]:
    """The picture's lines, from two runs."""
    demonstration = table(lines_of())
    return ["$ make run", "", *shell(), "~ # exit", "$ make run </dev/null", *demonstration]


def main() -> int:
    """Draws the picture; returns the exit status."""
    PICTURE.write_text(drawn(session()))
    print(f"drawn: {PICTURE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(in_a_line("make picture", main))

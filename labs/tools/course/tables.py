"""`make tables`: the tables that texts hold between two marks, as they are today: the sizes in
CONTRIBUTING.md, what to read in each lesson's handout, the storage lab's sources, and the maps of
the folders' READMEs; and the list of system calls that the kernel does not have."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from labs.storage import published
from labs.tools.course import budget, missing_calls, reading, room_readme
from labs.tools.course.exercises import ROOT, lessons
from labs.tools.course.student_tree import listed
from labs.tools.machine.command import in_a_line


def texts(root: Path = ROOT) -> Iterator[tuple[Path, str]]:
    """Each file with a table, and what should be in it."""
    yield root / missing_calls.FILE, missing_calls.text(root)
    for lesson in lessons(root):
        handout = root / f"labs/lesson{lesson}/README.md"
        table = f"\n{reading.table(str(lesson), root)}\n"
        yield handout, between(handout, reading.BEGINNING, table, reading.END)
    lab = root / "labs/storage/README.md"
    yield lab, between(lab, published.BEGINNING, published.listed(), published.END)
    for name in room_readme.readmes(root):
        yield root / name, room_readme.text(name, listed(root), root)
    sizes = root / "CONTRIBUTING.md"
    yield sizes, between(sizes, budget.BEGINNING, budget.table(root), budget.END)


def between(path: Path, beginning: str, table: str, end: str) -> str:
    """The text of a file with the table between the marks."""
    head, rest = path.read_text().split(beginning)
    return head + beginning + table + end + rest.split(end, 1)[1]


def main() -> int:
    """Renews all; returns the exit status."""
    for path, text in texts():
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            print(f"renewed {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(in_a_line("make tables", main))

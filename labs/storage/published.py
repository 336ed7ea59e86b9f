"""Three words for a figure, and the sources of the first two.

    published   a source says it                                   a black diamond, in tables too
    computed    it follows from published figures by arithmetic    an empty diamond
    ours        it is measured or modelled here                    a dot, a bar, a line; no sign

published.toml has what each source says. A page that calls a figure published or computed has it
there: tests/lab/test_published.py looks.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes

FILE = Path(__file__).with_name("published.toml")
BEGINNING, END = "<!-- make tables: sources -->\n", "<!-- end of make tables -->\n"
PUBLISHED_LABEL, COMPUTED_LABEL = "published 公布", "computed 推算"
NUMBER = re.compile(r"(?<![\w.,^])\d(?:[\d,]*\d)?(?:\.\d+)?")


@dataclass(frozen=True)
class Source:
    """A text with figures. said: what is in it; computed: what follows; flaw: what to know."""

    author: str
    title: str
    when: str
    where: str
    said: tuple[str, ...]
    computed: tuple[str, ...] = ()
    flaw: str = ""


def sources(file: Path = FILE) -> dict[str, Source]:
    """All of them, by a short name."""
    found = tomllib.loads(file.read_text())
    return {
        name: Source(**{k: tuple(v) if isinstance(v, list) else v for k, v in each.items()})
        for name, each in found.items()
    }


def numbers(text: str) -> set[str]:
    """The numbers of a text, without their commas; no part of a name such as X3 or ext4."""
    return {found.replace(",", "") for found in NUMBER.findall(text)}


def listed(file: Path = FILE) -> str:
    """The sources as a list of Markdown, a line for each statement."""
    lines = []
    for each in sources(file).values():
        lines.append(f"- {each.author}, *{each.title}*, {each.where}, {each.when}")
        lines += [f"    - ◆ {said}" for said in each.said]
        lines += [f"    - ◇ {said}" for said in each.computed]
        if each.flaw:
            lines.append(f"    - to be known: {each.flaw}")
    return "\n".join(lines) + "\n"


def mark(axes: Axes, x: object, y: object, is_computed: bool = False) -> None:
    """Draws figures of others: published ones, or such as are computed from them."""
    axes.plot(
        x, y, "kD", markersize=5, fillstyle="none" if is_computed else "full",
        label=COMPUTED_LABEL if is_computed else PUBLISHED_LABEL, linestyle="none", zorder=3,
    )  # fmt: skip

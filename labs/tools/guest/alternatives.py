"""The links that update-alternatives would make when a package is installed.

Nothing of a package is run here, so they are read out of the text of its postinst script:
assignments, loops over words, and `update-alternatives --install LINK NAME TARGET PRIORITY`, each
`--slave LINK NAME TARGET` with it. What a script computes in other ways has no link.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

STATEMENT = re.compile(
    r"""^[ \t]*(?P<name>\w+)=(?P<quote>["']?)(?P<value>(?<=["'])[^"'`$()]*|[^\s"'`$()]*)(?P=quote)$
    |^[ \t]*for[ ](?P<each>\w+)[ ]in[ ](?P<words>[^;\n]+)
    |^[^#\n]*\bupdate-alternatives\b[^\n;]*?--install[ \t]+(?P<install>[^\n;]+)""",
    re.MULTILINE | re.VERBOSE,
)
VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")

Link = tuple[int, str, str]
"""Priority, link and target: both paths from the root."""


def replaced(text: str, values: dict[str, str]) -> str:
    """The text with the variables' values; those that are not known are empty."""
    return VARIABLE.sub(lambda found: values.get(found[1] or found[2], ""), text)


def links_of(script: str) -> Iterator[Link]:
    """The links that a postinst script asks for."""
    values: dict[str, str] = {}
    loops: dict[str, list[str]] = {}
    for found in STATEMENT.finditer(script.replace("\\\n", " ")):
        if found["name"]:
            values[found["name"]] = found["value"]
        elif found["each"]:
            loops[found["each"]] = replaced(found["words"], values).split()
        else:
            yield from installed(found["install"], values, loops)


def installed(text: str, values: dict[str, str], loops: dict[str, list[str]]) -> Iterator[Link]:
    """The links of one command, for each word of the loop whose variable it uses."""
    used = [found[1] or found[2] for found in VARIABLE.finditer(text)]
    each = next((name for name in used if name in loops), "")
    for word in loops.get(each, [""]):
        words = shlex.split(replaced(text, {**values, each: word}), comments=True)
        if len(words) < 4 or not re.fullmatch(r"-?\d+", words[3]):
            continue
        yield int(words[3]), words[0], words[2]
        for at, option in enumerate(words):
            if option == "--slave" and len(words) > at + 3:
                yield int(words[3]), words[at + 1], words[at + 3]


def make_links(scripts: Iterable[str], root: Path) -> None:
    """Makes the links of these scripts below `root`: of each name the one with the highest
    priority whose target is there, too, or will be; none where the packages have a file."""
    wanted = sorted({link for script in scripts for link in links_of(script)})
    names = {link for _, link, _ in wanted}
    best = {
        link: target
        for _, link, target in wanted
        if target in names or os.path.lexists(root / target.lstrip("/"))
    }
    for link, target in best.items():
        path = root / link.lstrip("/")
        if not os.path.lexists(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(target)

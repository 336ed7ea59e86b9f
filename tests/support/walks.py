"""Walks from a program down into the kernel, as gdb sees them: kernel/walks.md is made here.

tests/debugger/walks.toml says what happens, and which functions it comes to. A chain is the calls
at one of them, the innermost last.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from labs.tools.course.exercises import ROOT, regions
from labs.tools.course.rooms import opening

LIST = ROOT / "tests/debugger/walks.toml"
PAGE = ROOT / "kernel/walks.md"

# The functions are reached one after the other, by the task that the walk begins with.
FOLLOW = """
def chain():
    frame, found = gdb.newest_frame(), []
    while frame and frame.name():
        function = frame.function()
        table = function.symtab if function else frame.find_sal().symtab
        found.append((table.filename if table else "", frame.name()))
        frame = frame.older()
    return found[::-1]
class Reached(gdb.Breakpoint):
    # Not gdb's own condition: that one knows no variables where an inlined function comes first.
    def stop(self):
        return bool(gdb.parse_and_eval(self.when))
def reach(place, when):
    point = Reached(place, type=gdb.BP_HARDWARE_BREAKPOINT, temporary=True)
    point.when = when
    answer = run("continue")
    name = gdb.newest_frame().name()
    said["stops"].append([place, name])
    if name != place:
        said["lost"] = f"{{place}}: {{answer}}"
        saw()
        run("kill")
        gdb.execute("quit")
said["stops"], said["chains"] = [], {{}}
for walk in json.loads({walks!r}):
    reach(walk["begins"], walk["when"])
    task = int(gdb.parse_and_eval("(unsigned)current"))
    said["chains"][walk["title"]] = chains = []
    for group in walk["down"]:
        for place in group:
            reach(place, f"(unsigned)current == {{task}}")
        chains.append(chain())
"""


class Call(NamedTuple):
    """A function, and the file that it is in."""

    path: str
    name: str


@dataclass(frozen=True)
class Walk:
    """A walk of the list. `taught` are exercises; see the list for the rest."""

    title: str
    sentence: str
    kernel: str
    script: str
    begins: str
    when: str
    down: list[list[str]]
    taught: list[str]


def walks() -> list[Walk]:
    """The walks of the list, in its order."""
    tables = tomllib.loads(LIST.read_text())["walk"]
    return [Walk(sentence=table.pop("is"), **table) for table in tables]


def probe_of(some: Sequence[Walk]) -> str:
    """What gdb does to follow walks of one kernel, in this order."""
    return FOLLOW.format(walks=json.dumps([vars(walk) for walk in some]))


def chain_of(frames: Sequence[Sequence[str]], root: Path = ROOT) -> list[Call]:
    """A chain from what the probe says. A function that the compiler has split is one call."""
    calls = [Call(inside(path, root), name.partition(".")[0]) for path, name in frames]
    return [call for call, _ in groupby(calls)]


def inside(path: str, root: Path) -> str:
    """A path in the tree, as the tree's texts write it."""
    return (root / path).resolve().relative_to(root).as_posix()


def left_and_back(chain: Sequence[Call]) -> list[str]:
    """The files that a chain leaves and comes back to."""
    files = [path for path, _ in groupby(call.path for call in chain)]
    return sorted({path for path in files if files.count(path) > 1})


def exercise_of(call: Call, root: Path = ROOT) -> str:
    """The exercise in which a student writes the function, or a part of it; or ""."""
    text = (root / call.path).read_text()
    begins = re.search(rf"^(?:{call.name}:|(?!\s)[^\n;]*\b{call.name}\([^;{{]*\{{)", text, re.M)
    if not begins:
        return ""
    ends = re.compile(r"^(?:\}|\w+:)|\Z", re.M).search(text, begins.end()).start()
    for region in regions(text):
        if region.start < ends and begins.start() < region.end:
            return region.exercise
    return ""


def part_below(chain: list[Call], before: list[Call]) -> list[Call]:
    """What of a chain is new, and the call before that."""
    same = 0
    while same < min(len(chain), len(before)) and chain[same] == before[same]:
        same += 1
    return chain[max(same - 1, 0) :]


def table(chain: Sequence[Call]) -> Iterator[str]:
    """The rows of a chain, in Markdown."""
    yield "| file | calls | what the file is |"
    yield "|---|---|---|"
    for path, calls in groupby(chain, key=lambda call: call.path):
        yield f"| `{path}` | {', '.join(map(shown, calls))} | {opening(path)} |"


def shown(call: Call) -> str:
    """A call in a table."""
    exercise = exercise_of(call)
    return f"**`{call.name}`** ({exercise})" if exercise else f"`{call.name}`"


def page(chains: dict[str, list[list[Call]]]) -> str:
    """kernel/walks.md: what a person wrote before the first walk stays."""
    lines = [PAGE.read_text().partition("\n## ")[0]]
    for walk in walks():
        kernel = "the storage lab" if walk.kernel == "storage" else f"lesson {walk.kernel}"
        lines += [f"## {walk.title}", "", f"{walk.sentence} In the kernel of {kernel}:", ""]
        lines += [f"    {walk.script}", ""]
        before: list[Call] = []
        for chain in chains[walk.title]:
            new = part_below(chain, before)
            if before:
                lines += [f"Later `{new[0].name}` goes on:", ""]
            lines += [*table(new), ""]
            before = chain
    return "\n".join(lines[:-1]) + "\n"

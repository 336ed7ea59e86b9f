"""Who uses whom: by includes, and by the symbols that the linker sees.

A .c or .asm and its .h are one module. An arrow goes from one to another that it includes, or
whose symbol it refers to; which arrows there may be is labs/rooms.toml.
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from labs.tools.course.exercises import lessons
from labs.tools.course.rooms import SOURCE, includes, module_of, part_of, room_of, rooms
from labs.tools.course.source_lists import kernels
from tests.support.building import make

ROOT = Path(__file__).resolve().parents[2]
OBJECTS = "build/objects"


@dataclass(frozen=True, order=True)
class Arrow:
    """File `source` uses file `target`: `how` names the line, or the symbol."""

    source: str
    target: str
    how: str

    def __str__(self) -> str:
        return f"{self.source}{self.how} {self.target}"


def fail_with(problems: Iterable[str]) -> None:
    """Fails with one line a problem."""
    if text := "\n".join(problems):
        pytest.fail("\n" + text, pytrace=False)


# ---- includes -----------------------------------------------------------------------------------


@cache
def sources() -> tuple[str, ...]:
    """Every file of the kernel, the loader and the programs that can include another."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"]
    listed = subprocess.run(
        [*command, *rooms()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    names = {name for name in listed.stdout.split("\0") if name.endswith(SOURCE)}
    return tuple(sorted(name for name in names if (ROOT / name).is_file()))


@cache
def by_includes() -> tuple[Arrow, ...]:
    return tuple(
        Arrow(name, other, f":{line} includes")
        for name in sources()
        for line, other in includes(name)
    )


# ---- symbols ------------------------------------------------------------------------------------


@cache
def symbols() -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """For each source that a kernel is linked from: the symbols it defines, and those it wants."""
    make("all-lessons")
    for lesson in lessons():
        make(f"LESSON={lesson}", "BREADTH=no", "image-direct")
    every = (*kernels().values(), *kernels(core=True).values())
    names = sorted({name for kernel in every for name in kernel})
    nm = subprocess.run(
        ["labs/tools/setup/toolchain.sh", "nm"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    objects = [f"{OBJECTS}/{name}.o" for name in names]
    done = subprocess.run(
        [*nm, "-A", *objects], cwd=ROOT, capture_output=True, text=True, check=True
    )
    defined, wanted = defaultdict(set), defaultdict(set)
    for line in done.stdout.splitlines():
        path, kind, symbol = re.match(r"(\S+?):\s*(?:[0-9a-f]+)? (\w) (\S+)$", line).groups()
        name = path.removeprefix(f"{OBJECTS}/").removesuffix(".o")
        if kind == "U":
            wanted[name].add(symbol)
        elif kind.isupper():
            defined[name].add(symbol)
    return {name: (frozenset(defined[name]), frozenset(wanted[name])) for name in names}


@cache
def by_symbols() -> tuple[Arrow, ...]:
    """What files of the same kernel want of one another; what the linker's script defines, and
    what a generated file does, is nobody's. Where a file takes another one's place behind the same
    header, in another kernel or with the breadth, the arrow points to the lower of the two."""
    found = set()
    for kernel in kernels().values():
        names = {symbol for name in kernel for symbol in symbols()[name][0]}
        found |= {
            Arrow(name, lowest_of(symbol), f" refers to {symbol}() of")
            for name in kernel
            for symbol in symbols()[name][1]
            if symbol in names and symbol not in symbols()[name][0]
        }
    return tuple(sorted(found))


@cache
def homes() -> dict[str, list[str]]:
    """For each symbol the sources that define it."""
    found = defaultdict(list)
    for name, (defined, _) in symbols().items():
        for symbol in defined:
            found[symbol].append(name)
    return dict(found)


@cache
def lowest_of(symbol: str) -> str:
    """Of the sources that define a symbol, the one in the lowest folder."""
    order = list(rooms())
    return min(homes()[symbol], key=lambda name: (order.index(room_of(name).folder), name))


# ---- between folders ----------------------------------------------------------------------------


def test_folders_use_those_that_they_may() -> None:
    fail_with(
        f"{arrow}: {room_of(arrow.source).folder} may not use {room_of(arrow.target).folder}; move"
        " the function, or let the upper one register it (labs/rooms.toml)"
        for arrow in (*by_includes(), *by_symbols())
        if not room_of(arrow.source).may(arrow.target)
    )


def test_nothing_uses_the_breadth() -> None:
    """Every kernel links without it: it hooks itself in."""
    fail_with(
        f"{arrow}, which is breadth: move what the core needs into the core, or register it"
        for arrow in (*by_includes(), *by_symbols())
        if part_of(arrow.target) == "breadth" and part_of(arrow.source) in ("core", "storage")
    )


def test_breadth_has_folders_of_its_own() -> None:
    """Lists of the core name no file of a folder that is breadth."""
    fail_with(
        f"labs/{name}: {path} is in a folder of breadth: name it in a list `breadth`"
        for name, kernel in kernels(core=True).items()
        for path in kernel
        if room_of(path).part == "breadth"
    )


def test_every_included_file_is_there() -> None:
    fail_with(
        f"{arrow}, which is not there; write the path from the root of the repository"
        for arrow in by_includes()
        if not (ROOT / arrow.target).is_file()
    )


def test_folders_form_no_circle_but_the_neighbours() -> None:
    """The list itself points down: a folder may use only those before it, and its neighbour."""
    order = list(rooms())
    neighbours = ({"kernel/cpu", "kernel/report"}, {"mm", "kernel/task"})
    fail_with(
        f"labs/rooms.toml: {folder} may use {other}, which stands above it"
        for folder, room in rooms().items()
        for other in room.may_use
        if other in order
        and order.index(other) > order.index(folder)
        and {folder, other} not in neighbours
    )


# ---- circles of files ---------------------------------------------------------------------------


@cache
def graph() -> dict[str, dict[str, Arrow]]:
    """For each module those that it uses, and one reason."""
    found: dict[str, dict[str, Arrow]] = defaultdict(dict)
    for arrow in (*by_includes(), *by_symbols()):
        source, target = module_of(arrow.source), module_of(arrow.target)
        if source != target:
            found[source].setdefault(target, arrow)
    return dict(found)


def shortest_circle(arrows: dict[str, set[str]]) -> list[str]:
    """The modules of a shortest way that ends where it began; empty when there is none."""
    best: list[str] = []
    for start in sorted(arrows):
        waiting, seen = deque([[start]]), {start}
        while waiting and (not best or len(waiting[0]) < len(best)):
            way = waiting.popleft()
            if start in arrows.get(way[-1], ()):
                best = way
                break
            following = sorted(arrows.get(way[-1], set()) - seen)
            seen.update(following)
            waiting.extend([*way, module] for module in following)
    return best


def circles() -> Iterator[list[Arrow]]:
    """Circles of modules, the shortest ones first, until cutting them all leaves none."""
    left = {module: set(others) for module, others in graph().items()}
    while circle := shortest_circle(left):
        ways = list(pairwise([*circle, circle[0]]))
        yield [graph()[source][target] for source, target in ways]
        # The arrow to cut is most likely the one that the fewest others resemble: the one that
        # goes up, to whoever uses the most.
        source, target = max(ways, key=lambda way: len(left.get(way[1], ())))
        left[source].discard(target)


def test_no_circle_of_files() -> None:
    fail_with(
        f"a circle of {len(circle)} files; cut one of: " + "; ".join(map(str, circle))
        for circle in circles()
    )

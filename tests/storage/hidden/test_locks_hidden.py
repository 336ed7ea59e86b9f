"""Exercise S7, for the graders: a second master, in Python, must say the same in every call."""

from __future__ import annotations

from random import Random

import pytest

from tests.storage.locks import (
    EBUSY,
    EINVAL,
    EX,
    NL,
    PR,
    Call,
    check,
    check_run,
    granted,
    script,
)
from tests.support.told import expect

NODES = 16


class Master:
    """What must be said: a node waits in one of two lists, and the warnings that are due are those
    of the first one that waits."""

    def __init__(self) -> None:
        self.level = [NL] * NODES
        self.knows = [NL] * NODES
        self.conversions: dict[int, int] = {}  # in the order in which they came
        self.requests: dict[int, int] = {}

    def call(self, words: tuple[str, ...]) -> Call:
        """A call, and what it must cause."""
        name, node, *level = words[0], *map(int, words[1:])
        self.asts, self.basts, result = [], [], None
        waits = node in self.conversions or node in self.requests
        if name == "request":
            result = self.request(node, level[0], waits)
        elif name == "lower":
            result = self.lower(node, level[0], waits)
        elif waits:
            self.conversions.pop(node, None)
            self.requests.pop(node, None)
            self.asts.append((node, self.level[node], False))
        self.go_on()
        return Call(words, result, tuple(self.asts), tuple(sorted(self.basts)))

    def request(self, node: int, level: int, waits: bool) -> int:
        """A request or a conversion."""
        if not self.level[node] < level <= EX:
            return EINVAL
        if waits:
            return EBUSY
        (self.conversions if self.level[node] else self.requests)[node] = level
        return 0

    def lower(self, node: int, level: int, waits: bool) -> int:
        """A node gives up."""
        if level >= self.level[node]:
            return EINVAL
        if waits:
            return EBUSY
        self.level[node], self.knows[node] = level, NL
        return 0

    def go_on(self) -> None:
        """Grants and warnings."""
        while line := self.conversions or self.requests:
            node, level = next(iter(line.items()))
            others = [n for n in range(NODES) if n != node and self.level[n] + level > EX]
            for other in others:
                if self.knows[other] < level:
                    self.knows[other] = level
                    self.basts.append((other, level))
            if [n for n in others if self.level[n]]:
                return
            del line[node]
            self.level[node], self.knows[node] = level, NL
            self.asts.append((node, level, True))


def same(calls: list[Call]) -> None:
    """They are what the second master says."""
    master, before = Master(), []
    for call in calls:
        before.append(" ".join(call.words))
        wanted = master.call(call.words)
        where = f"after {'; '.join(before[-12:])}"
        expect(f"{call}: asts", call.asts, wanted.asts, where)
        expect(f"{call}: basts", call.basts, wanted.basts, where)
        expect(f"{call}: returns", call.result, wanted.result, where)


def random_calls(chance: Random, nodes: int, count: int) -> list[str]:
    """Calls of all kinds, many of them refused."""
    found = []
    for _ in range(count):
        name = chance.choices(("request", "lower", "cancel"), (5, 4, 1))[0]
        level = "" if name == "cancel" else f" {chance.choice((NL, PR, PR, EX))}"
        found.append(f"{name} {chance.randrange(nodes)}{level}")
    return found


def simple_calls(chance: Random, nodes: int, count: int) -> list[str]:
    """Calls of which none is refused: no node that has a level asks for more, or keeps a part."""
    master, found = Master(), []
    while len(found) < count:
        node = chance.randrange(nodes)
        words = ("request", node, chance.choice((PR, PR, EX)))
        if master.level[node]:
            words = ("lower", node, NL)
        elif node in master.requests:
            words = ("cancel", node)
        found.append(" ".join(map(str, words)))
        master.call(tuple(found[-1].split()))
    return found


@pytest.mark.exercise("S7", points=2, gate=True, host=True)
@pytest.mark.parametrize("nodes", [3, 16])
def test_simple_calls(lab, nodes):
    """Lists of 400 calls without conversions: messages and grants are the model's."""
    chance = Random(lab.seed)
    for _ in range(3):
        same(script(lab, simple_calls(chance, nodes, 400)))


@pytest.mark.exercise("S7", points=2, gate=True, host=True)
@pytest.mark.parametrize("nodes", [2, 3, 5, 16])
def test_random_calls(lab, nodes):
    """Lists of 400 calls: messages and grants are the model's."""
    chance = Random(lab.seed)
    for _ in range(5):
        same(script(lab, random_calls(chance, nodes, 400)))


@pytest.mark.exercise("S7", points=2, gate=True, host=True)
def test_order_of_grants(lab):
    """The order of grants: conversions first, each kind in its order."""
    check(
        lab,
        *((f"request {n} {PR}", granted((n, PR)), ()) for n in range(4)),
        (f"request 4 {EX}", (), [(n, EX) for n in range(4)]),
        (f"request 5 {PR}", (), ()),
        (f"request 2 {EX}", (), ()),
        (f"request 1 {EX}", (), ()),
        (f"lower 0 {NL}", (), ()),
        (f"lower 3 {NL}", (), ()),
        ("cancel 1", ((1, PR, False),), ()),
        (f"lower 1 {NL}", granted((2, EX)), [(2, EX)]),
        (f"lower 2 {NL}", granted((4, EX)), [(4, PR)]),
        (f"lower 4 {NL}", granted((5, PR)), ()),
    )


@pytest.mark.exercise("S7", points=2, gate=True, host=True)
def test_cancelled_conversion(lab):
    """A cancelled conversion: the lock keeps PR, which others share at once. One that is cancelled
    too late, or was never asked for, gets no second answer."""
    check(
        lab,
        ("cancel 3", (), ()),
        (f"request 0 {PR}", granted((0, PR)), ()),
        (f"request 1 {PR}", granted((1, PR)), ()),
        (f"request 1 {EX}", (), [(0, EX)]),
        (f"request 2 {PR}", (), ()),
        ("cancel 1", ((1, PR, False), (2, PR, True)), ()),
        ("cancel 1", (), ()),
        (f"request 3 {EX}", (), [(1, EX), (2, EX)]),
        (f"lower 0 {NL}", (), ()),
        (f"lower 2 {NL}", (), ()),
        (f"request 1 {EX}", granted((1, EX)), [(1, EX)]),
        ("cancel 1", (), ()),
        (f"lower 1 {NL}", granted((3, EX)), ()),
    )


@pytest.mark.exercise("S7", points=3, gate=True, host=True)
def test_no_bast_is_lost(lab):
    """Blocking notices: a node gets one as soon as it is in the way, at its new level, of a new
    request, or after lowering too little."""
    check(
        lab,
        (f"request 0 {EX}", granted((0, EX)), ()),
        (f"request 1 {PR}", (), [(0, PR)]),
        (f"request 2 {EX}", (), ()),
        ("cancel 1", ((1, NL, False),), [(0, EX)]),
        (f"lower 0 {PR}", (), [(0, EX)]),
        (f"lower 0 {NL}", granted((2, EX)), ()),
        (f"request 0 {PR}", (), [(2, PR)]),
        (f"request 1 {EX}", (), ()),
        (f"lower 2 {PR}", granted((0, PR)), [(0, EX), (2, EX)]),
    )


@pytest.mark.exercise("S7", points=1, host=True)
def test_no_bast_is_sent_twice(lab):
    """Blocking notices: a node that has one gets no second."""
    check(
        lab,
        (f"request 0 {PR}", granted((0, PR)), ()),
        (f"request 1 {PR}", granted((1, PR)), ()),
        (f"request 2 {EX}", (), [(0, EX), (1, EX)]),
        (f"request 3 {EX}", (), ()),
        ("cancel 2", ((2, NL, False),), ()),
        (f"lower 0 {NL}", (), ()),
        (f"request 0 {PR}", (), ()),
    )


@pytest.mark.exercise("S7", points=1, host=True)
def test_what_is_refused(lab):
    """Refused calls: a level that does not exist, lowering to a level that is not lower, a second
    request while one waits."""
    lines = {
        f"request 3 {EX + 1}": EINVAL,
        f"request 0 {NL}": EINVAL, f"request 0 {PR}": 0, f"request 0 {PR} ": EINVAL,
        f"lower 0 {PR}": EINVAL, f"lower 0 {EX}": EINVAL, f"request 1 {EX}": 0,
        f"request 1 {PR}": EBUSY, f"request 2 {PR}": 0, f"request 4 {PR}": 0,
        "cancel 1": None, f"request 0 {EX}": 0, f"lower 0 {NL}": EBUSY,
    }  # fmt: skip
    calls = script(lab, list(lines))
    for call, wanted in zip(calls, lines.values(), strict=True):
        expect(f"{call}: returns", call.result, wanted)
    same(calls)


@pytest.mark.exercise("S7", points=4, host=True)
@pytest.mark.parametrize("reads", [0, 50, 90, 100])
def test_nodes(lab, reads):
    """2 to 16 nodes with delayed messages: no two hold incompatible levels, and all end."""
    for nodes in (2, 4, 16):
        same(check_run(lab, nodes, reads, 1500, lab.seed % 1000 + nodes))

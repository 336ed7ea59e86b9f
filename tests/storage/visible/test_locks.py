"""Exercise S7 (an extra): the master of a cluster's lock, call by call, and in a simulation.

Not looked at here, but by the graders: other orders, cancelled conversions, long random lists of
calls, and up to 16 nodes.
"""

from __future__ import annotations

import pytest

from tests.storage.locks import EX, NL, PR, check, check_run, granted
from tests.support.told import Usual, told

HINT = "make hint EX=S7"
USUAL = (
    Usual("(?:lower|cancel) of .*asts: expected .*has (?:PR|EX).*seen (?:none|.*cancelled.)\n",
          "after a level was lowered, or a request was cancelled, look at the queue again"),
    Usual("basts: expected node .*seen none", "the nodes in the way of the first one in the queue "
          "get a bast: also after a grant, when the next one waits already"),
    Usual("basts: expected none", "no bast for a level that the node was told of before, to a "
          "node that is not in the way, or for a request that is not the first one"),
    Usual(r"\basts: expected none", "a request is granted when it is the first one in the queue "
          "and no other node excludes it: PR goes with PR and NL, EX with NL"),
    Usual("expected .*cancelled.*seen (?!.*cancelled)", "a request that is cancelled gets an ast, "
          "too: not granted, with the level that the node still has"),
    Usual("uses EX, node|uses PR, node", "EX excludes all others; and a node that cancels has only "
          "the level that it had"),
    Usual("stuck", "a node that is in the way was not told, or not after its level had changed; or "
          "a request got no ast"),
    Usual("answer too many", "one ast for each request that was accepted"),
    Usual("its bast before its ast", "send the ast as soon as a request is granted, before you "
          "look at the next one"),
    Usual("does not end|no whole answer", "a request that is granted leaves the queue"),
)  # fmt: skip


@pytest.mark.exercise("S7", points=2, gate=True, host=True)
def test_readers_share_and_a_writer_waits(lab):
    """Two have PR; EX waits until both are at NL."""
    with told(USUAL, HINT):
        check(
            lab,
            (f"request 0 {PR}", granted((0, PR)), ()),
            (f"request 1 {PR}", granted((1, PR)), ()),
            (f"request 2 {EX}", (), [(0, EX), (1, EX)]),
            (f"lower 0 {NL}", (), ()),
            (f"lower 1 {NL}", granted((2, EX)), ()),
        )


@pytest.mark.exercise("S7", points=2, host=True)
def test_nobody_overtakes(lab):
    """A reader that comes after a waiting writer waits, too; then both readers have it at once."""
    with told(USUAL, HINT):
        check(
            lab,
            (f"request 0 {PR}", granted((0, PR)), ()),
            (f"request 1 {EX}", (), [(0, EX)]),
            (f"request 2 {PR}", (), ()),
            (f"request 3 {PR}", (), ()),
            (f"lower 0 {NL}", granted((1, EX)), [(1, PR)]),
            (f"lower 1 {NL}", granted((2, PR), (3, PR)), ()),
        )


@pytest.mark.exercise("S7", points=2, host=True)
def test_conversion(lab):
    """PR to EX comes before a new request, and its own PR is not in its way."""
    conversion = Usual(
        r"\basts: expected node 1 has EX, seen none",
        "a conversion waits before all new requests, and a node's own level is not in its way",
    )
    with told((conversion, *USUAL[1:]), HINT):
        check(
            lab,
            (f"request 0 {PR}", granted((0, PR)), ()),
            (f"request 1 {PR}", granted((1, PR)), ()),
            (f"request 2 {EX}", (), [(0, EX), (1, EX)]),
            (f"request 1 {EX}", (), ()),
            (f"lower 0 {NL}", granted((1, EX)), [(1, EX)]),
        )


@pytest.mark.exercise("S7", points=2, host=True)
def test_cancel(lab):
    """What is taken back gets an answer, and the next one its turn."""
    with told(USUAL, HINT):
        check(
            lab,
            (f"request 0 {PR}", granted((0, PR)), ()),
            (f"request 1 {EX}", (), [(0, EX)]),
            (f"request 2 {PR}", (), ()),
            ("cancel 1", ((1, NL, False), (2, PR, True)), ()),
        )


@pytest.mark.exercise("S7", points=2, gate=True, host=True)
def test_simulation(lab):
    """Four nodes, half of the operations read: nobody is together with a writer, none is stuck."""
    with told(USUAL, HINT):
        check_run(lab, 4, 50, 2000, lab.seed)

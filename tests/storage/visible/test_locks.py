"""Exercise S7 (an extra): the master of a cluster's lock, call by call, and in a simulation.

Not looked at here, but by the graders: other orders, cancelled conversions, long random lists of
calls, and up to 16 nodes.
"""

from __future__ import annotations

import pytest

from tests.storage.locks import EX, NL, PR, check, check_run, granted
from tests.told import told

HINT = "make hint EX=S7"


@pytest.mark.exercise("S7", points=2, gate=True, host=True)
def test_readers_share_and_a_writer_waits(lab):
    """Two have PR; EX waits until both are at NL."""
    usually = "PR goes with PR and NL, EX only with NL; who is in the way gets a bast"
    with told(usually, HINT):
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
    with told("only the first one of the queue may be granted; then look at the next one", HINT):
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
    with told("a conversion waits before all new requests", HINT):
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
    with told("after a request has gone, the next one is the first", HINT):
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
    usually = "stuck: a node that is in the way was not told, or not after its level had changed"
    with told(usually, HINT):
        check_run(lab, 4, 50, 2000, lab.seed)

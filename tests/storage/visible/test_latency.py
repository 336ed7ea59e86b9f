"""Exercise S8 (an extra): histograms of latencies, and the drive that is nearly broken.

Not looked at here, but by the graders: every boundary of a bucket, times of more than 32 bits, few
requests, and other numbers of peers.
"""

from __future__ import annotations

import pytest

from tests.storage.latency import MS, US, S, check_places, is_slow, numbers_of
from tests.support.told import Usual, expect, told

HINT = "make hint EX=S8"


@pytest.mark.exercise("S8", points=2, gate=True, host=True)
def test_places(lab):
    """One request of some 12 us, 9.4 ms and 25 s."""
    usually = (
        Usual("powers", "powers[n] has what takes at least 2^(n - 1) us, and less than 2^n us"),
        Usual("steps", "a step is 10 us below 1 ms, 10 ms below 1 s, and 10 s from there on"),
        Usual("total_ns", "one request more, and all of its nanoseconds"),
    )
    with told(usually, HINT):
        times = (12 * US, 9_400 * US, 25 * S)
        short, middle, long = (time + lab.seed % (time // 20) for time in times)
        check_places(lab, [(short, 4, "us", 1), (middle, 14, "ms", 0), (long, 25, "s", 2)])


@pytest.mark.exercise("S8", points=1, host=True)
def test_mean_and_percentile(lab):
    """90 requests of 5 ms, 10 of 50 ms."""
    disk = [(5 * MS, 90), (50 * MS, 10)]
    usually = (
        Usual("mean", "all nanoseconds together, divided by the requests, in microseconds"),
        Usual("below", "2^n for the lowest n for which powers[0] to powers[n] have this many of a "
              "thousand requests; compare products, a division cuts"),
    )  # fmt: skip
    with told(usually, HINT):
        questions = ("mean", "below 900", "below 901")
        for what, seen, wanted in zip(
            questions, numbers_of(lab, disk, *questions), (9_500, 8192, 65_536), strict=True
        ):
            expect(f"{what}, us", seen, wanted)


@pytest.mark.exercise("S8", points=2, gate=True, host=True)
def test_detector(lab):
    """Three peers at 5 ms: a drive at 11 ms is slow, one at 9 ms is not."""
    peers = [[(5 * MS, 100)]] * 3
    with told("more than twice the median of the others' means", HINT):
        expect("11 ms among 5 ms: slow", is_slow(lab, [(11 * MS, 100)], peers), True)
        expect("9 ms among 5 ms: slow", is_slow(lab, [(9 * MS, 100)], peers), False)

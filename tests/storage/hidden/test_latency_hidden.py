"""Exercise S8, for the graders: every border, large numbers, few requests, peers of all kinds."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from statistics import median

import pytest

from labs.tools.grading.lab import Lab
from tests.storage.latency import (
    FEW,
    MS,
    US,
    Disk,
    Place,
    S,
    buckets,
    check_places,
    is_slow,
    numbers_of,
)
from tests.support.told import expect

LAST_POWER, LAST_STEP, MOST_US = 31, 99, 2**32 - 1


def place(ns: int) -> Place:
    """Where a request is counted."""
    us = min(ns // US, MOST_US)
    power = min(us.bit_length(), LAST_POWER)
    if us < 1000:
        return ns, power, "us", us // 10
    if us < 1_000_000:
        return ns, power, "ms", us // 10_000
    return ns, power, "s", min(us // 10_000_000, LAST_STEP)


def random_places(lab: Lab, count: int = 10) -> list[Place]:
    """Requests that no table of answers has."""
    chance = Random(lab.seed)
    return [place(chance.randrange(US << chance.randrange(32))) for _ in range(count)]


def mixed(lab: Lab, times: Iterable[int]) -> list[Place]:
    """Requests of these times and others, in any order."""
    places = [*map(place, times), *random_places(lab)]
    return Random(lab.seed).sample(places, len(places))


@pytest.mark.exercise("S8", points=3, gate=True, host=True)
def test_limits_of_powers(lab):
    """Buckets of powers of two: right one nanosecond below each limit, and at it."""
    borders = [2**power * US for power in (0, 1, 2, 3, 7, 10, 20, 29, 30)]
    check_places(lab, mixed(lab, (ns for border in borders for ns in (border - 1, border))))


@pytest.mark.exercise("S8", points=3, gate=True, host=True)
def test_limits_of_steps(lab):
    """Buckets of 10 us, 1 ms, 10 ms, 1 s and 10 s: right below each limit, and at it."""
    borders = (10 * US, 990 * US, MS, 10 * MS, 990 * MS, S, 10 * S, 990 * S)
    check_places(lab, mixed(lab, (ns for border in borders for ns in (0, border - 1, border))))


@pytest.mark.exercise("S8", points=2, host=True)
def test_what_does_not_fit(lab):
    """Latencies of hours: in the last bucket, with an exact sum."""
    check_places(lab, mixed(lab, (1000 * S, 4295 * S, 2**32 * US, 2**33 * US + 5, 2**43)))
    time, count = Random(lab.seed).randrange(4295 * S, 9000 * S), Random(lab.seed).randrange(2, 9)
    (several,) = buckets(lab, [[(time, count)]])
    expect(f"count and total of {count}", several.total, [count, count * time])


def bound(disk: Disk, permille: int) -> int:
    """The least power of two that this many requests stay below."""
    counts = [0] * 33
    for ns, times in disk:
        counts[place(ns)[1]] += times
    wanted, seen = sum(counts) * permille, 0
    for power in range(LAST_POWER):
        seen += counts[power]
        if seen * 1000 >= wanted:
            return 2**power
    return MOST_US


@pytest.mark.exercise("S8", points=3, gate=True, host=True)
def test_percentiles(lab):
    """Percentiles of no request, one, few, many and millions: exact."""
    chance = Random(lab.seed)
    disks: list[Disk] = [[], [(5 * MS, 1)], [(4 * US, 1), (5000 * S, 1)], [(0, 3)]]
    for _ in range(6):
        disks.append([(chance.randrange(1, 10**9), chance.randrange(1, 9)) for _ in range(5)])
    disks.append([(7 * MS, 4000), (70 * MS, 40), (700 * MS, 4)])
    disks.append([(7 * MS, 4_400_000), (700 * MS, 40_000)])  # times 1000 more than 32 bits hold
    disks.append([(7 * MS, 1), (3000 * S, 5_000_000)])  # the same, nearly all in the last bucket
    for disk in disks:
        parts = (1, 500, 990, 999, 1000)
        answers = numbers_of(lab, disk, *(f"below {part}" for part in parts))
        for permille, seen in zip(parts, answers, strict=True):
            expect(f"{disk}: below, {permille} of 1000", seen, bound(disk, permille))


@pytest.mark.exercise("S8", points=2, host=True)
def test_means(lab):
    """Means: rounded down to microseconds, 0 without requests, exact for sums above 32 bits."""
    chance = Random(lab.seed)
    disks: list[Disk] = [[], [(1999, 1)], [(US, 2), (2 * US, 1)], [(3 * S, 2000)]]
    disks += [[(chance.randrange(3 * S), chance.randrange(1, 99)) for _ in "abc"] for _ in "ab"]
    for disk in disks:
        total, count = sum(ns * n for ns, n in disk), sum(n for _, n in disk)
        wanted = total // US // count if count else 0
        expect(f"{disk}: mean", numbers_of(lab, disk, "mean"), [wanted])


@pytest.mark.exercise("S8", points=3, host=True)
def test_too_few_requests(lab):
    """Few requests, of the drive or of a peer: no verdict."""
    chance = Random(lab.seed)
    slow, fast = chance.randrange(50, 200) * MS, chance.randrange(1, 9) * MS
    for mine in (1, FEW - 1, FEW):
        for others in (0, FEW - 1, FEW):
            seen = is_slow(lab, [(slow, mine)], [[(fast, others)], [(fast, others)]])
            what = f"{mine} requests, the peers {others}: slow"
            expect(what, seen, mine >= FEW and others >= FEW)
    peers = [[(slow, FEW - 1)], [(slow, FEW - 1)], [(fast, FEW)]]
    expect("only one peer says something: slow", is_slow(lab, [(slow, FEW)], peers), True)
    peers = [[(slow, FEW)], [(slow, FEW - 1)], [(fast, FEW)], [], [(fast, FEW)]]
    expect("three of five peers say something: slow", is_slow(lab, [(slow, FEW)], peers), True)
    both = [[(slow, FEW)]] * 2
    expect("the fast one among slow ones: slow", is_slow(lab, [(fast, FEW)], both), False)
    expect("no peers: slow", is_slow(lab, [(slow, FEW)], []), False)


@pytest.mark.exercise("S8", points=4, gate=True, host=True)
def test_median_of_peers(lab):
    """1 to 16 peers: a drive is slow above twice the median, and not at twice the median."""
    chance = Random(lab.seed)
    for count in (1, 2, 3, 4, 7, 16):
        means = chance.sample(range(1000, 9000, 2), count)
        if count > 2:
            means[chance.randrange(count)] = 3_000_000
        means[means.index(sorted(means)[count // 2])] += 1  # of two in the middle the sum is odd
        peers = [[(us * US, FEW)] for us in means]
        twice = int(2 * median(means))
        for mine in (twice - 1, twice, twice + 1):
            seen = is_slow(lab, [(mine * US, FEW)], peers)
            expect(f"{mine} us, peers {means}: slow", seen, mine > twice)
    peers = [[(chance.randrange(US), FEW)] for _ in "abc"]
    expect("1 us, peers below 1 us: slow", is_slow(lab, [(US, FEW)], peers), True)


@pytest.mark.exercise("S8", points=1, host=True)
def test_large_means(lab):
    """Means whose double needs more than 32 bits: compared exactly. Peers beyond the 16th are
    ignored."""
    chance = Random(lab.seed)
    peers = [[(5 * MS, FEW)]] * 16 + [[(3 * S, FEW)]] * 3
    expect("11 ms, 16 peers of 5 ms, then 3: slow", is_slow(lab, [(11 * MS, FEW)], peers), True)
    time = chance.randrange(2500, 3500)
    peers = [[(time * S, FEW)]] * 3
    expect(f"4000 s, peers {time} s: slow", is_slow(lab, [(4000 * S, FEW)], peers), False)
    peers = [[(time // 2 * S, FEW)]] * 3
    expect(f"4000 s, peers {time // 2} s: slow", is_slow(lab, [(4000 * S, FEW)], peers), True)

"""Requests that come at random to many disks."""

from __future__ import annotations

from random import Random

import pytest

from labs.storage.disk_model import drive
from labs.storage.experiments.x11_blob import misses
from labs.storage.load_model import latencies_ms, percentile, rate_within


def some(rate, chain=1, reads=1, seed=1, count=400):
    return latencies_ms(lambda: [drive("hdd15k") for _ in range(4)], rate, count,
                        lambda _: chain, reads, seed)  # fmt: skip


def mean(values):
    return sum(values) / len(values)


def test_alone_a_request_takes_as_long_as_its_parts():
    """At a rate at which none waits: 5.6 ms a disk request."""
    assert mean(some(5)) == pytest.approx(5.5, rel=0.06)
    assert mean(some(5, reads=2)) == pytest.approx(11, rel=0.06)
    assert mean(some(5, chain=3, reads=2)) == pytest.approx(33, rel=0.06)


def test_the_more_come_the_longer_each_takes():
    medians = [percentile(some(rate), 0.5) for rate in (50, 300, 600, 2000)]
    assert medians == sorted(medians) and medians[-1] > 5 * medians[0]


def test_none_is_lost_and_the_seed_says_all():
    assert len(some(3000, count=500)) == 400  # and 100 to warm up
    assert some(300) == some(300) != some(300, seed=2)


def test_the_rate_at_a_limit_is_between_two():
    assert rate_within(200, [100.0, 200.0, 300.0], [100, 150, 250]) == 250
    assert rate_within(200, [100.0], [400]) == 50
    assert rate_within(200, [100.0, 200.0], [10, 20]) == 200


def test_metadata_gets_warm():
    generator = Random(1)
    counts = [mean([misses(read, generator) for _ in range(2000)]) for read in (0, 1e5, 1e6, 1e8)]
    assert counts[0] == 3 and counts[-1] == 1
    assert counts[1] == pytest.approx(1 + 0.368 + 0.852, abs=0.04)

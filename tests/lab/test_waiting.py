"""What the experiments with tasks and locks are made of: who waits, what a group keeps, what is
lost, and whose turn it is."""

from __future__ import annotations

import random

import pytest
from simpy import Environment

from labs.bench.counting import Count
from labs.storage.disk_model import Request
from labs.storage.experiments import fsck_trees, x29_groups, x30_direct, x33_objects, x35_beside
from labs.storage.experiments.groups import BLOCKS, Group, buddy_of
from labs.storage.experiments.guest import ExperimentError
from labs.storage.experiments.rings import Rings
from labs.storage.experiments.waiting import Lock, closed_form
from labs.storage.experiments.waiting import run as run_tasks
from labs.storage.queue_model import Waiting


def run(*tasks):
    """Each is when it comes, what it wants (alone or shared), and how long it works; when each got
    the lock."""
    clock, got = Environment(), {}
    lock = Lock(clock)

    def task(number, comes, wants, works):
        yield clock.timeout(comes)
        yield getattr(lock, wants)()
        got[number] = clock.now
        yield clock.timeout(works)
        lock.give_back()

    end = run_tasks(clock, (task(number, *each) for number, each in enumerate(tasks)))
    return [got[number] for number in range(len(tasks))], end, lock.waited


def test_one_after_the_other():
    assert run((0.0, "alone", 3.0), (1.0, "alone", 2.0)) == ([0.0, 3.0], 5.0, 1)


def test_readers_share_and_do_not_overtake_a_writer():
    got, end, waited = run((0.0, "shared", 3.0), (1.0, "shared", 3.0), (2.0, "alone", 1.0),
                           (2.5, "shared", 1.0))  # fmt: skip
    assert got == [0.0, 1.0, 4.0, 5.0] and (end, waited) == (6.0, 2)


def test_the_closed_form_at_its_ends():
    """Alone nobody waits; with many the lock is always taken."""
    assert closed_form(1, 3.0, 1.0) == (0.25, 0.0)
    rate, wait = closed_form(200, 3.0, 1.0)
    assert rate == pytest.approx(1.0) and wait == pytest.approx(200 - 3 - 1)


def finish(steps):
    """What a generator returns."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def test_a_group_alone_keeps_its_three_records_equal():
    group, generator, kept = Group(), random.Random(1), []
    for _ in range(3000):
        if kept and generator.random() < 0.5:
            finish(group.give(*kept.pop(generator.randrange(len(kept)))))
        else:
            order = generator.randrange(6)
            first = finish(group.take(order))
            if first is not None:
                kept.append((first, order))
        assert group.free == group.bits.count(0)
    assert (group.twice, group.wrong_runs, group.wrong_count) == (0, 0, 0)
    for each in kept:
        finish(group.give(*each))
    assert group.buddy == buddy_of(bytearray(BLOCKS)) and group.free == BLOCKS


def test_two_that_look_at_once_get_the_same_block():
    group = Group()
    one, other = group.take(0), group.take(0)
    next(one), next(other)
    assert finish(one) == finish(other) == 0
    assert (group.twice, group.wrong_count) == (1, 1)


def counts(*kinds):
    return [Count(10 * number, 0, 0, (), kind) for number, kind in enumerate(kinds)]


def test_the_price_of_a_group():
    """From the look to the second block that goes back after the change."""
    append = ("mark", "bcache_put", "ext_bitmap_find", "bcache_put", "ext_bitmap_change",
              "bcache_put", "bcache_put", "bcache_put", "mark")  # fmt: skip
    assert x29_groups.prices(counts(*append, *append)) == (80, 40)
    with pytest.raises(ExperimentError, match="0 of 2 appends"):
        x29_groups.prices(counts("mark", "mark", "mark", "mark"))


def test_a_locked_file_has_no_torn_read_and_one_writer_at_a_time():
    trial = x30_direct.Trial(x30_direct.WAYS[x30_direct.DIRECT], 5)
    assert trial.run()["torn"] == 0
    free = x30_direct.Trial(x30_direct.WAYS[x30_direct.FREE], 5)
    assert free.run()["writes"] > 2 * len(trial.latencies["write"]) / 5


def test_write_back_takes_the_oldest():
    trial = x30_direct.Trial(x30_direct.WAYS[x30_direct.BUFFERED], 5)
    for record in range(x30_direct.DIRTY + 1):
        list(trial.write(record))
    assert list(trial.dirty) == list(range(x30_direct.CHUNK, x30_direct.DIRTY + 1))


def test_a_file_is_lost_by_a_sector_without_a_copy():
    files = x33_objects.layout(x33_objects.OBJECTS)
    single = x33_objects.owners(files)
    mirrored, striped = files[0], files[1]
    assert {len(unit) for unit in mirrored.copies} == {2}
    assert {unit[0][0] for unit in striped.copies} == {0, 1}
    assert not set(single.values()) & {n for n, file in enumerate(files) if len(file.copies[0]) > 1}
    places = [each for file in files for unit in file.copies for each in unit]
    assert len(places) == len(set(places))
    assert x33_objects.chance(mirrored, 99) == 0
    half = x33_objects.FILE_UNITS // 2 * x33_objects.UNIT
    assert x33_objects.chance(striped, 1) == pytest.approx(half / x33_objects.SECTORS)


def waits(task, lba):
    return Waiting(0.0, 0.0, task, Request("read", lba, 8), [])


def test_a_fair_order_gives_each_task_its_slice():
    """The reader comes first; then the writer, who has had nothing; after its slice the reader."""
    fair = x35_beside.Fair(slice_ms=10)
    reader, low, high = waits(0, 500), waits(1, 100), waits(1, 900)
    assert fair.choose(200, [low, high, reader]) is reader
    fair.spend(0, 12)
    assert fair.choose(200, [low, high, reader]) is high
    fair.spend(1, 6)
    assert fair.choose(908, [low, reader]) is low
    fair.spend(1, 7)
    assert fair.choose(108, [waits(1, 200), reader]) is reader


def test_a_task_that_was_away_has_no_claim_to_the_past():
    fair = x35_beside.Fair(slice_ms=10)
    fair.choose(0, [waits(1, 100)])
    fair.spend(1, 1000)
    assert fair.had_ms[0] == 990


def test_writes_between_reads():
    asked = [Request(each, 0, 8) for each in ("read", "write", "write", "read", "read", "write")]
    assert x35_beside.between(asked) == [2, 0]


def test_a_tree_is_read_whole_in_either_order():
    for _, nodes in fsck_trees.places(100, is_aged=True):
        assert sorted(fsck_trees.sorted_by_level(nodes)) == sorted(nodes)
    parents = [0, 201]
    nodes = [0, *range(200, 0, -1), 201, 300]
    assert fsck_trees.sorted_by_level(nodes)[:2] == parents
    assert fsck_trees.sorted_by_level(nodes)[2:] == [*range(1, 201), 300]


def test_merged_rings_are_in_order_if_the_clocks_agree():
    rings = Rings(4, 70, 300, is_shared=False)
    rings.run(200)
    assert rings.out_of_order() == 0
    wrong = Rings(4, 70, 300, is_shared=False, skew=100)
    wrong.run(200)
    assert wrong.out_of_order() > 0

"""The plots of the storage deck show what the models say today."""

from __future__ import annotations

import pytest

from labs.storage.disk_model import SECTOR_BYTES, SEEK_ROOT_MS, seek_curve_ms
from labs.storage.disks import Experiment
from labs.storage.experiments import x02_cache, x16_writeback, x36_queue
from labs.storage.queue_model import reads_of
from labs.storage.report import predict
from slides import draw


def shown(name):
    """A plot's x, and its curves."""
    (plot,) = (each for each in draw.figures() if each["name"] == name)
    return plot["x"], [curve["y"] for curve in plot["curve"]]


def test_the_way_of_the_arm():
    parts, (curve,) = shown("storage_seek")
    found = [seek_curve_ms(part / 100, SEEK_ROOT_MS) for part in parts]
    assert curve == pytest.approx(found, abs=0.01)


def test_readers_and_orders():
    readers, curves = shown("storage_queue")
    experiment = Experiment(scale=100, reads=1000, seed=2010)
    (run,) = (run for run in predict(experiment) if run.name == x36_queue.LAYOUTS["ext4"])
    reads = {"ext4": reads_of(run.requests, run.kinds)}
    reads["ext3"] = reads["ext4"]  # not drawn
    for order, curve in zip(("fifo", "c-look", "satf"), curves, strict=True):
        for count in (1, 8, 32):
            row = x36_queue.one(reads, experiment.drive_bytes // SECTOR_BYTES, readers=count,
                                depth=count, drive=order)  # fmt: skip
            assert curve[readers.index(count)] == pytest.approx(row["ext4"], rel=0.005)


def test_hits_by_the_size_of_the_file():
    """A tenth of the reads: where half of them hit the time is within a tenth."""
    ratios, (buffered, direct) = shown("storage_cache")
    for ratio, *times in zip(ratios, buffered, direct, strict=True):
        row = x02_cache.one(ratio, x02_cache.SMALL_READS, seed=2)
        assert times == pytest.approx([row["buffered"], row["direct"]], rel=0.1)


def test_write_back_in_turns():
    chunks, (disk, flash) = shown("storage_chunk")
    for name, curve in (("hdd5400", disk), ("sata-ssd", flash)):
        found = [x16_writeback.rate(name, chunk, 1600) for chunk in chunks]
        assert curve == pytest.approx(found, rel=0.005)

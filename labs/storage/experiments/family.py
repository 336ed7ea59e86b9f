"""The table of all experiments: number, module."""

from __future__ import annotations

from importlib import import_module

from labs.storage.experiments.base import Experiment

ALL = {
    2: "x02_cache",
    3: "x03_mapping",
    4: "x04_size",
    5: "x05_mix",
    6: "x06_fragments",
    7: "x07_block",
    8: "x08_copy",
    9: "x09_memory",
    10: "x10_noise",
    11: "x11_blob",
    12: "x12_compact",
    13: "x13_start",
    14: "x14_account",
    15: "x15_poll",
    16: "x16_writeback",
    17: "x17_dirty",
    18: "x18_lru",
    19: "x19_checksums",
    20: "x20_latency",
    21: "x21_unlink",
    22: "x22_fsck",
    23: "x23_flash",
    24: "x24_locks",
    25: "x25_trace",
    26: "x26_ahead",
    27: "x27_snapshot",
    28: "x28_raw",
    29: "x29_groups",
    30: "x30_direct",
    31: "x31_stat",
    32: "x32_packing",
    33: "x33_objects",
    34: "x34_changed",
    35: "x35_beside",
    36: "x36_queue",
}


def experiment(number: int) -> Experiment:
    """An experiment by its number. Raises KeyError."""
    return import_module(f"labs.storage.experiments.{ALL[number]}")

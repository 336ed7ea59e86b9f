"""The table of all experiments: number, module."""

from __future__ import annotations

from importlib import import_module

from labs.storage.experiments.base import Experiment

ALL = {
    3: "x03_mapping",
    5: "x05_mix",
    9: "x09_memory",
    14: "x14_account",
    20: "x20_latency",
}


def experiment(number: int) -> Experiment:
    """An experiment by its number. Raises KeyError."""
    return import_module(f"labs.storage.experiments.{ALL[number]}").EXPERIMENT

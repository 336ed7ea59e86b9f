"""A plugin of pytest for tests/harness/test_stops.py: the harness with limits of a few seconds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from labs.tools.machine import machine

SECONDS = 4.0

FULL_START = machine.Machine.__init__


def pytest_configure() -> None:
    """Only where pytest is told to use this plugin: an import alone changes nothing."""
    machine.START_SECONDS = machine.QUIT_SECONDS = SECONDS
    machine.Machine.__init__ = start


def start(this: Any, config: Any, *more: Any, **options: Any) -> None:
    """Makes a machine's limits as short; those that a test has chosen shorter, or longer than
    usual, stay."""
    limits = {
        name: min(getattr(config, name), SECONDS)
        for name in ("guest_limit", "wall_limit")
        if getattr(config, name) <= getattr(type(config), name)
    }
    FULL_START(this, replace(config, **limits), *more, **options)

"""A plugin of pytest for tests/test_stops.py: the harness with limits of a few seconds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from labs.tools.machine import machine

SECONDS = 4.0

machine.START_SECONDS = machine.QUIT_SECONDS = SECONDS
FULL_START = machine.Machine.__init__


def start(this: Any, config: Any, *more: Any, **options: Any) -> None:
    """Makes a machine's limits as short; those that a test has chosen shorter stay."""
    limits = {name: min(getattr(config, name), SECONDS) for name in ("guest_limit", "wall_limit")}
    FULL_START(this, replace(config, **limits), *more, **options)


machine.Machine.__init__ = start

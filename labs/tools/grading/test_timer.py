"""pytest-timeout's limit, counted: stopping a process tree for an hour uses up one tick, because an
alarm that is due many times is delivered once.
"""

from __future__ import annotations

import signal
from typing import Any

import pytest

TICK_SECONDS = 0.5


@pytest.hookimpl(optionalhook=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool:
    """Starts the count for a test; instead of the plugin's own timer."""
    left = round(settings.timeout / TICK_SECONDS)

    def tick(*_: object) -> None:
        nonlocal left
        left -= 1
        if left <= 0:
            signal.setitimer(signal.ITIMER_REAL, 0)
            pytest.fail(f"Timeout: the test has run for {settings.timeout:g} seconds")

    signal.signal(signal.SIGALRM, tick)
    signal.setitimer(signal.ITIMER_REAL, TICK_SECONDS, TICK_SECONDS)
    return True


@pytest.hookimpl(optionalhook=True)
def pytest_timeout_cancel_timer(item: pytest.Item) -> bool:
    """Ends the count."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    return True

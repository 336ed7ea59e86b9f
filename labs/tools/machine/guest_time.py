"""How long a guest has run, for limits: what the host did in between does not count."""

from __future__ import annotations

from labs.tools.machine.monitor import Monitor
from labs.tools.machine.qemu_command import Config

LOOK_SECONDS = 1.0  # the resolution of Monitor.whole_seconds


class GuestTime:
    """Guest seconds, for a loop that looks again and again, at least once a second.

    Where instructions make the time (icount), they are counted. The rest of the guest's time goes
    by the host's clock: all of it in plain TCG, and the idle time of a machine that waits for a
    person (without skip_idle). Of that a second counts at most from one look to the next, since the
    host's clock also runs while QEMU is stopped.
    """

    def __init__(self, monitor: Monitor, config: Config) -> None:
        self._monitor = monitor
        self._shift = config.icount
        recorded = config.record or config.replay
        self._is_exact = config.icount is not None and config.skip_idle and not recorded
        self._latest = self._waited = 0.0

    def seconds(self) -> float:
        """What counts of the time since power-on. Raises MonitorLost."""
        whole = self._monitor.whole_seconds()
        if self._is_exact:
            return whole
        busy = 0.0 if self._shift is None else self._monitor.instructions() * 2**self._shift / 1e9
        passed = whole - busy
        self._waited += min(max(passed - self._latest, 0), LOOK_SECONDS)
        self._latest = max(self._latest, passed)
        return busy + self._waited

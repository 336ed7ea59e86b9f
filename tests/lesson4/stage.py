"""A stopped machine whose threads, or programs, a test plays: what lets it go on, and looks at
places of the kernel on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.lesson4.support import at_interrupt, timer_gate
from tests.support.remote import Guest

Registers = dict[str, int]
Watcher = Callable[[Registers], None]
SECONDS = 6  # of processor time, from one stop to the next


class Reached(Exception):
    """The kernel has come to the place where the play ends."""


class Stage:
    """A stopped kernel."""

    def __init__(self, guest: Guest, goal: str) -> None:
        self.guest = guest
        self._goal = goal
        self._watched: dict[int, Watcher] = {}
        self._stop = self._left = 0  # where the play ends, and at which time
        self._gate = 0  # of the timer, once it is known

    @contextmanager
    def watching(self, **watchers: Watcher) -> Iterator[None]:
        """Each gets the registers at the beginning of the kernel's function of its name. It may let
        the guest go on, up to another place."""
        places = {self.guest.address(name): each for name, each in watchers.items()}
        for place, watcher in places.items():
            self.watch(place, watcher)
        yield
        for place in places:
            self.unwatch(place)

    def watch(self, place: int, watcher: Watcher) -> None:
        """The same for an address."""
        self._watched[place] = watcher
        self.guest.stop_at(place)

    def unwatch(self, place: int) -> None:
        """No more."""
        del self._watched[place]
        self.guest.go_past(place)

    def goes_to(self, place: str, play: Callable[[], None], times: int = 1) -> bool:
        """Plays until the kernel is at this place, for this time, or to the end."""
        self._stop, self._left = self.guest.address(place), times
        with self.guest.stopping_at(self._stop):
            try:
                play()
            except Reached:
                return True
            finally:
                self._stop = 0
        return False

    def leap(self, entry: Registers, stack: bytes) -> Registers:
        """Lets the guest go on with these registers, and this on top of its stack, up to a place
        that nobody watches. Returns the registers there."""
        now = self.guest.leap(entry, stack, SECONDS, self._goal)
        while (here := now["eip"]) in self._watched or here == self._stop:
            self._left -= here == self._stop
            if here == self._stop and self._left == 0:
                raise Reached
            self._watched.get(here, lambda _: None)(now)
            if self.guest.registers()["eip"] == here:
                self.guest.step()
            now = self.guest.registers()
            if not self.guest.stops_at(now["eip"]):
                self.guest.go(SECONDS, self._goal)
                now = self.guest.registers()
        return now

    def tick(self, now: Registers) -> None:
        """A tick of the clock where the processor is, in the kernel, with these registers."""
        entry, stack = at_interrupt(now, self.timer_gate)
        self.guest.write(entry["esp"], stack)
        self.guest.put(entry)

    @property
    def timer_gate(self) -> int:
        """Where the processor goes at a tick."""
        self._gate = self._gate or timer_gate(self.guest)
        return self._gate

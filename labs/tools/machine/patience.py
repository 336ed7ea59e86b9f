"""Says that something takes longer than a few seconds, and how far it is.

with told(lambda: "measuring"):
    ...

On a terminal the text is one line, with the seconds, which is written over and at last taken away;
elsewhere each new text is a line of its own. It goes to stderr: the output is somebody else's.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

FIRST_SECONDS = 5.0  # nobody minds to wait for less
STEP_SECONDS = 1.0
CLEAR = "\r\x1b[K"


@contextmanager
def told(
    words: Callable[[], str],
    stream: TextIO | None = None,
    first: float = FIRST_SECONDS,
    in_place: bool = True,
) -> Iterator[None]:
    """Tells `words()` from `first` seconds on, about once a second; an empty text says nothing.
    Without `in_place` a terminal, too, gets lines: another program writes there."""
    stream = stream or sys.stderr
    over = threading.Event()
    how = tell_in_place if in_place and stream.isatty() else tell_lines
    teller = threading.Thread(target=how, args=(words, stream, first, over), daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


def tell_in_place(
    words: Callable[[], str], stream: TextIO, first: float, over: threading.Event
) -> None:
    """One line of a terminal, until it is over."""
    start, pause = time.monotonic(), first
    while not over.wait(pause):
        pause = STEP_SECONDS
        if text := words():
            seconds = time.monotonic() - start
            print(f"{CLEAR}{text} ({seconds:.0f} s)", end="", file=stream, flush=True)
    if pause != first:
        print(CLEAR, end="", file=stream, flush=True)


def tell_lines(
    words: Callable[[], str], stream: TextIO, first: float, over: threading.Event
) -> None:
    """A line for each new text, until it is over. A terminal that QEMU has needs the return."""
    last, pause = "", first
    while not over.wait(pause):
        pause = STEP_SECONDS
        if (text := words()) and text != last:
            print(text, end="\r\n" if stream.isatty() else "\n", file=stream, flush=True)
            last = text


PROMPTS = (b"apprentice> ", b" # ", b" $ ")  # there it waits for us


class Silence:
    """Words for a guest that says nothing for long before its prompt. `said` gives its output."""

    def __init__(self, said: Callable[[], bytes], command: str) -> None:
        self._said = said
        self._command = command
        self._length = 0
        self._since = time.monotonic()

    def __call__(self) -> str:
        """The words; empty while there is nothing to tell."""
        output = self._said()
        if len(output) != self._length:
            self._length, self._since = len(output), time.monotonic()
        if any(prompt in output for prompt in PROMPTS):
            return ""
        if time.monotonic() - self._since < FIRST_SECONDS:
            return ""
        more = "no more comes" if output else "nothing comes"
        return f"make run: {more} from the kernel; it may loop or wait. {self._command} shows where"

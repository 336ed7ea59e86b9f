"""Tools of the build, which read what a student wrote: run in the box, with a reason when they
fail."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from labs.tools.grading import sandbox
from labs.tools.grading.graded_tree import first_error


class BuildFailure(AssertionError):
    """The tree under test does not build; the text is the first thing that went wrong."""


def run_tool(command: Sequence[str], directory: Path, boxed: bool) -> None:
    """Runs a tool of the build in `directory`. Raises BuildFailure with its first error."""
    done = sandbox.run(command, directory, sandbox.BUILD, boxed)
    if done.limit:
        raise BuildFailure(f"{command[0]} was stopped: {done.limit}")
    if done.status != 0:
        raise BuildFailure(f"it does not build: {first_error(done.output)}\n{done.output}")

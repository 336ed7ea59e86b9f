"""`make hint EX=1.3`: the next hint for an exercise; LAYER=1 to 3 chooses one.

What has been shown is remembered in build/hints.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from labs.tools.course.exercises import ROOT, Exercise, ExerciseError, by_id

MEMORY = ROOT / "build" / "hints.json"
PROGRAM = "make hint"


def shown_so_far(memory: Path) -> dict[str, int]:
    """The last layer that was shown, by exercise. A file that cannot be read is none."""
    try:
        known = json.loads(memory.read_text())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def remember(memory: Path, number: str, layer: int) -> None:
    """Writes down which layer was shown last."""
    memory.parent.mkdir(parents=True, exist_ok=True)
    memory.write_text(json.dumps({**shown_so_far(memory), number: layer}, sort_keys=True) + "\n")


def next_layer(exercise: Exercise, memory: Path) -> int:
    """The layer behind the one that was shown last, from 1; the last one stays."""
    last = shown_so_far(memory).get(exercise.id, 0)
    return min(last + 1, len(exercise.hints)) if isinstance(last, int) and last > 0 else 1


def chosen_layer(exercise: Exercise, layer: str) -> int:
    """The layer that LAYER names. Raises ExerciseError."""
    if layer.isdecimal() and 1 <= int(layer) <= len(exercise.hints):
        return int(layer)
    raise ExerciseError(f"LAYER={layer}: exercise {exercise.id} has 1 to {len(exercise.hints)}")


def page(exercise: Exercise, layer: int) -> str:
    """One layer, with what it is about and how many are left."""
    left = len(exercise.hints) - layer
    needs = f"Before it works you need {', '.join(exercise.needs)}.\n" if exercise.needs else ""
    more = {
        0: "This was the last hint.",
        1: "One more is left, nearly the answer: the same command shows it.",
    }.get(left, f"{left} more are left: the same command shows the next.")
    return (
        f"Exercise {exercise.id}, {exercise.title}: {', '.join(exercise.files)}\n{needs}"
        f"\nHint {layer} of {len(exercise.hints)}\n\n{exercise.hints[layer - 1]}\n{more}"
    )


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog=PROGRAM, allow_abbrev=False)
    parser.add_argument("exercise", metavar="EX")
    parser.add_argument("--layer")
    options = parser.parse_args()
    try:
        exercise = by_id(options.exercise)
        if options.layer is None:
            layer = next_layer(exercise, MEMORY)
        else:
            layer = chosen_layer(exercise, options.layer)
    except ExerciseError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 1
    print(page(exercise, layer))
    remember(MEMORY, exercise.id, layer)
    return 0


if __name__ == "__main__":
    sys.exit(main())

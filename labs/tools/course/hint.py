"""`make hint EX=1.3`: the next hint for an exercise; LAYER=1 to 4 chooses one.

The layers: a pointer, the steps, a picture or a worked example, and at last nearly the finished
text. That one opens when a `make grade` has seen the exercise written, and failing. What has been
shown is remembered in build/hints.json, what has failed in build/attempts.json.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from labs.tools.course.exercises import ROOT, Exercise, ExerciseError, by_id, regions, word_of
from labs.tools.machine.command import Options, in_a_line, say
from labs.tools.machine.language import paragraphs, told

MEMORY = ROOT / "build" / "hints.json"
ATTEMPTS = ROOT / "build" / "attempts.json"
PROGRAM = "make hint"


def numbers_in(memory: Path) -> dict[str, int]:
    """A number for each exercise. A file that cannot be read has none."""
    try:
        known = json.loads(memory.read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(known, dict):
        return {}
    return {name: number for name, number in known.items() if isinstance(number, int)}


def remember(memory: Path, changes: dict[str, int]) -> None:
    """Writes these numbers down, and keeps the others."""
    memory.parent.mkdir(parents=True, exist_ok=True)
    memory.write_text(json.dumps({**numbers_in(memory), **changes}, sort_keys=True) + "\n")


def is_written(exercise: Exercise, root: Path = ROOT) -> bool:
    """Has every blank been replaced? True also when the marks are gone."""
    try:
        found = [each for path in exercise.files for each in regions((root / path).read_text())]
    except (OSError, ExerciseError):
        return True
    bodies = [region.body for region in found if region.exercise == exercise.id]
    return all(body.strip() and "exercise_missing" not in body for body in bodies)


def remember_failures(exercises: Iterable[Exercise]) -> None:
    """For `make grade`: these have failed. Those that are written count as an attempt."""
    known = numbers_in(ATTEMPTS)
    tried = [each.id for each in exercises if is_written(each)]
    remember(ATTEMPTS, {number: known.get(number, 0) + 1 for number in tried})


def last_open_layer(exercise: Exercise, attempts: Path) -> int:
    """The last layer that may be shown: all of them after a failed attempt, else all but one."""
    failed = numbers_in(attempts).get(exercise.id, 0) > 0
    return len(exercise.hints) - (0 if failed else 1)


def next_layer(exercise: Exercise, memory: Path, attempts: Path) -> int:
    """The layer after the one that was shown last, from 1; the last open one stays."""
    last = numbers_in(memory).get(exercise.id, 0)
    return max(1, min(last + 1, last_open_layer(exercise, attempts)))


def chosen_layer(exercise: Exercise, layer: str, attempts: Path) -> int:
    """The layer that LAYER names. Raises ExerciseError."""
    if not layer.isdecimal() or not 1 <= int(layer) <= len(exercise.hints):
        raise ExerciseError(f"LAYER={layer}: exercise {exercise.id} has 1 to {len(exercise.hints)}")
    if int(layer) > last_open_layer(exercise, attempts):
        raise ExerciseError(f"LAYER={layer} is closed. {key(exercise)}")
    return int(layer)


def key(exercise: Exercise) -> str:
    """What opens the last layer."""
    return (
        f"It is nearly the finished text, and opens after an attempt: write {exercise.id},\n"
        f"run make grade LESSON={word_of(exercise.lesson)}, and if it fails, ask again."
    )


def page(exercise: Exercise, layer: int, is_open: bool) -> str:
    """One layer, with what it is about and how many are left."""
    left = len(exercise.hints) - layer
    needs = f"Before it works you need {', '.join(exercise.needs)}." if exercise.needs else ""
    if left == 0:
        more = "This was the last hint."
    elif left > 1:
        more = f"{left} more are left: the same command shows the next."
    elif is_open:
        more = "One more is left, nearly the finished text: the same command shows it."
    else:
        more = f"One more is left. {key(exercise)}"
    head = [f"Exercise {exercise.id}, {exercise.title}: {', '.join(exercise.files)}", needs]
    return "\n".join([
        *(told(each) for each in head if each),
        "", told(f"Hint {layer} of {len(exercise.hints)}"),
        "", paragraphs(exercise.hints[layer - 1].rstrip("\n")), "", told(more),
    ])  # fmt: skip


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = Options(PROGRAM)
    parser.add_argument("exercise", metavar="EX")
    parser.add_argument("--layer")
    options = parser.parse_args()
    try:
        exercise = by_id(options.exercise)
        if options.layer is None:
            layer = next_layer(exercise, MEMORY, ATTEMPTS)
        else:
            layer = chosen_layer(exercise, options.layer, ATTEMPTS)
    except ExerciseError as error:
        say(f"{PROGRAM}: {error}")
        return 1
    print(page(exercise, layer, last_open_layer(exercise, ATTEMPTS) == len(exercise.hints)))
    remember(MEMORY, {exercise.id: layer})
    return 0


if __name__ == "__main__":
    sys.exit(in_a_line("make hint", main))

"""`make course DIR=../course`: what an instructor keeps, and what students get, as repositories.

DIR/instructor     this whole repository: private
DIR/lesson1, ...   a template for each lesson, as make start makes it, with one commit: to push
DIR/README.md      how to hand them out

COURSE=word is this year's. It decides at which points a kernel is measured, so last year's
measurement is refused; and make submit hands it in.

Before a template is there, it is searched for what no student may have: solutions, hidden tests,
answers.
"""

from __future__ import annotations

import re
import sys
from argparse import ArgumentTypeError
from collections.abc import Iterator, Mapping
from pathlib import Path

from labs.tools.course.exercises import (
    ROOT,
    ExerciseError,
    every_lesson,
    load,
    name_of,
    number_of,
    regions,
    word_of,
)
from labs.tools.course.handed_in import COURSE, answers_path, without_answers
from labs.tools.course.start import commit, heading, write
from labs.tools.course.student_tree import TreeError, contents, listed
from labs.tools.machine.command import CommandError, Options, in_a_line, typed_path

PROGRAM = "make course"
HANDOUT = Path(__file__).parent / "course.md"
SHORTEST = 60  # characters of a solution without spaces: what is shorter may be anywhere
PRIVATE = re.compile(
    r"(^|/)(hidden|mutants|mistakes|cheats|other_ways|cohort|given|proving)/|INSTRUCTOR"
    r"|author\.mk$|solutions"
)
SPACES = re.compile(rb"\s+")


def squeezed(data: bytes) -> bytes:
    """A text without spaces and line ends."""
    return SPACES.sub(b"", data)


def solutions(lesson: int) -> dict[str, bytes]:
    """What is between the marks of the lesson's exercises, and of later ones, by what to call it;
    squeezed. What is short, or the handout itself has, is no solution."""
    found = {}
    for exercise in load():
        stubs = squeezed("".join(s for each in exercise.stubs.values() for s in each).encode())
        for path in exercise.files if exercise.lesson >= lesson else ():
            for region in regions((ROOT / path).read_text()):
                body = squeezed(region.body.encode())
                if region.exercise == exercise.id and len(body) >= SHORTEST and body not in stubs:
                    found[f"{exercise.id} in {path}, {region.start}"] = body
    return found


def leaks(lesson: int, tree: Mapping[str, bytes]) -> Iterator[str]:
    """What a template has and no student may have, a line each."""
    known = solutions(lesson)
    for path, data in tree.items():
        if PRIVATE.search(path):
            yield f"{path} is private"
        text = squeezed(data)
        yield from (f"{path} has the solution of {name}" for name, body in known.items()
                    if body in text)  # fmt: skip
    for number in every_lesson():
        answers = tree.get(answers_path(number), b"").decode()
        if answers != without_answers(answers):
            yield f"{answers_path(number)} has answers"


def make_template(lesson: int, directory: Path, own: Mapping[str, bytes]) -> int:
    """Makes the template of a lesson, with files of its own besides; returns how many files it has.
    Raises TreeError."""
    tree = {**contents(lesson), **own}
    if found := list(leaks(lesson, tree)):
        raise TreeError(f"{directory} must not be handed out: {'; '.join(found)}")
    write(tree, directory)
    commit(directory, f"{heading(lesson).capitalize()}, as it begins")
    return len(tree)


def make_private(directory: Path, own: Mapping[str, bytes]) -> int:
    """Copies this repository, as it is now, with one commit; returns how many files it has."""
    tree = {path: (ROOT / path).read_bytes() for path in sorted(listed(ROOT))} | own
    write(tree, directory)
    commit(directory, "The course, for instructors only")
    return len(tree)


def a_word(text: str) -> str:
    """This year's word, for argparse."""
    if not re.fullmatch(r"[\w.-]{1,40}", text, re.ASCII):
        raise ArgumentTypeError(f"{text!r}: 1 to 40 letters, digits and . - _")
    return text


def main() -> int:
    """The command. Returns its exit status."""
    parser = Options(PROGRAM)
    parser.add_argument("--dir", type=typed_path, default=Path())
    parser.add_argument("--lesson", default="", help="only this template")
    parser.add_argument("--course", type=a_word, help="this year's word")
    options = parser.parse_args()
    place = options.dir
    own = {COURSE: f"{options.course}\n".encode()} if options.course else {}
    try:
        if place == Path():
            raise TreeError("say where: make course DIR=../course")
        lessons = [number_of(options.lesson)] if options.lesson else list(every_lesson())
        if place.exists() and (not place.is_dir() or any(place.iterdir())):
            raise TreeError(f"DIR={place} is there, and not an empty folder")
        print(f"{place}/instructor: {make_private(place / 'instructor', own)} files, private")
        for lesson in lessons:
            count = make_template(lesson, place / name_of(lesson), own)
            print(f"{place}/{name_of(lesson)}: {heading(lesson)}, {count} files", flush=True)
        (place / "README.md").write_text(handing_out(lessons))
    except (TreeError, ExerciseError) as error:
        raise CommandError(str(error)) from error
    print(f"{place}/README.md says how to hand them out")
    return 0


def handing_out(lessons: list[int]) -> str:
    """README.md."""
    rows = "".join(
        f"| `{name_of(lesson)}/` | {every_lesson()[lesson]} | `LESSON={word_of(lesson)}` |\n"
        for lesson in lessons
    )
    return HANDOUT.read_text().format(rows=rows, first=name_of(lessons[0]))


if __name__ == "__main__":
    sys.exit(in_a_line(PROGRAM, main))

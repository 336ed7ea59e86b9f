"""`make autograder FORMAT=gradescope LESSON=1`: what a platform wants for grading, as one folder.

gradescope     autograder.zip: to upload as it is
prairielearn   a question, and the image that grades it: docker build
autolab        autograde-Makefile, autograde.tar, and the assessment's .yml
classroom50    a folder for CLASSROOM/autograders/ASSIGNMENT: visible tests only, since students
               can read it

It is written to build/autograder/FORMAT-lessonN, or to OUTPUT. The first three have the whole
grader, with solutions and hidden tests: they are for the platform only.
"""

from __future__ import annotations

import gzip
import io
import json
import shutil
import sys
import tarfile
import uuid
import zipfile
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path

from labs.tools.cohort.course import leaks
from labs.tools.cohort.exports import VISIBILITIES
from labs.tools.cohort.one import asked_of
from labs.tools.course.exercises import (
    ROOT,
    ExerciseError,
    every_lesson,
    name_of,
    number_of,
    word_of,
)
from labs.tools.course.student_tree import TreeError, contents, listed
from labs.tools.course.submit import OLDEST, graded_files
from labs.tools.machine.command import CommandError, Options, in_a_line, typed_path

PROGRAM = "make autograder"
BUNDLES = Path(__file__).parent / "bundles"
FORMATS = ("gradescope", "prairielearn", "autolab", "classroom50")
SPACE = uuid.UUID("6f1b3c52-6d3f-4b0e-9f5a-6c1a5f0f3d11")  # of the questions' own numbers
# What no grade needs.
LEFT_OUT = (
    *("slides/*", "tests/mutants/*", "tests/mistakes/*", "tests/cheats/*", "tests/debian/*"),
    *("tests/other_ways/*", "tests/cohort/*", "tests/debugger/*", "tests/grading/*"),
)


def archive(files: Mapping[str, bytes], prefix: str = "") -> bytes:
    """A tar, the same bytes each time; what begins with #! can be run."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        for path, data in sorted(files.items()):
            info = tarfile.TarInfo(f"{prefix}{path}")
            info.size, info.mode = len(data), 0o755 if data.startswith(b"#!") else 0o644
            made.addfile(info, io.BytesIO(data))
    return out.getvalue()


def compressed(data: bytes) -> bytes:
    """The same in gzip's form."""
    return gzip.compress(data, mtime=0)


def grader_files() -> dict[str, bytes]:
    """What grades: this repository, without what no grade needs."""
    wanted = (path for path in listed(ROOT) if not any(fnmatch(path, e) for e in LEFT_OUT))
    return {path: (ROOT / path).read_bytes() for path in wanted}


def filled(form: str, words: Mapping[str, str]) -> dict[str, bytes]:
    """The files of a format, with the lesson's own words in them."""
    found = {}
    for path in sorted((BUNDLES / form).iterdir()):
        text = path.read_text()
        for name, word in words.items():
            text = text.replace(f"@{name}@", word)
        found[path.name] = text.encode()
    return found


def assessment(lesson: int) -> str:
    """Autolab's .yml of an assessment: a problem an exercise."""
    lines = ["general:", f"  name: {name_of(lesson)}", "  category_name: Lessons"]
    lines += [f"  display_name: {json.dumps(every_lesson()[lesson])}"]
    lines += [f"  handin_filename: {name_of(lesson)}.zip", "  handin_directory: handin"]
    lines += ["  max_grace_days: 0", "  max_size: 2", "problems:"]
    for each in asked_of(lesson).values():
        title = json.dumps(each.title)
        lines += [f"- name: {json.dumps(each.id)}", f"  description: {title}"]
        lines += [f"  max_score: {each.points}.0", "  optional: false"]
    lines += ["autograder:", "  autograde_timeout: 1800", "  autograde_image: apprentice"]
    return "\n".join([*lines, "  release_score: true"]) + "\n"


def bundle(form: str, lesson: int, hidden: str) -> dict[str, bytes]:
    """The files of a bundle by path. Raises TreeError."""
    name = name_of(lesson)
    words = {"LESSON": word_of(lesson), "NAME": name, "HIDDEN": hidden}
    words |= {"TITLE": every_lesson()[lesson], "UUID": str(uuid.uuid5(SPACE, name))}
    words["FILES"] = json.dumps(graded_files(lesson), indent=1)
    files = filled(form, words)
    if form == "classroom50":
        tree = contents(lesson)
        if found := list(leaks(lesson, tree)):
            raise TreeError(f"it must not be handed out: {'; '.join(found)}")
        tree["visible.py"] = files.pop("visible.py")
        return files | {"template.tar.gz": compressed(archive(tree))}
    grader = {"apprentice.tar.gz": compressed(archive(grader_files()))}
    if form == "gradescope":
        return {"autograder.zip": zipped(files | grader)}
    if form == "autolab":
        makefile = files.pop("autograde-Makefile")
        inner = archive(files | grader)
        return {
            "autograde-Makefile": makefile,
            "autograde.tar": inner,
            f"{name}.yml": assessment(lesson).encode(),
        }
    question = {
        f"questions/{name}/{each}": files.pop(each) for each in ("info.json", "question.html")
    }
    return question | {f"image/{path}": data for path, data in (files | grader).items()}


def zipped(files: Mapping[str, bytes]) -> bytes:
    """A zip whose files are at its top, the same bytes each time."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for path, data in sorted(files.items()):
            info = zipfile.ZipInfo(path, OLDEST)
            info.external_attr = (0o100755 if data.startswith(b"#!") else 0o100644) << 16
            made.writestr(info, data)
    return out.getvalue()


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns its exit status."""
    parser = Options(PROGRAM)
    parser.add_argument("--format", required=True, choices=FORMATS)
    parser.add_argument("--lesson", required=True)
    parser.add_argument("--hidden", choices=VISIBILITIES, default="after_due_date")
    parser.add_argument("--output", type=typed_path)
    options = parser.parse_args(arguments)
    try:
        lesson = number_of(options.lesson)
        files = bundle(options.format, lesson, options.hidden)
    except (ExerciseError, TreeError) as error:
        raise CommandError(str(error)) from error
    name = f"{options.format}-{name_of(lesson)}"
    place = options.output or ROOT / "build/autograder" / name
    if not options.output:
        shutil.rmtree(place, ignore_errors=True)
    for path, data in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(data)
        (place / path).chmod(0o755 if data.startswith(b"#!") else 0o644)
    shown = place if options.output else place.relative_to(ROOT)
    print(f"{shown}: {', '.join(sorted(files))}")
    return 0


if __name__ == "__main__":
    sys.exit(in_a_line(PROGRAM, main))

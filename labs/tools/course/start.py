"""`make start LESSON=n DIR=d`: a student's tree, with a git history of its own.

Two runs from the same source make the same files and the same commit.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from labs.tools.course.exercises import STORAGE, ExerciseError, number_of
from labs.tools.course.student_tree import TreeError, contents
from labs.tools.machine.command import Options, in_a_line, own_environment, typed_path

DATE = "2026-01-01T00:00:00+00:00"
AUTHOR = ("Apprentice", "apprentice@localhost")
PROGRAM = "make start"


def write(tree: dict[str, bytes], directory: Path) -> None:
    """Writes the files; what begins with #! can be run."""
    for path, data in tree.items():
        place = directory / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        place.chmod(0o755 if data.startswith(b"#!") else 0o644)


def commit(directory: Path, message: str) -> None:
    """Makes a repository with one commit, whatever the user's own settings are."""
    git(directory, "init", "-q", "--template=", "--initial-branch=main")
    git(directory, "add", "--all", "--force")
    git(directory, "commit", "-q", "--no-gpg-sign", "--no-verify", "-m", message)


def git(directory: Path, *arguments: str) -> str:
    """Runs git in the new repository, and returns its output. Raises TreeError with its words."""
    name, address = AUTHOR
    environment = {
        **own_environment(),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        **{f"GIT_{role}_NAME": name for role in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{role}_EMAIL": address for role in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{role}_DATE": DATE for role in ("AUTHOR", "COMMITTER")},
    }
    command = ["git", "-C", str(directory), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise TreeError(f"git {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout


def start(lesson: int, directory: Path) -> int:
    """Makes the tree in a directory that is empty or not there yet. Returns how many files it has.
    Raises TreeError and ExerciseError."""
    if directory.exists() and not directory.is_dir():
        raise TreeError(f"DIR={directory} is a file")
    if directory.is_dir() and any(directory.iterdir()):
        raise TreeError(f"DIR={directory} is not empty; name a directory that is not there yet")
    tree = contents(lesson)
    try:
        write(tree, directory)
    except OSError as error:
        raise TreeError(f"DIR={directory}: {error.strerror}: {error.filename}") from error
    commit(directory, f"{heading(lesson).capitalize()}, as it begins")
    return len(tree)


def heading(lesson: int) -> str:
    """What a lesson is called in a sentence."""
    return "the storage lab" if lesson == STORAGE else f"lesson {lesson}"


def place_of(directory: Path) -> str:
    """A folder as cd takes it: a name is no option of it, and not looked for elsewhere (CDPATH)."""
    return str(directory) if str(directory)[0] in "./" else f"./{directory}"


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = Options(PROGRAM)
    parser.add_argument("lesson", metavar="LESSON")
    parser.add_argument("directory", metavar="DIR", type=typed_path)
    options = parser.parse_args()
    try:
        if options.directory == Path():
            raise TreeError("say where: make start LESSON=1 DIR=../my-kernel")
        lesson = number_of(options.lesson)
        count = start(lesson, options.directory)
    except (TreeError, ExerciseError) as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 1
    print(f"{options.directory}: {heading(lesson)}, {count} files. Begin with its README.md,")
    print(f"and with: cd {shlex.quote(place_of(options.directory))} && make doctor")
    return 0


if __name__ == "__main__":
    sys.exit(in_a_line("make start", main))

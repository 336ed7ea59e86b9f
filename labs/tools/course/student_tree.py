"""Which files a student of a lesson gets, and what is in them.

A student's tree has what its lesson's kernel, its visible tests and its commands need, and what
those need in turn: includes, imported modules, files that are named. So whatever nobody there needs
stays out: later lessons, hidden tests, the tools of the authors. Lessons before are solved, the
lesson itself is blank. A file that the lesson links, and that holds a blank of a later lesson, is
given as object code: not the reference's, which would be the solution, but that of a file in
given/, which does the same for this lesson alone.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from fnmatch import fnmatch, translate
from functools import cache
from pathlib import Path, PurePosixPath

from labs.tools.course import room_readme, rooms, tree_readme
from labs.tools.course.exercises import (
    LIST,
    ROOT,
    STORAGE,
    ExerciseError,
    blank,
    every_lesson,
    lesson_of,
    load,
    name_of,
    number_of,
    regions,
    solved,
)
from labs.tools.course.handed_in import COURSE, answers_path, without_answers
from labs.tools.course.source_lists import ever_linked
from labs.tools.machine.command import own_environment

# What each tree has, if it is there.
ALWAYS = (
    *(".clang-format", ".editorconfig", ".gitattributes", ".gitignore"),
    *("LICENSE", "Makefile", "pyproject.toml"),
    *(
        "boot/*",
        "kernel/report/exercise.h",
        "kernel/report/exercise.inc",
        "labs/tools/debugging/gdb/*",
        "labs/tools/debugging/gdb_mi.sh",
        "labs/tools/debugging/past/*",
        "labs/tools/setup/*",
    ),
    *("labs/debugging.md", "labs/glossary.md", "labs/reference/*"),  # the handouts lead to them
    *("labs/page/*", "labs/laptop.md", ".devcontainer/*", ".vscode/*.json"),
    *(LIST, COURSE, "tests/conftest.py", "labs/locale/*/messages/tools.po"),
)
OF_LESSON = (
    *("labs/{}/*", "tests/{}/visible/*"),
    *("tests/{}/host/*", "tests/{}/programs/*", "labs/locale/*/messages/{}.po"),
)
# What trees have from a lesson on, and none before has: programs need a kernel that runs them.
OF_STORAGE = (
    *("account", "seekrw", "cpbench", "dirtycost", "fail", "manyfiles", "pageread", "tracecost"),
)
SINCE = {
    "user/*": 3,
    **dict.fromkeys((f"user/{n}*" for n in OF_STORAGE), STORAGE),
}

# What no student gets, whatever file names it. The rooms of later lessons need no mention.
NEVER = (
    *("tests/*/hidden/*", "tests/mutants/*", "tests/other_ways/*", "tests/cheats/*"),
    "tests/mistakes/*",
    *("tests/kernel/*", "tests/support/words.py", "tests/later_kernels.toml", "slides/*"),
    *("labs/storage/crash/*", "labs/storage/fuzz.py"),  # they have pieces of solutions
    "labs/storage/together.py",  # with the program of crash/tasks_guest.py
    *("user/README.md", "labs/author.mk", "labs/tools/course/start*"),
    "labs/tools/course/given/*",
    *(f"labs/tools/course/{n}.py" for n in ("book", "budget", "tables")),
    *(f"labs/tools/course/{n}_readme.py" for n in ("tree", "room")),
    *(
        "labs/tools/course/student_tree.py",
        "labs/tools/proving/*",
        "labs/tools/cohort/*",
        "INSTRUCTOR*.md",
        "labs/*/measurement.json",
        "*solutions*",
        ".ci/*",
    ),
)

# What replaces a file that a lesson gives as object code: GIVEN/lesson1/boot/paging.asm.
GIVEN = "labs/tools/course/given"

# What else differs in a tree, for the sake of those: file, old text, new text.
DIFFERENCES = {
    1: (
        ("boot/stage2.asm", "CODE16\t\tequ 0x18\t", "CODE16\t\tequ 0x08\t"),
        ("boot/stage2.asm", "DATA16\t\tequ 0x20\n", "DATA16\t\tequ 0x10\n"),
    ),
}

# Where each lesson has a folder of its own.
ROOMS = ("labs", "tests", "labs/page/locale/zh_CN/LC_MESSAGES")

INCLUDE = re.compile(r'^[ \t]*[#%][ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)
PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)+")
MODULE = re.compile(r"-m ([\w.]+)")


class TreeError(ValueError):
    """The tree cannot be made; the message names the cause."""


def contents(lesson: int, root: Path = ROOT) -> dict[str, bytes]:
    """The files of a student's tree by path. Raises TreeError and ExerciseError."""
    number_of(str(lesson), root)
    given = given_as_objects(lesson, root)
    tree = {path: content(path, lesson, root) for path in chosen(lesson, root) - given}
    tree |= {path: different(path, lesson, tree[path]) for path in differing(lesson) & set(tree)}
    tree |= {f"{path}.o": object_code(path, lesson, root) for path in given}
    tree |= readmes_of_rooms(set(tree), root)
    given_names = sorted(f"{path}.o" for path in given)
    tree["README.md"] = tree_readme.text(lesson, set(tree), given_names, root).encode()
    return dict(sorted(tree.items()))


# ---- which files --------------------------------------------------------------------------------


@cache
def listed(root: Path) -> frozenset[str]:
    """The files that git knows or would add, and that are there. A tree from a ZIP file has no
    repository: there it is all but what .gitignore names."""
    if not (root / ".git").exists():
        return frozenset(without_git(root))
    command = ["git", "-c", "safe.directory=*", "ls-files"]
    command += ["-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(
        command, cwd=root, env=own_environment(), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise TreeError(f"git cannot list the files: {done.stderr.strip()}")
    return frozenset(name for name in done.stdout.split("\0") if name and (root / name).is_file())


def without_git(root: Path) -> Iterator[str]:
    """The files of a tree but those with a name of .gitignore's, or in such a folder."""
    ignored = [line.strip("/") for line in (root / ".gitignore").read_text().split()]

    def kept(names: list[str]) -> list[str]:
        return [name for name in names if not any(fnmatch(name, each) for each in ignored)]

    for directory, folders, names in os.walk(root):
        folders[:] = kept(folders)
        yield from (str(Path(directory, name).relative_to(root)) for name in kept(names))


@cache
def chosen(lesson: int, root: Path) -> frozenset[str]:
    """The paths of a lesson's tree: what it begins with, and all that those refer to."""
    found: set[str] = set()
    linked = ever_linked([number for number in every_lesson(root) if number <= lesson], root)
    allowed = listed(root) - withheld(lesson, root, linked)
    waiting = {path for path in allowed if path in linked or begins_with(path, lesson, root)}
    while waiting:
        path = waiting.pop()
        found.add(path)
        waiting |= (references(path, root) & allowed) - found
    return frozenset(found)


def begins_with(path: str, lesson: int, root: Path) -> bool:
    """Is the file one that a tree has even if it is not linked and no other refers to it?"""
    numbers = [number for number in every_lesson(root) if number <= lesson]
    patterns = [*ALWAYS, *(each.format(name_of(n)) for n in numbers for each in OF_LESSON)]
    patterns += [pattern for pattern, first in SINCE.items() if first <= lesson]
    return bool(any_of(tuple(patterns)).match(path))


@cache
def any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Matches the paths that fnmatch would, by one of the patterns."""
    return re.compile("|".join(map(translate, patterns)))


def withheld(lesson: int, root: Path, linked: set[str]) -> set[str]:
    """The files that a student of this lesson does not get, even if another one refers to them.
    `linked` are those that the lessons so far link."""
    later = [number for number in every_lesson(root) if number > lesson]
    rooms = [f"{room}/{name_of(n)}/*" for room in ROOMS for n in later]
    rooms += [pattern for pattern, first in SINCE.items() if first > lesson]
    found = ever_linked(later, root)
    found |= set(filter(any_of((*NEVER, *rooms)).match, listed(root)))
    own = {f"labs/{name_of(n)}/main.c" for n in every_lesson(root) if n <= lesson}
    return found - linked - own


@cache
def references(path: str, root: Path) -> frozenset[str]:
    """The files that a file includes, imports or names; only those that are there."""
    suffix = PurePosixPath(path).suffix
    if suffix == ".py":
        named = set(python_references((root / path).read_text()))
    elif suffix in (".c", ".h", ".asm", ".inc"):
        named = set(INCLUDE.findall((root / path).read_text()))
        named |= {str(PurePosixPath(each).with_suffix(".h")) for each in named}  # see the Makefile
    elif path == "Makefile":
        text = (root / path).read_text()
        named = {*PATH.findall(text), *map(module_path, MODULE.findall(text))}
    else:
        named = set()
    return listed(root) & named


def python_references(text: str) -> Iterator[str]:
    """The paths of what a module may import, and of what its strings name: files and modules."""
    for node in ast.walk(ast.parse(text)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = [node.value] if re.fullmatch(r"[\w.]+", node.value) else []
            yield node.value
        for name in names:
            yield module_path(name)


def module_path(name: str) -> str:
    """labs.tools.machine.run is labs/tools/machine/run.py."""
    return name.replace(".", "/") + ".py"


# ---- what is in them ----------------------------------------------------------------------------


def content(path: str, lesson: int, root: Path) -> bytes:
    """A file as the student gets it."""
    if path == LIST:
        return exercise_list(lesson, root).encode()
    if path == rooms.LIST:
        return room_list(lesson, root).encode()
    if path in map(answers_path, every_lesson(root)):
        return without_answers((root / path).read_text()).encode()
    data = (root / path).read_bytes()
    if b"SOLUTION " not in data or path not in exercise_files(root):
        return data
    text = data.decode()
    try:
        for exercise in load(root):
            if exercise.lesson == lesson and path in exercise.files:
                text = blank(text, path, exercise)
        return without_solutions(text, lesson).encode()
    except ExerciseError as error:
        raise TreeError(f"{path}: {error}") from error


def without_solutions(text: str, lesson: int) -> str:
    """The text without marks of earlier lessons. Raises ExerciseError if it still has solutions."""
    for region in regions(text):
        if lesson_of(region.exercise) > lesson:
            raise ExerciseError(f"it solves {region.exercise}, of a later lesson")
    return solved(text)


@cache
def exercise_files(root: Path) -> frozenset[str]:
    """The files with blanks, of all lessons."""
    return frozenset(path for exercise in load(root) for path in exercise.files)


def exercise_list(lesson: int, root: Path) -> str:
    """The list of exercises up to this lesson, without the solutions."""
    head, *blocks = re.split(r"^(?=\[\[exercise\]\]$)", (root / LIST).read_text(), flags=re.M)
    titles = re.findall(r"^\d = .*$", head, re.MULTILINE)
    kept = [block.split("\n[exercise.stubs]")[0].rstrip("\n") for block in blocks]
    exercises = [
        block for block, each in zip(kept, load(root), strict=True) if each.lesson <= lesson
    ]
    lines = [
        "# The exercises: titles, points, files, prerequisites, hints (make hint shows them).",
        "",
        "[lessons]",
        *(title for title in titles if int(title[0]) <= lesson),
    ]
    return "\n".join(lines) + "\n\n" + "\n\n".join(exercises) + "\n"


def given_as_objects(lesson: int, root: Path) -> set[str]:
    """The sources that the lesson's tree would have, and that hold blanks of later lessons."""
    later = {path for each in load(root) if each.lesson > lesson for path in each.files}
    return {path for path in later & chosen(lesson, root) if path.endswith((".asm", ".c"))}


def object_code(path: str, lesson: int, root: Path) -> bytes:
    """The object file that a tree has for a source: code, global names, and nothing else. Raises
    TreeError, also when it would be the reference's."""
    source = f"{GIVEN}/{name_of(lesson)}/{path}"
    if not (root / source).is_file():
        raise TreeError(
            f"lesson {lesson} links {path}, which holds a blank of a later lesson: its object "
            f"would be the solution. Write {source}, which does the same for lesson {lesson} alone"
        )
    target = f"build/objects/{source}.o"
    run(["make", "-s", target], root)
    objcopy = run(["labs/tools/setup/toolchain.sh", "objcopy"], root).split()
    options = ["--strip-debug", "--strip-unneeded", "--discard-all"]
    with tempfile.TemporaryDirectory() as directory:
        stripped = Path(directory) / "given.o"
        run([*objcopy, *options, target, str(stripped)], root)
        return stripped.read_bytes()


def differing(lesson: int) -> set[str]:
    """The files that differ in a lesson's tree."""
    return {path for path, _, _ in DIFFERENCES.get(lesson, ())}


def different(path: str, lesson: int, data: bytes) -> bytes:
    """A file as a lesson's tree has it. Raises TreeError when a text is not there."""
    for changed, old, new in DIFFERENCES[lesson]:
        if changed == path:
            if data.count(old.encode()) != 1:
                raise TreeError(
                    f"{path} has not once the text {old!r}, which lesson {lesson} changes"
                )
            data = data.replace(old.encode(), new.encode())
    return data


def run(command: list[str], root: Path) -> str:
    """Runs a program of the build and returns its output. Raises TreeError with its words."""
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise TreeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def readmes_of_rooms(paths: set[str], root: Path) -> dict[str, bytes]:
    """The READMEs of the folders that a tree has, with nothing that it has not."""
    names = [
        name
        for name in room_readme.readmes(root)
        if any(path.startswith(f"{PurePosixPath(name).parent}/") for path in paths)
    ]
    found = {}
    for name in names:
        folder = PurePosixPath(name).parent.as_posix()
        whole = room_readme.text(name, paths, root)
        if text := room_readme.without_absent(whole, folder, paths, root):
            found[name] = text.encode()
    return found


def room_list(lesson: int, root: Path) -> str:
    """The list of folders, without those that the tree has not, and without what they may use."""
    head, *blocks = re.split(r'^(?=\["[\w/]+"\]$)', (root / rooms.LIST).read_text(), flags=re.M)
    paths = chosen(lesson, root)
    there = {rooms.room_of(path, root).folder for path in paths if rooms.in_a_room(path, root)}
    kept = [block for block in blocks if re.match(r'\["(.+?)"\]', block)[1] in there]
    return (
        head.split(", and which others")[0]
        + ".\n\n"
        + "".join(block.split("may_use =")[0] + "\n" for block in kept)
    )

"""Mutants that a program makes of the lines that a student writes: universalmutator's rules, one
line changed in each. The rest is choice: by a seed, no two of the same code, none that the
compiler refuses or whose object code is the reference's.

Those that no test can catch, since they do the same, are data in tests/mutants/equivalent/. In
5.4.toml:

[[same]]
file = "mm/slab.c"
old = '''...'''        text that is in the file exactly once
new = '''...'''        what the mutant has instead
why = "..."            why nobody can tell the two apart
"""

from __future__ import annotations

import io
import random
import re
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from labs.tools.course.exercises import ROOT, Exercise, regions, word_of
from labs.tools.grading import sandbox
from labs.tools.grading.grade import code_of
from labs.tools.grading.graded_tree import compile_tree, open_tree, output_directory
from labs.tools.proving.prove_mutants import DIRECTORY, Change, MutantError, changed_files

SAME = DIRECTORY / "equivalent"
RULES = {".c": ("universal", "c_like", "c"), ".h": ("universal", "c_like", "c")}
ASSEMBLY, ASSEMBLY_RULES = (".asm", ".inc"), ("universal", str(ROOT / "tests/mutants/nasm.rules"))
COMMENT = {True: re.compile(r";[^\n]*"), False: re.compile(r"/\*.*?\*/", re.DOTALL)}
STATEMENT = re.compile(r"(break|continue);$")
LIBRARY = "universalmutator"
FIELDS = {"file", "old", "new", "why"}


@dataclass(frozen=True)
class Made(Change):
    """A mutant that was made. One file, one edit."""

    @property
    def job_name(self) -> str:
        """Its name in a plan."""
        return f"generated-{self.name}"

    @property
    def path(self) -> str:
        """The file that it changes."""
        return self.edits[0][0]


@dataclass
class Choice:
    """What was drawn for an exercise: `made` in all; `mutants` are to be tried."""

    exercise: Exercise
    made: int = 0
    refused: int = 0  # the compiler's word
    same_code: int = 0
    equivalent: int = 0
    mutants: list[Made] = field(default_factory=list)


def chosen(exercise: Exercise, count: int, seed: int) -> Choice:
    """Draws until `count` mutants of an exercise are to be tried or listed as equivalent, or none
    are left. Its lesson's reference is built. Raises MutantError."""
    choice, listed = Choice(exercise), {identity(each) for each, _ in equivalent(exercise)}
    codes = {path: code(exercise, {path: (ROOT / path).read_bytes()}) for path in exercise.files}
    seen = set(codes.items())
    for mutant in drawn(exercise, seed):
        if choice.equivalent + len(choice.mutants) == count:
            break
        choice.made += 1
        made = mutant.path, code(exercise, changed_files(mutant))
        choice.refused += made[1] is None
        choice.same_code += made in seen
        if made[1] is None or made in seen:
            continue
        seen.add(made)
        if identity(mutant) in listed:
            choice.equivalent += 1
        else:
            choice.mutants.append(mutant)
    return choice


def equivalent(exercise: Exercise, directory: Path = SAME) -> list[tuple[Change, str]]:
    """The mutants of an exercise that are known to do the same as the reference, and why. Raises
    MutantError."""
    path = directory / f"{exercise.id}.toml"
    try:
        tables = tomllib.loads(path.read_text())["same"] if path.exists() else []
    except (tomllib.TOMLDecodeError, KeyError) as error:
        raise MutantError(f"{path.name}: {error!r}") from error
    found = []
    for number, each in enumerate(tables, 1):
        if set(each) != FIELDS or not all(each.values()) or each["old"] == each["new"]:
            raise MutantError(f"{path.name}, entry {number}: file, old, new and why, and no other")
        edit = (each["file"], each["old"], each["new"])
        found.append(
            (Change(f"{exercise.id}-{number}", exercise.id, each["why"], (edit,)), each["why"])
        )
    return found


def identity(change: Change) -> tuple[str, bytes]:
    """What a change makes of its file, comments and white space aside. Raises MutantError."""
    ((path, data),) = changed_files(change).items()
    return path, code_of(path, data)


# ---- making them --------------------------------------------------------------------------------


def drawn(exercise: Exercise, seed: int) -> Iterator[Made]:
    """All mutants of an exercise's blanks, no two of the same code, in the seed's order."""
    every = [
        (path, line, new)
        for path in exercise.files
        for line, new in changed_lines(path, (ROOT / path).read_text(), exercise.id)
    ]
    random.Random(f"{seed}:{exercise.id}").shuffle(every)
    seen = {(path, code_of(path, (ROOT / path).read_bytes())) for path in exercise.files}
    for number, (path, line, new) in enumerate(every):
        text = (ROOT / path).read_text()
        edit = (path, *in_context(text, line, new))
        made = Made(f"{exercise.id}-{number}", exercise.id, f"{path}:{line + 1}", (edit,))
        if (what := identity(made)) not in seen:
            seen.add(what)
            yield made


def changed_lines(path: str, text: str, number: str) -> list[tuple[int, str]]:
    """What the rules make of the lines in the blanks of exercise `number`: the line's index, and
    its new text. Raises MutantError without the library."""
    bare = COMMENT[path.endswith(ASSEMBLY)].sub(lambda m: "\n" * m[0].count("\n"), text)
    inside = {
        line
        for region in regions(text)
        if region.exercise == number
        for line in range(text.count("\n", 0, region.start), text.count("\n", 0, region.end))
    }
    lines = [
        line if index in inside else "\n"
        for index, line in enumerate(bare.splitlines(keepends=True))
    ]
    with redirect_stdout(io.StringIO()):
        every = rules_of_library()(lines, rules(path), ignorePatterns=[])
    is_label = path.endswith(ASSEMBLY)  # what is a statement in C is a label there
    return [(line - 1, new) for line, new, *_ in every if not (is_label and STATEMENT.search(new))]


def rules(path: str) -> list[str]:
    """The files of rules for a file, as the library names them."""
    names = (
        ASSEMBLY_RULES if path.endswith(ASSEMBLY) else RULES.get(Path(path).suffix, ("universal",))
    )
    return [f"{name.removesuffix('.rules')}.rules" for name in names]


@cache
def rules_of_library() -> Callable[..., list[tuple]]:
    """The library's function. Raises MutantError without it."""
    try:
        from universalmutator.mutator import mutants_regexp
    except ImportError as error:
        raise MutantError(
            f"{LIBRARY} is not installed: labs/tools/setup/setup.sh suite does that"
        ) from error
    return mutants_regexp


def in_context(text: str, line: int, new: str) -> tuple[str, str]:
    """The old and the new text of a change of one line, with so many lines around it that the old
    text is in the file once."""
    lines = text.splitlines(keepends=True)
    first, last = line, line + 1
    while text.count("".join(lines[first:last])) > 1:
        first, last = max(first - 1, 0), min(last + 1, len(lines))
    return "".join(lines[first:last]), "".join([*lines[first:line], new, *lines[line + 1 : last]])


# ---- their code ---------------------------------------------------------------------------------


def code(exercise: Exercise, files: Mapping[str, bytes]) -> object:
    """What is made of one changed file of an exercise, without what only a debugger reads; None
    where the build refuses it."""
    ((path, _),) = files.items()
    if path.startswith("user/") and path.endswith(".h"):
        users = {each: (ROOT / each).read_bytes() for each in users_of(path)}
        return object_code(exercise, files | users, list(users))
    if path.endswith(".c") or (path.endswith(".asm") and path != "boot/mbr.asm"):
        return object_code(exercise, files, [path])
    return image_code(exercise, files)


def users_of(header: str) -> list[str]:
    """The files of the C library that include a header of it."""
    line = f'#include "{header}"'
    libc = sorted(path for path in (ROOT / "user/libc").glob("*.c") if line in path.read_text())
    return [str(path.relative_to(ROOT)) for path in libc]


def object_code(exercise: Exercise, files: Mapping[str, bytes], paths: Sequence[str]) -> object:
    """That of the objects that are made of `paths`."""
    targets = [target_of(path) for path in paths]
    with compile_tree(files) as tree:
        if not built(exercise, tree, *targets):
            return None
        return tuple(essence((tree / target).read_bytes()) for target in targets)


def target_of(path: str) -> str:
    """The object of a source."""
    own = path.removeprefix("user/")
    return f"build/objects/{path}.o" if own == path else f"build/user/objects/{own}.o"


def image_code(exercise: Exercise, files: Mapping[str, bytes]) -> object:
    """That of a linker script, a boot sector or what assembly includes: the kernel and its disk."""
    with tempfile.TemporaryDirectory(prefix="generated-") as folder:
        tree = Path(folder, "tree")
        open_tree(exercise.lesson, dict(files), tree)
        if not built(exercise, tree, "image-disk"):
            return None
        out = tree / output_directory(exercise.lesson)
        return (out / "boot.img").read_bytes(), essence((out / "kernel.elf").read_bytes())


def built(exercise: Exercise, tree: Path, *targets: str) -> bool:
    """Builds in a tree. In the box the toolchain is known, and need not be tried."""
    command = ["make", "-s", f"LESSON={word_of(exercise.lesson)}", *targets]
    return sandbox.run(command, tree, sandbox.BUILD).status == 0


def essence(data: bytes) -> tuple:
    """The sections, relocations and symbols of an ELF file, without those of a debugger."""
    found = []
    for section in ELFFile(io.BytesIO(data)).iter_sections():
        if isinstance(section, SymbolTableSection):
            found += [
                (each.name, each["st_value"], each["st_size"], str(each["st_shndx"]))
                for each in section.iter_symbols()
            ]
        elif not re.match(r"\.(rel\.)?debug|\.(str|shstr)tab", section.name):
            found.append((section.name, section["sh_flags"], section["sh_size"], section.data()))
    return tuple(found)

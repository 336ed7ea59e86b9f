"""Reads one submission: which graded files it has, in one form, and what was odd about it.

read(Path("anna.zip"), 1, out) -> Reading; out/files/boot/entry.asm, ...

What students hand in is hostile and clumsy. A process of its own reads it, within limits of time
and memory, and writes only files whose names are the lesson's own. Whatever happens to it, there is
a Reading: either files, or a refusal in words.

    python -m labs.tools.cohort.reader SUBMISSION LESSON OUT        that process
"""

from __future__ import annotations

import codecs
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from labs.tools.cohort import repository
from labs.tools.cohort.entries import FILE, FOLDER, LINK, Entry, Refusal, entries
from labs.tools.course.exercises import ROOT, every_lesson, word_of
from labs.tools.course.handed_in import course_of
from labs.tools.course.submit import MANIFEST, graded_files
from labs.tools.grading.graded_tree import SIZE_LIMIT
from labs.tools.machine.command import in_a_line, own_environment

SECONDS = 60  # of a processor; a gigabyte that is unpacked takes a tenth of it
WALL_SECONDS = 300
MEMORY = 512 << 20  # bytes of address space
WRITTEN = 64 << 20  # bytes of any file that it writes: an archive within an archive is the largest
MOST_KEPT = 64 << 20  # bytes of files with a graded file's name, in all folders together
NAMES_SHOWN = 3
INNER = 2  # archives within archives that are opened, one after the other
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2")
DRIVE = re.compile("[A-Za-z]:")  # of Windows
MARKS = {
    codecs.BOM_UTF8: ("utf-8-sig", "a byte order mark, which is left out"),
    codecs.BOM_UTF32_LE: ("utf-32", "UTF-32, which is taken as UTF-8"),  # begins as UTF-16 does
    codecs.BOM_UTF32_BE: ("utf-32", "UTF-32, which is taken as UTF-8"),
    codecs.BOM_UTF16_LE: ("utf-16", "UTF-16, which is taken as UTF-8"),
    codecs.BOM_UTF16_BE: ("utf-16", "UTF-16, which is taken as UTF-8"),
}


@dataclass
class Reading:
    """What came of a submission. files: the paths of graded files that are in out/files; notes:
    what was odd, a line each; hints: how many layers were shown, by exercise; refusal: why nothing
    of it can be graded, empty otherwise."""

    files: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    hints: dict[str, int] = field(default_factory=dict)
    refusal: str = ""


@dataclass(frozen=True)
class Found:
    """A file that may be a graded one: its name in one form, its kind, and its beginning."""

    name: str
    kind: str
    data: bytes

    @property
    def folded(self) -> str:
        """Its name, of which no letter's case counts."""
        return self.name.casefold()


def read(submission: Path, lesson: int, out: Path) -> Reading:
    """Reads a submission in a process of its own; writes its files to out/files."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    try:
        with tempfile.TemporaryDirectory(prefix="commit-") as work:
            place = repository.last_commit(submission, Path(work)) or submission
            return read_apart(place, lesson, out)
    except Refusal as error:
        return Reading(refusal=printable(str(error)))


def read_apart(place: Path, lesson: int, out: Path) -> Reading:
    """The same for a folder or an archive."""
    limits = [f"--cpu={SECONDS}", f"--as={MEMORY}", f"--fsize={WRITTEN}", "--core=0"]
    command = ["prlimit", *limits, sys.executable, "-m", "labs.tools.cohort.reader"]
    command += [str(place.absolute()), str(lesson), str(out.absolute())]
    with suppress(subprocess.TimeoutExpired):
        subprocess.run(
            command, cwd=ROOT, env=own_environment(), stdin=subprocess.DEVNULL,
            capture_output=True, timeout=WALL_SECONDS, check=False,
        )  # fmt: skip
    try:
        return Reading(**json.loads((out / "reading.json").read_text()))
    except OSError:
        return Reading(refusal="reading it takes too much time or memory")


def read_here(submission: Path, lesson: int, out: Path) -> Reading:
    """The same in this process, without limits of time and memory."""
    reading = Reading()
    try:
        take(found_in(submission, out, reading), lesson, out / "files", reading)
    except Refusal as error:
        reading.refusal = printable(str(error))
    except MemoryError:
        reading.refusal = "reading it takes too much memory"
    except (Exception, RecursionError) as error:  # of whatever library: never a crash
        reading.refusal = printable(f"it cannot be read: {type(error).__name__}: {error}")
    return reading


# ---- what is there ------------------------------------------------------------------------------


def found_in(place: Path, out: Path, reading: Reading, inner: int = INNER) -> list[Found]:
    """The files with a graded file's name. Where there is nothing but one archive, that is opened.
    Raises Refusal."""
    wanted = names_wanted()
    found: list[Found] = []
    archives: list[str] = []
    kept, outside = 0, []
    for entry in entries(place):
        name = in_one_form(entry.name)
        if name is None:
            outside.append(entry.name)
        elif name.casefold().endswith(ARCHIVES) and entry.kind == FILE:
            archives.append(entry.name)
        elif name.rpartition("/")[2].casefold() in wanted and entry.kind != FOLDER:
            found.append(Found(name, entry.kind, contents(entry)))
            kept += len(found[-1].data)
            if kept > MOST_KEPT:
                raise Refusal(f"its files have more than {MOST_KEPT >> 20} MiB")
    if outside:
        reading.notes.append(f"{names(outside)}: outside of the folder, and not taken")
    if not found and len(archives) == 1 and inner:
        reading.notes.append(f"the files are in {printable(archives[0])}")
        copied = inner_archive(place, archives[0], out / f"inner{inner}")
        return found_in(copied, out, reading, inner - 1)
    return found


def inner_archive(place: Path, name: str, copied: Path) -> Path:
    """Copies an archive that is in an archive, or in a folder. Raises Refusal."""
    for entry in entries(place):
        if entry.name == name:
            data = entry.read(WRITTEN)
            if len(data) == WRITTEN:
                raise Refusal(f"an archive in it has more than {WRITTEN >> 20} MiB")
            copied.write_bytes(data)
    return copied


def contents(entry: Entry) -> bytes:
    """A file's beginning: a byte more than it may have shows that it is too large."""
    return entry.read(SIZE_LIMIT + 1) if entry.kind == FILE else b""


def names_wanted() -> set[str]:
    """The names, without folders, of the graded files of all lessons, and of the manifest."""
    paths = (path for lesson in every_lesson() for path in graded_files(lesson))
    return {MANIFEST, *(path.rpartition("/")[2].casefold() for path in paths)}


def in_one_form(name: str) -> str | None:
    """A name with / between folders, relative; None where it leads out of the folder. As tar does,
    an absolute name is taken for one from here."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    if parts and DRIVE.fullmatch(parts[0]):
        del parts[0]
    return "/".join(parts) if parts and ".." not in parts else None


# ---- which of them are graded -------------------------------------------------------------------


def take(found: list[Found], lesson: int, files: Path, reading: Reading) -> None:
    """Writes the graded files of a lesson. Raises Refusal where there are none."""
    wanted = graded_files(lesson)
    root = root_of(found, wanted)
    is_flat = root is None
    if is_flat:
        check_lesson(found, lesson)
        root = ""
    elif root:
        reading.notes.append(f"the files are in {printable(root)}")
    take_manifest(found, root, lesson, reading)
    for path in wanted:
        name = path.rpartition("/")[2] if is_flat else f"{root}{path}"
        take_file(path, candidates(found, name, is_flat), files, reading)
    if not reading.files:
        raise Refusal(
            f"it has none of the files of lesson {word_of(lesson)}, as {exercise_file(lesson)}"
            f"{why_none(reading)}"
        )


def why_none(reading: Reading) -> str:
    """What was found instead."""
    return f" ({'; '.join(reading.notes[:NAMES_SHOWN])})" if reading.notes else ""


def exercise_file(lesson: int) -> str:
    """One of a lesson's files, for an example."""
    return next(path for path in graded_files(lesson) if not path.startswith("labs/"))


def root_of(found: Iterable[Found], wanted: list[str]) -> str | None:
    """The folder, with a / at its end, in which most of the wanted paths are; the nearest of equal
    ones. None where not one path is whole."""
    folded = [path.casefold() for path in wanted]
    roots: dict[str, set[str]] = {}
    for each in found:
        for path in folded:
            if f"/{each.folded}".endswith(f"/{path}"):
                roots.setdefault(each.name[: len(each.name) - len(path)], set()).add(path)
    order = sorted(roots, key=lambda root: (-len(roots[root]), root.count("/"), root))
    return order[0] if order else None


def check_lesson(found: list[Found], lesson: int) -> None:
    """Raises Refusal where the files are those of another lesson."""
    for other in every_lesson():
        if other != lesson and root_of(found, graded_files(other)) is not None:
            raise Refusal(
                f"it has the files of lesson {word_of(other)}, not those of {word_of(lesson)}"
            )


def take_manifest(found: list[Found], root: str, lesson: int, reading: Reading) -> None:
    """Reads what make submit has written of it, if that can be read. Raises Refusal where it is of
    another lesson."""
    for each in found:
        if each.name != f"{root}{MANIFEST}":
            continue
        try:
            table = json.loads(each.data)
            made_for, shown = str(table["lesson"]), dict(table["hints"])
            course = str(table.get("course", ""))
        except (ValueError, TypeError, KeyError, RecursionError):
            reading.notes.append(f"{MANIFEST} is not as make submit writes it: not taken")
            return
        if made_for != word_of(lesson):
            raise Refusal(
                f"make submit made it for lesson {printable(made_for[:20])}, "
                f"not for {word_of(lesson)}"
            )
        if course != course_of(ROOT):
            of = printable(course[:40]) or "without a word"
            reading.notes.append(f"it was made in the tree of another course: {of}")
        known = {path: count for path, count in shown.items() if type(count) is int}
        reading.hints = {printable(path)[:8]: min(max(n, 0), 9) for path, n in known.items()}


def candidates(found: list[Found], name: str, is_flat: bool) -> list[Found]:
    """The files that may be this one: those whose case is right come last."""
    folded = name.casefold()
    fits = [
        each
        for each in found
        if (each.folded.rpartition("/")[2] if is_flat else each.folded) == folded
    ]
    return sorted(fits, key=lambda each: each.name.endswith(name))


def take_file(path: str, fits: list[Found], files: Path, reading: Reading) -> None:
    """Writes one file, the last of those that may be it; the notes say what was odd."""
    if not fits:
        return
    last = fits[-1]
    if len({each.data for each in fits}) > 1:
        reading.notes.append(f"{path} is there {len(fits)} times: the last one is taken")
    if last.kind != FILE:
        what = "a link" if last.kind == LINK else "a device or a pipe"
        reading.notes.append(f"{path} is {what}: not taken")
        return
    if not last.name.endswith(path):
        reading.notes.append(f"{path} is called {printable(last.name)} here")
    data, odd = as_text(last.data)
    reading.notes += [f"{path} has {each}" for each in odd]
    place = files / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
    reading.files.append(path)


def as_text(data: bytes) -> tuple[bytes, list[str]]:
    """A text as Unix has it, and what was different. What is too large stays as it is."""
    odd = []
    if len(data) > SIZE_LIMIT:
        return data, [f"more than {SIZE_LIMIT >> 10} KiB"]
    for mark, (encoding, words) in MARKS.items():
        if data.startswith(mark):
            with suppress(UnicodeDecodeError):
                data = data.decode(encoding).removeprefix("\ufeff").encode()
                odd.append(words)
            break
    if b"\r" in data and b"\0" not in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        odd.append("line ends of Windows, which are taken as those of Unix")
    return data, odd


# ---- words --------------------------------------------------------------------------------------


def names(found: list[str]) -> str:
    """Some names in a line."""
    shown = ", ".join(printable(each) for each in found[:NAMES_SHOWN])
    return f"{shown} and {len(found) - NAMES_SHOWN} more" if found[NAMES_SHOWN:] else shown


def printable(text: str, length: int = 200) -> str:
    """A text of bearable length without what upsets a terminal, a table or a page."""
    shown = "".join(escaped(text[: length + 1]))
    return shown if len(text) <= length else f"{shown[:length]}..."


def escaped(text: str) -> Iterator[str]:
    """Its characters, each visible."""
    for each in text:
        yield each if each.isprintable() else ascii(each)[1:-1]


def main() -> int:
    """The process that reads."""
    submission, lesson, out = sys.argv[1:]
    reading = read_here(Path(submission), int(lesson), Path(out))
    waiting = Path(out) / "reading.tmp"
    waiting.write_text(json.dumps(asdict(reading)))
    waiting.rename(Path(out) / "reading.json")
    return 0


if __name__ == "__main__":
    sys.exit(in_a_line("reader", main))

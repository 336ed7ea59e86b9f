"""`make prove CLASS=200 LESSON=1`: a class of generated submissions gets the same grades, killed or
not, and each of them is graded, or refused by name.

    python -m labs.tools.proving.prove_class --lesson 1 --count 200 [--kills 3] [--seed WORD]
        [--jobs N]

A submission is half finished, a right solution that is written in another way, or a cheat, drawn by
the seed; and it is handed in as students do: nested, in another computer's form, broken. The class
is graded once undisturbed, and once killed (SIGKILL) and run again. It prints the speed. Exit
status: 0 when both have the same bytes.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import os
import random
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from labs.tools.course.exercises import ROOT, number_of, of_lesson, word_of
from labs.tools.course.start import commit
from labs.tools.machine.command import A_COUNT, CommandError, Options, in_a_line, own_environment
from labs.tools.machine.work_folder import command_folder
from labs.tools.proving.prove_cheats import cheats_of, lay_cheat
from labs.tools.proving.prove_mutants import changed_files
from labs.tools.proving.prove_repeat import draft, write_draft
from labs.tools.proving.prove_ways import ways_of

PROGRAM = "make prove"
COMMAND = (sys.executable, "-m", "labs.tools.cohort.grade_class")  # tests have another one
KILLS = 3
LOOK_SECONDS = 0.02
BOMB = 1 << 30  # bytes that a small archive has
Files = Mapping[str, bytes]


# ---- what is in a submission ---------------------------------------------------------------------


def half_finished(lesson: int, number: int, seed: str, place: Path) -> None:
    """Each exercise finished, blank, or with a mutant's bug."""
    write_draft(draft(lesson, number, seed, len(of_lesson(lesson))), place)


def other_way(lesson: int, number: int, seed: str, place: Path) -> None:
    """The reference, but one exercise is written in another way."""
    for exercise in of_lesson(lesson):
        write(place, {path: (ROOT / path).read_bytes() for path in exercise.files})
    ways = ways_of(lesson)
    write(place, changed_files(ways[number % len(ways)]))


def cheat(lesson: int, number: int, seed: str, place: Path) -> None:
    """One that tries to get points without work."""
    cheats = cheats_of(lesson)
    lay_cheat(cheats[number % len(cheats)], lesson, place)


def write(place: Path, files: Files) -> None:
    """Writes files into a folder."""
    for path, data in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(data)


def read(place: Path) -> dict[str, bytes]:
    """The files of a folder that are not links."""
    paths = (path for path in sorted(place.rglob("*")) if path.is_file() and not path.is_symlink())
    return {path.relative_to(place).as_posix(): path.read_bytes() for path in paths}


# ---- how it is handed in -------------------------------------------------------------------------


def zipped(files: Files) -> bytes:
    """A zip."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return out.getvalue()


def tarred(files: Files, *more: tarfile.TarInfo) -> bytes:
    """A compressed tar, with entries that are no files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for path, data in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for each in more:
            archive.addfile(each)
    return out.getvalue()


def link(name: str, target: str) -> tarfile.TarInfo:
    """A symbolic link of a tar."""
    made = tarfile.TarInfo(name)
    made.type, made.linkname = tarfile.SYMTYPE, target
    return made


def bomb() -> bytes:
    """A tar of a megabyte that unpacks to more than a gigabyte."""
    info = tarfile.TarInfo("zeros")
    info.size = BOMB
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1) as stream:
        stream.write(info.tobuf())
        for _ in range(BOMB >> 24):
            stream.write(bytes(1 << 24))
        stream.write(bytes(1 << 16))
    return out.getvalue()


def below(folder: str, files: Files) -> Files:
    """The files in a folder more."""
    return {f"{folder}/{path}": data for path, data in files.items()}


def windows(files: Files) -> Files:
    """Line ends and a byte order mark as on Windows."""
    return {path: b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n") for path, data in files.items()}


MAC = {"__MACOSX/._x": b"\0", ".DS_Store": b"\0"}
PACKINGS: dict[str, Callable[[Files], bytes]] = {
    "plain.zip": zipped,
    "nested.zip": lambda files: zipped(below("lesson-final-2", files)),
    "mac.zip": lambda files: zipped({**files, **MAC}),
    "windows.zip": lambda files: zipped(windows(files)),
    "in-a-zip.zip": lambda files: zipped({"hand/in.tgz": tarred(files)}),
    "upper.zip": lambda files: zipped({path.upper(): data for path, data in files.items()}),
    "flat.zip": lambda files: zipped({p.rpartition("/")[2]: d for p, d in files.items()}),
    "tar.tgz": tarred,
    "absolute.tgz": lambda files: tarred(below("/srv/me", files)),
    "links.tgz": lambda files: tarred(files, link("out", "/etc"), link("../../up", "/")),
    "outside.tgz": lambda files: tarred({**files, "../../../etc/passwd": b"x"}),
    "partly.zip": lambda files: zipped(dict(list(files.items())[::2])),
    "huge.zip": lambda files: zipped({path: data * 40 for path, data in files.items()}),
    "names.zip": lambda files: zipped({**files, "a\nb\x1b[2J\u202e": b"x"}),
    "cut.tgz": lambda files: tarred(files)[:700],
    "bomb.tgz": lambda files: bomb(),
    "empty.zip": lambda files: b"",
    "other.rar": lambda files: b"Rar!\x1a\7\1\0" + zipped(files),
    "essay.zip": lambda files: zipped({"essay.txt": b"Dear instructor\n"}),
}
FOLDERS = ("folder", "repository")
KINDS = (half_finished, half_finished, half_finished, other_way, cheat)


def hand_in(lesson: int, number: int, seed: str, submissions: Path, work: Path) -> str:
    """Makes the submission of this number; returns how it is packed."""
    drawn = random.Random(f"{seed}:class:{lesson}:{number}")
    place = work / str(number)
    drawn.choice(KINDS)(lesson, number, seed, place)
    packings = [*PACKINGS, *FOLDERS]
    packing = packings[number % len(packings)]
    name = f"s{number:03}-{packing}"
    if packing in PACKINGS:
        (submissions / name).write_bytes(PACKINGS[packing](read(place)))
        return packing
    place.rename(submissions / name)
    if packing == "repository":
        commit(submissions / name, "Handed in")
    return packing


# ---- killed, or not ------------------------------------------------------------------------------


def command(options: argparse.Namespace, submissions: Path, output: Path) -> list[str]:
    """What grades the class."""
    words = [f"--lesson={word_of(options.lesson)}", f"--submissions={submissions}"]
    jobs = [f"--jobs={options.jobs}"] if options.jobs else []
    return [*COMMAND, *words, f"--output={output}", *jobs]


def done_in(output: Path) -> int:
    """How many are graded."""
    return sum(1 for _ in (output / "work/results").glob("[!.]*.json"))


def killed_at(words: Sequence[str], output: Path, count: int) -> bool:
    """Starts the command, and kills all of it when so many are graded. Returns whether it was
    killed, and had not ended by then."""
    process = subprocess.Popen(
        words, cwd=ROOT, env=environment(), process_group=0,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while process.poll() is None and done_in(output) < count:
        time.sleep(LOOK_SECONDS)
    was_running = process.poll() is None
    if was_running:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return was_running


def environment() -> dict[str, str]:
    """Ours, without what a make that runs us hands down."""
    return {**own_environment(), "APPRENTICE_SECRET": "trial"}


def graded(words: Sequence[str]) -> str:
    """Runs the command to its end; returns its output. Raises CommandError."""
    done = subprocess.run(
        words, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise CommandError(f"the class has no grades: {done.stderr.strip()}")
    return done.stdout


def same(first: Path, second: Path) -> list[str]:
    """The files that are not in both with the same bytes, without what is for going on."""
    some, others = (
        {name: data for name, data in read(place).items() if not name.startswith("work/")}
        for place in (first, second)
    )
    return sorted(name for name in some.keys() | others if some.get(name) != others.get(name))


def check(options: argparse.Namespace, work: Path) -> bool:
    """Makes the class, grades it twice, and prints what came. Returns whether that is the same."""
    submissions = work / "submissions"
    submissions.mkdir()
    numbers = range(options.count)
    packed = [hand_in(options.lesson, n, options.seed, submissions, work / "made") for n in numbers]
    print(f"{options.count} submissions, handed in in {len(set(packed))} ways", flush=True)
    output = graded(command(options, submissions, work / "once"))
    with (work / "once/grades.csv").open(newline="") as stream:
        status = Counter(row["status"] for row in csv.DictReader(stream))
    print(", ".join(f"{count} {name}" for name, count in sorted(status.items())))
    print(output.splitlines()[-2], flush=True)
    words = command(options, submissions, work / "killed")
    kills = sum(
        killed_at(words, work / "killed", options.count * (n + 1) // (options.kills + 1))
        for n in range(options.kills)
    )
    graded(words)
    wrong = same(work / "once", work / "killed")
    for name in wrong:
        print(f"  DIFFERS  {name}")
    print(f"killed {kills} times: {'THE GRADES DIFFER' if wrong else 'the same bytes'}")
    return not wrong and kills == options.kills and status.total() == options.count


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns its exit status."""
    made = Options(PROGRAM)
    made.add_argument("--lesson", type=number_of, default=1)
    made.add_argument("--count", type=A_COUNT, default=20, help="submissions")
    made.add_argument("--kills", type=int, default=KILLS)
    made.add_argument("--jobs", type=int, default=0)
    made.add_argument("--seed", default="2010", help="which submissions")
    options = made.parse_args(arguments)
    with command_folder("prove-class") as work:
        return 0 if check(options, work) else 1


if __name__ == "__main__":
    sys.exit(in_a_line(PROGRAM, main))

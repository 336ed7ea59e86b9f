"""`make grade-class`: the grades of a class, from a folder of what it has handed in.

    make grade-class LESSON=1 SUBMISSIONS=handed-in OUTPUT=grades [ROSTER=roster.csv]
        [RULES=rules.toml] [JOBS=n] [CLUSTER=slurm]

Each entry of SUBMISSIONS is one submission: a folder, a zip, a tar, a git repository. Each is a job
of make's (class.mk), with CLUSTER one of Snakemake's (Snakefile); the jobs that are done are not
done again. OUTPUT gets grades.csv, index.html and students/NAME.html; OUTPUT/work is for going on.

Exit status 0: each submission has a grade, or a refusal with its reason. 1: run it again.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from urllib.parse import quote_from_bytes

from labs.tools.cohort.entries import IGNORED, IGNORED_NAMES, MOST_ENTRIES
from labs.tools.cohort.one import Result, result_of, write_whole
from labs.tools.cohort.reader import printable
from labs.tools.cohort.report import Class, write_class
from labs.tools.cohort.rules import Rules, read_roster, read_rules
from labs.tools.course.exercises import LIST, ROOT, ExerciseError, name_of, number_of
from labs.tools.grading import sandbox
from labs.tools.grading.grade import (
    SECRET,
    GradeError,
    build_reference,
    require_directory,
    require_output,
)
from labs.tools.machine.command import (
    CommandError,
    Options,
    in_a_line,
    own_environment,
    typed_path,
    whole_number,
)
from labs.tools.machine.work_folder import command_folder

PROGRAM = "make grade-class"
HERE = Path(__file__).parent
NAME_LENGTH = 80  # of a file that is called as a submission
GRADE_ONE = f"{sys.executable} -m labs.tools.cohort.one"  # tests have another one
HOUR = 3600


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns its exit status."""
    options = parser().parse_args(arguments)
    if Path() in (options.submissions, options.output):  # as without a value
        raise CommandError("say where: make grade-class LESSON=1 SUBMISSIONS=dir OUTPUT=dir")
    try:
        lesson = number_of(options.lesson)
        roster = read_roster(options.roster) if options.roster else []
        rules = read_rules(options.rules, lesson) if options.rules else Rules()
        require_directory(options.submissions)
        require_output(options.output)
        with command_folder("class"):
            results = graded_class(lesson, options)
    except (GradeError, ExerciseError, sandbox.SandboxUnavailable) as error:
        raise CommandError(str(error)) from error
    write_class(Class(lesson, rules, roster, results), options.output)
    print(f"{options.output}: grades.csv and index.html")
    return 0


def parser() -> Options:
    """The command line."""
    made = Options(PROGRAM)
    made.add_argument("--lesson", required=True)
    made.add_argument("--submissions", type=typed_path, required=True)
    made.add_argument("--output", type=typed_path, required=True)
    made.add_argument("--roster", type=typed_path)
    made.add_argument("--rules", type=typed_path)
    made.add_argument("--jobs", type=whole_number(1, 1000), default=os.cpu_count())
    made.add_argument("--cluster", help="an executor of Snakemake's: local, slurm, kubernetes")
    return made


def graded_class(lesson: int, options: Options) -> list[Result]:
    """Grades what is not graded yet. Raises CommandError where something of it is missing then."""
    work = options.output.absolute() / "work"
    jobs = write_jobs(lesson, options.submissions, work)
    if any(not (work / "results" / f"{name}.json").exists() for name in jobs):
        sandbox.require()
        build_reference(lesson)
    run_jobs(work, options.jobs, options.cluster)
    paths = {name: work / "results" / f"{name}.json" for name in jobs}
    if missing := [jobs[name]["name"] for name, path in paths.items() if not path.exists()]:
        raise CommandError(
            f"{len(missing)} of {len(jobs)} have no grade yet, as {missing[0]}: run it again"
        )
    print(speed(work, list(jobs)))
    return [result_of(json.loads(path.read_text()), lesson) for path in paths.values()]


# ---- the jobs ------------------------------------------------------------------------------------


def submissions_in(folder: Path) -> list[Path]:
    """What was handed in: a submission each, sorted by name. Raises CommandError for none."""
    found = [
        each
        for each in sorted(folder.iterdir(), key=lambda each: os.fsencode(each.name))
        if each.name not in IGNORED | IGNORED_NAMES and not each.name.startswith("._")
    ]
    if not found:
        raise CommandError(f"SUBMISSIONS={folder} is empty: a folder, a zip or a tar each")
    return found


def file_name(submission: str) -> str:
    """A submission's name as that of a file, for make, a shell and a page, too: no two are equal,
    and none of make's signs is in it."""
    data = os.fsencode(submission)
    plain = quote_from_bytes(data, safe="").replace("%", "+").replace("~", "+7E")
    plain = plain if plain[0] != "." else f"+2E{plain[1:]}"
    if len(plain) <= NAME_LENGTH:
        return plain
    return f"{plain[: NAME_LENGTH - 17]}+{hashlib.sha256(data).hexdigest()[:16]}"


def write_jobs(lesson: int, submissions: Path, work: Path) -> dict[str, Mapping[str, object]]:
    """Writes a job for each submission. One that is written already, and is the same, is left as it
    is: its result stays. What was handed in before, and is not there any more, is removed."""
    graders = graders_of(lesson)
    found = [job_of(each, lesson, graders) for each in submissions_in(submissions)]
    jobs = {job["key"]: job for job in found}
    for name, job in jobs.items():
        path, text = work / "jobs" / f"{name}.json", json.dumps(job, indent=1)
        if not path.exists() or path.read_text() != text:
            (work / "results" / f"{name}.json").unlink(missing_ok=True)
            write_whole(path, text)
    for path in (work / "results").glob("*.json"):
        if path.stem not in jobs:
            path.unlink()
    write_whole(work / "names", "".join(f"{name}\n" for name in jobs))
    return jobs


def graders_of(lesson: int) -> str:
    """A word for what grades a lesson: another one, and all is graded again."""
    rooms = (
        "labs/tools/grading",
        "labs/tools/machine",
        "tests/support",
        f"tests/{name_of(lesson)}",
    )
    paths = [path for room in rooms for path in sorted((ROOT / room).rglob("*.*"))]
    digest = hashlib.sha256((ROOT / LIST).read_bytes())
    for path in paths:
        if path.is_file() and path.suffix != ".pyc":
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def job_of(submission: Path, lesson: int, graders: str) -> dict[str, object]:
    """All that the grade of a submission depends on: its files, the lesson, the secret, and the
    graders themselves."""
    secret = os.environ.get(SECRET, "").encode()
    return {
        "key": file_name(submission.name),
        "name": printable(submission.name),
        "place": os.fsencode(submission.absolute()).hex(),
        "lesson": lesson,
        "graders": graders,
        "files": fingerprint(submission),
        "secret": hmac.new(secret, b"job", "sha256").hexdigest()[:16],
    }


def fingerprint(place: Path) -> str:
    """What changes when somebody hands in again: names, sizes and times."""
    digest = hashlib.sha256()
    for each in (place, *islice(files_below(place), MOST_ENTRIES)):
        known = each.lstat()
        digest.update(f"{os.fsencode(each).hex()} {known.st_mode} {known.st_size}".encode())
        if not stat.S_ISDIR(known.st_mode):
            digest.update(f" {known.st_mtime_ns}".encode())
    return digest.hexdigest()[:16]


def files_below(place: Path) -> Iterator[Path]:
    """What is in a folder, sorted; no link is followed."""
    if not place.is_symlink():
        for folder, folders, names in os.walk(place):
            folders.sort()
            yield from (Path(folder, name) for name in sorted(names))


def run_jobs(work: Path, jobs: int, cluster: str | None) -> None:
    """Runs the jobs that are not done, as many at a time as `jobs`. What fails is not there
    afterwards."""
    environment = {**own_environment(), "PLACE": str(ROOT), "WORK": str(work), "ONE": GRADE_ONE}
    if secret := os.environ.get(SECRET):
        environment[SECRET] = secret
    if cluster:
        subprocess.run(snakemake(cluster, jobs), cwd=work, env=environment, check=False)
        return
    command = ["make", "-s", "-k", f"-j{jobs}", "-f", str(HERE / "class.mk")]
    subprocess.run([*command, f"ONE={GRADE_ONE}"], cwd=work, env=environment, check=False)


def snakemake(cluster: str, jobs: int) -> list[str]:
    """The command that runs the same jobs on a cluster. Raises CommandError where it is not
    installed."""
    program = shutil.which("snakemake", path=str(ROOT / "build/snakemake/bin"))
    if not program:
        raise CommandError("CLUSTER needs Snakemake: make snakemake installs it")
    command = [program, "--snakefile", str(HERE / "Snakefile"), "--keep-going", "--quiet", "all"]
    command += ["--rerun-triggers", "mtime", "--nolock", "--rerun-incomplete"]
    how = [] if cluster == "local" else ["--executor", cluster]
    return [*command, *how, f"--{'cores' if cluster == 'local' else 'jobs'}", str(jobs)]


def speed(work: Path, names: Sequence[str]) -> str:
    """How much work it was, in a line."""
    costs = [float((work / "costs" / name).read_text()) for name in names]
    each = sum(costs) / len(costs)
    return (
        f"{len(costs)} submissions, {each:.1f} s of a processor each: "
        f"{HOUR / max(each, 0.01):.0f} an hour and core"
    )


if __name__ == "__main__":
    sys.exit(in_a_line(PROGRAM, main))

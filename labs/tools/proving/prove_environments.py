"""`make prove ENVIRONMENTS=20`: a submission gets the same report in whatever environment somebody
grades it.

    python -m labs.tools.proving.prove_environments --count 20 [--lesson 1] [--seed WORD]
        [--only NAME]

Each submission is one exercise, finished, blank or with a mutant's bug, drawn by the seed. `make
grade` as a person types it grades it once as this environment is, and then in each of the others.
Exit status: 0 when no two reports of a submission differ.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from labs.tools.course.exercises import ROOT, name_of, number_of, word_of
from labs.tools.machine.command import A_COUNT, CommandError, Options, in_a_line, own_environment
from labs.tools.machine.work_folder import command_folder
from labs.tools.proving.prove_repeat import Draft, agreement, differences, drafts, write_draft

REPORTS = ("report.txt", "results.json", "junit.xml")
GRADE_SECONDS = 3600
NOWHERE = "/nowhere"
NOEXEC = "mount --bind /tmp /tmp && mount -o remount,bind,noexec /tmp"


@dataclass(frozen=True)
class Environment:
    """Where somebody grades. variables: theirs. before: commands of a shell that come before.
    private: they change what is mounted. change: what is done to each file of the submission."""

    name: str
    variables: dict[str, str] = field(default_factory=dict)
    before: str = ""
    private: bool = False
    change: Callable[[bytes], bytes] | None = None

    def command(self, words: Sequence[str]) -> list[str]:
        """The command in this environment; $TRAP is a folder of modules that fail."""
        line = f"{self.before or ':'} && exec {shlex.join(words)}"
        alone = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]
        return [*(alone if self.private else ()), "sh", "-c", line]


ENVIRONMENTS = (
    Environment("without assertions", {"PYTHONOPTIMIZE": "2"}),
    Environment("other modules", {}, 'export PYTHONPATH="$TRAP"'),
    Environment("a safe path", {"PYTHONSAFEPATH": "1", "PYTHONNOUSERSITE": "1"}),
    Environment(
        "warnings", {"PYTHONWARNINGS": "error", "PYTHONDEVMODE": "1", "PYTHONINSPECT": "1"}
    ),
    Environment("another order", {"PYTHONHASHSEED": "7", "PYTHONUTF8": "0"}),
    Environment("options of pytest", {"PYTEST_ADDOPTS": "-k nothing", "PYTEST_PLUGINS": "nothing"}),
    Environment("Turkish", {"LC_ALL": "tr_TR.UTF-8", "LANGUAGE": "tr"}),
    Environment("GBK", {"LC_ALL": "zh_CN.GBK", "PYTHONCOERCECLOCALE": "0"}),
    Environment("/tmp runs no programs", {"TMPDIR": "/tmp"}, NOEXEC, private=True),
    Environment("CRLF", change=lambda data: data.replace(b"\n", b"\r\n")),
    Environment("no git", {"GIT_DIR": NOWHERE}),
    Environment("few descriptors, no input", {}, "ulimit -n 64; exec <&-"),
)


def graded_in(
    environment: Environment, made: Draft, seed: str, folder: Path
) -> tuple[str, ...] | str:
    """The reports about a draft in an environment; what was said where there are none."""
    submission, output, trap = (folder / name for name in ("submission", "output", "trap"))
    write_draft(made, submission)
    if environment.change:
        for path in filter(Path.is_file, submission.rglob("*")):
            path.write_bytes(environment.change(path.read_bytes()))
    for name in ("labs", "pytest", "sitecustomize", "json"):
        trap.mkdir(exist_ok=True)
        (trap / f"{name}.py").write_text("raise SystemExit('another module')\n")
    exercise = made.exercises[0]
    words = ["make", "-s", "grade", f"LESSON={word_of(exercise.lesson)}", f"EX={exercise.id}"]
    words += [f"SUBMISSION={submission}", f"SEED={seed}", f"OUTPUT={output}"]
    done = subprocess.run(
        environment.command(words), cwd=ROOT, capture_output=True, text=True, check=False,
        env={**own_environment(), "TRAP": str(trap), **environment.variables},
        timeout=GRADE_SECONDS,
    )  # fmt: skip
    if done.returncode != 0 or not (output / REPORTS[0]).exists():
        return f"no report, status {done.returncode}: {done.stdout}{done.stderr}"
    return tuple((output / name).read_text() for name in REPORTS)


def disagreements(made: Draft, seed: str, environments: Sequence[Environment]) -> list[str]:
    """What differs from the report in this environment as it is, a line each."""
    lines: list[str] = []
    with command_folder("places") as folder:
        found = {
            each.name: graded_in(each, made, seed, folder / str(number))
            for number, each in enumerate((Environment("as it is"), *environments))
        }
    first = found.pop("as it is")
    if isinstance(first, str):
        return [f"as it is: {first}"]
    for name, reports in found.items():
        if isinstance(reports, str):
            lines.append(f"{name}: {reports}")
            continue
        for ours, theirs in zip(first, reports, strict=True):
            lines += [f"{name}: {line}" for line in differences([ours, theirs])]
    return lines


def check(lesson: int, options: argparse.Namespace) -> bool:
    """Grades the drafts of a lesson everywhere, and prints what came. Returns whether all agree."""
    environments = [each for each in ENVIRONMENTS if options.only in each.name]
    if not environments:
        raise CommandError(f"ONLY={options.only}: no environment has such a name")
    held = True
    for made in drafts(lesson, options.count, options.seed, 1):
        wrong = disagreements(made, options.seed, environments)
        held = held and not wrong
        came = "DIFFER" if wrong else f"{len(environments)} environments agree"
        print(f"{name_of(lesson)}, submission {made}: {came}", flush=True)
        for line in wrong:
            print(f"  {line}", flush=True)
    return held


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns its exit status."""
    made = Options("make prove")
    made.add_argument("--lesson", type=number_of)
    made.add_argument("--count", type=A_COUNT, default=20, help="submissions of each lesson")
    made.add_argument("--seed", default="2010", help="which submissions, and which questions")
    made.add_argument("--only", default="", help="environments with this in their name")
    options = made.parse_args(arguments)
    return agreement(check, options)


if __name__ == "__main__":
    sys.exit(in_a_line("make prove", main))

"""`make prove`: the proof of the grader. It gives the handout nothing and the reference all points,
right solutions that are written in other ways too, its hidden tests catch every mutant, and no
cheat gets a point. After that, the usual mistakes: does a student read what is kept in
tests/mistakes?

    python -m labs.tools.proving.prove [--lesson 1] [--workers N]
        [--sample K [--seed S] | --changed | --only PATTERN]

--sample tries K mutants a lesson, and K cheats and other ways in all; --changed those mutants and
ways whose files git sees changed; --only those mutants, ways, mistakes and cheats whose names fit,
such as "4.6-*". All three leave out the reference, and the handout of exercises that have none of
these mutants; --sample and --changed leave out the mistakes: `make test` has tests of these.
--sample has a mutant tried by the test that has to catch it, and does not count which of them the
visible tests let live. Exit status: 0 when all holds.
"""

from __future__ import annotations

import argparse
import importlib
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import TypeVar

from labs.tools.course.exercises import (
    ROOT,
    Exercise,
    ExerciseError,
    every_lesson,
    lesson_of,
    name_of,
    number_of,
    of_lesson,
    word_of,
)
from labs.tools.course.handed_in import (
    answers_path,
    sources_of,
    without_answers,
    write_measurement,
)
from labs.tools.grading.grade import GradeError, build_reference, submission_jobs
from labs.tools.grading.grade_parts import part_jobs, parts_of
from labs.tools.grading.grade_report import Score, number, scores_of, total
from labs.tools.grading.graded_tree import handout_files
from labs.tools.grading.lab_plan import Job
from labs.tools.grading.sandbox import SandboxUnavailable
from labs.tools.grading.test_run import WORKERS, TestResult, TestRunError, run_tests
from labs.tools.machine.command import A_COUNT, Options, in_a_line
from labs.tools.machine.work_folder import command_folder
from labs.tools.proving.mistakes import chosen as mistakes_like
from labs.tools.proving.mistakes import main as mistakes_kept
from labs.tools.proving.prove_cheats import Cheat, cheats_of, lay_cheat
from labs.tools.proving.prove_mutants import (
    Change,
    Mutant,
    MutantError,
    Verdict,
    file_of,
    mutant_job,
    mutants_of,
    read_mutants,
    verdict,
)
from labs.tools.proving.prove_ways import Way, way_error, way_job, ways_of

MUTANTS_AN_EXERCISE, WAYS_A_LESSON = 6, 2
HANDOUT, REFERENCE = "handout", "reference"
Tried = TypeVar("Tried")


@dataclass
class Proof:
    """The proof for one lesson. errors: what does not hold."""

    lesson: int
    mutants: list[Mutant]
    cheats: list[Cheat]
    ways: list[Way] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    results: list[TestResult] = field(default_factory=list)
    is_whole: bool = True
    has_visible: bool = True  # tests try the mutants, too: how many live is counted

    def add_submission(
        self,
        name: str,
        directory: Path,
        work: Path,
        handed_in: Path | None = None,
        exercises: Sequence[Exercise] | None = None,
        **fields: object,
    ) -> None:
        """Adds the jobs that grade a submission, under a name. handed_in: where its measurement and
        its answers are, if elsewhere. exercises: only these of the lesson."""
        every, work = of_lesson(self.lesson), work / f"{name}.trees"
        jobs, _ = submission_jobs(every if exercises is None else exercises, directory, work, name)
        parts = part_jobs(every, directory, work, name)
        jobs += [replace(each, handed_in=str(handed_in or directory)) for each in parts]
        self.jobs += [replace(job, name=f"{name}:{job.name}", **fields) for job in jobs]

    @property
    def blank(self) -> list[Exercise]:
        """Those whose handout is graded: all, or those of the mutants."""
        own = {mutant.exercise for mutant in self.mutants}
        return [each for each in of_lesson(self.lesson) if self.is_whole or each.id in own]

    def scores(self, name: str) -> list[Score]:
        """The scores of a submission."""
        own = [each for each in self.results if each.job.startswith(f"{name}:")]
        return scores_of([*of_lesson(self.lesson), *parts_of(self.lesson)], own)

    def verdicts(self) -> list[Verdict]:
        """What became of the mutants that could be tried."""
        tried = {job.name for job in self.jobs}
        return [
            verdict(mutant, [each for each in self.results if each.job == mutant.job_name])
            for mutant in self.mutants
            if mutant.job_name in tried
        ]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns its exit status."""
    options = parser().parse_args(arguments)
    numbers = [options.lesson] if options.lesson else list(every_lesson())
    are_few = options.changed or options.sample is not None
    try:
        require_names(numbers, options)
        held = [
            holds
            for together in ([numbers] if are_few else [[number] for number in numbers])
            for holds in proved(together, options)
        ]
    except (GradeError, ExerciseError, MutantError, SandboxUnavailable, TestRunError) as error:
        print(f"prove: {error}", file=sys.stderr)
        return 1
    if are_few:
        return 0 if all(held) else 1
    mistakes = ["--workers", str(options.workers)]
    mistakes += ["--only", options.only] if options.only else []
    kept = [
        mistakes_kept(["--lesson", str(number), *mistakes]) == 0
        for number in numbers
        if mistakes_like(number, options.only or "")
    ]
    return 0 if all([*held, *kept]) else 1


def require_names(numbers: Sequence[int], options: argparse.Namespace) -> None:
    """Raises MutantError for a pattern that no mutant, cheat, way or mistake fits: what tries
    nothing proves nothing."""
    if not options.only:
        return
    for lesson in numbers:
        proof = chosen(lesson, options)
        if [*proof.mutants, *proof.cheats, *proof.ways, *mistakes_like(lesson, options.only)]:
            return
    raise MutantError(f"ONLY={options.only}: nothing has such a name")


def proved(numbers: Sequence[int], options: argparse.Namespace) -> list[bool]:
    """Proves lessons together, and prints what came of it. All their trees are kept until the end:
    of a whole lesson 1 to 3 GiB, which may be in memory."""
    with command_folder("prove") as work:
        proofs = [prepared(chosen(number, options), work) for number in numbers]
        run_proofs(proofs, options.workers)
    return [report(proof) for proof in proofs]


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Options("make prove")
    made.add_argument("--lesson", type=number_of)
    made.add_argument("--sample", type=A_COUNT, help="mutants of a lesson, and cheats of all")
    made.add_argument("--seed", default="", help="which of them")
    made.add_argument("--changed", action="store_true", help="mutants whose files are changed")
    made.add_argument("--only", metavar="PATTERN", help="mutants and cheats with such names")
    made.add_argument("--workers", type=int, default=WORKERS)
    return made


# ---- what is tried ------------------------------------------------------------------------------


def prepared(proof: Proof, work: Path) -> Proof:
    """Makes all trees. What cannot be made is an error of the proof."""
    lesson, work = proof.lesson, work / str(proof.lesson)
    build_reference(lesson)
    handout = work / HANDOUT
    for exercise in of_lesson(lesson):
        for path, data in handout_files(exercise).items():
            (handout / path).parent.mkdir(parents=True, exist_ok=True)
            (handout / path).write_bytes(data)
    answers = handout / answers_path(lesson)
    answers.parent.mkdir(parents=True, exist_ok=True)
    answers.write_text(without_answers((ROOT / answers_path(lesson)).read_text()))
    # What does not pass at one clock rate gives no points: for nothing one of them is enough.
    for_nothing = {"modes": ("icount",), "thorough": proof.is_whole}
    proof.add_submission(HANDOUT, handout, work, exercises=proof.blank, **for_nothing)
    if proof.is_whole:
        hand_in_reference(lesson, work / "handed-in")
        proof.add_submission(REFERENCE, ROOT, work, work / "handed-in", thorough=True)
    add_changes(proof, work, proof.mutants, partial(mutant_job, visible=proof.has_visible))
    add_changes(proof, work, proof.ways, way_job)
    for cheat in proof.cheats:
        lay_cheat(cheat, lesson, work / cheat.name)
        proof.add_submission(f"cheat-{cheat.name}", work / cheat.name, work, **for_nothing)
    return proof


def hand_in_reference(lesson: int, tree: Path) -> None:
    """Measures the reference, and writes what is handed in of it into a folder."""
    build_reference(lesson, False, "user-programs")
    module = importlib.import_module(f"labs.{name_of(lesson)}.measure")
    (tree / answers_path(lesson)).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / answers_path(lesson), tree / answers_path(lesson))
    sources, guesses = sources_of(ROOT, lesson), {each.key: 1.0 for each in module.QUESTIONS}
    figures = module.own_figures(ROOT / f"build/{name_of(lesson)}", tree, sources)
    write_measurement(tree, lesson, sources, guesses, guesses, figures)


def chosen(lesson: int, options: argparse.Namespace) -> Proof:
    """The mutants, cheats and ways that the options ask for."""
    mutants, cheats, ways = mutants_of(lesson), cheats_of(lesson), ways_of(lesson)
    if options.only:
        mutants, cheats, ways = (
            [each for each in several if fnmatch(each.name, options.only)]
            for several in (mutants, cheats, ways)
        )
    elif options.changed:
        files = changed_paths()
        mutants = [each for each in mutants if each.places & files or is_new(each, files)]
        cheats = [cheat for cheat in cheats if any(cheat.name in path for path in files)]
        ways = [way for way in ways if way.places & files]
    elif options.sample is not None:
        chooser = random.Random(f"{options.seed}:{lesson}")
        mutants = chooser.sample(mutants, min(options.sample, len(mutants)))
        cheats = [cheat for number, cheat in sampled(cheats_of, options) if number == lesson]
        ways = [way for number, way in sampled(ways_of, options) if number == lesson]
    whole = not (options.only or options.changed) and options.sample is None
    return Proof(lesson, mutants, cheats, ways, is_whole=whole, has_visible=options.sample is None)


def sampled(
    all_of: Callable[[int], Iterable[Tried]], options: argparse.Namespace
) -> list[tuple[int, Tried]]:
    """A random sample of the cheats or ways of all lessons, each with its lesson."""
    numbers = [options.lesson] if options.lesson else every_lesson()
    every = [(number, each) for number in numbers for each in all_of(number)]
    return random.Random(options.seed).sample(every, min(options.sample, len(every)))


def changed_paths() -> set[str]:
    """The files that differ from the last commit, new ones included."""
    command = ["git", "status", "--porcelain", "--untracked-files=all"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {line[3:].rpartition(" -> ")[2] for line in done.stdout.splitlines()}


def is_new(mutant: Mutant, changed: set[str]) -> bool:
    """Whether the last commit has no such mutant."""
    path = str(file_of(mutant.exercise).relative_to(ROOT))
    if path not in changed:
        return False
    command = ["git", "show", f"HEAD:{path}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return mutant not in read_mutants(mutant.exercise, done.stdout)


def add_changes(
    proof: Proof,
    work: Path,
    changes: Sequence[Change],
    job: Callable[[Change, Path], Job],
) -> None:
    """Adds the jobs of the mutants, or of the ways. One that does not apply is an error."""
    for change in changes:
        try:
            proof.jobs.append(job(change, work))
        except MutantError as error:
            proof.errors.append(f"{change.name}: {error}")


def run_proofs(proofs: Sequence[Proof], workers: int) -> None:
    """Runs all jobs of all lessons; a process that is done with one lesson begins the next."""
    jobs = [job for proof in proofs for job in proof.jobs]
    results = run_tests(jobs, [f"tests/{name_of(proof.lesson)}" for proof in proofs], workers)
    for proof in proofs:
        proof.results += [each for each in results if lesson_of(each.exercise) == proof.lesson]


# ---- what came of it ----------------------------------------------------------------------------


def report(proof: Proof) -> bool:
    """Prints the figures of a lesson, and what does not hold. Returns whether all holds."""
    verdicts = proof.verdicts()
    proof.errors += [f"mutant {each.mutant.name}: {each.error}" for each in verdicts if each.error]
    proof.errors += [
        f"way {way.name}: {words}" for way in proof.ways if (words := way_error(way, proof.results))
    ]
    check_scores(proof)
    if proof.is_whole:
        if len(proof.ways) < WAYS_A_LESSON:
            proof.errors.append(f"it has {len(proof.ways)} other ways, not {WAYS_A_LESSON}")
        check_mutant_counts(proof, verdicts)
    print(table(proof, verdicts))
    for error in proof.errors:
        print(f"  DOES NOT HOLD  {error}")
    verdict_words = "NOT PROVED" if proof.errors else "proved"
    print(f"lesson {word_of(proof.lesson)}: {verdict_words}\n", flush=True)
    return not proof.errors


def check_scores(proof: Proof) -> None:
    """The handout and the cheats have nothing, the reference has all. A blank may pass tests of
    what must not happen: as long as no gate of the exercise passes they give no points. An extra
    gives none in any case, so what works of it counts."""
    for name in [HANDOUT, *(f"cheat-{cheat.name}" for cheat in proof.cheats)]:
        for score in proof.scores(name):
            gain = [test.test for test in score.tests if test.passed]
            if score.share:
                listed = ", ".join(gain)
                proof.errors.append(f"{name} passes in {score.exercise.id}: {listed}")
    for score in proof.scores(REFERENCE) if proof.is_whole else ():
        if not score.is_full:
            words = "; ".join(f"{test.test} ({test.mode}): {test.words}" for test in score.failed)
            proof.errors.append(f"the reference fails in {score.exercise.id}: {words or 'no test'}")


def check_mutant_counts(proof: Proof, verdicts: Sequence[Verdict]) -> None:
    """Each exercise has its mutants, and the visible tests let half of them live."""
    for exercise in of_lesson(proof.lesson):
        own = [each for each in verdicts if each.mutant.exercise == exercise.id]
        alive = sum(each.survives for each in own)
        if len(own) < MUTANTS_AN_EXERCISE:
            proof.errors.append(f"{exercise.id} has {len(own)} mutants, not {MUTANTS_AN_EXERCISE}")
        if alive * 2 < len(own):
            killed = ", ".join(each.mutant.name for each in own if not each.survives)
            proof.errors.append(f"{exercise.id}: visible tests kill more than half: {killed}")


def table(proof: Proof, verdicts: Sequence[Verdict]) -> str:
    """The figures of a lesson."""
    name = f"lesson {word_of(proof.lesson)}"
    lines = [f"{name:<34}  handout  reference  mutants  caught  alive visibly"]
    by_name = {each.exercise.id: each for each in proof.scores(REFERENCE)}
    for score in proof.scores(HANDOUT):
        exercise = score.exercise
        own = [each for each in verdicts if each.mutant.exercise == exercise.id]
        points = number(score.points) if score.tests else "-"
        full = number(by_name[exercise.id].points) if proof.is_whole else "-"
        caught = sum(not each.error for each in own)
        alive = sum(each.survives for each in own) if proof.has_visible else "-"
        lines.append(
            f"{f'{exercise.id} {exercise.title}':<34}  {points:>7}  {full:>9}  "
            f"{len(own):>7}  {caught:>6}  {alive:>13}"
        )
    lines += [cheat_line(proof, cheat) for cheat in proof.cheats]
    lines += [
        f"way {way.name:<30}  {'-' if way_error(way, proof.results) else 'all':>7}  ({way.title})"
        for way in proof.ways
    ]
    return "\n".join(lines)


def cheat_line(proof: Proof, cheat: Cheat) -> str:
    """The points of a cheat."""
    points = number(total(proof.scores(f"cheat-{cheat.name}")))
    return f"cheat {cheat.name:<28}  {points:>7}  ({cheat.title})"


if __name__ == "__main__":
    sys.exit(in_a_line("make prove", main))

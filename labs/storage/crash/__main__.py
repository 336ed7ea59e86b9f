"""`make crash`: power cuts at every request, with figures."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from labs.storage.crash import mutants
from labs.storage.crash.building import VARIANTS, build
from labs.storage.crash.laboratory import BARS, Figures, Laboratory, show_state
from labs.storage.crash.workloads import named
from labs.tools.machine.command import A_COUNT, A_SEED, Options, in_a_line

MEMORY = Path("/dev/shm")


def parse_arguments() -> argparse.Namespace:
    """The options."""
    parser = Options("make crash")
    parser.add_argument("--seed", type=A_SEED, default=2010)
    parser.add_argument("--states", type=A_COUNT, default=60_000, help="at least this many")
    parser.add_argument("--scale", choices=["full"], help="what the bars ask for, in one run")
    parser.add_argument("--variants", default=",".join(VARIANTS), help="kinds of file systems")
    parser.add_argument("--fsck", type=int, default=10, help="percent of states for e2fsck")
    parser.add_argument("--only", metavar="VARIANT:WORKLOAD:STATE", help="one state, in words")
    parser.add_argument("--mutant", choices=[*mutants.MUTANTS, "all"], help="of the library")
    parser.add_argument("--sanitize", action="store_true", help="with the sanitizers: slower")
    return parser.parse_args()


def hunt(name: str, options: argparse.Namespace, scratch: Path) -> bool:
    """Runs a mutant until a state shows it. Returns whether one did."""
    program = mutants.build_mutant(name, scratch / name)
    mutant = mutants.MUTANTS[name]
    laboratory = Laboratory(program, scratch, options.seed, fsck=options.fsck, limit=1)
    figures = laboratory.run(
        mutant.variants,
        0,
        first_only=True,
        workloads=[named(each) for each in mutant.workloads],
    )
    if not figures.violations:
        print(f"NOT CAUGHT: {name}, in {figures.states} states")
        return False
    found = figures.violations[0]
    print(f"caught: {name}, after {figures.states} states")
    print(f"  {found.name}: {found.reason}")
    print(f"  .venv/bin/python -m labs.storage.crash --mutant {name} --only '{found.name}'")
    return True


def main() -> int:
    """Returns 0 when no state is wrong (with mutants: when each is caught)."""
    options = parse_arguments()
    place = MEMORY if MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="crash-", dir=place) as folder:
        scratch = Path(folder)
        if options.only:
            program = (
                mutants.build_mutant(options.mutant, scratch / options.mutant)
                if options.mutant
                else build(sanitize=options.sanitize)
            )
            return show_state(program, scratch, options.only)
        if options.mutant:
            names = list(mutants.MUTANTS) if options.mutant == "all" else [options.mutant]
            caught = [hunt(name, options, scratch) for name in names]
            return 0 if all(caught) else 1
        laboratory = Laboratory(
            build(sanitize=options.sanitize), scratch, options.seed, fsck=options.fsck
        )
        full = options.scale == "full"
        figures = laboratory.run(options.variants.split(","), options.states, full=full)
    print_figures(figures, full)
    missed = full and any(figures.missed())
    return 1 if figures.wrong or figures.violations or missed else 0


def print_figures(figures: Figures, full: bool) -> None:
    """The table, and what was wrong; at full scale with what is the least of each."""
    for found in figures.violations[:20]:
        print(f"WRONG {found.name}\n      {found.reason}")
        print(f"      .venv/bin/python -m labs.storage.crash --only '{found.name}'")
    for name, number in figures.rows():
        least = f"   at least {BARS[name]:,}" if full and name in BARS else ""
        print(f"{name:42} {number:>9,}{least}")


if __name__ == "__main__":
    sys.exit(in_a_line("make crash", main))

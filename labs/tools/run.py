"""`make run`: the kernel at its prompt in this terminal; without a terminal, a script, to its end.

With no script and no terminal it runs the storage lab's short demonstration: the guest measures,
QEMU and the guest must agree on every disk request, and the disk model turns them into seconds.
The exit status is the guest's; 1 also when something here went wrong, which is said.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from labs.storage import disks, report
from labs.storage.disk_model import SECTOR_BYTES, Request
from labs.storage.guest_trace import Purpose, Record, parse_trace
from labs.tools.machine import exit_status, run
from labs.tools.qemu_command import Config, ConfigError, Drive, qemu_command
from labs.tools.result import GuestFailure, Outcome, Result

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "storage"
IMAGES = {"disk": BUILD / "boot.img", "grub": BUILD / "grub.iso", "direct": None}


def parse_arguments() -> argparse.Namespace:
    """The options of the Makefile."""
    parser = argparse.ArgumentParser(prog="make run", allow_abbrev=False)
    parser.add_argument("--boot", choices=IMAGES, default="disk")
    parser.add_argument("--memory", type=int, default=64, metavar="MIB")
    parser.add_argument("--reads", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=2010)
    parser.add_argument("--scale", default="100", help="the published 2 TB divided by this, or full")
    parser.add_argument("--script", help="commands for the kernel, parted by semicolons")
    return parser.parse_args()


def experiment_of(options: argparse.Namespace) -> disks.Experiment:
    """The drives to make."""
    scale = 1 if options.scale == "full" else int(options.scale)
    return disks.Experiment(scale=scale, reads=options.reads, seed=options.seed)


def lab_drives(experiment: disks.Experiment) -> tuple[Drive, ...]:
    """The lab's three drives, hdb to hdd, made first where they are missing."""
    directory = ROOT / "build" / f"disks-{experiment.scale}"
    disks.make_disks(directory, experiment)
    return tuple(
        Drive(disks.image_path(directory, drive), unit)
        for unit, drive in enumerate(disks.DRIVES, start=1)
    )


def machine_config(options: argparse.Namespace, **changes: object) -> Config:
    """The machine that the options describe."""
    return Config(
        boot=options.boot,
        kernel=BUILD / "kernel.elf",
        image=IMAGES[options.boot],
        memory=options.memory,
        drives=lab_drives(experiment_of(options)),
        seed=options.seed,
        **changes,
    )


def converse(options: argparse.Namespace) -> int:
    """Gives the terminal to the guest."""
    config = machine_config(options, icount=None, debug_exit=True)
    print("The kernel boots. Type exit to leave; Ctrl-A X ends the machine at any time.", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        command = qemu_command(config, Path(directory), ["-serial", "mon:stdio"])
        code = subprocess.run(command, check=False).returncode
    return exit_status(code) or 0


def run_script(options: argparse.Namespace, script: str) -> Result:
    """Runs the script, and keeps what guest and QEMU recorded of the disk requests."""
    seconds = 60 + options.reads // 50
    config = machine_config(
        options,
        script=script,
        trace=True,
        variables=("trace",),
        guest_limit=seconds,
        wall_limit=2 * seconds,
    )
    return run(config)


def follow_script(options: argparse.Namespace) -> int:
    """Runs the person's script, and shows what the guest said."""
    result = run_script(options, options.script)
    print(result.serial, end="")
    if result.outcome is not Outcome.ENDED:
        print(f"\n{result.explain()}", file=sys.stderr)
    return 1 if result.status is None else result.status


def disagreement(result: Result, total: int, records: list[Record]) -> str | None:
    """Where the guest's record and QEMU's trace differ; None when they tell the same."""
    seen = [r for r in result.all_requests if r.drive != "hda"]
    if total != len(seen):
        return f"the guest counts {total} requests, QEMU {len(seen)}"
    for mine, theirs in zip(records, seen[-len(records) :], strict=True):
        if (mine.drive, mine.lba, mine.sectors) != (theirs.drive, theirs.lba, theirs.sectors):
            return f"the guest recorded {mine}, QEMU saw {theirs}"
    return None


def runs_of(result: Result, records: list[Record], reads: int) -> list[report.DriveRun]:
    """The measured requests by drive, as QEMU saw them; what mounting and looking up cost is left out.

    The guest's record says what each request was for. Where its ring has lost the oldest ones, a
    request for one sector is for data, one for a whole block is for a mapping.
    """
    known = {(r.drive, r.lba, r.sectors): r.purpose for r in records}
    runs = []
    for drive in disks.DRIVES:
        requests, kinds = [], []
        for r in result.requests[drive.name]:
            guess = Purpose.DATA if r.sectors == 1 else Purpose.MAPPING
            purpose = known.get((r.drive, r.lba, r.sectors), guess)
            if purpose is not Purpose.OTHER:
                requests.append(Request(r.operation, r.lba, r.sectors))
                kinds.append(purpose.name.lower())
        runs.append(report.DriveRun(drive.name, reads, requests, kinds))
    return runs


def demonstrate(options: argparse.Namespace) -> int:
    """Runs the experiment, compares what guest and QEMU saw, and prints the tables."""
    result = run_script(options, f"measure {options.reads} {options.seed}")
    print(result.serial)
    if result.outcome is not Outcome.ENDED or result.status != 0:
        print(result.explain(), file=sys.stderr)
        return result.status or 1
    total, records = parse_trace(result.variables["trace"])
    difference = disagreement(result, total, records)
    if difference:
        print(f"guest and QEMU disagree: {difference}", file=sys.stderr)
        return 1
    print(f"Guest and QEMU agree on all {total:,} disk requests. In a disk's time they take:\n")
    sectors = experiment_of(options).drive_bytes // SECTOR_BYTES
    runs = runs_of(result, records, options.reads)
    report.print_report([report.measure(run, sectors) for run in runs], direct=True)
    return 0


def main() -> int:
    """Runs the command line; returns the exit status."""
    options = parse_arguments()
    try:
        if options.script:
            return follow_script(options)
        if sys.stdin.isatty() and sys.stdout.isatty():
            return converse(options)
        return demonstrate(options)
    except (ConfigError, disks.DiskError, GuestFailure) as error:
        print(f"make run: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())

"""`make run` and `make lab` for the storage lab: its kernel with the lab's three drives.

The lab's demonstration: the guest measures, QEMU and the guest must agree on every disk request,
and the disk model turns the requests into seconds.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from labs.storage import disks, report
from labs.storage.disk_model import SECTOR_BYTES, Request
from labs.storage.guest_trace import Record, parse_trace, requests_measured
from labs.tools.debugging.debug import debug
from labs.tools.guest.initramfs import InitramfsError, regular
from labs.tools.guest.root_image import make_root_image
from labs.tools.machine.disk_trace import Request as DiskRequest
from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import Config, Drive
from labs.tools.machine.result import Outcome, Result
from labs.tools.machine.run import (
    converse,
    follow_script,
    guarded,
    guest_files,
    is_terminal,
    machine_config,
    machine_options,
    run_command,
    write_archive,
)

ROOT_COMMAND = "dev/command"
"""Where a guest with its root on a disk finds the command."""

BOOT_DISK = "hda"
DISKS = Path(__file__).resolve().parents[2] / "build"


def parse_arguments() -> argparse.Namespace:
    """The options of the Makefile."""
    parser = machine_options("make run")
    parser.add_argument("--reads", type=int, default=1000)
    parser.add_argument("--scale", default="100", help="2 TB divided by this, or full")
    parser.add_argument("--lab", action="store_true", help="run the demonstration")
    parser.add_argument("--gdb", action="store_true", help="under gdb")
    parser.add_argument("--root", type=Path, metavar="IMAGE", help="the root: made if not there")
    options = parser.parse_args()
    if options.scale != "full" and not (options.scale.isdigit() and int(options.scale) > 0):
        parser.error(f"SCALE={options.scale}: a whole number from 1 on, or full")
    if options.reads < 1:
        parser.error(f"READS={options.reads}: at least 1")
    return options


def experiment_of(options: argparse.Namespace) -> disks.Experiment:
    """The drives to make."""
    scale = 1 if options.scale == "full" else int(options.scale)
    return disks.Experiment(scale=scale, reads=options.reads, seed=options.seed)


def with_root(options: argparse.Namespace) -> Config:
    """A machine whose root is a disk image, hdb; a new one gets what the guest has in memory
    otherwise. What is in memory then is a command only, in /dev, which stays."""
    if not options.root.exists():
        make_root_image(options.root, guest_files(options, None))
    elif options.debian or options.programs:
        raise InitramfsError(
            f"{options.root} is there already; what DEBIAN and PROGRAMS name goes "
            "only into a new image"
        )
    command = (options.command or "exec /bin/sh").encode() + b"\n"
    files = write_archive(options.build, [regular(ROOT_COMMAND, command, 0o644)])
    config = machine_config(
        argparse.Namespace(
            **{**vars(options), "user": None, "command": None, "debian": None, "programs": None}
        )
    )
    return replace(
        config,
        initramfs=files,
        drives=(Drive(options.root, 1, writable=True),),
        settings=(*config.settings, ("root", "/dev/hdb")),
    )


def with_drives(config: Config, experiment: disks.Experiment) -> Config:
    """Adds the lab's three drives, hdb to hdd, made first where they are missing."""
    directory = DISKS / f"disks-{experiment.scale}"
    disks.make_disks(directory, experiment)
    drives = tuple(
        Drive(disks.image_path(directory, drive), unit)
        for unit, drive in enumerate(disks.DRIVES, start=1)
    )
    return replace(config, drives=drives)


def of_the_lab(result: Result) -> list[DiskRequest]:
    """What QEMU saw of the lab's drives: the boot disk is read by the loader, too."""
    return [request for request in result.all_requests if request.drive != BOOT_DISK]


def disagreement(result: Result, total: int, records: list[Record]) -> str | None:
    """Where the guest's record and QEMU's trace differ; None when they tell the same. Of the boot
    disk the kernel reads the partition table only, and those records come first."""
    seen = of_the_lab(result)
    mine = [record for record in records if record.drive != BOOT_DISK]
    counted = total - (len(records) - len(mine))
    lost = len(records) < total
    if counted != len(seen) and not (lost and counted == len(seen) + 1):
        return f"the guest counts {counted} requests, QEMU {len(seen)}"
    for ours, theirs in zip(mine, seen[len(seen) - len(mine) :], strict=True):
        if (ours.drive, ours.lba, ours.sectors) != (theirs.drive, theirs.lba, theirs.sectors):
            return f"the guest recorded {ours}, QEMU saw {theirs}"
    return None


def runs_of(result: Result, measured: int, reads: int) -> list[report.DriveRun]:
    """The last `measured` requests by drive, as QEMU saw them: those before mounted and looked up.

    A measured read asks for its sector and for mapping blocks, and a block has several sectors: so
    the length says what a request was for, also of those that the guest's ring has lost.
    """
    seen = of_the_lab(result)
    seen = seen[len(seen) - measured :]
    runs = []
    for drive in disks.DRIVES:
        mine = [r for r in seen if r.drive == drive.name]
        requests = [Request(r.operation, r.lba, r.sectors) for r in mine]
        kinds = ["data" if r.sectors == 1 else "mapping" for r in mine]
        runs.append(report.DriveRun(drive.name, reads, requests, kinds))
    return runs


def demonstrate(config: Config, experiment: disks.Experiment) -> int:
    """Runs the experiment, compares what guest and QEMU saw, and prints the tables."""
    seconds = 60 + experiment.reads // 50
    result = run(
        replace(
            config,
            script=f"measure {experiment.reads} {experiment.seed}",
            trace=True,
            variables=("trace",),
            settings=(*config.settings, ("cache", "50"), ("disk", "pio-polled")),
            guest_limit=seconds,
            wall_limit=2 * seconds,
        )
    )
    print(result.serial)
    if result.outcome is not Outcome.ENDED or result.status != 0:
        print(result.explain(), file=sys.stderr)
        return result.status or 1
    total, records = parse_trace(result.variables["trace"])
    difference = disagreement(result, total, records)
    if difference:
        print(f"guest and QEMU disagree: {difference}", file=sys.stderr)
        return 1
    agreed = len(of_the_lab(result))
    print(f"Guest and QEMU agree on all {agreed:,} disk requests. In a disk's time they take:\n")
    sectors = experiment.drive_bytes // SECTOR_BYTES
    measured = requests_measured(result.variables["trace"])
    runs = runs_of(result, measured, experiment.reads)
    report.print_report([report.measure(run, sectors) for run in runs], direct=True)
    return 0


def main() -> int:
    """Runs the command line; returns the exit status."""
    options = parse_arguments()
    experiment = experiment_of(options)
    try:
        if options.root:
            config = with_root(options)
        else:
            config = with_drives(machine_config(options), experiment)
    except disks.DiskError as error:
        print(f"make run: {error}", file=sys.stderr)
        return 1
    if options.gdb:
        return debug(config)
    if options.command is not None and not options.lab:
        return run_command(config, *([ROOT_COMMAND] if options.root else []))
    if options.script and not options.lab:
        return follow_script(config)
    if is_terminal() and not options.lab:
        return converse(config)
    return demonstrate(config, experiment)


if __name__ == "__main__":
    sys.exit(guarded("make run", main))

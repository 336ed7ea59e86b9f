"""`make run` for the storage lab: its kernel with the lab's three drives.

Without a terminal it demonstrates: the guest reads at random, QEMU and the guest must agree on
every disk request, and the disk model turns the requests into seconds. `make lab` does the same,
and makes a report of it (x1.py).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from labs.storage import disks, random_reads, report
from labs.storage.disk_model import SECTOR_BYTES, Request
from labs.tools.debugging.debug import debug, with_command
from labs.tools.debugging.editor import server
from labs.tools.guest.initramfs import InitramfsError, regular
from labs.tools.guest.root_image import make_root_image
from labs.tools.machine.command import A_COUNT, typed_path
from labs.tools.machine.qemu_command import Config, Drive, check_file
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

SUPERBLOCK, WRITTEN, MAGIC, EXT_MAGIC = 1024, 0x30, 0x38, b"\x53\xef"
"""Bytes: where an ext file system has it, and in it s_wtime and s_magic (Linux, ext4/super.rst)."""

SEVERAL = 20_000
"""This many reads and more run in two machines, on two processors."""
DISKS = Path(__file__).resolve().parents[2] / "build"


def parser_of(program: str) -> argparse.ArgumentParser:
    """The options of the Makefile for `make run` and `make lab`."""
    parser = machine_options(program)
    parser.add_argument("--reads", type=A_COUNT, default=1000)
    parser.add_argument(
        "--scale", type=disks.scale, default=100, help="2 TB divided by this, or full"
    )
    return parser


def parse_arguments() -> argparse.Namespace:
    """The command line of `make run`."""
    parser = parser_of("make run")
    parser.add_argument("--gdb", action="store_true", help="under gdb")
    parser.add_argument("--batch", type=Path, help="a file of gdb commands to run instead")
    parser.add_argument("--server", type=server, default="", help="gdb for an editor")
    parser.add_argument("--dump", type=typed_path, help="gdb looks at this file")
    parser.add_argument(
        "--root", type=typed_path, metavar="IMAGE", help="the root: made if not there"
    )
    return parser.parse_args()


def experiment_of(options: argparse.Namespace) -> disks.Experiment:
    """The drives to make."""
    return disks.Experiment(scale=options.scale, reads=options.reads, seed=options.seed)


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
        clock=clock_for(options.root),
        drives=(Drive(options.root, 1, writable=True),),
        settings=(*config.settings, ("root", "/dev/hdb")),
    )


def clock_for(image: Path) -> str:
    """What the guest's clock begins with: this computer's time, as files come from it and go back,
    but never before the file system was last written. Else make in the guest would take what was
    edited in a later boot for older than what an earlier one has built."""
    written = 0
    check_file("ROOT", image)
    with image.open("rb") as file:
        file.seek(SUPERBLOCK)
        superblock = file.read(MAGIC + len(EXT_MAGIC))
    if superblock[MAGIC:] == EXT_MAGIC:
        written = int.from_bytes(superblock[WRITTEN : WRITTEN + 4], "little") + 1
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(max(time.time(), written)))


def with_drives(config: Config, experiment: disks.Experiment) -> Config:
    """Adds the lab's three drives, hdb to hdd, made first where they are missing."""
    directory = DISKS / f"disks-{experiment.scale}"
    disks.make_disks(directory, experiment)
    return replace(config, drives=random_reads.drives_of(directory))


def measured(
    options: argparse.Namespace,
    experiment: disks.Experiment,
    progress: Callable[[int], None] = lambda requests: None,
) -> list[report.Figures]:
    """Makes the drives, runs all rows in the guest, and puts their requests through the disk model.
    At full size two machines run at a time, and rows whose time is used up are left out.
    Raises DiskError and LabError."""

    def config_of(command: str) -> Config:
        return machine_config(
            argparse.Namespace(**{**vars(options), "boot": "direct", "command": command})
        )

    directory = DISKS / f"disks-{experiment.scale}"
    disks.make_disks(directory, experiment)
    machines = 2 if experiment.reads >= SEVERAL and (os.cpu_count() or 1) > 1 else 1
    sectors = experiment.drive_bytes // SECTOR_BYTES
    runs = random_reads.measure(
        config_of, directory, experiment, machines=machines, progress=progress
    )
    return [report.measure(requests_of(run, experiment.reads), sectors) for run in runs]


def requests_of(run: random_reads.RowRun, reads: int) -> report.RowRequests:
    """What the disk model and the report want to know of a run."""
    requests = [Request("read", record.lba, record.sectors) for record in run.records]
    kinds = [record.purpose.name.lower() for record in run.records]
    return report.RowRequests(run.row.name, reads, requests, kinds, run.samples)


def demonstrate(options: argparse.Namespace, experiment: disks.Experiment) -> int:
    """Runs the experiment and prints the tables."""
    figures = measured(options, experiment)
    agreed = sum(len(each.requests) for each in figures)
    print(f"Guest and QEMU agree on all {agreed:,} disk requests, and each read brought the right")
    print("sector. In a disk's time they take:\n")
    report.print_report(figures)
    return 0


def main() -> int:
    """Runs the command line; returns the exit status."""
    options = parse_arguments()
    experiment = experiment_of(options)
    try:
        asked = options.root or options.gdb or options.command is not None or options.script
        if not asked and not is_terminal():
            return demonstrate(options, experiment)
        if options.root:
            config = with_root(options)
        else:
            config = with_drives(machine_config(options), experiment)
    except (disks.DiskError, random_reads.LabError) as error:
        print(f"make run: {error}", file=sys.stderr)
        return 1
    if options.gdb:
        script = (ROOT_COMMAND,) if options.root else ()
        config = with_command(config, options.command, *script)
        return debug(config, options.batch, server=options.server, core=options.dump)
    if options.command is not None:
        return run_command(config, options.limit, *([ROOT_COMMAND] if options.root else []))
    if options.script:
        return follow_script(config)
    return converse(config)


if __name__ == "__main__":
    sys.exit(guarded("make run", main))

"""What `make lab` asks, and what is handed in of it: how many requests and sectors each of the six
rows has on your kernel. The grader runs them again. Which reads, and how many, depends on the text
of the exercises.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from labs.storage import disks, random_reads
from labs.storage.guest_trace import Purpose
from labs.tools.course.handed_in import MeasurementError, chosen
from labs.tools.course.measurement import Question
from labs.tools.machine.qemu_command import Config
from labs.tools.machine.run import machine_config
from labs.tools.machine.work_folder import work_folder

QUESTIONS = (
    Question("ext3", "A file on ext3 (block pointers): a read takes how many times as long?", "x"),
    Question("ext4", "A file on ext4 (extents): a read takes how many times as long?", "x"),
)
READS, MOST_SEED = (150, 250), 1_000_000
MEMORY = 64  # MiB
TOOL = "build/host/lab-file"


def figures_of(
    config_of: Callable[[str], Config], sources: str, tool: Path = disks.DEFAULT_TOOL
) -> dict[str, int]:
    """The figures of a kernel; config_of makes the machine that runs a command, and `tool` its
    drives. Raises MeasurementError."""
    with work_folder("figures") as directory:
        return measured(config_of, directory, sources, tool)


def measured(
    config_of: Callable[[str], Config], directory: Path, sources: str, tool: Path
) -> dict[str, int]:
    """The same with drives in `directory`."""
    seed, reads = chosen(sources, "seed", 1, MOST_SEED), chosen(sources, "reads", *READS)
    experiment = disks.Experiment(scale=100, reads=reads, seed=seed)
    figures = {}
    try:
        disks.make_disks(directory, experiment, tool)
        for run in random_reads.measure(config_of, directory, experiment):
            require_places(run, directory, experiment, tool)
            figures[f"{run.row.name}, requests"] = len(run.records)
            figures[f"{run.row.name}, sectors"] = sum(each.sectors for each in run.records)
    except (disks.DiskError, random_reads.LabError) as error:
        raise MeasurementError(str(error)) from error
    return figures


def require_places(
    run: random_reads.RowRun, directory: Path, experiment: disks.Experiment, tool: Path
) -> None:
    """The requests of a direct row, which QEMU has seen, are at the places of the seed. Raises
    MeasurementError."""
    if not run.row.direct:
        return
    (drive,) = (each for each in disks.DRIVES if each.name == run.row.drive)
    wanted = [lba for _, lba in disks.expected_reads(directory, drive, experiment, tool)]
    if [each.lba for each in run.records if each.purpose is Purpose.DATA] != wanted:
        raise MeasurementError(f"{run.row.name}: the requests are at other places than the reads")


def own_figures(build: Path, out: Path, sources: str) -> dict[str, int]:
    """The same of the kernel that was built here, with the course's programs."""
    options = argparse.Namespace(
        build=build, boot="direct", memory=MEMORY, seed=0, script=None, core=False,
        user=build.parent / "user/bin", programs=None, debian=None,
    )  # fmt: skip

    def config_of(command: str) -> Config:
        return machine_config(argparse.Namespace(**vars(options), command=command))

    return figures_of(config_of, sources)

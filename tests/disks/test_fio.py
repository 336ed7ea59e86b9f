"""fio, Debian's own, on the course's kernel: the second witness for seekrw's requests."""

from __future__ import annotations

import argparse
from dataclasses import replace

import pytest

from labs.storage import disks, random_reads
from labs.storage.workload import random_offsets
from labs.tools.guest.package import PackageError
from labs.tools.guest.programs import COMMAND
from labs.tools.machine import machine
from labs.tools.machine.run import machine_config, machine_options
from tests.support.building import make

EXPERIMENT = disks.Experiment(scale=100, reads=300, seed=2010)
SCRIPT = """\
mkdir -p /mnt/hdc /mnt/hdd
mount -o ro -t ext3 /dev/hdc /mnt/hdc
mount -o ro -t ext4 /dev/hdd /mnt/hdd
for drive in hdb hdc hdd; do for direct in 0 1; do
    echo 3 >/proc/sys/vm/drop_caches
    echo BEGIN $drive $direct; grep $drive /proc/diskstats
    fio --name=x --thread --ioengine=psync --direct=$direct --invalidate=0 --replay_no_stall=1 \\
        --read_iolog=/fio/$drive.log --output-format=terse >/result || cat /result
    grep $drive /proc/diskstats
done; done
"""


@pytest.fixture
def config(build, tmp_path):
    """A machine with fio, and a log of the reads of each drive: seekrw's, in fio's format."""
    make("LESSON=storage", "image-direct", "user-programs")
    manifest = disks.make_disks(tmp_path, EXPERIMENT, build("build/host/lab-file"))
    logs = tmp_path / "files" / "fio"
    logs.mkdir(parents=True)
    for drive, file in random_reads.FILES.items():
        size = manifest["files"][drive].get("bytes", EXPERIMENT.drive_bytes)
        offsets = random_offsets(EXPERIMENT.seed, size, EXPERIMENT.reads)
        reads = [f"{file} read {offset} 512" for offset in offsets]
        lines = ["fio version 2 iolog", f"{file} add", f"{file} open", *reads, f"{file} close", ""]
        (logs / f"{drive}.log").write_text("\n".join(lines))
    words = ["--boot", "direct", "--user", "build/user/bin", "--build", "build/storage"]
    words += ["--memory", "1024", "--programs", str(tmp_path / "files")]

    def config_of(command, *more):
        options = machine_options("test").parse_args([*words, *more, "--command", command])
        return machine_config(argparse.Namespace(**vars(options)))

    return tmp_path, config_of


@pytest.mark.slow
def test_fio_makes_the_same_requests(config):
    """In number and in sectors, on each drive, buffered and direct."""
    directory, config_of = config
    try:
        machine_of_fio = config_of(SCRIPT, "--debian", "fio")
    except PackageError as error:
        pytest.skip(f"Debian's fio cannot be had: {error}")
    said = machine.run(
        replace(
            machine_of_fio,
            drives=random_reads.drives_of(directory),
            settings=(("cmd", f"/bin/sh /{COMMAND}"), ("cache", "20"), ("disk", "dma-interrupt")),
            guest_limit=4000,
            wall_limit=600,
        )
    )
    lines = said.check().serial.partition("BEGIN ")[2].split("BEGIN ")
    found = {}
    for name, before, after in (part.splitlines()[:3] for part in lines):
        first, last = ([int(word) for word in line.split()[3:6]] for line in (before, after))
        found[tuple(name.split())] = (last[0] - first[0], last[2] - first[2])
    for run in random_reads.measure(config_of, directory, EXPERIMENT):
        mine = len(run.records), sum(record.sectors for record in run.records)
        theirs = found[run.row.drive, str(int(run.row.direct))]
        opening = theirs[0] - mine[0]  # the inode, which seekrw has read before it begins
        assert 0 <= opening <= 3, (run.row, mine, theirs)
        assert theirs[1] - mine[1] == 8 * opening, (run.row, mine, theirs)

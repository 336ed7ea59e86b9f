"""X1, the lab's experiment: from the seeded disks through the student's kernel to the published
table."""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from labs.storage import disks, random_reads, report
from labs.storage.guest_trace import Purpose
from labs.storage.random_reads import LabError, Row, compare, seen_by_qemu
from labs.storage.run import requests_of
from labs.tools.course import picture
from labs.tools.guest.programs import COMMAND
from labs.tools.machine import machine
from labs.tools.machine.qemu_command import Drive
from labs.tools.machine.run import machine_config, machine_options
from tests.support.building import make

EXPERIMENT = disks.Experiment(scale=100, reads=1000, seed=2010)
SECTORS = EXPERIMENT.drive_bytes // 512


@pytest.fixture(scope="module")
def directory(build, tmp_path_factory):
    """The three drives at 1:100."""
    place = tmp_path_factory.mktemp("disks")
    disks.make_disks(place, EXPERIMENT, build("build/host/lab-file"))
    return place


@pytest.fixture(scope="module")
def config_of():
    """The machine of `make lab`."""
    make("LESSON=storage", "image-direct", "user-programs")
    words = ["--boot", "direct", "--user", "build/user/bin", "--build", "build/storage"]
    options = machine_options("test").parse_args(words)
    return lambda command: machine_config(
        argparse.Namespace(**{**vars(options), "command": command})
    )


@pytest.fixture(scope="module")
def runs(config_of, directory):
    """All six rows, in one machine."""
    found = random_reads.measure(config_of, directory, EXPERIMENT)
    return {run.row.name: run for run in found}


@pytest.fixture(scope="module")
def figures(runs):
    """What the disk model says of them."""
    return {
        name: report.measure(requests_of(run, EXPERIMENT.reads), SECTORS)
        for name, run in runs.items()
    }


def test_the_published_table(figures):
    """STORAGE 7: requests per read, sectors per request, ratios, and each row within 5 %."""
    assert list(figures) == [*report.PUBLISHED, "raw direct"]
    for name, each in figures.items():
        if name in report.PUBLISHED:
            assert abs(each.ms_per_read / report.PUBLISHED[name].ms_per_read - 1) < 0.05, name
        if name.startswith("ext3"):
            assert 1.85 <= each.requests_per_read <= 2.0
        if name.endswith("buffered"):
            assert each.sectors_per_request == 8
    assert figures["raw direct"].sectors_per_request == 1
    assert 4.2 <= figures["ext3 direct"].sectors_per_request <= 4.5
    assert 1 <= figures["ext4 direct"].sectors_per_request < 1.05
    rows = list(figures.values())
    for way in ("buffered", "direct"):
        assert 1.30 <= report.ratio(rows, f"ext3 {way}", f"ext4 {way}") <= 1.45
        assert abs(report.ratio(rows, f"raw {way}", f"ext4 {way}") - 1) < 0.03


def test_the_readme_shows_what_is_printed(figures):
    """Its picture has the lines that `make run` prints without a terminal."""
    console = Console(file=StringIO())
    report.print_report(list(figures.values()), console)
    printed = [line.rstrip() for line in console.file.getvalue().splitlines()]
    shown = picture.shown()
    begin = shown.index("$ make run </dev/null") + 1
    assert f"on all {sum(len(each.requests) for each in figures.values()):,} disk" in shown[begin]
    table = picture.table(printed)
    assert shown[-len(table) :] == [line.rstrip() for line in table]
    begin = shown.index(f"~ # {picture.TYPED[0]}")
    assert shown[begin : begin + 2 * len(picture.TYPED)] == picture.shell()


def test_reads_are_those_that_the_seed_gives(runs, directory, build):
    """In direct rows each read is a request, for the sector that the host computes, in order; in
    buffered rows for its page."""
    tool = build("build/host/lab-file")
    for drive in disks.DRIVES:
        expected = [lba for _, lba in disks.expected_reads(directory, drive, EXPERIMENT, tool)]
        for run in runs.values():
            data = [r.lba for r in run.records if r.purpose is Purpose.DATA]
            if run.row.drive == drive.name and run.row.direct:
                assert data == expected
            elif run.row.drive == drive.name:
                assert data == list(dict.fromkeys(lba - lba % 8 for lba in expected))


def test_hits_of_the_pointer_cache(figures):
    """1,000 reads of 4,684 pointer blocks: a read finds its own there by chance."""
    for name in ("ext3 buffered", "ext3 direct"):
        assert 80 <= figures[name].mapping_hits <= 125
        assert len(figures[name].after_mapping) + figures[name].mapping_hits == EXPERIMENT.reads


def test_another_seed_has_no_stamps(config_of, directory):
    """And so its reads are wrong, which seekrw says."""
    other = replace(EXPERIMENT, reads=20, seed=2011)
    with pytest.raises(LabError, match=r"offset [0-9]+ carries no stamp"):
        random_reads.measure(config_of, directory, other, [Row("raw direct", "hdb", direct=True)])


# --- the witnesses ---


def test_a_lying_guest_would_be_caught():
    """The comparison can fail: one request missing, one sector moved, another number."""
    seen = [(80, 8), (96, 1), (16, 8)]
    compare("hdb", seen, list(seen))
    for lie in (seen[1:], seen[:-1], [(80, 8), (97, 1), (16, 8)], [*seen, (1, 1)]):
        with pytest.raises(LabError, match=r"hdb, request [0-3]: "):
            compare("hdb", seen, lie)
    with pytest.raises(LabError, match="hdb, bytes: 1 in the guest, 2 in QEMU"):
        compare("hdb, bytes", 1, 2)


def test_qemu_is_read():
    """PIO requests by their first block, DMA requests by their parts, drives by address."""
    lines = ["exec_cmd IDE exec cmd: bus 0x1; state 0xb; cmd 0xec"]
    for state in ("0xb", "0xc", "0xd"):
        lines += [f"ide_exec_cmd IDE exec cmd: bus 0x1; state {state}; cmd 0x24"]
        lines += ["ide_sector_read sector=0 nsectors=2", "ide_sector_read sector=1 nsectors=1"]
    lines += ["ide_exec_cmd IDE exec cmd: bus 0x1; state 0xc; cmd 0x25"]
    lines += ["ide_dma_cb IDEState 0xc; sector_num=77 n=8 cmd=DMA READ"]
    seen = seen_by_qemu("\n".join(lines))
    assert seen == {"hdb": [(0, 2)], "hdc": [(0, 2), (77, 8)], "hdd": [(0, 2)]}


def test_a_guest_that_fails_is_told(config_of, directory):
    """Here: a drive that is not there."""
    with pytest.raises(LabError, match="No such file"):
        random_reads.measure(
            lambda command: config_of(command.replace("/dev/hdb", "/dev/hdx")),
            directory,
            EXPERIMENT,
            [Row("raw direct", "hdb", direct=True)],
        )


# --- seekrw's options, in the guest; tests/lab/test_seekrw.py has them here ---

OPTIONS = """\
exec 2>/dev/null
mkdir -p /m; mount -o ro -t ext3 /dev/hdc /m
seekrw -f /dev/hdb -a 300 -s 5 -w 100 -c | head -1
sync; echo 3 >/proc/sys/vm/drop_caches
seekrw -f /dev/hdb -a 300 -s 5 -c -j
seekrw -f /dev/hdb -a 300 -s 5 -c -d -j
seekrw -f /dev/hdb -a 300 -s 5 -c --mmap -j
seekrw -f /dev/hdb -a 300 -s 5 --mmap -l 1536 -w 50 -j
for words in '-f /dev/hdc' '-f /m/none' '-f /dev/hdb -d -l 1000' '-f /dev/hdb -x' '-f /dev/null'; do
    seekrw $words 2>&1 | head -1
done
"""


def test_options_in_the_guest(config_of, directory, tmp_path):
    """Writes stamps and finds them by each way of reading; a mounted device is refused."""
    small = tmp_path / "small"
    small.write_bytes(bytes(1 << 20))
    hdc = random_reads.drives_of(directory)[1]
    config = replace(
        config_of(OPTIONS),
        drives=(Drive(small, 1, writable=True), hdc),
        settings=(("cmd", f"/bin/sh /{COMMAND}"), ("disk", "dma-interrupt")),
        guest_limit=1000,
    )
    said = machine.run(config).check().serial
    first, *_ = re.findall("^real time: .*", said, re.MULTILINE)
    assert re.fullmatch(r"real time: 0 minutes \d+ seconds \d+ usec", first)
    buffered, direct, mapped, mixed = map(json.loads, re.findall("^{.*", said, re.MULTILINE))
    for each in (buffered, direct, mapped):
        assert (each["reads"], each["writes"], each["wrong"]) == (300, 0, 0)
    assert direct["requests"]["reads"] == direct["requests"]["sectors_read"] == 300
    assert buffered["requests"]["sectors_read"] >= 8 * buffered["requests"]["reads"] > 0
    assert mixed["reads"] + mixed["writes"] == 300
    assert said.split("\n")[-6:-1] == [
        "seekrw: /dev/hdc is mounted or otherwise in use; unmount it first",
        "seekrw: /m/none cannot be opened for reading: No such file or directory",
        "seekrw: with -d the length must be a multiple of 512, and 1000 is not",
        "seekrw: there is no option -x",
        "seekrw: /dev/null is neither a file nor a block device",
    ]

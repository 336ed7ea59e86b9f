"""The lab's experiment, from the seeded disks to the modelled ratio."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from labs.storage import disks, report
from labs.storage.disk_model import SECTOR_BYTES
from labs.storage.guest_trace import Purpose, parse_trace, requests_measured
from labs.storage.run import disagreement, runs_of
from labs.tools.machine.qemu_command import Drive

EXPERIMENT = disks.Experiment(scale=100, reads=1000, seed=2010)


@pytest.fixture(scope="module")
def guest(guest):
    """With drives that are polled, as `make lab` has them: guest time that passes while a task
    waits for an interrupt depends on the host."""
    return lambda script, **fields: guest(script, settings=(("disk", "pio-polled"),), **fields)


@pytest.fixture(scope="module")
def directory(build, tmp_path_factory):
    """The three drives at 1:100."""
    place = tmp_path_factory.mktemp("disks")
    disks.make_disks(place, EXPERIMENT, build("build/host/lab-file"))
    return place


def drives(directory) -> list[Drive]:
    """hdb to hdd of the experiment."""
    return [
        Drive(disks.image_path(directory, drive), unit)
        for unit, drive in enumerate(disks.DRIVES, start=1)
    ]


@pytest.fixture(scope="module")
def measured(guest, directory):
    """The run with the defaults of `make run`."""
    script = f"measure {EXPERIMENT.reads}"
    return guest(
        script, drives=drives(directory), seed=EXPERIMENT.seed, trace=True, variables=("trace",)
    ).check()


def rows(serial: str) -> dict[str, list[str]]:
    """The guest's table: the columns by drive."""
    found = re.findall(r"^(hd[b-d]) \w+ +(.*)$", serial, re.MULTILINE)
    return {drive: columns.replace("|", " ").split() for drive, columns in found}


def test_every_read_is_right_and_counted(measured):
    """1,000 data requests a drive; most reads need a pointer block, hardly any an extent block."""
    table = rows(measured.serial)
    assert list(table) == ["hdb", "hdc", "hdd"]
    assert [table[drive][5] for drive in table] == ["1.00"] * 3
    assert table["hdb"][6] == "0.00"
    assert 0.85 <= float(table["hdc"][6]) <= 0.95
    assert float(table["hdd"][6]) <= 0.01


def test_guest_and_qemu_saw_the_same(measured):
    """Each request: drive, sector, length, in order; and QEMU's block statistics by drive."""
    total, records = parse_trace(measured.variables["trace"])
    assert total == len(records) > 3900
    assert disagreement(measured, total, records) is None
    for drive in ("hdb", "hdc", "hdd"):
        mine = [record for record in records if record.drive == drive]
        statistics = measured.block_statistics[drive]
        assert statistics.reads == len(mine)
        assert statistics.read_bytes == SECTOR_BYTES * sum(record.sectors for record in mine)
        assert statistics.failed == 0


def test_a_lying_guest_would_be_caught(measured):
    """The comparison can fail: one record missing, one sector moved."""
    total, records = parse_trace(measured.variables["trace"])
    assert disagreement(measured, total - 1, records[1:])
    moved = [*records[:-1], replace(records[-1], lba=1)]
    assert disagreement(measured, total, moved)


def test_reads_are_those_that_the_seed_gives(measured, directory, build):
    """QEMU saw exactly the sectors that the host computes, in order."""
    tool = build("build/host/lab-file")
    _, records = parse_trace(measured.variables["trace"])
    for drive in disks.DRIVES:
        expected = [lba for _, lba in disks.expected_reads(directory, drive, EXPERIMENT, tool)]
        data = [r.lba for r in records if r.drive == drive.name and r.purpose is Purpose.DATA]
        assert data == expected


def measured_runs(measured) -> list[report.DriveRun]:
    """The measured requests as `make lab` takes them from QEMU's trace."""
    return runs_of(measured, requests_measured(measured.variables["trace"]), EXPERIMENT.reads)


def test_kinds_need_no_complete_record(measured):
    """What each request was for is what the guest recorded, and mounting is not among them, though
    nothing but a number is taken from the guest: at full size its ring has lost most records."""
    _, records = parse_trace(measured.variables["trace"])
    for run in measured_runs(measured):
        mine = [record for record in records if record.drive == run.drive]
        mine = [record for record in mine if record.purpose is not Purpose.OTHER]
        assert [request.lba for request in run.requests] == [record.lba for record in mine]
        assert list(run.kinds) == [record.purpose.name.lower() for record in mine]


def test_hits_have_one_meaning(measured):
    """The guest and the report count the same: reads that needed no request for a mapping."""
    table = rows(measured.serial)
    for run in measured_runs(measured):
        figures = report.measure(run, EXPERIMENT.drive_bytes // SECTOR_BYTES)
        hits = str(figures.mapping_hits) if run.drive != "hdb" else "-"
        assert table[run.drive][7] == hits
    assert 80 <= int(table["hdc"][7]) <= 120


def test_modelled_ratio(measured):
    """Between 1.30 and 1.50 with the pointer blocks cold, and the hits and misses that made it."""
    sectors = EXPERIMENT.drive_bytes // SECTOR_BYTES
    figures = [report.measure(run, sectors) for run in measured_runs(measured)]
    by_drive = {each.drive: each for each in figures}
    ratio = report.ratio(figures, "hdc", "hdd")
    words = report.explain(figures, direct=True)
    print(words)  # pytest -s shows it
    assert 1.30 <= ratio <= 1.50, words
    pointers = by_drive["hdc"]
    assert 880 <= pointers.cold_reads <= 920, words
    assert pointers.cold_reads + pointers.mapping_hits == EXPERIMENT.reads
    assert 0.97 <= report.ratio(figures, "hdb", "hdd") <= 1.03


@pytest.mark.slow
def test_counts_repeat(guest, directory, measured):
    """The same seed gives the same requests; another seed gives others, which carry no stamps."""
    again = guest(f"measure {EXPERIMENT.reads}", drives=drives(directory), seed=2010, trace=True)
    lab = [request for request in measured.all_requests if request.drive != "hda"]
    assert list(again.check().all_requests) == lab
    other = guest("measure 50 2011", drives=drives(directory))
    assert other.status == 1
    assert "carries no stamp (was the disk made for this seed" in other.serial
    assert re.search(r"hdc pointers: \d+ of 50 reads were wrong", other.serial)


def test_swapped_drives_are_noticed(guest, directory):
    """The stamps say which drive a sector is of."""
    b, c, d = drives(directory)
    swapped = [b, Drive(d.path, 2), Drive(c.path, 3)]
    result = guest("measure 20", drives=swapped)
    assert result.status == 1
    assert re.search(r"the sector at offset \d+ is that of offset \d+ on hdd", result.serial)


@pytest.mark.slow
def test_each_run_begins_cold(guest, directory):
    """The command drops the cache, so the same reads cost the same pointer blocks again."""
    result = guest("measure 300; measure 300", drives=drives(directory), trace=True)
    first, second = (rows(part) for part in result.check().serial.split("> measure 300")[1:])
    assert first["hdc"][5:8] == second["hdc"][5:8]


@pytest.mark.slow
def test_means_are_rounded(guest, directory):
    """Requests for one read, in the guest's table: what the report would say of them."""
    fields = {"drives": drives(directory), "trace": True, "variables": ("trace",)}
    for reads in (6, 7, 13):
        result = guest(f"measure {reads}", **fields).check()
        table = rows(result.serial)
        for run in runs_of(result, requests_measured(result.variables["trace"]), reads):
            means = [run.kinds.count(kind) / reads for kind in ("data", "mapping")]
            assert [float(cell) for cell in table[run.drive][5:7]] == pytest.approx(means, abs=5e-3)


@pytest.mark.slow
@pytest.mark.parametrize("memory", [16])
def test_small_memory(guest, directory, memory):
    """With 16 MB the cache is smaller, and everything else the same."""
    guest("measure 200", drives=drives(directory), memory=memory, boot="disk").check()


def test_missing_drives_are_named(guest, directory):
    only_raw = drives(directory)[:1]
    result = guest("measure 10", drives=only_raw)
    assert result.status == 1
    assert "hdc: no such drive" in result.serial

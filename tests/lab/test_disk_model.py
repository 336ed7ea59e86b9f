"""The disk model: its geometry and seek curve, and the figures it must give."""

from __future__ import annotations

import random
from functools import cache
from itertools import pairwise

import pytest

from labs.storage import disk_model, report
from labs.storage.disk_model import (
    COMMAND_OVERHEAD_MS,
    FULL_SECTORS,
    HEADS,
    HOST_TURNAROUND_MS,
    REVOLUTION_MS,
    SEEK_KNEE,
    SEEK_ROOT_MS,
    SEEK_START_MS,
    Access,
    Disk,
    Geometry,
    Request,
    add_up,
    replay,
    seek_curve_ms,
)
from labs.storage.disks import Experiment
from labs.storage.workload import ExtentLayout, PointerLayout, RawLayout, simulate

pytestmark = pytest.mark.slow

READS = 100_000
SMALL_SECTORS = FULL_SECTORS // 100 // 8 * 8


@pytest.fixture(scope="module", params=[FULL_SECTORS, SMALL_SECTORS, 1000])
def geometry(request):
    return Geometry(request.param, SEEK_ROOT_MS)


@cache
def full_size_run(kind):
    """The published experiment on paper: the run, and what each of its requests cost."""
    layout = {"raw": RawLayout, "extents": ExtentLayout, "pointers": PointerLayout}[kind]
    run = simulate(layout(), READS, seed=1)
    if kind == "raw":
        run.requests = [Request("r", request.lba, 1) for request in run.requests]
    return run, replay(run.requests)


def ms_per_read(kind):
    return full_size_run(kind)[1].total_ms / READS


def small_ratio(seed):
    """Pointers to extents at 1:100, with 1,000 reads."""
    costs = [
        replay(simulate(layout(SMALL_SECTORS), 1000, seed).requests, Disk(SMALL_SECTORS)).total_ms
        for layout in (PointerLayout, ExtentLayout)
    ]
    return costs[0] / costs[1]


# --- geometry ---


def test_places_and_lbas_are_one_to_one(geometry):
    generator = random.Random(1)
    lbas = [0, geometry.sectors - 1]
    lbas += [zone.first_lba - 1 for zone in geometry.zones[1:]]
    lbas += [zone.first_lba for zone in geometry.zones]
    lbas += [generator.randrange(geometry.sectors) for _ in range(2000)]
    for lba in lbas:
        place = geometry.locate(lba)
        assert geometry.lba_of(place.cylinder, place.head, place.sector) == lba
        assert 0 <= place.cylinder < geometry.cylinders
        assert 0 <= place.head < HEADS
        assert 0 <= place.sector < place.track_sectors
        assert 0 <= place.angle < 1


def test_outer_tracks_are_twice_as_long_as_inner_ones(geometry):
    lengths = [zone.track_sectors for zone in geometry.zones]
    assert lengths[0] == 2200 and lengths[-1] == 1100 and len(lengths) == 24
    assert lengths == sorted(lengths, reverse=True)


def test_small_drive_has_the_same_stroke_in_fewer_cylinders():
    small, full = Geometry(SMALL_SECTORS, SEEK_ROOT_MS), Geometry(FULL_SECTORS, SEEK_ROOT_MS)
    assert small.cylinders == pytest.approx(full.cylinders / 100, rel=0.01)
    assert small.seek_ms(small.cylinders) == full.seek_ms(full.cylinders)


# --- seek and rotation ---


def test_longer_seeks_take_longer():
    times = [seek_curve_ms(part / 1000, SEEK_ROOT_MS) for part in range(1, 1001)]
    assert all(shorter < longer for shorter, longer in pairwise(times))
    assert times[0] > SEEK_START_MS


def test_seek_curve_bends_without_a_step_or_a_corner():
    def slope(at):
        step = 1e-6
        return (seek_curve_ms(at + step, 10) - seek_curve_ms(at, 10)) / step

    below, above = SEEK_KNEE - 1e-5, SEEK_KNEE + 1e-5
    assert seek_curve_ms(below, 10) == pytest.approx(seek_curve_ms(above, 10), abs=1e-3)
    assert slope(below) == pytest.approx(slope(above), rel=1e-3)


def test_no_seek_within_a_track_and_a_head_switch_within_a_cylinder():
    disk = Disk()
    assert disk.service(0, 500, 1).seek_ms == 0
    assert disk.service(20, 2200 + 500, 1).seek_ms == disk_model.HEAD_SWITCH_MS


def test_every_wait_for_the_sector_is_equally_likely():
    waits = [a.rotation_ms / REVOLUTION_MS for a in full_size_run("raw")[1].accesses]
    assert min(waits) >= 0 and max(waits) < 1
    tenths = [sum(1 for wait in waits if int(wait * 10) == tenth) for tenth in range(10)]
    assert all(count == pytest.approx(READS / 10, rel=0.04) for count in tenths)


def test_rereading_a_sector_waits_for_its_next_turn():
    disk = Disk()
    end_ms = disk.service(0, 1000, 1).total_ms
    again = disk.service(end_ms, 1000, 1)
    assert again.total_ms == pytest.approx(REVOLUTION_MS)


# --- sequential reads ---


def media_ms(sectors, track_sectors):
    """Turns of the platter for the sectors, and the skew at each end of a track."""
    geometry, tracks = Geometry(FULL_SECTORS, SEEK_ROOT_MS), sectors / track_sectors
    skew = (geometry.head_skew * (HEADS - 1) + geometry.cylinder_skew) / HEADS
    return tracks * (1 + skew) * REVOLUTION_MS


def test_one_long_read_streams_at_the_media_rate():
    access = Disk().service(0, 0, 2200 * 80)
    assert access.total_ms == pytest.approx(media_ms(2200 * 80, 2200), rel=0.03)


@pytest.mark.parametrize("sectors", [8, 256, 2048])
def test_many_short_reads_in_order_stream_too(sectors):
    count = 2200 * 80 // sectors
    requests = [Request("read", number * sectors, sectors) for number in range(count)]
    per_request = COMMAND_OVERHEAD_MS + HOST_TURNAROUND_MS
    least_ms = max(media_ms(count * sectors, 2200), count * per_request)
    assert replay(requests).total_ms == pytest.approx(least_ms, rel=0.03)


# --- requests ---


@pytest.mark.parametrize(("lba", "sectors"), [(-1, 1), (0, 0), (999, 2), (1000, 1), (0, -1)])
def test_requests_off_the_drive_are_refused(lba, sectors):
    with pytest.raises(ValueError, match="not wholly on a drive of 1000 sectors"):
        Disk(1000).service(0, lba, sectors)


def test_the_parts_are_the_whole():
    done = full_size_run("raw")[1]
    mean = add_up(done.accesses, READS)
    assert mean.total_ms == pytest.approx(ms_per_read("raw"))
    assert mean.overhead_ms == pytest.approx(COMMAND_OVERHEAD_MS + HOST_TURNAROUND_MS)


def test_same_requests_cost_the_same():
    requests = simulate(PointerLayout(SMALL_SECTORS), 200, seed=3).requests
    costs = [replay(requests, Disk(SMALL_SECTORS)).accesses for _ in range(2)]
    assert costs[0] == costs[1]


# --- the figures of 2010 ---


def test_refit_gives_the_constant():
    fitted = disk_model.fit_seek_root_ms(disk_model.random_reads(10_000))
    assert fitted == pytest.approx(SEEK_ROOT_MS, rel=0.02)


def test_raw_read_of_a_sector_takes_as_long_as_measured():
    mean = add_up(full_size_run("raw")[1].accesses, READS)
    assert mean.total_ms == pytest.approx(14.78, abs=0.05)
    assert mean.seek_ms == pytest.approx(9.00, abs=0.05)
    assert mean.rotation_ms == pytest.approx(5.52, abs=0.06)


def test_pointer_reads_cost_two_fifths_more():
    run, _ = full_size_run("pointers")
    assert ms_per_read("pointers") / ms_per_read("extents") == pytest.approx(1.394, abs=0.015)
    assert run.bottom_misses == pytest.approx(90_089, abs=300)


def test_forgotten_pointers_cost_a_little_more():
    run = simulate(PointerLayout(), READS // 5, seed=1, keep_bottom=False)
    forgotten_ms = replay(run.requests).total_ms / (READS // 5)
    assert forgotten_ms / ms_per_read("extents") == pytest.approx(1.437, abs=0.015)
    assert run.bottom_misses == READS // 5


def test_data_behind_its_pointer_block_costs_half_a_turn():
    run, done = full_size_run("pointers")
    second = [a for a, was_mapping in zip(done.accesses[1:], run.mapping, strict=False)
              if was_mapping]  # fmt: skip
    mean = add_up(second, len(second))
    assert mean.seek_ms == pytest.approx(0.73, abs=0.1)
    assert mean.rotation_ms == pytest.approx(5.40, abs=0.1)


@pytest.mark.parametrize(
    ("kind", "tps", "sectors"), [("raw", 67.7, 1), ("extents", 67.4, 8), ("pointers", 92.4, 8)]
)
def test_iostat_figures(kind, tps, sectors):
    run, done = full_size_run(kind)
    assert len(run.requests) / done.total_ms * 1000 == pytest.approx(tps, rel=0.006)
    assert {request.sectors for request in run.requests} == {sectors}


def test_a_hundredth_of_the_size_shows_the_same():
    ratios = [small_ratio(seed) for seed in range(1, 21)]
    assert min(ratios) > 1.30 and max(ratios) < 1.50
    assert sum(ratios) / len(ratios) == pytest.approx(1.394, abs=0.015)


# --- the report ---


@pytest.fixture
def figures():
    """One read found its pointers, and one had to read them."""
    requests = [Request("r", 80_000, 8), Request("r", 80_100, 1), Request("r", 81_000, 1)]
    runs = [
        report.RowRequests("ext3 direct", 2, requests, ["mapping", "data", "data"]),
        report.RowRequests("ext4 direct", 2, requests[1:], ["data", "data"]),
        report.RowRequests("raw direct", 2, requests[1:], ["data", "data"]),
    ]
    return [report.measure(run, SMALL_SECTORS) for run in runs]


def test_report_counts_hits_and_misses(figures):
    pointers = figures[0]
    assert (len(pointers.requests), pointers.mapping_requests, pointers.mapping_hits) == (3, 1, 1)
    assert pointers.sectors_per_request == pytest.approx(10 / 3)
    assert pointers.per_read.total_ms == pytest.approx(pointers.ms_per_read)
    assert len(pointers.latencies_ms) == 2
    assert sum(pointers.latencies_ms) == pytest.approx(2 * pointers.ms_per_read)
    assert report.ratio(figures, "raw direct", "ext4 direct") == 1


def test_report_is_plain_and_narrow_without_a_terminal(figures, capsys):
    report.print_report(figures)
    printed = capsys.readouterr().out
    sentence = " ".join(printed.split())
    assert printed.isascii()
    assert max(map(len, printed.splitlines())) <= 100
    for expected in ("req/read", "ext3 direct", "20.07", "Of 2 reads, 1 found"):
        assert expected in sentence


def test_report_on_paper():
    """Six rows, each close to the published one."""
    experiment = Experiment(scale=100, reads=1000, seed=2010)
    rows = [report.measure(run, SMALL_SECTORS) for run in report.predict(experiment)]
    assert [row.name for row in rows] == [*report.PUBLISHED, "raw direct"]
    for row in rows[:-1]:
        assert row.ms_per_read == pytest.approx(report.PUBLISHED[row.name].ms_per_read, rel=0.05)


def test_report_refuses_an_unknown_kind():
    run = report.RowRequests("ext3 direct", 1, [Request("r", 0, 1)], ["unknown"])
    with pytest.raises(ValueError, match="data, mapping, other"):
        report.measure(run, SMALL_SECTORS)


def test_nothing_read_costs_nothing():
    assert add_up([]) == Access(0, 0, 0, 0)

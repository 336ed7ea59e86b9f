"""The disk models of labs/storage/models: what they say of themselves, and behind nbdkit."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from labs.storage import disk_model, nbd
from labs.storage.disk_model import Flash, Request, drive, names, parameters, replay

READS = 20


def random_reads(name: str, count: int = 2000, sectors: int = 1) -> list[Request]:
    generator = random.Random(1)
    end = parameters(name).sectors - sectors
    return [Request("read", generator.randrange(end), sectors) for _ in range(count)]


def mean_ms(name: str, requests: list[Request]) -> float:
    return replay(requests, drive(name)).total_ms / len(requests)


def test_every_drive_says_where_its_figures_are_from():
    assert names() == ["gkey-flash", "hdd15k", "hdd5400", "pcie-ssd", "sata-ssd"]
    assert all(len(parameters(name).source) > 30 for name in names())


def test_a_name_that_is_not_there():
    with pytest.raises(ValueError, match="no drive floppy; there are gkey-flash, hdd15k"):
        parameters("floppy")


@pytest.mark.parametrize(
    ("name", "ms"),
    [("hdd5400", 14.78), ("hdd15k", 5.6), ("sata-ssd", 0.087), ("pcie-ssd", 0.032)],
)
def test_a_random_read(name, ms):
    assert mean_ms(name, random_reads(name)) == pytest.approx(ms, rel=0.03)


def test_the_average_seek_of_the_fast_disk_is_that_of_its_manual():
    done = replay(random_reads("hdd15k"), drive("hdd15k"))
    mean = disk_model.add_up(done.accesses, 2000)
    assert mean.seek_ms == pytest.approx(3.4, rel=0.05)
    assert mean.rotation_ms == pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize(("bytes_", "rate"), [(4096, 0.6), (65_536, 10.5)])
def test_the_flash_that_hates_small_writes(bytes_, rate):
    """The published 600 KB/s and 10.5 MB/s."""
    sectors = bytes_ // 512
    requests = [Request("write", n * sectors, sectors) for n in range(100)]
    assert bytes_ / mean_ms("gkey-flash", requests) / 1000 == pytest.approx(rate, rel=0.01)


def test_a_write_of_a_part_of_a_page_reads_it_first():
    ssd = drive("sata-ssd")
    assert isinstance(ssd, Flash)
    part, whole = ssd.service(0, 8, 1, "write"), ssd.service(0, 8, 8, "write")
    assert part.overhead_ms - whole.overhead_ms == pytest.approx(ssd.of.read_us / 1000)


def test_a_flush_costs_only_the_way_there():
    assert replay([Request("flush", 0, 0)], drive("sata-ssd")).total_ms == pytest.approx(0.02)


@pytest.mark.parametrize("name", ["hdd5400", "sata-ssd"])
@pytest.mark.parametrize("scale", [0, 0.01])
def test_the_account_behind_nbdkit_is_that_of_the_model(name, scale):
    """Whatever the host's clock says: the costs follow from when each request began."""
    if not shutil.which("nbdkit"):
        pytest.skip("nbdkit is not installed")
    requests, account, _ = nbd.read_through(name, scale, READS, seed=3)
    assert [request for request, _, _ in account] == requests
    model = drive(name)
    for request, start_ms, access in account:
        offline = disk_model.serve(model, start_ms, request)
        assert access == pytest.approx(offline, abs=2e-5)
    if scale == 0:
        total = sum(access.total_ms for _, _, access in account)
        assert total == pytest.approx(replay(requests, drive(name)).total_ms, abs=0.001)


def test_what_is_written_is_read_again(tmp_path: Path):
    """And a drive of another size than the model's is a smaller one of its kind."""
    if not shutil.which("nbdkit"):
        pytest.skip("nbdkit is not installed")
    image = tmp_path / "image"
    image.write_bytes(bytes(range(256)) * 64)
    with nbd.serving(image, "hdd5400") as address:
        words = ["-c", "write -P 7 512 1024", "-c", "read -P 7 512 1024"]
        done = subprocess.run(["qemu-io", "-f", "raw", *words, address], capture_output=True,
                              text=True, check=True)  # fmt: skip
        assert "wrote 1024" in done.stdout and "verification" not in done.stdout
        with pytest.raises(nbd.NbdError, match="qemu-io"):
            nbd.read_all(address, [Request("read", 31, 2)])
    assert image.read_bytes()[:2048] == bytes(range(256)) * 2 + b"\7" * 1024 + bytes(range(256)) * 2
    with pytest.raises(nbd.NbdError, match="no drive floppy"), nbd.serving(image, "floppy"):
        pass

"""The lab's images: sound file systems, the right mapping, a stamp where each read will look."""

from __future__ import annotations

import os
import re
import shutil
import struct

import pytest

from labs.storage import disks
from labs.storage.disks import DRIVES, DiskError, Experiment, image_path, make_disks
from labs.storage.workload import random_offsets
from labs.tools.machine.bounded import run_within

pytestmark = pytest.mark.slow

SECTOR = 512
BLOCK = 4096
SMALL = Experiment(scale=1000, reads=100, seed=7)
MASK = (1 << 64) - 1
RAW, POINTERS, EXTENTS = DRIVES
FILES = [POINTERS, EXTENTS]
OTHER_DEFAULTS = """
[defaults]
	base_features = ext_attr,uninit_bg
	inode_size = 128
	inode_ratio = 65536
	blocksize = 1024
[fs_types]
	ext3 = {
		features = sparse_super2
	}
	ext4 = {
		features = orphan_file,quota,metadata_csum_seed
	}
"""


@pytest.fixture(scope="module")
def tool(build):
    return build("build/host/lab-file")


@pytest.fixture(scope="module")
def made(tmp_path_factory, tool):
    """Images that no test changes, with their manifest."""
    directory = tmp_path_factory.mktemp("disks")
    return directory, make_disks(directory, SMALL, tool)


def by_name(drive):
    return drive.name


def run(*command):
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    done = run_within(
        command, capture_output=True, text=True, env=environment, seconds=60, check=False
    )
    return done.returncode, done.stdout + done.stderr


def debugfs(image, command):
    status, text = run("debugfs", "-R", command, str(image))
    assert status == 0, text
    return text


def splitmix(state, count):
    """The noise of a stamp, worked out a second time."""
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        yield z ^ (z >> 31)


def stamp(drive, lba, offset):
    letter = ord(drive.letter)
    noise = splitmix(letter << 56 | lba, 60)
    return b"PIOSTAMP" + struct.pack("<3Q60Q", letter, lba, offset, *noise)


def sector(directory, drive, lba):
    with image_path(directory, drive).open("rb") as image:
        image.seek(lba * SECTOR)
        return image.read(SECTOR)


def snapshot(directory):
    return {path.name: path.stat().st_mtime_ns for path in directory.iterdir()}


# --- the file systems ---


@pytest.mark.parametrize("drive", FILES, ids=by_name)
def test_file_system_is_clean(made, drive):
    status, text = run("e2fsck", "-fn", str(image_path(made[0], drive)))
    assert status == 0, text


@pytest.mark.parametrize("drive", FILES, ids=by_name)
def test_no_default_of_mke2fs_decides(tmp_path, tool, made, drive, monkeypatch):
    """With the features and sizes of another distribution's mke2fs.conf the drive is the same."""
    other = tmp_path / "mke2fs.conf"
    other.write_text(OTHER_DEFAULTS)
    monkeypatch.setenv("MKE2FS_CONFIG", str(other))
    make_disks(tmp_path / "disks", SMALL, tool)
    ours, theirs = (image_path(directory, drive) for directory in (made[0], tmp_path / "disks"))
    assert run("dumpe2fs", "-h", str(theirs)) == run("dumpe2fs", "-h", str(ours))
    assert debugfs(theirs, "stat /big") == debugfs(ours, "stat /big")


def test_all_three_drives_are_of_one_size(made):
    sizes = {image_path(made[0], drive).stat().st_size for drive in DRIVES}
    assert sizes == {SMALL.drive_bytes}
    assert SMALL.drive_bytes % BLOCK == 0


@pytest.mark.parametrize("drive", FILES, ids=by_name)
def test_file_fills_the_drive(made, drive):
    _, text = run("dumpe2fs", "-h", str(image_path(made[0], drive)))
    assert re.search(r"Free blocks:\s+0\n", text)


def test_pointer_blocks_are_as_debugfs_counts_them(made):
    directory, manifest = made
    sizes, text = manifest["files"]["hdc"], debugfs(image_path(directory, POINTERS), "stat /big")
    assert len(re.findall(r"\([DT]?IND\)", text)) == sizes["mapping_blocks"]
    assert f"TOTAL: {sizes['data_blocks'] + sizes['mapping_blocks']}\n" in text
    assert sizes["extents"] == 0


def test_extents_are_as_debugfs_counts_them(made):
    directory, manifest = made
    sizes, image = manifest["files"]["hdd"], image_path(directory, EXTENTS)
    assert len(re.findall(r"\(ETB\d\)", debugfs(image, "stat /big"))) == sizes["mapping_blocks"]
    leaves = [line for line in debugfs(image, "ex -l /big").splitlines()[1:] if "/" in line]
    assert len(leaves) == sizes["extents"]
    assert not any("Uninit" in line for line in leaves)


def test_each_pointer_block_lies_before_what_it_maps(made):
    text = debugfs(image_path(made[0], POINTERS), "stat /big")
    pairs = re.findall(r"\(IND\):(\d+), \(\d+(?:-\d+)?\):(\d+)", text)
    assert len(pairs) > 400
    apart = sum(int(data) != int(pointer) + 1 for pointer, data in pairs)
    assert apart <= 2  # at the end of a free run, the data goes on behind what mkfs put there


@pytest.mark.parametrize("drive", FILES, ids=by_name)
def test_a_given_size_is_kept_to_the_byte(tmp_path, tool, drive):
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(64 << 20)
    run(drive.mkfs, "-q", "-F", "-b", "1024", str(image))
    for size in (12 * 1024 + 1, 20_000_001):
        trial = shutil.copy(image, tmp_path / "trial")
        assert run(str(tool), "create", str(trial), str(size))[0] == 0
        assert re.search(rf"Size: {size}\n", debugfs(trial, "stat /big"))
        assert run("e2fsck", "-fn", str(trial))[0] == 0


def test_images_are_sparse(made):
    for drive in DRIVES:
        assert disks.real_bytes(image_path(made[0], drive)) < 20_000_000


# --- the stamps ---


@pytest.mark.parametrize("drive", DRIVES, ids=by_name)
def test_every_read_finds_its_stamp(made, tool, drive):
    directory, manifest = made
    reads = disks.expected_reads(directory, drive, SMALL, tool)
    size = manifest["files"][drive.name].get("bytes", SMALL.drive_bytes)
    assert [offset for offset, _ in reads] == list(random_offsets(SMALL.seed, size, SMALL.reads))
    for offset, lba in reads:
        assert sector(directory, drive, lba) == stamp(drive, lba, offset)


@pytest.mark.parametrize("drive", FILES, ids=by_name)
def test_stamps_lie_where_debugfs_says(made, tool, drive):
    directory, _ = made
    reads = disks.expected_reads(directory, drive, SMALL, tool)
    script = directory.parent / f"{directory.name}-{drive.name}.bmap"
    script.write_text("".join(f"bmap /big {offset // BLOCK}\n" for offset, _ in reads))
    status, text = run("debugfs", "-f", str(script), str(image_path(directory, drive)))
    assert status == 0, text
    blocks = [int(line) for line in text.splitlines() if line.isdecimal()]
    assert [lba // 8 for _, lba in reads] == blocks
    assert all(lba % 8 == offset // SECTOR % 8 for offset, lba in reads)


def test_raw_reads_lie_at_their_offset(made, tool):
    reads = disks.expected_reads(made[0], RAW, SMALL, tool)
    assert all(lba * SECTOR == offset for offset, lba in reads)


# --- what is done again, and what is not ---


def test_second_call_does_nothing(made, tool):
    directory, manifest = made
    before = snapshot(directory)
    assert make_disks(directory, SMALL, tool) == manifest
    assert make_disks(directory, Experiment(1000, 10, 7), tool) == manifest
    assert snapshot(directory) == before


def test_other_seed_adds_stamps(tmp_path, tool):
    other = Experiment(scale=5000, reads=20, seed=MASK)
    first = Experiment(scale=5000, reads=20, seed=1)
    files = make_disks(tmp_path, first, tool)["files"]
    manifest = make_disks(tmp_path, other, tool)
    assert manifest["files"] == files
    assert manifest["stamps"] == [{"seed": 1, "reads": 20}, {"seed": MASK, "reads": 20}]
    for experiment in (first, other):
        for drive in DRIVES:
            for offset, lba in disks.expected_reads(tmp_path, drive, experiment, tool):
                assert sector(tmp_path, drive, lba) == stamp(drive, lba, offset)


def test_other_scale_makes_other_images(tmp_path, tool):
    for scale in (10_000, 8000):
        experiment = Experiment(scale, 1, 1)
        make_disks(tmp_path, experiment, tool)
        assert image_path(tmp_path, RAW).stat().st_size == experiment.drive_bytes


def test_lost_image_is_made_again(tmp_path, tool):
    experiment = Experiment(10_000, 1, 1)
    make_disks(tmp_path, experiment, tool)
    image_path(tmp_path, POINTERS).unlink()
    make_disks(tmp_path, experiment, tool)
    assert run("e2fsck", "-fn", str(image_path(tmp_path, POINTERS)))[0] == 0


def test_same_parameters_give_the_same_bytes(tmp_path, tool):
    experiment = Experiment(10_000, 10, 3)
    for name in ("one", "two"):
        make_disks(tmp_path / name, experiment, tool)
    for drive in FILES:
        first, second = (image_path(tmp_path / name, drive) for name in ("one", "two"))
        assert run("cmp", str(first), str(second))[0] == 0


# --- what goes wrong ---


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--scale", "0"], "SCALE: '0' is not a whole number from 1 to 10000"),
        (["--reads", "many"], "READS: 'many' is not a whole number from 1 to"),
        (["--seed", "-1"], "SEED: '-1' is not a whole number from 0 to"),
        (["--speed", "1"], "unrecognized arguments: --speed"),
    ],
)
def test_bad_options_are_named_in_one_line(tmp_path, capsys, arguments, message):
    with pytest.raises(SystemExit) as ended:
        disks.main(["--directory", str(tmp_path), *arguments])
    lines = capsys.readouterr().err.splitlines()
    assert ended.value.code == 2 and len(lines) == 1 and message in lines[0]


def test_missing_tool_is_named(tmp_path, capsys):
    options = ["--directory", str(tmp_path / "new"), "--tool", str(tmp_path / "none")]
    assert disks.main(options) == 1
    assert "none is missing: `make build/host/lab-file`" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_missing_mkfs_is_named(tmp_path, tool, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda program, path: None)
    with pytest.raises(DiskError, match="mke2fs is missing: install e2fsprogs"):
        make_disks(tmp_path, SMALL, tool)


def test_full_host_disk_is_named_before_anything_is_made(tmp_path, tool, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=1_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(DiskError, match=r"need up to \d+ MB, and .* has 1 MB free"):
        make_disks(tmp_path, SMALL, tool)
    assert not list(tmp_path.iterdir())


def test_directory_that_is_a_file_is_named(tmp_path, tool):
    (tmp_path / "file").write_text("")
    with pytest.raises(DiskError, match="file: File exists"):
        make_disks(tmp_path / "file", SMALL, tool)


def test_half_made_images_are_removed(tmp_path, tool):
    broken = tmp_path / "lab-file"
    broken.write_text("#!/bin/sh\necho 'lab-file: hdc.img: No space left on device' >&2\nexit 1\n")
    broken.chmod(0o755)
    directory = tmp_path / "images"
    with pytest.raises(DiskError, match=r"^lab-file: hdc.img: No space left on device$"):
        make_disks(directory, SMALL, broken)
    assert not list(directory.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["create", "none"], "none: No such file or directory"),
        (["create", "empty"], "empty: "),
        (["stamp", "empty", "b", "1", "1"], "empty: smaller than a sector"),
        (["stamp", "empty", "x", "1", "1"], "drive is b, c or d, not x"),
        (["stamp", "empty", "b", "-1", "1"], "seed is not a number: -1"),
        (["stamp", "empty"], "usage: lab-file stamp IMAGE DRIVE SEED READS"),
    ],
)
def test_tool_names_the_cause(tmp_path, tool, monkeypatch, arguments, message):
    (tmp_path / "empty").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    status, text = run(str(tool), *arguments)
    assert status != 0 and message in text


def test_tool_refuses_a_second_file_and_a_file_that_does_not_fit(made, tmp_path, tool):
    image = image_path(made[0], POINTERS)
    assert "/big is there already" in run(str(tool), "create", str(image))[1]
    small = tmp_path / "small"
    with small.open("wb") as file:
        file.truncate(16 << 20)
    run("mkfs.ext4", "-q", "-F", str(small))
    assert "no free block is left" in run(str(tool), "create", str(small), "1000000000")[1]
    assert run("e2fsck", "-fn", str(small))[0] == 0

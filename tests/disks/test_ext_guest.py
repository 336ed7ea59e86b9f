"""ext2, ext3 and ext4 as the kernel reads them from an ATA drive; debugfs and the source judge."""

from __future__ import annotations

import os
import random
import re
import zlib

import pytest

from labs.storage import disks
from labs.tools.machine.qemu_command import DiskError, Drive
from tests.host.ext.images import (
    MIB,
    SEED,
    bmap,
    inode_offset,
    make_image,
    patch,
    run_tool,
    write_blocks,
)
from tests.host.test_ext_host import make_mapped

QUESTIONS_A_LINE = 25
SUPER = 1024


def fill(root, seed: int) -> dict[str, bytes]:
    """Files of many sizes, in two directories; returns their contents by path."""
    rng = random.Random(seed)
    (root / "deep" / "er").mkdir(parents=True)
    sizes = [0, 1, 511, 512, 513, 1024, 4095, 4096, 4097, 12 * 1024 + 1, 48 * 1024 + 1, 300_000]
    contents = {f"/f{size}": rng.randbytes(size) for size in sizes}
    contents |= {"/deep/er/file": rng.randbytes(5000), f"/{'n' * 255}": b"long name"}
    for path, data in contents.items():
        (root / path[1:]).write_bytes(data)
    os.symlink("deep/er/file", root / "link")
    return contents


@pytest.mark.parametrize("block", [1024, 2048, 4096])
@pytest.mark.parametrize("kind", ["ext2", "ext3", "ext4"])
def test_contents(guest, tmp_path, kind, block):
    """Every file of a plain mkfs image is read right, and the text of a link."""
    contents = fill(tmp_path / "root", SEED)
    image = make_image(tmp_path / "a.img", 32 * MIB, f"-t {kind} -b {block}", tmp_path / "root")
    contents["/link"] = b"deep/er/file"  # the link itself
    script = "; ".join(["mount hdb", "ls hdb /", *(f"sum hdb {path}" for path in contents)])
    serial = guest(script, drives=[Drive(image, 1)]).check().serial
    assert f"hdb: {kind}, {32 * MIB // block} blocks of {block} bytes" in serial
    for path, data in contents.items():
        assert f"crc32 {zlib.crc32(data):#010x}, {len(data)} bytes, {path}\n" in serial
    names = re.findall(r"^ +\d+ \d{6} +\d+ +\d+ (.+)$", serial, re.MULTILINE)
    assert {name[1:] for name in contents if name.count("/") == 1} < set(names)


@pytest.mark.parametrize("command", ["sum", "cat"])
def test_a_long_command_can_be_interrupted(guest_machine, tmp_path, command):
    """A file of 4 TB of holes: ^C ends the command, and the next one works."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root/small").write_bytes(b"text")
    with (tmp_path / "root/holes").open("wb") as file:
        file.truncate(4 << 40)
    image = make_image(tmp_path / "a.img", 32 * MIB, "-t ext4 -b 4096", tmp_path / "root")
    with guest_machine(None, drives=[Drive(image, 1)]) as machine:
        machine.expect("> ")
        machine.send(f"{command} hdb /holes")
        machine.send("\x03")
        machine.expect(r"\^C after \d+ bytes\s+/holes: EINTR")
        machine.send("sum hdb /small")
        machine.expect(f"crc32 {zlib.crc32(b'text'):#010x}, 4 bytes, /small")


def ask(guest, image, questions: list[tuple[str, int]], limit: float = 60) -> list[tuple]:
    """The kernel's answers to (path, logical block): (physical block, unwritten)."""
    lines = []
    for path in dict.fromkeys(path for path, _ in questions):
        blocks = [str(block) for asked, block in questions if asked == path]
        for start in range(0, len(blocks), QUESTIONS_A_LINE):
            lines.append(f"map hdb {path} " + " ".join(blocks[start : start + QUESTIONS_A_LINE]))
    script = "; ".join(lines)
    serial = guest(script, drives=[Drive(image, 1)], guest_limit=limit).check().serial
    answers = re.findall(r"^map (\d+) -> (\d+)( unwritten)?$", serial, re.MULTILINE)
    assert [int(logical) for logical, _, _ in answers] == [block for _, block in questions]
    return [(int(physical), bool(unwritten)) for _, physical, unwritten in answers]


@pytest.mark.parametrize("block", [1024, 2048, 4096])
@pytest.mark.parametrize("kind", ["ext2", "ext4"])
def test_map_equals_debugfs(guest, tmp_path, kind, block):
    """Holes, single blocks, runs, unwritten extents; trees three deep: 200 seeded blocks a case."""
    image, sizes = make_mapped(tmp_path, kind, block)
    rng = random.Random(SEED + 1)
    questions = [(path, rng.randrange(size)) for path, size in sizes.items() for _ in range(40)]
    assert len(questions) == 200
    assert ask(guest, image, questions) == bmap(image, questions)


@pytest.fixture(scope="session")
def lab_tool(build):
    """The program that makes the lab's big files."""
    return build("build/host/lab-file")


@pytest.mark.slow
@pytest.mark.parametrize("drive", disks.DRIVES[1:], ids=lambda drive: drive.name)
def test_map_of_a_file_of_gigabytes(guest, lab_tool, tmp_path, drive):
    """The lab's file at 1:100: 20 GB, through triple-indirect pointers or 149 extents."""
    experiment = disks.Experiment(scale=100, reads=10)
    disks.make_disks(tmp_path, experiment, lab_tool)
    image = disks.image_path(tmp_path, drive)
    rng = random.Random(SEED)
    questions = [("/big", rng.randrange(4_780_000)) for _ in range(300)]
    answers = ask(guest, image, questions)
    assert answers == bmap(image, questions)
    assert max(physical for physical, _ in answers) > 4_000_000


@pytest.mark.slow
def test_map_beyond_a_terabyte(guest, lab_tool, tmp_path):
    """The lab's ext4 drive at full size: 2 TB, sparse, extents two deep."""
    image = make_image(tmp_path / "a.img", disks.FULL_BYTES, "-t ext4 -b 4096 -J size=4")
    run_tool(str(lab_tool), "create", str(image))
    rng = random.Random(SEED)
    questions = [("/big", rng.randrange(480_000_000)) for _ in range(400)]
    answers = ask(guest, image, questions)
    assert answers == bmap(image, questions)
    assert sum(physical * 4096 > 1 << 40 for physical, _ in answers) > 100


def refused(guest, image) -> str:
    """What the kernel says when it must not mount an image; it goes on afterwards."""
    result = guest("mount hdb; memory", drives=[Drive(image, 1)])
    assert result.status == 1
    said = result.serial.split("> mount hdb\n")[1]
    assert "memory: " in said
    return said.split("> memory")[0]


DAMAGES = {
    "no magic number": (56, "<H", 0),
    "block count beyond the device": (4, "<I", 99_999_999),
    "unknown incompatible feature": (96, "<I", 0x2 | 1 << 27),
    "journal needs recovery": (96, "<I", 0x2 | 0x4),
    "no inodes a group": (40, "<I", 0),
    "block size of 16 TB": (24, "<I", 32),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_corrupt_superblock(guest, tmp_path, damage):
    """Each refusal names the drive and the cause."""
    image = make_image(tmp_path / "a.img", 4 * MIB, "-t ext3 -b 1024 -J size=1")
    offset, layout, value = DAMAGES[damage]
    patch(image, SUPER + offset, layout, value)
    said = refused(guest, image)
    words = {
        "no magic number": "magic",
        "block count beyond the device": "99999999",
        "unknown incompatible feature": "FEATURE_I27",
        "journal needs recovery": "e2fsck",
        "no inodes a group": "inodes",
        "block size of 16 TB": "block size",
    }[damage]
    assert "hdb: " in said
    assert words in said


def test_superblock_checksum(guest, tmp_path):
    """One flipped bit in a field that no other check looks at."""
    image = make_image(tmp_path / "a.img", 8 * MIB, "-t ext4 -b 1024")
    patch(image, SUPER + 120, "<B", 0x41)  # the label
    assert "checksum" in refused(guest, image)


def test_empty_drive(guest, tmp_path):
    image = tmp_path / "a.img"
    image.write_bytes(bytes(MIB))
    assert "magic" in refused(guest, image)


def test_bad_sector_under_metadata(guest, tmp_path):
    """A superblock that cannot be read is an error of the drive, and the next mount works."""
    contents = fill(tmp_path / "root", 3)
    good = make_image(tmp_path / "a.img", 8 * MIB, "-t ext4 -b 1024", tmp_path / "root")
    drives = [Drive(good, 1, errors=(DiskError("read", 2),)), Drive(good, 2)]
    result = guest("mount hdb; sum hdc /f4096", drives=drives)
    assert result.status == 1
    assert "hdb: read of 2 sectors at LBA 2 failed" in result.serial
    assert f"crc32 {zlib.crc32(contents['/f4096']):#010x}" in result.serial


def test_bad_sector_under_a_file(guest, tmp_path):
    """The read of the file says EIO; other files are read."""
    contents = fill(tmp_path / "root", 4)
    image = make_image(tmp_path / "a.img", 8 * MIB, "-t ext3 -b 1024 -J size=1", tmp_path / "root")
    ((block, _),) = bmap(image, [("/f300000", 100)])
    drive = Drive(image, 1, errors=(DiskError("read", block * 2 + 1),))
    result = guest("sum hdb /f300000; sum hdb /f4097; ls hdb /none", drives=[drive])
    assert "/f300000: EIO" in result.serial
    assert f"crc32 {zlib.crc32(contents['/f4097']):#010x}" in result.serial
    assert "/none: ENOENT" in result.serial


@pytest.mark.slow
def test_cache_is_as_large_as_memory_allows(guest, tmp_path):
    """2,200 pointer blocks, more than 8 MiB, asked for twice: each is read once."""
    root = tmp_path / "root"
    root.mkdir()
    places = [12 + 256 * number for number in range(2200)]  # each has a pointer block of its own
    write_blocks(root / "wide", 1024, places)
    image = make_image(tmp_path / "a.img", 32 * MIB, "-t ext2 -b 1024", root)
    lines = [
        "map hdb /wide " + " ".join(map(str, places[start : start + QUESTIONS_A_LINE]))
        for start in range(0, len(places), QUESTIONS_A_LINE)
    ]
    script = "; ".join([*lines, *lines, "cache"])
    lab = (("disk", "pio-polled"), ("cache", "50"))  # as `make lab` has them
    fields = {"drives": [Drive(image, 1)], "guest_limit": 200, "settings": lab}
    serial = guest(script, **fields).check().serial
    misses = int(re.search(r"cache: mapping \d+ hits (\d+) misses", serial)[1])
    above = 1 + 1 + 8  # the blocks of the trees' upper levels: 257 + 8 * 256 pointer blocks reach
    assert misses == len(places) + above


LISTED = re.compile(r"^ *(\d+) \d{6} +\d+ +\d+ (\w+)$", re.MULTILINE)
NAMED = re.compile(r"^ *(\d+) (\w+): (\w+)$", re.MULTILINE)


@pytest.mark.parametrize("count", [0, 1, 2, 20])
def test_ls_goes_on_after_damage(guest, tmp_path, count):
    """Each name of a directory is shown, whatever became of its inode; the command fails if one
    cannot be read."""
    root = tmp_path / "root"
    root.mkdir()
    names = [f"f{number}" for number in range(20)]
    for name in names:
        (root / name).write_text(name)
    image = make_image(tmp_path / "a.img", 4 * MIB, "-t ext2 -b 1024", root)
    damaged = names[:1] if count == 1 else names[20 - count :]
    for name in damaged:
        patch(image, inode_offset(image, f"/{name}"), "<H", 0)  # its type
    result = guest("ls hdb /", drives=[Drive(image, 1)])
    assert result.status == bool(damaged)
    assert sorted(name for _, name, _ in NAMED.findall(result.serial)) == sorted(damaged)
    assert {error for *_, error in NAMED.findall(result.serial)} == (
        {"EUCLEAN"} if count else set()
    )
    assert {name for _, name in LISTED.findall(result.serial)} == set(names) - set(damaged)


def test_ls_goes_on_after_a_bad_sector(guest, tmp_path):
    """The inodes in a block that cannot be read are named, and those of the other blocks listed."""
    root = tmp_path / "root"
    root.mkdir()
    names = {f"f{number}" for number in range(20)}
    for name in names:
        (root / name).write_text("")
    image = make_image(tmp_path / "a.img", 4 * MIB, "-t ext2 -b 1024 -I 128", root)
    blocks = {name: inode_offset(image, f"/{name}") // 1024 for name in names}
    bad = {name for name in names if blocks[name] == blocks["f7"]}
    drive = Drive(image, 1, errors=(DiskError("read", blocks["f7"] * 2),))
    result = guest("ls hdb /", drives=[drive])
    assert result.status == 1
    named = {(name, error) for _, name, error in NAMED.findall(result.serial)}
    assert named == {(name, "EIO") for name in bad}
    assert {name for _, name in LISTED.findall(result.serial)} == names - bad != set()

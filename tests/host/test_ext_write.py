"""The ext file system on the host, written to: contents against plain memory, e2fsck after each
run."""

from __future__ import annotations

import re
import shutil
import struct
import uuid
import zlib
from pathlib import Path

import pytest

from labs.tools.machine.bounded import run_within
from tests.host.ext.images import (
    ENVIRONMENT,
    INODE_BLOCK,
    MIB,
    debugfs,
    inode_offset,
    make_image,
    patch,
    peek,
    run_tool,
)
from tests.storage.journal import crc32c

pytest_plugins = ["tests.host.ext.fixtures"]

SECONDS = 600

VARIANTS = {
    **{f"ext2-{block}": f"-t ext2 -b {block}" for block in (1024, 2048, 4096)},
    **{
        f"{kind}-{block}": f"-t {kind} -b {block} -J size={block // 1024}"
        for kind in ("ext3", "ext4")
        for block in (1024, 2048, 4096)
    },
    "default": "-t ext4",
    "no-journal": "-t ext4 -b 1024 -O ^has_journal",
    "no-checksum": "-t ext4 -b 1024 -O ^metadata_csum -J size=1",
    "uninit-bg": "-t ext4 -b 1024 -O ^metadata_csum,uninit_bg -g 1024 -J size=1",
    "no-64bit": "-t ext4 -b 1024 -O ^64bit -g 1024 -J size=1",
    "no-flex-bg": "-t ext4 -b 1024 -O ^flex_bg -g 1024 -J size=1",
    "no-extents": "-t ext4 -b 1024 -O ^extents,^64bit -J size=1",
    "inode-128": "-t ext4 -b 1024 -I 128 -J size=1",
    "meta-bg": "-t ext4 -b 1024 -O meta_bg,^resize_inode -g 256 -J size=1",
    "sparse-super2": "-t ext4 -b 1024 -O sparse_super2,^resize_inode -g 1520 -J size=1",
    "checksum-seed": "-t ext4 -b 1024 -O metadata_csum_seed -J size=1",
    "orphan-file": "-t ext4 -b 1024 -O orphan_file -J size=1",
    "revision-0": "-t ext2 -b 1024 -r 0",
}


def make_files(image: Path, size: int, options: str, count: int) -> list[str]:
    """Makes an image with empty files. Returns their paths."""
    make_image(image, size, options)
    names = [f"f{number}" for number in range(count)]
    debugfs(image, (f"write /dev/null {name}" for name in names), write=True)
    return [f"/{name}" for name in names]


def dumped(image: Path, path: str) -> bytes:
    """The contents of a file, as e2fsprogs read them."""
    copy = image.with_suffix(".dump")
    debugfs(image, [f"dump {path} {copy}"])
    return copy.read_bytes()


def check_model(image: Path, lines: list[str]) -> dict[str, int]:
    """Compares the files with what the program's memory had at the end (model.c). Returns how often
    each result occurred."""
    modelled = [re.fullmatch(r"model (\d+) (\d+) (\S+)", line) for line in lines]
    found = [match.groups() for match in modelled if match]
    assert found
    for size, crc, path in found:
        contents = dumped(image, path)
        assert (len(contents), zlib.crc32(contents)) == (int(size), int(crc)), path
    results = next(line for line in lines if line.startswith("results")).split()[1:]
    return dict(zip(("done", "full", "other"), map(int, results), strict=True))


def stat_of(image: Path, path: str) -> str:
    return " ".join(debugfs(image, [f"stat {path}"]))


def extents_of(image: Path, path: str) -> int:
    """How many extents a file has, index nodes not counted."""
    lines = debugfs(image, [f"ex {path}"])
    return sum(bool(re.match(r"\s*(\d)/\s*\1\s", line)) for line in lines)


def super_field(image: Path, name: str) -> str:
    match = re.search(rf"^{name}:\s*(.*)$", run_tool("dumpe2fs", "-h", str(image)), re.M)
    return match[1] if match else ""


# ---- contents -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", (1, 2))
@pytest.mark.parametrize("variant", VARIANTS)
def test_random_changes(ext, tmp_path, variant, seed):
    image = tmp_path / "a.img"
    paths = make_files(image, 24 * MIB, VARIANTS[variant], 4)
    lines = ext.write(image, f"model {seed} 500 600000 {' '.join(paths)}")
    assert check_model(image, lines)["full"] == 0


@pytest.mark.parametrize("variant", ("ext3-2048", "ext4-1024"))
def test_random_changes_with_contents_in_the_journal(ext, tmp_path, variant):
    image = tmp_path / "a.img"
    paths = make_files(image, 24 * MIB, VARIANTS[variant], 4)
    model = f"model 4 200 300000 {' '.join(paths)}"
    check_model(image, ext.write(image, model, options=("data=journal",)))


def test_random_changes_over_several_mounts(ext, tmp_path):
    image = tmp_path / "a.img"
    paths = make_files(image, 16 * MIB, VARIANTS["ext4-1024"], 6)
    for number in range(0, 6, 2):
        pair = " ".join(paths[number : number + 2])
        lines = ext.write(image, f"model {number} 200 900000 {pair}", "again")
        check_model(image, lines)


@pytest.mark.parametrize("variant", ("ext4-1024", "no-journal", "ext3-1024"))
def test_a_full_disk_breaks_nothing(ext, tmp_path, variant):
    image = tmp_path / "a.img"
    size = 4 * MIB if variant == "no-journal" else 5 * MIB
    paths = make_files(image, size, f"{VARIANTS[variant]} -N 64 -m 0", 8)
    found = 0
    for seed in (1, 2):
        copy = Path(shutil.copy(image, tmp_path / "copy.img"))
        lines = ext.write(copy, f"model {seed} 600 4000000 {' '.join(paths)}")
        found += check_model(copy, lines)["full"]
    assert found > 0


@pytest.mark.parametrize("variant", ("ext3-1024", "ext4-1024", "no-extents"))
def test_the_last_free_block_is_not_enough(ext, tmp_path, variant):
    """A block of the map and one of contents are wanted; with one the write ends, too."""
    image = tmp_path / "a.img"
    few, big = make_files(image, 5 * MIB, f"{VARIANTS[variant]} -N 64 -m 0", 2)
    step, count = (2048, 4) if variant == "ext4-1024" else (1024, 12)  # what the inode has room for
    pieces = [f"write {few} {step * number} 1024 {number}" for number in range(count)]
    size = int(ext.write(image, *pieces, f"append {big} 6000000 1")[-1].split()[1])
    for left, answer in ((1, "error ENOSPC"), (2, "done 1024")):
        lines = ext.write(
            image,
            f"truncate {big} {size - left * 1024}",
            "sync",
            f"write {few} 20480 1024 7",
        )
        assert lines[-1] == answer


@pytest.mark.parametrize("variant", ("ext3-1024", "ext4-1024"))
def test_names_find_room_where_blocks_were_just_freed(ext, tmp_path, variant):
    """Freed blocks are free after the commit: a call that needs one does not fail before it."""
    image = tmp_path / "a.img"
    (big,) = make_files(image, 5 * MIB, f"{VARIANTS[variant]} -N 64 -m 0", 1)
    many = [f"/a/{'n' * 200}{number}" for number in range(4)]  # fill the block of a directory
    ext.write(image, "mkdir /a", "create /x", *(f"create {name}" for name in many))
    new = "m" * 200
    for call in (f"mkdir /{new}", f"symlink {new} /s", f"link /x /a/{new}", f"rename /x /a/{new}"):
        copy = Path(shutil.copy(image, tmp_path / "copy.img"))
        fill = (f"append {big} 6000000 1", "append /x 4096 2")
        lines = ext.write(copy, *fill, call, f"unlink {big}", call)
        assert lines[2::2] == ["error ENOSPC", "done 0"], call


@pytest.mark.parametrize("variant", ("ext2-1024", "ext4-1024"))
def test_a_remount_that_fails_can_be_read(ext, tmp_path, variant):
    """Each request of it fails once. Then the file is there; it can be written if nothing was lost,
    and the file system is as before the changes or after them."""
    image = tmp_path / "a.img"
    (path,) = make_files(image, 5 * MIB, VARIANTS[variant], 1)
    ext.write(image, f"write {path} 0 5000 3")
    change, read = f"append {path} 3000 4", f"read 0 2 {path}"
    turns = ["remount read-only", "remount read-write"]
    counted = ext.write(image, change, "requests", turns[0], "requests", turns[1], "requests")
    counts = [int(line.split()[1]) for line in counted[1:]]
    for turn, count in enumerate((counts[1] - counts[0], counts[2] - counts[1])):
        for number in range(count):
            copy = Path(shutil.copy(image, tmp_path / "copy.img"))
            commands = [
                *(change, *turns[:turn], f"fail {number}", *turns[turn:], turns[1]),
                *(read, change),
            ]
            lines = ext.start(copy, "write", text="".join(f"{line}\n" for line in commands))
            errors = [line for line in lines if line.startswith("error")]
            assert sum(line.startswith("read 2 ") for line in lines) == 1
            assert errors[0] in ("error EIO", "error EROFS")
            assert errors[1:] in ([], ["error EROFS"] * (3 - turn))
            if variant == "ext4-1024":
                run_tool("e2fsck", "-y", "-E", "journal_only", str(copy), allowed=(0, 1))
                run_tool("e2fsck", "-fn", str(copy))
            run_tool("e2fsck", "-fy", str(copy), allowed=(0, 1))


def test_a_deep_tree_of_extents(ext, tmp_path):
    image = tmp_path / "a.img"
    (path,) = make_files(image, 64 * MIB, VARIANTS["ext4-1024"], 1)
    assert ext.write(image, f"scatter 29989 2 {path}") == ["depth 3"]
    assert extents_of(image, path) == 29989
    ext.write(image, f"truncate {path} 20000000", f"truncate {path} 5000", f"append {path} 10 1")
    assert extents_of(image, path) == 3


def test_pointers_to_the_third_level(ext, tmp_path):
    image = tmp_path / "a.img"
    (path,) = make_files(image, 16 * MIB, VARIANTS["ext2-1024"], 1)
    ext.write(image, f"scatter 401 701 {path}")
    for number in (0, 100, 400):
        block = debugfs(image, [f"bmap {path} {number * 701}"])[0]
        assert int(block.split()[0]) > 0


@pytest.mark.parametrize(
    "options",
    ("-t ext4 -O ^large_file,^resize_inode,^huge_file", "-t ext2 -O ^large_file,^resize_inode"),
)
def test_files_beyond_4_gib(ext, tmp_path, options):
    image = tmp_path / "a.img"
    (path,) = make_files(image, 32 * MIB, f"{options} -b 4096", 1)
    assert "large_file" not in super_field(image, "Filesystem features")
    ext.write(image, f"scatter 5 400009 {path}")
    assert f"Size: {(4 * 400009 + 1) * 4096}" in stat_of(image, path)
    assert "large_file" in super_field(image, "Filesystem features")


def test_growing_files_stay_in_few_pieces(ext, tmp_path):
    image = tmp_path / "a.img"
    paths = make_files(image, 64 * MIB, VARIANTS["ext4-1024"], 4)
    ext.write(image, f"grow 300 3000 {' '.join(paths)}")
    for path in paths:
        assert extents_of(image, path) <= 12


def test_one_large_write_is_one_extent_a_group(ext, tmp_path):
    image = tmp_path / "a.img"
    (path,) = make_files(image, 64 * MIB, VARIANTS["ext4-4096"], 1)
    ext.write(image, f"grow 1 20000000 {path}")
    assert extents_of(image, path) <= 2


# ---- the superblock -----------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ("ext2-1024", "ext4-1024"))
def test_the_superblock_counts_mounts(ext, tmp_path, variant):
    image = tmp_path / "a.img"
    make_files(image, 8 * MIB, VARIANTS[variant], 1)
    before = int(super_field(image, "Mount count"))
    ext.write(image, "again")
    assert int(super_field(image, "Mount count")) == before + 2
    assert super_field(image, "Filesystem state") == "clean"
    assert "needs_recovery" not in super_field(image, "Filesystem features")
    assert "2010" in super_field(image, "Last mount time")


@pytest.mark.parametrize("variant", ("ext4-1024", "inode-128"))
def test_times_have_nanoseconds_where_there_is_room(ext, tmp_path, variant):
    image = tmp_path / "a.img"
    (path,) = make_files(image, 8 * MIB, VARIANTS[variant], 1)
    ext.write(image, f"grow 3 100 {path}")
    text = stat_of(image, path)
    assert re.search(r"mtime: 0x[0-9a-f]{8}:[0-9a-f]*[1-9a-f]", text) or variant == "inode-128"
    assert re.search(r"mtime: 0x4b3[0-9a-f]{5}", text)


REFUSED = {
    "bigalloc": ("-t ext4 -b 1024 -O bigalloc -C 16384", "unsupported feature bigalloc: read only"),
    "quota": ("-t ext4 -b 1024 -O quota", "unsupported feature quota: read only"),
    "mmp": ("-t ext4 -b 1024 -O mmp", "unsupported feature mmp: read only"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_written_says_why(ext, tmp_path, name):
    options, message = REFUSED[name]
    image = make_image(tmp_path / "a.img", 16 * MIB, options)
    lines = ext.start(image, "write")
    assert lines == [f"console hdc: {message}", "error EROFS"]


# ---- orphans ------------------------------------------------------------------------------------


def link_orphans(image: Path, first: int, rest: dict[int, int]) -> None:
    """Makes a list of orphans, as a power cut leaves it."""
    debugfs(image, [f"ssv last_orphan {first}"], write=True)
    debugfs(image, (f"sif <{number}> dtime {after}" for number, after in rest.items()), write=True)


@pytest.mark.parametrize("variant", ("ext2-1024", "ext3-1024", "ext4-1024", "ext4-4096"))
def test_orphans_of_the_last_session_are_released(ext, tmp_path, variant):
    image = tmp_path / "a.img"
    paths = make_files(image, 16 * MIB, VARIANTS[variant], 3)
    ext.write(image, f"grow 50 5000 {' '.join(paths)}")
    numbers = [int(re.search(r"Inode: (\d+)", stat_of(image, path))[1]) for path in paths]
    free = super_field(image, "Free blocks")
    debugfs(image, [f"unlink {paths[0]}", f"sif <{numbers[0]}> links_count 0"], write=True)
    debugfs(image, [f"sif <{numbers[1]}> size 10000"], write=True)
    link_orphans(image, numbers[0], {numbers[0]: numbers[1], numbers[1]: 0})
    lines = ext.write(image)
    assert "console hdc: 2 orphans of the last session were released" in lines
    assert int(super_field(image, "Free blocks")) > int(free)
    assert len(dumped(image, paths[1])) == 10000


def fill_orphan_file(image: Path, numbers: list[int], damage: int = 0) -> None:
    """Makes entries in the orphan file's first two blocks, as a power cut under Linux leaves them;
    `damage` is a change of the checksum."""
    inode = int(super_field(image, "Orphan file inode"))
    blocks = debugfs(image, [f"blocks <{inode}>"])[-1].split()
    seed = crc32c(0xFFFFFFFF, uuid.UUID(super_field(image, "Filesystem UUID")).bytes)
    seed = crc32c(seed, struct.pack("<II", inode, 0))
    for number, block in zip(numbers, map(int, blocks), strict=False):
        entries = struct.pack("<III", 0, number, 0).ljust(1024 - 8, b"\0")
        sum_ = crc32c(crc32c(seed, struct.pack("<Q", block)), entries) ^ damage
        patch(image, block * 1024, "1016s2I", entries, 0x0B10CA04, sum_)
    debugfs(image, ["feature orphan_present"], write=True)


@pytest.fixture
def image_with_orphans(ext, tmp_path):
    """An image with an orphan file: the inodes of one file without a name, and of one to be cut."""
    image = tmp_path / "a.img"
    paths = make_files(image, 16 * MIB, VARIANTS["orphan-file"], 3)
    ext.write(image, f"grow 50 5000 {' '.join(paths)}")
    numbers = [int(re.search(r"Inode: (\d+)", stat_of(image, path))[1]) for path in paths[:2]]
    debugfs(image, [f"unlink {paths[0]}", f"sif <{numbers[0]}> links_count 0"], write=True)
    debugfs(image, [f"sif <{numbers[1]}> size 10000"], write=True)
    return image, numbers, paths[1]


def test_orphans_in_the_orphan_file(ext, image_with_orphans):
    """e2fsck takes them for orphans, and so does our mount, with the same result."""
    image, numbers, path = image_with_orphans
    fill_orphan_file(image, numbers)
    judged = Path(shutil.copy(image, image.with_suffix(".judged")))
    said = run_tool("e2fsck", "-p", str(judged), allowed=(0, 1))
    assert "Clearing orphaned inode" in said and "Truncating orphaned inode" in said
    lines = ext.write(image)
    assert "console hdc: 2 orphans of the last session were released" in lines
    assert "orphan_present" not in super_field(image, "Filesystem features")
    assert super_field(image, "Free blocks") == super_field(judged, "Free blocks")
    assert len(dumped(image, path)) == 10000


@pytest.mark.parametrize(
    ("numbers", "damage", "message"),
    [
        ([12], 1, "wrong checksum"),
        ([5000000], 0, "inode 5000000, not"),
        ([12, 12], 0, "orphans"),
    ],
)
def test_a_damaged_orphan_file(ext, image_with_orphans, numbers, damage, message):
    image, found, _ = image_with_orphans
    numbers = [found[0] if number == 12 else number for number in numbers]
    fill_orphan_file(image, numbers, damage)
    lines = ext.start(image, "write", "errors=remount-ro")
    assert any(message in line for line in lines), lines


@pytest.mark.parametrize("first", (5000000, 13, 12))
def test_a_list_of_orphans_that_leads_nowhere(ext, tmp_path, first):
    """Beyond the last inode; to an inode that is not in use; in a circle, which is resolved."""
    image = tmp_path / "a.img"
    make_files(image, 8 * MIB, VARIANTS["ext4-1024"], 2)
    link_orphans(image, first, {12: 12, 13: 5000000})
    lines = ext.start(image, "write", "errors=remount-ro")
    assert any("orphans" in line for line in lines)
    assert super_field(image, "First orphan inode") == ""


# ---- what fails ---------------------------------------------------------------------------------


def replayed_and_clean(image: Path) -> str:
    """What e2fsck finds after a replay of the journal; nothing if the file system is clean."""
    run_tool("e2fsck", "-p", "-E", "journal_only", str(image), allowed=(0, 1, 2))
    done = run_within(
        ["e2fsck", "-fn", str(image)],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        seconds=SECONDS,
        check=False,
    )
    return "" if done.returncode == 0 else done.stdout


@pytest.mark.parametrize("count", (1, 1000000))
@pytest.mark.parametrize("variant", ("ext3-1024", "ext4-1024"))
def test_a_request_that_fails_leaves_a_valid_disk(ext, tmp_path, variant, count):
    image = tmp_path / "a.img"
    paths = " ".join(make_files(image, 12 * MIB, VARIANTS[variant], 3))
    for number in range(0, 260, 7):
        copy = Path(shutil.copy(image, tmp_path / "copy.img"))
        ext.start(copy, "write", text=f"fail {number} {count}\nmodel 3 60 300000 {paths}\n")
        assert replayed_and_clean(copy) == "", number


@pytest.mark.parametrize("variant", ("ext2-1024", "ext3-1024", "ext4-1024"))
def test_a_read_that_fails_changes_nothing_else(ext, tmp_path, variant):
    """Without a journal, too: what a change needs is read before anything is changed."""
    image = tmp_path / "a.img"
    paths = make_files(image, 12 * MIB, VARIANTS[variant], 3)
    ext.write(image, f"model 5 300 900000 {' '.join(paths)}")
    for number in range(2, 30):
        copy = Path(shutil.copy(image, tmp_path / "copy.img"))
        text = f"drop\nfail {number}\ntruncate {paths[0]} 3000\n"
        lines = ext.start(copy, "write", text=text)
        if variant != "ext2-1024" or lines[-1] != "error EIO":  # a write when it was unmounted
            assert replayed_and_clean(copy) == "", number


@pytest.mark.parametrize("behaviour", ("remount-ro", "continue", "panic"))
@pytest.mark.parametrize("variant", ("no-checksum", "ext4-1024"))
def test_a_damaged_bitmap_is_not_used(ext, tmp_path, variant, behaviour):
    image = tmp_path / "a.img"
    paths = make_files(image, 8 * MIB, VARIANTS[variant], 2)
    text = run_tool("dumpe2fs", str(image))
    bitmap = int(re.search(r"Block bitmap at (\d+)", text)[1])
    (byte,) = peek(image, bitmap * 1024 + 900, "B")
    patch(image, bitmap * 1024 + 900, "B", byte ^ 0x10)
    lines = ext.start(
        image,
        "write",
        f"errors={behaviour}",
        text=f"scatter 5 1 {paths[0]}\nscatter 5 1 {paths[1]}\n",
    )
    assert any("block bitmap: group 0" in line for line in lines)
    if behaviour == "panic":
        assert "panic hdc: the file system contradicts itself" in lines
        return
    assert ("console hdc: read-only from now on" in lines) == (behaviour == "remount-ro")
    assert super_field(image, "Filesystem state").startswith("clean with errors")
    assert int(super_field(image, "FS Error count")) > 0


def first_entry(image: Path, path: str) -> int:
    """Where the first entry of a file's map is in the image: a pointer, or an extent's block."""
    at = inode_offset(image, path) + INODE_BLOCK
    return at if peek(image, at, "<H")[0] != 0xF30A else at + 12 + 8


@pytest.mark.parametrize("change", ("write {} 0 1024 1", "truncate {} 0", "punch {} 0 5000"))
@pytest.mark.parametrize("variant", ("ext2-1024", "no-checksum", "no-flex-bg"))
def test_a_map_that_names_metadata_is_not_followed(ext, tmp_path, variant, change):
    """A file whose blocks are said to be an inode table: nothing is written there, or freed."""
    image = tmp_path / "a.img"
    options = VARIANTS[variant].replace("^flex_bg", "^flex_bg,^metadata_csum")
    (path,) = make_files(image, 8 * MIB, options, 1)
    ext.write(image, f"grow 5 1000 {path}")
    table = int(re.search(r"Inode table at (\d+)", run_tool("dumpe2fs", str(image)))[1])
    patch(image, first_entry(image, path), "<I", table)
    lines = ext.start(image, "write", "errors=remount-ro", text=change.format(path) + "\n")
    assert any("are the file system's own" in line for line in lines)
    assert "error EUCLEAN" in lines
    assert peek(image, table * 1024 + 256, "<H") != (0,)


def test_what_was_freed_in_many_groups(ext, tmp_path):
    """More groups than the open transaction can note (EXT_PENDING): the next change, whatever it
    is, commits first, and is not out of memory."""
    image = make_image(tmp_path / "a.img", 24 * MIB, "-t ext4 -b 1024 -g 256 -N 512 -J size=4")
    names = [f"/f{number}" for number in range(80)]
    made = [line for name in names for line in (f"create {name}", f"write {name} 0 204800 1")]
    for change in ("mkdir /d", f"symlink {'t' * 200} /s"):
        removed = [f"unlink {name}" for name in names]
        lines = ext.write(image, *made, "sync", *removed, change)
        assert not [line for line in lines if line.startswith("error")]

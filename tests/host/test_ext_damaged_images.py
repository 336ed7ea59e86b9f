"""Images with damage that is sound by itself, mounted for writing (tests/host/damage/images.py)."""

from __future__ import annotations

import random
import re

import pytest

from labs.tools.machine.bounded import run_within
from tests.disks.test_ext_write_guest import guest, programs  # noqa: F401 (fixtures)
from tests.host.damage.contents import NEWER
from tests.host.damage.halves import HALVES, fill_with_revokes
from tests.host.damage.images import SECONDS, Tried, try_image
from tests.host.damage.kinds import KINDS, Image, pristine
from tests.host.damage.outside import OUTSIDE
from tests.host.damage.sums import repair
from tests.host.damage.trees import MORE
from tests.host.damage.variants import FEATURES
from tests.host.damage.variants import VARIANTS as VARIANTS_OF_DAMAGE
from tests.host.ext.images import MIB, debugfs, make_image, patch, run_tool
from tests.host.test_ext_write import VARIANTS, make_files, stat_of

pytest_plugins = ["tests.host.ext.fixtures"]
SEED = 3000  # more: python -m tests.host.damage.images


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, *MORE, *OUTSIDE])
def test_each_kind_of_damage(ext, tmp_path, kind):
    """No crash, no report, an end; e2fsck finds what it found before, and keeps what it kept."""
    kinds = next(kinds for kinds in (KINDS, MORE, OUTSIDE) if kind in kinds)
    seed = SEED - SEED % len(kinds) + list(kinds).index(kind)
    judge(try_image(ext.program, tmp_path, seed, kinds))


@pytest.mark.slow
@pytest.mark.parametrize("kind", NEWER)
def test_each_kind_of_damage_of_newer_features(ext, tmp_path, kind):
    """The same, of file systems with other features and layouts."""
    seed = SEED - SEED % len(NEWER) + list(NEWER).index(kind)
    judge(try_image(ext.program, tmp_path, seed, NEWER, FEATURES))


@pytest.mark.slow
@pytest.mark.parametrize("variants", (VARIANTS_OF_DAMAGE, FEATURES), ids=("usual", "features"))
@pytest.mark.parametrize("kind", HALVES)
def test_each_kind_of_damage_of_what_is_mostly_zero(ext, tmp_path, kind, variants):
    """The same, of upper halves and of what few file systems have."""
    judge(try_image(ext.program, tmp_path, list(HALVES).index(kind), HALVES, variants))


def test_a_log_full_of_revokes_is_replayed(ext, tmp_path):
    """Half a million of them took minutes: each was looked for among hundreds."""
    image = tmp_path / "a.img"
    image.write_bytes(pristine("inodes-512"))
    state = Image(image, random.Random(1))
    fill_with_revokes(state, len(state.data), 1)
    repair(pristine("inodes-512"), state.data)
    state.save()
    done = run_within([str(ext.program), str(image), "write"], input=b"create /new\n",
                      capture_output=True, seconds=SECONDS, check=False)  # fmt: skip
    said = ["console hdc: 0 blocks were replayed from the journal", "done 0"]
    assert done.stdout.decode().splitlines() == said, done


def judge(tried: Tried) -> None:
    assert not tried.failure, (tried.name, tried.commands, tried.failure)
    assert not tried.new, (tried.name, tried.commands, tried.new)
    assert not tried.lost, (tried.name, tried.commands, tried.lost)


def test_directories_in_a_circle_and_slashes_after_names(guest, tmp_path):  # noqa: F811
    """Two directories that are each other's parent: a rename into one of them ends. And what open
    says of a name with a slash after it does not depend on the name."""
    (tmp_path / "root/A/sub").mkdir(parents=True)
    (tmp_path / "root/B").mkdir()
    (tmp_path / "root/f").touch()
    image = make_image(tmp_path / "a.img", 8 * MIB, "-t ext4", tmp_path / "root")
    circle = ["unlink /A/sub/..", "ln /B /A/sub/..", "unlink /B/..", "ln /A/sub /B/.."]
    debugfs(image, circle, write=True)
    long = "L" * 256
    said = guest(
        f"""mkdir /mnt; mount /dev/hdb /mnt; mkdir /mnt/d
        mv /mnt/d /mnt/B/ && ls /mnt/B; rmdir /mnt/B/d && echo gone
        for name in {long} {long}/ {long}/{long}/ new/ f/ f/x/ none/x/
        do true > /mnt/$name; done 2>&1 | sed 's/LL*/L/g'
        umount /mnt; echo the end""",
        image,
    )
    lines = [line.rpartition(": ")[2] for line in said.splitlines() if "/mnt/" in line]
    assert lines == [
        *("File name too long", "Is a directory", "File name too long", "Is a directory"),
        *("Is a directory", "nonexistent directory", "nonexistent directory"),
    ], said
    assert "d\ngone\n" in said and "the end" in said, said


def test_runs_outside_the_file_system_are_nobodys(ext, tmp_path):
    """What is written or freed is checked in one place: it may not leave the file system, nor be
    its own."""
    image = tmp_path / "a.img"
    make_files(image, 8 * MIB, VARIANTS["no-flex-bg"], 1)
    table = int(re.search(r"Inode table at (\d+)", run_tool("dumpe2fs", str(image)))[1])
    outside = ["0 1", "1 1", "8192 1", "8191 2", f"{1 << 32} 1", f"{(1 << 64) - 1} 2", "0 0"]
    own = ["2 1", f"{table} 1", f"{table - 1} 9"]
    wanted = ["outside the file system"] * 7 + ["the file system's own"] * 3
    for run, what in zip(outside + own, wanted, strict=True):
        said, error = ext.start(image, "write", "errors=continue", text=f"run {run}\n")
        first, count = run.split()
        assert said == f"console hdc: inode 12: {count} blocks from {first} on are {what}", run
        assert error == "error EUCLEAN"
    assert ext.start(image, "write", text="run 8100 92\n") == ["done 0"]


@pytest.mark.parametrize("number", (1, 2, 7, 8, 10, 4000, (1 << 32) - 1))
def test_reserved_inodes_are_no_orphans(ext, tmp_path, number):
    """Inode 1 has no links: it was freed. A mount drops such a list, and the rest stays."""
    image = tmp_path / "a.img"
    make_files(image, 8 * MIB, VARIANTS["ext3-1024"], 1)
    debugfs(image, [f"ssv last_orphan {number}"], write=True)
    lines = ext.start(image, "write", "errors=continue", text="create /new\n")
    what = f"list of orphans: inode {number}, not 11 to "
    assert lines[0].startswith(f"console hdc: {what}") and lines[1:] == ["done 0"], lines
    run_tool("e2fsck", "-fn", str(image))


@pytest.mark.parametrize("path", ("/short", "/lost+found"))
def test_what_has_a_name_and_is_no_file_is_no_orphan(ext, tmp_path, path):
    """The text of a short symbolic link was taken for numbers of blocks, which were freed."""
    image = tmp_path / "a.img"
    make_files(image, 8 * MIB, VARIANTS["ext3-1024"], 1)
    debugfs(image, ["symlink /short A/foo"], write=True)
    number = int(re.search(r"Inode: (\d+)", stat_of(image, path))[1])
    debugfs(image, [f"ssv last_orphan {number}"], write=True)
    lines = ext.start(image, "write", "errors=continue", text="create /new\n")
    what = f"console hdc: inode {number}: is in the list of orphans, and has "
    assert lines[0].startswith(what) and lines[1:] == ["done 0"], lines
    run_tool("e2fsck", "-fn", str(image))


def test_a_file_that_counts_fewer_blocks_than_it_has(ext, tmp_path):
    """None is left when one is gone, not 2^48 - 1."""
    image = make_image(tmp_path / "a.img", 4 * MIB, "-t ext4 -b 1024")
    ext.start(image, "write", text="create /f\nappend /f 5000 7\n")
    debugfs(image, ["sif /f blocks 2"], write=True)
    assert ext.start(image, "write", text="truncate /f 9\n") == ["done 0"]
    assert "Blockcount: 0" in stat_of(image, "/f")


@pytest.mark.parametrize(("at", "value"), ((28, 9), (29, 7), (30, 2), (32, 9)))
def test_names_of_a_tree_with_a_damaged_root(ext, tmp_path, at, value):
    """All are found and listed, from the blocks; but none is added. As on Linux."""
    many = tmp_path / "root/d"
    many.mkdir(parents=True)
    for number in range(300):
        (many / f"{number}").touch()
    image = make_image(tmp_path / "a.img", 4 * MIB, "-t ext2 -b 1024 -N 512", tmp_path / "root")
    run_tool("e2fsck", "-fDy", str(image), allowed=(0, 1))
    block = int(run_tool("debugfs", "-R", "bmap /d 0", str(image)))
    patch(image, block * 1024 + at, "B", value)
    work = "open /d/299\niterate /d 200\niterate /d 200\ncreate /d/n\n"
    lines = ext.start(image, "write", "errors=continue", text=work)
    names = {line.split()[3] for line in lines if line.startswith("name")}
    assert names == {".", "..", *map(str, range(300))} and lines[-1] == "error EUCLEAN", lines[-5:]
    assert any("hash tree" in line for line in lines)


@pytest.mark.parametrize("options", ("-t ext2", "-t ext4 -O ^metadata_csum"))
def test_what_could_not_be_made_is_no_file(ext, tmp_path, options):
    """A directory gets its inode, and then no block, and the file system is read-only from there:
    its inode stays an orphan, and is none in use that has no name."""
    image = make_image(tmp_path / "a.img", 4 * MIB, f"{options} -b 1024 -N 128")
    place = int(re.search(r"Block bitmap at (\d+)", run_tool("dumpe2fs", str(image)))[1])
    patch(image, place * 1024 + 500, "B", 1)
    lines = ext.start(image, "write", "errors=remount-ro", text="mkdir /d\n")
    assert lines[1:] == ["console hdc: read-only from now on", "error EUCLEAN"], lines
    said = run_tool("e2fsck", "-fy", str(image), allowed=(1,))
    assert "Unattached" not in said and "zero-length" not in said, said


@pytest.mark.parametrize(
    "options", ("-t ext2 -O ^dir_index", "-t ext4 -O ^dir_index,^metadata_csum")
)
def test_a_directory_that_is_longer_than_its_size(ext, tmp_path, options):
    """It would grow into a block that it has: the names in there would be lost."""
    many = tmp_path / "root/d"
    many.mkdir(parents=True)
    for number in range(100):
        (many / f"{number}").touch()
    image = make_image(tmp_path / "a.img", 4 * MIB, f"{options} -b 1024 -N 256", tmp_path / "root")
    debugfs(image, ["sif /d size 1024"], write=True)
    work = "".join(f"create /d/{'n' * 100}{number}\n" for number in range(12))
    lines = ext.start(image, "write", "errors=continue", text=work)
    assert "error EUCLEAN" in lines, lines
    assert re.search(
        r"console hdc: inode \d+: block 1 is new, and has a place", lines[0] + lines[-2]
    )
    run_tool("e2fsck", "-fy", str(image), allowed=(1,))
    names = run_tool("debugfs", "-R", "ls -p /d", str(image))
    assert all(f"/{number}/" in names for number in range(100))

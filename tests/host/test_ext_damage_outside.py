"""Damage whose numbers fit each other, mounted for writing: what is in order stays.

The kinds of damage are those of tests/host/damage/outside.py; here is what each of them has found.
"""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from tests.disks.test_ext_write_guest import guest, programs  # noqa: F401 (fixtures)
from tests.host.damage.images import kept
from tests.host.damage.kinds import SUPER, Image, pristine
from tests.host.damage.outside import EXTENT, flip, tables
from tests.host.damage.sums import repair
from tests.host.ext.images import MIB, debugfs, make_image, patch, run_tool

pytest_plugins = ["tests.host.ext.fixtures"]


def image_of(folder: Path, variant: str) -> Image:
    """A new image, to be damaged and saved."""
    path = folder / f"{variant}_0.img"
    path.write_bytes(pristine(variant))
    return Image(path, None)


def work(ext, image: Image, text: str) -> list[str]:
    return ext.start(image.path, "write", "errors=continue", text=text)


def files(count: int) -> str:
    """Commands that make files, which takes inodes and blocks."""
    return "".join(f"create /f{each}\nwrite /f{each} 0 20000 1\n" for each in range(count))


@pytest.mark.parametrize("variant", ("ext4", "checksums", "ext3"))
@pytest.mark.parametrize("which", ("table", "bitmap", "journal"))
def test_what_the_file_system_needs_itself_is_not_given_to_a_file(ext, tmp_path, variant, which):
    """The bitmap calls it free, and the counts say so, too: the group counts as full."""
    image = image_of(tmp_path, variant)
    own = tables(image, 0)
    blocks = {"table": own[2:], "bitmap": own[:2], "journal": image.map_of(8)[1:9]}[which]
    for block in blocks:
        flip(image, block)
    repair(pristine(variant), image.data)
    image.save()
    lines = work(ext, image, files(3) + "write /f0 0 9000000 1\n")
    said = [line for line in lines if "blocks of the file system itself are free" in line]
    assert len(said) == 1 and int(lines[-1].split()[1]) < 9000000, lines
    after = kept(ext.program, image.path)
    image.path.write_bytes(pristine(variant))
    assert after == kept(ext.program, image.path) != set()


@pytest.mark.parametrize("variant", ("ext3", "ext4", "checksums"))
def test_a_journal_where_something_else_is(ext, tmp_path, variant):
    """It would be written over the inodes: there is no mount."""
    image = image_of(tmp_path, variant)
    at = image.inode(8) + 0x28
    image.put(at + (20 if image.extents else 4), "I", tables(image, 0)[3])
    repair(pristine(variant), image.data)
    image.save()
    before = image.path.read_bytes()
    said, error = work(ext, image, "create /f\n")
    wrong = r"journal: (\d+ blocks from \d+ on are something else's|superblock: magic 0x00000000)"
    assert re.search(wrong, said), said
    assert error == "error EUCLEAN" and image.path.read_bytes() == before


@pytest.mark.parametrize("variant", ("ext3", "ext4"))
def test_the_blocks_of_the_journal_belong_to_no_file(ext, tmp_path, variant):
    """A file that has them, too, is neither written nor freed."""
    image = image_of(tmp_path, variant)
    at = image.inode(image.numbers["/solid"]) + 0x28
    image.put(at + (20 if image.extents else 0), "I", image.map_of(8)[20])
    image.save()
    lines = work(ext, image, "write /solid 0 100 1\nunlink /solid\n" + files(3))
    assert lines[1] == lines[3] == "error EUCLEAN", lines
    assert all("are the file system's own" in lines[each] for each in (0, 2)), lines
    assert lines[4:] == ["done 0", "done 20000"] * 3


@pytest.mark.parametrize("variant", ("ext4", "checksums", "ext3", "ext2"))
@pytest.mark.parametrize("field", (0, 4, 8))
def test_groups_that_share_a_table_are_not_written(ext, tmp_path, variant, field):
    """As on Linux. They can be read."""
    image = image_of(tmp_path, variant)
    image.put(image.group(1) + field, "I", image.get(image.group(2) + field, "I"))
    repair(pristine(variant), image.data)
    image.save()
    before = image.path.read_bytes()
    said, error = work(ext, image, "create /f\n")
    assert "group " in said and "something else's" in said and error == "error EUCLEAN", said
    assert image.path.read_bytes() == before
    assert ext.run(image.path, "read 0 3 /A/foo") == ["read 3 666f6f"]


@pytest.mark.parametrize("variant", ("ext4", "checksums", "ext3", "ext2"))
def test_an_inode_in_use_that_its_bitmap_calls_free(ext, tmp_path, variant):
    """It keeps its file; new ones go to other groups."""
    image = image_of(tmp_path, variant)
    number = image.numbers["/A/foo"]
    at = image.get(image.group(0) + 4, "I") * image.size + (number - 1) // 8
    image.put(at, "B", image.get(at, "B") & ~(1 << (number - 1) % 8))
    image.put(image.group(0) + 14, "H", image.get(image.group(0) + 14, "H") + 1)
    repair(pristine(variant), image.data)
    image.save()
    lines = work(ext, image, "create /A/new\ncreate /A/other\nread 0 3 /A/foo\n")
    assert lines[0].endswith(f"inode bitmap: group 0: inode {number} is free, but it has names")
    assert lines[1:] == ["done 0", "done 0", "read 3 666f6f"], lines


def test_inodes_at_the_end_of_a_table_that_was_used(ext, tmp_path):
    """The descriptor says that nobody ever used them; a new one zeroed the block of its
    neighbours."""
    image = image_of(tmp_path, "checksums")
    used = [each for each in range(12, 512) if image.get(image.inode(each) + 26, "H")]
    last, group = used[-1], (used[-1] - 1) // image.per_group
    assert last % 4 != 0, "the block of the next one has no other"
    image.put(image.group(group) + 28, "H", image.per_group)
    repair(pristine("checksums"), image.data)
    image.save()
    at = image.inode(last)
    before = image.data[at : at + image.inode_size]
    work(ext, image, files(30))
    assert Image(image.path, None).data[at : at + image.inode_size] == before


def test_a_group_with_the_root_was_used(ext, tmp_path):
    """Whatever its descriptor says."""
    image = image_of(tmp_path, "checksums")
    image.put(image.group(0) + 18, "H", 5)
    image.put(image.group(0) + 14, "H", image.per_group)
    image.put(image.group(0) + 28, "H", image.per_group)
    repair(pristine("checksums"), image.data)
    image.save()
    lines = work(ext, image, "create /A/new\nread 0 3 /A/foo\n")
    assert lines[0].endswith("inode bitmap: group 0: new, but it is on the disk")
    assert lines[1:] == ["done 0", "read 3 666f6f"]


def test_more_descriptors_than_the_group_has_blocks(ext, tmp_path):
    """A bitmap that was never written was made with bits far beyond its end."""
    image = image_of(tmp_path, "checksums-2k")
    image.put(SUPER + 0xCE, "H", 0xFFFF)
    for group in range(image.groups):
        at = image.group(group) + 18
        image.put(at, "H", image.get(at, "H") | 2)
    repair(pristine("checksums-2k"), image.data)
    image.save()
    assert "error" in "".join(work(ext, image, "room 100000\n" + files(2)))


@pytest.mark.parametrize("variant", ("ext4", "ext3", "ext2"))
def test_an_orphan_that_was_deleted_before(ext, tmp_path, variant):
    """Its map still has what is another file's now: nothing is freed."""
    image = image_of(tmp_path, variant)
    source, at = image.inode(image.numbers["/solid"]), image.inode(500)
    image.data[at : at + 128] = image.data[source : source + 128]
    image.put(at + 26, "H", 0)
    image.put(at + 20, "I", 0)
    image.put(SUPER + 0xE8, "I", 500)
    image.save()
    lines = work(ext, image, files(20) + "read 0 8 /solid\n")
    assert "group " in lines[0] and lines[0].endswith("inode 500 is free"), lines[0]
    assert lines[-1] == f"read 8 {b'solid!!!'.hex()}", lines[-1]
    assert "claimed" not in run_tool("e2fsck", "-fn", str(image.path), allowed=(0, 4))


@pytest.mark.parametrize("number", (1, 7, 8, 10))
def test_a_name_of_a_reserved_inode(ext, tmp_path, number):
    """Nobody opens the journal by it, or frees it."""
    image = image_of(tmp_path, "ext4")
    debugfs(image.path, [f"ln <{number}> /A/x1"], write=True)
    said = f"directory entry for reserved inode {number}"
    lines = work(ext, image, "write /A/x1 0 100 1\nunlink /A/x1\ncreate /A/n\n")
    assert [said in line for line in lines] == [True, False, True, False, False], lines
    assert lines[1::2] == ["error EUCLEAN"] * 2 and lines[4] == "done 0"


@pytest.mark.parametrize("target", ("/", "/A"))
def test_a_name_of_the_root_or_of_the_directory_itself(ext, tmp_path, target):
    """A walk through the tree would have no end."""
    image = image_of(tmp_path, "ext4")
    debugfs(image.path, [f"ln {target} /A/x1"], write=True)
    lines = work(ext, image, "create /A/x1/n\nrmdir /A/x1\ncreate /A/n\n")
    assert ["and has another name" in line for line in lines] == [1, 0, 1, 0, 0], lines
    assert lines[1::2] == ["error EUCLEAN"] * 2 and lines[4] == "done 0"


@pytest.mark.parametrize("long", ("", "-long" * 9))
def test_programs_that_walk_through_a_tree_with_circles_end(guest, tmp_path, long):  # noqa: F811
    """find and rm -r would go through 2^1000 paths before the first was too long. Long names are
    told apart, too, though their text is not kept."""
    name = f"A{long}"
    (tmp_path / f"root/{name}/sub/deep").mkdir(parents=True)
    (tmp_path / "root/B").mkdir()
    (tmp_path / f"root/{name}/f").touch()
    image = make_image(tmp_path / "a.img", 8 * MIB, "-t ext4", tmp_path / "root")
    places = ("self", "sub/up", "sub/again", "sub/deep/up", "../B/other")
    links = [f"ln /{name} /{name}/{place}{long}" for place in places]
    debugfs(image, [*links, f"ln / /{name}/sub/root"], write=True)
    said = guest(
        f"""mkdir /mnt; mount -o errors=continue /dev/hdb /mnt; cd /mnt; find {name} -type f
        rm -rf {name}; ls {name} {name}/sub; touch B/n && ls B; cd /; umount /mnt; echo the end""",
        image,
    )
    assert said.count("and has another name") > 3 and "the end" in said, said
    assert f"{name}/f\n" in said and "\nn\n" in said, said


@pytest.mark.parametrize("options", ("-t ext2", "-t ext4 -O ^metadata_csum"))
def test_a_short_link_that_says_it_is_long(ext, tmp_path, options):
    """Its text would be a map: block 353 is another file's. And no attribute makes it look like a
    link with blocks."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to("a\x01")
    (root / "file").write_bytes(b"file" * 250000)
    image = make_image(tmp_path / "a.img", 4 * MIB, f"{options} -b 1024 -N 64", root)
    debugfs(image, ["sif /link size 1000"], write=True)
    text = "setattr /link user.a 100 1\nunlink /link\ncreate /n\nwrite /n 0 900000 1\n"
    lines = ext.start(image, "write", "errors=continue", text=text)
    assert lines[1] == lines[3] == "error EUCLEAN" and lines[4] == "done 0", lines
    assert re.fullmatch(r"console hdc: inode \d+: size 1000", lines[0])
    run_tool("e2fsck", "-fy", str(image), allowed=(1,))
    done = run_tool("debugfs", "-R", "cat /file", str(image))
    assert done == "file" * 250000


def test_a_node_of_extents_that_is_a_table_of_inodes(ext, tmp_path):
    """As a table its checksum was right. As a node it was not looked at, and had 5,000 entries."""
    image = image_of(tmp_path, "checksums")
    number = 481  # the first one of its block
    at = image.inode(number)
    assert at % image.size == 0
    image.data[at : at + 28] = struct.pack("<HHIIIIIHH", 0o100644, 5000, 84, 0, 0, 0, 0, 0, 1)
    image.put(at + 128, "H", 32)
    group = image.group((number - 1) // image.per_group)
    image.put(group + 28, "H", 0)
    file = image.inode(image.numbers["/solid"]) + 0x28
    block = at // image.size
    image.data[file : file + 24] = struct.pack("<HHHHIIIHH", EXTENT, 1, 4, 1, 0, 0, block, 0, 0)
    repair(pristine("checksums"), image.data)
    image.save()
    lines = ext.run(image.path, f"inode {number}", "read 0 100 /solid")
    assert not lines[0].startswith(("error", "console")), lines
    assert "extent node in block" in lines[-2] and lines[-1] == "error EUCLEAN", lines


def test_a_node_that_is_free(ext, tmp_path):
    """It was given to the very map that it belongs to, and emptied while it was read."""
    image = image_of(tmp_path, "ext4")
    at = image.inode(image.numbers["/holes"]) + 0x28
    flip(image, image.get(at + 16, "I"))
    image.save()
    text = "".join(f"write /holes {1024 * each} 1024 1\n" for each in range(1, 400, 2))
    lines = work(ext, image, text)
    assert any(re.search(r"block \d+ was free, and is in use", line) for line in lines), lines
    assert "error EUCLEAN" in lines and lines[-1] == "done 1024"


def test_a_directory_of_holes(ext, tmp_path):
    """A name is looked for in some of them: a line for each would never end."""
    image = image_of(tmp_path, "ext2")
    patch(image.path, image.inode(image.numbers["/A"]) + 4, "<I", 8 * MIB)
    lines = work(ext, image, "create /A/n\ncreate /B/n\n")
    assert lines[-2:] == ["error EUCLEAN", "done 0"] and len(lines) < 40, len(lines)


@pytest.mark.parametrize("variant", ("ext3", "checksums"))
def test_counts_of_the_superblock(ext, tmp_path, variant):
    """They are those of the last unmount: after a power cut, too few or too many. As on Linux the
    descriptors' count."""
    image = image_of(tmp_path, variant)
    image.put(SUPER + 12, "I", 7)
    image.put(SUPER + 16, "I", 0)
    repair(pristine(variant), image.data)
    image.save()
    assert work(ext, image, files(5)) == ["done 0", "done 20000"] * 5
    run_tool("e2fsck", "-fn", str(image.path))

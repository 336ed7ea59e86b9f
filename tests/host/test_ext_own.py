"""What the file system has for itself, in every layout; and groups that say that they are new."""

from __future__ import annotations

import re

import pytest

from tests.host.damage.features import put_extents
from tests.host.damage.images import kept
from tests.host.damage.kinds import SUPER, Image, pristine
from tests.host.damage.outside import count, flip, tables
from tests.host.damage.sums import repair
from tests.host.test_ext_damage_outside import files, image_of, work

pytest_plugins = ["tests.host.ext.fixtures"]


def save(image: Image, variant: str) -> None:
    """With right checksums."""
    repair(pristine(variant), image.data)
    image.save()


def keeps_all(ext, image: Image, variant: str) -> bool:
    """Whether the files are there that nobody worked on."""
    after = kept(ext.program, image.path)
    image.path.write_bytes(pristine(variant))
    return after == kept(ext.program, image.path) != set()


@pytest.mark.parametrize("variant", ("flex-2", "packed", "flex-128", "meta-bg", "inodes-512"))
@pytest.mark.parametrize("field", (0, 4, 8))
def test_tables_of_groups_that_are_far_from_each_other(ext, tmp_path, variant, field):
    """With flex_bg only those of a few neighbours were compared."""
    image = image_of(tmp_path, variant)
    last = image.groups - 1
    image.put(image.group(last) + field, "I", tables(image, 0)[2 if field == 8 else field // 4])
    save(image, variant)
    before = image.path.read_bytes()
    said, error = work(ext, image, "create /f\n")
    assert f"group {last}: a bitmap or its inode table is something else's" in said, said
    assert error == "error EUCLEAN" and image.path.read_bytes() == before
    assert ext.run(image.path, "read 0 3 /A/foo") == ["read 3 666f6f"]


@pytest.mark.parametrize("variant", ("packed", "flex-128"))
def test_tables_of_all_groups_are_in_the_first(ext, tmp_path, variant):
    """Its bitmap calls those of the sixth free, and a file has one of their blocks, too."""
    image = image_of(tmp_path, variant)
    own = tables(image, 6)
    flip(image, own[2])
    put_extents(image, image.numbers["/solid"], [(0, 1, own[0])])
    save(image, variant)
    lines = work(ext, image, "unlink /solid\n" + files(3) + "write /f0 0 9000000 1\n")
    assert "are the file system's own" in lines[0] and lines[1] == "error EUCLEAN", lines
    said = [line for line in lines if "blocks of the file system itself are free" in line]
    assert len(said) == 1 and 0 < int(lines[-1].split()[1]) < 9000000, lines
    assert keeps_all(ext, image, variant)


@pytest.mark.parametrize("variant", ("ext4", "checksums", "orphan-file"))
def test_a_journal_whose_parts_are_in_one_place(ext, tmp_path, variant):
    """What it writes to its second half would be over its first: there is no mount."""
    image = image_of(tmp_path, variant)
    first = min(image.map_of(8))
    put_extents(image, 8, [(0, 512, first), (512, 512, first + 100)])
    save(image, variant)
    said, error = work(ext, image, "create /f\n")
    assert re.search(r"journal: 512 blocks from \d+ on are something else's", said), said
    assert error == "error EUCLEAN"


def call_unused(image: Image, group: int) -> None:
    """A group has the flag and the counts of one in which there was never an inode."""
    at = image.group(group)
    count(image, group, 14, image.per_group - image.get(at + 14, "H"))
    image.put(at + 18, "H", image.get(at + 18, "H") | 1)
    image.put(at + 16, "H", 0)
    image.put(at + 28, "H", image.per_group)


@pytest.mark.parametrize("variant", ("checksums", "orphan-file", "uninit-bg"))
@pytest.mark.parametrize("bitmap", ("known", "unknown"))
def test_a_group_with_files_that_says_that_it_has_no_inodes(ext, tmp_path, variant, bitmap):
    """Its bitmap is on the disk with its checksum, or, if that is gone, its table has inodes with
    theirs. Its first files were overwritten by the next ones."""
    image = image_of(tmp_path, variant)
    call_unused(image, 1)
    if bitmap == "unknown":
        image.put(image.group(1) + 0x1A, "H", 0)
    save(image, variant)
    lines = work(ext, image, files(70))
    (said,) = (line for line in lines if line.startswith("console"))
    is_known = bitmap == "known" and variant != "uninit-bg"
    wrong = "new, but it is on the disk" if is_known else r"inode \d+ is free, but it has names"
    assert re.fullmatch(f"console hdc: inode bitmap: group 1: {wrong}", said)
    assert "done 20000" in lines and keeps_all(ext, image, variant)


@pytest.mark.parametrize("variant", ("checksums", "orphan-file"))
def test_a_group_with_files_that_says_that_it_has_no_blocks(ext, tmp_path, variant):
    """All that its files have was given to others."""
    image = image_of(tmp_path, variant)
    end = max(max(tables(image, each)) for each in range(image.groups)) + 1
    free = image.get(SUPER + 32, "I") - (end - image.first)
    image.put(image.group(0) + 18, "H", image.get(image.group(0) + 18, "H") | 2)
    count(image, 0, 12, free - image.get(image.group(0) + 12, "H"))
    save(image, variant)
    lines = work(ext, image, files(3) + "write /f0 0 9000000 1\n")
    said = "console hdc: block bitmap: group 0: new, but it is on the disk"
    assert lines.count(said) == 1 and "done 20000" in lines, lines
    assert keeps_all(ext, image, variant)

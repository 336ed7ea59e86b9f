"""Exercise S4, for the graders: trees that grow and shrink, full disks, random changes."""

from __future__ import annotations

import re
from dataclasses import astuple
from itertools import islice, pairwise
from random import Random

import pytest

from labs.tools.machine.qemu_command import Drive
from tests.host.ext.images import MIB, debugfs, make_image
from tests.lesson3.support import with_files
from tests.lesson4.support import SAID, program
from tests.storage.trees import SPREAD, Run, changed
from tests.storage.writing import (
    KINDS,
    NAMES,
    NO_SPACE,
    ONE,
    Files,
    contents,
    difference,
    program_files,
    require_clean,
    require_files,
    require_orphans_only,
)
from tests.support.told import expect, fail, require

LEAF = 84  # extents in a node of 1 KiB
DRIVE = "tests/storage/user/drive.c"


@pytest.mark.exercise("S4", points=3, host=True)
@pytest.mark.parametrize("kind", KINDS)
def test_random_changes(lab, tmp_path, kind):
    """150 random changes of four files: contents and e2fsck are right after each commit."""
    random = Random(f"{lab.seed} {kind}")
    with Files(lab, tmp_path, KINDS[kind], 16 * MIB) as files:
        block = files.block
        for step in range(150):
            name = random.choice(NAMES)
            first = random.choice((random.randrange(200), random.randrange(2000)))
            what = random.choice(("write", "write", "write", "truncate", "punch", "allocate"))
            if what == "write":
                length = random.choice((1, block, random.randrange(1, 30 * block)))
                files.write(name, first * block // random.choice((1, 3)), length, seed=step)
            elif what == "truncate":
                files.truncate(name, random.randrange(first * block + 1))
            elif what == "punch":
                files.punch(name, first, random.randrange(1, 60))
            else:
                files.allocate(name, first, random.randrange(1, 60))
            if random.random() < 0.1:
                files.commit()
        files.run()
        files.require_results()


def alternate(files: Files, order: list[int]) -> None:
    """Every other block is written, in this order."""
    for step, number in enumerate(order):
        files.write("a", number * 2 * 1024, 1024, seed=number)
        if step % 50 == 49:
            files.commit()


@pytest.mark.exercise("S4", points=3, host=True)
@pytest.mark.parametrize("order", ["up", "down", "random"])
def test_splits(lab, tmp_path, order):
    """700 extents in any order: nodes are split on two levels."""
    numbers = list(range(700))
    if order == "down":
        numbers.reverse()
    elif order == "random":
        Random(lab.seed).shuffle(numbers)
    with Files(lab, tmp_path, ONE, 8 * MIB) as files:
        alternate(files, numbers)
        files.run()
        files.require_results()
        files.judge()
        seen = [(each.logical, each.length) for each in files.extents("a")]
        expect("extents of /a", seen, [(number * 2, 1) for number in range(700)])
        nodes = files.results[-1].sectors // 2 - 700
        most = -(-700 // LEAF) + 2 if order == "up" else 2 * (700 // LEAF) + 4
        if nodes > most:
            fail(f"nodes of /a, written {order}: expected at most {most}, seen {nodes}")


@pytest.mark.exercise("S4", points=2, host=True)
@pytest.mark.parametrize("longest", [2, 9, 20_000])
def test_small_nodes(lab, longest):
    """Nodes of six entries, 240 random changes: the map is right after each, each node has its
    checksum, and no two extents could be one. Blocks have up to 47 bits, and sometimes there is no
    room for a new node. A file that grows leaves nodes of five entries, inner ones, too."""
    tree = changed(lab, 240, longest, f"{longest}")
    require(tree.depth >= 3, f"the test's own fault: the tree is {tree.depth} levels deep")
    nodes, most = changed(lab, SPREAD, longest, f"{longest}", grows=True).nodes, 28 + 6 + 1
    if nodes > most:
        fail(f"{SPREAD} extents, one after the other: expected at most {most} nodes, seen {nodes}")


@pytest.mark.exercise("S4", points=1, host=True)
def test_nodes_are_near_their_file(lab, tmp_path):
    """Nodes of a file's tree: in the file's group while it has room."""
    with Files(lab, tmp_path, KINDS["ext4-small-groups"], 16 * MIB) as files:
        alternate(files, list(range(400)))
        files.run()
        files.require_results()
        (place,) = (line for line in debugfs(files.image, ["imap /a"]) if "block group" in line)
        group = int(re.search(r"block group (\d+)", place)[1])
        require(group > 0, f"the test wants a file outside the first group: {place}")
        nodes = files.nodes("a")
        require(len(nodes) > 4, f"nodes of /a: expected at least 5, seen {nodes}")
        far = [node for node in nodes if (node - 1) // 1024 != group]
        if far:
            fail(f"/a is in group {group}, which has room: nodes elsewhere: {far}")


@pytest.mark.exercise("S4", points=1, host=True)
def test_halves(lab, tmp_path):
    """A full leaf that gets one more entry: about half of its entries move to the new one."""
    place = Random(lab.seed).randrange(LEAF // 8, LEAF // 4)
    with Files(lab, tmp_path, ONE, 8 * MIB) as files:
        for number in range(LEAF):
            files.allocate("a", number * 3, 1)
        files.allocate("a", place * 3 + 1, 1)
        files.run()
        files.require_results()
        seen = files.leaves("a")
        expect("extents in the leaves of /a, together", sum(seen), LEAF + 1)
        if len(seen) != 2 or min(seen) < LEAF // 3:
            fail(f"extents in the leaves of /a: expected about {LEAF // 2} in each, seen {seen}")


@pytest.mark.exercise("S4", points=2, host=True)
def test_deep_splits(lab, tmp_path):
    """4,000 extents downwards: inner nodes are split, too; then all of them go."""
    with Files(lab, tmp_path, ONE, 16 * MIB) as files:
        for number in reversed(range(4000)):
            files.allocate("a", number * 2, 1)
        files.write("a", 7000 * 1024, 3000, seed=5)
        files.run()
        files.require_results()
        files.judge()
        expect("blocks of /a", sum(each.length for each in files.extents("a")), 4001)


@pytest.mark.exercise("S4", points=2, host=True)
def test_split_and_merge_again(lab, tmp_path):
    """Unwritten blocks that are written one by one: extents merge wherever they can."""
    with Files(lab, tmp_path, ONE, 8 * MIB) as files:
        files.allocate("a", 0, 400)
        order = list(range(400))
        Random(lab.seed).shuffle(order)
        for number in order:
            files.write("a", number * 1024, 1024, seed=3)
        files.run()
        files.require_results()
        expect("extents of /a", len({e.unwritten for e in files.extents("a")}), 1)
        expect("blocks of /a", sum(e.length for e in files.extents("a")), 400)
        seen = iter(Run(*astuple(each)) for each in files.extents("a"))
        for count in files.leaves("a"):
            leaf = [*islice(seen, count)]
            for one, other in pairwise(leaf):
                if other.continues(one):
                    fail(f"extents of /a: these are two, and could be one: {one}, {other}")


@pytest.mark.exercise("S4", points=2, host=True)
def test_nothing_is_left(lab, tmp_path):
    """A tree of hundreds of extents that is freed: no block is left."""
    with Files(lab, tmp_path, ONE, 8 * MIB) as files:
        alternate(files, list(range(300)))
        files.truncate("a", 300 * 1024 + 10)
        files.truncate("a", 0)
        files.run()
        files.require_results()
        expect("sectors of /a, cut to nothing", files.results[-1].sectors, 0)
        expect("extents of /a", files.extents("a"), [])


@pytest.mark.exercise("S4", points=2, host=True)
def test_longest_extents(lab, tmp_path):
    """36,864 unwritten blocks: no extent is longer than 32,767."""
    features = "-O ^has_journal,^resize_inode,sparse_super2 -E num_backup_sb=0"
    with Files(lab, tmp_path, f"{ONE} {features}", 96 * MIB) as files:
        for step in range(7):
            files.allocate("a", step * 4681, 4681)
        files.allocate("a", 32_767, 36_864 - 32_767)
        files.write("a", 36_863 * 1024, 1024)
        files.run()
        files.require_results()
        seen = files.extents("a")
        expect("blocks of /a", sum(each.length for each in seen), 36_864)
        if seen[0].length != 32_767:
            fail(f"extents of /a: expected 32767 unwritten blocks in the first one, seen {seen}")


@pytest.mark.exercise("S4", points=1, host=True)
def test_longest_written_extent(lab, tmp_path):
    """The last of 32,768 blocks goes and comes again: they are one extent."""
    features = "-O ^has_journal,^resize_inode,sparse_super2 -E num_backup_sb=0"
    data = contents(0, 32 * MIB, 1)
    with Files(lab, tmp_path, f"{ONE} {features}", 48 * MIB, {"a": data}) as files:
        files.punch("a", 32_767, 1)
        files.commit()
        files.write("a", 32_767 * 1024, 1024, seed=2)
        files.run()
        files.require_results()
        seen = [(each.logical, each.length) for each in files.extents("a")]
        expect("extents of /a", seen, [(0, 32_768)])


@pytest.mark.exercise("S4", points=3, host=True)
@pytest.mark.parametrize("extents", [4, LEAF])
def test_full_in_the_middle(lab, tmp_path, extents):
    """A full disk when a node is needed: an error, and everything is unchanged."""
    with Files(lab, tmp_path, f"{ONE} -m 0 -J size=1", 4 * MIB) as files:
        for number in range(extents):
            files.write("a", number * 8 * 1024, 4 * 1024, seed=number)
        files.commit()
        files.write("b", 0, 4 * MIB - 5, seed=9, known=False)
        files.write("b", 4 * MIB, 4 * MIB - 5, seed=9, known=False)
        files.punch("a", 1, 1)
        files.punch("a", 17, 2)
        before = len(files.changes)
        files.truncate("b", 0)
        files.commit()
        files.write("a", 2 * 1024, 1000, seed=77)
        files.model["a"][1024:2048] = contents(1024, 1024, 0)
        files.model["a"][17 * 1024 : 19 * 1024] = contents(17 * 1024, 2048, 2)
        results = files.run()
        expect("punch on a full disk: result", results[before - 2].result, NO_SPACE)
        expect("punch on a full disk: result", results[before - 1].result, NO_SPACE)
        sectors = results[extents - 1].sectors
        expect("sectors of /a after that", results[-1].sectors, sectors)


@pytest.mark.exercise("S4", points=2, host=True)
@pytest.mark.parametrize("kind", ["ext4-small-groups", "ext3-1k"])
def test_a_full_disk(lab, tmp_path, kind):
    """A full disk: every block can be used, the last write is short, and freed blocks can be used
    again."""
    with Files(lab, tmp_path, f"{KINDS[kind]} -m 0 -J size=1", 4 * MIB) as files:
        files.write("a", 0, 4 * MIB, seed=1, known=False)
        files.write("b", 0, 2000, seed=2, known=False)
        files.truncate("a", 1 * MIB)
        files.commit()
        files.write("c", 0, 1 * MIB, seed=3)
        results = files.run()
        first, second = results[0].result, results[1].result
        if not 2 * MIB < first < 4 * MIB:
            fail(f"write 4 MiB to a disk of 4 MiB: expected it to be cut, seen {first}")
        if second > 1024 or (second < 0 and second != NO_SPACE):
            fail(f"write to a full disk: expected {NO_SPACE}, seen {second}")
        files.model["a"][:] = contents(0, 1 * MIB, 1)
        files.model["b"][:] = contents(0, max(second, 0), 2)
        expect("write after something was freed: result", results[-1].result, 1 * MIB)


@pytest.mark.exercise("S4", points=2, host=True)
def test_two_files_grow(lab, tmp_path):
    """Two files that grow in turns by a block: both are in few pieces."""
    with Files(lab, tmp_path, ONE, 16 * MIB) as files:
        for number in range(200):
            files.write("a", number * 1024, 1024, seed=number)
            files.write("b", number * 1024, 1024, seed=number)
        files.run()
        files.require_results()
        for name in "ab":
            if len(files.extents(name)) > 12:
                fail(f"extents of /{name}: expected at most 12, seen {len(files.extents(name))}")


@pytest.mark.exercise("S4", points=1, host=True)
def test_from_the_goal_on(lab, tmp_path):
    """A file that cannot continue at its end: its next block is after it, not before."""
    with Files(lab, tmp_path, ONE, 8 * MIB) as files:
        for name, blocks in (("a", 60), ("b", 20), ("c", 1)):
            files.write(name, 0, blocks * 1024)
        files.truncate("a", 0)
        files.commit()
        files.write("b", 20 * 1024, 30 * 1024)
        files.run()
        files.require_results()
        first, *rest = files.extents("b")
        if not rest or any(each.physical < first.physical for each in rest):
            fail(f"blocks of /b: expected the later ones after {first}, seen {rest}")


@pytest.mark.exercise("S4", points=1, host=True)
def test_window_of_data(lab, tmp_path):
    """A node for a file's map: the file keeps its window of data blocks."""
    with Files(lab, tmp_path, ONE, 8 * MIB) as files:
        files.write("c", 0, 1024)
        for number in range(4):
            files.write("a", number * 2 * 1024, 1024)
        files.truncate("c", 0)
        files.commit()  # there is room for the node, not in the window
        files.write("a", 8 * 1024, 1024)
        files.write("b", 0, 1024)
        files.write("a", 9 * 1024, 1024)
        files.run()
        files.require_results()
        last = files.extents("a")[-1]
        expect("the last extent of /a: block, length", (last.logical, last.length), (8, 2))


@pytest.mark.exercise("S4", points=2, host=True)
@pytest.mark.parametrize("kind", KINDS)
def test_cuts(lab, tmp_path, kind):
    """Sizes around the ends of blocks: a file that grows again has zeros."""
    random = Random(lab.seed)
    with Files(lab, tmp_path, KINDS[kind], 16 * MIB) as files:
        block = files.block
        for step in range(12):
            files.write("a", 0, 40 * block, seed=step)
            size = random.randrange(30) * block + random.choice((0, 1, 511, 512, block - 1))
            files.truncate("a", size)
            files.truncate("b", size)
            files.write("b", size + 3 * block + 5, 10, seed=step)
            files.truncate("a", size + 7 * block)
        files.write("c", 0, 5 * block)
        files.truncate("c", 2 * block + 17)
        files.run()
        files.require_results()
        for index in range(1, len(files.changes), 5):
            size = files.results[index].size
            count = -(-size // block)
            least = count * block // 512
            extra = files.results[index].sectors - least
            if not 0 <= extra <= 2 * block // 512:
                fail(f"sectors of /a, {size} bytes: expected {least}, seen {least + extra}")


@pytest.mark.exercise("S4", points=1, host=True)
def test_times_of_a_cut(lab, tmp_path):
    """A file that is cut: its times of change and modification on the disk are new."""
    with Files(lab, tmp_path, ONE, 16 * MIB) as files:
        files.write("a", 0, 9000)
        files.run()
        before = times(files.image)
        files.again()
        for number in range(20):  # the clock of each session begins with the same time
            files.write("b", number, 1)
        files.truncate("a", 700)
        files.run()
        files.require_results()
        for name, old, new in zip(("ctime", "mtime"), before, times(files.image), strict=True):
            if old == new:
                fail(f"{name} of a file that was cut: expected another one than before, seen {new}")


def times(image) -> list[str]:
    """ctime and mtime of /a."""
    lines = debugfs(image, ["stat /a"])
    return [line.split()[1] for name in ("ctime:", "mtime:") for line in lines if name in line]


@pytest.mark.exercise("S4", points=2, host=True)
@pytest.mark.parametrize("kind", ["ext4-1k", "ext3-1k"])
def test_cuts_that_fail(lab, tmp_path, kind):
    """A request fails while a file is cut: an error, and the old size, or the file is in the orphan
    list, where e2fsck finishes it; on ext3 it has two names. A file without a name stays in that
    list. With the new size the inode has its new times."""
    size = 100 * 1024 + 300
    with Files(lab, tmp_path, KINDS[kind], 16 * MIB) as files:
        for number in range(300):
            files.write("a", 2 * 1024 * number, 1024, seed=number)
        files.run()
        image, whole = files.image.read_bytes(), bytes(files.model["a"])
        before = times(files.image)
        if kind == "ext3-1k":
            debugfs(files.image, ["ln /a /too", "sif /a links_count 2"], write=True)
        named = files.image.read_bytes()
        for number in range(14):
            files.again()
            files.image.write_bytes(named)
            files.fail(number)
            files.truncate("a", size)
            *_, cut = files.run(fails=True)
            where = f"{files.words[-1]}, and request {number} fails"
            orphans = require_orphans_only(files.image, where)
            seen, rest = files.read("a"), slice(size, 101 * 1024)  # perhaps already zeros
            is_cut = cut.size == size
            if cut.result == 0:  # the failure came later: what was not committed may be lost
                is_cut = len(seen) == size
            if is_cut or cut.result == 0:  # one that is listed may still have its old size
                expect(f"{where}: orphans", len(orphans), int(cut.result < 0))
            wanted = whole[:size] if is_cut else whole[:size] + seen[rest] + whole[rest.stop :]
            if seen != wanted:
                fail(f"{where}: /a {difference(seen, wanted)}")
            if is_cut and not set(before).isdisjoint(times(files.image)):
                fail(f"{where}: /a has its new size, and its old times: {before}")
            files.model["a"] = bytearray(seen)
            files.require_tails()
        files.again()
        files.image.write_bytes(image)
        files.remove("a", size)
        *_, cut = files.run()
        expect(f"{files.words[-1]}: result, size", (cut.result, cut.size), (0, size))
        orphans = require_orphans_only(files.image, files.words[-1])
        expect(f"{files.words[-1]}: orphans", len(orphans), 1)


@pytest.mark.exercise("S4", points=3)
@pytest.mark.parametrize("kind", ["ext4-4k", "ext3-1k"])
def test_programs_in_the_kernel(lab, tmp_path, kind):
    """A program that makes, cuts and removes a hundred files: e2fsck and contents are right."""
    seed = Random(lab.seed).randrange(1, 1000)
    (tmp_path / "empty").mkdir()
    options = KINDS[kind].replace("-N 64", "-N 512")
    image = make_image(tmp_path / "a.img", 16 * MIB, options, tmp_path / "empty")
    fields = with_files(lab, {"bin/drive": program(DRIVE)})
    drives = [Drive(image, 1, writable=True)]
    result = lab.run(f"run /bin/drive work 100 {seed}", drives=drives, guest_limit=120, **fields)
    said = dict(SAID.findall(result.check().serial.replace("\r", "")))
    for word in ("mount", "wrong", "umount"):
        expect(f"{word} of the program", said.get(word), "0")
    require_clean(image)
    require_files(image, program_files(100, seed))


@pytest.mark.exercise("S4", points=2, once=True)
def test_a_program_fills_the_drive(lab, tmp_path):
    """A program that writes until the drive is full: ENOSPC, and what was written is there."""
    (tmp_path / "empty").mkdir()
    image = make_image(tmp_path / "a.img", 4 * MIB, f"{ONE} -J size=1", tmp_path / "empty")
    fields = with_files(lab, {"bin/drive": program(DRIVE)})
    drives = [Drive(image, 1, writable=True)]
    result = lab.run("run /bin/drive fill", drives=drives, guest_limit=120, **fields)
    said = dict(SAID.findall(result.check().serial.replace("\r", "")))
    expect("the error of a write to a full drive", said.get("error"), str(NO_SPACE))
    expect("umount of the program", said.get("umount"), "0")
    require_clean(image)
    size = int(said.get("size", "0"))
    if size < 2 * MIB:
        fail(f"bytes written to a drive of 4 MiB: expected more than half of them, seen {size}")
    require_files(image, {"f000": contents(0, size, 0)})

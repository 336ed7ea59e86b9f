"""`make gdb`: the commands about the storage half, on the lab's kernel with an ext4 and an ext3."""

from __future__ import annotations

import re
from typing import Any

import pytest

from labs.tools.machine.qemu_command import Drive
from tests.host.ext.images import MIB, make_image, run_tool
from tests.support.gdb_guest import by_name, guest_probe, rows, shell

SCRIPT = """mkdir /mnt /old; mount -o data=journal /dev/hdb /mnt; mount -o ro,noatime /dev/hdc /old
cat /mnt/pieces /old/pieces > /dev/null; ls -l /mnt /old > /dev/null; readlink /mnt/link
mkdir /mnt/made; rmdir /mnt/made; echo some text > /mnt/new; chmod 640 /mnt/new
sync; poweroff -f
"""
LINK, PIECES, NEW = 12, 13, 14  # inodes: mke2fs takes the names in their order
PROBE = r"""
COMMANDS = ("buffers", "disk-inode 13 hdb", "extents 13 hdb", "journal hdb", "requests", "mounts")
run("tbreak block_register")
run("continue")
said["too early"] = [run(each) for each in COMMANDS]
run("break journal_commit_open if journal->changed > 3 && journal->revoked.count > 0")
run("continue")
run("delete")
for each in (*COMMANDS, "buffers 1000 dirty", "buffers 1000 held", "buffers 2 hdc", "journal",
             "journal hdc", "journal hdd", "requests hdd", "disk-inode 0 hdb", "buffers 1 hdx",
             "disk-inode 4000 hdb"):
    said[each] = run(each)
for number in (12, 13, 14):
    for drive in ("hdb", "hdc"):
        words = f"{number} {drive}"
        said[words] = run(f"disk-inode {words}"), run(f"extents {words}")

def broken_by(name, command, *changes):
    kept = []
    for place, value in changes:
        kept.append((place, int(gdb.parse_and_eval(f"(unsigned long long){place}"))))
        run(f"set var {place} = {value}")
    said[name] = run(command)
    for place, value in reversed(kept):
        run(f"set var {place} = {value}")

def word(block, at, drive="hdb", size=1024):  # a word of a cached block's data, as a place
    rows = [each.split() for each in run(f"buffers 9999 {drive}").splitlines()]
    data = next(row[-1] for row in rows if row[:3] == [drive, str(block), str(size)])
    return f"*(unsigned *)({data} + {at})"

run("set $journal = journal")
broken_by("circle", "buffers", ("'fs/cache/bcache.c'::lru.previous->previous->previous",
                                "'fs/cache/bcache.c'::lru.previous"))
broken_by("wild", "buffers", ("'fs/cache/bcache.c'::lru.previous", "(void *)0x12345678"))
broken_by("held", "journal hdb", ("$journal->held.next->next", "$journal->held.next"))
broken_by("head", "journal hdb", ("$journal->head", "77777777"))
broken_by("revoked", "journal hdb", ("$journal->revoked.count", "3"))
broken_by("aborted", "journal hdb", ("$journal->is_aborted", "1"))
leaf = int(said["extents 13 hdb"].split("block ")[1].split()[0])
broken_by("magic", "extents 13 hdb", (word(leaf, 0), "0x1234"))
broken_by("disorder", "extents 13 hdb", (word(leaf, 24), "0"))
broken_by("outside", "extents 13 hdb", (word(leaf, 20), "0x7fffffff"))
double = int(said["13 hdc"][1].split("double indirect, block ")[1].split()[0])
broken_by("loop", "extents 13 hdc", (word(double, 0, "hdc"), str(double)))
broken_by("far", "extents 13 hdc", (word(double, 8, "hdc"), "99999999"))
broken_by("gone", "extents 13 hdc", (word(double, 8, "hdc"), "9999"))
broken_by("mounts?", "mounts", ("disk_mounts->next->next", "disk_mounts"))
said["again"] = [run(each) for each in COMMANDS]
run("tbreak gather_batch")
run("continue")
said["queued"] = run("requests")
run("tbreak ata_transfer")
run("continue")
said["first transfer"] = run("requests hdb")
run("tbreak add_commit_block")
run("continue")
said["committing"] = run("journal hdb")
run("tbreak ata_transfer")
run("continue")
said["transfer"] = run("requests hdb")
run("tbreak flush_drive")
run("continue")
said["flush"] = run("requests hdb")
run("tbreak journal_abort")
run("continue")
said["off"] = run("where-am-i"), [run(each) for each in COMMANDS]
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A kernel that has read files of two disks, and is about to commit."""
    place = tmp_path_factory.mktemp("disks")
    (place / "root").mkdir()
    (place / "root/link").symlink_to("pieces")
    with (place / "root/pieces").open("wb") as file:  # every second block: an extent each
        for block in range(0, 320, 2):
            file.seek(block * 1024)
            file.write(b"x" * 1024)
    drives, maps = [], {}
    for unit, options in enumerate(("-t ext4 -b 1024", "-t ext3 -b 1024"), 1):
        image = make_image(place / f"{unit}.img", 16 * MIB, options, place / "root")
        if unit == 1:
            run_tool("debugfs", "-w", "-R", "fallocate /pieces 330 339", str(image))
        drives.append(Drive(image, unit))
        maps[drives[-1].name] = mapped(str(image))
    settings = shell(SCRIPT, disk="dma-polled")
    return guest_probe(place, PROBE, lesson="storage", drives=tuple(drives), **settings) | maps


def mapped(image: str) -> dict[int, int]:
    """Where the blocks of the file are, as debugfs knows it."""
    asked = "".join(f"bmap /pieces {block}\n" for block in range(340))
    said = run_tool("debugfs", "-f", "/dev/stdin", image, text=asked)
    found = re.findall(r"bmap /pieces (\d+)\n(\d+)", said)
    return {int(logical): int(physical) for logical, physical in found if int(physical)}


def drawn(text: str) -> dict[int, int]:
    """Where they are, by the tree that was drawn."""
    found: dict[int, int] = {}
    for first, last, at in re.findall(r"^ +(\d+)-(\d+) at (\d+)-", text, re.MULTILINE):
        found |= {block: int(at) + block - int(first) for block in range(int(first), int(last) + 1)}
    return found


def test_before_there_is_anything(seen):
    """What is missing is said, in a line."""
    buffers, inode, extents, journal, requests, mounts = seen["too early"]
    assert "0 of at most 0 buffers" in buffers and "rootfs" in mounts
    assert "no drives" in requests
    for answer in (inode, extents, journal):
        assert "no ext file system is mounted from hdb" in answer and "Traceback" not in answer


def test_buffers(seen):
    """The states of the cached blocks add up, and the transaction's are those that it names."""
    whole = rows(seen["buffers"])
    assert 1 < len(whole) <= 22
    held = [row[1] for row in rows(seen["buffers 1000 held"])[:-1]]
    assert sorted(held) == sorted(held_by(seen["journal hdb"])) and len(held) > 3
    assert all("held, dirty" in row for row in rows(seen["buffers 1000 dirty"])[:-1])
    assert {row[0] for row in rows(seen["buffers 2 hdc"])[:2]} == {"hdc"}
    assert re.search(r"\.\.\. and \d+ more\n\d+ of at most \d+ buffers: ", seen["buffers 2 hdc"])


def held_by(answer: str) -> list[str]:
    """The blocks of the open transaction."""
    return re.search(r"held: ([\d ]+)", answer)[1].split()


def test_mounts(seen):
    text = seen["mounts"]
    assert by_name(text.partition("hdc:")[0], "/mnt")[1:4] == ["/mnt", "ext4", "rw,data=journal"]
    assert by_name(text.partition("hdc:")[0], "/old")[1:4] == ["/old", "ext3", "ro,noatime"]
    assert re.search(
        "hdb: ext4, 16384 blocks of 1024 bytes, .* may be written, has a journal", text
    )
    assert re.search("hdc: ext3, .* read-only, no journal", text)


def test_journal(seen):
    """A directory was made and removed: its block is revoked. Nothing is in the log yet."""
    text = seen["journal hdb"]
    count = int(re.search(r"transaction 1 is open: (\d+) changed blocks", text)[1])
    assert len(held_by(text)) == count
    assert re.search(r"^  revoked: \d+$", text, re.MULTILINE)
    assert "the log is blocks 1 to 1023" in text and "needs none of the log" in text
    assert f"head {1 + count + 2}, tail 1: " in seen["committing"]
    assert "begins at block 1 with transaction 1" in seen["committing"]
    assert "hdc has no journal" in seen["journal hdc"]


def test_requests(seen):
    assert seen["requests"].count(": 0 requests have not ended, order c-look") == 2
    request = rows(seen["queued"].partition("hdc:")[0].partition("\n")[2])[0]
    assert request[1] == "write" and request[4:] == ["other", "hdb"]
    assert (
        f"write of {request[3]} sectors at LBA {int(request[2])}, 1 requests"
        in (seen["first transfer"])
    )
    assert "the drive works on: write of 2 sectors" in seen["transfer"]
    assert "the drive works on: flush" in seen["flush"]


@pytest.mark.parametrize("drive", ["hdb", "hdc"])
def test_maps_are_those_of_debugfs(seen, drive):
    """An extent tree of depth 1 with unwritten blocks, and pointers to the second level."""
    text = seen[f"{PIECES} {drive}"][1]
    assert drawn(text) == {int(logical): at for logical, at in seen[drive].items()}
    if drive == "hdb":
        assert "depth 1: 2 of 4 entries" in text and "10 blocks, unwritten" in text
    else:
        assert "single indirect, block" in text and "double indirect, block" in text


def test_inodes(seen):
    text = seen[f"{NEW} hdb"][0]
    assert "hdb inode 14: file, mode 0640, 1 links, owner 0, group 0" in text
    assert "size 10 bytes, 2 sectors" in text and "flags 0x80000 (extents)" in text
    assert len(re.findall(r"^\w+ +20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d{9}$", text, re.M)) == 4
    assert "hdc inode 14: not in use" in seen[f"{NEW} hdc"][0]
    assert "a short link to pieces" in seen[f"{LINK} hdc"][1]


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("journal", "which drive? Mounted are hdc, hdb"),
        ("journal hdd", "no ext file system is mounted from hdd"),
        ("requests hdd", "there is no drive hdd (there is: hdb, hdc)"),
        ("disk-inode 0 hdb", "hdb has inodes 1 to 4096"),
        ("buffers 1 hdx", "there is no drive hdx"),
        ("disk-inode 4000 hdb", "which is not cached"),
    ],
)
def test_what_is_not_there(seen, asked, answer):
    assert seen[asked].startswith("error: ") and answer in seen[asked]


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("circle", "the list is damaged: it comes back to 0x"),
        ("wild", "the list is damaged: it goes on at 0x12345678"),
        ("held", "the list is damaged: it comes back to 0x"),
        ("head", "head 77777777, 1023 blocks free: damaged"),
        ("revoked", "But 3 are counted."),
        ("aborted", "nothing is written any more"),
        ("magic", "damaged: magic 0x1234"),
        ("disorder", "damaged: entry 1 is out of order"),
        ("outside", "damaged, outside the file system"),
        ("loop", "it is in the tree already: damaged"),
        ("far", "block 99999999: outside the file system: damaged"),
        ("gone", "block 9999: not in the cache"),
        ("mounts?", "ext file systems: the list is damaged: it comes back to 0x"),
    ],
)
def test_damage_is_said_and_ends(seen, what, words):
    assert words in seen[what]


def test_damage_is_undone(seen):
    assert seen["again"] == [
        seen[each]
        for each in (
            "buffers",
            "disk-inode 13 hdb",
            "extents 13 hdb",
            "journal hdb",
            "requests",
            "mounts",
        )
    ]


def test_a_machine_that_has_ended(seen):
    """Memory is still there: everything is unmounted, and all requests have ended."""
    place, answers = seen["off"]
    assert "machine_exit" in place
    assert answers[0].startswith("0 of at most")
    assert all("no ext file system is mounted" in answer for answer in answers[1:4])
    assert "hdb: 0 requests" in answers[4] and "/mnt" not in answers[5]

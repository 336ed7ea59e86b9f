"""Programs write on ext2, ext3 and ext4 in the kernel of the storage lab; e2fsprogs judge.

After each test `e2fsck -fn` finds nothing, and what debugfs reads is what the guest wrote.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from labs.tools.guest.programs import COMMAND
from labs.tools.machine.machine import Machine, run
from labs.tools.machine.qemu_command import Config, DiskError, Drive
from labs.tools.machine.result import Outcome
from labs.tools.machine.run import machine_config, machine_options
from tests.host.ext.images import MIB, bmap, make_image, run_tool
from tests.support.building import make, mentioned, shared_folder

ROOT = Path(__file__).resolve().parents[2]
COMPILER = ("i686-linux-gnu-gcc", "-O1", "-static", "-no-pie")
GUEST_SECONDS, WALL_SECONDS = 120, 3600
KINDS = {
    "ext2-1k": "-t ext2 -b 1024",
    "ext3-1k": "-t ext3 -b 1024",
    "ext3-4k": "-t ext3 -b 4096",
    "ext4": "-t ext4",
    "ext4-2k": "-t ext4 -b 2048",
    "ext4-4k": "-t ext4 -b 4096",
}

TREE = """
mkdir -p tree/a/b/c tree/d
seq 1 20000 > tree/numbers
head -c 100000 tree/numbers > tree/a/part
cat tree/numbers tree/numbers tree/numbers tree/numbers > tree/a/b/long
for i in $(seq 1 60); do echo "contents of file $i" > tree/d/file-with-a-longer-name-$i; done
dd if=tree/numbers of=tree/sparse bs=1000 seek=3000 count=20 2>/dev/null
ln -s ../numbers tree/a/link
ln -s /a/very/long/target/that/does/not/fit/into/an/inode/of/a/disk/with/sixty/bytes tree/slow
ln tree/a/part tree/hard
chmod 640 tree/a/part
"""


@pytest.fixture(scope="session")
def programs(tmp_path_factory) -> Path:
    """The programs of tests/programs/disk, in a folder for the guest's root."""

    def fill(place: Path) -> None:
        for source in (ROOT / "tests/programs/disk").glob("*.c"):
            words = [*COMPILER, str(source), "-o", str(place / source.stem)]
            subprocess.run(words, check=True, capture_output=True, text=True)

    try:
        return shared_folder(tmp_path_factory, "disk-programs", fill)
    except FileNotFoundError:
        pytest.skip(f"there is no {COMPILER[0]} here")


@pytest.fixture
def guest(programs, tmp_path):
    """Runs a shell script in the lab's kernel with the image as hdb, `second` as hdc, and gives
    what it said; with `until` QEMU is killed when it has said that. A disk that is polled takes the
    guest no time of its own, so the limit is one of instructions."""
    make("LESSON=storage", "image-direct", "user-programs")

    def go(
        script: str,
        image: Path,
        *,
        second: Path | None = None,
        errors: Iterable[DiskError] = (),
        ends: bool = True,
        until: str = "",
        in_real_time: bool = False,
        memory: int = 64,
        settings: Mapping[str, str] = MappingProxyType({}),
    ) -> str:
        words = ["--boot", "direct", "--user", str(ROOT / "build/user/bin"), "--build"]
        words += [str(ROOT / "build/storage"), "--command", script]
        words += ["--programs", str(mentioned(programs, script))]
        words += ["--memory", str(memory)]
        config = machine_config(machine_options("test").parse_args(words))
        config = replace(
            config,
            drives=(
                Drive(image, 1, writable=True, errors=tuple(errors)),
                *([Drive(second, 2, writable=True)] if second else []),
            ),
            settings=tuple(
                {"cmd": f"/bin/sh /{COMMAND}", "disk": "dma-polled", **settings}.items()
            ),
            icount=None if in_real_time else Config.icount,
            guest_limit=WALL_SECONDS if in_real_time else GUEST_SECONDS,
            wall_limit=WALL_SECONDS,
        )
        if until:
            with Machine(config) as machine:
                said = machine.expect(f"(?s)from the host(.*){until}")
                return said[1].replace("\r", "")
        result = run(config)
        if ends:
            assert result.outcome is Outcome.ENDED and result.status == 0, result.explain()
        return result.serial.partition("from the host")[2].partition("\n")[2]

    return go


def check(image: Path) -> None:
    """The file system is as it should be."""
    run_tool("e2fsck", "-fn", str(image))


def dump(image: Path, place: Path) -> dict[str, str]:
    """What is on the image, read by debugfs: a sum of each file's contents, targets of links."""
    place.mkdir()
    run_tool("debugfs", "-R", f"rdump / {place}", str(image))
    found = {}
    for path in sorted(place.rglob("*")):
        name = str(path.relative_to(place))
        if path.is_symlink():
            found[name] = str(path.readlink())
        elif path.is_file():
            found[name] = hashlib.md5(path.read_bytes()).hexdigest()
    return found


def sums_of(said: str) -> dict[str, str]:
    """The lines of md5sum, by path."""
    return {
        path: value for value, path in re.findall(r"^([0-9a-f]{32})  (?:\./)?(.+)$", said, re.M)
    }


@pytest.mark.parametrize("kind", KINDS)
def test_busybox_works_on_it(guest, tmp_path, kind):
    """cp, tar, find, dd, mv, ln, rm on a plain image: what is left is right, for debugfs too."""
    (tmp_path / "root").mkdir()
    image = make_image(tmp_path / "a.img", 64 * MIB, KINDS[kind], tmp_path / "root")
    said = guest(
        f"""set -e; mkdir /mnt; mount /dev/hdb /mnt; cd /mnt
        {TREE}
        cp -a tree copy; tar cf tree.tar tree; mkdir out; tar xf tree.tar -C out
        mv copy/d moved; mv moved/file-with-a-longer-name-7 copy/; mv copy/numbers moved/
        rm -r out/tree/d/*1*; rmdir out/tree/a/b/c; mv out/tree/sparse out/tree/a/b/long
        find . -type f | sort | xargs md5sum; stat -c 'links %h' tree/hard
        cd /; umount /mnt; grep -c hdb /proc/mounts || echo unmounted""",
        image,
    )
    assert "links 2\n" in said and said.endswith("unmounted\n")
    check(image)
    there, sums = dump(image, tmp_path / "dump"), sums_of(said)
    assert len(sums) > 150
    assert {path: there.get(path) for path in sums} == sums
    assert there["tree/a/link"] == "../numbers"
    assert len(there["tree/slow"]) > 60


def test_a_read_only_mount_changes_nothing(guest, tmp_path):
    """Every change is refused with EROFS, and no byte of the image is another one."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root/file").write_text("text\n")
    image = make_image(tmp_path / "a.img", 32 * MIB, "-t ext4", tmp_path / "root")
    before = image.read_bytes()
    said = guest(
        """mkdir /mnt; mount -o ro /dev/hdb /mnt; cd /mnt; cat file
        for command in 'touch new' 'mkdir new' 'rm -f file' 'ln file new' 'ln -s x new' \
            'mv file new' 'chmod 600 file' 'chown 1 file' 'truncate -s 1 file' 'touch file'; do
            $command 2>&1 | grep -q 'Read-only file system' && echo refused || echo "not: $command"
        done
        echo x 2>/dev/null > file || echo refused
        cd /; umount /mnt""",
        image,
    )
    assert said.count("refused") == 11 and "not:" not in said, said
    assert image.read_bytes() == before


def test_remount_and_options(guest, tmp_path):
    (tmp_path / "root").mkdir()
    image = make_image(tmp_path / "a.img", 32 * MIB, "-t ext4", tmp_path / "root")
    said = guest(
        """mkdir /mnt; mount -o noatime,errors=remount-ro /dev/hdb /mnt; grep hdb /proc/mounts
        mount /dev/hdb /tmp 2>&1 | grep -o busy
        echo one > /mnt/file; exec 3>> /mnt/file; mount -o remount,ro /mnt 2>&1 | grep -o busy
        umount /mnt 2>&1 | grep -o busy; exec 3>&-
        mount -o remount,ro /mnt; grep hdb /proc/mounts; echo x > /mnt/no; cat /mnt/file
        mount -o remount,rw /mnt; echo two >> /mnt/file; cat /mnt/file
        mount -o remount,errors=continue,barrier=0 /mnt; grep hdb /proc/mounts
        mount -o remount,data=journal /mnt; grep hdb /proc/mounts; cat /mnt/file; umount /mnt
        mount -o nonsense=3 /dev/hdb /mnt; mount -t ext2 /dev/hdb /mnt
        umount /mnt; mount -t nothing /dev/hdb /mnt; mount -t ext4 /dev/null /mnt""",
        image,
        ends=False,
    )
    assert "/dev/hdb /mnt ext4 rw,noatime,errors=remount-ro 0 0" in said
    assert re.findall("[Bb]usy|busy", said.split("/dev/hdb /mnt ext4 ro")[0]) == ["busy"] * 3, said
    assert "/dev/hdb /mnt ext4 ro" in said and "Read-only file system" in said
    assert said.count("one\ntwo\n") == 2
    assert said.count("/dev/hdb /mnt ext4 rw,noatime,errors=continue,barrier=0 0 0\n") == 2, said
    assert "hdb: data= cannot change while it is mounted" in said
    assert "option nonsense=3 is not known" in said
    assert "Block device required" in said and "No such device" in said
    check(image)


def test_full_disk_and_inodes_in_memory(guest, tmp_path):
    """On a full disk, too, what is written over stays in memory for a while. Inodes that nobody
    uses go with drop_caches, and when memory is short."""
    source = tmp_path / "root"
    source.mkdir()
    (source / "old").write_bytes(bytes(400_000))
    for number in range(1500):
        (source / f"inode{number}").symlink_to("x")
    image = make_image(tmp_path / "a.img", 8 * MIB, "-t ext4 -b 1024 -N 2000", source)
    said = guest(
        """mkdir /mnt; mount -o noatime /dev/hdb /mnt; cd /mnt
        writes() { awk '$3 == "hdb" {print "writes", $8}' /proc/diskstats; }
        sizes='^kmalloc-(496|672|1008|1344) '
        inodes() { awk "/$sizes/"'{n += $2} END {print "inodes", n}' /proc/slabinfo; }
        dd if=/dev/zero of=fill bs=1k 2>&1 | grep -o 'No space'; sync; writes
        for i in $(seq 90); do
            echo x | dd of=old bs=1 seek=$((i * 4096)) conv=notrunc 2>/dev/null; done; writes
        sync; writes; echo 3 >/proc/sys/vm/drop_caches; inodes
        ls -l | wc -l; inodes; echo 2 >/proc/sys/vm/drop_caches; inodes
        ls -l . >/dev/null; inodes
        dd if=/dev/zero of=/dev/null bs=64M count=1 2>/dev/null; inodes
        cd /; umount /mnt""",
        image,
        memory=48,
    )
    full, overwritten, synced = map(int, re.findall(r"^writes (\d+)$", said, re.M))
    assert "No space" in said and overwritten - full < 20 and synced > overwritten
    assert "\n1504\n" in said  # a directory without a hash tree, longer than one call gives
    before, listed, dropped, again, short = map(int, re.findall(r"^inodes (\d+)$", said, re.M))
    assert listed > before + 1000 < again and dropped < before + 100 and short < before + 700
    check(image)


def test_two_tasks_mount_on_one_directory(guest, tmp_path):
    """Both at once: the later one covers the earlier, and both are unmounted again."""
    (tmp_path / "root").mkdir()
    images = [make_image(tmp_path / name, 4 * MIB, "-t ext4", tmp_path / "root") for name in "ab"]
    said = guest(
        """mkdir /mnt
        for i in 1 2 3; do
            mount /dev/hdb /mnt & mount /dev/hdc /mnt & wait
            grep -c /mnt /proc/mounts; touch /mnt/$i; umount /mnt; umount /mnt; ls /mnt | wc -l
        done; mount | grep -c /mnt""",
        images[0],
        second=images[1],
        ends=False,
        settings={"disk": "dma-interrupt"},
    )
    assert said == "2\n0\n" * 3 + "0\n", said
    for image in images:
        check(image)


def test_mount_does_not_trust_pointers(guest, tmp_path):
    """Each string of mount and umount2, in the kernel's memory or nowhere, is EFAULT."""
    (tmp_path / "root").mkdir()
    image = make_image(tmp_path / "a.img", 4 * MIB, "-t ext4", tmp_path / "root")
    said = guest("mkdir /mnt; /badmount; mount | grep -c /mnt", image, ends=False)
    assert said == "0 14\n1 14\n2 14\n4 14\numount 14\n" * 2 + "0\n", said
    check(image)


def test_unmounting_waits_for_sync(guest, tmp_path):
    """Another task is in the middle of a commit: unmount neither fails nor commits beside it."""
    (tmp_path / "root").mkdir()
    image = make_image(tmp_path / "a.img", 32 * MIB, "-t ext4", tmp_path / "root")
    said = guest(
        """mkdir /mnt
        for i in 1 2 3 4 5 6 7 8; do
            mount /dev/hdb /mnt && cp -r /bin/busybox /mnt/$i && mkdir /mnt/d$i
            sync & sync & umount /mnt || echo busy; wait
        done
        mount /dev/hdb /mnt; ls /mnt | wc -l; cmp /bin/busybox /mnt/8; umount /mnt""",
        image,
    )
    assert said == "17\n", said
    check(image)


@pytest.mark.parametrize("kind", ["ext3-1k", "ext4", "ext4-4k"])
def test_a_full_disk(guest, tmp_path, kind):
    """write says so, what was written is there, and room that comes back is used."""
    (tmp_path / "root").mkdir()
    image = make_image(tmp_path / "a.img", 16 * MIB, KINDS[kind], tmp_path / "root")
    said = guest(
        """mkdir /mnt; mount /dev/hdb /mnt; cd /mnt; echo kept > kept; mkdir small
        dd if=/dev/urandom of=large bs=64k 2>&1 | grep -o 'No space left on device'
        sync; md5sum large kept; df -k . | tail -1
        i=0; while echo file > small/$i 2>/dev/null; do i=$((i+1)); done; echo stopped
        rm large; sync; dd if=/dev/urandom of=again bs=64k count=100 2>/dev/null; md5sum again
        cd /; umount /mnt""",
        image,
    )
    assert "No space left on device" in said and "stopped" in said
    check(image)
    there, sums = dump(image, tmp_path / "dump"), sums_of(said)
    assert there["kept"] == sums["kept"] and there["again"] == sums["again"]
    assert (tmp_path / "dump/again").stat().st_size == 100 << 16


@pytest.mark.parametrize("kind", ["ext3-4k", "ext4"])
def test_a_hard_stop(guest, tmp_path, kind):
    """The machine stops with work in memory: after a replay all is whole, and what was synced is
    there."""
    (tmp_path / "root").mkdir()
    image = make_image(tmp_path / "a.img", 64 * MIB, KINDS[kind], tmp_path / "root")
    said = guest(
        f"""mkdir /mnt; mount /dev/hdb /mnt; cd /mnt
        {TREE}
        sync; find . -type f | sort | xargs md5sum; echo synced
        rm -r tree/a; cp -a tree copy; mv tree gone; echo a""ll; sleep 1000""",
        image,
        until="all\r?\n",
    )
    sums = sums_of(said.partition("synced")[0])
    assert len(sums) > 60
    run_tool("e2fsck", "-E", "journal_only", "-y", str(image))
    check(image)
    there = dump(image, tmp_path / "dump")
    kept = {path.split("/")[-1]: value for path, value in there.items()}
    for path, value in sums.items():
        if "/a/" not in path:
            assert kept.get(path.split("/")[-1]) == value, path


def test_a_bad_sector(guest, tmp_path):
    """A file's sector that cannot be read is an error of that file; the others are read."""
    (tmp_path / "root").mkdir()
    data = bytes(range(256)) * 1024
    for name in ("bad", "good"):
        (tmp_path / "root" / name).write_bytes(data)
    image = make_image(tmp_path / "a.img", 32 * MIB, "-t ext4 -b 4096", tmp_path / "root")
    sector = bmap(image, [("/bad", 20)])[0][0] * 8
    said = guest(
        """mkdir /mnt; mount /dev/hdb /mnt; cd /mnt
        cat bad 2>&1 > /dev/null | grep -o 'Input/output error'
        dd if=bad bs=4096 count=20 2>/dev/null | md5sum; md5sum good
        echo new > new; cat new; cd /; umount /mnt && echo unmounted""",
        image,
        errors=[DiskError("read", sector)],
    )
    assert "Input/output error" in said and "hdb" in said
    assert f"{hashlib.md5(data[: 20 * 4096]).hexdigest()}  -" in said
    assert f"{hashlib.md5(data).hexdigest()}  good" in said and said.endswith("unmounted\n")
    check(image)


def test_a_write_error_is_told_once(guest, tmp_path):
    """By the next fsync of each file that was open then, and by no other."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root/file").write_bytes(bytes(range(256)) * 256)
    image = make_image(tmp_path / "a.img", 32 * MIB, "-t ext4 -b 4096", tmp_path / "root")
    sector = bmap(image, [("/file", 0)])[0][0] * 8
    said = guest(
        "mkdir /mnt; mount /dev/hdb /mnt; /fsync_errors /mnt/file; umount /mnt && echo unmounted",
        image,
        errors=[DiskError("write", sector)],
    )
    lines = [line for line in said.splitlines() if not line.startswith("hdb")]
    error = "Input/output error"
    assert lines == [
        *("write: ok", f"one: {error}", "one again: ok", f"two: {error}", "two again: ok"),
        *("late: ok", "elsewhere: ok", "and safe: ok", "unmounted"),
    ]
    check(image)


@pytest.mark.parametrize("mode", ["dma-polled", "dma-interrupt"])
def test_several_processes(guest, tmp_path, mode):
    """Four at a time make, move and remove files in one directory, and append to one file. With
    interrupts tasks sleep in the middle of everything."""
    (tmp_path / "root").mkdir()
    image = make_image(tmp_path / "a.img", 64 * MIB, "-t ext4", tmp_path / "root")
    said = guest(
        """mkdir /mnt; mount /dev/hdb /mnt; cd /mnt; mkdir one two
        work() {
            for i in $(seq 1 40); do
                echo "$1 $i" >> log; seq 1 $((i * 50)) > one/$1-$i; mv one/$1-$i two/
                cp two/$1-$i one/$1-$i; rm two/$1-$i; mkdir one/d$i 2>/dev/null
            done
        }
        work a & work b & work c & work d & wait
        wc -l log; ls two | wc -l; ls one | wc -l; sync
        find . -type f | sort | xargs md5sum; cd /; umount /mnt""",
        image,
        settings={"disk": mode},
        in_real_time=mode == "dma-interrupt",
    )
    assert re.search(r"^160 log\n0\n200\n", said, re.M), said
    check(image)
    there, sums = dump(image, tmp_path / "dump"), sums_of(said)
    assert {path: there.get(path) for path in sums} == sums and len(sums) == 161


@pytest.mark.parametrize("kind", KINDS)
def test_all_ways_to_a_file_agree(guest, tmp_path, kind):
    """mmap, read, write, O_DIRECT, truncate and holes, at random, on one file."""
    (tmp_path / "root").mkdir()
    image = make_image(tmp_path / "a.img", 32 * MIB, KINDS[kind], tmp_path / "root")
    said = guest(
        "mkdir /mnt; mount /dev/hdb /mnt; for i in 1 2 3; do /agree /mnt/f$i $i 700; done; "
        "umount /mnt && echo unmounted",
        image,
    )
    assert said == "agree: ok\n" * 3 + "unmounted\n"
    check(image)


def test_pages_are_kept(guest, tmp_path):
    """A file that was read is read again without a request, until the caches are dropped."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root/file").write_bytes(bytes(range(256)) * 4096)
    image = make_image(tmp_path / "a.img", 32 * MIB, "-t ext4", tmp_path / "root")
    said = guest(
        """mkdir /mnt; mount -o ro /dev/hdb /mnt; cd /mnt
        count() { md5sum file > /dev/null; awk '$3 == "hdb" { print $4 }' /proc/diskstats; }
        count; count; echo 3 > /proc/sys/vm/drop_caches; count; cd /; umount /mnt""",
        image,
    )
    first, second, third = map(int, said.split())
    assert first == second and 16 <= third - second <= first


def test_root_on_a_disk(guest, tmp_path):
    """The kernel's / is on the image, and what is written is there at the next boot."""
    from labs.tools.guest.programs import busybox, guest_root
    from labs.tools.guest.root_image import make_root_image

    image = tmp_path / "root.img"
    make_root_image(image, guest_root(ROOT / "build/user/bin", busybox()))
    command = "cat /proc/mounts; cat /note; echo $$ >> /note"
    root = {"root": "/dev/hdb", "cmd": f"/bin/sh -c '{command}'"}
    first, second = (guest("", image, settings=root) for _ in range(2))
    assert "root: /dev/hdb\n/dev/hdb / ext4 rw 0 0\nnone /proc proc rw 0 0\n" in first
    assert "No such file" in first and re.search(r"ramfs rw 0 0\n\d+\n", second)
    check(image)


@pytest.mark.parametrize("kind", ["no file system", "blocks of 8 KiB"])
def test_root_that_cannot_be_used(guest, tmp_path, kind):
    """The machine ends with the cause, in words: no panic, and no program on another root."""
    image = tmp_path / "root.img"
    image.write_bytes(bytes(range(256)) * (MIB // 32))
    if kind != "no file system":
        run_tool("mke2fs", "-qF", "-t", "ext4", "-b", "8192", image)
    said = guest("echo other root", image, ends=False, settings={"root": "/dev/hdb"})
    assert said.endswith("root: /dev/hdb cannot be used: EINVAL\n")
    assert "panic" not in said and "other root" not in said

"""Debian's e2fsprogs inside the kernel of the storage lab, on a raw drive: dynamically linked, as
in the package. The same programs on this machine judge what they have made."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from labs.tools.guest.debian import ESSENTIAL, debian_root
from labs.tools.guest.package import PackageError
from labs.tools.guest.programs import COMMAND
from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import Drive
from labs.tools.machine.run import machine_config, machine_options
from tests.disks.test_ext_write_guest import check, dump, sums_of
from tests.host.ext.images import MIB, make_image, run_tool
from tests.support.building import make

Debian = Callable[..., str]


@pytest.fixture
def debian() -> Debian:
    """Runs a script with Debian's packages in the guest, and gives what it printed. The packages'
    programs come before busybox's; the image is hdb."""
    make("LESSON=storage", "image-direct", "user-programs")

    def go(script: str, image: Path, packages: str = "e2fsprogs") -> str:
        try:
            debian_root([*packages.split(), *ESSENTIAL])
        except PackageError as error:
            pytest.skip(f"no packages here: {error}")
        script = f"export PATH=/usr/sbin:/sbin:/usr/bin:/bin; mkdir /mnt; {script}"
        words = ["--boot", "direct", "--user", "build/user/bin", "--build", "build/storage"]
        words += ["--memory", "256", "--debian", packages, "--command", script]
        config = machine_config(machine_options("test").parse_args(words))
        settings = (*config.settings, ("cmd", f"/bin/sh /{COMMAND}"), ("disk", "dma-polled"))
        drives = (Drive(image, 1, writable=True),)
        limits = {"guest_limit": 600, "wall_limit": 1800}
        result = run(replace(config, settings=settings, drives=drives, **limits)).check()
        return result.serial.partition("from the host")[2].partition("\n")[2]

    return go


def features(said: str) -> list[str]:
    """What dumpe2fs has printed about the features, each time."""
    return re.findall(r"^Filesystem features: +(.*)$", said, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ext4 -b 4096", "ext2"])
def test_made_checked_and_used(debian, tmp_path, kind):
    """mke2fs, e2fsck and dumpe2fs on a drive, which is mounted and written in between."""
    image = tmp_path / "a.img"
    with image.open("wb") as file:
        file.truncate(48 * MIB)
    said = debian(
        f"""/sbin/mke2fs -q -t {kind} /dev/hdb; echo made $?; e2fsck -fn /dev/hdb; echo new $?
        mount -t {kind[:4]} /dev/hdb /mnt; mkdir /mnt/folder; seq 30000 >/mnt/folder/numbers
        cp -a /sbin /mnt/programs; cd /mnt; find . -type f | sort | xargs md5sum; cd /
        umount /mnt; e2fsck -fn /dev/hdb; echo used $?
        debugfs -R 'dump /folder/numbers /out' /dev/hdb; seq 30000 | cmp - /out && echo read
        tune2fs -L named /dev/hdb >/dev/null; e2label /dev/hdb
        dumpe2fs /dev/hdb""",
        image,
    )
    assert "made 0\n" in said and "new 0\n" in said and "used 0\n" in said, said
    assert "read\nnamed\n" in said.replace("debugfs 1.47.0 (5-Feb-2023)\n", ""), said
    check(image)
    there, sums = dump(image, tmp_path / "dump"), sums_of(said)
    assert len(sums) > 10 and {path: there.get(path) for path in sums} == sums
    of_host = run_tool("dumpe2fs", str(image))
    assert features(said) == features(of_host)
    groups = re.compile(r"^Group \d+:.*$|^  Free blocks: .*$", re.MULTILINE)
    assert groups.findall(said) == groups.findall(of_host)


@pytest.mark.slow
def test_a_mounted_drive_is_refused(debian, tmp_path):
    """mke2fs and e2fsck find out by O_EXCL, and then by /proc/mounts and the numbers of stat."""
    (tmp_path / "root").mkdir()
    image = make_image(tmp_path / "a.img", 32 * MIB, "-t ext4", tmp_path / "root")
    said = debian(
        """mount /dev/hdb /mnt; /sbin/mke2fs /dev/hdb </dev/null; echo made $?
        e2fsck -fy /dev/hdb </dev/null; echo checked $?; /sbin/mke2fs -F /dev/hdb; echo forced $?
        umount /mnt; e2fsck -fn /dev/hdb; echo checked $?""",
        image,
    )
    assert "/dev/hdb is mounted; will not make a filesystem here!\nmade 1" in said
    assert "/dev/hdb is mounted.\ne2fsck: Cannot continue, aborting.\n" in said
    assert "checked 8\n" in said and "forced 1\n" in said
    assert said.count("/dev/hdb is mounted") == 3 and said.endswith("checked 0\n")
    check(image)


@pytest.mark.slow
def test_a_damaged_file_system_is_repaired(debian, tmp_path):
    """What debugfs has damaged here, e2fsck repairs there; what is mounted afterwards is whole."""
    (tmp_path / "root").mkdir()
    for i in range(40):
        (tmp_path / "root" / f"file{i}").write_text(f"contents {i}\n" * 200)
    image = make_image(tmp_path / "a.img", 32 * MIB, "-t ext4", tmp_path / "root")
    for request in ("clri file3", "freeb 1200 30", "sif file4 links_count 7", "ssv free_blocks 3"):
        run_tool("debugfs", "-w", "-R", request, str(image))
    said = debian(
        """e2fsck -fn /dev/hdb >/dev/null; echo before $?; e2fsck -fy /dev/hdb | tail -1
        e2fsck -fn /dev/hdb; echo after $?
        mount /dev/hdb /mnt; cat /mnt/file?* | wc -l; umount /mnt""",
        image,
    )
    assert "before 4\n" in said and "after 0\n" in said and said.endswith(f"{39 * 200}\n"), said
    check(image)


@pytest.mark.slow
def test_a_drive_of_more_than_4_gib(debian, tmp_path):
    """Offsets beyond 32 bits, of the drive and of a file on it."""
    image = tmp_path / "a.img"
    with image.open("wb") as file:
        file.truncate(9 << 30)
    said = debian(
        """/sbin/mke2fs -q -t ext4 -N 4096 /dev/hdb; echo made $?; mount /dev/hdb /mnt
        echo far | dd of=/mnt/far bs=1M seek=8000 2>/dev/null; umount /mnt
        e2fsck -fn /dev/hdb; echo used $?; blocks() { dumpe2fs -h /dev/hdb | grep 'Block count'; }
        blocks 2>/dev/null
        echo end | dd of=/dev/hdb bs=1 seek=9663676412 conv=notrunc 2>/dev/null
        tail -c 4 /dev/hdb; debugfs -R 'stat far' /dev/hdb | grep -o 'Size: 8388608004'""",
        image,
    )
    assert "made 0\n" in said and "used 0\n" in said and "\nend\n" in said, said
    assert said.endswith("Size: 8388608004\n"), said
    assert re.search(r"Block count: +2359296\n", said)
    check(image)


@pytest.mark.slow
def test_flags_and_extents_are_told(debian, tmp_path):
    """lsattr, chattr and filefrag on a mounted drive, with the words that they have on Linux; and
    debugfs finds the extents where filefrag has said."""
    image = tmp_path / "a.img"
    with image.open("wb") as file:
        file.truncate(16 * MIB)
    said = debian(
        """/sbin/mke2fs -q -t ext4 -b 1024 /dev/hdb; mount /dev/hdb /mnt; cd /mnt; mkdir d
        seq 100000 >n; echo one >a; truncate -s 1M s; echo end >>s; fallocate -l 64k p
        chattr() { /usr/bin/chattr "$@"; }; lsattr() { /usr/bin/lsattr "$@"; }
        chattr +i a; (echo no >>a; rm -f a; ln a z) 2>/dev/null; lsattr a; chattr -i a; echo two >>a
        chattr +a n; (echo no >n; rm -f n) 2>/dev/null; echo more >>n; lsattr n; chattr -a n
        chattr +dD d; chattr +A p; lsattr -R . | sort; chattr +j a; lsattr /etc/passwd; echo $?
        sync; filefrag n a; filefrag -v s p n; filefrag /etc/passwd; echo $?
        cat a; tail -n 2 n; cd /; umount /mnt""",
        image,
    )
    lines = [line for line in said.splitlines() if line]
    assert lines[:2] == ["----i---------e------- a", "-----a--------e------- n"], said
    assert [line for line in lines[2:10] if "/d" in line or "/p" in line] == [
        "-------A------e------- ./p",
        "---D--d-------e------- ./d",
        "./d:",
    ], said
    for words in (
        "/usr/bin/chattr: Operation not supported while setting flags on a\n"
        "/usr/bin/lsattr: Operation not supported While reading flags on /etc/passwd\n1\n"
        "n: 1 extent found\na: 1 extent found\n",
        "/etc/passwd: FIBMAP/FIEMAP unsupported\n25\none\ntwo\n100000\nmore\n",
        "last,unwritten,eof\np: 1 extent found\n",
    ):
        assert words in said, said
    check(image)
    told = re.findall(r"^ +0: +(\d+)\.\. +\d+: +(\d+)\.\. +(\d+): ", said, re.MULTILINE)
    assert len(told) == 3
    for name, (first, start, end) in zip("spn", told, strict=True):
        blocks = run_tool("debugfs", "-R", f"stat /{name}", str(image)).partition("EXTENTS:\n")[2]
        assert re.match(rf"\({first}(-\d+\))?.*:{start}(-{end}|\n)", blocks), blocks


@pytest.mark.slow
def test_packages_programs_are_found_by_name(debian, tmp_path):
    """Not busybox's, which have the same names; terminals are known, and alternatives are made."""
    image = tmp_path / "a.img"
    with image.open("wb") as file:
        file.truncate(MIB)
    said = debian(
        """PATH=/bin:/sbin:/usr/bin:/usr/sbin; top -b -n 1 | head -n 1; echo "top ${PIPESTATUS[0]}"
        TERM=xterm top -b -n 1 >/dev/null; echo "xterm $?"; ls -l --time-style=+now /bin/bash
        awk --version | head -n 1; ps -o pid=,comm= -p 1; mke2fs -V 2>&1 | head -n 1""",
        image,
        "e2fsprogs coreutils gawk procps",
    )
    forms = [r"top - \d\d:\d\d:\d\d up .*", "top 0", "xterm 0", r"-rwxr-xr-x .* now /bin/bash"]
    forms += [r"GNU Awk \d.*", r" +1 \S+", r"mke2fs 1\.\d.*"]
    assert re.fullmatch("\n".join(forms), said.strip()), said

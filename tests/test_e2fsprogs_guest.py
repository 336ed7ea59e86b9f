"""Debian's e2fsprogs inside the kernel of the storage lab, on a raw drive: dynamically linked, as
in the package. The same programs on this machine judge what they have made."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from labs.tools.guest.debian import debian_root
from labs.tools.guest.package import PackageError
from labs.tools.guest.programs import COMMAND
from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import Drive
from labs.tools.machine.run import machine_config, machine_options
from tests.building import make
from tests.host.ext.images import MIB, make_image, run_tool
from tests.test_ext_write_guest import check, dump, sums_of

Debian = Callable[..., str]


@pytest.fixture
def debian() -> Debian:
    """Runs a script with Debian's packages in the guest, and gives what it printed. The packages'
    programs come before busybox's; the image is hdb."""
    make("LESSON=storage", "image-direct", "user-programs")

    def go(script: str, image: Path, packages: str = "e2fsprogs") -> str:
        try:
            debian_root(packages.split())
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

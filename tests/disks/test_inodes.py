"""What inodes of a disk keep and say, by calls of Linux: the same program runs here and on Debian's
Linux, on images of the same kind. What Linux says is in tests/programs/disk; with ASK_LINUX in the
environment a test asks it again.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from labs.tools.guest.initramfs import regular
from labs.tools.guest.package import PackageError
from labs.tools.machine.linux import linux_machine, said_by
from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import Drive
from tests.disks.test_ext_write_guest import check, guest, programs  # noqa: F401
from tests.host.ext.images import MIB, make_image

ROOT = Path(__file__).resolve().parents[2]
KINDS = {"256": "-t ext4 -b 4096", "128": "-t ext3 -b 1024 -I 128"}
MOUNT = "mount -t ext4 /dev/hdb /mnt; cd /mnt"
SCRIPT = f"""mkdir -p /mnt; {MOUNT}
/inodes times fresh devices limit flags holes
cd /; umount /mnt; {MOUNT}
/inodes again
cd /; umount /mnt"""


def told(kind: str) -> str:
    """What Linux says on an image of this kind."""
    return (ROOT / f"tests/programs/disk/inodes-{kind}.txt").read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_inodes_are_those_of_linux(guest, tmp_path, kind):  # noqa: F811
    """Every line is equal, and e2fsck finds nothing wrong."""
    image = make_image(tmp_path / "disk", 64 * MIB, KINDS[kind])
    assert guest(SCRIPT, image) == told(kind)
    check(image)


@pytest.mark.skipif("ASK_LINUX" not in os.environ, reason="Linux has been asked: ASK_LINUX=1")
@pytest.mark.parametrize("kind", KINDS)
def test_linux_says_so(programs, tmp_path, kind):  # noqa: F811
    """What is compared with is what Debian's Linux says."""
    image = make_image(tmp_path / "disk", 64 * MIB, KINDS[kind])
    entries = [regular("inodes", (programs / "inodes").read_bytes(), 0o755)]
    drives = [Drive(image, 1, writable=True)]
    try:
        machine = linux_machine(tmp_path, SCRIPT, drives, entries, wall_limit=3600)
    except PackageError as error:
        pytest.skip(f"no Linux to compare with: {error}")
    assert said_by(run(machine).serial) == (told(kind), 0)

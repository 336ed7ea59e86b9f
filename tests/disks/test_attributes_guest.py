"""Extended attributes by seeded calls of a program: the same calls here and on Debian's Linux, on
images of the same kind. What Linux answers is in tests/programs/disk; with ASK_LINUX in the
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
from tests.disks.test_ext_write_guest import (  # noqa: F401
    GUEST_SECONDS,
    KINDS,
    ROOT,
    WALL_SECONDS,
    check,
    guest,
    programs,
)
from tests.host.ext.images import MIB, debugfs, make_image

CALLS, SEED = 600, 2010
CHOSEN = pytest.mark.parametrize("kind", ["ext4-4k", "ext3-1k"])


def empty_image(place: Path, kind: str) -> Path:
    """A file system with room for attributes in its inodes."""
    return make_image(place / "disk", 32 * MIB, f"{KINDS[kind]} -I 256")


def script_for(kind: str) -> str:
    """The calls, and nothing else."""
    return f"""mkdir -p /mnt; mount -t {kind[:4]} /dev/hdb /mnt
/attributes /mnt {CALLS} {SEED}
cd /; umount /mnt"""


def told(kind: str) -> list[str]:
    """What Linux answers to the calls, and what debugfs then lists."""
    text = (ROOT / f"tests/programs/disk/attributes-{kind}.txt").read_text()
    return text.splitlines()


def answers(said: str, image: Path) -> list[str]:
    """The same of a run."""
    lists = debugfs(image, (f"ea_list /{name}" for name in ("file", "folder", "pipe", "link")))
    return [*said.splitlines(), *lists]


@CHOSEN
def test_attributes_are_as_on_linux(guest, tmp_path, kind):  # noqa: F811
    """Every line is equal, and e2fsck finds nothing wrong."""
    image = empty_image(tmp_path, kind)
    said = answers(guest(script_for(kind), image), image)
    wanted = told(kind)
    assert len(wanted) > CALLS
    assert [pair for pair in zip(said, wanted, strict=False) if pair[0] != pair[1]][:5] == []
    assert len(said) == len(wanted)
    check(image)


@pytest.mark.skipif("ASK_LINUX" not in os.environ, reason="Linux has been asked: ASK_LINUX=1")
@CHOSEN
def test_linux_says_so(programs, tmp_path, kind):  # noqa: F811
    """What is compared with is what Debian's Linux answers."""
    image = empty_image(tmp_path, kind)
    program = regular("attributes", (programs / "attributes").read_bytes())
    limits = {"guest_limit": GUEST_SECONDS, "wall_limit": WALL_SECONDS}
    try:
        drives = [Drive(image, 1, writable=True)]
        machine = linux_machine(tmp_path, script_for(kind), drives, [program], **limits)
    except PackageError as error:
        pytest.skip(f"no Linux here: {error}")
    said, status = said_by(run(machine).serial)
    assert status == 0 and answers(said, image) == told(kind)

"""A drive that fails all at once under a mounted file system: its FLUSH CACHE fails, or it is gone.
The program that waits for its data is told, the console names the cause, nothing hangs, and what
was safe before is there afterwards."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from labs.tools.guest.programs import busybox
from labs.tools.machine.machine import Machine
from labs.tools.machine.qemu_command import Drive
from tests.disks.test_block_files import programs, storage_config  # noqa: F401 (fixtures)
from tests.host.ext.images import MIB, make_image, run_tool

COPY = "dd if=/bin/busybox of={} bs=4k count=25 conv=fsync 2>&1 | grep -v records\n"
WORK = f"""mkdir /mnt; mount -t {{type}} -o {{options}} /dev/hdb /mnt; cd /mnt
{COPY.format("safe")} sync; echo it is safe; read line
{COPY.format("late")} mkdir a
{COPY.format("later")} mkdir b
md5sum safe; cd /; umount /mnt; echo umount $?
"""
KINDS = [
    ("ext2", "barrier=1"),
    ("ext3", "barrier=1"),
    ("ext4", "data=ordered"),
    ("ext4", "data=journal"),
    ("ext4", "data=writeback"),
]


@pytest.fixture
def serve(tmp_path: Path):
    """Serves an image through a program for each kind of request. Flushes fail as soon as the file
    `stop` is there."""
    if not shutil.which("nbdkit"):
        pytest.skip("there is no nbdkit here")
    started = []

    def go(image: Path) -> subprocess.Popen[bytes]:
        dd = "dd status=none bs=64k"
        parts = {
            "get_size": f"stat -c %s {image}",
            "pread": f"{dd} if={image} iflag=skip_bytes,count_bytes skip=$4 count=$3",
            "pwrite": f"{dd} of={image} oflag=seek_bytes seek=$4 conv=notrunc",
            "flush": f"[ ! -e {tmp_path / 'stop'} ] || {{ echo EIO stop >&2; exit 1; }}",
        }
        words = [f"{name}={part}" for name, part in parts.items()]
        command = ["nbdkit", "-f", "--exit-with-parent", "-U", str(tmp_path / "socket"), "eval"]
        started.append(subprocess.Popen([*command, *words], stderr=subprocess.DEVNULL))
        while not (tmp_path / "socket").exists():
            assert started[0].poll() is None
            time.sleep(0.01)
        return started[0]

    yield go
    for each in started:
        each.kill()
        each.wait()


@pytest.mark.parametrize("fault", ["flush", "gone"])
@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_a_drive_fails_all_at_once(
    serve,
    storage_config,  # noqa: F811
    tmp_path,
    kind,
    options,
    fault,
):
    """Without a journal each fsync fails; with one the first does, and then all is read-only."""
    image = make_image(tmp_path / "a.img", 32 * MIB, f"-t {kind} -b 4096")
    server = serve(image)
    drive = Drive(
        f"nbd+unix:///?socket={tmp_path / 'socket'}",
        1,
        writable=True,
        options=("cache.no-flush=off",),
    )
    script = WORK.format(type=kind, options=options)
    with Machine(storage_config(script, drives=(drive,), icount=None)) as machine:
        machine.expect("it is safe")
        if fault == "flush":
            (tmp_path / "stop").touch()
        else:
            server.kill()
        machine.send("go on")
        said = machine.expect(r"(?s)(.*)\numount 0")[1].replace("\r", "")
    wanted = busybox()[: 25 * 4096]
    assert f"{hashlib.md5(wanted).hexdigest()}  safe" in said
    told = re.findall(r"^(?:dd|mkdir): .*(late|later|a|b)'?: (.*)$", said, re.M)
    if kind == "ext2":
        assert [each for each in told if each[0] in ("late", "later")] == [
            ("late", "Input/output error"),
            ("later", "Input/output error"),
        ]
    else:
        assert "hdb: journal: a commit failed (error 5): nothing is written from now on\n" in said
        read_only = [(name, "Read-only file system") for name in ("a", "later", "b")]
        assert told == [("late", "Input/output error"), *read_only]
    assert "hdb: flush failed" in said or fault == "gone"
    run_tool("e2fsck", "-p", str(image), allowed=(0, 1))
    run_tool("e2fsck", "-fn", str(image))
    run_tool("debugfs", "-R", f"dump safe {tmp_path / 'safe'}", str(image))
    assert (tmp_path / "safe").read_bytes() == wanted

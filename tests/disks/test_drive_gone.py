"""A drive that fails all at once under a mounted file system: its FLUSH CACHE fails, or it is gone,
or for some time a block of it cannot be written.
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
from tests.host.ext.images import MIB, bmap, debugfs, inode_offset, make_image, run_tool

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
    `stop` is there; a write of the byte whose place is in the file `bad` does, while that is there.
    """
    if not shutil.which("nbdkit"):
        pytest.skip("there is no nbdkit here")
    started = []

    def go(image: Path) -> subprocess.Popen[bytes]:
        dd, bad = "dd status=none bs=64k", tmp_path / "bad"
        is_bad = f"[ -e {bad} ] && at=$(cat {bad}) && [ $4 -le $at ] && [ $(($4+$3)) -gt $at ]"
        parts = {
            "get_size": f"stat -c %s {image}",
            "pread": f"{dd} if={image} iflag=skip_bytes,count_bytes skip=$4 count=$3",
            "pwrite": f"if {is_bad}; then cat >/dev/null; echo EIO bad >&2; exit 1; fi; "
            f"{dd} of={image} oflag=seek_bytes seek=$4 conv=notrunc",
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


TOLD = """one: EIO
one again: ok
two: EIO
two again: ok
folder: EIO
folder again: ok
late: ok
syncfs: EIO
syncfs again: ok
another syncfs: EIO
all
""".replace("EIO", "Input/output error")


def places_of(image: Path) -> dict[str, int]:
    """The blocks of metadata that a change of the file a and of the folder d needs."""
    stat = run_tool("debugfs", "-R", "stat /a", str(image))
    group = run_tool("dumpe2fs", str(image))
    return {
        "inode": inode_offset(image, "/a") // 1024,
        "map": int(re.search(r"\(IND\):(\d+)", stat)[1]),
        "attribute": int(re.search(r"File ACL: (\d+)", stat)[1]),
        "directory": bmap(image, [("/d", 0)])[0][0],
        "blocks": int(re.search(r"Block bitmap at (\d+)", group)[1]),
        "inodes": int(re.search(r"Inode bitmap at (\d+)", group)[1]),
        "descriptor": int(re.search(r"Group descriptors at (\d+)", group)[1]),
    }


def test_metadata_fails_in_other_hands(serve, storage_config, tmp_path):  # noqa: F811
    """Of ext2, by another program's fsync, or by the timer: each open file that depends on the
    block is told once, and so is each that syncfs is called for. An fsync that succeeds later has
    written it: the machine is switched off after the last one."""
    root = tmp_path / "root"
    (root / "d").mkdir(parents=True)
    (root / "a").write_bytes(b"a" * 20480)
    (root / "other").write_bytes(b"o" * 1024)
    image = make_image(tmp_path / "a.img", 8 * MIB, "-t ext2 -b 1024 -I 128", root)
    debugfs(image, ["ea_set /a user.a old"], write=True)
    places = places_of(image)
    serve(image)
    drive = Drive(f"nbd+unix:///?socket={tmp_path / 'socket'}", 1, writable=True)
    script = "mkdir /m; mount -t ext2 /dev/hdb /m; " + "".join(
        f"/other_hands /m {('fsync', 'timer')[at % 2]} {at}; " for at in range(len(places))
    )
    with Machine(storage_config(script, drives=(drive,), icount=None)) as machine:
        for at, (place, block) in enumerate(places.items()):
            machine.expect("ready: ok")
            (tmp_path / "bad").write_text(str(block * 1024))
            machine.send("go on")
            said = machine.expect(r"(?s)(.*)tried: ok")[1]
            assert at % 2 or "other: Input/output error" in said, (place, said)
            (tmp_path / "bad").unlink()
            machine.send("go on")
            said = machine.expect(r"(?s)(one: .*all\r?\n)")[1].replace("\r", "")
            assert said == TOLD, (place, said)
    run_tool("e2fsck", "-fy", str(image), allowed=(0, 1))
    run_tool("debugfs", "-R", f"dump /a {tmp_path / 'a'}", str(image))
    added = "".join(str(at) * 1024 for at in range(len(places)))
    assert (tmp_path / "a").read_text() == "a" * 20480 + added
    assert f'user.a (10) = "{"6" * 10}"' in run_tool("debugfs", "-R", "ea_list /a", str(image))
    names = "\n".join(debugfs(image, ["ls -p /d"]))
    assert all(f"/{at}/" in names for at in range(len(places))), names


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

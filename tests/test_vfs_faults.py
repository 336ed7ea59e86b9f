"""fs/vfs and fs/disk on the host, while reads of the drive fail or give something else, each in
turn: afterwards nothing is in use any more, and the unmount succeeds (tests/host/vfs).

After a read that failed, e2fsck finds nothing, or the superblock asks for it. `make test` takes a
sample; `make faults` all.
"""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest

from labs.storage.crash import building
from labs.tools.machine.bounded import run_within
from tests.host.ext.images import (
    ENVIRONMENT,
    MIB,
    ROOT,
    SEED,
    SOURCES,
    debugfs,
    make_image,
    run_tool,
    write_blocks,
)
from tests.test_ext_write_guest import guest, programs  # noqa: F401 (fixtures)

pytest_plugins = ["tests.host.ext.fixtures"]

KINDS = {
    "ext4": "-t ext4 -b 1024 -N 512 -J size=1",
    "ext3": "-t ext3 -b 1024 -N 512 -J size=1",
    "ext2": "-t ext2 -b 1024 -N 512",
}
SAMPLE = 8  # faults of each kind of file system
DAMAGES = 3
SECONDS = 60
NOT_LINKED = {"block_files", "snapshots", "trace_file", "locks", "wall_time"}
QUIET = ("-w",)  # the kernel's own build has the warnings
# What the script does not call may be missing: a call of it is a crash.
PARTLY = ("-no-pie", "-Wl,--unresolved-symbols=ignore-all")

SCRIPT = f"""
list /mnt/crowd
mkdir /mnt/a
mkdir /mnt/a/b
path /mnt/a/b
write /mnt/a/file 5000
write /mnt/synced 3000
write /mnt/big 20000
read /mnt/big 1000
truncate /mnt/big 30000
truncate /mnt/big 100
truncate /mnt/big 60000
truncate /mnt/big 0
read /mnt/slow 100
keep /mnt/a/gone
write /mnt/a/gone 9000
unlink /mnt/a/gone
keep /mnt/two/inside
unlink /mnt/two/inside
attribute /mnt/a/file 60
attribute /mnt/a/file 700
attribute /mnt/a 300
link /mnt/a/file /mnt/a/b/hard
symlink a/file /mnt/short
symlink {"./" * 40}a/file /mnt/long
read /mnt/long 10
rename /mnt/a/file /mnt/a/other
over /mnt/crowd/name-7 4000
rename /mnt/a/other /mnt/crowd/name-7
exchange /mnt/a/b /mnt/crowd/name-8
rename /mnt/crowd /mnt/a/crowd
rename /mnt/a/crowd /mnt/crowd
fifo /mnt/fifo
write /mnt/reserved 1
reserve /mnt/reserved 40000
write /mnt/reserved 100
mkdir /mnt/crowd/more-1
mkdir /mnt/crowd/more-2
write /mnt/crowd/more-3 10
unlink /mnt/crowd/name-9
touch /mnt/crowd/name-10
sync
close
truncate /mnt/two/big 200000
truncate /mnt/two/big 100000
unlink /mnt/big
unlink /mnt/two/big
rmdir /mnt/crowd/more-2
rmdir /mnt/crowd
unlink /mnt/long
list /mnt/crowd
""".strip().splitlines()
# What is read again by each operation, because the library begins again before it.
COLD = [each for line in SCRIPT for each in (line, "remount /mnt ro", "remount /mnt rw")]


def headers() -> str:
    """Changes with each header of fs: the objects are kept."""
    return building.fingerprint(path.read_bytes() for path in sorted(ROOT.glob("fs/**/*.h")))


@pytest.fixture(scope="session")
def program() -> Path:
    """The program of faults, with the sanitizers."""
    options = [*building.OPTIONS, *building.SANITIZERS]
    below = [ROOT / f"tests/host/ext/{name}.c" for name in ("shim", "record")]
    library = building.objects_of([*SOURCES, *below, ROOT / "kernel/lib/errno.c"], options)
    shadow = f"-I{ROOT}/tests/host/fs/shadow"
    own = [shadow, "-includestdint.h", *options, *QUIET, f"-DHEADERS=0x{headers()}"]
    harness = building.objects_of((ROOT / "tests/host/vfs").glob("*.c"), own)
    own += ["-Ddisk_open=disk_open_file"]  # tests/host/ext has a function of this name, too
    files = [each for folder in ("vfs", "disk") for each in (ROOT / "fs" / folder).glob("*.c")]
    files = [each for each in sorted(files) if each.stem not in NOT_LINKED]
    kernel = building.objects_of([ROOT / "fs/file.c", *files], own)
    return building.linked("faults", [*library, *kernel, *harness], [*options, *PARTLY])


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Small sound images with a hash tree, holes, and a long symbolic link."""
    place = tmp_path_factory.mktemp("faults")
    root = place / "root"
    (root / "crowd").mkdir(parents=True)
    (root / "two").mkdir()
    for number in range(120):
        (root / "crowd" / f"name-{number}").write_bytes(b"n" * (number % 30))
    (root / "two/inside").write_bytes(b"i" * 3000)
    write_blocks(root / "two/big", 1024, range(0, 400, 2))
    (root / "slow").symlink_to("./" * 40 + "two/big")
    made = {}
    for kind, options in KINDS.items():
        made[kind] = make_image(place / f"{kind}.img", 4 * MIB, options, root)
        run_tool("e2fsck", "-fyD", str(made[kind]), allowed=(0, 1))
    return made


class Faults:
    """A script on an image."""

    def __init__(self, program: Path, image: Path, place: Path, script: list[str]) -> None:
        self.program, self.image, self.left = program, image, place / "left.img"
        self.script = place / "script"
        self.script.write_text("\n".join(["mount /mnt", *script]) + "\n")

    def start(self, *words: object) -> list[str]:
        """The lines that it says; fails unless nothing is left."""
        command = [str(self.program), str(self.image), str(self.script), *map(str, words)]
        done = run_within(command, capture_output=True, seconds=SECONDS, check=False)
        lines = done.stdout.decode(errors="replace").splitlines()
        assert done.returncode == 0 and lines[-1] == "clean", (
            f"{' '.join(command)}\n{lines[-12:]}\n{done.stderr.decode(errors='replace')[-3000:]}"
        )
        assert not any(line.startswith("panic") for line in lines), lines
        return lines

    def reads(self) -> int:
        """How many reads it makes."""
        return int(next(line for line in self.start("reads") if line[:6] == "reads ").split()[1])

    def run(self, read: int, damage: int = 0) -> list[str]:
        """With one fault. What was not damaged is sound, or the superblock asks for e2fsck."""
        self.left.unlink(missing_ok=True)
        lines = self.start("run", read, damage, self.left)
        if damage == 0 and self.left.exists():
            command = ["e2fsck", "-fn", str(self.left)]
            done = subprocess.run(command, capture_output=True, env=ENVIRONMENT, check=False)
            assert done.returncode == 0, f"read {read}: {lines}\n{done.stdout.decode()}"
        return lines


def some(count: int, wanted: int, seed: object) -> list[int]:
    """Which of so many faults: a sample, or with FAULTS=all, all."""
    if os.environ.get("FAULTS") == "all":
        return list(range(1, count + 1))
    return sorted(random.Random(f"{SEED} {seed}").sample(range(1, count + 1), wanted))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("script", ("warm", "cold"))
def test_a_read_that_fails(program, images, tmp_path, kind, script):
    """Whatever was half done is undone, or finished by the next mount or by e2fsck."""
    faults = Faults(program, images[kind], tmp_path, SCRIPT if script == "warm" else COLD)
    for read in some(faults.reads(), SAMPLE, kind):
        faults.run(read)


@pytest.mark.parametrize("kind", KINDS)
def test_a_read_that_is_wrong(program, images, tmp_path, kind):
    """Some bytes of it: nothing hangs, or is in use for ever."""
    faults = Faults(program, images[kind], tmp_path, COLD)
    rounds = range(1, DAMAGES + 1) if os.environ.get("FAULTS") == "all" else (1,)
    for damage in rounds:
        for read in some(faults.reads(), SAMPLE, f"{kind} {damage}"):
            faults.run(read, damage)


def test_a_directory_with_two_names(program, images, tmp_path):
    """The second one is refused, as on Linux; its inode was put twice, and the unmount was busy for
    ever."""
    image = tmp_path / "a.img"
    image.write_bytes(images["ext4"].read_bytes())
    debugfs(image, ["mkdir d", "link d e"], write=True)
    script = ["keep /mnt/d/g", "list /mnt/e", "mkdir /mnt/e/f", "list /mnt/e", "rmdir /mnt/e"]
    lines = Faults(program, image, tmp_path, [*script, "unlink /mnt/d/g"]).start("reads")
    asked = [line for line in lines if line.startswith(("list", "mkdir", "rmdir"))]
    assert [line.split(": ")[-1] for line in asked] == ["EUCLEAN"] * 4


def test_changed_times_when_nothing_can_be_stored(program, images, tmp_path):
    """The unmount tried twenty times, and each time gave up one of the inodes."""
    image = tmp_path / "a.img"
    image.write_bytes(images["ext4"].read_bytes())
    debugfs(image, ["mkdir d", "link d e"], write=True)
    reads = [f"read /mnt/crowd/name-{number} 1" for number in range(1, 100)]
    script = ["remount /mnt errors=remount-ro", *reads, "keep /mnt/d/f", "list /mnt/e"]
    lines = Faults(program, image, tmp_path, script).start("reads")
    assert "console hdc: read-only from now on" in lines


def test_programs_and_a_directory_with_two_names(guest, images, tmp_path):  # noqa: F811
    """A program is in it meanwhile, and makes files there."""
    image = tmp_path / "a.img"
    image.write_bytes(images["ext4"].read_bytes())
    debugfs(image, ["mkdir d", "link d e"], write=True)
    said = guest(
        """mkdir /mnt; mount /dev/hdb /mnt; cd /mnt/d
        for i in 1 2 3; do ls -d /mnt/d /mnt/e 2>&1; echo $i >/mnt/e/no; echo $i >file; done
        ls /mnt/d /mnt/two; cd /; umount /mnt && echo unmounted""",
        image,
        ends=False,
    )
    assert said.splitlines()[-1] == "unmounted" and said.count("/mnt/d\n") == 3, said
    assert said.count("/mnt/e: Structure needs cleaning") == 3, said


def test_a_truncate_that_failed_is_an_orphan_once(ext, images, tmp_path):
    """The second one lists the file again unless it looks; then the list is a circle."""
    failed = 0
    for request in range(9):
        image = tmp_path / f"{request}.img"
        image.write_bytes(images["ext2"].read_bytes())
        script = ["again", f"fail {request}", "truncate /two/big 30000", "truncate /two/big 20000"]
        lines = ext.start(image, "write", text="\n".join([*script, "again", "unlink /two/big"]))
        failed += "error EIO" in lines
        assert not any("orphans" in line for line in lines), (request, lines)
        assert lines[-1] == "done 0" and lines.count("done 0") >= 2, (request, lines)
        run_tool("e2fsck", "-fn", str(image))
    assert failed > 2

"""fs/vfs and fs/disk on the host, while requests of the drive fail, or reads give something else,
each in turn: afterwards nothing is in use any more, and the unmount succeeds (tests/host/vfs).

After a request that failed, e2fsck finds nothing, or the superblock asks for it; and what fsync has
promised is there. `make test` takes a sample; `make faults` all.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
from pathlib import Path

import pytest

from labs.storage.crash import building
from labs.tools.machine.bounded import run_within
from tests.disks.test_ext_write_guest import guest, programs  # noqa: F401 (fixtures)
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

pytest_plugins = ["tests.host.ext.fixtures"]

KINDS = {
    "ext4": "-t ext4 -b 1024 -N 512 -J size=1",
    "ext3": "-t ext3 -b 1024 -N 512 -J size=1",
    "ext2": "-t ext2 -b 1024 -N 512",
}
# What else fails with a write: enum write_fault of tests/host/vfs/floors.h.
FAULTS = {"once": 0, "and later": 1, "and after a promise": 2, "bad sectors": 3}
SMALL = "cache 14"  # buffers: blocks are written to make room for others, by any task
SAMPLE = 8  # faults of each kind of file system
WRITES, MEETINGS = 3, 2  # of writes, and of two tasks
DAMAGES = 3
ROUNDS = 20
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
write /mnt/safe-1 3000
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
write /mnt/a/safe-3 50000
touch /mnt/crowd/name-10
write /mnt/crowd/safe-2 9000
sync
close
truncate /mnt/two/big 200000
truncate /mnt/two/big 100000
unlink /mnt/big
unlink /mnt/two/big
rmdir /mnt/crowd/more-2
rmdir /mnt/crowd
write /mnt/safe-4 700
unlink /mnt/long
list /mnt/crowd
""".strip().splitlines()
# What is read again by each operation, because the library begins again before it.
COLD = [each for line in SCRIPT for each in (line, "remount /mnt ro", "remount /mnt rw")]


# Two tasks: the same, and the same with names of its own and in the other order of directories.
TOGETHER = [
    *SCRIPT[:-1],
    *("| " + re.sub(r"/mnt/(?!crowd|two)(\w)", r"/mnt/o-\1", line) for line in SCRIPT[1:-12]),
]
# Two tasks that make files safe, each in its directory and in one that they share: a commit of the
# one often has what the other waits for.
SAFE = ["mkdir /mnt/a", "| mkdir /mnt/o-a"]
SAFE += [
    f"{bar}{line}"
    for bar, other in (("", ""), ("| ", "o-"))
    for number in range(1, 5)
    for line in (
        f"write /mnt/{other}a/safe-{number} {4900 * number}",
        f"write /mnt/{other}a/more 9000",
        f"write /mnt/crowd/{other}safe-{number} 300",
        f"unlink /mnt/{other}a/more",
    )
]


def headers() -> str:
    """Changes with each header of fs: the objects are kept."""
    return building.fingerprint(path.read_bytes() for path in sorted(ROOT.glob("fs/**/*.h")))


@pytest.fixture(scope="session")
def program() -> Path:
    """The program of faults, with the sanitizers."""
    options = [*building.OPTIONS, *building.SANITIZERS]
    below = [ROOT / f"tests/host/ext/{name}.c" for name in ("shim", "record")]
    below += [ROOT / f"kernel/lib/{name}.c" for name in ("errno", "tree")]
    library = building.objects_of([*SOURCES, *below], options)
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
        self.lines = ["mount /mnt", *script]
        self.script.write_text("\n".join(self.lines) + "\n")

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

    def count(self, what: str) -> int:
        """How many reads or writes it makes."""
        lines = self.start("count")
        return int(next(each for each in lines if each.startswith(f"{what}s ")).split()[1])

    def run(self, what: str, number: int, how: int = 0) -> list[str]:
        """With one fault. What was not damaged is sound, or has orphans only, or the superblock
        asks for e2fsck; and promises are kept."""
        lines = self.start(what, number, how, self.left)
        if what == "read" and how:
            return lines
        is_sound = "sound" in lines or "orphans" in lines
        if "orphans" in lines:
            run_tool("e2fsck", "-p", str(self.left), allowed=(0, 1))
        words = ["e2fsck", "-fn" if is_sound else "-fy", str(self.left)]
        done = subprocess.run(words, capture_output=True, env=ENVIRONMENT, check=False)
        told = f"{what} {number} {how}: {lines}\n{done.stdout.decode()}"
        assert done.returncode in ((0,) if is_sound else (0, 1)), told
        safe = re.findall(r"^write /mnt(/\S*safe\S*): 0$", "\n".join(lines), re.MULTILINE)
        there = {path: self.left.with_suffix(f".{number}") for number, path in enumerate(safe)}
        for out in there.values():
            out.write_bytes(b"")
        debugfs(self.left, [f"dump {path} {out}" for path, out in there.items()])
        for path, out in there.items():
            length = next(int(line.split()[-1]) for line in self.lines if f"/mnt{path} " in line)
            assert out.read_bytes() == b"w" * length, f"{path}\n{told}"
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
    for read in some(faults.count("read"), SAMPLE, kind):
        faults.run("read", read)


@pytest.mark.parametrize("kind", KINDS)
def test_a_read_that_is_wrong(program, images, tmp_path, kind):
    """Some bytes of it: nothing hangs, or is in use for ever."""
    faults = Faults(program, images[kind], tmp_path, COLD)
    rounds = range(1, DAMAGES + 1) if os.environ.get("FAULTS") == "all" else (1,)
    for damage in rounds:
        for read in some(faults.count("read"), SAMPLE, f"{kind} {damage}"):
            faults.run("read", read, damage)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_write_that_fails(program, images, tmp_path, kind, fault):
    """Data, maps, the journal's log and commit block, checkpoints, the superblock; or a flush; and
    what FAULTS says."""
    faults = Faults(program, images[kind], tmp_path, SCRIPT)
    for write in some(faults.count("write"), WRITES, f"{kind} {fault}"):
        faults.run("write", write, FAULTS[fault])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", ("read", "write"))
def test_a_fault_under_two_tasks(program, images, tmp_path, kind, what):
    """Each does the half of it, in directories that they share, and takes turns at each request."""
    rounds = range(1, ROUNDS + 1) if os.environ.get("FAULTS") == "all" else (SEED,)
    for seed in rounds:
        faults = Faults(program, images[kind], tmp_path, [f"tasks {seed}", *TOGETHER])
        for number in some(faults.count(what), MEETINGS, f"{kind} {what} {seed}"):
            faults.run(what, number)


@pytest.mark.parametrize("kind", [*KINDS, "ext2, a small cache"])
@pytest.mark.parametrize("fault", ("and after a promise", "bad sectors"))
def test_a_promise_while_another_task_meets_the_fault(program, images, tmp_path, kind, fault):
    """The block that could not be written is of both. A fsync between that and the next commit
    must not believe that all was written: nothing is written after the promise."""
    name, _, small = kind.partition(", ")
    rounds = range(1, MEETINGS + 1) if os.environ.get("FAULTS") == "all" else (1,)
    for seed in rounds:
        script = [*([SMALL] if small else []), f"tasks {seed}", *SAFE]
        faults = Faults(program, images[name], tmp_path, script)
        for number in some(faults.count("write"), SAMPLE, f"{kind} {fault} {seed}"):
            faults.run("write", number, FAULTS[fault])


@pytest.mark.parametrize("kind", KINDS)
def test_a_write_that_is_cut_short(program, images, tmp_path, kind):
    """Of what was not written nothing was promised. With pointers it is written in two pieces."""
    faults = Faults(program, images[kind], tmp_path, ["write /mnt/safe 50000"])
    told = [faults.run("write", number) for number in range(1, 1 + faults.count("write"))]
    assert sum("write /mnt/safe: EIO" in lines for lines in told) > 3, told


def test_two_tasks_keep_files(program, images, tmp_path):
    """Each its own, also while the other one waits for the drive."""
    script = ["keep /mnt/crowd/name-1", "| keep /mnt/two/inside"]
    for seed in range(1, 1 + MEETINGS):
        Faults(program, images["ext2"], tmp_path, [f"tasks {seed}", *script]).start("count")


def test_a_directory_with_two_names(program, images, tmp_path):
    """The second one is refused, as on Linux; its inode was put twice, and the unmount was busy for
    ever."""
    image = tmp_path / "a.img"
    image.write_bytes(images["ext4"].read_bytes())
    debugfs(image, ["mkdir d", "link d e"], write=True)
    script = ["keep /mnt/d/g", "list /mnt/e", "mkdir /mnt/e/f", "list /mnt/e", "rmdir /mnt/e"]
    lines = Faults(program, image, tmp_path, [*script, "unlink /mnt/d/g"]).start("count")
    asked = [line for line in lines if line.startswith(("list", "mkdir", "rmdir"))]
    assert [line.split(": ")[-1] for line in asked] == ["EUCLEAN"] * 4


def test_changed_times_when_nothing_can_be_stored(program, images, tmp_path):
    """The unmount tried twenty times, and each time gave up one of the inodes."""
    image = tmp_path / "a.img"
    image.write_bytes(images["ext4"].read_bytes())
    debugfs(image, ["mkdir d", "link d e"], write=True)
    reads = [f"read /mnt/crowd/name-{number} 1" for number in range(1, 100)]
    script = ["remount /mnt errors=remount-ro", *reads, "keep /mnt/d/f", "list /mnt/e"]
    lines = Faults(program, image, tmp_path, script).start("count")
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
        if lines[2:3] == ["error EIO"]:
            break  # a write of the unmount: what it was to write is lost
        failed += "error EIO" in lines
        assert not any("orphans" in line for line in lines), (request, lines)
        assert lines[-1] == "done 0" and lines.count("done 0") >= 2, (request, lines)
        run_tool("e2fsck", "-fn", str(image))
    assert failed > 2

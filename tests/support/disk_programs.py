"""Debian's own programs on an ext4 that the storage lab's kernel has mounted: cp -a, tar, find, dd,
rsync, git and sqlite3, on a number of files; e2fsprogs and the host's programs judge what is left.

    python -m tests.support.disk_programs [FILES]     5,000 files, and a line for each program

Debian's Linux mounts the image afterwards, in the same QEMU, and reads all of it.

The guest writes the sums of all files to /sums on the disk and prints that file's own sum: what
debugfs reads is compared with it.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from labs.tools.guest.debian import debian_root
from labs.tools.guest.initramfs import Entry, archive, regular
from labs.tools.guest.package import PackageError
from labs.tools.guest.programs import busybox, guest_root
from labs.tools.machine.bounded import run_within
from labs.tools.machine.linux import linux_machine, said_by
from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import Config, Drive
from tests.host.ext.images import MIB, make_image, run_tool

ROOT = Path(__file__).resolve().parents[2]
KERNEL = ROOT / "build/storage/kernel.elf"
PACKAGES = ["bash", "coreutils", "findutils", "diffutils", "tar", "rsync", "git", "sqlite3", "attr"]
NOT_NEEDED = re.compile(r"perl|gconv|scalar|git-shell|git-core/(git$|git-(re|ht|im|da|sh))")
FILES = 5000
MEMORY = 512  # MiB: Debian's programs are in it, and the page cache
LIMIT = 3000  # seconds
DONE = "all programs have ended"

PROGRAMS = r"""
set -eu
export PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/root LC_ALL=C TZ=UTC
mkdir -p /mnt && /bin/mount /dev/hdb /mnt && cd /mnt
step() { echo "step $*"; }

step make FILES files
for ((i = 0; i < FILES; i++)); do
	((i % 100)) || mkdir -p tree/d$((i / 100))
	printf 'file %d\n%*d\n' $i $((i * 37 % 9000)) $i > tree/d$((i / 100))/f$i
done
ln tree/d0/f1 tree/hard
ln -s d0/f2 tree/soft
ln -s /a/target/that/is/too/long/for/an/inode/and/goes/to/a/block/of/its/own tree/slow
truncate -s 5000000 tree/holes; echo end >> tree/holes
chmod 640 tree/d0/f3; touch -d '2001-02-03 04:05:06.789' tree/d0/f4; mkfifo tree/pipe

list() { (cd $1 && find . ! -path ./pipe -printf '%P %y %m %n %s %T@ %l\n' | sort | grep -v '^ '); }

step cp -a
cp -a tree copy
diff -r --no-dereference -x pipe tree copy
diff <(list tree) <(list copy)

step tar
tar --format=posix -cf tree.tar tree
tar -df tree.tar
mkdir out && tar -xpf tree.tar -C out
diff <(list tree) <(list out/tree)

step attributes
mkdir marked; echo one > marked/one; echo two > marked/two; ln -s one marked/link; mkdir marked/d
setfattr -n user.colour -v blue marked/one
setfattr -n user.long -v "$(printf '%0700d' 7)" marked/one
setfattr -n security.capability -v 0x0100000200040000000000000000000000000000 marked/two
setfattr -h -n trusted.of-link -v target marked/link
setfattr -n user.empty marked/d
attributes() { (cd $1 && getfattr -hRdm - -e hex . | sort); }
test $(attributes marked | grep -c =) = 5
tar --xattrs --xattrs-include='*' -cf marked.tar marked
mkdir taken && tar --xattrs --xattrs-include='*' -xf marked.tar -C taken
diff <(attributes marked) <(attributes taken/marked)
cp -a marked copied; diff <(attributes marked) <(attributes copied)
rsync -aX marked/ synced-marked; diff <(attributes marked) <(attributes synced-marked)
setfattr -x user.long marked/one; ! getfattr -n user.long marked/one 2>/dev/null
setfattr -n user.more -v x copied/link; test "$(getfattr --only-values -n user.more copied/one)" = x
! setfattr -h -n user.none -v x marked/link 2>/dev/null

step find
test $(find copy -type f -links 1 | wc -l) = FILES
test $(find copy -samefile copy/hard | wc -l) = 2
find out -name 'f*7' -type f -delete
test $(find out -name 'f*7' | wc -l) = 0
find out -depth -mindepth 2 -path '*/d1*' -delete

step dd
dd if=tree.tar of=by64k bs=64k conv=fsync 2>/dev/null
dd if=tree.tar of=by4k bs=4k oflag=direct iflag=fullblock 2>/dev/null
dd if=tree.tar of=by4k bs=1000 count=3 seek=7 conv=notrunc 2>/dev/null
dd if=tree.tar of=by64k bs=1000 count=3 seek=7 conv=notrunc 2>/dev/null
cmp by64k by4k

step rsync
rsync -aH tree/ synced
rm -r synced/d0; echo changed > synced/soft-not; echo other >> synced/hard
rsync -aHc --delete tree/ synced
test -z "$(rsync -aHcni --delete tree/ synced)"
diff <(list tree) <(list synced)

step git
git config --global user.name A; git config --global user.email a@example.org
git config --global gc.auto 0; git config --global core.fsync all
git init -q -b main repository
cp -a tree/d* repository; cd repository
git add -A
git commit -q -m first
git fsck --full --strict --no-progress
test -z "$(git status --porcelain)"
git mv d0/f5 moved; echo more >> d0/f6; git rm -q d0/f7
git commit -q -a -m second
test $(git ls-files | wc -l) = $((FILES - 1))
git gc -q
git fsck --full --strict --no-progress
git checkout -q HEAD~1 && git checkout -q main
cd ..

step sqlite3
rows="with recursive n(i) as (select 1 union all select i + 1 from n where i < FILES)"
for mode in delete truncate persist wal; do
	sqlite3 $mode.db > said <<-end
		pragma journal_mode = $mode;
		create table t(i integer primary key, x text);
		create index u on t(x);
		begin; insert into t $rows select i, hex(i * 7919 % 10007) from n; commit;
		begin; delete from t; rollback;
		update t set x = 'new' || i where i % 10 = 3;
		delete from t where i % 10 = 4;
		vacuum;
		select count(*), sum(length(x)) from t;
		pragma integrity_check;
	end
	test "$(head -1 said)" = $mode
	tail -2 said
done

step sums
find . -type f ! -name sums -print0 | sort -z | xargs -0 sha256sum > sums
sha256sum sums; cd /; /bin/umount /mnt; echo DONE
"""


class ProgramsError(Exception):
    """What was found wrong; the text says where."""


def root_files(name: str, script: str) -> list[Entry]:
    """Debian's programs without what is large and not needed, and a script."""
    every = guest_root(ROOT / "build/user/bin", busybox(), [debian_root(PACKAGES)])
    needed = [entry for entry in every if not NOT_NEEDED.search(entry.path)]
    return [*needed, regular(name, script.encode())]


def run_programs(image: Path, files: int = FILES) -> str:
    """Runs PROGRAMS with the image as hdb, and returns what they said. Raises ProgramsError unless
    they came to their end, PackageError without packages."""
    script = PROGRAMS.replace("FILES", str(files)).replace("DONE", DONE)
    entries = root_files("programs", script)
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory, "initramfs")
        root.write_bytes(archive(entries))
        machine = Config(
            boot="direct",
            kernel=KERNEL,
            initramfs=root,
            memory=MEMORY,
            drives=(Drive(image, 1, writable=True),),
            settings=(("cmd", "bash /programs"), ("disk", "dma-polled")),
            guest_limit=LIMIT,
            wall_limit=LIMIT,
        )
        said = run(machine).serial.replace("\r", "")
    if DONE not in said:
        raise ProgramsError(f"the programs did not come to their end:\n{said[-2500:]}")
    return said[said.index("step make") :]


def judge(image: Path, said: str, place: Path) -> int:
    """Reads the image with debugfs, and asks e2fsck, git and sqlite3 of this machine. Returns how
    many files were compared. Raises ProgramsError."""
    run_tool("e2fsck", "-fn", str(image))
    place.mkdir()
    run_tool("debugfs", "-R", f"rdump / {place}", str(image))
    sums = (place / "sums").read_bytes()
    if hashlib.sha256(sums).hexdigest() not in said:
        raise ProgramsError("the list of sums is not the one that was written")
    for line in sums.decode().splitlines():
        wanted, path = line.split("  ", 1)
        if hashlib.sha256((place / path).read_bytes()).hexdigest() != wanted:
            raise ProgramsError(f"{path}: other contents than in the guest")
    words = ["git", "-c", "safe.directory=*", "-C", str(place / "repository"), "fsck", "--full"]
    run_within(words, capture_output=True, seconds=LIMIT, check=True)
    for path in place.glob("*.db"):
        with closing(sqlite3.connect(path)) as base:
            if base.execute("pragma integrity_check").fetchall() != [("ok",)]:
                raise ProgramsError(f"{path.name}: damaged")
    return sums.count(b"\n")


def ask_linux(image: Path, place: Path) -> None:
    """Debian's Linux mounts the image, reads all files and finds the sums. Raises ProgramsError."""
    script = """mount -t ext4 -o ro /dev/hdb /mnt && cd /mnt && sha256sum -c sums | grep -vc ': OK$'
        cd /; umount /mnt"""
    machine = linux_machine(
        place,
        f"mkdir /mnt; {script}",
        [Drive(image, 1)],
        memory=MEMORY,
        guest_limit=LIMIT,
        wall_limit=LIMIT,
    )
    said, status = said_by(run(machine).serial)
    if (said.strip(), status) != ("0", 0):
        raise ProgramsError(f"Linux finds other contents, status {status}:\n{said[-2000:]}")


def main() -> int:
    """Runs the command line."""
    files = int(sys.argv[1]) if sys.argv[1:] else FILES
    with tempfile.TemporaryDirectory() as directory:
        image = make_image(Path(directory, "disk"), size_for(files), "-t ext4 -b 4096")
        try:
            said = run_programs(image, files)
            print(*re.findall("^step (.*)", said, re.M), sep="\n")
            print(f"{judge(image, said, Path(directory, 'dump'))} files read back: as written")
            ask_linux(image, Path(directory))
            print("Debian's Linux reads them, too")
        except (PackageError, ProgramsError, subprocess.SubprocessError, RuntimeError) as error:
            print(f"WRONG: {error}")
            return 1
    return 0


def size_for(files: int) -> int:
    """Bytes that the disk needs."""
    return (96 + files // 8) * MIB


if __name__ == "__main__":
    sys.exit(main())

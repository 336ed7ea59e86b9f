"""Debian's programs on the kernel and on this machine's Linux: the same files, the same scripts.

tests/debian/SET/packages names packages; the other files are scripts for bash, one for each program
that is tried. A root with the packages and the scripts is given to the kernel and to bubblewrap,
where /bin/sh /programs/all runs them.

python -m tests.support.debian_programs [SET...] runs the scripts of all sets, or of these
(SET/SCRIPT: one script), and prints a table. Ends with 1 unless all is as on Linux.
"""

from __future__ import annotations

import re
import secrets
import stat
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from functools import cache
from pathlib import Path

from labs.tools.guest.debian import debian_root
from labs.tools.guest.initramfs import Entry, archive, folder, merged, regular
from labs.tools.guest.programs import busybox, guest_root
from labs.tools.machine.bounded import run_within
from labs.tools.machine.command import CommandError, in_a_line
from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import Config

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / "tests/debian"
KERNEL = ROOT / "build/lesson6/kernel.elf"
PACKAGES = "packages"
MEMORY = 1024  # MiB: half of it may be files
SECONDS = 120  # of each script, in the guest's time, 8 ns an instruction: test_int computes for 65
LIMIT = 3600  # seconds for a set
LINES = 60  # of a difference

ALL = """\
cd /programs
for each in ${{*:-*.bash}}; do
	mkdir /work && cd /work
	echo {word} begins $each
	env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/root LC_ALL=C TZ=UTC \\
		timeout -k 5 {seconds} bash /programs/$each </dev/null >/tmp/said 2>&1
	status=$?
	cat /tmp/said
	echo
	echo {word} ends $status
	cd /programs && rm -rf /work /tmp/*
done
"""


@dataclass(frozen=True)
class Ended:
    """How a script ended: all that it printed, and its status."""

    said: str
    status: int


def sets() -> list[str]:
    """The names of all sets."""
    return sorted(path.parent.name for path in PLACE.glob(f"*/{PACKAGES}"))


def script_names(name: str) -> list[str]:
    """The scripts of a set, without their ending, sorted."""
    return sorted(path.stem for path in (PLACE / name).glob("*.bash"))


@cache
def entries(name: str, word: str) -> list[Entry]:
    """The root for the scripts of a set; `word` marks where the output of each begins and ends.
    Raises PackageError."""
    packages = (PLACE / name / PACKAGES).read_text().split()
    scripts = [
        regular(f"programs/{path.name}", path.read_bytes())
        for path in sorted((PLACE / name).iterdir())
        if path.name != PACKAGES
    ]
    everything = ALL.format(word=word, seconds=SECONDS).encode()
    return [
        *guest_root(ROOT / "build/user/bin", busybox(), [debian_root(packages)]),
        folder("programs"),
        regular("programs/all", everything),
        *scripts,
    ]


def results(output: str, word: str) -> dict[str, Ended]:
    """The output, cut into what each script said."""
    form = re.compile(rf"^{word} begins (\S+)\.bash\n(.*?)\n{word} ends (\d+)$", re.M | re.S)
    return {name: Ended(said, int(status)) for name, said, status in form.findall(output)}


def on_kernel(name: str, kernel: Path, scripts: list[str]) -> dict[str, Ended]:
    """Runs scripts of a set on a kernel. What did not come to its end is missing."""
    word = secrets.token_hex(8)
    words = " ".join(f"{each}.bash" for each in scripts)
    with tempfile.TemporaryDirectory() as directory:
        files = Path(directory, "initramfs")
        files.write_bytes(archive(entries(name, word)))
        machine = Config(
            boot="direct",
            kernel=kernel,
            initramfs=files,
            memory=MEMORY,
            settings=(("cmd", f"/bin/sh /programs/all {words}"),),
            guest_limit=LIMIT,
            wall_limit=LIMIT,
            output_limit=64 << 20,
        )
        return results(run(machine).serial, word)


def on_linux(name: str, scripts: list[str]) -> dict[str, Ended]:
    """The same on this machine's Linux, in a box. Raises OSError where there is no bubblewrap."""
    word = secrets.token_hex(8)
    with tempfile.TemporaryDirectory() as directory:
        write(entries(name, word), Path(directory))
        box = ["bwrap", "--unshare-all", "--uid", "0", "--gid", "0", "--bind", directory, "/"]
        box += ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--die-with-parent"]
        command = [*box, "/bin/sh", "/programs/all", *(f"{each}.bash" for each in scripts)]
        done = run_within(command, capture_output=True, check=False, seconds=LIMIT)
        return results(done.stdout.decode(errors="replace"), word)


def write(files: list[Entry], place: Path) -> None:
    """Makes a folder of the entries, without devices."""
    for entry in merged(files):
        path = place / entry.path
        if stat.S_ISDIR(entry.mode):
            path.mkdir(exist_ok=True)
        elif stat.S_ISLNK(entry.mode):
            path.symlink_to(entry.content.decode())
        elif stat.S_ISREG(entry.mode):
            path.write_bytes(entry.content)
            path.chmod(stat.S_IMODE(entry.mode))


def difference(linux: Ended | None, ours: Ended | None) -> str:
    """The lines that differ, and the status; "" if none do, and both ended."""
    if not linux or not ours:
        return f"no end on {'the kernel' if linux else 'Linux: mend the script'}"
    lines = [[*each.said.splitlines(), f"status {each.status}"] for each in (linux, ours)]
    return "\n".join([*unified_diff(*lines, "Linux", "kernel", lineterm="", n=0)][:LINES])


def compare(name: str, scripts: list[str]) -> Iterator[tuple[str, str]]:
    """Each script of a set, and the difference."""
    linux, ours = on_linux(name, scripts), on_kernel(name, KERNEL, scripts)
    for each in scripts:
        said = linux.get(each)
        changes = difference(said, ours.get(each))
        lines = len(said.said.splitlines()) if said else 0
        result = "other lines" if changes else "as on Linux"
        print(f"| {name} | {each} | {lines} | {result} |", flush=True)
        yield f"{name}/{each}", changes


def main() -> int:
    """Runs the command line; returns the exit status."""
    wanted = sys.argv[1:] or sets()
    chosen: dict[str, list[str]] = {}
    for each in wanted:
        name, _, script = each.partition("/")
        if name not in sets() or (script and script not in script_names(name)):
            raise CommandError(f"SET={each}: there are {', '.join(sets())}, and SET/PROGRAM of one")
        chosen.setdefault(name, []).extend([script] if script else script_names(name))
    print("| set | program | lines of output | result |\n|---|---|---:|---|")
    told = [each for name, scripts in chosen.items() for each in compare(name, scripts)]
    for name, changes in told:
        if changes:
            print(f"\n{name}:\n{changes}")
    return int(any(changes for _, changes in told))


if __name__ == "__main__":
    sys.exit(in_a_line("make debian", main))

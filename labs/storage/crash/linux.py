"""Three replays of one state: e2fsck's, Debian's Linux's and our kernel's give the same files.

    .venv/bin/python -m labs.storage.crash.linux --states 40 --seed 2010

Workloads of the laboratory run in the library, which records their requests. States that power cuts
leave of them become partitions of one disk; both kernels mount each and say what is on it. e2fsck
replays a copy, and debugfs reads that.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import random
import re
import struct
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from labs.storage.crash.building import ROOT, VARIANTS, build, variant_named
from labs.storage.crash.guest import KERNEL, SECONDS, Recording, dump_state
from labs.storage.crash.laboratory import Laboratory, jobs_for
from labs.storage.crash.log import SECTOR, read_log
from labs.tools.guest.initramfs import archive
from labs.tools.guest.package import PackageError
from labs.tools.guest.programs import busybox, guest_root
from labs.tools.machine.command import in_a_line
from labs.tools.machine.linux import linux_machine, said_by
from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import Config, Drive

FIRST = 5  # the number of a logical partition
GAP = 63  # sectors between the table of a logical partition and itself
ON_A_DISK = 20
LINUX, EXTENDED = 0x83, 0x05
SCRIPT = """\
disk=/dev/hdb; [ -e /dev/sda ] && disk=/dev/sda
mkdir -p /mnt; sleep 1
n={first}; while [ $n -le {last} ]; do
	echo "state $n"
	mount -t ext4 $disk$n /mnt || echo "no mount"
	cd /mnt
	find . ! -path ./lost+found | sort | xargs stat -c '%n %f %h %s %Y %N'
	find . -type f | sort | xargs -r md5sum
	cd /; umount /mnt; n=$((n + 1))
done
echo "all states"
"""
FILE = re.compile(r"^([0-9a-f]{32})  \./(.*)$", re.MULTILINE)
NAME = re.compile(r"^\./(\S+) [0-9a-f]+ \d+ \d+ \d+", re.MULTILINE)


@dataclass(frozen=True)
class Sample:
    """A state, and what it is called."""

    name: str
    image: bytes


def samples(laboratory: Laboratory, variants: Sequence[str], count: int) -> Iterator[Sample]:
    """States of seeded workloads, two of each: on all kinds of file systems, in turn."""
    chance = random.Random(laboratory.seed)
    kinds = [variant_named(name) for name in variants]
    jobs = [job for job in jobs_for(kinds, laboratory.seed, count) if not job[1].small]
    for number, (variant, workload) in enumerate(chance.sample(jobs, -(-count // 2))):
        log = laboratory.scratch / "log"
        program = laboratory.start(variant, workload, save=log, prefixes=0)
        program.run(workload)
        program.close()
        before = laboratory.image(variant, workload.image).read_bytes()
        recording = Recording(before, list(read_log(log)), [])
        for position, missing in recording.cuts(2, laboratory.seed + number):
            lost = ",".join(map(str, sorted(missing)))
            name = f"{variant.name}:{workload.name}:{position}{lost and f'-{lost}'}"
            yield Sample(name, recording.state(position, missing))


def write_partitions(path: Path, images: Sequence[bytes]) -> None:
    """A disk with logical partitions, a chain of tables."""
    strides = [GAP + len(image) // SECTOR for image in images]
    starts = [GAP + sum(strides[:number]) for number in range(len(images) + 1)]

    def entry(kind: int, start: int, sectors: int) -> bytes:
        return struct.pack("<B3sB3sII", 0, bytes(3), kind, bytes(3), start, sectors)

    def write_table(at: int, *entries: bytes) -> None:
        file.seek(at * SECTOR + 446)
        file.write(b"".join(entries).ljust(64, b"\0") + b"\x55\xaa")

    with path.open("wb") as file:
        file.truncate(starts[-1] * SECTOR)
        write_table(0, entry(EXTENDED, GAP, starts[-1] - GAP))
        for number, image in enumerate(images):
            here = entry(LINUX, GAP, len(image) // SECTOR)
            more = number + 1 < len(images)
            after = entry(EXTENDED, starts[number + 1] - GAP, strides[number + 1]) if more else b""
            write_table(starts[number], here, after)
            begin = (starts[number] + GAP) * SECTOR
            for at in range(0, len(image), 4096):
                if any(image[at : at + 4096]):
                    file.seek(begin + at)
                    file.write(image[at : at + 4096])


def said_of_states(said: str, count: int) -> list[str]:
    """What a kernel says of each. Raises RuntimeError when it did not come to its end."""
    said = re.sub(r"^hdb\d+: .*\n", "", said.replace("\r", ""), flags=re.M)  # our kernel's log
    if "\nall states" not in said:
        raise RuntimeError(f"a kernel did not come to its end: {said[-1500:]}")
    parts = re.split(r"^state \d+\n", said.partition("\nall states")[0] + "\n", flags=re.M)
    if len(parts) != count + 1:
        raise RuntimeError(f"{len(parts) - 1} states of {count}")
    return parts[1:]


def ask_ours(disk: Path, script: str, place: Path) -> str:
    """What our kernel says."""
    root = place / "our-initramfs"
    root.write_bytes(archive(guest_root(ROOT / "build/user/bin", busybox(), (), script)))
    machine = Config(
        boot="direct",
        kernel=KERNEL,
        initramfs=root,
        drives=(Drive(disk, 1),),
        settings=(("cmd", "/bin/sh /etc/command"), ("disk", "dma-polled")),
        guest_limit=SECONDS,
        wall_limit=SECONDS,
    )
    return run(machine).serial


def ask_linux(disk: Path, script: str, place: Path) -> str:
    """What Linux says."""
    limits = {"guest_limit": SECONDS, "wall_limit": SECONDS, "memory": 128}
    machine = linux_machine(place, script, [Drive(disk, 1)], **limits)
    return said_by(run(machine).serial)[0]


def on_host(image: bytes, place: Path) -> tuple[set[str], set[tuple[str, str]]]:
    """All names, and the sums of files, after e2fsck's replay."""
    with tempfile.TemporaryDirectory(dir=place) as name:
        path, folder = Path(name, "image"), Path(name, "files")
        path.write_bytes(image)
        folder.mkdir()
        dump_state(path, folder)
        every = [each for each in folder.rglob("*") if each.name != "lost+found"]
        sums = {
            (hashlib.md5(each.read_bytes()).hexdigest(), str(each.relative_to(folder)))
            for each in every
            if each.is_file() and not each.is_symlink()
        }
        return {str(each.relative_to(folder)) for each in every}, sums


def compare(chosen: Sequence[Sample], place: Path) -> Iterator[str]:
    """A line for each state of which the three do not say the same. Raises PackageError."""
    disk = place / "disk"
    write_partitions(disk, [sample.image for sample in chosen])
    script = SCRIPT.format(first=FIRST, last=FIRST + len(chosen) - 1)
    ours = said_of_states(ask_ours(disk, script, place), len(chosen))
    linux = said_of_states(ask_linux(disk, script, place), len(chosen))
    for sample, our, their in zip(chosen, ours, linux, strict=True):
        names, sums = on_host(sample.image, place)
        if our != their:
            yield f"{sample.name}: ours:\n{our}Linux's:\n{their}"
        if set(NAME.findall(our)) != names or set(FILE.findall(our)) != sums:
            yield f"{sample.name}: ours:\n{our}e2fsck's: {sorted(names)} {sorted(sums)}"


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="labs.storage.crash.linux", description=__doc__)
    parser.add_argument("--states", type=int, default=40)
    parser.add_argument("--seed", type=int, default=2010)
    parser.add_argument("--variants", default=",".join(VARIANTS))
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="crash-") as name:
        place = Path(name)
        laboratory = Laboratory(build(), place, options.seed)
        every = samples(laboratory, options.variants.split(","), options.states)
        while chosen := list(itertools.islice(every, ON_A_DISK)):
            try:
                for problem in compare(chosen, place):
                    wrong += 1
                    print(f"WRONG {problem}")
            except PackageError as error:
                print(f"no Linux to ask: {error}", file=sys.stderr)
                return 1
            print(f"{len(chosen)} states: e2fsck, Linux and our kernel replayed them", flush=True)
    print(f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(in_a_line("crash.linux", main))

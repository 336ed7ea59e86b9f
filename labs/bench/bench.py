"""`make bench`: what operations cost and how the processor is shared, by the same programs on Linux
and on our kernel.

    python -m labs.bench.bench --kernel build/lesson6/kernel.elf --programs BENCH_GLIBC BENCH \
        --shares SHARES

Both kernels run in the same machine, whose time goes by instructions, so the figures are the same
each time, on any host. Linux is Debian's package. The table goes to README.md in
this folder; where the package cannot be had, our figures are printed, and the table stays.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from labs.bench import shares
from labs.bench.shares import Shares, SharesError
from labs.bench.table import Peer, Side, age_of, replace_table, table
from labs.tools.guest.initramfs import archive, folder, regular
from labs.tools.guest.package import PackageError
from labs.tools.machine import linux
from labs.tools.machine.bounded import run_within
from labs.tools.machine.command import Options, in_a_line
from labs.tools.machine.qemu_command import Config, ConfigError, qemu_command, quoted
from labs.tools.machine.work_folder import environment_in, work_folder

README = Path(__file__).with_name("README.md")
LINE = re.compile(r"^(\w+) (\w+) (?:(\d+) from \d+ to \d+|none|error (\d+))$", re.MULTILINE)
END = re.compile(r"^end$", re.MULTILINE)
MEMORY_MIB = 64
WALL_SECONDS = 500
SHARES_SHIFT = 4
"""62.5 million instructions a second: a second is long enough for a quantum, and soon over."""


class BenchError(Exception):
    """The figures cannot be had; the text says why."""


def figures(output: str) -> dict[tuple[str, str], int | None]:
    """The figures in a machine's output, by program and row; None where the kernel has no such
    call. Raises BenchError for a row that failed, and for a run that did not come to its end."""
    output = output.replace("\r\n", "\n")
    found = {}
    for match in LINE.finditer(output):
        program, row, instructions, error = match.groups()
        if error:
            raise BenchError(f"{program}: {row} failed with error {error}")
        found[program, row] = int(instructions) if instructions else None
    if not END.search(output):
        last = "\n".join(output.splitlines()[-8:])
        raise BenchError(f"the programs did not come to their end; the last lines:\n{last}")
    return found


def boot(config: Config) -> str:
    """Runs a machine until it ends itself, and returns what came over its serial line."""
    with work_folder("bench") as directory:
        serial = directory / "serial"
        command = qemu_command(config, directory, ["-serial", f"file:{quoted(serial)}"])
        try:
            done = run_within(
                command,
                env=environment_in(directory),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                seconds=WALL_SECONDS,
                check=False,
            )
            said = done.stderr.strip()
        except subprocess.TimeoutExpired:
            said = f"stopped after {WALL_SECONDS} seconds"
        output = serial.read_text(errors="replace") if serial.exists() else ""
    return f"{output}\n{said}"


def machine(kernel: Path, shift: int = 0, **fields: object) -> Config:
    """The machine for both kernels: an instruction takes 2^shift nanoseconds, and TSC cycles count
    nanoseconds. debug_exit lets QEMU end by itself when the guest switches it off."""
    return Config(
        boot="direct", kernel=kernel, memory=MEMORY_MIB, icount=shift, debug_exit=True, **fields
    )


def root_of(programs: Sequence[Path], directory: Path) -> Path:
    """An initramfs with the programs in /bin."""
    path = directory / "initramfs"
    entries = [regular(f"bin/{each.name}", each.read_bytes()) for each in programs]
    path.write_bytes(archive([folder("dev"), *entries]))
    return path


def paths_in_guest(programs: Sequence[Path]) -> list[str]:
    """Where root_of puts them: the first one runs the others."""
    return [f"/bin/{each.name}" for each in programs]


def linux_kernel() -> tuple[Path, Peer]:
    """Debian's kernel for the i386 without PAE. Raises PackageError."""
    package = linux.linux_package()
    return linux.linux_kernel(package), Peer(package.name, package.version, package.sha256)


def measure_linux(kernel: Path, programs: Sequence[Path]) -> Side:
    """The figures of Linux, with the first program as its first process."""
    first, *others = paths_in_guest(programs)
    words = f"{linux.WORDS} rdinit={first} -- {' '.join(others)}"
    with tempfile.TemporaryDirectory() as name:
        root = root_of(programs, Path(name))
        extra = ("-initrd", str(root))
        return figures(boot(machine(kernel, command_line=words, extra=extra)))


def measure_ours(kernel: Path, programs: Sequence[Path]) -> Side:
    """The figures of our kernel, with the first program run from its prompt."""
    script = f"run {' '.join(paths_in_guest(programs))}"
    with tempfile.TemporaryDirectory() as name:
        root = root_of(programs, Path(name))
        return figures(boot(machine(kernel, script=script, initramfs=root)))


def shares_ours(kernel: Path, program: Path) -> dict[str, Shares]:
    """How our classes share the processor. Raises BenchError."""
    with tempfile.TemporaryDirectory() as name:
        root = root_of([program], Path(name))
        config = machine(kernel, SHARES_SHIFT, script=shares.script(), initramfs=root)
        return shares.shares_of(boot(config), shares.CLASSES)


def shares_linux(kernel: Path, program: Path) -> dict[str, Shares]:
    """How Linux does. Raises BenchError."""
    with tempfile.TemporaryDirectory() as name:
        extra = ("-initrd", str(root_of([program], Path(name))))
        words = shares.linux_words(linux.WORDS)
        config = machine(kernel, SHARES_SHIFT, command_line=words, extra=extra)
        return shares.shares_of(boot(config), [shares.LINUX])


def hash_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def emulator_version() -> str:
    """QEMU's version, as "7.2.0"."""
    done = subprocess.run(
        ["qemu-system-i386", "--version"], capture_output=True, text=True, check=True
    )
    return re.search(r"version (\d[\d.]*)", done.stdout)[1].rstrip(".")


def origin(peer: Peer, programs: Sequence[Path]) -> str:
    """What the figures were measured with, for the lines below the table."""
    lines = [f"Linux: Debian's {peer.name}, version {peer.version}, SHA-256\n`{peer.sha256}`.\n"]
    for each in programs:
        lines.append(f"{each.name}: {each.stat().st_size:,} bytes, SHA-256\n`{hash_of(each)}`.\n")
    lines.append(f"The machine: QEMU {emulator_version()}, {MEMORY_MIB} MiB.\n")
    return "\n" + "\n".join(lines)


def compare(kernel: Path, programs: Sequence[Path], sharer: Path) -> int:
    """Measures both sides, prints the tables, and keeps them where there is Linux's, too."""
    ours, our_shares = measure_ours(kernel, programs), shares_ours(kernel, sharer)
    try:
        linux_path, peer = linux_kernel()
    except PackageError as error:
        print(table(ours, {}), shares.table(our_shares), sep="\n")
        print(f"Linux was not measured, and the tables are as they were: {error}", file=sys.stderr)
        print(age_of(README))
        return 0
    all_shares = our_shares | shares_linux(linux_path, sharer)
    figures = table(ours, measure_linux(linux_path, programs))
    new = f"{figures}\n{shares.table(all_shares)}{origin(peer, [*programs, sharer])}"
    README.write_text(replace_table(README.read_text(), new))
    print(f"{new}\nThe tables are in {README}.")
    return 0


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = Options("make bench")
    parser.add_argument("--kernel", type=Path, required=True)
    parser.add_argument("--programs", type=Path, nargs="+", required=True)
    parser.add_argument("--shares", type=Path, required=True)
    options = parser.parse_args()
    try:
        return compare(options.kernel, options.programs, options.shares)
    except (BenchError, SharesError, ConfigError) as error:
        print(f"make bench: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(in_a_line("make bench", main))

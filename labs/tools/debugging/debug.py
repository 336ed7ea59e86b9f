"""`make gdb`: the machine, halted before its first instruction, under gdb.

    python -m labs.tools.debugging.debug --build build/storage [the options of make run]
        --drive IMAGE ...   hdb, hdc and hdd
        --batch FILE        runs a file of gdb commands (or Python, *.py) and ends
        --dump FILE         looks at what the command `core` has written, instead of a machine
        --server WAY        for an editor: DAP at a port of this computer, or at stdin and stdout
                            ("stdio"); or gdb's MI there ("mi")

GDB=NAME in the environment prefers that gdb. The exit status is gdb's.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from labs.tools.debugging import editor
from labs.tools.debugging.core import Core, serving_core
from labs.tools.debugging.gdb.border import BORDER
from labs.tools.debugging.gdb.guest_programs import write_programs
from labs.tools.debugging.past.history import History
from labs.tools.debugging.past.preload import when_recording, when_repeating
from labs.tools.debugging.past.server import serving
from labs.tools.debugging.steps import Step, write_steps
from labs.tools.guest.programs import COMMAND
from labs.tools.machine.bounded import Patience
from labs.tools.machine.command import typed_path
from labs.tools.machine.gdb_protocol import StubError
from labs.tools.machine.qemu_command import Config, ConfigError, Drive, check_config
from labs.tools.machine.qemu_process import start_qemu
from labs.tools.machine.run import guarded, machine_config, machine_options
from labs.tools.machine.work_folder import environment_in, work_folder

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).resolve().parent
ENTRY = HERE / "gdb" / "apprentice.py"
USER = ROOT / "build" / "user"
START_SECONDS = 60
POLL_SECONDS = 0.01
PIPE_BYTES = 1 << 20  # what Linux allows to all

# C functions that the kernel's assembly calls with the address of a struct trap_frame.
WITH_FRAME = ("trap_dispatch", "syscall_dispatch", "trap_return", "task_before_user")
OUTERMOST = ("_start", "enable_paging", "higher_half", "thread_begin")
LONGEST = 256  # bytes of them: what is after the last one may be far
LABEL = re.compile(r"^(\w+) [Tt] (\S+)$", re.MULTILINE)
CALL = re.compile(rf"^ *(\w+):\s+call +\w+ <(?:{'|'.join(WITH_FRAME)})>$", re.MULTILINE)

NO_DAP = """\
{gdb} does not speak DAP; gdb 14 and later with Python do. Another gdb: GDB=NAME. An editor that \
speaks gdb's MI: SERVER=mi (labs/debugging.md)"""
NO_PYTHON = """\
make gdb: {gdb} was built without Python. So the commands of this course are missing, and 16-bit
make gdb: code is shown as 32-bit code. Fix: apt-get install gdb (it replaces gdb-minimal).
make gdb: The serial line goes to {console}
"""


class DebugError(ConfigError):
    """The session cannot begin; the text names the cause and the remedy."""


def debug(
    config: Config,
    batch: Path | None = None,
    steps: Sequence[Step] = (),
    user: Path = USER,
    server: str = "",
    core: Path | None = None,
) -> int:
    """Starts the machine and gdb, and returns gdb's exit status when it ends.

    The loader's symbols are looked for next to config.kernel, those of the guest's programs in the
    folder `user`, or in the programs themselves. The machine's time is that of its instructions, so
    that a session goes the same way each time, whatever the host does; while it waits, the host's
    time goes by, unless it is a replay: a person at the prompt would see the guest's time race.
    `batch` is a file of gdb commands to run instead of a dialogue, `server` a way to an editor
    (editor.py); `steps` are done before. `core` is a file that the command `core` has written: gdb
    sees that instead of a machine. Raises ConfigError.
    """
    config = config if config.replay or steps else replace(config, skip_idle=False)
    check_config(config)
    gdb, has_python = find_gdb()
    if server not in ("", editor.MI) and not (has_python and editor.has_dap(gdb)):
        raise DebugError(NO_DAP.format(gdb=gdb))
    with work_folder("gdb") as directory:
        files = symbol_files(config, directory)
        (directory / "symbols").write_text("\n".join(files))
        if steps:
            write_steps(directory / "steps", steps)
        if config.initramfs:
            write_programs(config.initramfs, user, directory)
        if has_python and not config.replay:
            config = replace(config, record=directory / "record")
        machine = opened(core, directory) if core else started_qemu(config, directory, has_python)
        with machine:
            command = gdb_command(gdb, has_python, directory, files, batch)
            return run_gdb(command, directory, server)


def find_gdb() -> tuple[str, bool]:
    """A gdb that knows the i386, and whether it has Python; those that have it come first."""
    found = []
    for name in filter(None, (os.environ.get("GDB"), "gdb", "gdb-multiarch")):
        trial = ["-nx", "-batch", "-ex", "set architecture i8086", "-ex", "python print('has it')"]
        if not shutil.which(name):
            continue
        tried = subprocess.run([name, *trial], capture_output=True, text=True, check=False)
        if "Undefined item" not in tried.stderr:
            found.append((name, "has it" in tried.stdout))
    if not found:
        raise DebugError("no gdb here knows the i386; fix: apt-get install gdb (or gdb-multiarch)")
    return max(found, key=lambda each: each[1])


@contextmanager
def opened(path: Path, directory: Path) -> Iterator[None]:
    """A core instead of QEMU; nothing comes through its pipes. Raises DebugError."""
    try:
        core = Core(path)
    except (OSError, ValueError) as error:
        raise DebugError(str(error)) from error
    for name in ("serial.in", "serial.out", "interrupts"):
        make_pipe(directory / name)
    with serving_core(core, directory / "gdb"):
        yield


@contextmanager
def started_qemu(config: Config, directory: Path, has_python: bool) -> Iterator[None]:
    """The machine, not running yet; its socket, its pipes and what it writes are in `directory`."""
    stub = directory / ("front" if has_python else "gdb")
    channels = ["-S", "-gdb", f"unix:{stub},server=on,wait=off"]
    if has_python:
        for name in ("serial.in", "serial.out", "interrupts"):
            make_pipe(directory / name)
        channels += ["-d", "int,cpu_reset", "-D", str(directory / "interrupts")]
    way, name = ("pipe", "serial") if has_python else ("file", "console")
    channels += ["-chardev", f"{way},id=serial,path={directory / name}"]
    channels += ["-serial", "chardev:serial"]
    process = start_qemu(config, directory, channels, environment=environment_of(config))
    try:
        wait_for(stub, process)
        with ExitStack() as stack:
            if has_python:
                history = History(config, directory / "past", is_growing=not config.replay)
                stack.enter_context(serving(history, directory / "gdb", stub, process))
            yield
    finally:
        process.kill()
        process.wait()


def environment_of(config: Config) -> dict[str, str]:
    """What QEMU needs to record, or to repeat. Raises DebugError."""
    try:
        if config.record:
            return when_recording(config.record)
        return when_repeating() if config.replay else {}
    except StubError as error:
        raise DebugError(str(error)) from error


def make_pipe(path: Path) -> None:
    """A pipe that QEMU writes to, so that a long session does not fill the disk. It is held open
    here until the end: QEMU must not lose its reader. It has room for what comes while gdb is busy:
    a guest whose serial line is full gives characters up."""
    os.mkfifo(path)
    held = os.open(path, os.O_RDWR)
    with suppress(PermissionError):
        fcntl.fcntl(held, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    """Waits until QEMU has made its socket. Raises DebugError with QEMU's words if it does not."""
    patience = Patience(START_SECONDS)
    while not path.exists():
        if process.poll() is not None or patience.is_over():
            words = (path.parent / "stderr").read_text(errors="replace").strip()
            raise DebugError(f"QEMU did not start: {words or 'it gave no reason'}")
        time.sleep(POLL_SECONDS)


def gdb_command(
    gdb: str, has_python: bool, directory: Path, files: Sequence[str], batch: Path | None
) -> list[str]:
    """gdb without the user's own settings, which may know nothing of a bare machine."""
    command = [gdb, "-nx", "-q"]
    if has_python:
        command += ["-x", str(ENTRY)]
    else:
        sys.stderr.write(NO_PYTHON.format(gdb=gdb, console=directory / "console"))
        lines = [f"file {files[0]}", *(f"add-symbol-file {file}" for file in files[1:])]
        for line in ("set confirm off", *lines, f"target remote {directory / 'gdb'}"):
            command += ["-ex", line]
    return [*command, "-batch", "-x", str(batch)] if batch else command


def run_gdb(command: list[str], directory: Path, server: str = "") -> int:
    """Runs gdb in this terminal, or for an editor. Ctrl-C is gdb's; QEMU, in another session, does
    not see it."""
    signal.signal(signal.SIGINT, lambda *_: None)
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda number, _: sys.exit(128 + number))
    environment = {
        **environment_in(directory),
        "APPRENTICE_SESSION": str(directory),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if server and server != editor.MI:
        environment["APPRENTICE_EDITOR"] = "yes"
        command += ["-i", "dap"]
        return editor.serve(command, environment, ROOT, directory / "gdb", server)
    command += ["-i", "mi"] if server else []
    return subprocess.run(command, env=environment, cwd=ROOT, check=False).returncode


def symbol_files(config: Config, directory: Path) -> list[str]:
    """The ELF files for gdb, the kernel first: what unwinds a trap, and our own loader's, if that
    boots. The boot sector's is made here, the second stage's is next to the kernel."""
    files = [config.kernel, *trap_unwinding(config.kernel, directory)]
    stage2 = config.kernel.with_name("stage2.elf")
    if config.boot == "disk" and stage2.exists():
        sectors = stage2.with_suffix(".bin").stat().st_size // 512
        files += [stage2, boot_sector_symbols(sectors, directory)]
    return [str(file) for file in files]


def boot_sector_symbols(sectors: int, directory: Path) -> Path:
    """Assembles the boot sector once more, for its labels and lines: a flat file has none. In an
    ELF file it is the linker that gives the address, and ORG has nothing to say."""
    part = directory / "mbr.o"
    assemble = ["nasm", "-f", "elf32", "-g", "-F", "dwarf", "-I", "build/constants/"]
    assemble += [f"-DSTAGE2_SECTORS={sectors}"]
    assemble += ["--before", "%imacro org 1", "--before", "%endmacro"]
    run_tool([*assemble, "-o", str(part), "boot/mbr.asm"])
    return link(part, "-Ttext=0x7c00")


def trap_unwinding(kernel: Path, directory: Path) -> list[Path]:
    """A file that tells gdb how to go back beyond a trap or a system call, where the kernel's
    assembly has called C, and where there is nobody to go back to; none for a kernel without. For
    calls in C it says the same, but there gdb takes the kernel's own words, which come first."""
    code = run_tool([*tool("objdump"), "-d", "--no-show-raw-insn", str(kernel)])
    calls = [int(address, 16) for address in CALL.findall(code)]
    if not calls:
        return []
    labels = [
        (int(at, 16), name) for at, name in LABEL.findall(run_tool([*tool("nm"), str(kernel)]))
    ]
    labels = sorted(each for each in labels if "." not in each[1])
    lines, sections = ["border border"], [f"border={BORDER - 1:#x}"]
    for number, place in enumerate(calls):
        lines.append(f"entry entry{number}")
        sections.append(f"entry{number}={place:#x}")
    for (place, name), (end, _) in pairwise(labels):
        if name in OUTERMOST and end > place:
            lines.append(f"outermost {name}, {min(end - place, LONGEST)}")
            sections.append(f"{name}={place:#x}")
    source, part = directory / "entries.s", directory / "entries.o"
    lines = [f"\t{line}\n" for line in lines]
    source.write_text((HERE / "gdb" / "entries.s").read_text() + "".join(lines))
    run_tool([*tool("cc"), "-c", "-o", str(part), str(source)])
    linked = link(part, *(f"--section-start={each}" for each in sections))
    names = [option for each in sections for option in ("-R", each.partition("=")[0])]
    run_tool([*tool("objcopy"), *names, "-R", ".text", "-w", "-N", "*", str(linked)])
    return [linked]


def link(part: Path, *places: str) -> Path:
    """Links an object file; the options say where to."""
    linked = part.with_suffix(".elf")
    run_tool([*tool("ld"), *places, "-e", "0", "-o", str(linked), str(part)])
    return linked


def tool(name: str) -> list[str]:
    """The command for a tool of the i386 set."""
    return run_tool([str(ROOT / "labs/tools/setup/toolchain.sh"), name]).split()


def run_tool(command: list[str]) -> str:
    """Runs a tool of the build and returns its output. Raises DebugError with its words."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise DebugError(f"{command[0]} failed: {done.stderr.strip()}")
    return done.stdout


def with_command(config: Config, command: str | None, script: str = COMMAND) -> Config:
    """The guest runs CMD, which its files have already as `script`, instead of a shell for a
    person."""
    if command is None:
        return config
    return replace(config, settings=(*config.settings, ("cmd", f"/bin/sh /{script}")))


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = machine_options("make gdb")
    parser.add_argument("--drive", type=Path, action="append", default=[], help="hdb, hdc, hdd")
    parser.add_argument("--batch", type=Path, help="a file of gdb commands to run instead")
    parser.add_argument("--server", type=editor.server, default="", help="gdb for an editor")
    parser.add_argument("--dump", type=typed_path, help="what the command `core` has written")
    options = parser.parse_args()
    drives = tuple(Drive(path.resolve(), unit) for unit, path in enumerate(options.drive, start=1))
    options.build = options.build.resolve()
    batch = options.batch.resolve() if options.batch else None
    config = with_command(replace(machine_config(options), drives=drives), options.command)
    user = options.user.parent if options.user else USER
    return debug(config, batch, user=user, server=options.server, core=options.dump)


if __name__ == "__main__":
    sys.exit(guarded("make gdb", main))

"""Runs a command in a box that needs no namespaces, for a container, which is a box itself.

    python -I landlock_box.py [--read PATH]... [--write FOLDER]... -- COMMAND...

Landlock lets it read and write what was named, and nothing else; seccomp lets it make no connection
and send no signal. What it has started ends with it, and with the process that started this. As
root it is started by setpriv, as another user (labs/tools/grading/sandbox.py).
"""

from __future__ import annotations

import argparse
import ctypes
import os
import platform
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import pyseccomp
from py_landlock import AccessFs, Landlock

LEAST_ABI = 3  # Linux 6.2: the first that keeps a file from being cut
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
DEVICES = ("null", "zero", "full", "random", "urandom")
# Signals to others, connections, and what looks into another process.
FORBIDDEN = (
    *("kill", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal"),
    *("socket", "io_uring_setup", "ptrace", "process_vm_readv", "process_vm_writev"),
    *("pidfd_getfd", "add_key", "request_key", "keyctl", "bpf", "perf_event_open", "userfaultfd"),
    *("msgget", "semget", "shmget", "mq_open", "unshare", "setns"),
)
OF_32_BITS = ("socketcall", "ipc")


def main(arguments: Sequence[str]) -> int:
    """Returns the command's exit status; 128 and the signal's number for one that a signal ends."""
    made = argparse.ArgumentParser(allow_abbrev=False)
    made.add_argument("--read", action="append", default=[], type=Path)
    made.add_argument("--write", action="append", default=[], type=Path)
    made.add_argument("command", nargs="+")
    options = made.parse_args(arguments)
    signal_at_end(signal.SIGKILL)
    owner = os.getpid()
    keeper = os.fork()
    if keeper == 0:
        os._exit(kept(options, owner))
    return status_of(os.waitpid(keeper, 0)[1])


def kept(options: argparse.Namespace, owner: int) -> int:
    """The process that keeps the command: in a session of its own, so that it outlives its
    starter, and ends what is left. What the command starts and leaves becomes its child."""
    os.setsid()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    signal_at_end(signal.SIGTERM)
    if os.getppid() != owner:
        return 1
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    temporary = Path(tempfile.mkdtemp(prefix="box-"))
    try:
        child = os.fork()
        if child == 0:
            begin(options, temporary)
        while True:
            ended, status = os.wait()
            if ended == child:
                return status_of(status)
    except SystemExit:  # of the handler
        return 128 + signal.SIGTERM
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        end_children()
        shutil.rmtree(temporary, ignore_errors=True)


def begin(options: argparse.Namespace, temporary: Path) -> NoReturn:
    """Becomes the command. A failure is one of the box, and said."""
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal_at_end(signal.SIGKILL)
        os.environ["TMPDIR"] = str(temporary)
        close_files(options.read, [*options.write, temporary])
        close_calls()
        os.execvp(options.command[0], options.command)
    except BaseException as error:
        sys.stderr.write(f"box: {options.command[0]}: {error}\n")
        sys.stderr.flush()
        os._exit(127)


def close_files(read: Sequence[Path], write: Sequence[Path]) -> None:
    """Landlock: what is not named is not there to be opened."""
    rules = Landlock(strict=False)
    if rules.abi_version < LEAST_ABI:
        raise RuntimeError("Linux 6.2 or later is needed")
    of_files = AccessFs.READ_FILE | AccessFs.EXECUTE
    changed = AccessFs.WRITE_FILE | AccessFs.TRUNCATE
    folder = of_files | AccessFs.READ_DIR
    made = AccessFs.MAKE_REG | AccessFs.MAKE_DIR | AccessFs.MAKE_SYM | AccessFs.REFER
    made |= AccessFs.REMOVE_FILE | AccessFs.REMOVE_DIR | AccessFs.MAKE_FIFO
    for path in (*read, Path("/proc")):
        rules.add_path_rule(path, access=folder if path.is_dir() else of_files)
    for path in write:
        rules.add_path_rule(path, access=folder | changed | made)
    for name in DEVICES:
        rules.add_path_rule(f"/dev/{name}", access=AccessFs.READ_FILE | AccessFs.WRITE_FILE)
    rules.apply()


def close_calls() -> None:
    """seccomp: calls that Landlock knows nothing of."""
    rules = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    if platform.machine() == "x86_64":
        rules.add_arch(pyseccomp.Arch.X86)
        for name in OF_32_BITS:
            rules.add_rule(pyseccomp.ERRNO(1), name)
    for name in FORBIDDEN:
        with suppress(OSError, ValueError):  # one that this libseccomp does not know
            rules.add_rule(pyseccomp.ERRNO(1), name)
    only_abort = pyseccomp.Arg(2, pyseccomp.NE, signal.SIGABRT)
    rules.add_rule(pyseccomp.ERRNO(1), "tgkill", only_abort)
    rules.load()


def end_children() -> None:
    """Ends all that is left; what they had started becomes ours, and ends, too."""
    mine = Path(f"/proc/self/task/{os.getpid()}/children")
    with suppress(ChildProcessError):
        while True:
            for each in mine.read_text().split():
                os.kill(int(each), signal.SIGKILL)
            os.wait()


def prctl(what: int, value: int) -> None:
    """One of the kernel's settings of a process."""
    ctypes.CDLL(None).prctl(what, value, 0, 0, 0)


def signal_at_end(number: int) -> None:
    """The signal that comes when our parent ends."""
    prctl(PR_SET_PDEATHSIG, number)


def status_of(status: int) -> int:
    """What a shell says of a process that has ended."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

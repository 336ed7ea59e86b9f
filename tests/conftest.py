"""What all the test suites share: building, once for all processes, and running the kernel."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

import pytest

from labs.tools.machine import qemu_command
from labs.tools.machine.machine import Machine, run
from labs.tools.machine.qemu_command import Config, DiskError, Drive
from labs.tools.machine.result import Result
from tests.support.building import WHOLE, make

pytest_plugins = [
    "labs.tools.grading.lab",
    "labs.tools.grading.lab_plan",
    "labs.tools.grading.test_timer",
    "tests.seconds",
]

ROOT = Path(__file__).resolve().parent.parent
KERNEL = "build/storage/kernel.elf"
BACKSTOP = 600  # real seconds: a machine that others use, too, may be ten times as slow
IMAGES = {"disk": "build/storage/boot.img", "grub": "build/storage/grub.iso"}


def pytest_configure() -> None:
    """What a command inherits does not depend on who started the tests, and how: nohup, or a
    shell's background, ignores signals."""
    for each, action in (
        (signal.SIGHUP, signal.SIG_DFL),
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGQUIT, signal.SIG_DFL),
    ):
        if signal.getsignal(each) == signal.SIG_IGN:
            signal.signal(each, action)
    os.environ["LANGUAGE"] = "en"  # what commands say is compared
    os.environ["PATH"] += ":/usr/sbin:/sbin"  # e2fsprogs: an ordinary user's PATH is without them
    gc.disable()  # what is collected stays: no use to look for garbage in it, again and again


def pytest_collection_finish() -> None:
    """From now on there is garbage, but none in what there is now."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With --kernel: tests that read what a later lesson's kernel does in another way may fail.
    tests/later_kernels.toml has them all, and why."""
    kernel = config.getoption("--kernel")
    if not kernel:
        return
    known = tomllib.loads((ROOT / "tests/later_kernels.toml").read_text())["difference"]
    why = {
        test: each["why"] for each in known if kernel in each["kernels"] for test in each["tests"]
    }
    for item in items:
        test = item.nodeid.partition("[")[0]
        if test in why:
            item.add_marker(pytest.mark.xfail(reason=why[test]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Names what this machine could not prove, in the file NOT_PROVED: make test ends with it."""
    path = os.environ.get("NOT_PROVED")
    if not path or "PYTEST_XDIST_WORKER" in os.environ:
        return
    skipped = terminalreporter.stats.get("skipped", [])
    counts = Counter(each.longrepr[2].removeprefix("Skipped: ") for each in skipped)
    words = "all tests ran" if not skipped else f"{len(skipped)} tests did not run here"
    lines = [f"make test: {words}", *(f"  {count:4} {why}" for why, count in counts.items())]
    Path(path).write_text("\n".join(lines) + "\n")


def pytest_sessionstart() -> None:
    """Boot disks are read with io_uring, if this QEMU and this kernel have it: what is in the page
    cache is there at once, and no thread has to wait for a processor."""
    command = ["qemu-system-i386", "-machine", "none", "-display", "none", "-monitor", "stdio"]
    command += ["-drive", f"if=none,format=raw,readonly=on,aio=io_uring,file={__file__}"]
    with suppress(OSError):
        done = subprocess.run(command, input=b"quit\n", capture_output=True, check=False)
        qemu_command.AT_ONCE = [] if done.returncode else ["aio=io_uring"]


@pytest.fixture(scope="session")
def build() -> Callable[[str], Path]:
    """Builds a file of the Makefile ("build/..."), and returns its path. One process at a time, and
    each process once: no test changes a source."""

    @cache
    def build_target(target: str) -> Path:
        make(target)
        return ROOT / target

    return build_target


@pytest.fixture(scope="session")
def guest_config(build: Callable[[str], Path]) -> Callable[..., Config]:
    """The storage lab's kernel as a machine. `fields` are those of Config; `boot_errors` are the
    sectors of the boot disk that cannot be read."""

    def config(script: str | None, boot_errors: Sequence[int] = (), **fields: object) -> Config:
        fields.setdefault("wall_limit", BACKSTOP)
        boot = fields.setdefault("boot", "direct")
        fields.setdefault("image", build(IMAGES[boot]) if boot in IMAGES else None)
        drives = list(fields.pop("drives", ()))
        if boot_errors:
            errors = tuple(DiskError("read", lba) for lba in boot_errors)
            drives.append(Drive(fields.pop("image"), 0, errors=errors))
        return Config(kernel=build(KERNEL), script=script, drives=tuple(drives), **fields)

    return config


@pytest.fixture(scope="session")
def guest(guest_config: Callable[..., Config]) -> Callable[..., Result]:
    """Runs a script to its end: guest("help", boot="disk").check()."""
    return lambda script, **fields: run(guest_config(script, **fields))


@pytest.fixture(scope="session")
def guest_machine(guest_config: Callable[..., Config]) -> Callable[..., Machine]:
    """A machine to talk to: with guest_machine(None, boot="disk") as machine."""
    return lambda script, **fields: Machine(guest_config(script, **fields))


@pytest.fixture
def one_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not depend on clock rates is graded at one, in half the time; with WHOLE=yes at
    both. That both count is in test_grader_plan.py; make prove has both."""
    from labs.tools.grading import grade_parts

    if not WHOLE:
        monkeypatch.setattr(grade_parts, "Job", partial(grade_parts.Job, modes=("icount",)))

"""setup.sh on a machine whose every tool is a fake."""

from __future__ import annotations

import os
import re
import resource
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.building import ROOT
from tests.support.fake_machine import PYTHON, SUDO, TOOLS, FakeMachine


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path)


@pytest.fixture
def ready(machine: FakeMachine) -> FakeMachine:
    """A machine on which `setup.sh test` has been run."""
    machine.install()
    done = machine.run("setup.sh", "test")
    assert done.returncode == 0, done.stderr
    assert machine.calls() == ["pip labs/tools/setup/requirements.txt"]
    return machine


INSTALL = "apt-get install -y --no-install-recommends --no-remove"
OF_SUITE = "pip labs/tools/setup/requirements-suite.txt"

# ---- setup.sh: packages -------------------------------------------------------------------------


def test_second_time_is_silent_and_quick(ready: FakeMachine) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = ready.run("setup.sh", "test")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert ready.calls() == []
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.1


def test_root_installs_exactly_what_is_missing(machine: FakeMachine) -> None:
    machine.install()
    machine.remove("nasm", "gdb", "mformat", "grub-mkrescue")
    done = machine.run("setup.sh", "test")
    assert done.returncode == 0, done.stderr
    assert machine.calls() == [
        "apt-get update",
        f"{INSTALL} nasm gdb grub-common grub-pc-bin mtools",
        "pip labs/tools/setup/requirements.txt",
    ]
    assert "nasm is missing (assembles the boot code): needs nasm\n" in done.stderr
    assert machine.run("setup.sh", "test").stderr == ""


def test_run_needs_less_than_test(machine: FakeMachine) -> None:
    machine.install()
    machine.remove("gdb", "shellcheck", "git", "xorriso", "grub-mkrescue")
    done = machine.run("setup.sh", "run")
    assert done.returncode == 0, done.stderr
    assert machine.calls() == ["pip labs/tools/setup/requirements-run.txt"]


def test_only_the_suite_has_a_browser(machine: FakeMachine) -> None:
    """A machine that cannot have one goes on, and is asked once."""
    machine.install()
    machine.remove("chromium", "clang", "ld.lld", "ccache")
    assert machine.run("setup.sh", "test").returncode == 0
    assert machine.calls() == ["pip labs/tools/setup/requirements.txt"]
    failing = machine.flag("fail-install")
    done = machine.run("setup.sh", "suite")
    asked = [OF_SUITE, "apt-get update", f"{INSTALL} chromium clang lld ccache"]
    assert (done.returncode, machine.calls()) == (0, asked)
    words = "without chromium clang lld ccache: make test skips what needs it, and says so"
    assert words in done.stderr
    assert machine.run("setup.sh", "suite").stderr == ""
    failing.unlink()
    (machine.tree / "build/setup-suite").unlink()
    assert machine.run("setup.sh", "suite").returncode == 0
    assert machine.calls() == ["apt-get update", f"{INSTALL} chromium clang lld ccache"]


def test_packages_of_the_suite_may_be_missing(ready: FakeMachine) -> None:
    """They are asked for each time, until they are there; a changed list asks again."""
    failing = ready.flag("fail-pip")
    for _ in range(2):
        done = ready.run("setup.sh", "suite")
        assert (done.returncode, ready.calls()) == (0, [OF_SUITE])
        assert "requirements-suite.txt: make test skips what needs it" in done.stderr
    failing.unlink()
    assert ready.run("setup.sh", "suite").stderr == ""
    assert ready.calls() == [OF_SUITE]
    assert (ready.run("setup.sh", "suite").stderr, ready.calls()) == ("", [])
    with (ready.tree / "labs/tools/setup/requirements-suite.txt").open("a") as file:
        file.write("# another version\n")
    assert ready.run("setup.sh", "test").stderr == ""
    assert (ready.run("setup.sh", "suite").stderr, ready.calls()) == ("", [OF_SUITE])


def test_bare_machine(machine: FakeMachine) -> None:
    done = machine.run("setup.sh", "run")
    assert done.returncode == 0, done.stderr
    _, install, _ = machine.calls()
    packages = install.removeprefix(INSTALL).split()
    assert len(packages) == len(set(packages))
    assert {"make", "nasm", "gcc-i686-linux-gnu", "gcc", "libext2fs-dev", "python3"} < set(packages)


def test_user_installs_through_sudo(machine: FakeMachine) -> None:
    machine.install()
    machine.remove("nasm")
    machine.fake("sudo", SUDO)
    assert machine.run("setup.sh", "run", FAKE_USER="1000").returncode == 0
    sudo = "sudo env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300"
    calls = machine.calls()
    assert calls[:2] == [f"{sudo} update", "apt-get update"]
    assert calls[2] == f"{sudo} install -y --no-install-recommends --no-remove nasm"


@pytest.mark.parametrize(
    ("without", "user", "said"),
    [
        ("sudo", "1000", "neither root nor sudo. Ask for, or run as root: apt-get install"),
        ("apt-get", "0", "no apt-get here. Install by other means what Debian calls: nasm"),
    ],
)
def test_no_way_to_install(machine: FakeMachine, without: str, user: str, said: str) -> None:
    machine.install()
    machine.fake("sudo", SUDO)
    machine.remove("nasm", without)
    done = machine.run("setup.sh", "run", FAKE_USER=user)
    assert done.returncode == 1
    assert said in done.stderr
    assert machine.calls() == []


OTHER_SYSTEMS = {
    "dnf": "Try: sudo dnf install ShellCheck bubblewrap nasm\n",
    "pacman": "Try: sudo pacman -S --needed bubblewrap nasm shellcheck\n",
    "brew": "Try: brew install nasm shellcheck; no package is known for: bubblewrap\n",
}
OS_RELEASES = {
    "fedora": ('NAME="Fedora Linux"\nID=fedora\nVERSION_ID=43\n', "dnf"),
    "alma": ('ID="almalinux"\nID_LIKE="rhel centos fedora"\n', "dnf"),
    "arch": ("ID=arch\nBUILD_ID=rolling\n", "pacman"),
    "manjaro": ("ID=manjaro\nID_LIKE=arch\n", "pacman"),
    "void": ('ID="void"\n', None),
    "none": (None, None),
}


@pytest.fixture
def without_apt(machine: FakeMachine) -> FakeMachine:
    machine.install()
    machine.remove("nasm", "bwrap", "shellcheck", "apt-get")
    return machine


@pytest.mark.parametrize("manager", OTHER_SYSTEMS)
def test_names_of_other_systems(without_apt: FakeMachine, manager: str) -> None:
    without_apt.fake(manager, "exit 1")
    done = without_apt.run("setup.sh", "test", OS_RELEASE="/dev/null")
    assert done.returncode == 1
    assert f"no apt-get here. {OTHER_SYSTEMS[manager]}" in done.stderr
    assert without_apt.calls() == []


@pytest.mark.parametrize("system", OS_RELEASES)
def test_the_system_says_what_its_packages_are_called(
    without_apt: FakeMachine, system: str
) -> None:
    """Homebrew is there, too. A system that is not known gets what is there, if anything is."""
    text, manager = OS_RELEASES[system]
    place = without_apt.home / "os-release"
    if text:
        place.write_text(text)
    if manager:
        without_apt.fake("brew", "exit 1")
        without_apt.fake("dnf" if manager == "pacman" else "pacman", "exit 1")
    done = without_apt.run("setup.sh", "test", OS_RELEASE=str(place))
    otherwise = "Install by other means what Debian calls: nasm bubblewrap shellcheck\n"
    assert done.returncode == 1
    assert f"no apt-get here. {OTHER_SYSTEMS.get(manager, otherwise)}" in done.stderr


def test_every_package_has_a_name_elsewhere() -> None:
    rows = [line.split() for line in (TOOLS / "packages.txt").read_text().splitlines()]
    packages = {name for row in rows if row and row[0][0] != "#" for name in row[2].split(",")}
    names = [line.split() for line in (TOOLS / "names.txt").read_text().splitlines()]
    table = {row[0]: row[1:] for row in names if row and row[0] != "#"}
    assert packages <= table.keys()
    assert all(len(row) == 3 for row in table.values())


NPM = """
echo "npm $*" >>"$FAKES/calls"
[ ! -e "$FAKES/fail-npm" ] || { echo "npm ERR! no way"; exit 1; }
"""


def test_a_page_needs_node_and_npm(machine: FakeMachine) -> None:
    """Installed for make page only, once; again when the list of npm's packages changes."""
    machine.install()
    machine.remove("node", "zstd")
    machine.fake("npm", NPM)
    page = machine.tree / "labs/page"
    page.mkdir()
    for name in ("package.json", "package-lock.json"):
        (page / name).write_text("{}")
    assert machine.run("setup.sh", "test").returncode == 0
    assert machine.calls() == ["pip labs/tools/setup/requirements.txt"]
    failing = machine.flag("fail-npm")
    done = machine.run("setup.sh", "page")
    assert done.returncode == 1 and "is there a network? Run it again" in done.stderr
    failing.unlink()
    npm = "npm ci --prefix build/npm --ignore-scripts --no-audit --no-fund --omit=dev"
    assert machine.calls() == ["apt-get update", f"{INSTALL} nodejs zstd", npm]
    assert machine.run("setup.sh", "page").returncode == 0
    assert machine.calls() == [npm]
    assert (machine.run("setup.sh", "page").stderr, machine.calls()) == ("", [])
    (page / "package-lock.json").write_text("{ }")
    assert machine.run("setup.sh", "page").returncode == 0
    assert machine.calls() == [npm]


def test_apt_fails(machine: FakeMachine) -> None:
    machine.install()
    machine.remove("nasm")
    machine.flag("fail-install")
    done = machine.run("setup.sh", "run")
    assert done.returncode == 100
    assert "E: no install today" in done.stderr
    assert "apt-get could not install: nasm" in done.stderr


def test_a_full_disk_is_told(machine: FakeMachine) -> None:
    """Here only the file that is written as a trial is on a full disk."""
    (machine.tree / "build").mkdir()
    (machine.tree / "build/room").symlink_to("/dev/full")
    machine.install()
    machine.remove("nasm", "apt-get")
    done = machine.run("setup.sh", "run")
    assert done.returncode != 0
    assert "is the disk full, or protected?" in done.stderr


@pytest.mark.parametrize(
    "said",
    [
        "ERROR: Could not install packages due to an OSError: [Errno 28] Kein Platz mehr",
        "E: You don't have enough free space in /var/cache/apt/archives/.",
        "dpkg: error processing archive a.deb: failed to write (No space left on device)",
    ],
)
def test_a_disk_is_told_that_was_full(machine: FakeMachine, said: str) -> None:
    """What could not be installed is gone again, and there is room for a trial."""
    machine.install()
    machine.remove("nasm")
    machine.fake("apt-get", f"echo {shlex.quote(said)}; exit 100")
    done = machine.run("setup.sh", "run")
    assert done.returncode != 0
    assert done.stderr.endswith("setup: the disk is full: make room, and run it again\n")


def test_apt_fails_to_update_only(machine: FakeMachine) -> None:
    machine.install()
    machine.remove("nasm")
    machine.flag("fail-update")
    done = machine.run("setup.sh", "run")
    assert done.returncode == 0
    assert "apt-get update failed" in done.stderr


def test_installed_but_not_found(machine: FakeMachine) -> None:
    machine.install()
    machine.remove("nasm")
    shutil.rmtree(machine.home / "packages/nasm")
    done = machine.run("setup.sh", "run")
    assert done.returncode == 1
    assert "installed, but still not found" in done.stderr


def test_missing_header(machine: FakeMachine) -> None:
    machine.install()
    flag = machine.flag("no-ext2fs.h>")
    done = machine.run("setup.sh", "run")
    assert f"{INSTALL} libext2fs-dev" in machine.calls()
    assert done.returncode == 1
    flag.unlink()
    assert machine.run("setup.sh", "run").returncode == 0


def test_command_that_went_comes_back(ready: FakeMachine) -> None:
    ready.remove("nasm")
    assert ready.run("setup.sh", "test").returncode == 0
    assert ready.calls() == ["apt-get update", f"{INSTALL} nasm"]


def test_plain_gcc_is_enough(machine: FakeMachine) -> None:
    machine.install()
    machine.remove("i686-linux-gnu-gcc", "i686-linux-gnu-ld")
    machine.fake("ld", "exit 0")
    assert machine.run("setup.sh", "test").returncode == 0
    assert machine.calls() == ["pip labs/tools/setup/requirements.txt"]


def test_no_grub_on_another_machine(machine: FakeMachine) -> None:
    machine.install()
    shutil.rmtree(machine.home / "lib")
    done = machine.run("setup.sh", "test", FAKE_MACHINE="aarch64")
    assert done.returncode == 0
    assert "no GRUB for the PC is packaged for aarch64" in done.stderr
    assert machine.calls() == ["pip labs/tools/setup/requirements.txt"]
    assert machine.run("setup.sh", "test", FAKE_MACHINE="aarch64").stderr == ""


def test_wrong_cross_is_not_for_apt(machine: FakeMachine) -> None:
    machine.install()
    done = machine.run("setup.sh", "run", CROSS="foo-")
    assert done.returncode == 1
    assert "CROSS=foo- does not work" in done.stderr
    assert "unset CROSS" in done.stderr
    assert machine.calls() == []


def test_unknown_use(machine: FakeMachine) -> None:
    done = machine.run("setup.sh", "dance")
    assert done.returncode == 1
    assert "usage" in done.stderr


# ---- setup.sh: .venv ----------------------------------------------------------------------------


def test_half_made_environment_is_made_anew(machine: FakeMachine) -> None:
    machine.install()
    leftover = machine.tree / ".venv/lib/leftover"
    leftover.mkdir(parents=True)
    assert machine.run("setup.sh", "run").returncode == 0
    assert not leftover.exists()
    assert (machine.tree / ".venv/bin/python").exists()


def test_pip_fails_and_the_next_time_not(machine: FakeMachine) -> None:
    machine.install()
    flag = machine.flag("fail-pip")
    done = machine.run("setup.sh", "run")
    assert done.returncode == 1
    assert "ERROR: no way to the packages" in done.stderr
    assert "is there a network?" in done.stderr
    flag.unlink()
    (machine.tree / ".venv/leftover").touch()
    assert machine.run("setup.sh", "run").returncode == 0
    assert not (machine.tree / ".venv/leftover").exists()


def test_interrupted_addition_is_made_anew(machine: FakeMachine) -> None:
    """Killed while pip adds to a good .venv: nothing says that it is good any more."""
    machine.install()
    assert machine.run("setup.sh", "run").returncode == 0
    machine.flag("fail-pip")
    assert machine.run("setup.sh", "test").returncode == 1
    assert not list((machine.tree / ".venv").glob("ready-*"))


def test_test_adds_to_run(machine: FakeMachine) -> None:
    machine.install()
    assert machine.run("setup.sh", "run").returncode == 0
    kept = machine.tree / ".venv/kept"
    kept.touch()
    assert machine.run("setup.sh", "test").returncode == 0
    assert kept.exists()
    assert machine.calls() == [
        "pip labs/tools/setup/requirements-run.txt",
        "pip labs/tools/setup/requirements.txt",
    ]
    assert machine.run("setup.sh", "run").stderr == ""


def test_changed_requirements(ready: FakeMachine) -> None:
    with (ready.tree / "labs/tools/setup/requirements.txt").open("a") as file:
        file.write("# another version\n")
    assert ready.run("setup.sh", "run").stderr == ""
    assert ready.run("setup.sh", "test").returncode == 0
    assert ready.calls() == ["pip labs/tools/setup/requirements.txt"]


def test_changed_script_asks_for_another_look_only(ready: FakeMachine) -> None:
    with (ready.tree / "labs/tools/setup/setup.sh").open("a") as file:
        file.write("# another line\n")
    done = ready.run("setup.sh", "test")
    assert (done.returncode, done.stderr, ready.calls()) == (0, "", [])


def test_moved_tree(ready: FakeMachine) -> None:
    ready.tree = ready.tree.rename(ready.home / "elsewhere")
    assert ready.run("setup.sh", "test").returncode == 0
    assert ready.calls() == ["pip labs/tools/setup/requirements.txt"]


def test_another_python(ready: FakeMachine) -> None:
    python = ready.bin / "python3"
    python.rename(ready.bin / "gone")
    ready.fake("python3", PYTHON)
    (ready.bin / "gone").unlink()
    (ready.tree / ".venv/bin/python").unlink()
    assert ready.run("setup.sh", "test").returncode == 0
    assert ready.calls() == ["pip labs/tools/setup/requirements.txt"]


def test_python_is_too_old(machine: FakeMachine) -> None:
    machine.install()
    machine.flag("old-python")
    done = machine.run("setup.sh", "run")
    assert done.returncode == 1
    assert "Python 3.11 or later is needed" in done.stderr
    assert str(machine.bin / "python3") in done.stderr
    assert machine.calls() == []


def test_python_without_venv(machine: FakeMachine) -> None:
    machine.install()
    machine.flag("no-venv")
    machine.run("setup.sh", "run")
    assert f"{INSTALL} python3 python3-venv" in machine.calls()


def test_named_python_comes_first(machine: FakeMachine) -> None:
    machine.install()
    machine.fake("snake", 'echo snake >>"$FAKES/calls"\n' + PYTHON)
    assert machine.run("setup.sh", "run", PYTHON="snake").returncode == 0
    assert machine.calls()[0] == "snake"


def test_two_at_once(machine: FakeMachine) -> None:
    machine.install()
    machine.flag("slow-pip")
    both = [
        subprocess.Popen(
            [machine.tree / "labs/tools/setup/setup.sh", "run"],
            env=machine.environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    said = [process.communicate()[1] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sum("waiting for another set-up" in text for text in said) == 1
    assert machine.calls() == ["pip labs/tools/setup/requirements-run.txt"]


# ---- the lists ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["-run", "-suite", ""])
def test_every_package_is_pinned(name: str) -> None:
    for line in (TOOLS / f"requirements{name}.txt").read_text().splitlines():
        assert re.fullmatch(r"|#.*|-r requirements-(?:run|box).txt|[\w.-]+==[\w.]+", line), line


def test_no_host_names() -> None:
    for path in TOOLS.glob("*"):
        if path.suffix in (".sh", ".txt") or path.name == "doctor.py":
            assert not re.search(r"https?://|\.(org|com|net|io)\b", path.read_text()), path


# ---- temporary.sh -------------------------------------------------------------------------------


def temporary(**settings: str | Path) -> str:
    """Where it puts the temporary files of tests."""
    settings = {"TMPDIR": "", "MEMORY_NEEDED": "1", **{k: str(v) for k, v in settings.items()}}
    command = [ROOT / "labs/tools/setup/temporary.sh"]
    environment = {**os.environ, **settings}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_temporary_files_go_to_memory_if_it_can_take_them(tmp_path: Path) -> None:
    """The folder `tmp_path` stands for the memory."""
    assert temporary(MEMORY_FOLDER=tmp_path) == str(tmp_path)
    assert temporary(MEMORY_FOLDER=tmp_path, TMPDIR="/var/tmp") == "/var/tmp"
    assert temporary(MEMORY_FOLDER=tmp_path, MEMORY_NEEDED=str(1 << 50)) == "/tmp"
    for no_place in (tmp_path / "none", "/proc"):  # nobody writes to /proc
        assert temporary(MEMORY_FOLDER=no_place) == "/tmp"
    assert list(tmp_path.iterdir()) == []

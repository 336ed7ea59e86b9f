"""make distributions, with a system that is a few of this machine's programs: no network needed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
import time
from pathlib import Path

import pytest

from labs.tools.machine.bounded import STEP_SECONDS, Patience, run_within

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "labs/tools/setup/distributions.sh"
SECONDS = 600

# What the tool itself and the tests run inside.
INSIDE = ("bash", "cat", "env", "grep", "id", "ls", "mkdir", "setpriv", "setsid", "sleep", "umount")
EMPTY = ("etc/sudoers.d", "proc", "dev", "root", "tmp", "srv", "usr")
LINKS = ("bin", "sbin", "lib", "lib64")
ACCOUNTS = {"passwd": "root:x:0:0::/root:/bin/bash\n", "group": "root:x:0:\n", "shadow": ""}

MMDEBSTRAP = """
for word; do case $word in *.tar.part) cp "$FAKES/system.tar" "$word" ;; esac; done
echo "$*" >>"$FAKES/calls"
"""
APT_GET = 'echo "http://deb.example/debian|Debian|Debian"'


def libraries_of(program: Path) -> set[Path]:
    """The shared libraries of a program, its loader included, as ldd names them."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return {Path(word) for word in re.findall(r"(/\S+) \(0x", said)}


def make_system(archive: Path) -> None:
    """A root with the programs of INSIDE in usr/bin, as a tar."""
    programs = {name: Path(shutil.which(name, path="/usr/bin:/bin") or name) for name in INSIDE}
    libraries = set().union(*map(libraries_of, programs.values()))
    root = archive.with_suffix("")
    for name in (*EMPTY, "usr/bin", "usr/sbin"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name, text in ACCOUNTS.items():
        (root / "etc" / name).write_text(text)
    for name in LINKS:
        (root / "usr" / name).mkdir(exist_ok=True)
        (root / name).symlink_to(f"usr/{name}")
    for name, path in programs.items():
        shutil.copy(path, root / "usr/bin" / name)
    for path in libraries:
        place = root / path.relative_to("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    with tarfile.open(archive, "w") as tar:
        tar.add(root, arcname=".")


class Tree:
    """A repository with the tool and a file, and a PATH in which nothing reaches a network."""

    def __init__(self, home: Path) -> None:
        self.home, self.tree = home, home / "tree"
        (self.tree / "labs/tools/setup").mkdir(parents=True)
        shutil.copy(TOOL, self.tree / "labs/tools/setup")
        (home / "bin").mkdir()
        for name, text in (("mmdebstrap", MMDEBSTRAP), ("apt-get", APT_GET)):
            fake = home / "bin" / name
            fake.write_text(f"#!/bin/bash\n{text}\n")
            fake.chmod(0o755)
        self.git("init", "-q")
        self.commit("first")

    def git(self, *words: str) -> None:
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        subprocess.run(["git", *who, *words], cwd=self.tree, check=True)

    def commit(self, text: str) -> None:
        """Changes the file, and keeps that as a commit."""
        (self.tree / "file").write_text(text + "\n")
        self.git("add", "file", "labs")
        self.git("commit", "-qm", text)

    def environment(self, command: str, asked: dict[str, str]) -> dict[str, str]:
        """What the tool finds: the fakes come first in PATH."""
        keep = {name: value for name, value in os.environ.items() if name in ("HOME", "LANG")}
        path = f"{self.home}/bin:{os.environ['PATH']}:/usr/sbin:/sbin"
        return {**keep, "PATH": path, "FAKES": str(self.home), "COMMAND": command, **asked}

    def run(self, command: str = "true", **asked: str) -> subprocess.CompletedProcess[str]:
        """Tries a command in each system that is asked for."""
        return run_within(
            [str(self.tree / TOOL.relative_to(ROOT))],
            SECONDS,
            env=self.environment(command, asked),
            capture_output=True,
            text=True,
            check=False,
        )

    def start(self, command: str, **asked: str) -> subprocess.Popen:
        """The same, without waiting for its end."""
        tool, quiet = self.tree / TOOL.relative_to(ROOT), subprocess.DEVNULL
        environment = self.environment(command, asked)
        return subprocess.Popen([tool], env=environment, stdout=quiet, stderr=quiet)

    def log(self, name: str) -> str:
        """What commands printed whose log has this name's beginning."""
        logs = (self.tree / "build/distributions").glob(f"{name}-*.log")
        return "".join(path.read_text() for path in logs if "bootstrap" not in path.name)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A system's archive; skips where nobody may make namespaces and devices."""
    if os.geteuid() != 0:
        pytest.skip("only root makes a container with devices")
    trial = ["unshare", "--mount", "--pid", "--fork", "mount", "--make-rprivate", "/"]
    if subprocess.run(trial, capture_output=True, check=False).returncode != 0:
        pytest.skip("no namespaces may be made here")
    path = tmp_path_factory.mktemp("system") / "system.tar"
    make_system(path)
    return path


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.fixture
def system(tree: Tree, archive: Path) -> Tree:
    """With a system to fetch."""
    (tree.home / "system.tar").symlink_to(archive)
    return tree


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"DIST": "11"}, "DIST=11: must be 12, 13 or next"),
        ({"DIST": "12 sid"}, "DIST=sid: must be 12, 13 or next"),
        ({"WHO": "student"}, "WHO=student: must be user or root"),
        ({"LIMIT": "1h"}, "LIMIT=1h: must be a number of seconds"),
    ],
)
def test_mistyped_requests(tree: Tree, asked: dict[str, str], says: str) -> None:
    """They are refused before anything is fetched, or root is asked for."""
    done = tree.run(**asked)
    assert (done.returncode, done.stderr) == (1, f"distributions: {says}\n")
    assert not (tree.tree / "build").exists()


def test_a_command_in_a_bare_system(system: Tree) -> None:
    """As both users, in a clone of the last commit, with nothing of this machine in sight."""
    (system.tree / "file").write_text("not committed\n")
    seen = "ls /old; ls; echo $SECRET; ls /proc | grep -c '^[0-9]'"
    done = system.run(f"id -u; id -gn; echo $HOME; cat file; {seen}", DIST="13", SECRET="secret")
    assert done.returncode == 0, done.stderr + system.log("debian13")
    assert system.log("debian13-user").split()[:4] == ["1000", "student", "/srv/student", "first"]
    assert system.log("debian13-root").split()[:4] == ["0", "root", "/root", "first"]
    for who in ("user", "root"):
        rest = system.log(f"debian13-{who}").split()[4:]
        assert rest[:2] == ["file", "labs"]
        assert int(rest[2]) <= 5, "processes of this machine are seen"
    fetched = (system.home / "calls").read_text().splitlines()
    assert len(fetched) == 1
    assert " trixie " in fetched[0] and fetched[0].endswith(" http://deb.example/debian")
    assert len(re.findall(r"Debian 13, (?:user|root): .*: status 0 after \d+ s", done.stderr)) == 2


def test_orphans_have_a_parent(system: Tree) -> None:
    """Process 1 is no part of the command, and collects what ends without its parent."""
    orphan = "bash -c 'sleep 0.1 & echo $$' && sleep 1"
    ended = "for file in /proc/[0-9]*/stat; do cat $file; done | grep -c ' Z ' || true"
    done = system.run(f"echo $$; {orphan}; {ended}", DIST="12", WHO="user")
    assert done.returncode == 0, done.stderr
    shell, _, zombies = system.log("debian12-user").split()
    assert int(shell) > 1
    assert zombies == "0"


def test_jobs_can_be_controlled(system: Tree) -> None:
    """The command has a session and a process group of its own: process 1 is in neither."""
    seen = "read -r _ _ _ _ group session _ </proc/$$/stat; echo $group $session; true"
    assert system.run(seen, DIST="12", WHO="user").returncode == 0
    assert not {0, 1} & set(map(int, system.log("debian12-user").split()))


def test_a_command_that_fails(system: Tree) -> None:
    """Its status and its last lines are shown; one that takes too long is ended."""
    done = system.run("echo the cause; exit 3", DIST="12", WHO="user")
    assert done.returncode == 1
    assert re.search(r"status 3 after \d+ s .*\nthe cause\n", done.stderr)
    done = system.run("sleep 50", DIST="12", WHO="root", LIMIT="1", KEEP="yes")
    assert (done.returncode, "not ended within 1 s (LIMIT)" in done.stderr) == (1, True)


def test_a_system_that_is_kept(system: Tree) -> None:
    """What is installed and built stays; the clone goes on to the last commit."""
    assert system.run("mkdir build", DIST="12", WHO="user").returncode == 0
    system.commit("second")
    asked = {"DIST": "bookworm", "WHO": "user"}
    done = system.run("cat file; mkdir build/more", KEEP="yes", **asked)
    assert done.returncode == 0, done.stderr
    assert "second" in system.log("debian12-user")
    done = system.run("ls build", **asked)
    assert (done.returncode, "ls: " in done.stderr) == (1, True), "without KEEP it is bare again"


def test_nothing_stays(system: Tree) -> None:
    """A process that a command left behind ends with it."""
    nap = "34567"
    assert system.run(f"sleep {nap} & true", DIST="12", WHO="root").returncode == 0
    assert becomes(False, "sleep", nap)


@pytest.mark.parametrize("who", ["user", "root"])
def test_the_tool_is_ended(system: Tree, who: str) -> None:
    """Whatever ends it, what it runs ends, too."""
    nap = "45678" if who == "user" else "56789"
    tool = system.start(f"sleep {nap}; true", DIST="12", WHO=who)
    try:
        assert becomes(True, "sleep", nap)
    finally:
        tool.terminate()
        tool.wait()
    assert becomes(False, "sleep", nap)


def becomes(wanted: bool, *words: str) -> bool:
    """Waits until a process with this command line is there, or is not."""
    patience = Patience(SECONDS)
    while is_running(*words) is not wanted:
        if patience.is_over():
            return False
        time.sleep(STEP_SECONDS)
    return True


def is_running(*words: str) -> bool:
    """Does any process here have this command line?"""
    wanted = "\0".join(words).encode() + b"\0"
    return any(read(path) == wanted for path in Path("/proc").glob("[0-9]*/cmdline"))


def read(path: Path) -> bytes:
    """Empty when the process has gone meanwhile."""
    try:
        return path.read_bytes()
    except OSError:
        return b""

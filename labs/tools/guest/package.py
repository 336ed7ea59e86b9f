"""Files out of Debian's packages for the i386: fetched with apt, kept outside of the tree.

The machine's own packages and package lists stay as they are. apt checks what it fetches against
Debian's signature; what is kept is checked by its hash each time.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

RELEASE = "bookworm"
"""The last release of Debian with kernels for the i386."""

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SECONDS = 300


class PackageError(Exception):
    """A package cannot be had; the text names the package and the cause."""


@dataclass(frozen=True)
class Package:
    """A package that is here: `sha256` is that of `path`, the .deb file."""

    name: str
    version: str
    sha256: str
    path: Path

    def extract(self, member: str, target: Path) -> Path:
        """Copies one file ("bin/busybox") out of the package to `target`. Raises PackageError."""
        with tempfile.TemporaryDirectory() as name:
            run(self.name, ["dpkg-deb", "-x", str(self.path), name])
            source = Path(name, member)
            if not source.is_file():
                raise PackageError(f"{self.name} {self.version} has no file {member}")
            target.parent.mkdir(parents=True, exist_ok=True)
            unfinished = target.with_name(f"{target.name}.{os.getpid()}")
            shutil.copyfile(source, unfinished)
            unfinished.replace(target)
        return target


def cache_directory() -> Path:
    """Where packages stay between runs: PACKAGES, or the user's cache. It may be thrown away."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("PACKAGES") or home / "apprentice")


def fetch(name: str) -> Package:
    """The package of this name, out of the cache or from this machine's mirror (MIRROR names
    another one). Raises PackageError; without a network that takes seconds. Waits for others only
    if it must fetch."""
    found = kept(name, cache_directory())
    if found:
        return found
    with locked(cache_directory()) as cache:
        return kept(name, cache) or download(name, cache)


def newest_dependency(name: str, prefix: str) -> str:
    """The first package with this prefix that `name`, which holds nothing itself, stands for."""
    answer = cache_directory() / f"{name}.stands-for"
    if answer.exists():
        return answer.read_text()
    with locked(cache_directory()) as cache:
        if not answer.exists():
            update(name, cache)
            shown = run(name, apt(cache, "apt-cache", "depends", name))
            found = [word for word in shown.split() if word.startswith(prefix) and word != name]
            if not found:
                raise PackageError(f"{name} of Debian {RELEASE} depends on no {prefix}...")
            unfinished = answer.with_suffix(f".{os.getpid()}")
            unfinished.write_text(found[0])
            unfinished.replace(answer)
    return answer.read_text()


@contextmanager
def locked(cache: Path) -> Iterator[Path]:
    """The cache, for one process at a time. Raises PackageError when it cannot be written."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        lock = (cache / "lock").open("w")
    except OSError as error:
        raise PackageError(f"no place to keep packages: {error}") from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield cache


def kept(name: str, cache: Path) -> Package | None:
    """The package in the cache; None when there is none, or when it is no longer what it was."""
    for path in sorted(cache.glob(f"{name}_*_*.deb")):
        stamp = path.with_suffix(".sha256")
        package = describe(name, path)
        if stamp.exists() and stamp.read_text() == package.sha256:
            return package
    return None


def describe(name: str, path: Path) -> Package:
    """What the file is; apt writes NAME_VERSION_ARCHITECTURE.deb, and %3a for a colon."""
    version = path.name.split("_")[1].replace("%3a", ":")
    return Package(name, version, hashlib.sha256(path.read_bytes()).hexdigest(), path)


def download(name: str, cache: Path) -> Package:
    """Fetches a package into the cache. Raises PackageError."""
    update(name, cache)
    files = bring(name, [name], cache, cache)
    if len(files) != 1:
        raise PackageError(f"{name}: apt-get left {len(files)} packages, not one")
    package = describe(name, files[0])
    package.path.with_suffix(".sha256").write_text(package.sha256)
    return package


def bring(said: str, packages: Sequence[str], cache: Path, target: Path) -> list[Path]:
    """Fetches packages ("dash", "dash=0.5.12-2") into a folder: whole ones, or none. Raises
    PackageError, which names `said`."""
    with tempfile.TemporaryDirectory(dir=target) as directory:
        run(said, apt(cache, "apt-get", "download", *packages), directory)
        return [path.replace(target / path.name) for path in Path(directory).glob("*.deb")]


def update(name: str, cache: Path) -> None:
    """Fetches the mirror's list of packages. Raises PackageError."""
    if shutil.which("apt-get") is None or not KEYRING.exists():
        raise PackageError(f"{name}: needs Debian's apt-get, and {KEYRING} to check what it brings")
    (cache / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (cache / "status").touch()
    mirror = os.environ.get("MIRROR") or mirror_of_machine(name)
    (cache / "sources.list").write_text(f"deb [signed-by={KEYRING}] {mirror} {RELEASE} main\n")
    run(name, apt(cache, "apt-get", "-oAPT::Update::Error-Mode=any", "update"))


def mirror_of_machine(name: str) -> str:
    """Where this machine's own apt gets Debian's packages. Raises PackageError elsewhere."""
    form = "$(ORIGIN)|$(LABEL)|$(REPO_URI)"
    shown = run(name, ["apt-get", "indextargets", "--format", form, "Identifier: Packages"])
    for line in shown.splitlines():
        origin, label, mirror = line.split("|", 2)
        if (origin, label) == ("Debian", "Debian"):
            return mirror
    raise PackageError(
        f"{name}: apt on this machine has no mirror of Debian (or has not run `apt-get update`); "
        "the variable MIRROR can name one"
    )


def apt(cache: Path, command: str, *words: str) -> list[str]:
    """A command of apt's on lists of our own: the i386's, whatever the machine is."""
    options = {
        "APT::Architecture": "i386",
        "APT::Architectures": "i386",
        "APT::Sandbox::User": "",
        "Dir::State::Lists": str(cache / "lists"),
        "Dir::State::status": str(cache / "status"),  # nothing is installed; apt locks its folder
        "Dir::Cache::pkgcache": str(cache / "pkgcache.bin"),  # the lists as apt has read them
        "Dir::Cache::srcpkgcache": "",
        "Dir::Etc::SourceList": str(cache / "sources.list"),
        "Dir::Etc::SourceParts": "-",
        "Acquire::Languages": "none",
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
        "Acquire::Retries": "1",
        "Acquire::http::Timeout": "20",
    }
    return [command, "-q", *(f"-o{name}={value}" for name, value in options.items()), *words]


def run(name: str, command: list[str], directory: str | None = None) -> str:
    """A command's output. Raises PackageError with what it said, when it fails."""
    keywords = {"cwd": directory, "env": {**os.environ, "LC_ALL": "C"}, "timeout": SECONDS}
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, **keywords)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PackageError(f"{name}: {error}") from error
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.startswith(("E:", "Err"))]
        said = "; ".join(lines[:2]) or done.stderr.strip()[-300:]
        raise PackageError(f"{name} cannot be fetched: {said}")
    return done.stdout

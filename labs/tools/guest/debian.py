"""Debian's programs for the i386 with all that they need, as a folder for the guest's root.

apt's own resolver chooses the packages, in a state of its own in which nothing is installed. They
stay in the cache, and this machine's packages as they are. Nothing of them is run here, only
unpacked.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from labs.tools.guest.alternatives import make_links
from labs.tools.guest.package import PackageError, apt, bring, cache_directory, locked, run, update

LEFT_OUT = ("doc", "man", "locale", "info", "lintian")
"""Folders of /usr/share that no program needs, and memory would be full of."""

ESSENTIAL = ("bash", "ncurses-base")
"""What no package names because every Debian has it: here a shell that starts the packages'
programs, where busybox's starts its own of the same name, and the terminals' descriptions."""

FORM = 2
"""The number of what new_root makes of the same packages: a kept root of another one is not
taken."""

INSTALLED = re.compile(r"^Inst (\S+) \((\S+) ", re.MULTILINE)


def debian_root(names: Sequence[str]) -> Path:
    """A folder with these packages and all that they depend on, unpacked; it stays in the cache,
    for the next call, too. Raises PackageError."""
    with locked(cache_directory()) as cache:
        if not known_root(names, cache).exists():
            place = new_root(resolve(names, cache), cache)
            link = known_root(names, cache)  # the lists may be new
            link.unlink(missing_ok=True)
            link.symlink_to(place.name)
        return known_root(names, cache).resolve()


def known_root(names: Sequence[str], cache: Path) -> Path:
    """A link to what apt chose of its lists as they are: asking it again takes six seconds."""
    lists = sorted(path for path in cache.glob("lists/*_*") if path.is_file())
    state = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in lists]
    return cache / "roots" / f"of-{digest_of(repr((FORM, list(names), state)))}"


def new_root(packages: Sequence[Path], cache: Path) -> Path:
    """The folder with these packages, in the cache."""
    names = "\n".join(path.name for path in packages)
    place = cache / "roots" / digest_of(f"{FORM}\n{names}")
    if not place.exists():
        place.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as directory:
            root = Path(directory, "root")
            unpack(packages, root)
            root.rename(place)
    return place


def digest_of(text: str) -> str:
    """A short name for a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def resolve(names: Sequence[str], cache: Path) -> list[Path]:
    """The packages that apt would install, fetched into the cache. Raises PackageError."""
    said = " ".join(names)
    if not (cache / "sources.list").exists():
        update(said, cache)
    try:
        return fetched(said, chosen(names, cache), cache)
    except PackageError:
        update(said, cache)  # the list was older than the mirror
        return fetched(said, chosen(names, cache), cache)


def chosen(names: Sequence[str], cache: Path) -> list[tuple[str, str]]:
    """The names and versions that apt would install: seconds of a processor, so it is asked once.
    Raises PackageError."""
    words = ("--no-install-recommends", "--yes", "--simulate", "install")
    said = run(" ".join(names), apt(cache, "apt-get", *words, *names))
    found = INSTALLED.findall(said)
    if not found:
        raise PackageError(f"{' '.join(names)}: apt has chosen no package")
    return found


def fetched(said: str, packages: Sequence[tuple[str, str]], cache: Path) -> list[Path]:
    """Their files, of which apt fetches those that are not in the cache. Raises PackageError."""
    archives = cache / "archives"
    archives.mkdir(exist_ok=True)

    def files(name: str, version: str) -> list[Path]:
        return list(archives.glob(f"{name}_{version.replace(':', '%3a')}_*.deb"))

    missing = [f"{name}={version}" for name, version in packages if not files(name, version)]
    if missing:
        bring(said, missing, cache, archives)
    return sorted(path for each in packages for path in files(*each))


def postinst(package: Path) -> str:
    """The script that would run when the package is installed; "" if it has none."""
    with tempfile.TemporaryDirectory() as directory:
        run(package.name, ["dpkg-deb", "-e", str(package), directory])
        script = Path(directory, "postinst")
        return script.read_text(errors="replace") if script.exists() else ""


def unpack(packages: Sequence[Path], root: Path) -> None:
    """Everything into one folder, without what no program needs, with the links of
    update-alternatives."""
    root.mkdir()
    scripts = []
    for each in packages:
        run(each.name, ["dpkg-deb", "-x", str(each), str(root)])
        scripts.append(postinst(each))
    for name in LEFT_OUT:
        shutil.rmtree(root / "usr/share" / name, ignore_errors=True)
    make_links(scripts, root)

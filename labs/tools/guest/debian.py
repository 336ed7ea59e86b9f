"""Debian's programs for the i386 with all that they need, as a folder for the guest's root.

apt's own resolver chooses the packages, in a state of its own in which nothing is installed. They
stay in the cache, and this machine's packages as they are. Nothing of them is run here, only
unpacked.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from labs.tools.guest.package import PackageError, apt, cache_directory, locked, run, update

LEFT_OUT = ("doc", "man", "locale", "info", "lintian")
"""Folders of /usr/share that no program needs, and memory would be full of."""

ALTERNATIVES = {"usr/bin/awk": ("gawk", "mawk"), "usr/bin/sh": ("dash",)}
"""Links that the installation of a package would make, to the first of these that is there."""

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
    return cache / "roots" / f"of-{digest_of(repr((list(names), state)))}"


def new_root(packages: Sequence[Path], cache: Path) -> Path:
    """The folder with these packages, in the cache."""
    place = cache / "roots" / digest_of("\n".join(path.name for path in packages))
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
    archives = cache / "archives"
    (archives / "partial").mkdir(parents=True, exist_ok=True)
    said = " ".join(names)
    words = (f"-oDir::Cache::archives={archives}", "--no-install-recommends", "--yes")
    if not (cache / "sources.list").exists():
        update(said, cache)
    try:
        run(said, apt(cache, "apt-get", *words, "--download-only", "install", *names))
    except PackageError:
        update(said, cache)  # the list was older than the mirror
        run(said, apt(cache, "apt-get", *words, "--download-only", "install", *names))
    chosen = run(said, apt(cache, "apt-get", *words, "--simulate", "install", *names))
    packages = []
    for name, version in INSTALLED.findall(chosen):
        packages += archives.glob(f"{name}_{version.replace(':', '%3a')}_*.deb")
    if not packages:
        raise PackageError(f"{said}: apt has chosen no package")
    return sorted(packages)


def unpack(packages: Sequence[Path], root: Path) -> None:
    """Everything into one folder, without what no program needs."""
    root.mkdir()
    for each in packages:
        run(each.name, ["dpkg-deb", "-x", str(each), str(root)])
    for name in LEFT_OUT:
        shutil.rmtree(root / "usr/share" / name, ignore_errors=True)
    for link, targets in ALTERNATIVES.items():
        found = [name for name in targets if (root / "usr/bin" / name).exists()]
        if found and not os.path.lexists(root / link):
            (root / link).symlink_to(found[0])

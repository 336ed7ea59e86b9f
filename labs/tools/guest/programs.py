"""What the guest has to run: the course's programs, Debian's busybox, and a folder of one's own.

Where busybox is there, its commands are those of the usual names, its shell is the shell, and the
course's programs of the same name are in /course/bin. A program that a folder brings is in /bin,
too, in the place of busybox's command of that name.
"""

from __future__ import annotations

import re
import stat
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from labs.tools.guest.initramfs import Entry, character_device, folder, from_host, regular, symlink
from labs.tools.guest.package import PackageError, cache_directory, fetch

BUSYBOX = "busybox-static"
OWN_FIRST = ("init",)
"""Programs of ours that stay in /bin although busybox has a command of the same name."""

PROGRAM_FOLDERS = ("bin", "sbin", "usr/bin", "usr/sbin")

SHELL = "bin/bash"
"""Where a package has brought it, it is /bin/sh."""

COMMAND = "etc/command"
"""Where the guest finds the command of `make run CMD=...`."""

# The applets' names are in the program in order, each with a NUL after it; these are the first.
FIRST_APPLETS = b"[\0[[\0"
APPLET = re.compile(rb"[\w\[.-]+\Z")

SETTINGS = (
    regular("etc/passwd", b"root:x:0:0:root:/:/bin/sh\n", 0o644),
    regular("etc/group", b"root:x:0:\n", 0o644),
    regular("etc/profile", b"", 0o644),
    folder("tmp", 0o1777),
    folder("dev"),
    folder("proc", 0o555),
    folder("root", 0o700),
    folder("sbin"),
    character_device("dev/console", 5, 1, 0o600),
    character_device("dev/tty", 5, 0),
    character_device("dev/null", 1, 3),
    character_device("dev/zero", 1, 5),
    symlink("init", "bin/init"),
    symlink("sbin/init", "../bin/init"),
)


def applets(program: bytes) -> list[str]:
    """The commands that a busybox has, by the table in the program itself: it need not run here.
    Empty when there is no such table."""
    start = program.find(FIRST_APPLETS)
    names: list[bytes] = []
    while start >= 0:
        name = program[start : program.index(b"\0", start)]
        if not APPLET.match(name) or (names and name <= names[-1]):
            break
        names.append(name)
        start += len(name) + 1
    return [name.decode() for name in names]


def busybox() -> bytes | None:
    """Debian's busybox for the i386; None, and a line that says why, where it cannot be had."""
    try:
        package = fetch(BUSYBOX)
        place = cache_directory() / f"busybox-{package.version}-{package.sha256[:16]}"
        return (place if place.exists() else package.extract("bin/busybox", place)).read_bytes()
    except PackageError as error:
        print(f"no busybox, only the course's own programs: {error}", file=sys.stderr)
        return None


def own_programs(directory: Path, taken: Iterable[str] = ()) -> list[Entry]:
    """The course's programs, out of the folder where they were built. Those whose name is taken go
    to /course/bin."""
    elsewhere = set(taken) - set(OWN_FIRST)
    return [
        regular(f"{'course/bin' if path.name in elsewhere else 'bin'}/{path.name}", data)
        for path in sorted(directory.iterdir())
        if (data := path.read_bytes())
    ]


def busybox_entries(program: bytes, own: Iterable[str], given: Iterable[Entry] = ()) -> list[Entry]:
    """busybox, and a link for each of its commands but those that are ours; to the program of that
    name where one is given. Raises ValueError for a program without a table of commands."""
    names = applets(program)
    if not names:
        raise ValueError("this busybox has no table of its commands")
    ours = set(own) & set(OWN_FIRST)
    paths = [PurePosixPath(each.path) for each in given if not stat.S_ISDIR(each.mode)]
    there = {path.name: f"/{path}" for path in paths if str(path.parent) in PROGRAM_FOLDERS}
    if f"/{SHELL}" in there.values():
        there["sh"] = f"/{SHELL}"
    links = [
        symlink(f"bin/{name}", there.get(name, "busybox")) for name in names if name not in ours
    ]
    return [*links, regular("bin/busybox", program)]


def guest_root(
    own: Path, box: bytes | None, programs: Iterable[Path] = (), command: str | None = None
) -> list[Entry]:
    """The guest's files: the course's programs from the folder `own`, `box` (a busybox), all that
    is in the folders `programs`, of which the last one counts, and a command for COMMAND. Raises
    InitramfsError for what cannot be taken along."""
    names = [path.name for path in own.iterdir()]
    given = [entry for each in programs for entry in from_host(each)]
    entries = [*SETTINGS]
    if box:
        entries += busybox_entries(box, names, given)
    entries += own_programs(own, applets(box) if box else ())
    entries += given
    if command is not None:
        entries.append(regular(COMMAND, command.encode() + b"\n", 0o644))
    return entries

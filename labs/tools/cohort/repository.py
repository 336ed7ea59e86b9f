"""A git repository that was handed in: the files of its last commit, as a tar.

git reads a repository's own settings and hooks, which can start programs. So only its objects and
references are copied, into a repository with settings of ours, and git works in the sandbox where
there is one.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from labs.tools.cohort.entries import FILE, MOST_ENTRIES, Refusal, head_of, kind_of
from labs.tools.grading import sandbox

MOST_BYTES = 256 << 20  # of a repository, and of its last commit
LIMITS = sandbox.Limits(processor=20, wall=120, memory=1 << 30, file=MOST_BYTES)
COPIED = ("objects", "refs", "packed-refs", "HEAD")
BUNDLE = b"# v"
SETTINGS = "[core]\n\tbare = true\n\trepositoryformatversion = 0\n"
QUIET = ["git", "-c", "safe.directory=*", "-c", "protocol.allow=never"]


def repository_in(place: Path) -> Path | None:
    """Where the repository is, if what was handed in is nothing else: a bare one, or one without
    its files next to it. Where there are files, those were handed in."""
    if place.is_symlink() or not place.is_dir():
        return None
    if is_repository(place):
        return place
    inner = place / ".git"
    alone = {each.name for each in place.iterdir()} == {".git"}
    return inner if alone and not inner.is_symlink() and is_repository(inner) else None


def is_repository(folder: Path) -> bool:
    """Whether a folder looks as git's own does."""
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir()


def is_bundle(place: Path) -> bool:
    """Whether a file is what `git bundle create` writes."""
    if place.is_symlink() or not place.is_file():
        return False
    return head_of(place, 16).startswith(BUNDLE) and b"git bundle" in head_of(place, 16)


def last_commit(place: Path, work: Path) -> Path | None:
    """The files of a repository's or a bundle's last commit as a tar in the folder `work`, which
    has room for it; None where it is neither. Raises Refusal."""
    try:
        repository = repository_in(place)
        if repository is None and not is_bundle(place):
            return None
        copied = work / "repository"
        if repository:
            copy(repository, copied)
        else:
            shutil.copyfile(place, work / "bundle", follow_symlinks=False)
            git(work, "clone", "-q", "--bare", "bundle", "repository", allowed=True)
    except OSError as error:
        raise Refusal(f"the git repository cannot be read: {error.strerror}") from error
    git(work, "--git-dir=repository", "archive", "--format=tar", "-o", "commit.tar", "HEAD")
    if (work / "commit.tar").is_symlink() or not (work / "commit.tar").is_file():
        raise Refusal("the git repository cannot be read")
    return work / "commit.tar"


def copy(repository: Path, copied: Path) -> None:
    """Copies plain files of a repository. Raises Refusal where that is too much, OSError."""
    left, count = MOST_BYTES, MOST_ENTRIES
    for name in COPIED:
        for file in files_below(repository / name):
            place = copied / file.relative_to(repository)
            place.parent.mkdir(parents=True, exist_ok=True)
            data = head_of(file, left + 1)
            left, count = left - len(data), count - 1
            if left < 0 or count < 0:
                raise Refusal(f"the git repository has more than {MOST_BYTES >> 20} MiB")
            place.write_bytes(data)
    (copied / "refs").mkdir(parents=True, exist_ok=True)
    (copied / "objects").mkdir(exist_ok=True)
    (copied / "config").write_text(SETTINGS)


def files_below(place: Path) -> list[Path]:
    """The plain files in a folder, or this one; no link is followed. alternates name others."""
    if not os.path.lexists(place):
        return []
    if kind_of(place.lstat().st_mode) == FILE:
        return [place]
    found = []
    for folder, _, names in os.walk(place):
        paths = (Path(folder, name) for name in names if name != "alternates")
        found += [each for each in paths if kind_of(each.lstat().st_mode) == FILE]
        if len(found) > MOST_ENTRIES:
            raise Refusal(f"the git repository has more than {MOST_ENTRIES} files")
    return sorted(found)


def git(work: Path, *words: str, allowed: bool = False) -> None:
    """Runs git in the folder `work`. Raises Refusal with the first line of what it says."""
    command = [*QUIET, *(["-c", "protocol.file.allow=always"] if allowed else []), *words]
    done = sandbox.run(command, work, LIMITS, boxed=not sandbox.why_unavailable())
    if done.status != 0:
        said = done.limit or (done.output.strip().splitlines() or ["no reason was given"])[0]
        raise Refusal(f"the git repository cannot be read: {said}")

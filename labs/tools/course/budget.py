"""`make budget`: how many lines of code the kernel has, by lesson and by part, and how many it may.

Counted are lines that are neither empty nor only a comment, of C, headers and assembly. A file
belongs to the first lesson that links it, a header to the first lesson that includes it; its part
is that of its folder (labs/rooms.toml). The loader is linked in lesson 1.

Two sums of the core differ. What the lessons add has every file, also those that a later lesson
replaces (the early allocator, the space of one slot, six main.c): a lesson's own limit is for that.
The core after lesson 6 has what that kernel without the breadth is linked from and what it
includes, and the loader: no kernel has more, and the limit of the core is for that.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from labs.tools.course.exercises import ROOT, lessons
from labs.tools.course.reading import STORAGE, belonging, folder_of
from labs.tools.course.rooms import PARTS, code_lines, existing, part_of, with_headers
from labs.tools.course.source_lists import linked
from labs.tools.machine.command import in_a_line

BY_PART = {"core": 10_400, "breadth": 6_500, "storage": 7_000}  # the core: of its last kernel
BY_LESSON = 2_800  # of the core, added

# What is larger than it may be, and what it consists of; from here it only shrinks, unless an
# entry says what came.
#
# The breadth (limit 6,500), by folder:
#   8,433  kernel/linux  over 300 calls: files 1,294; sockets 1,147; processes 986; System V's
#                        calls 850; memory 655; signals 617; terminals 613; time 595; poll and
#                        epoll 574; futexes 379; the system 337; exec 301; definitions 85
#   1,074  fs/proc       what ps, top, free, lsof and glibc read
#     152  fs/sys        what lsblk and iostat read
#     788  fs/ram        files in memory
#     676  mm            promotion of large pages, experiments
#   1,727  others        fs/linux, abi, screen, pipes, commands of the measurements
# The limit was set when lessons 1 to 4 had 6,548. Debian's dynamic programs came after that:
# glibc's threads, locks between processes, sockets, pseudo-terminals, what python, ruby, sqlite,
# node, Go, script, expect, tmux, socat and fakeroot want. The last 760 lines are semantics of Linux
# that were missing: memory that is pinned or grows, clones as Linux makes them, limits that bind.
#
# The storage (limit 7,000), by folder:
#   6,682  fs/ext        names and hash trees, extents and pointers, bitmaps and groups, attributes,
#                        inodes, checksums, the mount
#   2,314  fs/disk       what makes inodes and files of a mounted disk; reservations
#   2,233  drivers/disk  queue, four modes, partitions, discards, snapshots
#   1,553  fs/vfs        names and mounts: lesson 3's programs need them already
#   1,368  fs/jbd2       the journal
#   1,205  fs/cache      pages and blocks
#     503  others
# The limit was set before there was any of it, for a half that only reads; that half has 3,400.
STILL = {"breadth": 12_849, "storage": 15_863}
BEGINNING, END = "<!-- make budget -->\n", "<!-- end of make budget -->\n"


def spent(root: Path = ROOT) -> Counter[tuple[str, str]]:
    """The lines of code by lesson and part."""
    lines: Counter[tuple[str, str]] = Counter()
    for path, lesson in belonging(root).items():
        lines[lesson, part_of(path, root)] += code_lines(path, root)
    return lines


def last_core(root: Path = ROOT) -> set[str]:
    """The files of the core after the last lesson: its kernel without the breadth, the headers, and
    the loader."""
    last = max(lessons(root))
    paths = {*linked(last, root, core=True), f"{folder_of(str(last))}/main.c"}
    paths |= {path.relative_to(root).as_posix() for path in (root / "boot").iterdir()}
    return existing(with_headers(existing(paths, root), root), root)


def added(root: Path = ROOT) -> dict[str, int]:
    """The lines of each part that the lessons and the storage lab add, all together."""
    lines = spent(root)
    return {part: sum(n for (_, each), n in lines.items() if each == part) for part in PARTS}


def limited(root: Path = ROOT) -> dict[str, int]:
    """The lines of each part that BY_PART limits: of the core those of its last kernel, of the
    others all that are added."""
    return added(root) | {"core": sum(code_lines(path, root) for path in last_core(root))}


def table(root: Path = ROOT) -> str:
    """The table of `make budget`, as the README shows it."""
    lines = spent(root)
    rows = [f"| lesson | {' | '.join(PARTS)} |", "|---|" + "---:|" * len(PARTS)]
    for lesson in (*map(str, lessons(root)), STORAGE):
        name = "storage lab" if lesson == STORAGE else lesson
        rows.append(f"| {name} | {' | '.join(f'{lines[lesson, part]:,}' for part in PARTS)} |")
    rows.append(f"| all of these | {' | '.join(f'{n:,}' for n in added(root).values())} |")
    core = limited(root)["core"]
    rows.append(f"| the core after lesson {max(lessons(root))} | {core:,}{' |' * len(PARTS)}")
    rows.append(f"| at most | {' | '.join(f'{BY_PART[part]:,}' for part in PARTS)} |")
    return "\n".join(rows) + "\n"


def too_large(root: Path = ROOT) -> list[tuple[str, str, int, int]]:
    """What is larger than it may be: its key in STILL, its name, its lines, and the limit."""
    lines = spent(root)
    found = [
        (lesson, f"the core of lesson {lesson}", lines[lesson, "core"], BY_LESSON)
        for lesson in map(str, lessons(root))
    ]
    for part, limit in BY_PART.items():
        name = f"the core after lesson {max(lessons(root))}" if part == "core" else f"the {part}"
        found.append((part, name, limited(root)[part], limit))
    return [entry for entry in found if entry[2] > entry[3]]


def overdrawn(root: Path = ROOT) -> list[str]:
    """What has grown beyond its limit, or beyond what it already had above it; one line each."""
    return [
        f"{name} has {count:,} lines of code; at most {max(limit, STILL.get(key, 0)):,}"
        for key, name, count, limit in too_large(root)
        if count > STILL.get(key, 0)
    ]


def main() -> int:
    """Prints the table; returns the exit status."""
    print(table(), end="")
    print(f"A lesson adds at most {BY_LESSON:,} lines of core.")
    for _, name, count, limit in too_large():
        print(f"{name} has {count:,} lines, and should have {limit:,}")
    for problem in overdrawn():
        print(f"grown: {problem}", file=sys.stderr)
    return 1 if overdrawn() else 0


if __name__ == "__main__":
    sys.exit(in_a_line("make budget", main))

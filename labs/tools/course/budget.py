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

BY_PART = {"core": 10_000, "breadth": 6_500, "storage": 7_000}  # the core: of its last kernel
BY_LESSON = 2_800  # of the core, added

# What is larger than it may be: from here it only shrinks.
#
# The core is within its limit. What no lesson teaches and no program of the course needs is
# breadth. Tests of lessons 1 to 4 ask for uname, ioctl, llseek, groups, text of traced calls.
#
# The breadth: 7,276. Lessons 1 to 4 have 6,548: lesson 3 got what keeps a file's pages while they
# are copied, and shares its way into mmap with lesson 6. Lesson 5 has 275: the command of its
# measurement, others for experiments, /proc's buddyinfo, slabinfo and meminfo. Lesson 6 has 453:
# Linux's mmap, mremap, msync, madvise and mincore on areas (218), files in memory (78), what /proc
# and mmap ask of a space (90), and the command for its measurement and for copies that sleep (67).
#
# Besides them lesson 6 has what real programs want of shared memory, in files that no lesson asks
# for: threads as glibc makes them (their begin and end, exec, signals to one or to all, locks whose
# owner has died, files that one closes while another one reads: 400), futexes with waiters, also
# between processes (90), System V's shared memory (220), and /proc's names of ranges, smaps, statm
# and threads (230). And, because copies sleep in it, turns for the calls that use a file's offset
# (63), and directories that are read in the kernel first (10 in lesson 3); and a limit of the stack
# that is kept (24). And fcntl and flock lock files (171), without which sqlite3 opens no database.
# Limits of what one program gets of the kernel's memory, and references to what a futex waits in,
# have 39; fault injection, which memory that is given back must not undo, 6; and an experiment that
# does without the pages that exec shows, 2.
#
# Large pages are 580 lines of it: MAP_HUGETLB, promotion and demotion (430), what /proc says of
# them (60), global pages of the kernel (25); and read and write take turns inline (45). Their
# calls come before the page tables of exercise 6.1, so the core has no line for them.
#
# The storage half added 395 lines of breadth: mount, umount and the sync family, fallocate,
# fadvise and sync_file_range (215), types of file systems for memory and /proc (100), and
# /proc's diskstats, partitions, mounts and vm (80). socketpair has 132: rsync has its two halves
# talk through it.
#
# The storage: 13,219. Its limit was set before there was any of it. The half that reads had 3,414,
# and 1,500 of it are names and mounts (fs/vfs), which lesson 3's breadth links already. To write,
# ext has 4,200 lines: allocation 850, extents and pointers 780, names and hash trees 1,600, the
# rest inodes, checksums and the mount. The journal has 1,350, the page and block caches 1,020,
# what makes files of all that 1,400, and drives with their queue, modes and partitions 1,500. To
# compare the checksums of inodes, extent blocks and descriptors with what was read has 65, and one
# owner of a device, by O_EXCL or a mount, 17. What others have put into a directory like /tmp is
# refused as by Debian's Linux in 14, and two times that stay in 9 (breadth). Writes past what
# pointers reach are refused, and those with O_DIRECT into their holes cached, in 19. Names of
# inodes in memory, the last answer of a map, and checksums of inodes once for each commit have 160,
# and 40 went for them: without these, stat, create and fsync take as long as on Linux, or longer.
# Timers that are files (timerfd), for Debian's fio, have 128 (breadth); those that send signals
# (timer_create), for ruby and for glibc's SIGEV_THREAD, 219.
# From the core came the interpreters of dynamically linked programs (68) and what handlers of
# signals see (40): both are breadth. FUTEX_WAKE_OP has 88.
# Two tasks that mount on one directory at once take 5.
# Writable snapshots of drives are 672 lines: copy on write and the device (280), the store and its
# table (240), what asks for them (100), and what the queue knows of it; /proc/snapshots is 26
# (breadth).
# Pages that are read into their place, checksums of bitmaps by what changed, dirty parts of
# pages, and the limit of files without huge_file have 135; lists with O_DIRECT 45 (breadth).
# Extended attributes: 566 for both places, hashes and checksums, 166 (breadth) for the calls.
# Options of a remount, /proc/mounts after a failed one, lost writes, unused inodes: 107.
# Groups with a damaged bitmap are left alone, and a write tells what write-back lost, in 79.
# Threads as folders of /proc have 45 lines of breadth, locks that the kernel hands over 185, and
# to find circles of those that wait for locks of files 32 (storage).
# What programs send over socket pairs, for python's asyncio, has 180 lines of breadth; limits and
# /proc/sys 75, capabilities 45, and mremap to a place that the program names 20.
# Room is promised in groups only whose bitmaps were looked at, in 45; circles of
# directories, and lists of orphans that name reserved inodes, end in 10. fallocate
# and O_DIRECT leave what was promised, in 22.
# /sys of block devices, partitions that are read again, discards and zeros have 671.
STILL = {"breadth": 11_155, "storage": 15_721}
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
    sys.exit(main())

"""kernel/linux/MISSING.md: which of Linux's system calls the kernel does not have, found by the
tables of calls in its source, struct syscall, and the definitions that have a row with them
(kernel/linux/call.h). linux_calls.txt has Linux's numbers and names."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from labs.tools.course.exercises import ROOT

FILE = "kernel/linux/MISSING.md"
ROW = re.compile(
    r'(?:\{\s*|^[A-Z_]+\()(\d+), (?:"(\w+)"|sys_(\w+)),\s+"(\w*)"', re.MULTILINE
)  # in a table of calls, or with a call's definition
FAMILY = re.compile(
    r'^SYSCALL_INODES\((\d+), (\d+), (\d+), (\w+),\s+"(\w*)"', re.MULTILINE
)  # of a path, of a link, of an open file
PAIR = re.compile(r'^[A-Z_]+\((\d+), sys_(\w+), (\d+), sys_(\w+),\s+"(\w*)"', re.MULTILINE)
COLUMNS = 100

INTRODUCTION = """\
# System calls that this kernel does not have

`make tables` makes this list from the tables of calls in the source. Of the {all} numbers that
Linux 6.1 has on the i386, {there} are answered after lesson 6 and in the storage lab, and
{missing} are not: they return ENOSYS.

"""

REFUSED = """
Of calls that are answered, these parts are refused or have less effect than on Linux:

- clone: EINVAL for memory, descriptors or the working directory that two processes share (other
  than by vfork), for namespaces and for CLONE_PIDFD.
- vfork: no signal, not even SIGKILL, reaches the parent before the child calls exec or ends.
- O_ASYNC and F_SETOWN are told again, and send no SIGIO.
- Sockets: AF_UNIX only, streams and datagrams; SOCK_SEQPACKET: ESOCKTNOSUPPORT.
- chmod: EPERM for all of /proc, where Linux changes some files' modes.
- RLIMIT_NPROC binds root, too; it, RLIMIT_SIGPENDING and RLIMIT_NOFILE cannot be raised beyond what
  the kernel has room for (EPERM).
- The load averages of sysinfo and /proc/loadavg are all three the number of runnable tasks now.
- /proc/PID/maps ends after some 800 areas, and smaps after some 200.
- Sleeps and timeouts end at the first tick after their time, up to 10 ms late.
- mlock brings pages, and shows them as pinned; when memory is short, clean pages of files may still
  be given back.
- /proc/PID/fd and maps show a file that was deleted as "/#N (deleted)", without its last name.
- fcntl: EINVAL for leases, F_NOTIFY, seals, F_GETSIG and F_SETSIG, F_GETOWN_EX and F_SETOWN_EX.
- getsockopt and setsockopt: ENOPROTOOPT for timeouts, SO_KEEPALIVE, SO_LINGER and other options
  that do not describe the socket or its peer. SO_REUSEADDR can be set.
- madvise: EINVAL for MADV_DONTFORK, MADV_WIPEONFORK, MADV_REMOVE and MADV_MERGEABLE. Of the others,
  only MADV_DONTNEED, MADV_FREE and MADV_HUGEPAGE change anything.
- mremap: EINVAL for MREMAP_DONTUNMAP, and for an old length of 0.
- EINVAL for timers of processor time (timer_create) and that wake the machine (timerfd_create),
  SS_AUTODISARM, SCHED_DEADLINE, SCHED_RESET_ON_FORK, CLOSE_RANGE_UNSHARE, RENAME_WHITEOUT,
  LOCK_MAND, PR_SET_TIMERSLACK, PR_SET_THP_DISABLE, PR_GET_SECCOMP and ambient capabilities.
- All tasks have one scheduling policy at a time. Priorities of SCHED_FIFO and SCHED_RR are told
  again, and change nothing.
- There is one user: other users and groups are refused (EPERM). Nothing is forbidden to a process.
- A pipe moves what of a buffer is there. Linux says EFAULT if a page is missing.
- Timers and sleeps until a time of day end as the clock was when they began, though it is set.
- lseek of an eventfd, signalfd or timerfd: ESPIPE. fallocate makes no holes in the root in memory.
- ".." of a directory that was removed is that directory. A name that /proc does not have cannot be
  made: EPERM, EACCES or EXDEV, not ENOENT. Access through memory leaves a file's access time.
"""


def rows(text: str) -> list[tuple[int, str, str]]:
    """The calls of a C file: number, name, and the letters of its arguments."""
    found = [(n, name or other, letters) for n, name, other, letters in ROW.findall(text)]
    for first, name, second, other, letters in PAIR.findall(text):
        found += [(first, name, letters), (second, other, letters)]
    for path, link, file, name, letters in FAMILY.findall(text):
        found += [(path, name, f"s{letters}"), (link, f"l{name}", f"s{letters}")]
        found.append((file, f"f{name}", f"f{letters}"))
    return [(int(number), name, letters) for number, name, letters in found]


def there(root: Path = ROOT) -> set[int]:
    """The numbers of the calls that the source has."""
    files = (root / "kernel").rglob("*.c")
    return {number for path in files for number, _, _ in rows(path.read_text())}


def linux() -> dict[int, str]:
    """Linux's calls for the i386."""
    lines = Path(__file__).with_name("linux_calls.txt").read_text().splitlines()
    return {int(number): name for number, name in (line.split() for line in lines)}


def text(root: Path = ROOT) -> str:
    """The page."""
    every, known = linux(), there(root)
    missing = [f"{name} {number}" for number, name in every.items() if number not in known]
    head = INTRODUCTION.format(
        all=len(every), there=len(every) - len(missing), missing=len(missing)
    )
    names = textwrap.fill(", ".join(missing), COLUMNS, break_on_hyphens=False)
    return f"{head}{names}.\n{REFUSED}"

#!/usr/bin/env python3
"""Reports what this machine has of what the course needs, and how to fix the rest (make doctor).

Runs before set-up: with any Python from 3.8 on, and nothing but its standard library. What is
needed, and whether it is there, is for setup.sh to say; versions and abilities are looked at here.
The exit status is 0 only when everything that `make run` and `make test` need is there, or is made
by the next command without anybody's help: a fresh tree has no .venv yet.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

ROOT = Path(__file__).resolve().parents[3]
TOOLS = ROOT / "labs" / "tools" / "setup"
WIDTH = 100  # columns
COMMAND_SECONDS = 20
FREE_BYTES = 1 << 30  # .venv, the kernel and the disks of the lab in their usual size

# The oldest versions that were tried: Debian 12's. Ubuntu 24.04 has none older.
OLDEST = {
    "make": "4.3",
    "nasm": "2.16",
    "i386-compiler": "12.2",
    "mkfs.ext4": "1.47",
    "qemu-system-i386": "7.2",
    "python-with-venv": "3.11",
    "gdb": "13.1",
}

# The newest versions that were tried: Debian 13's. tests/README.md says what was tried with which.
NEWEST = {
    "make": "4.4",
    "nasm": "2.16",
    "i386-compiler": "14.2",
    "mkfs.ext4": "1.47",
    "qemu-system-i386": "10.0",
    "python-with-venv": "3.13",
    "gdb": "16.3",
}

# What is otherwise from a version on, and no fault: what a person sees, and the text does not show.
OTHERWISE = {
    "i386-compiler": [
        ("14.0", "inlines other functions than the handouts' gdb walks show: frames are renumbered")
    ],
}

# What .venv has.
OF_ENVIRONMENT = (".venv", "packages in .venv", "clang-format")

# How a program is asked for its version, when not by --version.
VERSION_OPTIONS = {"nasm": "-v", "mkfs.ext4": "-V", "debugfs": "-V"}


LATER = "later"  # the next command of make sees to it
DOS_LINES = """\
Not ready: the files of this tree have CRLF line ends, with which no script runs. Git made them so
(core.autocrlf). Commit what you have changed, and let Git write the files again:
  git config core.autocrlf false && git rm -rq --cached . && git reset -q --hard"""
FINE = ("ok", "unused", "unavailable", LATER)


@dataclass
class Finding:
    """One line of the table. A state other than those of FINE is a failure."""

    state: str
    name: str
    needed: str  # "run" or "test"; empty for what is only told
    version: str = ""
    where: str = ""
    fix: str = ""
    notes: tuple[str, ...] = ()  # what is worth knowing, and no failure

    @property
    def failed(self) -> bool:
        """Must this be fixed?"""
        return self.state not in FINE


def output_of(*command: str) -> str:
    """What a command prints, errors too; empty when it is not there or takes too long."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=COMMAND_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace")


def version_in(text: str) -> str:
    """The first thing in the text that looks like a version: "7.2.15"."""
    match = re.search(r"\d+\.\d+(\.\d+)*", text)
    return match.group() if match else ""


def numbers(version: str) -> list[int]:
    """A version, so that it can be compared."""
    return [int(number) for number in version.split(".")]


def install_command(packages: str) -> str:
    """What to type to install packages (separated by commas)."""
    sudo = "" if os.geteuid() == 0 else "sudo "
    return f"{sudo}apt-get install {packages.replace(',', ' ')}"


def compiler() -> str:
    """The i386 compiler that toolchain.sh chooses, without its options; empty when none works."""
    words = output_of(str(TOOLS / "toolchain.sh"), "cc").splitlines()
    return words[0].split()[0] if len(words) == 1 else ""


def mind_version(finding: Finding, text: str) -> None:
    """Puts the version from a program's own words into the finding, and refuses an old one."""
    finding.version = version_in(text)
    oldest = OLDEST.get(finding.name)
    if finding.version and oldest and numbers(finding.version) < numbers(oldest):
        finding.state = "too old"
        finding.fix = f"needs {oldest} or later; {finding.fix}"
    finding.notes = tuple(notes_on(finding.name, finding.version))


def notes_on(name: str, version: str) -> Iterator[str]:
    """What is known about this version, and that nothing is known about one that was not tried."""
    for first, text in OTHERWISE.get(name, []):
        if version and numbers(version) >= numbers(first):
            yield text
    newest = NEWEST.get(name)
    if version and newest and numbers(version)[:2] > numbers(newest):
        yield f"{newest} is the newest that was tried: if anything is otherwise, tell us"


def needed_things() -> list[Finding]:
    """What setup.sh looks for, with versions."""
    findings = []
    for line in output_of(str(TOOLS / "setup.sh"), "check").splitlines():
        state, needed, found_by, packages, path, why = line.split("\t")
        name = found_by.split(":")[-1]
        fix = install_command(packages) if packages else f"labs/tools/setup/setup.sh {needed}"
        finding = Finding(state, name, needed, "", path, fix)
        if name == "i386-compiler":
            path = finding.where = shutil.which(compiler() or "no compiler") or ""
            if os.environ.get("CROSS"):
                finding.fix = "unset CROSS, or set it to the prefix of a compiler that works"
        if state == "ok" and path and packages:
            mind_version(finding, output_of(path, VERSION_OPTIONS.get(name, "--version")))
        finding.where = finding.where or why
        findings.append(finding)
    if not findings:
        findings.append(Finding("broken", "setup.sh", "run", "", "", "install bash; see README.md"))
    return findings


def toolchain_candidates() -> list[Finding]:
    """Which compiler was chosen, and why the others were not."""
    findings: list[Finding] = []
    chosen = ""
    for line in output_of(str(TOOLS / "toolchain.sh"), "explain").splitlines():
        prefix, _, reason = line.partition("\t")
        name = f"  {prefix or 'plain gcc -m32'}"
        if reason == "ok" and not chosen:
            chosen = name.strip()
            findings.append(Finding("ok", name, "", "", "chosen: the first that works"))
        else:
            reason = f"works, but {chosen} comes first" if reason == "ok" else reason
            findings.append(Finding("unused", name, "", "", reason))
    return findings


def qemu_abilities() -> Finding:
    """QEMU has the PC, its IDE disks, and an emulated processor."""
    qemu = "qemu-system-i386"
    lacks = [
        what
        for what, option, pattern in (
            ("machine pc", "-machine", r"^pc\s"),
            ("IDE disks", "-device", r'"ide-hd"'),
            ("emulation (TCG)", "-accel", r"^tcg\b"),
        )
        if not re.search(pattern, output_of(qemu, option, "help"), re.MULTILINE)
    ]
    if lacks:
        fix = install_command("qemu-system-x86")
        return Finding("missing", "QEMU's PC", "run", "", "no " + ", no ".join(lacks), fix)
    return Finding("ok", "QEMU's PC", "run", "", "machine pc, IDE disks, TCG")


def gdb_abilities() -> Finding:
    """gdb knows the processor in both of its modes."""
    lacks = [
        name
        for name in ("i386", "i8086")
        if f'set to "{name}"' not in output_of("gdb", "-nx", "-batch", "-ex", f"set arch {name}")
    ]
    if lacks:
        fix = install_command("gdb")
        if shutil.which("gdb"):
            fix = f"{install_command('gdb-multiarch')}, and have it first in PATH as gdb"
        return Finding("missing", "gdb for i386", "test", "", "no " + ", no ".join(lacks), fix)
    return Finding("ok", "gdb for i386", "test", "", "architectures i386 and i8086")


def pins() -> dict[str, str]:
    """Package to version, from both lists of requirements, names as pip compares them."""
    found = {}
    for path in (TOOLS / "requirements-run.txt", TOOLS / "requirements.txt"):
        for name, version in re.findall(r"^([\w.-]+)==(\S+)", path.read_text(), re.MULTILINE):
            found[re.sub(r"[-_.]+", "-", name).lower()] = version
    return found


def python_packages() -> Finding:
    """The packages in .venv are the pinned ones, all of them."""
    listed = output_of(str(ROOT / ".venv/bin/python"), "-Im", "pip", "freeze", "--all")
    pairs = re.findall(r"^([\w.-]+)==(\S+)", listed, re.MULTILINE)
    installed = {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in pairs}
    wanted = pins()
    wrong = [name for name, version in wanted.items() if installed.get(name) != version]
    where = f"{len(wanted) - len(wrong)} of {len(wanted)} as pinned"
    if wrong:
        where += f"; not {', '.join(wrong[:2])}{', ...' if len(wrong) > 2 else ''}"
    fix = "rm -rf .venv && labs/tools/setup/setup.sh test"
    return Finding("missing" if wrong else "ok", "packages in .venv", "test", "", where, fix)


def pinned_clang_format() -> Finding:
    """The form of the C source depends on clang-format's version."""
    wanted = pins()["clang-format"]
    program = ROOT / ".venv/bin/clang-format"
    version = version_in(output_of(str(program), "--version"))
    state = "ok" if version == wanted else "missing"
    fix = f"needs {wanted} in .venv: rm -rf .venv && labs/tools/setup/setup.sh test"
    return Finding(state, "clang-format", "test", version, str(program), fix)


def leave_for_later(findings: list[Finding]) -> bool:
    """In a tree without .venv, nothing of it is a failure: the next command makes it, if there
    is a Python that can. After make run alone the next command adds to it what that does without.
    Returns whether there is none yet."""
    can_make = any(each.name == "python-with-venv" and not each.failed for each in findings)
    is_there = (ROOT / ".venv").exists()
    states = {each.needed: each.failed for each in findings if each.name == ".venv"}
    is_for_run = states == {"run": False, "test": True}
    if not can_make or (is_there and not is_for_run):
        return False
    for each in findings:
        if each.name in OF_ENVIRONMENT and each.failed:
            each.state, each.where = LATER, "the next command of make puts it into .venv"
    return not is_there


def chinese_font() -> Finding:
    """What draws the Chinese labels of plots. Without it they are boxes in a viewer of SVG files,
    and a browser takes a font of its own, if it has one."""
    fonts = [line for line in output_of("fc-list", ":lang=zh-cn", "family").splitlines() if line]
    if fonts:
        return Finding("ok", "a Chinese font", "", "", fonts[0].partition(",")[0])
    missing = "none: the Chinese labels of plots are boxes; "
    where = missing + install_command("fonts-noto-cjk")
    return Finding("unavailable", "a Chinese font", "", "", where)


def disk_space() -> Finding:
    """There is room for what is built."""
    place = ROOT / "build" if (ROOT / "build").exists() else ROOT
    free = shutil.disk_usage(place).free
    state = "ok" if free >= FREE_BYTES else "too small"
    fix = f"free {FREE_BYTES >> 30} GB, or move the tree to another disk"
    return Finding(state, "space in build/", "run", "", f"{free / (1 << 30):.1f} GB free", fix)


def shown(text: str, width: int) -> str:
    """The text as ASCII. Of one that is too long the end stays: that is what tells of a path."""
    text = text.encode("ascii", "backslashreplace").decode()
    return text if len(text) <= width else "..." + text[-(width - 3) :]


def print_table(findings: list[Finding]) -> None:
    """One line a finding, and more for each that failed or has notes."""
    form = "{:<11} {:<18} {:<9} {:<5} {}"
    print(form.format("state", "what", "version", "for", "where"))
    for each in findings:
        where = shown(each.where, WIDTH - 47)
        columns = each.state, shown(each.name, 18), shown(each.version, 9), each.needed
        print(form.format(*columns, where).rstrip())
        if each.failed:
            print(shown(f"            fix: {each.fix}", WIDTH))
        for note in each.notes:
            print(f"            note: {note}")


def main() -> int:
    """Looks at everything, and returns the exit status."""
    # mkfs and debugfs are not in the PATH of a normal user.
    os.environ["PATH"] = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    os.environ["LC_ALL"] = "C"
    if has_dos_lines():
        print(DOS_LINES)
        return 1
    findings = [*needed_things(), qemu_abilities(), gdb_abilities(), python_packages()]
    findings += [pinned_clang_format(), chinese_font(), disk_space()]
    position = next((i + 1 for i, each in enumerate(findings) if each.name == "i386-compiler"), 0)
    findings[position:position] = toolchain_candidates()
    is_fresh = leave_for_later(findings)
    print_table(findings)
    failed = [each for each in findings if each.failed]
    print()
    print(verdict(len(failed), is_fresh, all(each.needed == "test" for each in failed)))
    return 1 if failed else 0


def has_dos_lines() -> bool:
    """Whether the tree was checked out with CRLF line ends, with which no script runs."""
    return b"\r\n" in (TOOLS / "setup.sh").read_bytes()


def verdict(failed: int, is_fresh: bool, only_test: bool) -> str:
    """The last line. only_test: what failed is not needed for make run."""
    if failed and only_test:
        return f"Ready for make run. {failed} to fix for the others, which install what is missing."
    if failed:
        return (
            f"Not ready: {failed} to fix. make run installs what is missing, if you may use sudo."
        )
    first = " The first command installs Python packages into .venv, which takes a minute."
    return f"Ready for {commands()}.{first if is_fresh else ''}"


def commands() -> str:
    """What a person begins with here: a student's tree has no make test."""
    is_whole = (ROOT / "labs/author.mk").exists()
    return f"make run and make {'test' if is_whole else 'grade'}"


if __name__ == "__main__":
    sys.exit(main())

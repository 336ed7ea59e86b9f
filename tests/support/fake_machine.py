"""A machine for the tests of set-up, with a PATH on which every tool is a fake."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "labs/tools/setup"

# What the scripts use of a system that is merely there.
REAL = (
    *("awk", "bash", "cat", "cp", "dirname", "env", "flock", "grep", "ln", "mkdir", "mktemp", "mv"),
    *("readlink", "rm", "sed", "sha256sum", "sleep", "sort", "tail", "touch", "tr"),
)

# A package is a directory of $FAKES/packages, and installing it copies its commands.
APT_GET = """
shift 2 # -o DPkg::Lock::Timeout=...
echo "apt-get $*" >>"$FAKES/calls"
[ ! -e "$FAKES/fail-$1" ] || { echo "E: no $1 today"; exit 100; }
for package in "$@"; do
	[ ! -d "$FAKES/packages/$package" ] || cp "$FAKES/packages/$package/"* "$FAKES/bin/"
done
"""

SUDO = """
echo "sudo $*" >>"$FAKES/calls"
exec "$@"
"""

# Has every header but those named missing, and compiles everything.
GCC = """
echo "$0 $*" >>"$FAKES/compiled"
[ "$*" != "-E -" ] || { while read -r line; do [ ! -e "$FAKES/no-${line##*[</]}" ]; exit; done; }
"""

# Is Python to setup.sh: answers about itself, makes .venv, and is pip there.
PYTHON = """
case "$*" in
*version_info*) [ ! -e "$FAKES/old-python" ] ;;
*ensurepip*) [ ! -e "$FAKES/no-venv" ] ;;
"-I -m venv"*) mkdir -p .venv/bin && ln -s "$FAKES/bin/python3" .venv/bin/python ;;
"-I -m pip install"*)
	echo "pip ${!#}" >>"$FAKES/calls"
	[ ! -e "$FAKES/slow-pip" ] || sleep 0.3
	[ ! -e "$FAKES/fail-pip" ] || { echo "ERROR: no way to the packages"; exit 1; }
	;;
esac
"""

PROVIDED = {
    "make": ["make"],
    "nasm": ["nasm"],
    "gcc-i686-linux-gnu": ["i686-linux-gnu-gcc", "i686-linux-gnu-ld"],
    "gcc": ["gcc"],
    "e2fsprogs": ["mkfs.ext4", "debugfs"],
    "qemu-system-x86": ["qemu-system-i386"],
    "qemu-utils": ["qemu-img"],
    "python3": ["python3"],
    "git": ["git"],
    "bubblewrap": ["bwrap"],
    "gdb": ["gdb"],
    "shellcheck": ["shellcheck"],
    "nbdkit": ["nbdkit"],
    "nbdkit-plugin-python": ["nbdkit"],
    "grub-common": ["grub-mkrescue"],
    "xorriso": ["xorriso"],
    "mtools": ["mformat"],
    "chromium": ["chromium"],
    "clang": ["clang"],
    "lld": ["ld.lld"],
    "ccache": ["ccache"],
    "nodejs": ["node"],
    "npm": ["npm"],
    "zstd": ["zstd"],
}


class FakeMachine:
    """A tree with the scripts, and a PATH with fake tools; calls are recorded."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.bin = home / "bin"
        self.tree = home / "tree"
        self.environment = {"PATH": str(self.bin), "FAKES": str(home), "FAKE_USER": "0"}
        self.bin.mkdir()
        shutil.copytree(TOOLS, self.tree / "labs/tools/setup", ignore=shutil.ignore_patterns("_*"))
        for name in REAL:
            (self.bin / name).symlink_to(shutil.which(name) or f"no {name} in PATH")
        self.fake("apt-get", APT_GET)
        self.fake("id", 'echo "$FAKE_USER"')
        self.fake("uname", 'echo "${FAKE_MACHINE:-x86_64}"')
        for package, commands in PROVIDED.items():
            for command in commands:
                self.fake(f"../packages/{package}/{command}", self.text_of(command))
        (home / "lib/grub/i386-pc").mkdir(parents=True)
        (home / "lib/grub/i386-pc/moddep.lst").touch()

    @staticmethod
    def text_of(command: str) -> str:
        if command == "gcc" or command.endswith("-gcc"):
            return GCC
        return {"python3": PYTHON, "mkfs.ext4": "", "debugfs": ""}.get(command, "exit 0")

    def fake(self, name: str, text: str) -> None:
        path = self.bin / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    def install(self, *packages: str) -> None:
        """All packages, or those named, as if they had always been there."""
        for package in packages or PROVIDED:
            shutil.copytree(self.home / "packages" / package, self.bin, dirs_exist_ok=True)

    def remove(self, *commands: str) -> None:
        for command in commands:
            (self.bin / command).unlink()

    def flag(self, name: str) -> Path:
        """Switches a fake's misbehaviour on; unlink what is returned to switch it off."""
        path = self.home / name
        path.touch()
        return path

    def run(self, script: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.tree / "labs/tools/setup" / script, *arguments],
            env={**self.environment, **more},
            capture_output=True,
            text=True,
            check=False,
        )

    def calls(self) -> list[str]:
        """What was called since the last time that this was asked."""
        path = self.home / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines

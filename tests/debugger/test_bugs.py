"""Planted bugs (tests/debugger/bugs): one command that goes back shows the cause of each.

`make bugs` runs all of them, `make bugs BUG=dma` one; `make test` takes two, chosen by a seed.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.support.building import ROOT, WHOLE, make
from tests.support.gdb_guest import command, guest_probe
from tests.support.gdb_session import probe

FOLDER = ROOT / "tests/debugger/bugs"
BUGS = {each["name"]: each for each in tomllib.loads((FOLDER / "bugs.toml").read_text())["bug"]}
KERNEL = ROOT / "build/bugs"
TOOLCHAIN = ROOT / "labs/tools/setup/toolchain.sh"
DISK = ROOT / "build/storage/boot.img"
LISTS = [
    *sorted(ROOT.glob("labs/lesson*/sources")),
    *sorted(ROOT.glob("labs/lesson*/breadth")),
    *(ROOT / "labs/storage" / name for name in ("sources", "breadth")),
    FOLDER / "sources",
]
SAMPLE, SEED = 2, 34

# Ctrl-C comes when a loop has gone round for a while.
CODE = """
def interrupt():
    time.sleep({hangs})
    os.kill(os.getpid(), signal.SIGINT)
if {hangs}:
    go_to("wait_for_job")
    threading.Thread(target=interrupt, daemon=True).start()
if {until!r}:
    run("tbreak " + {until!r})
said["stop"] = run("continue")
said["words"], said["seconds"] = [], []
for words in {say!r}:
    start = time.monotonic()
    said["words"].append(run(words))
    said["seconds"].append(time.monotonic() - start)
said["at"] = gdb.newest_frame().name()
said["backtrace"] = run("backtrace 3")
"""


def chosen() -> list[str]:
    """All that are wanted: by name, all, or a sample."""
    if wanted := os.environ.get("BUG"):
        return wanted.split()
    names = sorted(BUGS)
    return names if WHOLE else sorted(random.Random(SEED).sample(names, SAMPLE))


@pytest.fixture(scope="module")
def kernel() -> Path:
    """The storage lab's kernel, and the command `bug`."""
    lists = " ".join(str(path.relative_to(ROOT)) for path in LISTS if path.exists())
    make("LESSON=storage", f"OUT={KERNEL.relative_to(ROOT)}", f"LISTS={lists}",
         f"{KERNEL.relative_to(ROOT)}/kernel.elf", DISK.relative_to(ROOT).as_posix())  # fmt: skip
    return KERNEL


def seen(bug: dict[str, Any], request: pytest.FixtureRequest, directory: Path) -> dict[str, Any]:
    """What gdb says of a bug."""
    until = bug.get("until", "")
    code = CODE.format(say=bug["say"], hangs=bug.get("hangs", 0), until=until)
    if until:
        programs = with_program(bug["name"], directory)
        return guest_probe(directory, code, "storage", programs, **command(bug["name"]))
    options = [
        "--build",
        str(request.getfixturevalue("kernel")),
        "--boot",
        "direct",
        "--script",
        f"bug {bug['name']}",
    ]
    options += ["--drive", str(DISK)] if bug.get("drive") else []
    return probe(directory, code, *options)


def with_program(name: str, directory: Path) -> Path:
    """A folder for the guest's root with a program of the bugs, linked as the course's own are."""
    make("user-programs")
    compiler, linker, (base,) = (
        subprocess.run([TOOLCHAIN, tool], capture_output=True, text=True, check=True).stdout.split()
        for tool in ("cc", "ld", "base")
    )
    part, folder = directory / f"{name}.o", directory / "root"
    (folder / "bin").mkdir(parents=True)
    options = ["-g", "-O1", "-ffreestanding", "-fno-stack-protector", "-fno-pie"]
    options += ["-isystem", ROOT / "user/include", "-I", ROOT]
    source = FOLDER / f"programs/{name}.c"
    subprocess.run([*compiler, *options, "-c", source, "-o", part], check=True)
    library = sorted((ROOT / "build/user/objects/libc").glob("*.o"))
    placed = ["-static", "--gc-sections", f"{base}0x08048000"]
    subprocess.run([*linker, *placed, part, *library, "-o", folder / "bin" / name], check=True)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", chosen())
def test_a_command_shows_the_cause(name, request, tmp_path):
    bug = BUGS[name]
    said = seen(bug, request, tmp_path)
    print(
        *(f"{words}: {took:.1f} s" for words, took in zip(bug["say"], said["seconds"], strict=True))
    )
    assert re.search(bug["stops"], said["stop"]), said["stop"]
    for words, answer, shows in zip(bug["say"], said["words"], bug["shows"], strict=True):
        assert re.search(shows, answer), f"{words}: {answer}"
    if "at" in bug:
        assert said["at"] == bug["at"], said["backtrace"]


def test_each_bug_is_in_the_list():
    """The kernel's tables and the list have the same bugs, each with a sentence."""
    tables = "".join(path.read_text() for path in FOLDER.glob("*.c"))
    programs = [path.stem for path in FOLDER.glob("programs/*.c")]
    assert sorted(re.findall(r'\{ "(\w+)", bug_\w+ \}', tables) + programs) == sorted(BUGS)
    assert programs == [name for name in BUGS if "until" in BUGS[name]]
    assert len(BUGS) >= 20
    assert all(bug["is"].endswith(".") for bug in BUGS.values())

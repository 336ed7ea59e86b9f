"""`make gdb` when something went wrong: panics, faults, hangs, and a launcher that is killed."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pexpect
import pytest

from labs.tools.machine.bounded import Patience
from tests.support.gdb_session import LAUNCHER, ROOT, probe

pytestmark = pytest.mark.slow

SAME_PLACE = {"text_start": "higher_half"}  # two names for one address, and gdb takes the global


@pytest.fixture(scope="module", autouse=True)
def images(build: Callable[[str], Path]) -> None:
    """Everything that a session needs."""
    for name in ("boot.img", "grub.iso", "kernel.elf"):
        build(f"build/storage/{name}")


@pytest.fixture(scope="module")
def crash(
    images: None, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], dict[str, Any]]:
    """What is seen after a script that ends in a panic; one session a script."""
    code = """
        said["stop"] = run("continue")
        said["frames"] = list(frames())
        for command in ("klog", "last-fault", "trap-frame", "continue"):
            said[command] = run(command)
        said["same"] = run("trap-frame " + said["trap-frame"].split()[-1])
    """
    directory = tmp_path_factory.mktemp
    return cache(lambda script: probe(directory("crash"), code, "--script", script))


@pytest.mark.parametrize("script", ["panic", "crash null", "crash divide"])
def test_backtrace_is_the_kernels_own(crash, script):
    """The same calls, through the trap too: addresses and names."""
    said = crash(script)
    assert "The machine is off: the kernel has panicked" in said["stop"]
    assert "The machine is off" in said["continue"]
    printed = re.findall(r"^backtrace: 0x(\w+) (\w+)\+", said["klog"], re.MULTILINE)
    names = [name for _, name in said["frames"]]
    skipped = "(trap)" if "(trap)" in names else "panic"
    mine = said["frames"][names.index(skipped) + 1 :]
    addresses = [pc - (index > 0 or skipped == "panic") for index, (pc, _) in enumerate(mine)]
    assert addresses == [int(address, 16) for address, _ in printed]
    assert [SAME_PLACE.get(name, name) for _, name in mine] == [name for _, name in printed]


def test_last_fault_and_trap_frame_after_a_null_pointer(crash):
    said = crash("crash null")
    fault, frame = said["last-fault"], said["trap-frame"]
    words = "exception 14, page fault, error code 0x2: kernel writing unmapped address 0x00001234"
    assert fault.startswith(words)
    assert re.search(r"\nat 0xc01\w{5} null_pointer\+0x\w+ \(labs/.*\.c:\d+\), ring 0", fault)
    registers = dict(re.findall(r"\b(e\w\w) +(\w{8})", frame))
    printed = dict(re.findall(r"\b(e[a-ds]x|e[sd]i|e[bs]p) (\w{8})", said["klog"]))
    assert len(printed) == 8
    assert printed.items() <= registers.items()
    assert said["same"] == frame


def test_call_of_a_wild_pointer(tmp_path):
    """As if the kernel had called a null pointer: the caller is found all the same."""
    said = probe(
        tmp_path,
        """
        go_to("run_drives")
        said["caller"] = gdb.newest_frame().older().name()
        run("set $eip = 0")
        run("continue")
        said["frames"] = list(frames())
        said["fault"] = run("last-fault")
        """,
        "--script",
        "drives",
    )
    names = [name for _, name in said["frames"]]
    assert names[names.index("(trap)") + 1 :][:2] == [None, said["caller"]]
    assert "unmapped address 0x00000000" in said["fault"]


def test_bad_stack(tmp_path):
    """A double fault: behind its task gate is the function that lost its stack."""
    code = 'run("continue"); said["frames"] = list(frames()); said["fault"] = run("last-fault")'
    said = probe(tmp_path, code, "--script", "crash stack")
    assert [name for _, name in said["frames"]][2:4] == ["double_fault", "unmapped_stack"]
    assert re.match(
        r"exception 8, double fault.* cr2 is 0x00001ffc\nat .* unmapped_stack", said["fault"]
    )


def test_triple_fault(tmp_path):
    """The chain of exceptions comes from QEMU's log, which nobody had to switch on."""
    code = 'said["stop"] = run("continue"); said["fault"] = run("last-fault")'
    said = probe(tmp_path, code, "--script", "crash triple")
    assert "a triple fault. Type: last-fault" in said["stop"]
    assert re.match(r"First: vector 6 \(invalid opcode\).* empty_table\+", said["fault"])
    assert "Then, while that was delivered: vector 13" in said["fault"]


def test_log_after_a_hang(tmp_path):
    """Interrupts are off and nothing runs but a loop; Ctrl-C and klog work all the same. Ctrl-C
    comes when the loop has taken a tenth of a second of QEMU's processor time."""
    said = probe(
        tmp_path,
        """
        def words(process, name):
            with open(f"/proc/{process}/{name}") as file:
                return file.read()
        def worked():
            return sum(map(int, words(qemu, "stat").rpartition(")")[2].split()[11:13]))
        def interrupt():
            while worked() < before + os.sysconf("SC_CLK_TCK") / 10:
                time.sleep(0.02)
            os.kill(os.getpid(), signal.SIGINT)
        parent = os.getppid()
        children = words(parent, f"task/{parent}/children").split()
        (qemu,) = (each for each in children if "qemu" in words(each, "comm"))
        said["place"] = go_to("hang")
        before = worked()
        threading.Thread(target=interrupt, daemon=True).start()
        said["stop"] = run("continue")
        said["backtrace"] = run("backtrace 2")
        said["log"] = run("klog 1")
        """,
        "--script",
        "crash hang",
    )
    assert "SIGINT" in said["screen"]
    assert said["log"] == "> crash hang\n"
    assert "hang ()" in said["backtrace"]


def test_nothing_runs_on_when_the_launcher_is_killed(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    child = pexpect.spawn(
        LAUNCHER[0], LAUNCHER[1:], cwd=ROOT, env=environment, encoding="utf-8", timeout=300
    )
    child.expect_exact("(gdb) ")
    sessions = list_processes(child.pid)
    assert any("qemu-system" in name for name in sessions.values())
    child.kill(9)
    child.close(force=True)
    patience = Patience(300)
    while any(Path(f"/proc/{pid}").exists() for pid in sessions) and not patience.is_over():
        time.sleep(0.05)
    assert not [pid for pid in sessions if Path(f"/proc/{pid}").exists()]


def list_processes(parent: int) -> dict[int, str]:
    """The children of a process: number and command."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return {
        int(pid): Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ") for pid in children
    }

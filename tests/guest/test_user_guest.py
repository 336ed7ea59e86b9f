"""The programs of user/ and Debian's busybox on the kernel, as `make run CMD=...` runs them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pexpect
import pytest

from labs.bench import bench
from labs.tools.course.missing_calls import rows
from labs.tools.guest import programs
from labs.tools.machine.bounded import run_within
from tests.support.building import WHOLE, first_is_fast, make

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 600  # of real time, on a busy machine: a backstop
Guest = Callable[..., subprocess.CompletedProcess]


@pytest.fixture(scope="session")
def options() -> list[str]:
    """What the Makefile gives labs.tools.machine.run."""
    for lesson in (3, 4):
        make(f"LESSON={lesson}", "image-direct", "user-programs")
    return ["-m", "labs.tools.machine.run", "--boot", "direct", "--user", "build/user/bin"]


@pytest.fixture(scope="session")
def guest(options) -> Guest:
    """Runs a command in the guest of lesson 4."""

    def run(command: str, *more: object) -> subprocess.CompletedProcess:
        words = [sys.executable, *options, "--build", "build/lesson4", "--command", command]
        words += map(str, more)
        return run_within(
            words, cwd=ROOT, capture_output=True, text=True, seconds=SECONDS, check=False
        )

    return run


@pytest.fixture
def needs_busybox() -> None:
    if programs.busybox() is None:
        pytest.skip("there is no busybox here")


@pytest.mark.parametrize("status", first_is_fast([63, 0, 1, 62, 200, 255]))
def test_output_and_status(guest, status):
    """All of both, and nothing else: the kernel's own words are not among the output."""
    done = guest(f"echo 'a  b'; /bin/echo -n no newline; exit {status}")
    assert (done.stdout, done.returncode) == ("a  b\nno newline", status)
    assert done.stderr == ""


def test_programs_of_ones_own(guest, tmp_path):
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "mine"
    script.write_text("#!/bin/sh\necho mine: $1\n")
    script.chmod(0o755)
    (tmp_path / "link").symlink_to("bin/mine")
    done = guest("mine a; /link b", "--programs", tmp_path)
    assert done.stdout == "mine: a\nmine: b\n", done.stderr


def test_a_script_that_ends_with_a_shells_status(options):
    """A program that is not there ends with 127, and QEMU's exit device has 64 statuses."""
    words = [sys.executable, *options, "--build", "build/lesson4", "--script", "run /bin/none"]
    done = run_within(words, cwd=ROOT, capture_output=True, text=True, seconds=SECONDS, check=False)
    assert done.returncode == 1, done.stdout
    assert done.stderr == ""


def test_a_command_that_kills_the_machine(guest):
    """No end, no status of the command: that is said."""
    done = guest("echo before; poweroff -f; sleep 10" if programs.busybox() else "kill -9 1")
    if done.returncode == 0:
        pytest.fail(done.stdout)
    assert "did not come to its end" in done.stderr


@pytest.mark.parametrize("name", ["tlscheck", "fpucheck"])
def test_state_of_the_processor(guest, name):
    assert guest(name).stdout == f"{name}: ok\n"


@pytest.mark.parametrize("name", ["libccheck", "callcheck"])
def test_c_library_and_calls(guest, name):
    done = guest(name)
    assert (re.findall(r"^not ok.*", done.stdout, re.M), done.returncode) == ([], 0)


def test_probes(guest):
    done = guest("probe 1; probe 2")
    assert len(re.findall(r"^ok ", done.stdout, re.M)) == 80, done.stdout
    assert "SKIP" not in done.stdout


@pytest.mark.parametrize("name", ["corners", "manual", "filemanual", "answers"])
def test_what_linux_does(guest, name):
    """Rare cases, and calls that were accepted and did nothing: they end as on Linux."""
    done = guest(name)
    assert re.findall(r"^not ok.*", done.stdout, re.M) == []
    assert done.returncode == 0, done.stdout + done.stderr


UNUSED = {
    *((48, 2), (258, 1), (120, 2), (120, 3), (120, 4), (120, 5)),  # kept, or written if it can be
    *((80, 2), (205, 2)),  # there are no groups to be written
    *((162, 2), (267, 4), (407, 4)),  # the rest of a sleep that was interrupted
    (103, 2),  # a log that may be empty; see callcheck
    *((177, 2), (421, 2), (240, 5), (422, 5)),  # where a signal came; another kind of futex
    *((21, 1), (21, 2), (21, 3), (21, 5), (22, 1), (52, 1)),  # mount: the storage lab's kernel
    *((259, 2), (259, 3), (260, 3), (260, 4), (261, 2)),  # lesson 6: programs/threads
    *((408, 2), (409, 3), (409, 4), (321, 2), (327, 2), (356, 1), (420, 2), (420, 4)),
    *((369, 5), (371, 5)),  # the other end of a pair has no address
    *((364, 2), (364, 3)),  # who connects: tests/programs/threads
    *((226, 3), (227, 3), (228, 3), (229, 3), (230, 3), (231, 3)),  # values of attributes, which
    *((232, 2), (233, 2), (234, 2)),  # only files on disks have: tests/programs/disk/attributes.c
}
"""Call and argument: pointers of which nothing becomes known by a call that is not harmful."""


def pointers_of_calls() -> set[tuple[int, int]]:
    """Every call of the kernel's tables and each of its arguments that is a pointer or a text."""
    tables = "".join(path.read_text() for path in (ROOT / "kernel").rglob("*.c"))
    return {
        (number, place)
        for number, _, letters in rows(tables)
        for place, letter in enumerate(letters, 1)
        if letter in "ps"
    }


def test_pointers(guest):
    """Each pointer of each call is tried, and gives EFAULT."""
    done = guest("pointers 1")
    assert re.findall(r"^not ok.*\n.*", done.stdout, re.M) == []
    tried = re.findall(r"^ok \d+ call (\d+) argument (\d)$", done.stdout, re.M)
    assert {(int(call), int(place)) for call, place in tried} == pointers_of_calls() - UNUSED


@pytest.mark.slow
def test_random_calls(guest, needs_busybox):
    """A hundred thousand calls of each of two seeds, with WHOLE=yes of ten, and all of them again:
    the kernel survives, gives the same results for the same seed, and has all of its structures
    back each time; what memory its pools have grown to the first time is enough for the second."""
    after = "cat /proc/objects; grep MemFree /proc/meminfo"
    seeds = range(1, 11 if WHOLE else 3)
    twice = " ".join(map(str, (*seeds, *seeds)))
    done = guest(f"{after}; for s in {twice}; do calls $s; {after}; done")
    hashes = re.findall(r"count=100000 hash=(\w+)", done.stdout)
    assert len(hashes) == 2 * len(seeds), done.stdout + done.stderr
    assert hashes[: len(seeds)] == hashes[len(seeds) :]
    assert len(set(hashes)) == len(seeds)
    objects = re.findall(r"^tasks \d+\nfiles(?:.*\n){5}", done.stdout, re.M)
    assert len(objects) == 1 + 2 * len(seeds)
    assert len(set(objects)) == 1, objects
    free = re.findall(r"^MemFree: *(\d+) kB", done.stdout, re.M)
    assert free[len(seeds)] == free[2 * len(seeds)]


@pytest.mark.slow
def test_random_calls_that_are_killed(guest, needs_busybox):
    """In the middle, after different times. When what is there has been removed (times before 1970
    once made it impossible) the account of memory closes; the first round lets the pools grow.
    Of two seeds, with WHOLE=yes of six."""
    after = "rm -rf /tmp/calls; cat /proc/objects; grep MemFree /proc/meminfo"
    kill = "calls $s 1000000 >/dev/null & sleep 0.$s; kill -9 $!; wait"
    count = 6 if WHOLE else 2
    seeds = " ".join(map(str, range(31, 31 + count)))
    done = guest(f"for i in 1 2; do for s in {seeds}; do {kill}; {after}; done; done")
    objects = re.findall(r"^tasks \d+\nfiles(?:.*\n){5}", done.stdout, re.M)
    assert len(objects) == 2 * count, done.stdout + done.stderr
    assert len(set(objects)) == 1, objects
    free = re.findall(r"^MemFree: *(\d+) kB", done.stdout, re.M)
    assert free[count:] == [free[count]] * count


def test_paths_of_descriptors(guest, needs_busybox):
    """/dev/stdin, /dev/fd and /proc/PID lead to the files themselves, named or not."""
    lines = [
        "echo pipe | cat /dev/stdin | cat /dev/fd/0",
        "echo text >/tmp/t; sh -c 'rm /tmp/t; cat /proc/self/fd/3' 3</tmp/t",
        "echo out >/dev/stdout; readlink /dev/stderr; ls /proc/self/fd | head -3 | tr '\\n' ' '",
        "true | readlink /proc/self/fd/0 | sed 's/[0-9]/n/g'; cd /tmp; readlink /proc/self/cwd",
        "A=b sh -c 'grep -azo A=b /proc/self/environ' | tr '\\0' '\\n'; readlink /proc/self/exe",
        "cp /bin/busybox /tmp/busybox-2; /tmp/busybox-2 sleep 9 & sleep 1",
        "(echo >/tmp/busybox-2) 2>&1 | sed 's/.*: //'; kill $!",
        "printf '#!/bin/echo no end' >/tmp/s; chmod +x /tmp/s; /tmp/s",
        "cat /proc/$$/fd/99 2>/dev/null || echo none",
    ]
    assert guest("; ".join(lines)).stdout.splitlines() == [
        *("pipe", "text", "out", "/proc/self/fd/2", "0 1 2 pipe:[n]", "/tmp", "A=b"),
        *("/bin/busybox", "Text file busy", "no end /tmp/s", "none"),
    ]


@pytest.mark.parametrize("memory", first_is_fast([64, 256]))
def test_costs_do_not_grow(options, tmp_path, monkeypatch, memory):
    """In instructions: a page is mapped among 256 others at nearly the price of the first one, and
    a pipe costs the same whatever the memory."""
    monkeypatch.setattr(bench, "MEMORY_MIB", memory)
    build = ROOT / "build/user/bin"
    root = bench.root_of([build / "mapcost", build / "bench"], tmp_path)
    script = "run /bin/mapcost; run /bin/bench"
    kernel = ROOT / "build/lesson4/kernel.elf"
    said = bench.boot(bench.machine(kernel, script=script, initramfs=root))
    alone, others = map(int, re.search(r"alone=(\d+) others=(\d+)", said).groups())
    assert others < 1.2 * alone, said
    assert bench.figures(said)["bench", "pipe_one"] <= 600


def test_handouts_say_how_large_a_stack_is():
    """Nothing guards it before lesson 6, so the reader must know."""
    shift = re.search(r"SPACE_STACK \((\d+)u << 10\)", (ROOT / "mm/space.h").read_text())[1]
    assert f"the last {shift} KiB of the slot" in (ROOT / "labs/lesson3/README.md").read_text()


def test_own_shell(guest):
    line = "echo one | cat; false || echo two; (exit 7) & wait $!; echo $?; "
    line += "ls /none 2>/tmp/e; cat /tmp/e"
    path = "/course/bin/sh" if programs.busybox() else "/bin/sh"
    done = guest(f"PATH=/course/bin:/bin {path} -c '{line}'")
    assert done.stdout == "one\ntwo\n7\nls: /none: No such file or directory\n"


def at_prompt(options: list[str], lesson: int, script: str, *more: object, status: int = 0) -> str:
    """What the kernel's own prompt says to a script."""
    words = [sys.executable, *options, "--build", f"build/lesson{lesson}", "--script", script]
    words += map(str, more)
    done = run_within(words, cwd=ROOT, capture_output=True, text=True, seconds=SECONDS, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def test_programs_of_lesson_3(options):
    """One at a time, from the kernel's own prompt; what needs other processes says so."""
    script = "run /bin/hello a; run /bin/probe 3; run /bin/calls 1 5000; run /bin/tlscheck"
    said = at_prompt(options, 3, script)
    assert "argument 1: a\n" in said
    assert len(re.findall(r"^ok ", said, re.M)) == 40, said
    assert re.findall(r"^ok \d+ (.*) # SKIP", said, re.M) == ["clock_gettime to the kernel"]
    assert "calls seed=1 count=5000" in said
    assert "tlscheck: ok" in said


@pytest.mark.parametrize("lesson", [3, 4])
def test_a_program_that_is_cut_off(options, lesson, tmp_path):
    """Its headers are right and the rest is missing: it dies before its first instruction, and
    nothing of that reaches the next program."""
    whole = (ROOT / "build/user/bin/hello").read_bytes()
    (tmp_path / "cut").write_bytes(whole[:4096])
    (tmp_path / "cut").chmod(0o755)
    script = "run /cut; run /bin/hello a"
    said = at_prompt(options, lesson, script, "--programs", tmp_path, status=1)
    assert "> run /cut\n/cut: ended by signal 9\n" in said
    assert "argument 1: a\n" in said


def test_an_init_that_is_cut_off(options, tmp_path):
    """Even pid 1 dies when exec could not load all of it: the machine ends, and says so."""
    (tmp_path / "init").write_bytes((ROOT / "build/user/bin/hello").read_bytes()[:4096])
    (tmp_path / "init").chmod(0o755)
    child = spawn([*options, "--programs", str(tmp_path)], 4)
    child.expect("init: ended with status 137")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus != 0


def test_orphans_at_the_prompt(options):
    """Whoever outlives a program that the prompt ran is gone when it ends."""
    said = at_prompt(options, 4, "run /bin/outside orphan; spin 1; threads")
    assert re.findall(r"^ +(\d+) .* (\w+)$", said.partition("> threads")[2], re.M) == [
        ("1", "first")
    ]


def test_a_session_ends(options):
    """Its leader's end frees the terminal, and tells the group in the foreground."""
    said = at_prompt(options, 4, "run /bin/outside session")
    assert "first 1 foreground -1 background 0\nsecond 1\n" in said


def spawn(options: list[str], lesson: int, **more: object) -> pexpect.spawn:
    """The guest at a terminal."""
    words = [*options, "--build", f"build/lesson{lesson}"]
    return pexpect.spawn(
        sys.executable, words, cwd=str(ROOT), encoding="utf-8", timeout=300, **more
    )


def test_interrupt_without_tasks(options):
    """In lesson 3 ^C ends a program that waits for the keyboard."""
    child = spawn(options, 3)
    child.expect("apprentice> ")
    child.sendline("run /bin/cat")
    child.sendline("heard")
    child.expect("heard\r(?s:.*)heard\r")
    child.sendcontrol("c")
    child.expect("ended by signal 2")
    child.close(force=True)


def test_input_behind_a_flush(options):
    """More than the terminal keeps: the line is told to wait. What is kept goes, and the rest
    comes."""
    child = spawn(options, 4)
    child.expect("# ")
    child.sendline("outside flush")
    child.expect("sleeping")
    for _ in range(40):
        child.sendline("x" * 59)
    child.expect("flushed")
    child.sendline("later")
    child.expect("read later")
    child.close(force=True)


def test_the_terminal(options, needs_busybox):
    """Size, ^C, ^Z, completion, and the machine's end with the shell's status."""
    child = spawn(options, 4, dimensions=(33, 111))
    child.expect("# ")
    child.sendline("stty size")
    child.expect("33 111")
    child.sendline("(echo ready; cat)")
    child.expect("ready\r")
    child.sendcontrol("c")
    child.expect("# ")
    child.sendline("echo status $?")
    child.expect("status 130")
    child.sendline("echo found it >/tmp/completion")
    child.expect("# ")
    child.send("cat /tmp/compl\t\n")
    child.expect("\nfound it\r")
    child.sendline("(echo ready; cat)")
    child.expect("ready\r")
    child.sendcontrol("z")
    child.expect("Stopped")
    child.sendline("kill -9 %1")
    child.expect("# ")
    child.sendline("exit 8")
    child.expect("You have stopped jobs")  # ash has not looked yet
    child.sendline("exit 9")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 9

"""The programs of user/, built as for the guest and run on this machine: Linux's i386 system calls
are what they are made for."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

from labs.tools.grading import host_program
from labs.tools.machine.bounded import run_within

NOBODY = 65534
SECONDS = 120
Run = Callable[..., subprocess.CompletedProcess]


@pytest.fixture(scope="session")
def folder(build) -> Path:
    """Where the programs are; skips where they cannot run."""
    build("user-programs")
    path = build("build/user/hello").parent
    try:
        subprocess.run([path / "hello"], capture_output=True, check=True)
    except OSError as error:
        pytest.skip(f"i386 programs do not run here: {os.strerror(error.errno)}")
    return path


@pytest.fixture(scope="session")
def run(folder) -> Run:
    """Runs a program with arguments; keywords are those of subprocess.run."""

    def run_program(name: str, *arguments: object, **keywords: object):
        command = [folder / name, *map(str, arguments)]
        keywords = {"capture_output": True, "text": True, "timeout": SECONDS, **keywords}
        return subprocess.run(command, check=False, **keywords)

    return run_program


@pytest.fixture(scope="session")
def shell(run) -> Callable[[str], tuple[str, int]]:
    """Runs a line in our shell; returns what it printed, errors too, and its status."""

    def run_line(line: str) -> tuple[str, int]:
        done = run("sh", "-c", line, stderr=subprocess.STDOUT, capture_output=False, stdout=-1)
        return done.stdout, done.returncode

    return run_line


# ---- the C library and the small programs -------------------------------------------------------


@pytest.mark.parametrize("name", ["libccheck", "callcheck"])
def test_c_library_and_calls(run, name):
    done = run(name)
    wrong = [line for line in done.stdout.splitlines() if line.startswith("not ok")]
    assert (wrong, done.returncode) == ([], 0)
    assert done.stdout.splitlines()[-1] == f"1..{done.stdout.count('ok ')}"


@pytest.mark.parametrize(
    ("number", "of_lesson"), [("3.2", "lesson3"), ("S6", "storage"), ("S10", "storage")]
)
def test_a_blank_says_which_exercise_it_is(folder, tmp_path, number, of_lesson):
    """In a program of the kernel, which has no other C library."""
    program, source = tmp_path / "blank", tmp_path / "blank.c"
    source.write_text(
        "void exercise_missing(const char *number);\n"
        f'void _start(void) {{ exercise_missing("{number}"); }}\n'
    )
    (compiler, *flags), _ = host_program.compiler()
    words = [compiler, *(["-m32"] if "-m32" in flags else []), "-nostdlib", "-static", "-no-pie"]
    missing = folder / "objects/libc/missing.asm.o"
    subprocess.run([*words, str(source), str(missing), "-o", str(program)], check=True)
    done = run_within([program], capture_output=True, text=True, seconds=SECONDS, check=False)
    wanted = f"\nexercise {number} is not written yet (labs/{of_lesson}/README.md)\n"
    assert (done.stderr, done.returncode) == (wanted, 63)


def test_pointers(run):
    done = run("pointers", 2)
    assert re.findall(r"^not ok.*\n.*", done.stdout, re.M) == []


def test_programs_are_linked_for_linux(folder):
    data = (folder / "hello").read_bytes()
    assert data[:8] == b"\x7fELF\1\1\1\0"
    segments = int.from_bytes(data[28:32], "little")
    assert int.from_bytes(data[segments + 8 : segments + 12], "little") == 0x08048000


def test_hello_and_echo(run):
    assert run("hello", "a").stdout == "Hello from ring 3!\nargument 1: a\n"
    assert run("echo", "a", "b c").stdout == "a b c\n"
    assert run("echo", "-n", "").stdout == ""


def test_true_and_false(run):
    assert [run(name).returncode for name in ("true", "false")] == [0, 1]


def test_cat(run, tmp_path):
    file = tmp_path / "file"
    file.write_text("x" * 100_000)
    assert run("cat", file, "/dev/null", file).stdout == "x" * 200_000
    assert run("cat", input="typed").stdout == "typed"
    done = run("cat", tmp_path / "none", file)
    assert (done.stdout, done.returncode) == ("x" * 100_000, 1)
    assert done.stderr == f"cat: {tmp_path}/none: No such file or directory\n"


def test_ls(run, tmp_path):
    for i in range(100):
        (tmp_path / f"f{i:02}").write_text("abc")
    (tmp_path / ".hidden").touch()
    (tmp_path / "g").symlink_to("f00")
    names = [*(f"f{i:02}" for i in range(100)), "g"]
    assert run("ls", tmp_path).stdout.split() == names
    assert run("ls", "-a", tmp_path).stdout.split() == [".", "..", ".hidden", *names]
    lines = run("ls", "-l", tmp_path).stdout.splitlines()
    assert re.match(r"-rw-r--r-- +1 +\d+ +\d+ +3 f00$", lines[0])
    assert lines[-1].endswith("g -> f00")
    assert run("ls", tmp_path / "none").returncode == 1


def test_ps_shows_itself(run):
    assert re.search(r"^ *\d+ +\d+ R .* ps$", run("ps").stdout, re.MULTILINE)


def test_measuring_programs(run):
    assert "getpid by INT 0x80" in run("nullcall", 10).stdout
    assert "pipe round trip" in run("pingpong", 10).stdout
    assert run("forkbench", 2).stdout.count("2 times") == 2
    assert re.match(r"a: \d+ rounds in 20 ms\n", run("spin", 20, "a").stdout)


@pytest.mark.parametrize("name", ["tlscheck", "fpucheck"])
def test_state_of_the_processor(run, name):
    assert run(name).stdout == f"{name}: ok\n"


def test_init_passes_the_status_on(run):
    """Where it is not process 1 it does not touch the machine."""
    done = run("init", "-c", "echo from the shell; exit 200")
    assert (done.stdout, done.returncode) == ("from the shell\n", 200)


# ---- bad pointers, random calls -----------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_probes(run, seed):
    """Linux is the reference: it refuses them all."""
    lines = run("probe", seed, env={"FILLER": "x" * 300}).stdout.splitlines()
    assert lines[1] == "1..40"
    assert [line for line in lines[2:] if not line.startswith("ok ")] == []


def test_probes_are_shuffled(run):
    names = [re.findall(r"^ok \d+ (.*)", run("probe", seed).stdout, re.M) for seed in (1, 2)]
    assert names[0] != names[1]
    assert sorted(names[0]) == sorted(names[1])
    assert len(set(names[0])) == 40


@pytest.mark.parametrize("name", ["corners", "manual", "filemanual", "answers"])
def test_what_linux_does(run, name):
    """What the guest must do in rare cases, and where its manual promises something."""
    lines = run(name).stdout.splitlines()
    assert [line for line in lines[2:] if not line.startswith("ok ")] == []
    assert lines[1] == f"1..{len(lines) - 2}"


def test_random_calls(run):
    """Without root's rights: what is random had better not have them on somebody's machine."""
    user = {"user": NOBODY} if os.geteuid() == 0 else {}
    runs = [run("calls", seed, 20_000, **user) for seed in (7, 8)]
    assert [each.returncode for each in runs] == [0, 0]
    first, other = (re.search(r"hash=(\w+)", each.stdout)[1] for each in runs)
    assert first != other
    assert "Bad address" in runs[0].stdout
    assert not Path("/tmp/calls").exists()


# ---- the shell ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "output", "status"),
    [
        ("echo a 'b  c' \"d  e\" f\\ g", "a b  c d  e f g\n", 0),
        ("X=5; echo $X ${X}y '$X' \"$X\" \\$X", "5 5y $X 5 $X\n", 0),
        ("echo '' | cat; echo $NONE a", "\na\n", 0),
        ("echo one | cat | tr a-z A-Z", "ONE\n", 0),
        ("false; echo $?; true; echo $?", "1\n0\n", 0),
        ("false && echo no || echo yes", "yes\n", 0),
        ("true || echo no && echo yes", "yes\n", 0),
        ("! true; echo $?", "1\n", 0),
        ("(cd /; pwd; exit 4); echo $?", "/\n4\n", 0),
        ("exit 3", "", 3),
        ("sh -c 'kill -9 $$'; echo $?", "Killed\n137\n", 0),
        ("no-such-program; echo $?", "sh: no-such-program: not found\n127\n", 0),
        ("/etc/passwd", "sh: /etc/passwd: Permission denied\n", 126),
        ("FOO=bar env | grep ^FOO; echo $FOO", "FOO=bar\n\n", 0),
        ("export A=1; B=2; env | grep -e ^A= -e ^B=", "A=1\n", 0),
        ("(exit 7) & wait $!; echo $?", "7\n", 0),
        ("sleep 0.1 & wait; echo after # comment", "after\n", 0),
        ("ls /none 2>/dev/null; ls /none 2>&1 | wc -l", "1\n", 0),
        ("echo 'open", "sh: a quote is not closed\n", 2),
        ("echo a | | b", "sh: a command is missing\n", 2),
        ("(echo a", "sh: a ) is missing\n", 2),
        ("echo a )", "sh: a ) without its (\n", 2),
        ("seq 100000 | head -1", "1\n", 0),
    ],
)
def test_shell(shell, line, output, status):
    assert shell(line) == (output, status)


def test_shell_redirections(shell, tmp_path):
    file = tmp_path / "file"
    line = (
        f"echo a >{file}; echo b >>{file}; cat <{file}; echo c >{file} >&2; pwd >{file}; cat {file}"
    )
    assert shell(line) == (f"a\nb\nc\n{os.getcwd()}\n", 0)
    assert shell(f"cat <{tmp_path}/none; echo $?")[0].endswith("No such file or directory\n1\n")


def test_shell_scripts(run, tmp_path):
    script = tmp_path / "script"
    script.write_text("echo $0 $1\nread-nothing\nexit $2\n")
    done = run("sh", script, "a", 5)
    assert (done.stdout, done.returncode) == (f"{script} a\n", 5)
    script.chmod(0o755)
    assert run("sh", "-c", f"{script} b 6; echo $?").stdout == f"{script} b\n6\n"


def test_shell_leaves_what_follows_to_the_command(run):
    """A line is read byte by byte: what stands behind it belongs to whom the line runs."""
    assert run("sh", input="cat\nall of\nthis\n").stdout == "all of\nthis\n"


def talk(master: int, text: bytes, until: bytes) -> bytes:
    """Types a text, and reads on until an answer has come."""
    os.write(master, text)
    seen = b""
    while until not in seen:
        seen += os.read(master, 4096)
    return seen


def test_shell_controls_jobs(folder):
    """On a terminal: ^C and ^Z reach the job and not the shell."""
    pid, master = pty.fork()
    if pid == 0:
        os.execv(folder / "sh", ["sh"])
    attributes = termios.tcgetattr(master)
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(master, termios.TCSANOW, attributes)
    prompt = b"# " if os.geteuid() == 0 else b"$ "
    talk(master, b"", prompt)
    os.write(master, b"sleep 100\n")
    wait_for_child(pid, "sleep")
    assert b"Interrupt" in talk(master, b"\x03", prompt)
    os.write(master, b"sleep 100 | cat\n")
    wait_for_child(pid, "sleep")
    wait_for_child(pid, "cat")
    assert b"[1] stopped  sleep 100 | cat" in talk(master, b"\x1a", prompt)
    assert b"148" in talk(master, b"echo $?\n", prompt)
    os.write(master, b"fg\n")
    wait_for_child(pid, "sleep", "S")
    talk(master, b"\x03", prompt)
    assert b"130" in talk(master, b"echo $?\n", prompt)
    os.write(master, b"exit 9\n")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9


def wait_for_child(parent: int, name: str, state: str = "S") -> None:
    """Until the process has a child of this name in this state (S: it sleeps)."""
    children = Path(f"/proc/{parent}/task/{parent}/children")
    while True:
        for child in children.read_text().split():
            fields = Path(f"/proc/{child}/stat").read_text()
            if f"({name}) {state} " in fields:
                return

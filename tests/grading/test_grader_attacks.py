"""What a submission may bring against the grader: it gains nothing, and reaches nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from labs.tools.course.exercises import ROOT, by_id, lessons, of_lesson
from labs.tools.grading import host_program, sandbox
from labs.tools.grading import lab as lab_module
from labs.tools.grading.build_tool import BuildFailure
from labs.tools.grading.elf_limits import KERNEL_BYTES, OBJECT_BYTES, kernel_problem, object_problem
from labs.tools.grading.graded_tree import graded_tree
from labs.tools.grading.lab import Lab
from labs.tools.grading.lab_plan import Job
from labs.tools.grading.plain_header import header_problem
from labs.tools.grading.test_run import run_tests
from labs.tools.proving.prove_mutants import open_tree
from tests.lesson1.support import Executable, Segment
from tests.support.building import make

pytestmark = pytest.mark.slow

OBJECT = b"\x7fELF\x01\x01\x01" + bytes(9) + b"\1\0\3\0"
BYTECODE = '__asm__(".section .gnu.lto_.main, \\"e\\", @progbits\\n.string \\"x\\"\\n.previous");\n'


@pytest.fixture(scope="module")
def reference():
    """The objects of the reference are there."""
    make("LESSON=1", "image-disk")


# ---- what compilers and linkers make -------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (OBJECT, ""),
        (b"INPUT(/etc/passwd)", "no.* object file|not an object file"),
        (OBJECT[:4] + b"\2" + OBJECT[5:], "not an object file"),
        (OBJECT + b".gnu.lto_.main", r"section \.gnu\.lto_"),
        (OBJECT + b".llvmbc", "plugin"),
        (OBJECT + bytes(OBJECT_BYTES), "larger than"),
    ],
)
def test_objects_that_are_refused(data, words):
    found = object_problem(data)
    assert (found == "") is (words == "")
    assert not words or pytest.raises(AssertionError, match=words).matches(AssertionError(found))


def test_kernels_that_are_refused(tmp_path):
    """One that wants a GiB of memory, and one that is large: the emulator would take as much."""
    kernel = tmp_path / "kernel.elf"
    for memory, words in ((0x4000, ""), (1 << 30, "1024 MiB of memory")):
        kernel.write_bytes(Executable(0x100000, [Segment(0x100000, b"x", 84, memory)]).file())
        assert words in kernel_problem(kernel)
        assert bool(words) is bool(kernel_problem(kernel))
    kernel.write_bytes(bytes(KERNEL_BYTES + 1))
    assert "the kernel's file" in kernel_problem(kernel)


@pytest.mark.parametrize("path", ["boot/load_elf.c", "kernel/report/boot_info.c"])
def test_bytecode_for_a_plugin(reference, tmp_path, path):
    """A file with it is refused with a reason, whether it goes into the kernel or the loader."""
    exercise = next(each for each in (by_id("1.4"), by_id("1.5")) if path in each.files)
    for each in exercise.files:
        place = tmp_path / "submission" / each
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text((ROOT / each).read_text() + (BYTECODE if each == path else ""))
    graded = graded_tree(exercise, tmp_path / "submission", tmp_path / "work")
    assert set(graded.problems) == {path}
    assert f"{path} is refused: it has a section .gnu.lto_" in graded.problems[path]


# ---- programs for the host -----------------------------------------------------------------------


def lab_of(tree: Path, scratch: Path) -> Lab:
    return Lab(lesson=1, root=tree, seed=1, mode="icount", scratch=scratch, boxed=True)


def small_tree(tmp_path: Path, text: str) -> Lab:
    """A boxed tree with one file of a student's."""
    tree = tmp_path / "tree"
    for directory in ("build", "tests/host"):
        (tree / directory).mkdir(parents=True)
    (tree / "student.c").write_text(text)
    (tree / "tests/host/rename.h").write_text("")
    (tmp_path / "driver.c").write_text(
        '#include <stdio.h>\nint student(void);\nint main(void) { printf("%d", student()); }\n'
    )
    return lab_of(tree, tmp_path)


def said_by(lab: Lab) -> str:
    program = lab.host(["student.c"], [lab.scratch / "driver.c"], "small")
    return lab.ask(program, b"").stdout.decode()


ENDLESS = {
    "questions": 'for (;;) { printf("\\1x\\n"); fflush(stdout); getchar(); }',
    "a question": 'printf("\\1"); for (;;) printf("x");',
    "text": 'for (;;) puts("x");',
}


@pytest.mark.parametrize("what", ENDLESS)
def test_programs_that_ask_come_to_an_end(tmp_path, monkeypatch, what):
    """Nobody reads on, and what was read is not large."""
    monkeypatch.setattr(lab_module, "QUESTIONS_MOST", 1000)
    lab = small_tree(tmp_path, f"#include <stdio.h>\nint student(void) {{ {ENDLESS[what]} }}\n")
    program, asked = lab.host(["student.c"], [tmp_path / "driver.c"], "small"), []
    done = lab.converse(program, lambda question: (asked.append(question), b"\n")[1])
    assert done.returncode != 0
    assert len(asked) == (1000 if what == "questions" else 0)
    assert len(done.stdout) < 5 << 20


@pytest.mark.parametrize("boxed", [True, False])
def test_warnings_cost_nothing_where_ci_is_set(tmp_path, monkeypatch, boxed):
    """The Makefile makes errors of them for us."""
    monkeypatch.setenv("CI", "true")
    done = sandbox.run(["sh", "-c", "echo CI=$CI"], tmp_path, sandbox.BUILD, boxed)
    assert done.output == "CI=\n"


def test_host_programs_wrap_as_the_kernel_does(tmp_path):
    lab = small_tree(tmp_path, "int student(void) { return sizeof(void *) * 8; }\n")
    assert said_by(lab) == "32"


def test_host_programs_run_where_no_namespaces_can_be_made(tmp_path, monkeypatch):
    """With sanitizers, which read /proc; what the program does to itself is still seen, and it
    finds no other program."""
    monkeypatch.setattr(sandbox, "why_no_bubblewrap", lambda: "no namespaces here")
    sandbox.why_unavailable.cache_clear()
    if cause := sandbox.why_unavailable():
        pytest.skip(cause)
    body = 'int a[2]; volatile int i = getchar() - 44; a[i] = 7; return system("true") ? 7 : 8;'
    headers = "#include <stdio.h>\n#include <stdlib.h>\n"
    lab = small_tree(tmp_path, f"{headers}int student(void) {{ {body} }}\n")
    program = lab.host(["student.c"], [tmp_path / "driver.c"], "small")
    assert lab.ask(program, b"-").stdout == b"7"
    done = lab.ask(program, b".")
    assert (done.stdout, b"out of bounds" in done.stderr) == (b"", True)


def test_host_programs_are_linked_in_the_box(tmp_path, monkeypatch):
    """Every tool that sees something of the student's runs there; what runs outside sees nothing
    but the test's own."""
    lab, outside, plain = small_tree(tmp_path, "int student(void) { return 7; }\n"), [], sandbox.run

    def run(command, directory, limits, boxed=True):
        if not boxed:
            outside.append((directory, [each for each in command if each.endswith((".c", ".o"))]))
        return plain(command, directory, limits, boxed)

    monkeypatch.setattr(sandbox, "run", run)
    assert said_by(lab) == "7"
    assert outside == [(ROOT, [str(tmp_path / "driver.c")])]


def test_host_programs_take_no_bytecode(tmp_path):
    with pytest.raises(BuildFailure, match=r"student\.c: it has a section \.gnu\.lto_"):
        said_by(small_tree(tmp_path, BYTECODE + "int student(void) { return 7; }\n"))


@pytest.mark.parametrize("word", ["no_sanitize", "__no_sanitize__", "no_##sanitize"])
def test_host_programs_are_watched(tmp_path, word):
    """A function that the sanitizer must not look at, however its attribute is written."""
    macro = f"#define QUIET(no_) {word}\n" if "#" in word else f"#define QUIET(_) {word}\n"
    code = '__attribute__((QUIET(no_)("address"))) int student(void) { return 7; }\n'
    with pytest.raises(BuildFailure, match=r"student\.c turns the sanitizer off"):
        said_by(small_tree(tmp_path, macro + code))


@pytest.mark.parametrize("name", ["unpoison_memory_region", "handle_no_return"])
def test_host_programs_leave_the_sanitizer_alone(tmp_path, name):
    """A function of the sanitizer's, by which memory beyond an object would be an object."""
    code = "void __asan_##_n(void);\nint student(void) { return 7; }\n".replace("##_n", name)
    with pytest.raises(BuildFailure, match=rf"student\.c turns the sanitizer off \(__asan_{name}"):
        said_by(small_tree(tmp_path, code))


def test_host_programs_find_no_other_program(tmp_path):
    """What comes with the system could do a student's work, as debugfs and dumpe2fs could."""
    code = 'int student(void) { return system("true") == 0 || !access("/usr/sbin", F_OK); }\n'
    lab = small_tree(tmp_path, f"#include <stdlib.h>\n#include <unistd.h>\n{code}")
    assert said_by(lab) == "0"


@pytest.mark.parametrize("weak", ["", "__attribute__((weak)) "])
def test_host_programs_of_the_kernel_have_no_c_library(tmp_path, weak):
    """A file of the kernel, which calls a function that only a host has, be it if it is there."""
    lab = small_tree(tmp_path, "int student(void);\n")
    (lab.root / "mm").mkdir()
    code = f'{weak}int atoi(const char *);\nint student(void) {{ return atoi ? atoi("7") : 0; }}\n'
    (lab.root / "mm/student.c").write_text(code)
    with pytest.raises(BuildFailure, match=r"mm/student\.c: the kernel has no atoi"):
        lab.host(["mm/student.c"], [tmp_path / "driver.c"], "small")


def test_a_blank_of_the_kernel_is_no_call_of_the_c_library(tmp_path):
    """What is not written yet says so in a host program, too."""
    lab = small_tree(tmp_path, "int student(void);\n")
    place = lab.root / "kernel/report"
    place.mkdir(parents=True)
    place.joinpath("exercise.h").write_bytes((ROOT / "kernel/report/exercise.h").read_bytes())
    (lab.root / "mm").mkdir()
    code = '#include "kernel/report/exercise.h"\nint student(void) { exercise_missing("1.3"); }\n'
    (lab.root / "mm/student.c").write_text(code)
    program = lab.host(["mm/student.c"], [tmp_path / "driver.c"], "small")
    said = subprocess.run([program], capture_output=True, text=True, check=False).stdout
    assert said == "exercise 1.3 is not written yet (labs/lesson1/README.md)\n"


def test_linking_uses_no_plugin(tmp_path):
    """Bytecode that came all the way to the linker would stay what it is: data."""
    lab = small_tree(tmp_path, BYTECODE + "int student(void) { return 7; }\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host_program, "object_problem", lambda data: "")
        assert said_by(lab) == "7"


IN_32_BITS = (
    ("uint8_t *to = memory + segment->paddr;", "uint32_t to = (uint32_t)memory + segment->paddr;"),
    ("to[i] = file[segment->offset", "*(uint8_t *)(to + i) = file[segment->offset"),
    ("to[i] = 0;", "*(uint8_t *)(to + i) = 0;"),
)


def test_addresses_of_32_bits_are_right(reference, tmp_path):
    """A solution that keeps addresses in uint32_t has all points that host programs give."""
    text = (ROOT / "boot/load_elf.c").read_text()
    for old, new in IN_32_BITS:
        assert text.count(old) == 1
        text = text.replace(old, new)
    open_tree(1, {"boot/load_elf.c": text.encode()}, tmp_path / "tree")
    job = Job("right", str(tmp_path / "tree"), boxed=True, exercise="1.4", modes=("icount",))
    results = run_tests([job], ["tests/lesson1/hidden/test_loader.py"], 1)
    failed = {each.name: each.words for each in results if not each.passed}
    assert results
    assert failed == {}


# ---- a header that a test's own program includes -------------------------------------------------

HEADER = "user/libc/syscall.h"
PLAIN = "static inline long f(long a)\n{\n\treturn a;\n}\n"
PROGRAM = """\
#include "own.h"
#define LIVE 1
long receive(long number);
long receive(long number)
{
	long buffer[2] = { number, 0 };
	for (volatile int i = 0; i < 3; i++)
		f(buffer[0]);
	return buffer[0];
}
static inline void nothing(void)
{
}
"""
TWICE = """\
#ifndef SECOND
#define SECOND
#define long volatile long
#include __BASE_FILE__
#undef long
#ifdef LIVE
#define receive other
#define nothing none
#undef LIVE
#endif
#endif
"""


def test_headers_that_students_write():
    """Each new one needs a look at whoever includes it."""
    every = {path for lesson in lessons() for each in of_lesson(lesson) for path in each.files}
    assert {path for path in every if path.endswith((".h", ".inc"))} == {
        HEADER,
        "kernel/cpu/trap_frame.inc",  # only the student's own files and a table include it
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ""),
        ('static long g(void) { long r; asm volatile("int $0x80" : "=a"(r)); return r; }', ""),
        ("#define OWN(x) ((x) + 1)\n", ""),
        ("static inline __attribute__((always_inline, unused)) long g(void) { return 1; }", ""),
        ('static void g(void) { register long r asm("ebx") = 1; asm("" : : "r"(r)); }', ""),
        ('#pragma GCC optimize("O0")', "a pragma"),
        ("#pragma GCC push_options", "a pragma"),
        ('#pragma GCC target("no-sse")', "a pragma"),
        ('_Pragma("GCC optimize(\\"O0\\")")', "a pragma"),
        ('#define P(x) _Pragma(#x)\nP(GCC optimize("O0"))', "a pragma"),
        ('static __attribute__((optimize("O0"))) long g(void) { return 1; }', "attribute optimize"),
        ('static __attribute__((unused, __target__("sse"))) long g(void) { return 1; }', "target"),
        ("static __attribute__((noipa)) long g(void) { return 1; }", "attribute noipa"),
        ("#define A __attribute\nstatic A((noinline)) long g(void) { return 1; }", "noinline"),
        ("#define volatile", "in place of (volatile"),
        ("#define inline __attribute__((unused))", "in place of inline"),
        ("#define buffer *(volatile long(*)[2])buffer", "in place of buffer"),
        ("#undef __i386__\n#define long volatile long", "has volatile in place of long"),
        ('__asm__(".macro ret\\n.endm");', "directive .macro"),
        ('static void g(void) { asm("." "set x, 1"); }', "directive .set"),
        ('static void g(void) { asm("\\x2emacro ret"); }', "the escape"),
        ('register long taken asm("esi");', "takes a register"),
        ('long receive(long) __asm__("hidden");\n__asm__("receive: ret");', "the name receive"),
        ('extern int g asm("rec" "eive");', "the name receive"),
        (TWICE, "in place of"),
        ("[[gnu::noipa]] static long g(void) { return 1; }", "attribute in"),
    ],
)
def test_header_that_changes_the_program(tmp_path, text, words):
    """What would change how a test's own code is compiled is refused, wherever it is hidden."""
    texts = []
    (tmp_path / "program.c").write_text(PROGRAM)
    for content in (PLAIN, PLAIN + text + "\n"):
        (tmp_path / "own.h").write_text("#pragma once\n" + content)
        command = ["gcc", "-std=gnu11", "-E", str(tmp_path / "program.c")]
        texts.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    problem = header_problem(texts[1], texts[0], "/program.c")
    assert words in problem
    assert bool(words) is bool(problem)

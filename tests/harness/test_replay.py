"""make replay: a test's machine once more, from its record or driven as the test has driven it."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from labs.tools.debugging.host_replay import functions_of, replay_on_host
from labs.tools.debugging.replay import find_test, recorded, told
from labs.tools.debugging.replay import main as replay
from labs.tools.debugging.steps import Narrator, Step, last_run, shortened, steps_of
from labs.tools.grading.lab_plan import MODES
from labs.tools.machine.qemu_command import Config
from labs.tools.machine.result import Outcome
from labs.tools.machine.symbols import Symbols

ROOT = Path(__file__).resolve().parents[2]
GUEST = re.compile(r"^\| .*\n", re.MULTILINE)  # its last line may come before the stop, or after
# QEMU writes a guest's power-off into a record without the count of instructions: a replay takes it
# from the last event on, and one in forty is over before it comes to machine_exit.
EARLY_ENDS, SWITCHED_OFF = 5, "Program received signal SIGQUIT"
STACK, TEXT, HOME = 0xC0109E00, 0xC0070000, 0xC0103000


def run(capfd, tmp_path: Path, test: str, commands: str) -> str:
    """What a session shows in which these commands of gdb are typed."""
    batch = tmp_path / "commands"
    batch.write_text(commands)
    assert replay(["--test", test, "--batch", str(batch)]) == 0
    return capfd.readouterr().out


@pytest.mark.slow
def test_driven_machine(capfd, tmp_path) -> None:
    """gdb begins where the test calls a function for the last time, and sees the same result."""
    commands = "info symbol $pc\nprint (char *)format\ncontinue\nprint (char *)0xc0040000\n"
    said = run(capfd, tmp_path, "test_format.py::test_numbers", commands)
    assert "test_format.py::test_numbers passes" in said
    assert '  call snprintk(0xc0040000, 0x100, 0xc0070000 "%d", 0x1b)\n  let it return\n' in said
    assert "What the test does next: let it return" in said
    assert "snprintk in section .text" in said
    assert '"%X"' in said
    assert '"ABC8"' in said


@pytest.mark.slow
def test_driven_machine_with_memory(capfd, tmp_path) -> None:
    """What the test put into memory without a packet is there again; and gdb goes back."""
    commands = "continue\nlast-change zones[1].free\n"
    said = run(capfd, tmp_path, "test_buddy.py::test_split", commands)
    assert "test_buddy.py::test_split passes" in said
    assert "  call buddy_take(" in said
    assert re.search(r"buddy_take \(.*zones\[1\]\.free: .*by the next instruction", said, re.DOTALL)


@pytest.mark.slow
def test_driven_machine_with_ports(capfd, tmp_path) -> None:
    """Registers, memory and ports of the stopped machine; the key arrives here, too."""
    said = run(capfd, tmp_path, "test_keyboard", "backtrace 1\ncontinue\nprint $eax\n")
    assert "  monitor o /b 0x60 0x1e\n" in said
    assert "#0  keyboard_get ()" in said
    assert "$1 = 0x61" in said  # the letter a


@pytest.mark.slow
def test_driven_machine_in_real_mode(capfd, tmp_path) -> None:
    said = run(capfd, tmp_path, "test_second_stage_is_read", "continue\nwhere-am-i\n")
    assert "run to stage2_start" in said
    assert "[16-bit real mode]  0000:8000 = 0x00008000 stage2_start:" in said


@pytest.mark.slow
def test_nothing_to_replay(capfd) -> None:
    assert replay(["--test", "test_header_is_in_the_file"]) == 1
    said = capfd.readouterr()
    assert "test_header_is_in_the_file passes" in said.out
    assert "this test starts no machine and no program" in said.err


@pytest.mark.slow
def test_program_on_this_computer(capfd, tmp_path) -> None:
    """Without a wrong answer gdb stops at the first call of the exercise's functions."""
    said = run(capfd, tmp_path, "test_pointers", "print logical\nbacktrace 1\n")
    assert "the test calls ext_pointer_tree, map_run, ext_map_pointers" in said
    assert "It stops at the first of these calls" in said
    assert "$1 = 12\n#0  ext_map_pointers (" in said  # what the test asks for last
    assert "in answer (" not in said  # the test's own frames are further out


@pytest.mark.slow
@pytest.mark.parametrize("test", ["test_offsets", "test_appends"])
def test_program_that_asks(capfd, tmp_path, test: str) -> None:
    """It hears the same answers again, each when it asks, up to its end; its questions are not what
    a student wants to read."""
    said = run(capfd, tmp_path, test, "delete\ncontinue\n")
    assert "exited normally" in said
    assert "\1" not in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("test", "exercise", "question", "name", "value"),
    [
        ("test_extents", "S3", 2, "logical", 308),
        ("test_places", "S8", 2, "ns", 9_402_010),
        ("test_reads_a_sector", "S1", 3, "transfer->lba", 77),
        ("test_put_get_delete", "S9", 1, "store->tail", 8192),
        ("test_the_sheet_of_2010", "S10", 0, "super->s_blocks_per_group", 32768),
        ("test_pack_examples", "2.1", 1, "descriptor->limit", 0xFFFF),
    ],
)
def test_program_stops_in_the_question(
    capfd, tmp_path, test: str, exercise: str, question: int, name: str, value: int
) -> None:
    """That which the test has found wrong."""
    program, story = told(find_test(test), tmp_path, MODES[0])
    assert story.exercise == exercise
    batch = tmp_path / "commands"
    batch.write_text(f"print (long long){name}\n")
    wrong = replace(program, question=question)
    assert replay_on_host(wrong, exercise, tmp_path, batch) == 0
    said = capfd.readouterr().out
    assert f"call of question {question + 1}, the one that is wrong" in said
    assert f"$1 = {value}\n" in said


def test_functions_of_an_exercise(tmp_path) -> None:
    """Those that a blank is in, or that are in a blank; without marks all of its files."""
    names = ("ext_pointer_tree", "map_run", "ext_map_pointers")
    assert functions_of("S3")[:3] == [f"fs/ext/map_pointers.c:{name}" for name in names]
    assert functions_of("S6")[:2] == ["user/seekrw.c:size_of", "user/seekrw.c:make_buffer"]
    (tmp_path / "labs").mkdir()
    (tmp_path / "labs/exercises.toml").write_text((ROOT / "labs/exercises.toml").read_text())
    (tmp_path / "drivers/disk").mkdir(parents=True)
    (tmp_path / "drivers/disk/latency.c").write_text(
        "int one(void)\n{\n\treturn 1;\n}\n\nstatic struct x *two(int a,\n\t\tint b)\n{\n}\n"
        "\nint main(void)\n{\n}\n"
    )
    file = "drivers/disk/latency.c"
    assert functions_of("S8", tmp_path) == [f"{file}:one", f"{file}:two"]


@pytest.mark.slow
def test_record_is_the_same_each_time(tmp_path) -> None:
    """gdb sees the same registers at the same place, and the kernel's own end, in two sessions at
    the same time. Both end well, although something was still to be done for the guest's output."""
    batch = tmp_path / "commands"
    lines = ("break machine_exit", "continue", "info registers", "x/8i $pc", "backtrace")
    batch.write_text("\n".join((*lines, "python gdb.post_event(lambda: None)\n")))
    command = [
        sys.executable,
        "-m",
        "labs.tools.debugging.replay",
        "--test",
        "test_own_loader_boots",
    ]
    command += ["--batch", str(batch)]
    seen: list[str] = []
    for _ in range(EARLY_ENDS):
        started = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) for _ in range(2)]
        said = [each.communicate()[0].decode() for each in started]
        assert [each.returncode for each in started] == [0, 0]
        seen = [GUEST.sub("", each.partition("Breakpoint 1.2, ")[2]) for each in said]
        if all(seen):
            break
        assert all(
            SWITCHED_OFF in each for each, place in zip(said, seen, strict=True) if not place
        )
    assert "eip" in seen[0]
    assert "machine_exit (status=" in seen[0]
    assert seen[0] == seen[1]


@pytest.mark.parametrize("fields", [{"boot": "disk"}, {"boot": "direct", "script": "panic"}])
def test_record_of_each_way_to_boot(build, tmp_path, fields) -> None:
    kernel, image = build("build/storage/kernel.elf"), build("build/storage/boot.img")
    fields = {"script": "help", "kernel": kernel, "icount": 3, **fields}
    if fields["boot"] == "disk":
        fields["image"] = image
    result = recorded(Config(**fields), tmp_path / "record")
    assert result.outcome in (Outcome.ENDED, Outcome.PANIC)


def test_find_test() -> None:
    assert find_test("test_format.py::test_numbers").endswith("test_format.py::test_numbers")
    with pytest.raises(ValueError, match="there is no test test_nothing"):
        find_test("test_nothing")


def test_replay_asks_for_a_test(capsys) -> None:
    assert replay([]) == 1
    assert "say which test: make replay TEST=test_name" in capsys.readouterr().err


# ---- steps --------------------------------------------------------------------------------------


class NoSymbols(Symbols):
    """A kernel of which one function is known."""

    def __init__(self) -> None:
        super().__init__(None)

    def describe(self, address: int, is_return: bool = False) -> str:
        return f"{address:#010x} kmain+0x0 (main.c:1)" if address == HOME else f"{address:#010x}"


def write(address: int, data: bytes) -> str:
    return f"M{address:x},{len(data):x}:{data.hex()}"


def registers(**values: int) -> str:
    """The packet that sets all registers; those that are not named are zero."""
    words = [0] * 16
    words[4], words[8] = values["esp"], values["eip"]
    return "G" + struct.pack("<16I", *words).hex()


CALL = [
    *("qXfer:features:read:target.xml:0,fff", f"Z1,{HOME:x},1", "c", "g", f"z1,{HOME:x},1"),
    *(write(TEXT, b"%d\0"), write(STACK, struct.pack("<3I", HOME, TEXT, 7))),
    *(registers(esp=STACK, eip=0xC0105000), f"Z1,{HOME:x},1", "c", f"z1,{HOME:x},1", "m0,4"),
]


def test_steps_end_before_the_last_run() -> None:
    steps = steps_of(CALL)
    kinds = [step.kind for step in steps]
    assert kinds == ["break", "continue", "forget", "write", "write", "set", "break"]
    assert steps[5].values["esp"] == STACK
    assert last_run(CALL) == "continue"
    assert steps_of(["g", "m0,4"]) == []


def test_steps_in_words() -> None:
    narrator = Narrator(NoSymbols())
    lines = list(narrator.lines(steps_of(CALL)))
    assert lines == ["run to kmain", 'call 0xc0105000(0xc0070000 "%d", 0x7)']
    assert narrator.running("continue") == "let it return"


def test_single_registers_and_the_monitor() -> None:
    port, look = b"o /b 0x21 0xff".hex(), b"info registers".hex()
    steps = steps_of(["P15=00e01000", f"qRcmd,{port}", f"qRcmd,{look}", "s"])
    assert steps == [
        Step("set", values={"cr3": 0x0010E000}),
        Step("monitor", data="o /b 0x21 0xff"),
    ]


def test_a_long_story_is_shortened() -> None:
    assert shortened(["a"] * 12) == ["a"] * 12
    assert shortened([*"abc", *"d" * 12]) == ["... 3 more", *"d" * 12]

"""`backtrace` at every instruction of the kernel's assembly: the ways into the kernel and out, from
task to task, and to a handler of a signal."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.gdb_guest import command, guest_probe, names_of

TRIES = 6
CODE = """
CALLERS = 3
def callers(frame):
    found = []
    while frame and len(found) < CALLERS:
        if frame.type() == gdb.NORMAL_FRAME:
            found.append([frame.pc(), frame.name()])
        frame = frame.older()
    return found
def is_assembly():
    table = gdb.find_pc_line(gdb.newest_frame().pc()).symtab
    return table is not None and table.filename.endswith((".asm", ".inc"))
def walk(most=60):
    steps = []
    while is_assembly() and len(steps) < most:
        frame = gdb.newest_frame()
        steps.append([frame.pc(), callers(frame.older())])
        run("nexti")
    return steps, callers(gdb.newest_frame())
def arrive(place):
    run(f"tbreak {place}")
    run("continue")
def user_registers(at):
    words = bytes(gdb.selected_inferior().read_memory(int(gdb.parse_and_eval(at)), 4))
    return int.from_bytes(words, "little")

run("break hello:main if count == 2")
said["break"] = run("info breakpoints")
arrive("thread_begin")
said["thread"] = walk(1)[0], run("backtrace")
arrive("program_begin")
said["program"] = walk()
run("continue")
said["main"] = run("backtrace 1")
run("delete")
def enter(way, place):
    arrive(place)
    said["to " + way] = user_registers("(unsigned)$esp")
    said[way] = walk()
enter("call", "syscall_entry")
arrive("switch_to")
said["switch"] = walk()
arrive("libccheck:receive")
said["signal"] = run("backtrace 5")
run("tbreak signal_return")
run("continue")
said["from signal"] = walk(2)[0]
arrive("sysenter_entry")
said["to sysenter"] = user_registers("(unsigned)&shared_sysenter_return")
said["sysenter"] = walk()
enter("interrupt", "trap_stub_32 if (*(unsigned *)($esp + 4) & 3) == 3")
run("tbreak nothing_at_all")
said["refused"] = run("break nothing_at_all"), run("break hello:nothing")
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What gdb says on each way. A walk is [[pc, callers], ...], and the callers after it. It goes
    once more where a task that is switched to was a new one: gdb and the machine's clock do not
    keep step."""
    programs = command("hello a; libccheck; nullcall 1; nullcall 300000")
    for _ in range(TRIES):
        said = guest_probe(tmp_path_factory.mktemp("frames"), CODE, "storage", icount=3, **programs)
        if said["switch"][1] in [found for _, found in said["switch"][0]]:
            break
    return said


def assert_same(steps: list[Any], callers: list[Any], least: int) -> None:
    """At each instruction of a walk the callers are these."""
    assert len(steps) >= least
    assert [found for _, found in steps] == [callers] * len(steps)


@pytest.mark.parametrize(("way", "least"), [("call", 20), ("interrupt", 20)])
def test_into_the_kernel_and_back(seen, way, least):
    """From the first instruction of the kernel to the last one, the callers are the program's: what
    the processor has pushed, and what the program is in afterwards."""
    steps, after = seen[way]
    assert_same(steps, after, least)
    assert after[0][0] == seen[f"to {way}"]
    assert after[0][0] < 0xC0000000


def test_sysenter(seen):
    """SYSENTER saves nothing: the callers are told by what the stub and the kernel agree on."""
    steps, _ = seen["sysenter"]
    callers = steps[0][1]
    assert_same(steps, callers, 20)
    assert callers[0][0] == seen["to sysenter"]
    assert callers[-1][1] == "main"  # what it calls is inlined


def test_from_task_to_task(seen):
    """Up to the change of stacks it is one task's callers, and from there on the other's."""
    steps, after = seen["switch"]
    change = next(i for i, (_, found) in enumerate(steps) if found == after)
    assert_same(steps[change:], after, 4)
    assert_same(steps[:change], steps[0][1], 6)
    assert steps[0][1] != after
    assert steps[0][1][0] == after[0]  # both in schedule


def test_first_start_of_a_task(seen):
    """A thread of the kernel has no caller; a forked program goes on in fork."""
    thread, backtrace = seen["thread"]
    assert [found for _, found in thread] == [[]]
    assert names_of(backtrace) == ["thread_begin"]
    steps, after = seen["program"]
    assert_same(steps, after, 10)
    assert after[0][1] == "fork"


def test_handler_of_a_signal(seen):
    """Below the handler is what the signal has interrupted."""
    assert names_of(seen["signal"])[:4] == [
        *("receive", "returned_from_handler", "<signal handler called>", "result_of"),
    ]
    assert all(found[0][1] == "raise" for _, found in seen["from signal"])
    assert len(seen["from signal"]) == 2


def test_breakpoint_in_a_program_that_is_not_loaded(seen):
    """With a condition, in the language of that program; what is not there is refused."""
    assert "in main at user/hello.c" in seen["break"]
    assert "stop only if  count == 2" in seen["break"]
    assert "main (count=0x2" in seen["main"]
    assert 'Function "nothing_at_all" not defined' in seen["refused"][0]
    assert "has no symbol nothing" in seen["refused"][1]

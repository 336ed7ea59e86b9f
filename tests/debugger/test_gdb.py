"""`make gdb`: a boot followed from the reset vector into the kernel, and every command it adds."""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pexpect
import pytest

from tests.support.gdb_session import BUILD, LAUNCHER, ROOT, launch, probe

PROMPT = "(gdb) "


@pytest.fixture(scope="module", autouse=True)
def images(build: Callable[[str], Path]) -> None:
    """Everything that a session needs."""
    for name in ("boot.img", "grub.iso", "kernel.elf"):
        build(f"build/storage/{name}")


@pytest.fixture(scope="module")
def boot(images: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One session from the reset vector to the kernel's prompt."""
    return probe(
        tmp_path_factory.mktemp("boot"),
        """
        said["reset"] = run("where-am-i"), run("xi 1"), run("descriptors"), run("klog")
        run("set breakpoint always-inserted on")
        run("break kmain")
        run("hbreak *0x7c00")
        said["stop"] = run("continue")
        said["sector"] = memory(0x7c00, 512)
        said["instructions"] = run("x/2i $pc")
        said["next"] = [run("next") for _ in range(17)]
        said["stage2"] = go_to("stage2_start"), run("x/i $pc")
        said["second"] = memory(0x8000, 512)
        said["loader"] = go_to("loader_main"), run("x/i $pc"), run("backtrace")
        said["bios call"] = [go_to(f"*&'bios_call.{label}'") for label in ("leave", "real")]
        run("tbreak find_memory")
        run("continue")
        said["start"] = go_to("*&_start"), run("page-directory")
        run("continue")
        said["kmain"] = run("where-am-i"), run("backtrace 1"), run("memory-map")
        said["magic"] = int(gdb.parse_and_eval("magic"))
        said["first gdt"] = run("descriptors")
        go_to("prompt")
        for command in ("klog 100", "console 100", "memory-map", "page-directory", "descriptors",
                        "disk-requests", "last-fault", "trap-frame", "apprentice", "klog 0 0"):
            said[command] = run(command)
        said["help"] = run("help klog"), run("help user-defined")
        """,
    )


# The way up


def test_reset_vector(boot):
    """Before the first instruction: CS has a base that its selector does not tell."""
    place, code, tables, log = boot["reset"]
    assert place.startswith("[16-bit real mode]  f000:fff0 = 0xfffffff0:  jmp ")
    assert re.search(r"0xfffffff0:  jmp\s+0xf000:", code)
    assert "Real mode has no descriptors" in tables
    assert "the kernel does not run yet" in log


def test_boot_sector(boot):
    """A breakpoint set before the sector is loaded stops there, and is not in the bytes."""
    assert "start () at boot/mbr.asm" in boot["screen"]
    assert "[16-bit real mode]  0000:7c00 = 0x00007c00 start:  jmp 0x0:0x7c05" in boot["stop"]
    assert bytes.fromhex(boot["sector"]) == (BUILD / "mbr.bin").read_bytes()
    assert re.search(r"jmp +0x0:0x7c05.*\n.*<start.segments>:\tcli", boot["instructions"])


def test_next_steps_over_the_bios(boot):
    """Line by line through the boot sector, and over the BIOS's disk reads instead of into them."""
    lines = "".join(boot["next"])
    assert lines.count(":  int 0x13\n") == 1
    assert lines.count("[16-bit real mode]  0000:7c") == len(boot["next"])
    assert len(re.findall(r"^\d+\t\t", boot["screen"], re.MULTILINE)) >= len(boot["next"])


def test_second_stage(boot):
    place, instruction = boot["stage2"]
    assert place.startswith(
        "[16-bit real mode]  0000:8000 = 0x00008000 stage2_start:  mov BYTE PTR"
    )
    assert "BYTE PTR ds:" in instruction
    assert bytes.fromhex(boot["second"]) == (BUILD / "stage2.bin").read_bytes()[:512]


def test_loader_in_protected_mode(boot):
    place, instruction, backtrace = boot["loader"]
    assert re.match(r"\[32-bit protected mode, paging off\]  0x0000\w{4} loader_main", place)
    assert re.search(r"push +ebp", instruction)
    assert "loader_main (boot_drive=0x80) at boot/loader.c" in backtrace


def test_back_to_the_bios_and_forth(boot):
    """Each call of the BIOS goes through 16-bit protected mode to real mode."""
    leave, real = boot["bios call"]
    assert leave.startswith("[16-bit protected mode, paging off]  0x0000")
    assert re.match(
        r"\[16-bit real mode\]  0000:80\w\w = 0x0000\w{4} bios_call.real:  xor ax,ax", real
    )


def test_kernel_entry(boot):
    place, mappings = boot["start"]
    assert re.match(r"\[32-bit protected mode, paging off\]  0x0010\w{4} _start:  cli", place)
    assert "paging is off" in mappings


def test_kmain(boot):
    place, backtrace, memory_map = boot["kmain"]
    assert re.match(r"\[32-bit protected mode, paging on\]  0xc01\w{5} kmain", place)
    assert re.match(r"#0 +kmain \(magic=0x2badb002, information=0x\w+\) at ", backtrace)
    assert boot["magic"] == 0x2BADB002
    assert "has not read it yet" in memory_map
    assert "not mapped any more" in boot["first gdt"]


@pytest.mark.parametrize("way", ["grub", "direct"])
def test_other_ways_to_boot(tmp_path, way):
    code = "said['kmain'] = go_to('kmain')\nsaid['magic'] = int(gdb.parse_and_eval('magic'))"
    said = probe(tmp_path, code, "--boot", way, "--memory", "16")
    assert "paging on]  0xc01" in said["kmain"]
    assert said["magic"] == 0x2BADB002


def test_breakpoint_in_the_bios_can_be_left(tmp_path):
    """gdb does not know that it stands on it: CS has a base there."""
    code = """
        run("break *0xfe05b")
        said["first"] = run("continue")
        run("tbreak kmain")
        run("continue")
    """
    said = probe(tmp_path, code)
    assert "f000:e05b = 0x000fe05b:" in said["first"]
    assert "kmain (magic=" in said["screen"]


# Commands on the kernel at its prompt


def test_log_and_console_tell_the_same(boot):
    kernel_part = boot["console 100"].partition("Apprentice: an i386 kernel")[2]
    log = boot["klog 100"].partition("Apprentice: an i386 kernel")[2]
    assert log == kernel_part
    assert "loaded by Apprentice boot" in log


def test_memory_map_is_what_the_kernel_printed(boot):
    printed = re.findall(r"memory: (0x\w+) - (0x\w+)  (.+)", boot["klog 100"])
    told, ordered = boot["memory-map"].split("In order:")
    assert "As Apprentice boot told it:" in told
    assert re.findall(r"(0x\w+) - (0x\w+) +\d+ KiB  (.+)", ordered) == printed
    assert len(printed) >= 4


def test_page_directory_joins_equal_runs(boot):
    head, _, *rows = boot["page-directory"].splitlines()
    assert re.match(r"page directory at 0x001\w{5} \(cr3\)", head)
    assert [re.split("  +", row) for row in rows] == [
        [
            *("0xc0000000 - 0xf7ffffff", "0x00000000", "917504", "224 x 4096 KiB"),
            "kernel, writable, global",
        ],
        [*("0xf8002000 - 0xf8003fff", mock.ANY, "8", "2 x 4 KiB"), "kernel, writable"],  # a stack
    ]


def test_page_directory_decodes_tables(tmp_path):
    """A page table made by hand at 8 MiB: three pages that continue, one that does not."""
    said = probe(
        tmp_path,
        """
        go_to("prompt")
        pages = {0: 0x900005, 1: 0x901025, 2: 0x902005, 4: 0x904107, 5: 0x800013}
        for index, entry in pages.items():
            run(f"set *(unsigned *)(0xc0800000 + {index * 4}) = {entry}")
        run("set *((unsigned *)&kernel_page_directory + 1) = 0x800027")
        said["rows"] = run("page-directory").splitlines()[2:5]
        """,
    )
    assert [re.split("  +", row) for row in said["rows"]] == [
        ["0x00400000 - 0x00402fff", "0x00900000", "12", "3 x 4 KiB", "user, read-only"],
        ["0x00404000 - 0x00404fff", "0x00904000", "4", "1 x 4 KiB", "user, writable, global"],
        ["0x00405000 - 0x00405fff", "0x00800000", "4", "1 x 4 KiB", "kernel, writable, uncached"],
    ]


def test_descriptors(boot):
    text = boot["descriptors"]
    assert re.search(r"0x08  32-bit code, ring 0 +0x00000000 \+ 0xffffffff  <- cs\n", text)
    assert re.search(r"0x\w\w  TSS, busy, ring 0 +0x\w+ \+ 0x\w+  <- tr\n", text)
    gates = "interrupt gate, ring 0, selector 0x8: trap_stub_"
    assert re.search(rf"0 to 2 +{gates}0 to trap_stub_2\n", text)
    assert re.search(r"8 +task gate, ring 0, selector 0x\w\w\n", text)
    assert re.search(r"128 +trap gate, ring 3, selector 0x8: syscall_entry\n", text)
    assert re.search(rf"129 to 255 +{gates}129 to trap_stub_255\n", text)
    assert re.search(r"32 to 47 +pic_dispatch\n", text)
    assert re.search(r"TSS at 0x\w+ kernel_task\w* \(tr 0x\w\w\)", text)


def test_nothing_to_tell_is_said(boot):
    assert "1 requests since the boot" in boot["disk-requests"]  # for a partition table
    assert "No exception so far" in boot["last-fault"]
    assert "no trap is being handled here" in boot["trap-frame"]
    assert boot["klog 0 0"].endswith("; usage: klog [LINES]")


def test_commands_are_listed_and_documented(boot):
    listed = {line.split()[0] for line in boot["apprentice"].splitlines()}
    assert {"klog", "last-fault", "page-directory", "type", "where-am-i", "xi"} <= listed
    text, summary = boot["help"]
    assert "Usage: klog [LINES]" in text
    assert listed <= {line.split(" --")[0] for line in summary.splitlines()}


def test_disk_requests_after_the_end(tmp_path):
    """A machine that has switched itself off can still be looked at."""
    code = """
        said["stop"] = run("continue")
        said["all"], said["last"] = run("disk-requests"), run("disk-requests 1")
    """
    said = probe(tmp_path, code, "--script", "read hda 64 3; read hda 7; exit 5")
    assert "The machine is off: the kernel ended with status 5." in said["stop"]
    rows = [line.split() for line in said["all"].splitlines()[1:-1]]
    assert [(row[0], *row[3:7], row[8]) for row in rows] == [
        ("0", "hda", "read", "0", "1", "done"),  # for a partition table
        ("1", "hda", "read", "64", "3", "done"),
        ("2", "hda", "read", "7", "1", "done"),
    ]
    assert said["all"].endswith("3 requests since the boot\n")
    rows = said["all"].splitlines()[3:]
    assert [row.split() for row in said["last"].splitlines()[1:]] == [row.split() for row in rows]


# As a person uses it


@pytest.fixture
def terminal() -> Iterator[pexpect.spawn]:
    """A session in a terminal, at its first prompt."""
    environment = {**os.environ, "TERM": "dumb"}
    command, *arguments = LAUNCHER
    child = pexpect.spawn(
        command, arguments, cwd=ROOT, env=environment, encoding="utf-8", timeout=300, echo=False
    )
    child.expect_exact(PROMPT)
    yield child
    child.close(force=True)


def test_session_in_a_terminal(terminal):
    """The first screen says what to type; the guest's output shows while it runs; a line can be
    typed to it; Ctrl-C stops the guest and not QEMU."""
    screen = terminal.before.splitlines()
    assert screen[0].startswith("Apprentice under gdb.")
    assert screen[1].startswith("Type:  b *0x7c00  and  c  for the boot sector")
    assert "apprentice" in screen[2]
    assert screen[-1].startswith("[16-bit real mode]  f000:fff0")
    terminal.sendline("c")
    terminal.expect_exact("| apprentice> ")
    terminal.sendintr()
    terminal.expect_exact("SIGINT")
    terminal.expect_exact(PROMPT)
    terminal.sendline("type exit 3")
    terminal.expect_exact(PROMPT)
    terminal.sendline("c")
    terminal.expect_exact("ended with status 3")
    terminal.expect_exact(PROMPT)
    terminal.sendline("quit")
    terminal.expect(pexpect.EOF)
    terminal.wait()
    assert terminal.exitstatus == 0


def test_an_interrupt_while_output_is_shown(terminal):
    """Ctrl-C stops the guest even where it meets gdb at writing what the guest says."""
    slowly = "lambda file, data: (write(file, data), time.sleep(1))[0]"
    terminal.sendline(f"python import os, time; write = os.write; os.write = {slowly}")
    terminal.expect_exact(PROMPT)
    terminal.sendline("c")
    terminal.expect_exact("| apprentice> ")
    terminal.sendintr()
    terminal.expect_exact("SIGINT")
    terminal.expect_exact(PROMPT)
    assert "KeyboardInterrupt" not in terminal.before


def test_gdb_without_python_still_debugs(tmp_path):
    """It is said, and symbols, breakpoints and source lines work."""
    fake = tmp_path / "gdb"
    fake.write_text(
        textwrap.dedent(f"""\
        #!/usr/bin/env bash
        for word; do
            case $word in python*) word="echo" ;; esac
            words+=("$word")
        done
        exec {shutil.which("gdb")} "${{words[@]}}"
        """)
    )
    fake.chmod(0o755)
    commands = tmp_path / "commands"
    commands.write_text("break kmain\ncontinue\nbacktrace 1\n")
    done = launch("--batch", commands, PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert "was built without Python" in done.stderr
    assert re.search(r"#0 +kmain \(magic=", done.stdout)


def test_causes_are_said(tmp_path):
    """A machine that cannot be built, and a build that is not there."""
    for option, value, status, cause in (
        ("--memory", 8, 2, "MEM: '8' is not a whole number from 16 to 1024"),
        ("--build", tmp_path, 1, "does not exist"),
    ):
        done = launch(option, value)
        assert done.returncode == status
        assert re.fullmatch(rf"make gdb: .*{cause}.*\n", done.stderr)

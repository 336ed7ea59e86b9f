"""A machine that is kept at a place of its kernel (tests/support/leash.py) is, for the next test,
the one that has just come there."""

from __future__ import annotations

import hashlib
import os
import signal
from pathlib import Path

import pytest

from labs.tools.grading.lab import ROOT, Lab
from labs.tools.machine.monitor import PM_TIMER_PORT
from tests.support.building import make
from tests.support.leash import STANDING
from tests.support.remote import Guest, stopped

CODE = 0xC0050000  # memory that nobody uses


@pytest.fixture
def kernel(tmp_path: Path) -> Lab:
    """The kernel of lesson 4, of which no machine is kept."""
    make("LESSON=4", "build/lesson4/kernel.elf")
    STANDING.end()
    return Lab(lesson=4, root=ROOT, seed=1, mode="icount", scratch=tmp_path)


def seen(guest: Guest) -> tuple[object, ...]:
    """All that a test can see of a machine: registers, memory, time, words."""
    return (
        guest.registers(),
        guest.monitor("info registers"),
        hashlib.sha256(guest.data(0xC0000000, 64 << 20)).digest(),
        guest.in32(PM_TIMER_PORT),
        guest.said_bytes(),
    )


def lives(guest: Guest, ticks: int) -> list[tuple[object, ...]]:
    """The same at each of the next ticks of the clock."""
    with guest.stopping_at(guest.address("pit_tick")):
        return [(guest.resume(), *seen(guest)) for _ in range(ticks)]


def test_it_is_as_one_that_has_just_come_there(kernel):
    script = "sleep 5000"
    with stopped(kernel, "prompt", script) as guest:
        process, first = guest.process_id, seen(guest)
        later = lives(guest, 3)
        guest.write(CODE, b"\x90" * 4096)
        guest.out8(0x21, 0xFF)
        guest.stop_at(guest.address("schedule"))
    with stopped(kernel, "prompt", script) as guest:
        assert guest.process_id == process
        assert seen(guest) == first
        assert lives(guest, 3) == later
        assert later[0] != first
    STANDING.end()
    with stopped(kernel, "prompt", script) as guest:
        assert guest.process_id != process
        assert seen(guest) == first
        assert lives(guest, 3) == later


def test_it_is_no_other_one(kernel):
    """Another text for the prompt, other files, another memory, another kernel: another machine."""
    processes = set()
    files = kernel.scratch / "initramfs"
    for fields in ({}, {"script": "help"}, {"memory": 32}, {"initramfs": files}):
        files.write_bytes(bytes(512))
        with stopped(kernel, "prompt", **fields) as guest:
            processes.add(guest.process_id)
    files.write_bytes(bytes(1024))
    with stopped(kernel, "prompt", initramfs=files) as guest:
        processes.add(guest.process_id)
    assert len(processes) == 5


def test_it_is_not_kept_after_a_failure_or_an_end(kernel):
    with pytest.raises(pytest.fail.Exception), stopped(kernel, "prompt") as guest:
        failed = guest.process_id
        pytest.fail("the test", pytrace=False)
    with stopped(kernel, "prompt") as guest:
        ended = guest.process_id
        guest.finish()
    with stopped(kernel, "prompt") as guest:
        assert len({failed, ended, guest.process_id}) == 3


def test_a_test_that_has_one_gets_another(kernel):
    with stopped(kernel, "prompt") as first, stopped(kernel, "prompt") as second:
        assert first.process_id != second.process_id
        first.set(eax=1)
        second.set(eax=2)
        assert first.registers()["eax"] == 1


def test_qemu_that_has_gone_is_replaced(kernel):
    with stopped(kernel, "prompt") as guest:
        process = guest.process_id
    os.kill(process, signal.SIGKILL)
    with stopped(kernel, "prompt") as guest:
        assert guest.process_id != process


def test_what_is_replayed_boots(tmp_path):
    """A replay does again all that a test has done to its machine, from power-on."""
    noted = Lab(lesson=4, root=ROOT, seed=1, mode="icount", scratch=tmp_path, note=tmp_path / "n")
    processes = set()
    for _ in range(2):
        with stopped(noted, "prompt") as guest:
            processes.add(guest.process_id)
            assert any(str(each).startswith("Z1") for each in guest._stub.sent)
    assert len(processes) == 2

"""The host reads the kernel's ring of requests while the kernel runs, and is never outrun:
labs/storage/guest_trace.py, drivers/disk/trace.c."""

from __future__ import annotations

import re
import time

import pytest

from labs.storage.guest_trace import PAUSE_SETTING, PAUSES, RING_RECORDS, RingReader
from labs.storage.run import EXT_MAGIC, MAGIC, SUPERBLOCK, WRITTEN, clock_for
from labs.tools.machine import run as runs
from labs.tools.machine.monitor import seconds_of
from labs.tools.machine.qemu_command import RTC_BASE, Config, qemu_command
from labs.tools.machine.result import Outcome, Result

FIRST, MORE = 3, RING_RECORDS + 1


def test_a_late_reader_misses_nothing(guest_machine):
    """The kernel's own test adds a record more than the ring has, without a pause for anybody. The
    reader looks only now and then; each look finds the guest waiting."""
    fields = {"settings": (PAUSE_SETTING,), "extra": PAUSES}
    with guest_machine("selftest", **fields) as machine:
        ring = RingReader(machine)
        assert machine.wait(ring.read, ring.finish).outcome is Outcome.ENDED
    made = [record.lba for record in ring.records if record.drive == "hd?"]
    assert made == list(range(MORE))


class Guest:
    """One whose ring has so many records, of which the latest are kept."""

    def __init__(self) -> None:
        self.total, self.paused = 0, False

    def is_paused(self) -> bool:
        return self.paused

    def go_on(self) -> None:
        self.paused = False

    def read_symbol(self, name: str) -> bytes:
        ring = bytearray(40 * RING_RECORDS)
        for number in range(max(0, self.total - RING_RECORDS), self.total):
            at = number % RING_RECORDS * 40
            ring[at + 8 : at + 16] = number.to_bytes(8, "little")
            ring[at + 28 : at + 31] = b"bR\0"
        return self.total.to_bytes(4, "little") + bytes(ring)


def test_a_guest_that_does_not_wait_is_told():
    guest = Guest()
    ring = RingReader(guest)
    guest.total = FIRST
    assert ring.read() == 0
    guest.paused = True
    assert (ring.read(), guest.paused) == (FIRST, False)
    guest.total += MORE
    with pytest.raises(LookupError, match=f"{MORE} requests are new"):
        ring.finish()


# ---- what make run gives a guest ----------------------------------------------------------------


def test_a_guest_with_a_disk_of_its_own_has_the_hosts_time(tmp_path):
    """Never before the file system was last written; tests have the same time in each run."""
    image = tmp_path / "root.img"
    later = int(time.time()) + 1000
    for written, magic, expected in (
        (later, EXT_MAGIC, later + 1),
        (0, EXT_MAGIC, None),
        (later, b"no", None),
    ):
        data = bytearray(2048)
        data[SUPERBLOCK + WRITTEN : SUPERBLOCK + WRITTEN + 4] = written.to_bytes(4, "little")
        data[SUPERBLOCK + MAGIC : SUPERBLOCK + MAGIC + 2] = magic
        image.write_bytes(data)
        now = seconds_of(clock_for(image))
        assert abs(now - (expected or time.time())) < 600, (written, magic)
    assert Config().clock == RTC_BASE


def test_the_clock_is_qemus(tmp_path, build):
    kernel = build("build/storage/kernel.elf")
    config = Config(boot="direct", kernel=kernel, clock="2026-11-28T10:00:00")
    assert "base=2026-11-28T10:00:00,clock=vm" in qemu_command(config, tmp_path, [])


def test_a_command_that_is_cut_off_has_its_output(monkeypatch, capsys):
    """With the limit that a person gave, and nobody looks at a screen."""
    asked = []

    def cut_off(config: Config) -> Result:
        asked.append(config)
        word = re.match(r"echo (\w+);", dict(config.settings)["cmd"])[1]
        serial = f"boot\n{word}\none\ntwo\n"
        return Result(config, Outcome.WALL_LIMIT, None, serial, 7200.0)

    monkeypatch.setattr(runs, "run", cut_off)
    assert runs.run_command(Config(), 7200) == 1
    out, err = capsys.readouterr()
    assert out == "one\ntwo\n"
    assert "(limit 7200 s)" in err
    assert "LIMIT=28800" in err
    assert (asked[0].wall_limit, asked[0].screen) == (7200, False)

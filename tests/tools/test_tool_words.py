"""What the tests read of other programs' words is found in those of all their versions: samples
from Debian 12, from 13, and from what the next release has."""

from __future__ import annotations

import pytest

from labs.bench.counting import interface_of
from tests.disks.test_safe_together import LETTER
from tests.lesson1.hidden.test_format import LOOK
from tests.support.given_code import BLOCK

LOADING = "qemu-system-i386: Could not load plugin /tmp/trial.so: "
REFUSED = "plugin requires API version 1, but this QEMU supports only a minimum version of "


@pytest.mark.parametrize(
    "line",
    [
        "Trace 0: 0x7fe604000240 [000f0000/000fe05b/00000040/ff000200] ",
        "Trace 0: 0x7fbbec000240 [000f0000/00000000000fe05b/00000040/ff020200] ",
        "Trace 0: 0x7f6f3c000240 [000f0000/00000000000fe05b/00000040/ff020200] ",
    ],
    ids=["QEMU 7.2", "QEMU 10.0", "QEMU 11.1"],
)
def test_address_of_a_block(line: str) -> None:
    assert BLOCK.findall(f"Linking TBs 0x7fb13c000240\n{line}\n") == ["000fe05b"]


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("qemu_plugin_install returned error code -1", 1),
        (f"{REFUSED}2", 3),
        (f"{REFUSED}7", 7),
    ],
    ids=["QEMU 7.2", "QEMU 10.0", "QEMU 11.1"],
)
def test_interface_of_plugins(said: str, version: int) -> None:
    assert interface_of(LOADING + said) == version


@pytest.mark.parametrize(
    "line",
    ["serial_write write addr 0x00 val 0x41", "serial_write [0x00] <- 0x41"],
    ids=["QEMU 10.0", "QEMU 11.1"],
)
def test_letter_on_the_serial_line(line: str) -> None:
    assert LETTER.findall(f"{line}\n{line.replace('0x00', '0x01')}\n") == ["41"]


@pytest.mark.parametrize(
    "line",
    [b"serial_read read addr 0x05 val 0x60", b"serial_read [0x05] -> 0x60"],
    ids=["QEMU 10.0", "QEMU 11.1"],
)
def test_look_at_the_line_status(line: bytes) -> None:
    assert len(LOOK.findall(line + b"\n" + line.replace(b"0x05", b"0x00") + b"\n")) == 1

"""What the queue has merged is counted for each device and purpose."""

from __future__ import annotations

import re

from labs.storage.guest_trace import parse_trace
from labs.tools.machine.qemu_command import Drive
from tests.disks.test_block_files import blank, mbr, transfers_of


def test_what_is_merged_is_counted_for_each(guest, tmp_path):
    """Neighbours on two partitions, or for two purposes: one transfer, and a request of each."""
    image = blank(tmp_path / "b.img", 1024)
    with image.open("r+b") as file:
        file.write(mbr((64, 100), (164, 300)))
    counts = "counts hdb; counts hdb1; counts hdb2"
    result = guest(
        f"write hdb 64 400; {counts}; queue hdb fifo hdb1 R92 hdb2 R0; queue hdb fifo hdb1 R50 M58;"
        f"queue hdb fifo hdb1 W92 hdb2 W0 W8; {counts}",
        drives=[Drive(image, 1)],
        variables=("trace",),
        settings=(("disk", "dma-polled"),),
    ).check()
    _, records = parse_trace(result.variables["trace"])
    assert transfers_of(records[-3:]) == [("R", 156, 16), ("R", 114, 16), ("W", 156, 24)]
    shown = re.findall(r"^counts \S+: (.*)$", result.serial, re.MULTILINE)
    before, after = ([list(map(int, re.findall(r"\d+", line))) for line in part]
                     for part in (shown[:3], shown[3:]))  # fmt: skip
    change = [[b - a for a, b in zip(*lines, strict=True)]
              for lines in zip(before, after, strict=True)]  # fmt: skip
    assert change == [  # data, mapping, written: requests and sectors; merged
        [2, 24, 1, 8, 1, 24, 1, 2],
        [2, 16, 1, 8, 1, 8, 0, 0],
        [1, 8, 0, 0, 1, 16, 0, 1],
    ]

"""Half of the interval of 95 percent of a figure, as other seeds would give it."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import stdev

from labs.storage.disk_model import Replay, Request

NORMAL = 1.96
STUDENT = {2: 12.71, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571}
"""Student's t for so many runs, two-sided, 95 percent."""


def of_mean(values: Sequence[float]) -> float:
    """Of the mean of independent values; of a few (six at most) by Student's t. One tells nothing:
    infinity."""
    if len(values) < 2:
        return float("inf")
    return STUDENT.get(len(values), NORMAL) * stdev(values) / sqrt(len(values))


def of_total_ms(done: Replay) -> float:
    """Of a replay's time: the requests' times are taken as independent. 0 for a single one."""
    times = [each.total_ms for each in done.accesses]
    return of_mean(times) * len(times) if len(times) > 1 else 0.0


def of_part(part: float, tries: int) -> float:
    """Of a share (0 to 1) that was counted in independent tries, after Wilson: more than nothing
    for 0 and for 1, too."""
    square = NORMAL**2
    root = sqrt(part * (1 - part) / tries + square / (4 * tries**2))
    return NORMAL * root / (1 + square / tries)


def of_mapping(requests: Sequence[Request]) -> float:
    """Of the mapping blocks for each read, where a read of the user is one sector, and what is
    longer maps the next one."""
    counts, before = [], 0
    for each in requests:
        if each.sectors > 1:
            before += 1
        else:
            counts.append(float(before))
            before = 0
    return of_mean(counts)

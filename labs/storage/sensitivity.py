"""What the ratio of pointers to extents depends on: one number of the disk model after another is
chosen otherwise, the seek curve is fitted again to the raw drive's 14.78 ms, and X1's requests go
through that drive.

    python -m labs.storage.sensitivity       works it out at full size, and writes sensitivity.json

X1's page draws the curve, and the handout has the table. Times are the model's, in milliseconds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from labs.storage.disk_model import (
    HDD5400,
    SECTOR_BYTES,
    Disk,
    DiskParameters,
    Request,
    fit_seek_root_ms,
)
from labs.storage.disk_model import replay as replayed
from labs.storage.disks import FULL_READS, Experiment
from labs.storage.pages import label, legend, pictures, plotting
from labs.storage.published import mark
from labs.storage.report import PUBLISHED, predict
from labs.tools.machine.command import in_a_line

FILE = Path(__file__).with_suffix(".json")
ROWS = ("raw direct", "ext3 direct", "ext4 direct")
SHORT_SEEKS_MS = (0.0, 0.2, 0.4, 0.8, 1.2, 1.6, 2.0, 3.0)
CURVES = {
    "seek_start_ms head_switch_ms": "seek and head switch 寻道与换头",
    "seek_start_ms": "seek alone 仅寻道",
}
"""What is as long as the shortest seek. In the model both are: a head settles in either case."""
OTHERS: tuple[tuple[str, str, tuple[Any, ...]], ...] = (
    ("heads", "tracks of a cylinder", (4, 8, 16)),
    ("zones", "zones", (12, 24, 48)),
    ("head_switch_ms", "ms to switch heads: also the skew from track to track", (0.4, 0.8, 1.6)),
    ("seek_knee", "part of the stroke at which the curve becomes a line", (0.15, 0.3, 0.6)),
    ("command_overhead_ms", "ms of overhead in the drive", (0.0, 0.15, 0.3)),
)
"""Each with half and twice what was chosen, or nothing and twice."""

Requests = dict[str, list[Request]]


def changed(names: str, value: float) -> DiskParameters:
    """The drive with another value of these numbers."""
    assert isinstance(HDD5400, DiskParameters)
    return replace(HDD5400, **dict.fromkeys(names.split(), value))


def requests_of(experiment: Experiment) -> Requests:
    """X1's direct rows on paper."""
    return {run.name: list(run.requests) for run in predict(experiment) if run.name in ROWS}


def mean_ms(requests: Sequence[Request], reads: int, of: DiskParameters, sectors: int) -> float:
    """For one read of the user."""
    return replayed(requests, Disk(sectors, of=of)).total_ms / reads


def outcome(of: DiskParameters, requests: Requests, experiment: Experiment) -> dict[str, float]:
    """b, and how many times as long a read takes on ext3 as on ext4."""
    reads, sectors = experiment.reads, experiment.drive_bytes // SECTOR_BYTES
    root_ms = fit_seek_root_ms(requests["raw direct"], of, sectors)
    drive = replace(of, seek_root_ms=round(root_ms, 3))
    times = [mean_ms(requests[name], reads, drive, sectors) for name in ROWS[1:]]
    return {"seek_root_ms": drive.seek_root_ms, "ratio": round(times[0] / times[1], 4)}


def worked_out(experiment: Experiment) -> dict[str, list[dict[str, float]]]:
    """Every choice."""
    requests = requests_of(experiment)
    choices = [(names, value) for names in CURVES for value in SHORT_SEEKS_MS]
    choices += [(name, value) for name, _, values in OTHERS for value in values]
    found: dict[str, list[dict[str, float]]] = {}
    for names, value in choices:
        result = outcome(changed(names, value), requests, experiment)
        found.setdefault(names, []).append({"value": value, **result})
    return found


def kept() -> dict[str, list[dict[str, float]]]:
    """As sensitivity.json has it: at full size, 100,000 reads."""
    return json.loads(FILE.read_text())


def plot() -> Figure:
    """The ratio against the shortest seek, with what was published and what was chosen."""
    then = PUBLISHED["ext3 direct"].seconds / PUBLISHED["ext4 direct"].seconds
    with plotting():
        figure, axes = pictures(height=2.9)
        for (names, said), style in zip(CURVES.items(), ("o-", "s--"), strict=True):
            rows = kept()[names]
            axes.plot([row["value"] for row in rows], [row["ratio"] for row in rows], style,
                      markersize=4, label=said)  # fmt: skip
        axes.axvline(HDD5400.seek_start_ms, color="C7", linestyle=":",  # type: ignore[union-attr]
                     label="chosen 选定")  # fmt: skip
        axes.axhline(then, color="k", linewidth=0.8, linestyle="--")
        mark(axes, [0.0], [then], is_computed=True)
        label(axes, ("shortest seek, ms", "最短寻道, 毫秒"), ("ext3 / ext4, direct", "ext3 / ext4"))
        axes.set(ylim=(1.3, 1.6))
        legend(axes)
    return figure


def table() -> list[list[object]]:
    """What else was chosen, and the ratio with less and with more of it."""
    found = kept()
    return [
        [said, *(f"{row['value']:g}: {row['ratio']:.3f}" for row in found[name])]
        for name, said, _ in OTHERS
    ]


def main() -> int:
    """Runs the command line; returns the exit status."""
    FILE.write_text(json.dumps(worked_out(Experiment(1, FULL_READS)), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(in_a_line("sensitivity", main))

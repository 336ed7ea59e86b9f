"""Gives a guest a drive with the times of a disk model, or measures how well it keeps time.

    with serving(image, "hdd5400", scale=0.1, trace=path) as address:
        Config(drives=(Drive(address, 1, writable=True),), icount=None)

    python -m labs.storage.nbd --model hdd5400 [--scale 1] [--reads 500]

The second reads at random through nbdkit and prints the real time beside the model's. It never
belongs together with -icount: the drive waits in the host's time.
"""

from __future__ import annotations

import argparse
import csv
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from labs.storage.disk_model import SECTOR_BYTES, Access, Request, drive, names, parameters, replay
from labs.tools.machine.bounded import Patience
from labs.tools.machine.command import in_a_line
from labs.tools.machine.work_folder import work_folder

PLUGIN = Path(__file__).with_name("nbd_plugin.py")
START_SECONDS = 60
RATE = re.compile(r"1 ops; .* and ([\d.]+) ops/sec")  # of a request; its seconds have two digits


class NbdError(Exception):
    """nbdkit cannot be started, or failed; one line."""


@contextmanager
def serving(image: Path, model: str, scale: float = 0, trace: Path | None = None) -> Iterator[str]:
    """A drive of this model with the image's bytes, which are written, too; gives the address that
    QEMU knows. Raises NbdError."""
    if not shutil.which("nbdkit"):
        raise NbdError("nbdkit is missing: install nbdkit and nbdkit-plugin-python")
    with work_folder("nbd") as folder:
        path, log, ready = (folder / each for each in ("socket", "log", "ready"))
        words = [f"image={image}", f"model={model}", f"scale={scale:g}"]
        words += [f"trace={trace}"] if trace else []
        command = ["nbdkit", "-f", "--exit-with-parent", "-P", str(ready), "-U", str(path)]
        with log.open("wb") as said:
            process = subprocess.Popen([*command, "python", str(PLUGIN), *words], stderr=said)
        try:
            patience = Patience(START_SECONDS)
            while not ready.exists():  # written when it listens
                if process.poll() is not None or patience.is_over():
                    lines = log.read_text().strip().splitlines() or ["it said nothing"]
                    raise NbdError(f"nbdkit did not start: {lines[-1]}")
                time.sleep(0.01)
            yield f"nbd+unix:///?socket={path}"
        finally:
            process.terminate()
            process.wait()


def read_all(address: str, requests: Sequence[Request]) -> float:
    """Reads through QEMU's own client, one request after another; the seconds that they took.
    Raises NbdError."""
    lines = [f"read {each.lba * SECTOR_BYTES} {each.sectors * SECTOR_BYTES}" for each in requests]
    command = ["qemu-io", "-r", "-f", "raw", address]
    done = subprocess.run(
        command, input="\n".join([*lines, "quit\n"]), capture_output=True, text=True, check=False
    )
    rates = [float(rate) for rate in RATE.findall(done.stdout)]
    if done.returncode or len(rates) != len(requests):
        words = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise NbdError(f"qemu-io: {words[-1]}")
    return sum(1 / rate for rate in rates)


def read_trace(path: Path) -> list[tuple[Request, float, Access]]:
    """The requests of a trace, when each began, and what it cost."""
    with path.open(newline="") as file:
        return [
            (
                Request(row["operation"], int(row["lba"]), int(row["sectors"])),
                float(row["start_ms"]),
                Access(*(float(value) for value in list(row.values())[4:])),
            )
            for row in csv.DictReader(file)
        ]


def read_through(
    model: str, scale: float, reads: int, seed: int, sectors: int | None = None
) -> tuple[list[Request], list[tuple[Request, float, Access]], float]:
    """Random reads of a sector: what was asked, the plugin's account, and the real seconds."""
    sectors = sectors or parameters(model).sectors
    generator = random.Random(seed)
    requests = [Request("read", generator.randrange(sectors), 1) for _ in range(reads)]
    with work_folder("nbd") as folder:
        image, trace = folder / "image", folder / "trace"
        with image.open("wb") as file:
            file.truncate(sectors * SECTOR_BYTES)
        with serving(image, model, scale, trace) as address:
            seconds = read_all(address, requests)
        return requests, read_trace(trace), seconds


def main() -> int:
    """Prints how well a drive keeps time; returns the exit status."""
    parser = argparse.ArgumentParser(prog="nbd", description=__doc__.partition("\n")[0])
    parser.add_argument("--model", choices=names(), default="hdd5400")
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--reads", type=int, default=500)
    parser.add_argument("--seed", type=int, default=2010)
    options = parser.parse_args()
    try:
        requests, account, seconds = read_through(
            options.model, options.scale, options.reads, options.seed
        )
    except NbdError as error:
        print(f"nbd: {error}", file=sys.stderr)
        return 1
    offline = replay(requests, drive(options.model)).total_ms / options.reads
    served = sum(access.total_ms for _, _, access in account) / options.reads
    real = seconds * 1000 / options.reads / (options.scale or 1)
    print(f"{options.model}, {options.reads} reads, scale {options.scale:g}; ms a read:")
    print(f"  offline {offline:.3f}  account {served:.3f}  real {real:.3f}", end="")
    print(f"  account/offline {served / offline:.3f}  real/offline {real / offline:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(in_a_line("nbd", main))

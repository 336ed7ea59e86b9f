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
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labs.storage.disk_model import SECTOR_BYTES, Access, Request, drive, names, parameters, replay

PLUGIN = Path(__file__).with_name("nbd_plugin.py")
START_SECONDS = 30
GREETING = struct.Struct(">8s8sH")
REQUEST = struct.Struct(">IHHQQI")
REPLY = struct.Struct(">IIQ")
READ, DISCONNECT = 0, 2


class NbdError(Exception):
    """nbdkit cannot be started, or failed; one line."""


@contextmanager
def serving(image: Path, model: str, scale: float = 0, trace: Path | None = None) -> Iterator[str]:
    """A drive of this model with the image's bytes, which are written, too; gives the address that
    QEMU knows. Raises NbdError."""
    if not shutil.which("nbdkit"):
        raise NbdError("nbdkit is missing: install nbdkit and nbdkit-plugin-python")
    with tempfile.TemporaryDirectory(prefix="nbd") as name:
        path, log, ready = (Path(name, each) for each in ("socket", "log", "ready"))
        words = [f"image={image}", f"model={model}", f"scale={scale:g}"]
        words += [f"trace={trace}"] if trace else []
        command = ["nbdkit", "-f", "--exit-with-parent", "-P", str(ready), "-U", str(path)]
        with log.open("wb") as said:
            process = subprocess.Popen([*command, "python", str(PLUGIN), *words], stderr=said)
        try:
            until = time.monotonic() + START_SECONDS
            while not ready.exists():  # written when it listens
                if process.poll() is not None or time.monotonic() > until:
                    lines = log.read_text().strip().splitlines() or ["it said nothing"]
                    raise NbdError(f"nbdkit did not start: {lines[-1]}")
                time.sleep(0.01)
            yield f"nbd+unix:///?socket={path}"
        finally:
            process.terminate()
            process.wait()


class Client:
    """The few words of NBD that reading takes (its protocol: doc/proto.md of the NBD project)."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(address.partition("socket=")[2])
        GREETING.unpack(self._take(GREETING.size))
        self._socket.sendall(struct.pack(">I", 3))  # fixed newstyle, no zeroes
        self._socket.sendall(struct.pack(">8sII", b"IHAVEOPT", 1, 0))  # the default export
        self._take(10)  # its size and flags

    def _take(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            data += (more := self._socket.recv(count - len(data)))
            if not more:
                raise NbdError("nbdkit closed the connection")
        return data

    def read(self, lba: int, sectors: int) -> bytes:
        """Some sectors."""
        size = sectors * SECTOR_BYTES
        self._socket.sendall(REQUEST.pack(0x25609513, 0, READ, 0, lba * SECTOR_BYTES, size))
        _, error, _ = REPLY.unpack(self._take(REPLY.size))
        if error:
            raise NbdError(f"reading at LBA {lba}: error {error}")
        return self._take(size)

    def close(self) -> None:
        """Says that it was the last request."""
        self._socket.sendall(REQUEST.pack(0x25609513, 0, DISCONNECT, 0, 0, 0))
        self._socket.close()


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
    with tempfile.TemporaryDirectory() as name:
        image, trace = Path(name, "image"), Path(name, "trace")
        with image.open("wb") as file:
            file.truncate(sectors * SECTOR_BYTES)
        with serving(image, model, scale, trace) as address:
            client, began = Client(address), time.monotonic()
            for request in requests:
                client.read(request.lba, request.sectors)
            seconds = time.monotonic() - began
            client.close()
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
    sys.exit(main())

"""Makes the lab's three drives as sparse images: hdb raw, hdc ext3 (pointers), hdd ext4 (extents).

    python3 -m labs.storage.disks --directory build/lab [--scale 100] [--reads 1000] [--seed 2010]

All three have the size of the 2010 drive, 2 TB, divided by the scale. Dividing the reads likewise
keeps the number of reads per pointer block, and so the hits in the pointer cache. A manifest.json
beside the images says what they are: a second call with the same parameters does nothing, and
another seed or more reads only add stamps. The same parameters give the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labs.tools.machine.command import A_COUNT, A_SEED, Options, in_a_line, whole_number

FULL_BYTES = 2_000_398_934_016
FULL_READS = 100_000
BLOCK_BYTES = 4096
DEFAULT_SCALE = 100
DEFAULT_SEED = 2010
MANIFEST = "manifest.json"
DEFAULT_TOOL = Path(__file__).parents[2] / "build" / "host" / "lab-file"

UUID = "20100627-0000-4000-8000-00000000000{}"
TOOL_SECONDS = 1800  # for one of the images, on a slow disk under load
FAKE_TIME = "1277596800"
"""27 June 2010, the day of the published experiment, in seconds since 1970."""
MKFS_OPTIONS = (
    "-b", "4096",  # below 512 MiB the default would be 1024
    "-I", "256", "-i", "16384",  # an inode's bytes, and the drive's for each; as in 2010
    "-J", "size=4",  # nothing is written here, and a default journal is up to 1 GiB of zeros
)  # fmt: skip
LAZY = "lazy_itable_init=1"
"""Else 31 GB of inode tables; hosts differ in the default."""
OF_EXT3 = "has_journal,ext_attr,resize_inode,dir_index,filetype,sparse_super,large_file"
FEATURES = {
    "mkfs.ext3": OF_EXT3,
    "mkfs.ext4": f"{OF_EXT3},extent,64bit,flex_bg,huge_file,dir_nlink,extra_isize,metadata_csum",
}
"""All features: in their defaults versions of mke2fs differ (orphan_file moves the big file)."""


class DiskError(Exception):
    """The images cannot be made; the text is one line that names the cause."""


@dataclass(frozen=True)
class Drive:
    """A drive of the lab; `mkfs` and `file` are None for the raw one."""

    name: str
    mkfs: str | None = None
    file: str | None = None

    @property
    def letter(self) -> str:
        """The last letter of its name, as stamps say it."""
        return self.name[-1]


DRIVES = (Drive("hdb"), Drive("hdc", "mkfs.ext3", "/big"), Drive("hdd", "mkfs.ext4", "/big"))


@dataclass(frozen=True)
class Experiment:
    """How large the drives are (2 TB divided by `scale`), and which reads they are stamped for."""

    scale: int = DEFAULT_SCALE
    reads: int = FULL_READS // DEFAULT_SCALE
    seed: int = DEFAULT_SEED

    @property
    def drive_bytes(self) -> int:
        """A whole number of 4 KiB blocks."""
        return FULL_BYTES // self.scale // BLOCK_BYTES * BLOCK_BYTES

    def space_bytes(self) -> int:
        """What the images may take on the host: pointer blocks, mkfs, one block a stamp."""
        return self.drive_bytes // 900 + len(DRIVES) * self.reads * BLOCK_BYTES + (32 << 20)


def image_path(directory: Path, drive: Drive) -> Path:
    """The path of a drive's image."""
    return directory / f"{drive.name}.img"


def make_disks(
    directory: Path, experiment: Experiment, tool: Path = DEFAULT_TOOL
) -> dict[str, Any]:
    """Makes or completes the images in `directory`, and returns the manifest.

    `tool` is the host program lab-file. Raises DiskError.
    """
    parameters = _parameters(experiment, tool)
    manifest = _read_manifest(directory)
    with _host_errors(directory):
        if manifest.get("parameters") != parameters or not _are_there(directory, experiment):
            return _make_images(directory, experiment, tool, parameters)
        if not _are_stamped(manifest, experiment):
            _require_space(directory, len(DRIVES) * experiment.reads * BLOCK_BYTES)
            _stamp(directory, experiment, tool, manifest)
    return manifest


def expected_reads(
    directory: Path, drive: Drive, experiment: Experiment, tool: Path = DEFAULT_TOOL
) -> list[tuple[int, int]]:
    """Byte offset and LBA of each read of the run, in order. Raises DiskError."""
    lines = _run_tool(tool, "reads", *_read_arguments(directory, drive, experiment)).splitlines()
    return [(int(offset), int(lba)) for offset, lba in map(str.split, lines)]


def real_bytes(path: Path) -> int:
    """What a sparse file takes on the host's disk."""
    return path.stat().st_blocks * 512


def _parameters(experiment: Experiment, tool: Path) -> dict[str, Any]:
    """Everything that decides what is in the images, but for the stamps."""
    if not os.access(tool, os.X_OK):
        raise DiskError(f"{tool} is missing: `make build/host/lab-file` builds it")
    return {
        "drive_bytes": experiment.drive_bytes,
        "mkfs": _run([_find("mke2fs"), "-V"], "mke2fs").splitlines()[0],
        "mkfs_options": [*MKFS_OPTIONS, LAZY, FEATURES],
        "tool_sha256": hashlib.sha256(tool.read_bytes()).hexdigest(),
    }


def _read_manifest(directory: Path) -> dict[str, Any]:
    """The manifest, or an empty one if there is none that can be read."""
    try:
        manifest = json.loads((directory / MANIFEST).read_text())
    except (OSError, ValueError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def _are_there(directory: Path, experiment: Experiment) -> bool:
    paths = [image_path(directory, drive) for drive in DRIVES]
    return all(p.is_file() and p.stat().st_size == experiment.drive_bytes for p in paths)


def _are_stamped(manifest: dict[str, Any], experiment: Experiment) -> bool:
    """Whether the stamps of an earlier run include these: the same seed, as many reads or more."""
    return any(
        stamp["seed"] == experiment.seed and stamp["reads"] >= experiment.reads
        for stamp in manifest["stamps"]
    )


def _make_images(
    directory: Path, experiment: Experiment, tool: Path, parameters: dict[str, Any]
) -> dict[str, Any]:
    directory.mkdir(parents=True, exist_ok=True)
    _remove(directory)
    _require_space(directory, experiment.space_bytes())
    try:
        files = {d.name: _make_image(directory, d, experiment, tool) for d in DRIVES}
        manifest = {"parameters": parameters, "files": files, "stamps": []}
        _stamp(directory, experiment, tool, manifest)
    except BaseException:
        _remove(directory)
        raise
    return manifest


def _make_image(
    directory: Path, drive: Drive, experiment: Experiment, tool: Path
) -> dict[str, int]:
    """Makes one image; returns the sizes of its big file, empty for the raw drive."""
    path = image_path(directory, drive)
    with path.open("wb") as image:
        image.truncate(experiment.drive_bytes)
    if not drive.mkfs:
        return {}
    uuid = UUID.format(drive.letter)
    options = ["-q", "-F", *MKFS_OPTIONS, "-O", f"none,{FEATURES[drive.mkfs]}"]
    options += ["-U", uuid, "-E", f"{LAZY},hash_seed={uuid}"]
    _run([_find(drive.mkfs), *options, str(path)], path.name)
    return json.loads(_run_tool(tool, "create", str(path)))


def _stamp(directory: Path, experiment: Experiment, tool: Path, manifest: dict[str, Any]) -> None:
    """Stamps the images for the experiment's reads, and notes that in the manifest."""
    for drive in DRIVES:
        _run_tool(tool, "stamp", *_read_arguments(directory, drive, experiment))
    manifest["stamps"].append({"seed": experiment.seed, "reads": experiment.reads})
    (directory / MANIFEST).write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n")


def _read_arguments(directory: Path, drive: Drive, experiment: Experiment) -> list[str]:
    path, file = str(image_path(directory, drive)), [drive.file] if drive.file else []
    return [path, drive.letter, str(experiment.seed), str(experiment.reads), *file]


def _remove(directory: Path) -> None:
    for path in (directory / MANIFEST, *(image_path(directory, drive) for drive in DRIVES)):
        path.unlink(missing_ok=True)


def _require_space(directory: Path, needed_bytes: int) -> None:
    free_bytes = shutil.disk_usage(directory).free
    if free_bytes < needed_bytes:
        raise DiskError(
            f"the images need up to {needed_bytes / 1e6:.0f} MB, "
            f"and {directory} has {free_bytes / 1e6:.0f} MB free"
        )


@contextmanager
def _host_errors(directory: Path) -> Iterator[None]:
    """Says an error of the host's file system as a DiskError."""
    try:
        yield
    except OSError as error:
        raise DiskError(f"{error.filename or directory}: {error.strerror}") from error


def _find(program: str) -> str:
    """A program's path; e2fsprogs is often outside of a user's PATH."""
    found = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if not found:
        raise DiskError(f"{program} is missing: install e2fsprogs")
    return found


def _run_tool(tool: Path, *arguments: str) -> str:
    return _run([str(tool), *arguments], tool.name)


def _run(command: list[str], what: str) -> str:
    """Runs a program; returns what it printed (mke2fs prints its version as an error)."""
    environment = {**os.environ, "E2FSPROGS_FAKE_TIME": FAKE_TIME, "LC_ALL": "C"}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False,
                              timeout=TOOL_SECONDS)  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise DiskError(
            f"{what} was not done within {TOOL_SECONDS} s: is the disk of this computer busy?"
        ) from error
    except OSError as error:
        raise DiskError(f"{command[0]}: {error.strerror}") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        cause = lines[-1].strip() if lines else f"ended with status {done.returncode}"
        raise DiskError(cause if cause.startswith(what) else f"{what}: {cause}")
    return done.stdout or done.stderr


def describe(directory: Path, manifest: dict[str, Any]) -> str:
    """A table of the images' sizes and of what maps the big files."""
    lines = [f"{'drive':<7}{'size':>20}{'on the host':>15}{'file':>20}  mapped by"]
    for drive in DRIVES:
        path = image_path(directory, drive)
        sizes = manifest["files"][drive.name]
        lines.append(
            f"{drive.name:<7}{path.stat().st_size:>20,}{real_bytes(path):>15,}"
            f"{sizes.get('bytes', 0) or '-':>20{',' if sizes else ''}}  {_mapping(sizes)}"
        )
    return "\n".join(lines)


def _mapping(sizes: dict[str, int]) -> str:
    if not sizes:
        return "-"
    if sizes["extents"]:
        return f"{sizes['extents']:,} extents in the inode and {sizes['mapping_blocks']:,} blocks"
    return f"{sizes['mapping_blocks']:,} pointer blocks"


def scale(text: str) -> int:
    """What argparse takes for a scale; smaller drives have no room for what the lab does."""
    return 1 if text == "full" else whole_number(1, 10_000)(text)


def add_experiment_options(parser: argparse.ArgumentParser) -> None:
    """Adds --scale, --reads and --seed, which `chosen_experiment` reads."""
    parser.add_argument(
        "--scale", type=scale, default=DEFAULT_SCALE, help="2 TB divided by this, or `full`"
    )
    parser.add_argument("--reads", type=A_COUNT, help="default: 100,000 divided by the scale")
    parser.add_argument("--seed", type=A_SEED, default=DEFAULT_SEED)


def chosen_experiment(options: argparse.Namespace) -> Experiment:
    """What the options of `add_experiment_options` say."""
    reads = options.reads or max(1, FULL_READS // options.scale)
    return Experiment(options.scale, reads, options.seed)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = Options("disks", "Makes the three drives of the storage lab.")
    parser.add_argument("--directory", type=Path, required=True, help="where the images go")
    parser.add_argument("--tool", type=Path, default=DEFAULT_TOOL, help="the program lab-file")
    add_experiment_options(parser)
    options = parser.parse_args(arguments)
    try:
        manifest = make_disks(options.directory, chosen_experiment(options), options.tool)
    except DiskError as error:
        print(f"disks: {error}", file=sys.stderr)
        return 1
    print(describe(options.directory, manifest))
    return 0


if __name__ == "__main__":
    sys.exit(in_a_line("disks", main))

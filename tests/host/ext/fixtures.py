"""Fixtures of the ext tests: the program that runs the file system on the host, and images."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from labs.storage.crash import building
from labs.tools.machine.bounded import run_within
from tests.host.ext.images import (
    DEFAULT_4,
    MIB,
    PLAIN_2,
    PLAIN_4,
    ROOT,
    SEED,
    SOURCES,
    make_image,
    make_source,
    run_tool,
    write_blocks,
)
from tests.support.building import shared_folder

SECONDS = 600  # for one run of the program


class Host:
    """The file system's program on the host."""

    def __init__(self, program: Path) -> None:
        self.program = program

    def run(self, image: Path, *commands: str) -> list[str]:
        """Mounts an image and gives commands. Returns the lines printed; fails on a crash."""
        return self.start(image, text="".join(f"{command}\n" for command in commands))

    def write(self, image: Path, *commands: str, options: Iterable[str] = ()) -> list[str]:
        """Mounts an image for writing, gives commands (tests/host/ext/files.h, write_commands.c)
        and unmounts; then e2fsck must find nothing. Returns the lines printed."""
        text = "".join(f"{command}\n" for command in commands)
        lines = self.start(image, "write", *options, text=text)
        run_tool("e2fsck", "-fn", str(image))
        return lines

    def mutate(self, image: Path, count: int, start: int = 0, length: int = 0) -> dict[str, int]:
        """Makes mutations (see mutate.h). Returns how often each result occurred."""
        lines = self.start(image, "mutate", *map(str, (SEED, count, start, length)))
        results = {name: int(number) for _, name, number in map(str.split, lines)}
        assert sum(results.values()) == count
        return results

    def start(self, *arguments: object, text: str = "") -> list[str]:
        """Runs the program. Returns the lines printed; a report of a sanitizer is a failure."""
        done = run_within(
            [self.program, *map(str, arguments)],
            input=text.encode(),
            capture_output=True,
            seconds=SECONDS,
            check=False,
        )
        assert done.returncode in (0, 1) and not done.stderr, done.stderr.decode()
        return done.stdout.decode(errors="replace").splitlines()


def host_program() -> Path:
    """The program, compiled with the address and undefined behaviour sanitizers, like those of the
    crash laboratory."""
    shim = [*sorted((ROOT / "tests" / "host" / "ext").glob("*.c")), ROOT / "kernel/lib/errno.c"]
    options = [*building.OPTIONS, *building.SANITIZERS]
    wrapped = "-Wl,--wrap=ext_name_hash"  # names_commands.c can make hashes collide
    objects = building.objects_of([*SOURCES, *shim], options)
    return building.linked("ext_host", objects, [*options, wrapped])


@pytest.fixture(scope="session")
def ext() -> Host:
    """The program."""
    return Host(host_program())


@pytest.fixture(scope="session")
def ext_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with files of awkward sizes, names and kinds."""
    place = shared_folder(
        tmp_path_factory, "ext-source", lambda place: make_source(place / "root", SEED)
    )
    return place / "root"


@pytest.fixture(scope="session")
def ext_images(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Small images with 1 KiB blocks to damage, by name. Tests copy them."""
    options = {"ext2": PLAIN_2, "ext4": PLAIN_4, "default": DEFAULT_4}

    def make_images(place: Path) -> None:
        root = make_small_source(place / "root")
        for name, option in options.items():
            make_image(place / f"{name}.img", 4 * MIB, option, root)

    place = shared_folder(tmp_path_factory, "ext-images", make_images)
    return {name: place / f"{name}.img" for name in options}


def make_small_source(root: Path) -> Path:
    """What is in them."""
    (root / "dir").mkdir(parents=True)
    (root / "dir" / "a").write_bytes(b"a" * 5000)
    for number in range(12):
        (root / "dir" / f"file_{number}").write_bytes(b"f" * number * 300)
    (root / "short").symlink_to("dir/a")
    (root / "slow").symlink_to("dir/" + "./" * 60 + "a")
    (root / "loop").symlink_to("loop")
    write_blocks(root / "many", 1024, range(0, 800, 2))  # 400 extents: a tree of depth 2
    write_blocks(root / "high", 1024, (0, 12, 267, 268, 65803, 65804, 262412))
    (root / "solid").write_bytes(random.Random(SEED).randbytes(200 * 1024))
    return root


@pytest.fixture
def ext_copy(ext_images: dict[str, Path], tmp_path: Path) -> Callable[[str], Path]:
    """Copies one of the images, for a test that damages it."""

    def make_copy(name: str) -> Path:
        return Path(shutil.copy(ext_images[name], tmp_path / f"{name}.img"))

    return make_copy

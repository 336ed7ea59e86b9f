"""`make fuzz`: the file system's library on damaged images, mounted for writing.

With clang it is libFuzzer, which follows what the inputs reach; without, random inputs. Both run
under the sanitizers, and the same program (tests/host/fuzz) reads an input. What ends the program
is kept in build/fuzz; an input that found something belongs into tests/host/fuzz/found.

With --target only one kind of sector is damaged: those of a small structure, as the superblock,
are rarely hit among all others.
"""

from __future__ import annotations

import os
import random
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

from labs.storage.crash.building import (
    ENVIRONMENT,
    MIB,
    ROOT,
    SANITIZERS,
    Variant,
    harness_files,
    library_files,
    linked,
    make_image,
    objects_of,
    run_tool,
)
from labs.storage.crash.building import OPTIONS as WARNINGS
from labs.storage.crash.workloads import make_tree, pattern
from labs.tools.machine.bounded import run_within
from labs.tools.machine.command import A_COUNT, A_SEED, Options, in_a_line

BUILT = ROOT / "build" / "fuzz"
GUIDED = ("-O2", "-std=gnu11", "-g", "-fno-sanitize-recover=all")
GUIDED += ("-fsanitize=fuzzer,address,undefined",)
# Freed memory is used again after some inputs: without, a quarter of the time goes to new pages.
SANITIZER = "quarantine_size_mb=4:malloc_context_size=4"
SEEDS = 200
TARGETS = ("superblock", "descriptors", "inodes", "extents", "directories", "journal")
EXTREMES = (0x00, 0xFF, 0x7F, 0x80, 0x01, 0x0C)
# Small blocks, so that four of them are a deep tree; a checksum would hide most damage.
VARIANTS = {
    "ext4": Variant("ext4", "-t ext4 -b 1024 -N 512 -J size=1 -O ^metadata_csum", 4 * MIB),
    "ext3": Variant("ext3", "-t ext3 -b 1024 -N 512 -J size=1", 4 * MIB),
    "checksums": Variant("checksums", "-t ext4 -b 1024 -N 512 -J size=1", 4 * MIB),
}


def sources() -> list[Path]:
    """The library, the host's kernel below it, and the program."""
    harness = [path for path in harness_files() if path.parent.name != "crash"]
    fuzz = [path for path in (ROOT / "tests/host/fuzz").glob("*.c") if path.name != "random.c"]
    return [*library_files(ROOT), *harness, *sorted(fuzz)]


def build_random() -> Path:
    """The program for random inputs, and for files: tests/host/fuzz/random.c."""
    options = [*WARNINGS, *SANITIZERS]
    files = [*sources(), ROOT / "tests/host/fuzz/random.c"]
    return linked("fuzz", objects_of(files, options), options)


def build_guided() -> Path:
    """The program with libFuzzer. Raises CalledProcessError where clang has none."""
    objects = objects_of(sources(), GUIDED, compiler="clang")
    return linked("guided", objects, GUIDED, compiler="clang")


def make_source(root: Path) -> Path:
    """A tree with deep maps, long and short symbolic links, and a crowd."""
    make_tree(root)
    (root / "B" / "x").write_bytes(pattern(3000, 4))
    (root / "link").symlink_to("A/bar")
    (root / "long").symlink_to("A/" + "./" * 60 + "bar")
    (root / "many").mkdir()
    for number in range(300):
        (root / "many" / str(number)).touch()
    with (root / "holes").open("wb") as file:
        for number in range(0, 600, 2):
            file.seek(number * 1024)
            file.write(pattern(1024, 5))
    return root


def image_for(name: str, folder: Path) -> Path:
    """The image of a variant, with hashed directories."""
    folder.mkdir(parents=True, exist_ok=True)
    root = folder / "root"
    shutil.rmtree(root, ignore_errors=True)
    image = make_image(folder / "image", VARIANTS[name], make_source(root))
    run_within(["e2fsck", "-fyD", str(image)], env=ENVIRONMENT, capture_output=True, seconds=60)
    run_tool("e2fsck", "-fn", str(image))
    return image


def sectors_of(image: Path, target: str) -> list[tuple[int, int]]:
    """Where an image has this, as first sector and how many. Descriptors are with the bitmaps,
    extents are all blocks of maps."""
    geometry = run_tool("dumpe2fs", str(image))
    per_block = int(re.search(r"Block size: +(\d+)", geometry)[1]) // 512
    inodes = int(re.search(r"Inode count: +(\d+)", geometry)[1])
    commands = image.with_name("commands")
    commands.write_text("".join(f"stat <{number}>\n" for number in range(2, inodes + 1)))
    found = run_tool("debugfs", "-f", str(commands), str(image)).split("Inode: ")
    directories = "".join(each for each in found if "Type: directory" in each)
    journal = next(each for each in found if each.startswith("8 "))
    ranges = {
        "superblock": [("1", "1")],
        "descriptors": re.findall(
            r"(?:Group descriptors|Block bitmap|Inode bitmap) at (\d+)-?(\d*)", geometry
        ),
        "inodes": re.findall(r"Inode table at (\d+)-(\d+)", geometry),
        "extents": re.findall(r"(?:ETB\d+|IND)\):(\d+)()", "".join(found)),
        "directories": re.findall(r"\(\d+[-\d]*\):(\d+)-?(\d*)", directories),
        "journal": re.findall(r"\(\d+[-\d]*\):(\d+)-?(\d*)", journal),
    }[target]
    return [
        (int(first) * per_block, (int(last or first) - int(first) + 1) * per_block)
        for first, last in ranges
    ]


def make_seeds(corpus: Path, seed: int) -> None:
    """Inputs to begin with: a few patches, and then operations (tests/host/fuzz/fuzz.c)."""
    rng = random.Random(seed)
    corpus.mkdir(parents=True, exist_ok=True)
    for number in range(SEEDS):
        text = b""
        for _ in range(rng.randrange(4)):
            length = rng.choice((0, 1, 3, 3, 7))
            text += bytes([length]) + rng.randbytes(4)
            text += bytes(rng.choice((rng.randrange(256), *EXTREMES)) for _ in range(length + 1))
        for _ in range(rng.randrange(12)):
            text += bytes([0x80 | rng.randrange(128)]) + rng.randbytes(2)
        (corpus / f"seed{number}").write_bytes(text)


def processor_seconds() -> float:
    """Of all child processes so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Returns the fuzzer's own exit status: 0 when nothing was found."""
    parser = Options("make fuzz")
    parser.add_argument("--image", choices=VARIANTS, default="ext4")
    parser.add_argument("--target", choices=(*TARGETS, "all"), default="all")
    parser.add_argument("--seconds", type=A_COUNT, default=60)
    parser.add_argument("--seed", type=A_SEED, default=2010)
    parser.add_argument("--input", type=Path, help="only this one")
    options = parser.parse_args()
    folder = BUILT / options.image
    image = image_for(options.image, folder)
    environment = {"ASAN_OPTIONS": SANITIZER, **os.environ, "FUZZ_IMAGE": str(image)}
    if options.target != "all":
        folder = folder / options.target
        folder.mkdir(exist_ok=True)
        lines = [f"{first} {count}\n" for first, count in sectors_of(image, options.target)]
        (folder / "sectors").write_text("".join(lines))
        environment["FUZZ_SECTORS"] = str(folder / "sectors")
    if not shutil.which("clang"):
        print("no clang: random inputs", flush=True)
        program = build_random()
        command = [program, "random", str(options.seed), str(options.seconds * 100)]
        return subprocess.run(command, env=environment, check=False).returncode
    program = build_guided()
    corpus = folder / "corpus"
    make_seeds(corpus, options.seed)
    limits = [f"-max_total_time={options.seconds}", "-timeout=60", "-max_len=600"]
    limits += ["-len_control=0", "-print_final_stats=1"]
    command = [program, f"-seed={options.seed}", *limits, f"-artifact_prefix={folder}/", corpus]
    if options.input:
        command = [program, options.input]
    before = processor_seconds()
    status = subprocess.run(command, env=environment, check=False).returncode
    print(f"{options.image}, {options.target}: {processor_seconds() - before:.0f} CPU seconds")
    return status


if __name__ == "__main__":
    sys.exit(in_a_line("make fuzz", main))

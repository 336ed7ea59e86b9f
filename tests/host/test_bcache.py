"""The block cache, compiled for the host, with several tasks, requests that sleep, and errors."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from labs.tools.machine.bounded import run_within
from tests.host.ext.images import ROOT, SEED

CACHE = ROOT / "fs" / "cache" / "bcache.c"
TASKS = sorted((ROOT / "tests" / "host" / "cache").glob("*.c"))
OPTIONS = ["-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", f"-I{ROOT}"]
SANITIZE = ["-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
SECONDS = 600
STEPS = 400
SEEDS = 12

MUTANTS = {  # what is in bcache.c once, and what stands there instead
    "unfilled": ("if (!buffer->transfer.owner)\n", "if (1)\n"),
    "two-buffers": ("if (find_buffer(device, block, size))\n", "if (0)\n"),
    "error-kept": ("\tif (error)\n\t\tunhash_buffer(buffer);\n", ""),
    "dirty-lost": ("error = bcache_write(oldest);", "error = 0; oldest->is_dirty = false;"),
    "clean-too-soon": (
        "\t\terror = block_write(buffer->device",
        "\t\tset_dirty(buffer, false);\n\t\terror = block_write(buffer->device",
    ),
    "no-clean-one": ("error ? oldest_free(true) : NULL;", "NULL;"),
    "held-reused": ("buffer->references == 0 && !buffer->transaction;", "true;"),
    "held-written": ("if (buffer->is_dirty && !buffer->transaction) {", "if (1) {"),
    "shrunk-dirty": (
        "if (!is_free_buffer(buffer) || (buffer->is_dirty ? buffer->device : NULL) != lost)",
        "if (!is_free_buffer(buffer))",
    ),
    "reference-lost": ("\t\tbuffer->references--; /* it could not be read */\n", ""),
}


def build(program: Path, cache: Path, *options: str) -> Path:
    command = ["gcc", *OPTIONS, *options, cache, *TASKS, "-o", program, "-lpthread"]
    subprocess.run(command, check=True)
    return program


def run(program: Path, seed: int) -> subprocess.CompletedProcess[str]:
    return run_within(
        [program, str(seed), str(STEPS)],
        capture_output=True,
        text=True,
        seconds=SECONDS,
        check=False,
    )


@pytest.fixture(scope="session")
def cache_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("cache") / "cache_host", CACHE, *SANITIZE)


def test_tasks_share_the_cache(cache_program):
    for seed in range(SEED, SEED + SEEDS):
        done = run(cache_program, seed)
        assert done.returncode == 0, f"seed {seed}: {done.stderr}"
        _, writes, errors = map(int, re.findall(r"\d+", done.stdout)[:3])
        assert writes > 100
        assert errors > 5


@pytest.mark.parametrize("name", MUTANTS)
def test_mistakes_are_found(tmp_path, name):
    old, new = MUTANTS[name]
    text = CACHE.read_text()
    assert text.count(old) == 1
    changed = tmp_path / "bcache.c"
    changed.write_text(text.replace(old, new))
    program = build(tmp_path / "program", changed, "-w", *SANITIZE)
    assert any(run(program, seed).returncode != 0 for seed in range(SEED, SEED + SEEDS))

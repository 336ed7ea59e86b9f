"""Mutants of the library: each has lost one of the things that make it safe, and must be caught."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from labs.storage.crash.building import build, copy_library
from labs.storage.crash.workloads import Workload


@dataclass(frozen=True)
class Mutant:
    """A text of a source file, and what takes its place."""

    file: str
    old: str
    new: str
    variants: tuple[str, ...] = ("ext4",)
    workloads: tuple[Workload, ...] | None = None  # None: all


MUTANTS: dict[str, Mutant] = {}


def build_mutant(name: str, place: Path) -> Path:
    """Compiles the program with a mutant. Raises ValueError when its text is not there once."""
    mutant = MUTANTS[name]
    path = copy_library(place) / mutant.file
    text = path.read_text()
    if text.count(mutant.old) != 1:
        raise ValueError(f"{name}: {mutant.file} has its text {text.count(mutant.old)} times")
    path.write_text(text.replace(mutant.old, mutant.new))
    return build(place)

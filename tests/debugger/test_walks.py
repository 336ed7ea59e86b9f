"""The walks of kernel/walks.md: gdb follows them in the running kernel, and the page shows what it
saw. RENEW=yes writes the page.
"""

from __future__ import annotations

import os

import pytest

from labs.tools.guest.programs import busybox
from labs.tools.machine.qemu_command import Drive
from tests.host.ext.images import MIB, make_image
from tests.support.gdb_guest import guest_probe, shell
from tests.support.walks import (
    PAGE,
    Call,
    chain_of,
    exercise_of,
    left_and_back,
    page,
    probe_of,
    walks,
)

WALKS = walks()
NAMES = [walk.title.replace(" ", "-") for walk in WALKS]

# A cold read as it once was: the cache of files called mm's page cache, which called it back.
ZIGZAG = """\
fs/file.c file_read
fs/disk/ext_data.c disk_file_read
fs/cache/cached_file.c cached_file_read
fs/cache/cached_file.c bring_page
mm/page_cache.c page_cache_get
fs/cache/cached_file.c pages_read
fs/disk/ext_data.c disk_read
drivers/disk/block.c block_read"""


@pytest.fixture(scope="module")
def chains(tmp_path_factory):
    """The chains of all walks, by their titles."""
    found = {}
    for kernel in dict.fromkeys(walk.kernel for walk in WALKS):
        some = [walk for walk in WALKS if walk.kernel == kernel]
        place = tmp_path_factory.mktemp(f"walks-{kernel}")
        script = "\n".join(walk.script for walk in some)
        drives = ()
        if kernel == "storage":
            script = f"mkdir /mnt; mount /dev/hdb /mnt\n{script}"
            drives = (Drive(disk(place), 1),)
        said = guest_probe(
            place, probe_of(some), kernel, drives=drives, **shell(f"{script}\npoweroff -f\n")
        )
        assert "lost" not in said, said
        for title, frames in said["chains"].items():
            found[title] = [chain_of(each) for each in frames]
    return found


def disk(place):
    """An ext4 with a file of data and a program."""
    top = place / "top"
    top.mkdir()
    (top / "data").write_bytes(b"x" * 40000)
    (top / "busybox").write_bytes(busybox())
    (top / "busybox").chmod(0o755)
    return make_image(place / "disk.img", 16 * MIB, "-t ext4 -b 1024", top)


@pytest.mark.slow
@pytest.mark.parametrize("walk", WALKS, ids=NAMES)
def test_no_file_twice_on_the_way_down(chains, walk):
    for chain in chains[walk.title]:
        assert not left_and_back(chain), chain


@pytest.mark.slow
@pytest.mark.parametrize("walk", WALKS, ids=NAMES)
def test_it_goes_through_what_lessons_teach(chains, walk):
    on_the_way = {exercise_of(call) for chain in chains[walk.title] for call in chain}
    assert on_the_way - {""} == set(walk.taught)


@pytest.mark.slow
def test_the_page_is_todays(chains):
    if os.environ.get("RENEW"):
        PAGE.write_text(page(chains))
    assert PAGE.read_text() == page(chains), "renew it: RENEW=yes, and this test"


def test_a_zigzag_is_found():
    chain = [Call(*line.split()) for line in ZIGZAG.splitlines()]
    assert left_and_back(chain) == ["fs/cache/cached_file.c", "fs/disk/ext_data.c"]
    assert left_and_back(chain[:5]) == []
    assert left_and_back(chain[2:6]) == ["fs/cache/cached_file.c"]


def test_functions_of_exercises_are_known():
    assert exercise_of(Call("mm/page_cache.c", "page_cache_get")) == "6.5"
    assert exercise_of(Call("mm/page_cache.c", "page_cache_insert")) == ""
    assert exercise_of(Call("mm/page_cache.c", "page_cache_initialize")) == ""

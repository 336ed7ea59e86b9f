"""The ext file system and the block cache, compiled for the host, on real images."""

from __future__ import annotations

import hashlib
import os
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.host.ext.images import (
    DEFAULT_4,
    INODE_BLOCK,
    MIB,
    ROOT,
    SEED,
    SOURCES,
    UUID,
    bmap,
    debugfs,
    describe_all,
    extent_node,
    inode_offset,
    make_image,
    patch,
    peek,
    run_tool,
    write_blocks,
)

pytest_plugins = ["tests.host.ext.fixtures"]

LATER = 1_600_000_000  # a time of a file, in seconds


# ---- contents -----------------------------------------------------------------------------------

VARIANTS = {
    **{
        f"{kind}-{block}": f"-t {kind} -b {block}"
        for kind in ("ext2", "ext3", "ext4")
        for block in (1024, 2048, 4096)
    },
    "revision-0": "-t ext2 -b 1024 -r 0",
    "no-filetype": "-t ext2 -b 1024 -O ^filetype",
    "inode-128": "-t ext4 -b 1024 -I 128",
    "inode-1024": "-t ext4 -b 1024 -I 1024",
    "no-sparse-super": "-t ext2 -b 1024 -O ^sparse_super,^resize_inode -g 1024",
    "meta-bg": "-t ext2 -b 1024 -O meta_bg,^resize_inode -g 256",
    "meta-bg-64bit": "-t ext4 -b 1024 -O meta_bg,64bit,^resize_inode -g 256",
    "meta-bg-everywhere": "-t ext2 -b 1024 -O meta_bg,^resize_inode,^sparse_super -g 256",
    "meta-bg-two-copies": "-t ext4 -b 1024 -O meta_bg,^resize_inode,sparse_super2 -g 1520",
    "no-64bit": "-t ext4 -b 1024 -O ^64bit",
    "no-flex-bg": "-t ext4 -b 1024 -O ^flex_bg -g 1024",
    "checksum-seed": "-t ext4 -b 1024 -O metadata_csum,metadata_csum_seed",
    "no-checksum": "-t ext4 -b 1024 -O ^metadata_csum,uninit_bg",
    "mmp": "-t ext4 -b 1024 -O mmp",
    "bigalloc-1024": "-t ext4 -b 1024 -O bigalloc -C 16384",
    "bigalloc-4096": "-t ext4 -b 4096 -O bigalloc -C 16384",
    "quota-project": "-t ext4 -b 1024 -O quota,project",
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_contents_equal_the_source(ext, ext_source, tmp_path, variant):
    image = make_image(
        tmp_path / "a.img", 24 * MIB, f"-L {variant[:16]} {VARIANTS[variant]}", ext_source
    )
    if variant in ("ext3-2048", "ext4-1024"):
        run_tool("e2fsck", "-fyD", str(image), allowed=(0, 1))  # builds hash trees
        assert "0x81000" in " ".join(debugfs(image, ["stat /crowd"])) or "ext3" in variant
    lines = ext.run(image, "summary", "tree", "list /crowd")
    found = {}
    for line in lines:
        match = re.fullmatch(r"node ([0-7]+) (\d+) (\d+) (.*)", line)
        if match and match[4] != "/lost+found":
            found[match[4]] = (int(match[1], 8), int(match[2]), int(match[3]))
    assert found == describe_all(ext_source)
    listed = sorted(line.split(" ", 3)[3] for line in lines if line.startswith("entry "))
    assert listed == sorted([".", "..", *(path.name for path in (ext_source / "crowd").iterdir())])
    check_summary(image, next(line for line in lines if line.startswith("summary ")))
    ours = [line for line in lines if line.startswith("console ")]
    read_only = variant.startswith(("bigalloc", "quota"))
    assert bool(ours) == read_only and all(line.endswith(": read only") for line in ours), ours


def check_summary(image: Path, line: str) -> None:
    """Compares ext_summary with blkid and dumpe2fs."""
    said = run_tool("dumpe2fs", "-h", str(image))
    fields = dict(re.findall(r"^([^:\n]+): +(.*)$", said, re.MULTILINE))
    kind = run_tool("blkid", "-p", "-s", "TYPE", "-o", "value", str(image)).strip()
    groups = -(
        -(int(fields["Block count"]) - int(fields["First block"]))
        // int(fields["Blocks per group"])
    )
    assert line.split()[1:7] == [
        kind,
        fields["Block size"],
        fields["Block count"],
        fields["Inode count"],
        str(groups),
        fields.get("Group descriptor size", "32"),
    ]
    assert line.split()[8] == fields["Filesystem volume name"]


def test_files_written_by_debugfs(ext, ext_source, tmp_path):
    image = make_image(tmp_path / "a.img", 8 * MIB, "-t ext3 -b 1024")
    file = ext_source / "sizes" / "700001"
    debugfs(image, ["mkdir /d", f"write {file} /d/f", "symlink /s d/f", "ln /d/f /hard"], True)
    lines = ext.run(image, "tree", "stat /s", "stat /hard")
    size, crc = describe_all(ext_source)["/sizes/700001"][1:]
    assert {f"node 100644 {size} {crc} /{name}" for name in ("d/f", "hard")} <= set(lines)
    inode = debugfs(image, ["stat /d/f"])
    sectors = re.search(r"Blockcount: (\d+)", " ".join(inode))[1]
    assert re.fullmatch(rf"inode \d+ 100644 1 {size} {sectors}", lines[-1])
    assert re.fullmatch(r"inode \d+ 120777 1 3 0", lines[-2])


def test_block_counts(ext, ext_copy):
    """i_blocks has 48 bits, and counts sectors, or blocks for a file with the HUGE_FILE flag."""
    image = ext_copy("ext4")
    inode = inode_offset(image, "/solid")
    (low,) = peek(image, inode + 0x1C, "<I")
    (flags,) = peek(image, inode + 0x20, "<I")
    assert ext.run(image, "stat /solid")[0].split()[-1] == str(low)
    patch(image, inode + 0x74, "<H", 3)
    assert ext.run(image, "stat /solid")[0].split()[-1] == str((3 << 32) + low)
    patch(image, inode + 0x20, "<I", flags | 0x40000)
    assert ext.run(image, "stat /solid")[0].split()[-1] == str(((3 << 32) + low) * 2)


def test_paths(ext, ext_source, tmp_path):
    image = make_image(tmp_path / "a.img", 8 * MIB, DEFAULT_4.replace("-N 128", ""), ext_source)
    same = {
        "/sizes/512": [
            *("sizes/512", "//sizes///512", "/./sizes/.././sizes/512"),
            "/deep/../../../sizes/512",
        ],
        "/sizes": ["/sizes/", "/sizes//.", f"/{'./' * 2047}sizes"],
        "/": ["//", "/.", "/..", "."],
    }
    errors = {
        "/none": "ENOENT",
        "": "ENOENT",
        "/sizes/none": "ENOENT",
        "/sizes/512/": "ENOTDIR",
        "/sizes/512/.": "ENOTDIR",
        "/link60/x": "ENOTDIR",
        "/directory/512": "ENOTDIR",
        f"/{'f' * 256}": "ENAMETOOLONG",
        f"/deep/é ü 文件/{'d' * 254}": "ENOENT",
    }
    for path, others in same.items():
        lines = ext.run(image, *(f"stat {other}" for other in [path, *others]))
        assert lines[0].startswith("inode ") and set(lines) == {lines[0]}, lines
    assert ext.run(image, *(f"stat {path}" for path in errors)) == [
        f"error {name}" for name in errors.values()
    ]
    links = ("link59", "link60", "link61", "link1000", "loop", "chain8", "deep/up")
    for link in links:  # found themselves, and not followed
        found, target = ext.run(image, f"stat /{link}", f"read 0 4000 /{link}")
        text = os.readlink(ext_source / link).encode()
        assert found.split()[2].startswith("120") and target == f"read {len(text)} {text.hex()}"
    assert ext.run(image, "inode 0", "inode 4294967295") == ["error EINVAL"] * 2
    assert ext.run(image, "map /pipe", "0", "") == ["error EINVAL"]
    assert ext.run(image, "list /sizes/1") == ["error ENOTDIR"]


# ---- mapping ------------------------------------------------------------------------------------


def make_mapped(place: Path, kind: str, block: int) -> tuple[Path, dict[str, int]]:
    """An image for questions to the map, and the files in it with their sizes in blocks."""
    rng = random.Random(SEED + block)
    slots = block // 4
    double = 12 + slots
    triple = double + slots * slots
    edges = (0, 11, 12, double - 1, double, triple - 1, triple, triple + slots * slots + 3)
    root = place / "root"
    root.mkdir()
    write_blocks(root / "edges", block, edges)
    write_blocks(root / "alternate", block, range(0, 3000, 2))
    write_blocks(root / "solid", block, range(600), 640)
    write_blocks(root / "random", block, sorted(rng.sample(range(20000), 300)), 20000)
    write_blocks(root / "reserved", block, range(3), 40000)
    image = make_image(place / "a.img", 64 * MIB, f"-t {kind} -b {block}", root)
    if kind == "ext4":
        last = 35000 if block == 1024 else 5000
        debugfs(image, [f"fallocate /reserved 5 {last}"], write=True)
    return image, {f"/{path.name}": path.stat().st_size // block for path in root.iterdir()}


@pytest.mark.parametrize("block", [1024, 2048, 4096])
@pytest.mark.parametrize("kind", ["ext2", "ext4"])
def test_map_equals_debugfs(ext, tmp_path, kind, block):
    image, sizes = make_mapped(tmp_path, kind, block)
    rng = random.Random(SEED)
    deepest = 0
    asked = 0
    for path, size in sizes.items():
        slots = block // 4
        edges = {0, 1, 11, 12, 13, 11 + slots, 12 + slots, 11 + slots + slots**2, size - 1}
        edges |= {12 + slots + slots**2, 12 + slots + slots**2 + 1, 4, 5, 6, 32772, 32773, 34999}
        blocks = [edge for edge in sorted(edges) if edge < size]
        blocks += [rng.randrange(size) for _ in range(80)]
        answers = ext.run(image, f"map {path}", *map(str, blocks), "")
        maps = [tuple(map(int, answer.split()[1:])) for answer in answers]
        ends = [first + length - 1 for first, (_, length, *_) in zip(blocks, maps, strict=True)]
        truth = bmap(image, [(path, first) for first in blocks + ends])
        for index, (physical, length, unwritten, depth) in enumerate(maps):
            last = truth[len(blocks) + index]
            assert truth[index] == (physical, bool(unwritten)), (path, blocks[index])
            assert last == (physical and physical + length - 1, bool(unwritten)), (path, index)
            assert length >= 1 and ends[index] < size
            deepest = max(deepest, depth)
        asked += len(truth)
    assert asked >= 800  # over 4,800 in the six cases
    assert deepest == (3 if kind == "ext2" else 2)


def test_lengths_cover_holes_and_runs(ext, ext_images):
    """A hole is as long as the missing subtree, or what is left of it; with extents, exact."""
    lengths = {  # logical block: by pointers, by extents
        1: (11, 11),
        13: (254, 254),
        300: (224, 65503),  # the slots behind that of 268 in its pointer block
        1000: (36, 64803),  # a pointer block that is not there
        65700: (103, 103),
        65805: (255, 196607),
        70000: (156, 192412),
        131345: (65531, 131067),  # two levels that are not there
    }
    script = ["map /high", *map(str, lengths), ""]
    for index, name in enumerate(["ext2", "ext4"]):
        answers = [line.split()[1:4] for line in ext.run(ext_images[name], *script)]
        assert answers == [["0", str(both[index]), "0"] for both in lengths.values()]
    run = ext.run(ext_images["ext2"], "map /solid", "3", "20", "")
    assert [line.split()[2] for line in run] == ["9", "180"]


def test_deep_trees_and_loops(ext, ext_copy):
    """Chains of up to five inner nodes; then what must not be believed of them."""
    image = ext_copy("ext4")
    base = int(bmap(image, [("/solid", 0)])[0][0])  # its blocks serve as nodes
    root = inode_offset(image, "/many") + INODE_BLOCK
    for depth in range(6):
        nodes = [extent_node(depth, 4, [(7, 9, base + depth - 1 if depth else base + 50)])]
        nodes += [
            extent_node(level, 84, [(7, 9, base + level - 1 if level else base + 50)])
            for level in range(depth - 1, -1, -1)
        ]
        patch(image, root, f"{len(nodes[0])}s", nodes[0])
        for level, node in zip(range(depth - 1, -1, -1), nodes[1:], strict=True):
            patch(image, (base + level) * 1024, f"{len(node)}s", node)
        lines = ext.run(image, "map /many", "0", "7", "15", "16", "")
        place = [f"{base + 50} 9 0", f"{base + 58} 1 0"]
        assert [line.split(" ", 1)[1] for line in lines[1:3]] == [f"{p} {depth}" for p in place]
        assert lines[0] == "map 0 7 0 0" and lines[3].startswith("map 0 783 0")
    refused = {
        "depth 5, not 4": extent_node(5, 4, [(7, 0, base + 5)]),  # a node that leads to itself
        "depth 0, not 4": extent_node(5, 4, [(7, 0, base)]),
        "blocks 7 to 7, not in its part, 8 to": extent_node(5, 4, [(8, 0, base + 4)]),
        "depth 6": extent_node(6, 4, [(7, 0, base + 4)]),
        "0 of 4 entries": extent_node(1, 4, []),
        "5 of 4 entries": extent_node(0, 4, [(i, 1, base) for i in range(5)]),
        "1 of 5 entries": extent_node(0, 5, [(7, 1, base)]),
        "entry 1 is out of order": extent_node(0, 4, [(9, 1, base), (9, 1, base)]),
        "length 4, but the next begins at 10": extent_node(0, 4, [(7, 4, base), (10, 1, base)]),
        "length 0": extent_node(0, 4, [(7, 0, base)]),
        "outside": extent_node(0, 4, [(7, 8, 4090)]),
        "4294967297": extent_node(0, 4, [(7, 1, (1 << 32) + 1)]),  # the upper 16 bits count
        f"mapping block {1 << 32}": extent_node(1, 4, [(7, 0, 1 << 32)]),
    }
    patch(image, (base + 5) * 1024, "36s", extent_node(5, 84, [(7, 0, base + 5)]))
    for message, node in refused.items():
        patch(image, root, "60s", node[:60])
        said, error, *_ = ext.run(image, "map /many", "9", "", "stat /solid")
        assert (
            message in said and said.startswith("console hdc: inode ") and error == "error EUCLEAN"
        )


@pytest.mark.parametrize(
    ("size", "options", "far"),
    [
        (2_000_398_934_016, "-t ext4 -b 4096 -J size=4 -O ^metadata_csum", 480_000_123),
        (
            5 << 40,
            "-t ext4 -b 1024 -O ^has_journal,^resize_inode,^metadata_csum,bigalloc -C 1048576",
            5_000_000_001,
        ),
    ],
    ids=["2TB", "block-numbers-of-33-bits"],
)
def test_far_blocks(ext, ext_source, tmp_path, size, options, far):
    """Data, in an extent of the largest size, and an inode far out in an image of terabytes."""
    image = make_image(tmp_path / "a.img", size, options, ext_source / "sizes")
    block = 4096 if "4096" in options else 1024
    where = " ".join(debugfs(image, ["imap /4097"]))
    match = re.search(r"at block (\d+), offset 0x([0-9a-f]+)", where)
    inode = int(match[1]) * block + int(match[2], 16)
    patch(image, inode + INODE_BLOCK, "24s", extent_node(0, 4, [(0, 32768, far)]))
    patch(image, far * block, "10s", b"far away: ")
    said = " ".join(debugfs(image, ["stats -h"]))
    last = int(re.search(r"Inode count: +(\d+)", said)[1]) - 3
    fields = ("mode 0100604", "links_count 1")
    debugfs(image, [f"set_inode_field <{last}> {each}" for each in fields], write=True)
    script = [f"inode {last}", "map /4097", "0", "", "trace on", "read 0 10 /4097"]
    lines = ext.run(image, *script)
    assert f"inode {last} 100604" in lines
    assert lines[-1] == f"read 10 {b'far away: '.hex()}"
    assert f"request data {far * block // 512} 1" in lines
    assert any(re.fullmatch(rf"map {far} \d+ 0 0", line) for line in lines)


# ---- requests -----------------------------------------------------------------------------------


def requests(lines: list[str], purpose: str) -> list[tuple[int, int]]:
    """The traced requests of one purpose: (first sector, sectors)."""
    words = [line.split() for line in lines if line.startswith(f"request {purpose} ")]
    return [(int(lba), int(count)) for _, _, lba, count in words]


@pytest.mark.parametrize("name", ["ext2", "ext4"])
def test_reads_cost_no_more_than_needed(ext, ext_images, name):
    first = bmap(ext_images[name], [("/solid", 0)])[0][0] * 2

    def cost(offset: int, length: int, path: str = "/solid") -> list[tuple[int, int]]:
        return requests(
            ext.run(ext_images[name], "trace on", f"read {offset} {length} {path}"), "data"
        )

    assert cost(0, 512) == [(first, 1)]
    assert cost(5 * 512, 512) == [(first + 5, 1)]
    assert cost(5 * 512 + 7, 9) == [(first + 5, 1)]
    assert cost(6 * 512 - 7, 9) == [(first + 5, 1), (first + 6, 1)]
    assert cost(512 * 3, 1024 * 5) == [(first + 3, 10)]
    assert cost(2048, 1024, "/high") == []
    assert len(cost(0, 200 * 1024)) <= (2 if name == "ext4" else 6)
    assert sum(count for _, count in cost(0, 200 * 1024)) == 400


@pytest.mark.parametrize("name", ["ext2", "ext4"])
def test_read_errors_are_reported_and_forgotten(ext, ext_images, name):
    """-EIO for a bad block, nothing else is hurt, and nothing of it is remembered."""
    image = ext_images[name]
    question = ["map /many", "700", ""]
    lines = ext.run(image, "trace on", *question, "drop", "list /dir")
    mapping = [lba for lba, _ in requests(lines, "mapping")]
    directory = requests(lines, "other")[-1][0]
    right = next(line for line in lines if line.startswith("map "))
    assert len(mapping) == 2
    for bad in mapping:
        script = [
            "drop",
            f"bad {bad}",
            *question,
            *question,
            "read 0 4 /dir/a",
            "bad none",
            *question,
        ]
        said = f"console hdc: metadata: block {bad // 2} cannot be read"
        answers = ext.run(image, *script)
        assert answers[-6:] == [*[said, "error EIO"] * 2, "read 4 61616161", right], bad
    script = ["stat /solid", "drop", f"bad {directory}", "list /dir", "stat /dir/a", "stat /solid"]
    answers = ext.run(image, *script, "bad none", "read 0 4 /dir/a")
    answers = [line for line in answers if "cannot be read" not in line]
    assert answers[2:4] == ["error EIO"] * 2 and answers[4] == answers[0]
    assert answers[5] == "read 4 61616161"
    data = bmap(image, [("/solid", 3)])[0][0] * 2
    answers = ext.run(image, f"bad {data}", "read 0 9000 /solid", "read 0 3000 /solid")
    assert answers[0] == "error EIO" and answers[1].startswith("read 3000 ")


def test_cache(ext, ext_images):
    """Sixteen buffers: the oldest goes first, a referenced one never, a bad block is not kept."""

    def misses(*blocks: int) -> list[str]:
        return [f"touch {block}" for block in blocks]

    def counts(*script: str) -> tuple[int, ...]:
        lines = [line for line in ext.run(ext_images["ext2"], *script) if line.startswith("counts")]
        before, after = (list(map(int, line.split()[1:])) for line in lines)
        return after[2] - before[2], after[3] - before[3]  # hits and misses, purpose "other"

    filled = misses(*range(100, 116))
    assert counts("drop", "counts", *filled, "counts") == (0, 16)
    assert counts(*filled, "counts", *filled, "counts") == (16, 0)
    assert counts(*filled, *misses(100, 116), "counts", "touch 100", "counts") == (1, 0)
    assert counts(*filled, *misses(100, 116), "counts", "touch 101", "counts") == (0, 1)
    assert counts("hold 50", *filled, *filled, "counts", "touch 50", "counts") == (1, 0)
    held = [f"hold {block}" for block in range(100, 116)]
    assert ext.run(ext_images["ext2"], "drop", *held, "hold 116", "touch 100", "drop")[1:] == [
        "error EBUSY",
        "dropped 0",
    ]
    bad = ["drop", "bad 200", "counts", "touch 100", "bad none", "touch 100", "touch 100", "counts"]
    assert counts(*bad) == (1, 2)
    assert ext.run(ext_images["ext2"], "touch 18446744073709551615") == ["error EINVAL"]


# ---- kernel -------------------------------------------------------------------------------------


@pytest.mark.skipif(not shutil.which("i686-linux-gnu-gcc"), reason="no i686-linux-gnu-gcc")
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_kernel_build_needs_no_compiler_library(tmp_path, level):
    options = ["-m32", "-march=i686", "-std=gnu11", "-ffreestanding", "-fno-pic"]
    command = [
        "i686-linux-gnu-gcc",
        *options,
        "-fno-stack-protector",
        level,
        "-Wall",
        "-Wextra",
        "-Werror",
        f"-I{ROOT}",
    ]
    for folder in {source.parent for source in SOURCES}:
        place = tmp_path / folder.name
        place.mkdir()
        files = [source for source in SOURCES if source.parent == folder]
        subprocess.run([*command, "-c", *files], cwd=place, check=True)
    objects = sorted(tmp_path.glob("*/*.o"))
    assert len(objects) == len(SOURCES)
    assert not re.search(r"U __", run_tool("nm", "-u", *map(str, objects)))


def test_images_are_reproducible(ext_source, tmp_path):
    """The same seeds give the same bytes, so that a failure can be had again. Later, too: the
    source's times are others then."""
    digests = []
    for name in "ab":
        image = make_image(tmp_path / name, 8 * MIB, DEFAULT_4 + " -N 600", ext_source)
        digests.append(hashlib.sha256(image.read_bytes()).hexdigest())
        for path in ext_source.rglob("*"):
            os.utime(path, (LATER, LATER), follow_symlinks=False)
    assert digests[0] == digests[1]
    assert UUID in run_tool("dumpe2fs", "-h", str(image))

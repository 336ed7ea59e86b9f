"""The ext file system on damaged images: refusals name their cause, nothing crashes or hangs."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from tests.host.ext.images import (
    INODE_BLOCK,
    SUPER,
    bmap,
    debugfs,
    extent_node,
    inode_offset,
    patch,
    peek,
    run_tool,
)

pytest_plugins = ["tests.host.ext.fixtures"]

# ---- damage -------------------------------------------------------------------------------------

FIELDS = {  # message: image, offset in the superblock, layout, value, error
    "no ext file system: magic 0x1234": ("ext2", 0x38, "<H", 0x1234, "EINVAL"),
    "superblock: block count 99999999 is larger than the device's 4096 blocks": (
        *("ext2", 0x04, "<I", 99999999, "EUCLEAN"),
    ),
    "superblock: block count 4294971392 is larger": ("ext4", 0x150, "<I", 1, "EUCLEAN"),
    "superblock: 0 blocks do not make 1 groups of 8192": ("ext2", 0x04, "<I", 1, "EUCLEAN"),
    "superblock: revision 9, not 0 to 1": ("ext2", 0x4C, "<I", 9, "EUCLEAN"),
    "superblock: log of the block size 7, not 0 to 2": ("ext2", 0x18, "<I", 7, "EINVAL"),
    "superblock: inode size 200, not a power of two": ("ext2", 0x58, "<H", 200, "EUCLEAN"),
    "superblock: inode size 2048, not 128 to 1024": ("ext2", 0x58, "<H", 2048, "EUCLEAN"),
    "superblock: first inode 5, not 11 to 128": ("ext2", 0x54, "<I", 5, "EUCLEAN"),
    "superblock: descriptor size 48, not 64 to 1024": ("ext4", 0xFE, "<H", 48, "EUCLEAN"),
    "superblock: inodes per group 0, not": ("ext2", 0x28, "<I", 0, "EUCLEAN"),
    "superblock: inodes per group 9000, not": ("ext2", 0x28, "<I", 9000, "EUCLEAN"),
    "superblock: blocks per group 0, not 1 to 8192": ("ext2", 0x20, "<I", 0, "EUCLEAN"),
    "superblock: blocks per group 70000, not 1 to 8192": ("ext2", 0x20, "<I", 70000, "EUCLEAN"),
    "superblock: first data block 0, not 1 to 1": ("ext2", 0x14, "<I", 0, "EUCLEAN"),
    "superblock: inode count 129 is not a multiple of 128": ("ext2", 0x00, "<I", 129, "EUCLEAN"),
    "superblock: 4095 blocks do not make 1 groups of 1024": ("ext2", 0x20, "<I", 1024, "EUCLEAN"),
    "superblock: checksum type 3, not 1 to 1": ("default", 0x175, "<B", 3, "EUCLEAN"),
    "superblock: checksum 0x": ("default", 0x2C, "<I", 77, "EBADMSG"),
    "needs_recovery: the journal": ("ext4", 0x60, "<I", 0x2C6, "EUCLEAN"),
    "descriptors: group 0: inode table in block 500000, outside": (
        "ext2",
        1024 + 8,
        "<I",
        500000,
        "EUCLEAN",
    ),
}


@pytest.mark.parametrize("message", FIELDS)
def test_damaged_superblock_is_named(ext, ext_copy, message):
    name, offset, layout, value, error = FIELDS[message]
    image = ext_copy(name)
    patch(image, SUPER + offset, layout, value)
    said, result = ext.run(image)
    assert said.startswith(f"console hdc: {message}") and result == f"error {error}"


def test_features_are_named_as_e2fsprogs_does(ext, ext_copy):
    """Every bit of the two words that is not known: refused, or read only, as dumpe2fs calls it."""
    image = ext_copy("ext4")
    old = peek(image, SUPER + 0x60, "<II")
    before = set(features(image))
    known = [{2, 4, 8, 13}, {4, 10, 16}]  # and those that the image has
    for word, end in enumerate(["not mounted", "read only"]):
        for bit in range(32):
            if bit in known[word] or old[word] >> bit & 1:
                continue
            patch(image, SUPER + 0x60 + 4 * word, "<I", old[word] | 1 << bit)
            (name,) = set(features(image)) - before
            said = [line for line in ext.run(image) if "feature" in line]
            assert said == [f"console hdc: unsupported feature {name}: {end}"], (word, bit)
        patch(image, SUPER + 0x60, "<II", *old)


def features(image: Path) -> list[str]:
    """What dumpe2fs calls the features of an image."""
    said = run_tool("dumpe2fs", "-h", "-f", str(image), allowed=(0, 1))
    return re.search(r"Filesystem features: +(.*)", said)[1].split()


def test_too_small_a_device(ext, tmp_path):
    (tmp_path / "a.img").write_bytes(bytes(1024))
    said, error = ext.run(tmp_path / "a.img")
    assert said == "console hdc: too small for an ext file system" and error == "error EINVAL"


def test_damaged_inodes_pointers_and_directories(ext, ext_copy):
    """One field at a time: an errno and a line that names it, and the neighbours still work."""
    image = ext_copy("ext2")
    inode = inode_offset(image, "/many")
    pointers = peek(image, inode + INODE_BLOCK, "<15I")
    directory = bmap(image, [("/dir", 0)])[0][0] * 1024
    cases = [
        (inode + INODE_BLOCK, "<I", 0xFFFFFF, ["map /many", "0", ""], "1 blocks from 16777215 on"),
        (inode + INODE_BLOCK, "<I", 1, ["map /many", "0", ""], "1 blocks from 1 on"),
        (inode + INODE_BLOCK + 48, "<I", 5000, ["map /many", "12", ""], "mapping block 5000"),
        (inode + INODE_BLOCK + 52, "<I", 4096, ["map /many", "268", ""], "mapping block 4096"),
        (pointers[12] * 1024, "<I", 4096, ["map /many", "12", ""], "1 blocks from 4096 on"),
        (inode, "<H", 0o644, ["stat /many"], "mode 0644 is not a type of file"),
        (inode + 0x20, "<I", 0x80000, ["stat /many"], "extents, but the file system has none"),
        (inode + 0x6C, "<I", 0x80000000, ["stat /many"], "size 9223372036855"),
        (inode_offset(image, "/dir") + 4, "<I", 1000, ["list /dir"], "size 1000"),
        (inode_offset(image, "/short") + 4, "<I", 0, ["stat /short"], "size 0"),
        (directory + 4, "<H", 0, ["list /dir"], "directory entry of 0 bytes, 1024 left"),
        (directory + 4, "<H", 13, ["list /dir"], "directory entry of 13 bytes, 1024 left"),
        (directory + 4, "<H", 1020, ["list /dir"], "directory entry of 1020 bytes, 1024 left"),
        (directory + 4, "<H", 1028, ["list /dir"], "directory entry of 1028 bytes, 1024 left"),
        (directory + 6, "<B", 5, ["list /dir"], "a name of 5"),
        (directory + 8, "<B", 0, ["list /dir"], "a NUL in its name of 1"),
        (directory, "<I", 129, ["list /dir"], "directory entry for inode 129 of 128"),
        (directory + 12, "<I", 7, ["stat /dir/.."], "directory entry for reserved inode 7"),
    ]
    for offset, layout, value, script, message in cases:
        old = peek(image, offset, layout)
        patch(image, offset, layout, value)
        said, error, after = ext.run(image, *script, "read 0 2 /solid")
        assert message in said and said.startswith("console hdc: inode "), (said, message)
        assert error == "error EUCLEAN" and after.startswith("read 2 ")
        patch(image, offset, layout, *old)


@pytest.mark.parametrize("name", ["ext2", "ext4", "default"])
def test_deleted_inodes_are_refused(ext, ext_copy, name):
    """What is left of a file after its last name has gone looks like a file; only the links say
    that it is none. A name that still leads there is damage."""
    image = ext_copy(name)
    inodes = {path: inode_offset(image, path) for path in ("/solid", "/dir", "/short")}
    numbers = {path: stat_number(image, path) for path in inodes}
    for path, inode in inodes.items():
        lines = ext.run(image, f"inode {numbers[path]}", f"stat {path}", "stat /many")
        assert len(lines) == 3 and not any(line.startswith("error") for line in lines)
        (links,) = peek(image, inode + 0x1A, "<H")
        debugfs(image, [f"sif {path} links_count 0"], write=True)  # and the checksum
        said, error, again, error_again, after = ext.run(
            image, f"inode {numbers[path]}", f"stat {path}", "stat /many"
        )
        assert said == again == f"console hdc: inode {numbers[path]}: not in use: it has no links"
        assert error == error_again == "error EUCLEAN" and after == lines[2]
        debugfs(image, [f"sif {path} links_count {links}"], write=True)
    before = ext.run(image, f"inode {numbers['/solid']}")
    debugfs(image, ["rm /solid"], write=True)
    (mode,) = peek(image, inodes["/solid"], "<H")
    assert mode == 0o100644 and before[0].startswith("inode ")
    assert ext.run(image, f"inode {numbers['/solid']}")[1] == "error EUCLEAN"


def stat_number(image: Path, path: str) -> int:
    """The number of an inode, as debugfs says it."""
    return int(re.search(r"Inode: (\d+)", " ".join(debugfs(image, [f"stat {path}"])))[1])


@pytest.mark.parametrize("link", ["short", "slow"])
@pytest.mark.parametrize("at", [0, 3, -1])
def test_nul_in_a_link(ext, ext_copy, link, at):
    """A link's target with a NUL anywhere, in the inode or in a block of its own, is refused: it
    would end the path there, and "/link/x" would lead to where the target's first half does."""
    image = ext_copy("ext2")
    inode = inode_offset(image, f"/{link}")
    (size,) = peek(image, inode + 0x04, "<I")
    text = inode + INODE_BLOCK if link == "short" else bmap(image, [(f"/{link}", 0)])[0][0] * 1024
    patch(image, text + at % size, "<B", 0)
    said, error, after = ext.run(image, f"read 0 4000 /{link}", "read 0 2 /solid")
    assert f": NUL at {at % size} of {size} in a link's target" in said
    assert error == "error EUCLEAN" and after.startswith("read 2 ")


def test_nul_in_a_name(ext, ext_copy):
    """A name with a NUL is no shorter name: "a" must not be found in "a, NUL, b"."""
    image = ext_copy("ext2")
    block = bmap(image, [("/dir", 0)])[0][0] * 1024
    with image.open("rb") as file:
        file.seek(block)
        at = block + file.read(1024).index(b"file_7")
    patch(image, at + 4, "<B", 0)
    assert ext.run(image, "stat /solid")[0].startswith("inode ")
    for path in ("/dir/file", "/dir/file_7"):
        said, error = ext.run(image, f"stat {path}")
        assert "directory entry with a NUL in its name of 6" in said and error == "error EUCLEAN"


REACH = {"ext2": (12 + 256 + 256**2 + 256**3) * 1024, "ext4": ((1 << 32) - 1) * 1024}


@pytest.mark.parametrize("name", REACH)
def test_size_beyond_the_map(ext, ext_copy, name):
    """The largest file that the map can describe is read at its end, which is a hole; one that is
    larger, by a byte or by all bits, is refused: reading it would never end."""
    image = ext_copy(name)
    inode = inode_offset(image, "/solid")

    def ask(size: int) -> list[str]:
        patch(image, inode + 0x04, "<I", size & 0xFFFFFFFF)
        patch(image, inode + 0x6C, "<I", size >> 32)
        return ext.run(image, "stat /solid", f"read {size - 2} 9 /solid")

    said, data = ask(REACH[name])
    assert said.split()[4] == str(REACH[name])
    assert data == "read 2 0000"
    for size in (REACH[name] + 1, REACH[name] * 16, (1 << 63) - 1, (1 << 64) - 1):
        answers = ask(size)
        assert answers[0].endswith(f": size {size}"), answers
        assert answers[1] == "error EUCLEAN"


@pytest.mark.parametrize("name", ("default", "ext4"))
def test_the_last_block_of_the_largest_file(ext, ext_copy, name):
    """Extents count blocks in 32 bits, and as in Linux no block has the last number: an extent that
    ends before it is read, changed and freed, and one that reaches it is damage (not to e2fsck,
    but to Linux)."""
    image = ext_copy(name)
    physical = bmap(image, [("/solid", 0)])[0][0]
    size, last = ((1 << 32) - 1) * 1024, (1 << 32) - 2

    def put_extent(logical: int) -> None:
        words = struct.unpack("<6I", extent_node(0, 4, [(logical, 2, physical)])[:24])
        fields = [f"block[{i}] {word}" for i, word in enumerate(words)]
        fields += [f"size {size}", "blocks 4"]
        debugfs(image, [f"sif /solid {field}" for field in fields], write=True)

    put_extent(last - 1)
    run_tool("e2fsck", "-fy", str(image), allowed=(1,))  # frees the other blocks
    assert bmap(image, [("/solid", last)])[0][0] == physical + 1
    work = f"read {size - 3} 9 /solid\npunch /solid {size - 1024} 1024\nsync\n"
    lines = ext.start(image, "write", "errors=continue", text=work)
    assert len(lines) == 3 and not re.search("console|error", " ".join(lines)), lines
    run_tool("e2fsck", "-fn", str(image))
    put_extent(last)
    for work in (f"read {size - 3} 9 /solid", "truncate /solid 0"):
        said = ext.start(image, "write", "errors=continue", text=work + "\n")
        assert f"extent at {last}: length 2" in said[0] and said[1] == "error EUCLEAN", said


# Nodes that end too late, or just in time: entries of the node whose part of the file ends before
# block 100, its depth, and whether its entries may be as they are.
BOUNDS = {
    "up to the bound": ([(0, 10), (90, 10)], 0, True),
    "an extent begins after the bound": ([(0, 10), (200, 5)], 0, False),
    "an extent begins at the bound": ([(0, 10), (100, 5)], 0, False),
    "one extent across the bound, one after it": ([(0, 150), (200, 5)], 0, False),
    "an inner entry begins after the bound": ([(0, 0), (200, 0)], 1, False),
}


@pytest.mark.parametrize("bound", BOUNDS)
def test_nodes_end_before_the_next_one_begins(ext, ext_copy, bound):
    """What a node says of blocks that are its neighbour's hid them: `map` found a block, and a read
    from an earlier one on gave zeros for it."""
    entries, depth, is_right = BOUNDS[bound]
    image = ext_copy("ext4")
    base = int(bmap(image, [("/solid", 0)])[0][0])  # its blocks serve as nodes
    first, second, leaf, data = base, base + 1, base + 2, base + 20
    root = extent_node(depth + 1, 4, [(0, 0, first), (100, 0, second)])
    nodes = {first: [(at, length, leaf if depth else data) for at, length in entries]}
    nodes |= {second: [(100, 5, leaf if depth else data)]}
    patch(image, inode_offset(image, "/many") + INODE_BLOCK, f"{len(root)}s", root)
    for block, each in nodes.items():
        node = extent_node(depth, 84, each)
        patch(image, block * 1024, f"{len(node)}s", node)
    patch(image, leaf * 1024, "24s", extent_node(0, 84, [(0, 10, data)]))
    patch(image, data * 1024, "4s", b"here")
    question = ["map /many", "50", ""]
    answers = ext.run(image, *question, f"read {50 * 1024} {51 * 1024} /many")
    if is_right:
        assert answers[0] == "map 0 40 0 1"
        assert answers[1].startswith(f"read {51 * 1024} ")
        assert bytes.fromhex(answers[1].split()[2])[50 * 1024 :][:4] == b"here"
        return
    said, error, said_again, error_again = answers
    assert said == said_again
    assert f"extent node in block {first}: blocks 0 to {entries[-1][0]}, not in its part" in said
    assert error == error_again == "error EUCLEAN"


def flip(image: Path, offset: int) -> None:
    """Changes the lowest bit of a byte."""
    patch(image, offset, "<B", peek(image, offset, "<B")[0] ^ 1)


@pytest.mark.parametrize("behaviour", ["errors=remount-ro", "errors=continue"])
def test_wrong_checksums(ext, ext_copy, behaviour):
    """A bit that makes no structure impossible, in what has a checksum: EBADMSG, as in Linux, and
    a mount that writes does what its `errors` says."""
    image = ext_copy("default")
    (leaf,) = re.findall(r"ETB0\):(\d+)", " ".join(debugfs(image, ["stat /many"])))[:1]
    size = 1024 << peek(image, SUPER + 0x18, "<I")[0]
    directory = bmap(image, [("/dir", 0)])[0][0] * size
    cases = [
        (inode_offset(image, "/solid") + 0x0C, "stat /solid", "inode .*: checksum 0x"),
        (int(leaf) * size + 8, "map /many\n0\n", "extent node in block .*: checksum 0x"),
        (directory + 8, "stat /dir/file_7", "directory block 0: checksum"),
    ]
    for offset, command, message in cases:
        image = ext_copy("default")
        flip(image, offset)
        said, error, after = ext.run(image, command, "read 0 2 /high")
        assert re.match(f"console hdc: .*{message}", said), (said, message)
        assert error == "error EBADMSG" and after.startswith("read ")
        lines = ext.start(image, "write", behaviour, text=f"{command}\ncreate /new\n")
        assert "error EBADMSG" in lines
        assert ("error EROFS" in lines) == (behaviour == "errors=remount-ro"), lines


def test_a_wrong_checksum_of_a_descriptor(ext, ext_copy):
    """Such a file system is not mounted for writing; to read it goes on, with a message."""
    image = ext_copy("default")
    size = 1024 << peek(image, SUPER + 0x18, "<I")[0]
    flip(image, (2048 if size == 1024 else size) + 0x10)
    message = "console hdc: descriptors: group 0: checksum 0x"
    lines = ext.start(image, "write", text="")
    assert lines[0].startswith(message) and lines[-1] == "error EBADMSG"
    lines = ext.run(image, "stat /solid")
    assert lines[0].startswith(message) and lines[-1].startswith("inode ")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ext2", "ext4", "default"])
def test_mutations_are_survived(ext, ext_images, name):
    """Seeded damage anywhere in the metadata, and then in each of the structures."""
    image = ext_images[name]
    results = ext.mutate(image, 800)
    assert results["none"] > 0 and results["EUCLEAN"] + results.get("EBADMSG", 0) > 20
    assert ext.mutate(image, 400, SUPER, 0x110).get("EOPNOTSUPP", 0) > 0
    for start, length in structures(image):
        ext.mutate(image, 120, start, length)


def structures(image: Path) -> list[tuple[int, int]]:
    """Byte ranges: the descriptors, inodes, mapping blocks and a directory block of an image."""
    ranges = [(2 * 1024, 64), (inode_offset(image, "/") + 0, 128)]
    ranges += [(inode_offset(image, path), 128) for path in ("/many", "/high", "/slow", "/dir")]
    inode = " ".join(debugfs(image, ["stat /many", "stat /high"]))
    mapping = {int(block) for block in re.findall(r"(?:ETB\d|[DT]?IND)\):(\d+)", inode)}
    ranges += [(block * 1024, 128) for block in sorted(mapping)[:6]]
    return [*ranges, (bmap(image, [("/dir", 0)])[0][0] * 1024, 200)]

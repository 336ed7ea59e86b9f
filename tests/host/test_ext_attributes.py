"""Extended attributes, changed by the library on the host: a model, debugfs and e2fsck agree with
what is on the disk afterwards."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.host.ext.images import (
    MIB,
    SEED,
    debugfs,
    inode_offset,
    make_image,
    patch,
    peek,
    run_tool,
)

pytest_plugins = ["tests.host.ext.fixtures"]

ROUNDS = 8  # of each random test: a mount, STEPS calls, and e2fsck
STEPS = 12
VARIANTS = {
    "ext4": "-t ext4 -b 1024",
    "ext4-4096": "-t ext4 -b 4096 -O ^has_journal",
    "ext3": "-t ext3 -b 1024 -I 256 -O ^ext_attr",
    "ext2-128": "-t ext2 -b 2048 -I 128",
    "inode-1024": "-t ext4 -b 1024 -I 1024 -O ^has_journal,metadata_csum_seed",
}
PATHS = ("/f", "/g", "/d", "/d/pipe", "/link")
PREFIXES = ("user.", "trusted.", "security.")
MADE = ("create /f", "create /g", "mkdir /d", "mknod /d/pipe", f"symlink {'t' * 20} /link")
HEADER = 32  # bytes of a block that has attributes


def value_of(length: int, seed: int) -> bytes:
    """What setattr stores (tests/host/ext/files.h)."""
    words = b"".join(struct.pack("<II", i + 1, seed) for i in range((length + 7) // 8))
    return words[:length]


def up(length: int) -> int:
    return (length + 3) & ~3


def room_for(name: str, value: bytes) -> int:
    """Bytes of an entry and its value."""
    return 16 + up(len(name.split(".", 1)[1])) + up(len(value))


@dataclass
class Place:
    """The inode's own room, or its block's."""

    room: int
    values: dict[str, bytes] = field(default_factory=dict)

    def fits(self, name: str, value: bytes) -> bool:
        others = {each: self.values[each] for each in self.values if each != name}
        used = sum(room_for(*each) for each in others.items())
        return used + room_for(name, value) <= self.room


class Model:
    """Where Linux puts attributes, and what it says."""

    def __init__(self, inode_size: int, block: int) -> None:
        self.body = Place(inode_size - 128 - 32 - 8)
        self.block = Place(block - HEADER - 4)

    def find(self, name: str) -> Place | None:
        return next((each for each in (self.body, self.block) if name in each.values), None)

    def all(self) -> dict[str, bytes]:
        return {**self.body.values, **self.block.values}

    def set(self, name: str, value: bytes, how: str) -> str:
        there = self.find(name)
        if there and how == "create":
            return "error EEXIST"
        if not there and how == "replace":
            return "error ENODATA"
        if there and there.values[name] == value:
            return "done 0"
        for place in (self.body, self.block):
            if place.fits(name, value):
                if there and there is not place:
                    del there.values[name]
                place.values[name] = value
                return "done 0"
        return "error ENOSPC"

    def remove(self, name: str) -> str:
        there = self.find(name)
        if not there:
            return "error ENODATA"
        del there.values[name]
        return "done 0"


def steps(rng: random.Random, models: dict[str, Model], block: int) -> Iterator[tuple[str, str]]:
    """Calls, and the model's answers."""
    for _ in range(STEPS):
        path, model = rng.choice(sorted(models.items()))
        name = f"{rng.choice(PREFIXES)}{'n' * rng.choice((1, 2, 3, 4, 30, 200))}"
        name += str(rng.randrange(4))
        if rng.random() < 0.3:
            yield f"removeattr {path} {name}", model.remove(name)
            continue
        length = rng.choice((0, 1, 3, 4, 20, 60, 100, 300, block - 60, block, 8192))
        seed, how = rng.randrange(1 << 32), rng.choice(("", "", "", "create", "replace"))
        answer = model.set(name, value_of(length, seed), how)
        yield f"setattr {path} {name} {length} {seed} {how}".rstrip(), answer


def attributes(ext, image: Path, *paths: str) -> list[dict[str, bytes]]:
    """What the library says of these files."""
    found: list[dict[str, bytes]] = []
    for line in ext.run(image, *(f"attributes {path}" for path in paths)):
        word, name, value = f"{line} ".split(" ")[:3]
        if word == "attributes":
            found.append({})
        else:
            found[-1][name] = bytes.fromhex(value)
    return found


def shown(image: Path, path: str) -> dict[str, int]:
    """What debugfs lists of a file: names and sizes."""
    lines = debugfs(image, [f"ea_list {path}"])
    return {
        match[1]: int(match[2]) for line in lines if (match := re.match(r" *(\S+) \((\d+)\)", line))
    }


def got(image: Path, path: str, names: list[str]) -> list[bytes]:
    """The values that debugfs reads."""
    files = [image.with_name(f"value{number}") for number in range(len(names))]
    asked = zip(files, names, strict=True)
    debugfs(image, (f"ea_get -f {file} {path} {name}" for file, name in asked))
    return [file.read_bytes() for file in files]


@pytest.mark.parametrize("variant", VARIANTS)
def test_random_attributes_equal_a_model(ext, tmp_path, variant):
    """After each of some mounts: e2fsck, the library's list, and debugfs's, agree with the model.
    At the end all inodes go, and as many blocks are free as in the beginning."""
    options = VARIANTS[variant]
    image = make_image(tmp_path / "a.img", 8 * MIB, f"-N 64 {options}")
    block = int(options.split("-b ")[1].split()[0])
    size = int(options.split("-I ")[1].split()[0]) if "-I" in options else 256
    before = ext.write(image, "usage")
    assert ext.write(image, *MADE) == ["done 0"] * len(MADE)
    models = {path: Model(size, block) for path in PATHS}
    for model in models.values():
        model.body.room = model.body.room if size > 128 else -1
    rng = random.Random(SEED)
    for _ in range(ROUNDS):
        calls = list(steps(rng, models, block))
        lines = ext.write(image, *(call for call, _ in calls))
        assert list(zip([call for call, _ in calls], lines, strict=True)) == calls
        there = attributes(ext, image, *models)
        assert there == [model.all() for model in models.values()]
    for path, model in models.items():
        assert shown(image, path) == {name: len(value) for name, value in model.all().items()}
        assert got(image, path, list(model.all())) == list(model.all().values())
    gone = ["unlink /f", "unlink /g", "unlink /d/pipe", "rmdir /d", "unlink /link"]
    assert ext.write(image, *gone, "usage") == ["done 0"] * 5 + before


def made(tmp_path: Path, options: str, *commands: str) -> Path:
    """An image with /f and /g; debugfs has obeyed the commands."""
    image = make_image(tmp_path / "a.img", 4 * MIB, f"-N 64 -b 1024 {options}")
    debugfs(image, ["write /dev/null f", "write /dev/null g", *commands], write=True)
    return image


def test_what_mkfs_and_debugfs_store_is_read(ext, tmp_path):
    """Also access control lists, which are not shown, and stay."""
    value = tmp_path / "value"
    value.write_bytes(b"\1\0\0\2" + bytes(16))
    (tmp_path / "acl").write_bytes(bytes.fromhex("0200000001000600ffffffff04000400ffffffff"))
    setting = [
        f"ea_set -f {value} /f security.capability",
        f"ea_set /f user.long {'x' * 300}",
        "ea_set /f user.short y",
    ]
    image = made(tmp_path, "-t ext4", *setting)
    there = {
        "security.capability": value.read_bytes(),
        "user.long": b"x" * 300,
        "user.short": b"y",
    }
    assert attributes(ext, image, "/f") == [there]
    assert ext.write(image, "removeattr /f user.long") == ["done 0"]
    del there["user.long"]
    assert attributes(ext, image, "/f") == [there]


def test_names_and_sizes_that_are_refused(ext, tmp_path):
    image = made(tmp_path, "-t ext4", "ea_set /f user.a four")
    asked = {
        "getattr /f user.a 0": "length 4",
        "getattr /f user.a 4": "length 4",
        "getattr /f user.a 3": "error ERANGE",
        "getattr /f user.b 0": "error ENODATA",
        "getattr /f trusted.a 0": "error ENODATA",
        "getattr /f user. 0": "error EINVAL",
        "getattr /f system.posix_acl_access 0": "error EOPNOTSUPP",
        f"getattr /f user.{'n' * 251} 0": "error ERANGE",
        f"getattr /f user.{'n' * 250} 0": "error ENODATA",
    }
    assert ext.run(image, *asked) == list(asked.values())
    assert ext.write(image, "setattr /f user.a 1 1", options=["read-only"]) == ["error EROFS"]


def block_of(image: Path, path: str) -> int:
    """The block with a file's attributes; 0: none."""
    (line,) = (line for line in debugfs(image, [f"stat {path}"]) if "File ACL" in line)
    return int(re.findall(r"File ACL: (\d+)", line)[0])


def shared(tmp_path: Path, options: str) -> Path:
    """/f and /g have the same block, as Linux does with equal attributes; e2fsck puts its count of
    inodes right, and i_blocks."""
    image = made(tmp_path, options, f"ea_set /f user.a {'x' * 300}")
    debugfs(image, [f"sif /g file_acl {block_of(image, '/f')}"], write=True)
    run_tool("e2fsck", "-fy", str(image), allowed=(0, 1))
    run_tool("e2fsck", "-fn", str(image))
    return image


@pytest.mark.parametrize("options", ["-t ext4", "-t ext2"])
def test_shared_block(ext, tmp_path, options):
    """It is copied before it is changed, and freed with the last inode that has it."""
    image = shared(tmp_path, options)
    block = block_of(image, "/f")
    assert block_of(image, "/g") == block != 0
    before = ext.write(image, "usage")
    assert ext.write(image, "setattr /g user.b 200 7") == ["done 0"]
    assert block_of(image, "/f") == block != block_of(image, "/g") != 0
    value = value_of(200, 7)
    assert attributes(ext, image, "/f") == [{"user.a": b"x" * 300}]
    assert attributes(ext, image, "/g") == [{"user.a": b"x" * 300, "user.b": value}]
    assert ext.write(image, "unlink /g", "create /g", "usage") == ["done 0", "done 0", *before]


def test_shared_block_is_left(ext, tmp_path):
    image = shared(tmp_path, "-t ext4")
    assert ext.write(image, "removeattr /g user.a") == ["done 0"]
    assert block_of(image, "/f") and not block_of(image, "/g")
    assert ext.write(image, "unlink /g", "unlink /f") == ["done 0"] * 2


def test_full_disk(ext, tmp_path):
    """No block for attributes: -ENOSPC, and what was there stays."""
    image = made(tmp_path, "-t ext4", "ea_set /f user.a four")
    fill = ["append /g 1000000 1"] * 5 + ["append /g 1000 1"] * 40
    lines = ext.write(image, *fill, "setattr /f user.b 300 1", "setattr /f user.c 8 1")
    assert lines[-3:] == ["error ENOSPC", "error ENOSPC", "done 0"]
    found = attributes(ext, image, "/f")
    assert found == [{"user.a": b"four", "user.c": value_of(8, 1)}]


# ---- damaged images ------------------------------------------------------------------------------

IN_BLOCK = {  # offset, layout, value: what the block of attributes gets
    "magic": (0, "<I", 0xEA010000),
    "inodes": (4, "<I", 0),
    "blocks": (8, "<I", 2),
    "offset": (HEADER + 2, "<H", 1020),
    "offset in entries": (HEADER + 2, "<H", 36),
    "size": (HEADER + 8, "<I", 0xFFFFFFFC),
    "inode of a value": (HEADER + 4, "<I", 12),
    "name": (HEADER, "<B", 255),
}


@pytest.mark.parametrize("damage", IN_BLOCK)
def test_damaged_block(ext, tmp_path, damage):
    offset, layout, value = IN_BLOCK[damage]
    setting = [f"ea_set /f user.{each} {each * 250}" for each in "abc"]
    image = made(tmp_path, "-t ext4 -O ^metadata_csum", *setting)
    patch(image, block_of(image, "/f") * 1024 + offset, layout, value)
    text = image.read_bytes()
    calls = ("attributes /f", "getattr /f user.a 1000", "setattr /f user.d 300 1")
    lines = ext.start(image, "write", "errors=continue", text="\n".join((*calls, "unlink /f", "")))
    said = [line for line in lines if line.startswith("console")]
    assert [line for line in lines if "error" in line] == ["error EUCLEAN"] * 4
    assert all("attributes in" in line for line in said) and said
    assert text != image.read_bytes()  # the superblock has counted it


@pytest.mark.parametrize("block", [1, 8192, 0xFFFFFFFF])
def test_block_outside_the_file_system(ext, tmp_path, block):
    """What i_file_acl says is believed by no call; 1 is the superblock's."""
    image = made(tmp_path, "-t ext4 -O ^metadata_csum", f"ea_set /f user.a {'x' * 300}")
    patch(image, inode_offset(image, "/f") + 0x68, "<I", block)
    calls = ("attributes /f", "getattr /f user.a 1000", "setattr /f user.d 300 1", "unlink /f")
    lines = ext.start(image, "write", "errors=continue", text="\n".join((*calls, "")))
    assert [line for line in lines if "error" in line] == ["error EUCLEAN"] * 4
    assert sum(f"1 blocks from {block} on are outside" in line for line in lines) >= 4


def test_damage_is_found_by_the_checksum(ext, tmp_path):
    image = made(tmp_path, "-t ext4", f"ea_set /f user.a {'x' * 300}")
    patch(image, block_of(image, "/f") * 1024 + 1000, "<I", 1)
    lines = ext.run(image, "attributes /f", "getattr /f user.a 1000")
    assert [line for line in lines if "error" in line] == ["error EBADMSG"] * 2
    assert sum("attributes in block" in line and "checksum" in line for line in lines) == 2


def test_damaged_inode(ext, tmp_path):
    """What follows its fields: a value beyond its end, and fields that leave no room."""
    image = made(tmp_path, "-t ext4 -O ^metadata_csum", "ea_set /f user.a four")
    place = inode_offset(image, "/f")
    assert peek(image, place + 160, "<I") == (0xEA020000,)
    patch(image, place + 164 + 8, "<I", 5000)
    lines = ext.run(image, "attributes /f", "attributes /g")
    assert [line for line in lines if "error" in line] == ["error EUCLEAN"]
    patch(image, place + 128, "<H", 250)
    assert attributes(ext, image, "/f") == [{}]


def test_random_damage(ext, tmp_path):
    """Mutations of the block, and of the inodes: documented errors only."""
    setting = [f"ea_set /f user.{each} {each * 100}" for each in "abcdef"]
    image = made(tmp_path, "-t ext4 -O ^metadata_csum", *setting, "ea_set /g user.small x")
    results = ext.mutate(image, 300, block_of(image, "/f") * 1024, 1024)
    assert results.get("EUCLEAN", 0) > 10
    ext.mutate(image, 300, inode_offset(image, "/g"), 256)

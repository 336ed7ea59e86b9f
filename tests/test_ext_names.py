"""Names of ext directories, made, moved and removed by the library on the host: a model, debugfs
and e2fsck agree with what is on the disk afterwards."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.ext.images import MIB, SEED, debugfs, make_image

pytest_plugins = ["tests.host.ext.fixtures"]

VARIANTS = {
    **{
        f"{kind}-{block}": f"-t {kind} -b {block}"
        for kind in ("ext2", "ext4")
        for block in (1024, 2048, 4096)
    },
    "ext3": "-t ext3 -b 1024",
    "no-dir-index": "-t ext4 -b 1024 -O ^dir_index",
    "no-filetype": "-t ext2 -b 1024 -O ^filetype",
    "no-checksums": "-t ext4 -b 1024 -O ^metadata_csum",
    "checksum-seed": "-t ext4 -b 1024 -O metadata_csum_seed",
    "inode-128": "-t ext4 -b 1024 -I 128",
    "inode-1024": "-t ext4 -b 2048 -I 1024",
}


def image_of(place: Path, options: str, size: int = 32 * MIB, journal: bool = False) -> Path:
    """An empty file system; small inode tables, so that e2fsck is quick."""
    journaled = "" if journal or "ext2" in options else " -O ^has_journal"
    return make_image(place / "a.img", size, f"-N 4000 {options}{journaled}")


# ---- random operations, and a model --------------------------------------------------------------


class Refused(Exception):
    """The errno's name that an operation is to give."""


class Node:
    """An inode: a directory has children."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.children: dict[str, Node] = {}

    @property
    def is_directory(self) -> bool:
        return self.kind == "directory"

    def find(self, name: str) -> Node:
        if not self.is_directory:
            raise Refused("ENOTDIR")
        if name not in self.children:
            raise Refused("ENOENT")
        return self.children[name]

    def check_absent(self, name: str) -> None:
        if not self.is_directory:
            raise Refused("ENOTDIR")
        if name in self.children:
            raise Refused("EEXIST")


class Model:
    """What the names are to be after each operation of tests/host/ext/files.h."""

    def __init__(self) -> None:
        self.root = Node("directory")
        self.root.children["lost+found"] = Node("directory")

    def obey(self, operation: str, *paths: str) -> str:
        try:
            getattr(self, operation)(*paths)
        except Refused as error:
            return f"error {error}"
        return "done 0"

    def parent(self, path: str) -> tuple[Node, str]:
        *above, name = path.strip("/").split("/")
        here = self.root
        for each in above:
            here = here.find(each)
        return here, name

    def make(self, path: str, kind: str) -> None:
        parent, name = self.parent(path)
        parent.check_absent(name)
        parent.children[name] = Node(kind)

    def create(self, path: str) -> None:
        self.make(path, "file")

    def mkdir(self, path: str) -> None:
        self.make(path, "directory")

    def mknod(self, path: str) -> None:
        self.make(path, "pipe")

    def symlink(self, _target: str, path: str) -> None:
        self.make(path, "symlink")

    def link(self, old: str, new: str) -> None:
        parent, name = self.parent(old)
        to, new_name = self.parent(new)
        node = parent.find(name)
        if node.is_directory:
            raise Refused("EPERM")
        to.check_absent(new_name)
        to.children[new_name] = node

    def unlink(self, path: str) -> None:
        parent, name = self.parent(path)
        if parent.find(name).is_directory:
            raise Refused("EISDIR")
        del parent.children[name]

    def rmdir(self, path: str) -> None:
        parent, name = self.parent(path)
        node = parent.find(name)
        if not node.is_directory:
            raise Refused("ENOTDIR")
        if node.children:
            raise Refused("ENOTEMPTY")
        del parent.children[name]

    def rename(self, old: str, new: str) -> None:
        parent, name = self.parent(old)
        to, new_name = self.parent(new)
        node = parent.find(name)
        if new.startswith(f"{old}/"):
            raise Refused("EINVAL")
        if not to.is_directory:
            raise Refused("ENOTDIR")
        replaced = to.children.get(new_name)
        if replaced is node:
            return
        if replaced and node.is_directory != replaced.is_directory:
            raise Refused("ENOTDIR" if node.is_directory else "EISDIR")
        if replaced and replaced.children:
            raise Refused("ENOTEMPTY")
        to.children[new_name] = node
        del parent.children[name]

    def exchange(self, one: str, other: str) -> None:
        parent, name = self.parent(one)
        to, new_name = self.parent(other)
        node, other_node = parent.find(name), to.find(new_name)
        parent.children[name], to.children[new_name] = other_node, node

    def directories(self) -> dict[str, Node]:
        """Every directory by its path."""
        found = {"/": self.root}
        queue = [("", self.root)]
        while queue:
            path, node = queue.pop()
            below = [(f"{path}/{name}", child) for name, child in node.children.items()]
            queue += [(path, child) for path, child in below if child.is_directory]
            found |= dict(queue)
        return found


class Generator:
    """Seeded operations, most of which succeed."""

    MAKERS = ("create", "create", "create", "mkdir", "mknod", "symlink", "link")
    OTHERS = ("unlink", "unlink", "rmdir", "rename", "rename", "rename", "exchange")

    def __init__(self, seed: int, model: Model) -> None:
        self.random = random.Random(seed)
        self.model = model

    def path(self, new: bool) -> str:
        """A name in a directory: mostly one that is not there, or mostly one that is."""
        path, node = self.random.choice(sorted(self.model.directories().items()))
        names = sorted(node.children)
        if names and self.random.random() < (0.1 if new else 0.97):
            return f"{path.rstrip('/')}/{self.random.choice(names)}"
        length = self.random.choice((1, 5, 20, 60, 180, 250))
        name = f"{self.random.randrange(10000)}{'é' * (length // 2)}"
        return f"{path.rstrip('/')}/{name}"

    def operation(self, growing: float) -> tuple[str, ...]:
        makes = self.random.random() < growing
        name = self.random.choice(self.MAKERS if makes else self.OTHERS)
        if name == "symlink":
            return name, "t" * self.random.choice((1, 59, 60, 900)), self.path(new=True)
        if name == "link":
            return name, self.path(new=False), self.path(new=True)
        if name == "rename":
            return name, self.path(new=False), self.path(new=self.random.random() < 0.5)
        if name == "exchange":
            one, other = self.path(new=False), self.path(new=False)
            nested = f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")
            return ("exchange", "/none", "/none") if nested else (name, one, other)
        return name, self.path(new=makes)


def operations(seed: int, count: int, model: Model) -> Iterator[tuple[str, str]]:
    """Command lines, and the answers that the model gives."""
    generator = Generator(seed, model)
    for number in range(count):
        operation = generator.operation(0.75 if number < count * 2 // 3 else 0.45)
        if "lost+found" not in " ".join(operation):
            yield " ".join(operation), model.obey(*operation)
        if number == count // 2:
            yield "again", ""


MODES = {"directory": "040", "file": "100", "pipe": "010", "symlink": "120"}


def listed(image: Path, paths: list[str]) -> dict[str, dict[str, tuple[str, int]]]:
    """What debugfs lists of directories: type and inode by name, and those by path."""
    marks = [f"testb {number + 2}" for number in range(len(paths))]
    asked = zip(marks, (f"ls -p {path}" for path in paths), strict=True)
    lines = debugfs(image, (line for pair in asked for line in pair))
    found: list[dict[str, tuple[str, int]]] = []
    for line in lines:
        if line.startswith("Block "):
            found.append({})
        elif line and not line.startswith("/0/"):
            _, inode, mode, _, _, name, *_ = line.split("/")
            found[-1][name] = (mode[:3], int(inode))
    return dict(zip(paths, found, strict=True))


def compare(image: Path, model: Model) -> None:
    """debugfs lists what the model has: names, types, and which names share an inode."""
    directories = model.directories()
    inodes: dict[int, Node] = {}
    for path, names in listed(image, list(directories)).items():
        children = directories[path].children
        assert set(names) == {".", "..", *children}, path
        for name, child in children.items():
            mode, inode = names[name]
            assert mode == MODES[child.kind], (path, name)
            assert inodes.setdefault(inode, child) is child, (path, name)
    assert len(set(map(id, inodes.values()))) == len(inodes)


@pytest.mark.parametrize("variant", VARIANTS)
def test_random_operations_equal_a_model(ext, tmp_path, variant):
    image = image_of(tmp_path, VARIANTS[variant])
    model = Model()
    steps = list(operations(SEED, 1500, model))
    answers = iter(ext.write(image, *(line for line, _ in steps)))
    for line, expected in steps:
        if expected:
            assert next(answers) == expected, line
    assert list(answers) == []
    compare(image, model)
    if "-b 1024" in VARIANTS[variant]:
        hashed = any("0x1000" in line or "0x81000" in line for line in flags(image, model))
        assert hashed == (variant != "no-dir-index")


def flags(image: Path, model: Model) -> list[str]:
    paths = [path for path, node in model.directories().items() if len(node.children) > 4]
    return [line for line in debugfs(image, (f"stat {path}" for path in paths)) if "Flags" in line]

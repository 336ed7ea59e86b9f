"""Names of ext directories, made, moved and removed by the library on the host: a model, debugfs
and e2fsck agree with what is on the disk afterwards."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.ext.images import MIB, SEED, bmap, debugfs, make_image, patch, run_tool

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


# ---- hashed directories --------------------------------------------------------------------------

HASHES = {"legacy": 0, "half_md4": 1, "tea": 2}
SIGNS = {"signed": 1, "unsigned": 2}  # s_flags


def crowd(count: int, seed: int = SEED) -> list[str]:
    """Names of many lengths; two of three have letters beyond ASCII, whose sign matters."""
    rng = random.Random(seed)
    names = [f"{number}{'é' * (number % 3)}{'x' * (number % 23)}" for number in range(count)]
    rng.shuffle(names)
    return names


def set_hash(image: Path, name: str, sign: str) -> None:
    fields = {"def_hash_version": name, "flags": SIGNS[sign]}
    debugfs(image, (f"ssv {field} {value}" for field, value in fields.items()), write=True)


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("name", HASHES)
def test_twenty_thousand_names(ext, tmp_path, name, sign):
    """A tree of two levels; e2fsck compares the hash of every name with the tree, and debugfs's
    dump has the same hashes as we compute. Half of the names go again."""
    image = image_of(tmp_path, "-t ext4 -b 1024", 48 * MIB)
    set_hash(image, name, sign)
    names = crowd(20000)
    links = [f"link /f /d/{each}" for each in names]
    removals = [f"unlink /d/{each}" for each in names[10000:]]
    asked = [each for each in names[:300] if each.isascii() or sign == "signed"]
    questions = [f"hash {HASHES[name]} {each}" for each in asked]
    lines = ext.write(image, "mkdir /d", "create /f", *links, "again", *questions)
    assert lines[:20002] == ["done 0"] * 20002
    hashes = [line.split()[1] for line in lines[20002:]]
    dump = debugfs(image, ["htree_dump /d"])
    assert f"Hash Version: {HASHES[name]}" in dump[2] and "Indirect levels: 1" in dump[4]
    dumped = dict(re.findall(r"0x([0-9a-f]{8})-[0-9a-f]{8} \(\d+\) (\S+)", "\n".join(dump))[::-1])
    assert len(dumped) > 15000
    by_name = {each: number for number, each in dumped.items()}
    for each, number in zip(asked, hashes, strict=True):
        assert by_name.get(each, number) == number, each
    assert ext.write(image, *removals) == ["done 0"] * 10000
    (left,) = listed(image, ["/d"]).values()
    assert set(left) == {".", "..", *names[:10000]}


def test_full_tree_and_directory_that_shrinks(ext, tmp_path):
    """Names of 250 bytes, three in a block of 1 KiB, fill the disk: a tree of two levels would have
    15,498 blocks of names. Then all go, the directory too."""
    image = image_of(tmp_path, "-t ext4 -b 1024", 8 * MIB)
    names = [f"{number:05d}{'n' * 245}" for number in range(20000)]
    lines = ext.write(image, "mkdir /d", "create /f", *(f"link /f /d/{each}" for each in names))
    there = [each for each, line in zip(names, lines[2:], strict=True) if line == "done 0"]
    assert 10000 < len(there) < 20000 and set(lines) == {"done 0", "error ENOSPC"}
    (left,) = listed(image, ["/d"]).values()
    assert set(left) == {".", "..", *there}
    removals = [f"unlink /d/{each}" for each in there]
    assert ext.write(image, *removals, "rmdir /d") == ["done 0"] * (len(there) + 1)


def test_many_links(ext, tmp_path):
    """65,000 are the most that an inode has; a directory has "many" then, if the file system
    allows, and the parent of a moved one, too."""
    image = image_of(tmp_path, "-t ext4 -b 1024 -I 128 -N 66000", 96 * MIB)
    links = [f"link /f /d/{number}" for number in range(65000)]
    made = [f"mkdir /e/{number}" for number in range(64998)]
    lines = ext.write(image, "mkdir /d", "create /f", *links, "mkdir /e", *made, "stat /e")
    assert lines[2:65001] == ["done 0"] * 64999 and lines[65001] == "error EMLINK"
    assert lines[65002:-1] == ["done 0"] * 64999 and lines[-1].split()[3] == "65000"
    lines = ext.write(image, "mkdir /g", "rename /g /e/g", "stat /e", "mkdir /e/h", "stat /e")
    assert [line.split()[3] for line in lines if line.startswith("inode")] == ["1", "1"]
    debugfs(image, ["feature -dir_nlink"], write=True)
    debugfs(image, ["sif /e links_count 65000", "rmdir /e/g", "rmdir /e/h"], write=True)
    run_tool("e2fsck", "-fy", str(image), allowed=(0, 1))
    lines = ext.write(image, "mkdir /i", "mkdir /e/i", "rename /i /e/i")
    assert lines == ["done 0", "error EMLINK", "error EMLINK"]


# ---- positions -----------------------------------------------------------------------------------

READINGS = {  # how many names at first, features, bits of hashes
    "tree": (3000, "-t ext4 -b 1024", None),
    "tree-4096": (3000, "-t ext4 -b 4096 -O ^metadata_csum", None),
    "linear": (600, "-t ext4 -b 1024 -O ^dir_index", None),
    "becomes-a-tree": (20, "-t ext2 -b 1024", None),
    "no-filetype": (300, "-t ext2 -b 1024 -O ^filetype", None),
    "sixteen-hashes": (2000, "-t ext4 -b 1024", 0xF0000000),
    "one-hash": (900, "-t ext4 -b 4096", 0),
    "low-hashes": (900, "-t ext4 -b 1024", 0x7),
}


@pytest.mark.parametrize("reading", READINGS)
def test_reading_while_names_come_and_go(ext, tmp_path, reading):
    """A name that is there all the time is seen once, one that comes or goes at most once."""
    count, options, mask = READINGS[reading]
    rng = random.Random(SEED)
    names = crowd(count)
    staying, going = names[::2], names[1::2]
    commands = ["mkdir /d", "create /f", *(f"link /f /d/{each}" for each in names)]
    for step in range(count // 8):
        commands.append(f"iterate /d {rng.choice((1, 7, 20))}")
        commands += [f"link /f /d/new{step}-{number}{'y' * (step % 50)}" for number in range(3)]
        commands += [f"unlink /d/{going.pop()}"] if going else []
    collide = [f"collide {mask}"] if mask is not None else []
    text = "".join(f"{command}\n" for command in [*collide, *commands, "iterate /d 100000"])
    image = image_of(tmp_path, options)
    lines = ext.start(image, "write", text=text)
    assert not [line for line in lines if line.startswith(("error", "console"))]
    end = lines.index("end")
    seen = [line.split(" ", 3)[3] for line in lines[:end] if line.startswith("name ")]
    assert len(seen) == len(set(seen))
    assert {".", "..", *staying} <= set(seen)
    if mask is None:
        run_tool("e2fsck", "-fn", str(image))


def test_positions_are_small(ext, tmp_path):
    """All types are listed as what they are, in a directory of one block and in a tree."""
    image = image_of(tmp_path, "-t ext4 -b 1024")
    kinds = {"p": (0o010600, 5), "c": (0o020600, 3), "b": (0o060600, 4), "s": (0o140600, 6)}
    nodes = [f"node /{name} {mode:o} 0x801" for name, (mode, _) in kinds.items()]
    lines = ext.write(image, *nodes, "node /wide 020600 0x12345", "iterate / 99")
    types = {line.split()[3]: int(line.split()[2]) for line in lines if line.startswith("name ")}
    assert types == {
        **{name: kind for name, (_, kind) in kinds.items()},
        "wide": 3,
        ".": 2,
        "..": 2,
        "lost+found": 2,
    }
    said = debugfs(image, ["stat /b", "stat /wide"])
    numbers = [line.split()[-1].strip(")") for line in said if "Device major/minor" in line]
    assert numbers == ["08:01", "123:45"]


# ---- damage --------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", ["-t ext4 -b 1024 -O ^metadata_csum", "-t ext4 -b 1024"])
def test_damaged_directories_are_survived(ext, tmp_path, options):
    """Blocks of names and nodes of a tree, with bytes changed: an error that is documented, within
    a bounded time, and no report of a sanitizer."""
    image = image_of(tmp_path, options, 4 * MIB)
    names = crowd(1500)
    build = ["mkdir /d", "mkdir /e", "create /f", *(f"link /f /d/{each}" for each in names)]
    ext.write(image, *build, *(f"link /f /e/{each}" for each in names[:8]))
    whole = image.read_bytes()
    blocks = [block for block, _ in bmap(image, [("/d", at) for at in (0, 1, 2, 3, 40)])]
    blocks += [bmap(image, [("/e", 0)])[0][0], *node_blocks(image)]
    rng = random.Random(SEED)
    results: Counter[str] = Counter()
    for _ in range(150):
        damaged = bytearray(whole)
        place = rng.choice(blocks) * 1024 + rng.choice((rng.randrange(1024), rng.randrange(64)))
        damaged[place : place + 4] = rng.randbytes(4) if rng.random() < 0.5 else bytes([255, 255])
        image.write_bytes(damaged[: len(whole)])
        results += Counter(ext.start(image, "write", text=trial(rng, names)))
    errors = {line for line in results if line.startswith("error")}
    names_of = ("EUCLEAN", "EBADMSG", "ENOENT", "EEXIST", "EROFS")
    assert errors <= {f"error {name}" for name in names_of}
    assert results["error EUCLEAN"] + results["error EBADMSG"] > 100 and results["done 0"] > 1000


def trial(rng: random.Random, names: list[str]) -> str:
    """Some of everything."""
    some = rng.sample(names, 12)
    lines = [f"link /f /d/again{each}" for each in some]
    lines += [f"unlink /d/{each}" for each in some]
    lines += ["mkdir /d/sub", "rename /d/sub /e/sub", "rename /e/sub /d/sub", "rmdir /d/sub"]
    lines += [f"exchange /d/{names[0]} /e/{names[1]}", "unlink /e/none", "iterate /d 9999"]
    return "".join(f"{line}\n" for line in [*lines, "iterate /e 99", "create /e/last", "list /d"])


def node_blocks(image: Path) -> list[int]:
    """The blocks of a tree's inner nodes."""
    dump = "\n".join(debugfs(image, ["htree_dump /d"]))
    logical = re.findall(r"Entry #\d+: Hash 0x[0-9a-f]+, block (\d+)\nNumber of entries", dump)
    return [block for block, _ in bmap(image, [("/d", int(each)) for each in logical])]


def test_a_damaged_tree_is_read_as_a_list(ext, tmp_path):
    """Names are found in all blocks when the root is damaged, but none is added."""
    image = image_of(tmp_path, "-t ext4 -b 1024 -O ^metadata_csum")
    names = crowd(500)
    ext.write(image, "mkdir /d", "create /f", *(f"link /f /d/{each}" for each in names))
    root = bmap(image, [("/d", 0)])[0][0] * 1024
    patch(image, root + 24 + 6, "<B", 7)  # indirect_levels
    lines = ext.run(image, *(f"stat /d/{each}" for each in names[:20]), "stat /d/none")
    found = [line for line in lines if line.startswith("inode ")]
    assert len(found) == 20 and "hash tree: version 1, 8 levels" in lines[0]
    assert lines[-1] == "error ENOENT"
    lines = ext.start(image, "write", text="link /f /d/new\n")
    assert lines[-1] == "error EUCLEAN"


FAILING = [
    "create /d/new",
    "mkdir /d/sub",
    f"symlink {'q' * 200} /d/slow",
    "link /f /d/link",
    "rename /d/7x /e/7",
    "rename /d/8x /d/9x",
    "rename /e/sub /d/moved",
    "exchange /d/10x /e",
]


def test_a_failed_read_changes_nothing(ext, tmp_path):
    """Each read of each operation fails once, with a cold cache: an error, nothing else, and the
    same operation then succeeds."""
    image = image_of(tmp_path, "-t ext2 -b 1024", 8 * MIB)
    names = [f"link /f /d/{number}x{'y' * (number % 60)}" for number in range(700)]
    some = [f"link /f /d/{number}x" for number in (7, 8, 9, 10)]
    ext.write(image, "create /f", "mkdir /d", "mkdir /e", "mkdir /e/sub", *names, *some)
    whole = image.read_bytes()
    for operation in FAILING:
        for request in range(30):
            image.write_bytes(whole)
            script = ["sync", "drop", f"fail {request}", operation, operation]
            lines = ext.start(image, "write", text="\n".join(script))
            answers = [line for line in lines if line.startswith(("done", "error"))][1:]
            if answers[0] == "done 0":
                break
            assert answers == ["error EIO", "done 0"], (operation, request)
            run_tool("e2fsck", "-fn", str(image))
        assert 3 < request < 29

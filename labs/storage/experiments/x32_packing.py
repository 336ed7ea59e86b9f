"""X32: how much room small objects take, and how many requests: files, packed tails, a blob."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from labs.storage import fsx
from labs.storage.experiments.base import About, Data, Table, Where
from labs.storage.experiments.blobs import build, call, entry
from labs.storage.experiments.guest import run_guest
from labs.storage.pages import curves, label, legend, mark_prediction, pictures, ticks
from labs.tools.course.measurement import Question
from labs.tools.machine.qemu_command import Drive
from labs.tools.machine.work_folder import work_folder

SIZES = (100, 300, 700, 1300, 1900, 2500, 4000, 6000, 10_000, 20_000, 65_536)
SMALL_SIZES = (100, 1300, 6000)
OBJECTS, GETS, SEED = 500, 50, 32
BLOCK, INODE, FOLDER = 4096, 256, 100  # bytes, bytes, files
LEAF, ITEM = 4072, 92  # bytes for items in a leaf; what a file has there besides its tail
FILES, BLOB, PACKED = "file per object", "blob", "tails packed, model"
FILES_MODEL = "file per object, model"
WINDOW, LARGEST = 4, 65_536  # blocks of a first read-ahead; bytes of a request
PATH = {("root", 0), ("folder of a size", 0), ("inodes of folders", 0)}
WAYS = (FILES, BLOB, PACKED)
FREE = re.compile(r"^Free (blocks|inodes): +(\d+)$", re.MULTILINE)


def room(image: Path, folder: Path, mib: int) -> int:
    """Bytes of blocks and inodes that the files of a folder take on a new ext4."""
    free = []
    for source in ((), ("-d", str(folder))):
        with image.open("wb") as file:
            file.truncate(mib << 20)
        words = ["-q", "-F", "-t", "ext4", "-b", str(BLOCK), "-I", str(INODE), "-N", "4096"]
        fsx.tool("mke2fs", *words, *source, str(image))
        said = dict(FREE.findall(fsx.tool("dumpe2fs", "-h", str(image))))
        free.append(int(said["blocks"]) * BLOCK + int(said["inodes"]) * INODE)
    return free[0] - free[1]


def per_leaf(size: int) -> int:
    """Files whose tails and inodes share a leaf, if it can hold two; otherwise the tail has a block
    of its own, and the leaf only inodes."""
    packed = LEAF // (size % BLOCK + ITEM)
    return packed if size % BLOCK and packed > 1 else 0


def packed_room(size: int) -> float:
    """Bytes that a packed file takes, with its share of a block of names."""
    many = per_leaf(size)
    whole = size // BLOCK if many else -(-size // BLOCK)
    return whole * BLOCK + BLOCK / (many or LEAF // ITEM) + BLOCK / FOLDER


def keys() -> Iterator[int]:
    """The objects that `blob get` reads, by its generator."""
    state = SEED
    for _ in range(GETS):
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        yield (state >> 33) % (1 << 32) % OBJECTS


def reads_of(blocks: int) -> int:
    """Requests for this many blocks of a file in a row: read-ahead begins with 4, then 8, 16."""
    reads, window = 0, WINDOW
    while blocks > 0:
        reads, blocks, window = reads + 1, blocks - window, 2 * window
    return reads


def model(size: int, is_packed: bool) -> float:
    """Requests for an object, from a cold start: each block once."""
    many, touched = per_leaf(size), set[tuple[str, int]]()
    for key in keys():
        touched |= {("names", key // FOLDER), *PATH}
        if is_packed:
            touched.add(("leaf", key // (many or LEAF // ITEM)))
        else:
            touched.add(("inodes", key // (BLOCK // INODE)))
        blocks = size // BLOCK if is_packed and many else -(-size // BLOCK)
        touched |= {(f"data {number}", key) for number in range(reads_of(blocks))}
    return len(touched) / GETS


def prepare(folder: Path, program: Path, sizes: Sequence[int]) -> tuple[list[Drive], list[Data]]:
    """The stores and the files of all sizes on two drives; and the room that each takes."""
    (stores := folder / "stores").mkdir()
    (files := folder / "files").mkdir()
    rows = []
    for size in sizes:
        (mine := files / f"s{size}").mkdir()
        call(program, "-l", size, "files", mine, OBJECTS)
        store = stores / f"s{size}"
        with store.open("wb") as file:
            file.truncate((2 * OBJECTS * (size + 1024) * 5 // 4 // 4096 + 64) * 4096)
        call(program, "-l", size, "fill", store, OBJECTS)
        log = call(program, "open", store)["log"]
        mib = 16 + OBJECTS * (size + BLOCK) // (1 << 19)
        used = {FILES: room(folder / "room", mine, mib) / OBJECTS, BLOB: log / OBJECTS,
                PACKED: packed_room(size)}  # fmt: skip
        rows += [{"size": size, "way": way, "used": used[way], "times": used[way] / size}
                 for way in WAYS]  # fmt: skip
    drives = []
    for unit, source in ((1, stores), (2, files)):
        total = sum(each.stat().st_size for each in source.rglob("*") if each.is_file())
        with (image := folder / f"{unit}.img").open("wb") as file:
            file.truncate(2 * total + len(sizes) * OBJECTS * BLOCK + (32 << 20))
        fsx.tool("mke2fs", "-q", "-F", "-t", "ext4", "-b", str(BLOCK), "-I", str(INODE), "-d",
                 str(source), str(image))  # fmt: skip
        drives.append(Drive(image, unit))
    return drives, rows


def script_of(sizes: Sequence[int]) -> str:
    """For each size: gets from the store, past the cache; reads of files from a cold start."""
    parts = ["mount -t ext4 /dev/hdb /a"]
    for number, size in enumerate(sizes):
        gets = f"{OBJECTS} {GETS} {SEED} {GETS} {4 * number + 1}"
        files = f"{OBJECTS} {GETS} {SEED} {GETS} {4 * number + 3}"
        parts += [f"blob -d -l {size} get /a/s{size} {gets}",
                  f"mount -t ext4 /dev/hdc /b && drop && "
                  f"blob -l {size} readfiles /b/s{size} {files} && umount /b"]  # fmt: skip
    return " && ".join(parts)


def measure(where: Where) -> Data:
    """Every size and way."""
    sizes = SMALL_SIZES if where.small else SIZES
    with work_folder("images", where.build.parent) as folder:
        program = build(folder)
        drives, rows = prepare(folder, program, sizes)
        run = run_guest(where.build, script_of(sizes), drives, [entry(program)], seconds=500)
    for number, size in enumerate(sizes):
        counted = {BLOB: run.phases[4 * number + 1].count("hdb", "r") / GETS,
                   FILES: run.phases[4 * number + 3].count("hdc", "r") / GETS,
                   PACKED: model(size, True)}  # fmt: skip
        for row in rows:
            if row["size"] == size:
                row["requests"] = counted[row["way"]]
                row["model"] = {BLOB: None, FILES: model(size, False), PACKED: None}[row["way"]]
    return {"rows": rows, "sizes": list(sizes)}


def of(data: Data, way: str, size: int) -> Data:
    """A point."""
    return next(r for r in data["rows"] if (r["way"], r["size"]) == (way, size))


def result(data: Data) -> float:
    """Bytes used for each byte stored, files of the smallest size."""
    return of(data, FILES, data["sizes"][0])["times"]


def wins(data: Data) -> list[int]:
    """Sizes below a block at which packing takes less than two thirds of the room of files."""
    return [size for size in data["sizes"] if size < BLOCK
            and of(data, PACKED, size)["used"] < of(data, FILES, size)["used"] * 2 / 3]  # fmt: skip


def plots(data: Data, predicted: float | None) -> Sequence[tuple[Figure, str]]:
    """Room and requests by size."""
    names = [size for size in (100, 1300, 6000, 20_000, 65_536) if size in data["sizes"]]
    figure, axes = pictures()
    curves(axes, data["rows"], "size", "times", "way")
    axes.axvline(BLOCK / 2, color="k", linestyle=":", linewidth=1, label="half a block")
    axes.set(xscale="log", yscale="log")
    axes.minorticks_off()
    axes.set_xticks(names, [f"{size:,}" for size in names])
    ticks(axes, y=(1, 2, 5, 10, 20, 50))
    label(axes, ("bytes of an object", "对象的字节数"), ("bytes used per byte", "每字节占用的字节"))
    mark_prediction(axes, predicted)
    legend(axes)
    asked, axes = pictures()
    curves(axes, data["rows"], "size", "requests", "way")
    rows = [row for row in data["rows"] if row["way"] == FILES]
    axes.plot([row["size"] for row in rows], [row["model"] for row in rows], "k:", linewidth=1,
              label=FILES_MODEL)  # fmt: skip
    axes.set(xscale="log", ylim=(0, None))
    axes.minorticks_off()
    axes.set_xticks(names, [f"{size:,}" for size in names])
    label(axes, ("bytes of an object", "对象的字节数"), ("requests an object", "每个对象的请求"))
    legend(axes)
    return [(figure, "Blocks, inodes and names for each byte stored; files and the blob as counted"
             " on their images"),
            (asked, f"{GETS} random objects of {OBJECTS}; files from a cold start, the blob past"
             " the cache")]  # fmt: skip


def tables(data: Data) -> Sequence[Table]:
    """Every point."""
    rows = [(f"{size:,} bytes", *(of(data, way, size)[what] for what in ("used", "requests")
             for way in WAYS)) for size in data["sizes"]]  # fmt: skip
    return [("Bytes that an object uses, and requests to read it",
             ["object", "file: bytes", "blob", "packed", "file: requests", "blob", "packed"],
             rows)]  # fmt: skip


def sentences(data: Data) -> tuple[str, str, str]:
    """What it says."""
    least, winning = data["sizes"][0], wins(data)
    file, blob, packed = (of(data, way, least) for way in WAYS)
    long = next(size for size in data["sizes"] if size > BLOCK and per_leaf(size))
    return (
        f"An object of {least} bytes takes {file['used']:,.0f} bytes as a file, {blob['used']:,.0f}"
        f" in the blob and, by the model, {packed['used']:,.0f} packed: {file['times']:.0f},"
        f" {blob['times']:.1f} and {packed['times']:.1f} bytes for each one stored.",
        f"Up to {max(winning):,} bytes packing saves over a third of what files take; a tail of"
        " more than half a block finds no second one for its leaf.",
        f"An object of {least} bytes takes {file['requests']:.2f} requests as a file from a cold"
        f" start, {packed['requests']:.2f} packed, because a leaf brings its neighbours, and"
        f" {blob['requests']:.2f} in the blob; of {long:,} bytes it takes"
        f" {of(data, PACKED, long)['requests']:.2f} packed and"
        f" {of(data, FILES, long)['requests']:.2f} as a file: the tail is elsewhere.",
    )


def checks(data: Data) -> dict[str, bool]:
    """The shape."""
    rows = {way: [of(data, way, size) for size in data["sizes"]] for way in WAYS}
    long = [size for size in data["sizes"] if size > BLOCK and per_leaf(size)]
    return {
        "a file takes whole blocks, an inode, and a share of a block of names": all(
            0 <= row["used"] - (-(-row["size"] // BLOCK) * BLOCK + INODE) < 100
            for row in rows[FILES]
        ),
        "a record of the blob takes at most two sectors more than the object": all(
            row["size"] < row["used"] <= row["size"] + 1024 for row in rows[BLOB]
        ),
        "the blob takes one request for each 64 KiB of a record": all(
            row["requests"] == -(-row["used"] // LARGEST) for row in rows[BLOB]
        ),
        "a file's requests are the model's, within 10 percent": all(
            abs(row["requests"] / row["model"] - 1) < 0.1 for row in rows[FILES]
        ),
        "packing wins below half a block, and there only": all(
            (size in wins(data)) == (size < BLOCK / 2) for size in data["sizes"] if size < BLOCK
        ),
        "a tail costs a request of its own": all(
            of(data, PACKED, size)["requests"] > of(data, FILES, size)["requests"] for size in long
        ),
    }  # fmt: skip


ABOUT = About(
    number=32,
    title="Small files: how much room, how many requests?",
    chinese="小文件: 占多少空间, 要多少请求?",
    question="A file takes whole blocks and an inode. Tair and TFS, both of Taobao, keep small"
    " objects without a file for each: Tair by a key, TFS in blocks of many objects, the place in"
    " the object's name. How much room does each way take for a byte that is stored, and how many"
    " requests does it take to read an object?",
    expected="No figure was published for this. Btrfs keeps small files in the leaves of its tree,"
    " next to their inodes (its documentation, inline files). Ours: that wins below half a block,"
    " because two larger tails do not fit into one.",
    ask=Question("ratio", "How many bytes of the disk does a file of 100 bytes use for each of its"
                 " bytes, on ext4 with blocks of 4 KiB?", "times"),
    method="500 objects of one size, as files on ext4, 100 in a folder, and in a blob store. The"
    " room is that of the images: free blocks and inodes before and with the files; the store's"
    " log. The guest reads 50 random ones, files from a cold start, the blob with O_DIRECT; QEMU"
    " counts. Tails packed is a model: leaves of 4 KiB in the order of files, 92 bytes for the"
    " inode and the head of each tail, the rest of the file in whole blocks. For files the same"
    " model, with tables of inodes and no leaves, must give what the guest counted.",
    changes="A tree whose leaves are not full takes up to half as much room again. Files that are"
    " read in their order on the disk share leaves, and blocks of inodes, too. Smaller blocks"
    " waste less and take more pointers (X7). ext4 can keep up to some 160 bytes in an inode"
    " (inline_data). With a warm cache only the data is left: one request, or two for a tail.",
)  # fmt: skip

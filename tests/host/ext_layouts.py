"""Sound file systems of unusual layouts, as mke2fs, tune2fs, resize2fs and debugfs make them.

None of them is damaged: e2fsck finds nothing. A layout is said in one line: what mke2fs is told,
and what other tools then do. `tests/host/test_ext_layouts.py` writes to them.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from tests.host.ext.images import make_image, run_tool

KIB = 1024


@dataclass(frozen=True)
class Layout:
    """A file system of `kib` KiB; `steps` are commands whose word IMG is the image."""

    kib: int
    options: str
    steps: tuple[str, ...] = ()
    crowd: int = 0  # files that a directory has from the beginning, in a hash tree
    refused: bool = False  # may not be written to

    def make(self, image: Path) -> Path:
        """Makes it, and lets e2fsck say that it is sound."""
        source = None
        if self.crowd:
            source = image.with_name("source")
            (source / "crowd").mkdir(parents=True)
            for number in range(self.crowd):
                (source / "crowd" / f"{number}-{'x' * (number % 40)}").write_bytes(b"c" * number)
        make_image(image, self.kib * KIB, self.options, source)
        for step in self.steps:
            words = [str(image) if word == "IMG" else word for word in shlex.split(step)]
            run_tool(*words, allowed=(0, 1))
        run_tool("e2fsck", "-fn", str(image))
        return image


def resized(blocks: str) -> tuple[str, ...]:
    """The steps that give it another size; `blocks` as resize2fs has it."""
    return (f"resize2fs -f IMG {blocks}",)


def quick(kind: str, *words: str) -> str:
    """mke2fs's words for a kind of ext."""
    return " ".join((f"-t {kind}", *words))


def odd_sizes() -> dict[str, Layout]:
    """Blocks of each size in file systems whose last group is short, or only just there."""
    return {
        f"{kind}-{block}-{kib}": Layout(kib, quick(kind, f"-b {block}"))
        for kind, block, kib in (
            ("ext2", 1024, 8193 + 70),  # a last group of a few blocks
            ("ext2", 1024, 20481),
            ("ext2", 1024, 131),
            ("ext2", 2048, 33334),
            ("ext2", 4096, 20004),
            ("ext3", 1024, 24577),
            ("ext3", 2048, 40002),
            ("ext3", 4096, 131072 + 2048),
            ("ext4", 1024, 16384 + 301),
            ("ext4", 2048, 36002),
            ("ext4", 4096, 30004),
            ("ext4", 4096, 131072 + 4096),
        )
    }


JOURNALS = {
    "own-blocks-cross-groups": Layout(300 << 10, "-t ext3 -b 1024"),
    "own-blocks-cross-2k": Layout(300 << 10, "-t ext3 -b 2048 -g 2048"),
    "tune2fs-j": Layout(40 << 10, "-t ext2 -b 1024", ("tune2fs -J size=8 -j IMG",)),
    "tune2fs-j-full": Layout(
        40 << 10, "-t ext2 -b 1024 -g 1024", ("tune2fs -J size=12 -j IMG",), crowd=600
    ),
    "tune2fs-j-extents": Layout(
        40 << 10, "-t ext4 -b 1024 -O ^has_journal", ("tune2fs -J size=8 -j IMG",)
    ),
    "journal-removed": Layout(24 << 10, "-t ext3 -b 1024", ("tune2fs -O ^has_journal IMG",)),
    "journal-1024-blocks": Layout(24 << 10, "-t ext4 -b 1024 -J size=1"),
    "journal-of-half": Layout(48 << 10, "-t ext4 -b 1024 -J size=20"),
    "journal-crosses-small-groups": Layout(24 << 10, "-t ext3 -b 1024 -g 256 -J size=6"),
    "journal-at-the-end": Layout(32 << 10, "-t ext4 -b 1024 -J size=4,location=28000"),
    "journal-at-the-beginning": Layout(32 << 10, "-t ext4 -b 1024 -J size=4,location=0"),
    "journal-over-groups-4k": Layout(64 << 10, "-t ext4 -b 4096 -g 512 -J size=16"),
    "orphan-file": Layout(24 << 10, "-t ext4 -b 1024 -O orphan_file"),
    "orphan-file-tuned": Layout(24 << 10, "-t ext4 -b 1024", ("tune2fs -O orphan_file IMG",)),
    "fast-commit": Layout(32 << 10, "-t ext4 -b 1024 -O fast_commit"),
    "journal-checksums-of-ext3": Layout(24 << 10, "-t ext3 -b 1024 -O 64bit,extent"),
}

RESIZED = {
    "grown-ext2": Layout(10 << 10, "-t ext2 -b 1024", resized("40M")),
    "grown-ext3": Layout(20 << 10, "-t ext3 -b 1024", resized("60M")),
    "grown-ext4": Layout(20 << 10, "-t ext4 -b 1024", resized("70M")),
    "grown-beyond-its-descriptors": Layout(
        8 << 10, "-t ext4 -b 1024 -g 256 -O ^resize_inode", resized("40M")
    ),
    "grown-reserved-used": Layout(8 << 10, "-t ext3 -b 1024 -g 256", resized("48M")),
    "grown-into-meta-bg": Layout(
        8 << 10, "-t ext4 -b 1024 -g 256 -O meta_bg,^resize_inode", resized("40M")
    ),
    "grown-4k": Layout(20 << 10, "-t ext4 -b 4096 -g 1024", resized("90M")),
    "grown-twice": Layout(10 << 10, "-t ext4 -b 1024", (*resized("20M"), *resized("51M"))),
    "shrunk-ext2": Layout(40 << 10, "-t ext2 -b 1024", resized("9M")),
    "shrunk-ext3": Layout(60 << 10, "-t ext3 -b 1024", resized("18M")),
    "shrunk-ext4": Layout(60 << 10, "-t ext4 -b 1024", resized("20M")),
    "shrunk-to-the-least": Layout(60 << 10, "-t ext4 -b 1024", ("resize2fs -f -M IMG",), crowd=200),
    "shrunk-and-grown": Layout(
        60 << 10, "-t ext4 -b 1024 -g 1024", (*resized("18M"), *resized("50M")), crowd=200
    ),
    "to-64bit": Layout(24 << 10, "-t ext4 -b 1024 -O ^64bit", ("resize2fs -b IMG",)),
    "to-32bit": Layout(24 << 10, "-t ext4 -b 1024", ("resize2fs -s IMG",)),
}

GROUPS = {
    "meta-bg": Layout(16 << 10, "-t ext2 -b 1024 -g 256 -O meta_bg,^resize_inode"),
    "meta-bg-ext4": Layout(40 << 10, "-t ext4 -b 1024 -g 512 -O meta_bg,^resize_inode"),
    "meta-bg-everywhere": Layout(
        16 << 10, "-t ext2 -b 1024 -g 256 -O meta_bg,^resize_inode,^sparse_super"
    ),
    "meta-bg-no-flex": Layout(
        16 << 10, "-t ext4 -b 1024 -g 256 -O meta_bg,^resize_inode,^flex_bg -J size=1"
    ),
    "meta-bg-sparse2": Layout(
        16 << 10, "-t ext4 -b 1024 -g 256 -O meta_bg,^resize_inode,sparse_super2"
    ),
    "packed": Layout(40 << 10, "-t ext4 -b 1024 -E packed_meta_blocks=1"),
    "packed-small-groups": Layout(
        24 << 10, "-t ext4 -b 1024 -g 256 -E packed_meta_blocks=1 -J size=1"
    ),
    "packed-sparse2": Layout(
        24 << 10,
        "-t ext4 -b 1024 -g 512 -O sparse_super2,^resize_inode "
        "-E packed_meta_blocks=1,num_backup_sb=0 -J size=1",
    ),
    "packed-4k": Layout(64 << 10, "-t ext4 -b 4096 -g 512 -E packed_meta_blocks=1"),
    "flex-1": Layout(40 << 10, "-t ext4 -b 1024 -G 1"),
    "flex-2": Layout(40 << 10, "-t ext4 -b 1024 -g 1024 -G 2"),
    "flex-64": Layout(40 << 10, "-t ext4 -b 1024 -g 512 -G 64"),
    "flex-larger-than-all": Layout(24 << 10, "-t ext4 -b 1024 -g 512 -G 4096"),
    "no-flex": Layout(40 << 10, "-t ext4 -b 1024 -O ^flex_bg"),
    "sparse2-none": Layout(
        24 << 10, "-t ext4 -b 1024 -g 1024 -O sparse_super2,^resize_inode -E num_backup_sb=0"
    ),
    "sparse2-one": Layout(
        24 << 10, "-t ext4 -b 1024 -g 1024 -O sparse_super2,^resize_inode -E num_backup_sb=1"
    ),
    "sparse2-two": Layout(
        24 << 10, "-t ext4 -b 1024 -g 1024 -O sparse_super2,^resize_inode -E num_backup_sb=2"
    ),
    "copies-everywhere": Layout(24 << 10, "-t ext2 -b 1024 -g 512 -O ^sparse_super,^resize_inode"),
    "no-resize-inode": Layout(40 << 10, "-t ext4 -b 1024 -O ^resize_inode"),
    "large-reserve": Layout(40 << 10, "-t ext4 -b 1024 -E resize=8000000"),
    "groups-of-256": Layout(10 << 10, "-t ext4 -b 1024 -g 256 -J size=1"),
    "groups-of-1000": Layout(20 << 10, "-t ext4 -b 1024 -g 1000 -G 4"),
    "uninit-bg": Layout(40 << 10, "-t ext4 -b 1024 -O ^metadata_csum,uninit_bg"),
    "uninit-bg-written": Layout(
        40 << 10, "-t ext4 -b 1024 -O ^metadata_csum,uninit_bg -E lazy_itable_init=0"
    ),
    "uninit-bg-of-ext3": Layout(40 << 10, "-t ext3 -b 1024 -O uninit_bg,flex_bg"),
    "64bit-no-checksums": Layout(24 << 10, "-t ext4 -b 1024 -O 64bit,^metadata_csum"),
    "descriptors-of-128": Layout(24 << 10, "-t ext4 -b 1024 -O 64bit -E desc_size=128"),
    "checksums-added": Layout(
        24 << 10,
        "-t ext4 -b 1024 -O ^metadata_csum",
        ("tune2fs -O metadata_csum IMG", "e2fsck -fyD IMG"),
        crowd=300,
    ),
    "checksums-removed": Layout(
        24 << 10, "-t ext4 -b 1024", ("tune2fs -O ^metadata_csum IMG",), crowd=300
    ),
    "checksum-seed": Layout(
        24 << 10,
        "-t ext4 -b 1024",
        ("tune2fs -O metadata_csum_seed IMG", "tune2fs -U random IMG"),
        crowd=300,
    ),
    "other-uuid": Layout(24 << 10, "-t ext4 -b 1024", ("tune2fs -U random IMG",), crowd=300),
    "stride": Layout(40 << 10, "-t ext4 -b 1024 -g 1024 -E stride=7,stripe_width=21"),
    "offset-tables": Layout(40 << 10, "-t ext2 -b 1024 -g 1024 -E stride=300"),
}

INODES = {
    **{
        f"inodes-of-{size}": Layout(24 << 10, f"-t ext4 -b {max(1024, size)} -I {size}")
        for size in (128, 256, 512, 1024, 2048)
    },
    "inodes-of-128-ext3": Layout(24 << 10, "-t ext3 -b 1024 -I 128"),
    "inodes-of-128-grown": Layout(
        24 << 10, "-t ext2 -b 1024 -I 128 -O ^resize_inode", ("tune2fs -I 256 IMG",), crowd=100
    ),
    "inodes-of-4096": Layout(24 << 10, "-t ext4 -b 4096 -I 4096 -N 512"),
    "inode-for-each-block": Layout(16 << 10, "-t ext4 -b 1024 -i 1024"),
    "inodes-few": Layout(40 << 10, "-t ext4 -b 1024 -i 4194304"),
    "inodes-sixteen": Layout(20 << 10, "-t ext4 -b 1024 -N 16"),
    "inodes-many": Layout(24 << 10, "-t ext2 -b 1024 -N 20000"),
    "inodes-odd": Layout(24 << 10, "-t ext4 -b 1024 -g 1000 -N 1234"),
    "inodes-large-and-many": Layout(24 << 10, "-t ext4 -b 1024 -I 1024 -N 6000 -J size=1"),
    "rev-0": Layout(10 << 10, "-t ext2 -b 1024 -r 0"),
    "rev-0-4k": Layout(20 << 10, "-t ext2 -b 4096 -r 0"),
    "plain": Layout(
        16 << 10, "-t ext2 -b 1024 -O ^filetype,^dir_index,^sparse_super,^resize_inode,^ext_attr"
    ),
    "pointers-in-ext4": Layout(24 << 10, "-t ext4 -b 1024 -O ^extent,^64bit"),
    "extents-in-ext3": Layout(24 << 10, "-t ext3 -b 1024 -O extent"),
    "extents-added": Layout(
        24 << 10, "-t ext3 -b 1024", ("tune2fs -O extent,uninit_bg,dir_index IMG",), crowd=300
    ),
    "no-huge-file": Layout(24 << 10, "-t ext4 -b 1024 -O ^huge_file,^dir_nlink,^extra_isize"),
    "reserved-none": Layout(16 << 10, "-t ext4 -b 1024 -m 0"),
    "reserved-half": Layout(16 << 10, "-t ext4 -b 1024 -m 50"),
}

DIRECTORIES = {
    "no-lost-and-found": Layout(
        16 << 10, "-t ext4 -b 1024", ('debugfs -w -R "rmdir lost+found" IMG', "e2fsck -fy IMG")
    ),
    "hash-trees": Layout(16 << 10, "-t ext3 -b 1024", ("e2fsck -fyD IMG",), crowd=900),
    "hash-tree-rebuilt": Layout(
        16 << 10,
        "-t ext3 -b 1024",
        ("e2fsck -fyD IMG", 'debugfs -w -R "sif crowd flags 0" IMG', "e2fsck -fyD IMG"),
        crowd=900,
    ),
    "hash-tree-is-plain": Layout(
        16 << 10,
        "-t ext3 -b 1024",
        ("e2fsck -fyD IMG", 'debugfs -w -R "sif crowd flags 0" IMG', "e2fsck -fy IMG"),
        crowd=900,
    ),
    "hash-tea": Layout(
        16 << 10, "-t ext4 -b 1024", ("tune2fs -E hash_alg=tea IMG", "e2fsck -fyD IMG"), crowd=900
    ),
    "hash-legacy": Layout(
        16 << 10,
        "-t ext3 -b 1024",
        ("tune2fs -E hash_alg=legacy IMG", "e2fsck -fyD IMG"),
        crowd=900,
    ),
    "expanded-directory": Layout(
        16 << 10, "-t ext2 -b 1024", ('debugfs -w -R "expand_dir /" IMG', "e2fsck -fy IMG")
    ),
    "label-and-mount-count": Layout(
        16 << 10, "-t ext4 -b 1024 -L label", ("tune2fs -c 1 -C 5 -i 1d -e remount-ro IMG",)
    ),
    "mount-options": Layout(
        16 << 10, "-t ext4 -b 1024", ("tune2fs -o journal_data,nobarrier,^acl IMG",)
    ),
}

REFUSED = {
    name: Layout(24 << 10, options, steps, refused=True)
    for name, options, steps in (
        ("bigalloc", "-t ext4 -b 1024 -O bigalloc -C 16384", ()),
        ("bigalloc-4k", "-t ext4 -b 4096 -O bigalloc -C 65536", ()),
        ("quota", "-t ext4 -b 1024 -O quota", ()),
        ("quota-project", "-t ext4 -b 1024 -O quota,project", ()),
        ("quota-added", "-t ext4 -b 1024", ("tune2fs -O quota IMG",)),
        ("casefold", "-t ext4 -b 1024 -O casefold", ()),
        ("encrypt", "-t ext4 -b 1024 -O encrypt", ()),
        ("inline-data", "-t ext4 -b 1024 -O inline_data", ()),
        ("ea-inode", "-t ext4 -b 1024 -O ea_inode", ()),
        ("verity", "-t ext4 -b 4096 -O verity", ()),
        ("mmp", "-t ext4 -b 1024 -O mmp", ()),
    )
}

LAYOUTS: dict[str, Layout] = {
    **odd_sizes(),
    **JOURNALS,
    **RESIZED,
    **GROUPS,
    **INODES,
    **DIRECTORIES,
    **REFUSED,
}

"""The file systems that are damaged: what mke2fs makes by default, and what it can be asked for."""

from __future__ import annotations

from tests.host.ext.images import MIB

VARIANTS = {
    "ext4": "-t ext4 -b 1024 -g 2048 -N 512 -J size=1 -O ^metadata_csum",
    "checksums": "-t ext4 -b 1024 -g 2048 -N 512 -J size=1",
    "ext3": "-t ext3 -b 1024 -g 2048 -N 512 -J size=1",
    "ext2": "-t ext2 -b 1024 -g 2048 -N 512",
    "ext4-4k": "-t ext4 -b 4096 -N 512 -J size=4 -O ^metadata_csum",
    "checksums-2k": "-t ext4 -b 2048 -g 2048 -N 512 -J size=2 -O ^flex_bg,^resize_inode",
    "ext3-2k": "-t ext3 -b 2048 -g 2048 -N 512 -J size=2 -I 128",
}
FEATURES = {
    "flex-2": "-t ext4 -b 2048 -g 512 -G 2 -N 512 -J size=2",
    "packed": "-t ext4 -b 1024 -g 1024 -N 512 -J size=1 -E packed_meta_blocks=1",
    "flex-128": "-t ext4 -b 1024 -g 1024 -G 128 -N 512 -J size=1 -O ^metadata_csum",
    "meta-bg": "-t ext4 -b 1024 -g 256 -N 512 -J size=1 -O meta_bg,^resize_inode",
    "meta-bg-3": "-t ext3 -b 1024 -g 256 -N 512 -J size=1 -O meta_bg,^resize_inode,^sparse_super",
    "sparse-super2": "-t ext4 -b 1024 -g 1024 -N 512 -J size=1 -O sparse_super2,^resize_inode",
    "orphan-file": "-t ext4 -b 1024 -g 2048 -N 512 -J size=1 -O orphan_file,metadata_csum_seed",
    "uninit-bg": "-t ext4 -b 1024 -g 1024 -N 512 -J size=1 -O ^metadata_csum,uninit_bg",
    "no-journal": "-t ext4 -b 1024 -g 2048 -N 512 -O ^has_journal",
    "inodes-512": "-t ext4 -b 4096 -g 2048 -N 512 -J size=4 -I 512",
    "inodes-128": "-t ext4 -b 1024 -g 2048 -N 512 -J size=1 -I 128",
    "fast-commit": "-t ext4 -b 1024 -g 2048 -N 512 -J size=2 -O fast_commit",
    "pointers": "-t ext4 -b 1024 -g 2048 -N 512 -J size=1 -O ^extent,^64bit,^flex_bg",
    "plain": "-t ext2 -b 1024 -g 2048 -N 512 -O ^filetype,^dir_index,^sparse_super,^resize_inode",
    "odd": "-t ext4 -b 1024 -g 1000 -G 4 -N 500 -J size=1",
}
SIZES = {
    "ext4-4k": 24 * MIB,
    "checksums-2k": 16 * MIB,
    "ext3-2k": 16 * MIB,
    "inodes-512": 24 * MIB,
    "odd": 8 * MIB - 300 * 1024,
}
EVERY = {**VARIANTS, **FEATURES}

/* The ext2, ext3 and ext4 disk format, little-endian. Names are those of the ext4 documentation
 * (docs.kernel.org, "ext4 Data Structures and Algorithms"); fields that this driver does not read
 * are `unused`.
 *
 *	struct ext_super_block		one, and copies at the beginning of some groups
 *	struct ext_group_desc		one for each group, after each superblock
 *	struct ext_disk_inode(_large)	in a table of each group, by number
 *	struct ext_extent_node		in an inode, or in a block of its own
 *	struct ext_dir_entry_2, ext_dx_	in the blocks of directories
 *	struct ext_xattr_		after an inode, or in a block of its own
 *
 * Structures are laid over blocks as they were read, so nothing in them may be trusted: what is
 * followed, or used as an index, is checked where it is read. Those that are laid over bytes which
 * other code sees as something else are `may_alias`. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define EXT_SUPER_SECTOR 2 /* the superblock is at byte 1024, whatever the block size */
#define EXT_SUPER_MAGIC	 0xEF53

#define EXT_ROOT_INODE	     2
#define EXT_OLD_FIRST_INODE  11 /* revision 0 has neither s_first_ino nor s_inode_size */
#define EXT_OLD_INODE_SIZE   128
#define EXT_DESCRIPTOR_SMALL 32
#define EXT_DESCRIPTOR_LARGE 64
#define EXT_CHECKSUM_CRC32C  1
#define EXT_CLUSTER_LOG_MAX  19 /* clusters of 512 MiB */

/* Features. A driver that does not know one may still read and write if it is COMPAT, only read if
 * it is RO_COMPAT, and do neither if it is INCOMPAT. */
enum {
	EXT_COMPAT_HAS_JOURNAL = 0x4,
	EXT_COMPAT_EXT_ATTR = 0x8, /* some inode has a block of attributes, or had */
	EXT_COMPAT_DIR_INDEX = 0x20,
	EXT_COMPAT_SPARSE_SUPER2 = 0x200,
	EXT_COMPAT_ORPHAN_FILE = 0x1000,

	EXT_INCOMPAT_FILETYPE = 0x2,
	EXT_INCOMPAT_RECOVER = 0x4,
	EXT_INCOMPAT_META_BG = 0x10,
	EXT_INCOMPAT_EXTENTS = 0x40,
	EXT_INCOMPAT_64BIT = 0x80,
	EXT_INCOMPAT_MMP = 0x100,
	EXT_INCOMPAT_FLEX_BG = 0x200,
	EXT_INCOMPAT_CSUM_SEED = 0x2000,

	EXT_RO_COMPAT_SPARSE_SUPER = 0x1,
	EXT_RO_COMPAT_LARGE_FILE = 0x2,
	EXT_RO_COMPAT_BTREE_DIR = 0x4,
	EXT_RO_COMPAT_HUGE_FILE = 0x8,
	EXT_RO_COMPAT_GDT_CSUM = 0x10,
	EXT_RO_COMPAT_DIR_NLINK = 0x20,
	EXT_RO_COMPAT_EXTRA_ISIZE = 0x40,
	EXT_RO_COMPAT_BIGALLOC = 0x200,
	EXT_RO_COMPAT_METADATA_CSUM = 0x400,
	EXT_RO_COMPAT_ORPHAN_PRESENT = 0x10000, /* the orphan file has entries */
};

/* s_state */
enum {
	EXT_STATE_VALID = 1, /* unmounted cleanly; without a journal: nobody writes to it now */
	EXT_STATE_ERROR = 2, /* contradictions were found */
};

/* The counts that change all the time (free blocks, free inodes) are right after an unmount only:
 * in between those of the descriptors count. */
struct ext_super_block {
	uint32_t s_inodes_count;
	uint32_t s_blocks_count_lo;
	uint32_t s_r_blocks_count_lo; /* for root only */
	uint32_t s_free_blocks_count_lo;
	uint32_t s_free_inodes_count;
	uint32_t s_first_data_block; /* 1 for clusters of 1 KiB, otherwise 0 */
	uint32_t s_log_block_size;   /* block size is 2^(10 + this) */
	uint32_t s_log_cluster_size; /* with bigalloc only */
	uint32_t s_blocks_per_group;
	uint32_t s_clusters_per_group;
	uint32_t s_inodes_per_group;
	uint32_t s_mtime; /* seconds since 1970, as s_wtime */
	uint32_t s_wtime;
	uint16_t s_mnt_count;
	uint16_t s_max_mnt_count;
	uint16_t s_magic;
	uint16_t s_state;
	uint16_t s_errors;
	uint16_t unused_3e[7];
	uint32_t s_rev_level;
	uint32_t unused_50;
	uint32_t s_first_ino; /* the first that is not reserved */
	uint16_t s_inode_size;
	uint16_t unused_5a;
	uint32_t s_feature_compat;
	uint32_t s_feature_incompat;
	uint32_t s_feature_ro_compat;
	uint8_t s_uuid[16];
	char s_volume_name[16]; /* NUL only if shorter */
	uint8_t unused_88[0xCE - 0x88];
	uint16_t s_reserved_gdt_blocks; /* after the descriptors, for growing */
	uint8_t unused_d0[16];
	uint32_t s_journal_inum;
	uint32_t s_journal_dev;
	uint32_t s_last_orphan;	    /* the first inode of the list of orphans */
	uint32_t s_hash_seed[4];    /* of hashed directories */
	uint8_t s_def_hash_version; /* of those that become hashed now */
	uint8_t unused_fd;
	uint16_t s_desc_size; /* with 64bit only */
	uint32_t unused_100;
	uint32_t s_first_meta_bg; /* in blocks of descriptors */
	uint32_t s_mkfs_time;	  /* when it was made */
	uint8_t unused_10c[0x150 - 0x10C];
	uint32_t s_blocks_count_hi; /* with 64bit only */
	uint32_t s_r_blocks_count_hi;
	uint32_t s_free_blocks_count_hi;
	uint16_t s_min_extra_isize;
	uint16_t s_want_extra_isize; /* bytes that new inodes use beyond the first 128 */
	uint32_t s_flags;
	uint8_t unused_164[0x174 - 0x164];
	uint8_t s_log_groups_per_flex; /* with flex_bg only */
	uint8_t s_checksum_type;
	uint8_t unused_176[0x194 - 0x176];
	uint32_t s_error_count;
	uint32_t s_first_error_time;
	uint8_t unused_19c[0x1CC - 0x19C];
	uint32_t s_last_error_time;
	uint8_t unused_1d0[0x24C - 0x1D0];
	uint32_t s_backup_bgs[2]; /* with sparse_super2: the groups that have copies */
	uint8_t unused_254[0x270 - 0x254];
	uint32_t s_checksum_seed; /* with metadata_csum_seed only */
	uint8_t unused_274[0x280 - 0x274];
	uint32_t s_orphan_file_inum;
	uint8_t unused_284[0x3FC - 0x284];
	uint32_t s_checksum; /* crc32c of all that is above */
};

_Static_assert(offsetof(struct ext_super_block, s_magic) == 0x38, "superblock layout");
_Static_assert(offsetof(struct ext_super_block, s_uuid) == 0x68, "superblock layout");
_Static_assert(offsetof(struct ext_super_block, s_flags) == 0x160, "superblock layout");
_Static_assert(offsetof(struct ext_super_block, s_last_orphan) == 0xE8, "superblock layout");
_Static_assert(offsetof(struct ext_super_block, s_checksum_seed) == 0x270, "superblock layout");
_Static_assert(sizeof(struct ext_super_block) == 1024, "superblock layout");

/* With uninit_bg or metadata_csum: what mkfs has left unwritten, to be made at the first use. */
/* bg_flags */
enum {
	EXT_GROUP_INODE_UNINIT = 1, /* the inode bitmap is not written: no inode is in use */
	EXT_GROUP_BLOCK_UNINIT = 2, /* the block bitmap is not written: only metadata is in use */
	EXT_GROUP_INODE_ZEROED = 4, /* the whole inode table is written */
};

/* A group is as many blocks as a bitmap of one block has bits for: two bitmaps, a table of inodes,
 * and data. With flex_bg those of several groups are together in the first of them. */
struct ext_group_desc {
	uint32_t bg_block_bitmap_lo;
	uint32_t bg_inode_bitmap_lo;
	uint32_t bg_inode_table_lo;
	uint16_t bg_free_blocks_count_lo;
	uint16_t bg_free_inodes_count_lo;
	uint16_t bg_used_dirs_count_lo;
	uint16_t bg_flags;
	uint32_t unused_14;
	uint16_t bg_block_bitmap_csum_lo;
	uint16_t bg_inode_bitmap_csum_lo;
	uint16_t bg_itable_unused_lo; /* inodes at the end of the table that never were in use */
	uint16_t bg_checksum;
	/* Only in descriptors of 64 bytes: */
	uint32_t bg_block_bitmap_hi;
	uint32_t bg_inode_bitmap_hi;
	uint32_t bg_inode_table_hi;
	uint16_t bg_free_blocks_count_hi;
	uint16_t bg_free_inodes_count_hi;
	uint16_t bg_used_dirs_count_hi;
	uint16_t bg_itable_unused_hi;
	uint32_t unused_34;
	uint16_t bg_block_bitmap_csum_hi;
	uint16_t bg_inode_bitmap_csum_hi;
	uint32_t unused_3c;
};

_Static_assert(sizeof(struct ext_group_desc) == EXT_DESCRIPTOR_LARGE, "descriptor layout");

/* Numbers whose upper half came later, and so has a field of its own: of 16 bits and 16, of 32 bits
 * and 32. EXT_PUT32 writes one of 16 and 16; `value` is evaluated twice. */
#define EXT_GET32(of, field) ((of)->field##_lo | (uint32_t)(of)->field##_hi << 16)
#define EXT_GET64(of, field) ((of)->field##_lo | (uint64_t)(of)->field##_hi << 32)
#define EXT_PUT32(of, field, value)                                                                \
	((of)->field##_lo = (uint16_t)(value), (of)->field##_hi = (uint16_t)((value) >> 16))

/* i_block has pointers to blocks, or the root of a tree of extents; of a short symbolic link the
 * target, of a device its number. */
#define EXT_POINTERS 15 /* words of i_block */

/* i_flags, as lsattr(1) shows most of them, and chattr(1) sets some. */
enum {
	EXT_FLAG_SYNC = 8,
	EXT_FLAG_IMMUTABLE = 0x10,
	EXT_FLAG_APPEND = 0x20,
	EXT_FLAG_NODUMP = 0x40,
	EXT_FLAG_NOATIME = 0x80,
	EXT_FLAG_INDEX = 0x1000,      /* a directory with a hash tree */
	EXT_FLAG_DIRSYNC = 0x10000,   /* a directory whose names are safe when calls return */
	EXT_FLAG_HUGE_FILE = 0x40000, /* i_blocks counts blocks, not sectors */
	EXT_FLAG_EXTENTS = 0x80000,
	EXT_FLAG_INLINE_DATA = 0x10000000,
	EXT_FLAG_PROJECT = 0x20000000, /* a directory passes on its number of a project */

	/* Which of all flags a directory passes on, to directories, regular files and others, */
	EXT_FLAGS_INHERITED = 0x2201c4cf,
	EXT_FLAGS_OF_REGULAR = ~0x60030000,
	EXT_FLAGS_OF_OTHERS = EXT_FLAG_NODUMP | EXT_FLAG_NOATIME,
	/* and which programs see, may set on Linux, and may change here. */
	EXT_FLAGS_VISIBLE = 0x725bdfff,
	EXT_FLAGS_SETTABLE = 0x624bc0ff,
	EXT_FLAGS_CHANGEABLE = 0x200380ff,
};

/* Directories' entries have types of their own, in another order (fs/ext/entries.c). */
/* Upper four bits of i_mode. */
enum {
	EXT_TYPE_FIFO = 1,
	EXT_TYPE_CHARACTER = 2,
	EXT_TYPE_DIRECTORY = 4,
	EXT_TYPE_BLOCK = 6,
	EXT_TYPE_REGULAR = 8,
	EXT_TYPE_SYMLINK = 10,
	EXT_TYPE_SOCKET = 12,
};

/* The first 128 bytes, which are all of an inode on a disk of revision 0. Numbers of owners, of
 * blocks and of attributes have got upper halves in places that other systems (l_: Linux) use
 * otherwise. */
struct ext_disk_inode {
	uint16_t i_mode;
	uint16_t i_uid;
	uint32_t i_size_lo;
	uint32_t i_atime; /* seconds since 1970 */
	uint32_t i_ctime;
	uint32_t i_mtime;
	uint32_t i_dtime; /* when it was freed; of an orphan: the next one in the list */
	uint16_t i_gid;
	uint16_t i_links_count;
	uint32_t i_blocks_lo;
	uint32_t i_flags;
	uint32_t unused_24;
	uint32_t i_block[EXT_POINTERS];
	uint32_t i_generation;
	uint32_t i_file_acl_lo; /* block of the extended attributes */
	uint32_t i_size_high;	/* of regular files */
	uint32_t unused_70;
	uint16_t l_i_blocks_high; /* with huge_file only */
	uint16_t l_i_file_acl_high;
	uint16_t l_i_uid_high;
	uint16_t l_i_gid_high;
	uint16_t l_i_checksum_lo; /* crc32c of the inode, with metadata_csum */
	uint16_t unused_7e;
};

/* Inodes of more than 128 bytes go on. i_extra_isize says how many of these bytes are in use; the
 * rest is for extended attributes. In i_*_extra: the upper two bits of the seconds below 30 bits of
 * nanoseconds. */
struct ext_disk_inode_large {
	struct ext_disk_inode first;
	uint16_t i_extra_isize;
	uint16_t i_checksum_hi;
	uint32_t i_ctime_extra;
	uint32_t i_mtime_extra;
	uint32_t i_atime_extra;
	uint32_t i_crtime;
	uint32_t i_crtime_extra;
	uint32_t unused_98[2];
};

_Static_assert(sizeof(struct ext_disk_inode_large) == 0xA0, "inode layout");
_Static_assert(sizeof(struct ext_disk_inode) == EXT_OLD_INODE_SIZE, "inode layout");

/* Trees of extents: fs/ext/map_extents.c has a drawing. */
#define EXT_EXTENT_MAGIC	 0xF30A
#define EXT_EXTENT_DEPTH_MAX	 5
#define EXT_EXTENT_WRITTEN_LIMIT 32768 /* ee_len above it: unwritten, and longer by this */

/* The root has room for 4 entries of 12 bytes, a block of 4 KiB for 340. */
struct ext_extent_header {
	uint16_t eh_magic;
	uint16_t eh_entries;
	uint16_t eh_max;
	uint16_t eh_depth; /* levels below; 0: the entries are extents */
	uint32_t eh_generation;
};

/* An entry of an inner node. A block's number has 48 bits, in two fields, as in an extent. */
struct ext_extent_idx {
	uint32_t ei_block; /* the subtree holds logical blocks from here on */
	uint32_t ei_leaf_lo;
	uint16_t ei_leaf_hi;
	uint16_t ei_unused;
};

/* An entry of a leaf: a run of blocks of the file that are neighbours on the disk. */
struct ext_extent {
	uint32_t ee_block; /* first logical block */
	uint16_t ee_len;
	uint16_t ee_start_hi;
	uint32_t ee_start_lo;
};

/* Both kinds of entry begin with the logical block. */
union ext_extent_entry {
	uint32_t block;
	struct ext_extent_idx index;
	struct ext_extent extent;
} __attribute__((may_alias));

/* A node of the tree, in i_block or in a block of its own. */
struct ext_extent_node {
	struct ext_extent_header header;
	union ext_extent_entry entries[];
} __attribute__((may_alias));

_Static_assert(sizeof(struct ext_extent_idx) == 12, "extent layout");
_Static_assert(sizeof(struct ext_extent) == 12, "extent layout");
_Static_assert(offsetof(struct ext_extent_node, entries) == 12, "extent layout");

/* Directories: fs/ext/entries.c and htree.c have drawings. */
#define EXT_DIR_ENTRY_MIN 12 /* bytes; every entry is a multiple of 4 */
#define EXT_DIR_TAIL_TYPE 0xDE

/* A name. rec_len leads to the next entry, and the last one's to the end of the block: 4.2
 * "Directory Entries". */
struct ext_dir_entry_2 {
	uint32_t inode; /* 0: unused */
	uint16_t rec_len;
	uint8_t name_len;
	uint8_t file_type; /* without filetype: the upper byte of name_len */
	char name[];
} __attribute__((may_alias));

/* With metadata_csum a block of names ends with what looks like an unused entry of 12 bytes. */
struct ext_dir_tail {
	uint32_t det_reserved_zero1;
	uint16_t det_rec_len; /* 12 */
	uint8_t det_reserved_zero2;
	uint8_t det_reserved_ft; /* EXT_DIR_TAIL_TYPE */
	uint32_t det_checksum;	 /* crc32c of all that is above */
} __attribute__((may_alias));

/* A hash tree's root: in block 0, after the entries "." and "..", of which the second one has the
 * rest of the block. Its nodes begin after 8 bytes of an unused entry that has all of the block. */
#define EXT_DX_ROOT_AT 24
#define EXT_DX_NODE_AT 8

/* How a name is hashed. The superblock has the seed, and which of two a new tree takes. */
enum {
	EXT_HASH_LEGACY = 0,
	EXT_HASH_HALF_MD4 = 1,
	EXT_HASH_TEA = 2,
	EXT_HASH_UNSIGNED = 3,	     /* added to one of these where characters have no sign */
	EXT_SUPER_UNSIGNED_HASH = 2, /* in s_flags: that is so in this file system */
};

struct ext_dx_root_info {
	uint32_t reserved_zero;
	uint8_t hash_version;
	uint8_t info_length;	 /* 8 */
	uint8_t indirect_levels; /* of nodes between the root and the blocks of names */
	uint8_t unused_flags;
} __attribute__((may_alias));

/* Entries ascend. The first one has no hash (it would be 0), but two counts. */
union ext_dx_entry {
	struct {
		uint32_t hash;
		uint32_t block; /* of the directory */
	};
	struct {
		uint16_t limit;
		uint16_t count; /* this one included */
	};
} __attribute__((may_alias));

/* With metadata_csum, after the last entry that there is room for. */
struct ext_dx_tail {
	uint32_t dt_reserved;
	uint32_t dt_checksum; /* crc32c of the block up to the last entry in use, and 8 bytes 0 */
} __attribute__((may_alias));

/* What a walk steps by, and what it reads. */
_Static_assert(sizeof(struct ext_dir_tail) == EXT_DIR_ENTRY_MIN, "directory layout");
_Static_assert(sizeof(union ext_dx_entry) == 8, "hash tree layout");

/* With metadata_csum, after the last entry that an extent block has room for. */
struct ext_extent_tail {
	uint32_t et_checksum; /* crc32c of all that is above */
};

/* The first bytes of a block of extended attributes. Those inside an inode have the magic number
 * only. */
#define EXT_XATTR_MAGIC 0xEA020000
/* Linux shares a block between inodes whose attributes are all equal, which is why it has a hash.
 */
struct ext_xattr_header {
	uint32_t h_magic;
	uint32_t h_refcount; /* inodes that share it */
	uint32_t h_blocks;
	uint32_t h_hash;
	uint32_t h_checksum; /* crc32c of the block's number and its contents */
	uint32_t unused_14[3];
} __attribute__((may_alias));

/* e_name_index: the first part of the name, which is not in e_name. */
enum {
	EXT_XATTR_USER = 1,
	EXT_XATTR_TRUSTED = 4,
	EXT_XATTR_SECURITY = 6,
};

/* Entries follow each other, every one a multiple of 4 bytes, and then a word of 0. Values are
 * after them, the last ones at the end. */
struct ext_xattr_entry {
	uint8_t e_name_len;
	uint8_t e_name_index;
	uint16_t e_value_offs; /* from the block's beginning, or from the first entry in an inode */
	uint32_t e_value_inum; /* with ea_inode only */
	uint32_t e_value_size; /* bytes; the value's place is a multiple of 4 */
	uint32_t e_hash;       /* of name and value; 0 in an inode */
	char e_name[];	       /* no NUL */
} __attribute__((may_alias));

_Static_assert(sizeof(struct ext_xattr_header) == 32, "attributes layout");
_Static_assert(sizeof(struct ext_xattr_entry) == 16, "attributes layout");

/* Each block of the orphan file is numbers of inodes, and at its end: */
#define EXT_ORPHAN_MAGIC 0x0B10CA04
/* The checksum's seed is that of the file's inode. */
struct ext_orphan_tail {
	uint32_t ob_magic;
	uint32_t ob_checksum;
} __attribute__((may_alias));

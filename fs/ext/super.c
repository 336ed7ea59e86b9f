/*
 * Mounting: the superblock, used only if it agrees with itself and with the device.
 *
 * A file system is data from outside: a damaged or malicious image must give an error, never a
 * wrong access. So mounting is a list of checks (`checks` below), and the rest of the driver may
 * rely on each of them: sizes that are powers of two, counts that fit each other, tables that are
 * inside the device. A mount needs one page of
 * memory, and some for what own.c notes; one that is to be written goes on in mount_write.c. Waits
 * for the drive.
 *
 * The layout is documented in the kernel tree of Linux: Documentation/filesystems/ext4.
 */
#include "fs/ext/groups.h"
#include "fs/jbd2/journal.h"
#include "kernel/lib/errno.h"
#include "kernel/report/printk.h"
#include "kernel/lib/string.h"
#include "mm/page_alloc.h"

/* ext_mount allocates one. */
_Static_assert(sizeof(struct ext_fs) <= PAGE_SIZE, "a mount is one page");

/* Reports a field of the superblock that is not in [least, most], and returns true then. */
static bool out_of_range(const struct ext_fs *fs, const char *field, uint64_t value, uint64_t least,
			 uint64_t most)
{
	if (value >= least && value <= most)
		return false;
	ext_corrupt(fs, "superblock", "%s %ju, not %ju to %ju", field, value, least, most);
	return true;
}

/* The same; and the field must be a power of two. */
static bool no_power_in_range(const struct ext_fs *fs, const char *field, uint32_t value,
			      uint32_t least, uint32_t most)
{
	if (out_of_range(fs, field, value, least, most))
		return true;
	if ((value & (value - 1)) == 0)
		return false;
	ext_corrupt(fs, "superblock", "%s %u, not a power of two", field, value);
	return true;
}

/* 1024 bytes at offset 1024, whatever the block size is: that is read here. */
static int read_super(struct ext_fs *fs)
{
	const struct ext_super_block *super = &fs->super;
	unsigned sectors = sizeof(*super) / SECTOR_SIZE;

	if (fs->device->sectors < EXT_SUPER_SECTOR + sectors) {
		printk("%s: too small for an ext file system\n", fs->device->name);
		return -EINVAL;
	}
	int error = block_read(fs->device, EXT_SUPER_SECTOR, sectors, &fs->super, BLOCK_OTHER);

	if (error)
		return error;
	if (super->s_magic != EXT_SUPER_MAGIC) {
		printk("%s: no ext file system: magic 0x%04x, not 0x%04x\n", fs->device->name,
		       super->s_magic, EXT_SUPER_MAGIC);
		return -EINVAL;
	}
	return 0;
}

/* The sizes of blocks, inodes and descriptors. Revision 0 fixed what revision 1 has fields for.
 * -EINVAL for a block that this cache cannot have, -EUCLEAN for what no file system has. */
static int check_sizes(struct ext_fs *fs)
{
	const struct ext_super_block *super = &fs->super;
	bool old = super->s_rev_level == 0;
	bool wide = ext_has_incompat(fs, EXT_INCOMPAT_64BIT);
	uint32_t least = wide ? EXT_DESCRIPTOR_LARGE : EXT_DESCRIPTOR_SMALL;

	/* A block must fit into a page of the cache: 1, 2 or 4 KiB. */
	if (out_of_range(fs, "log of the block size", super->s_log_block_size, 0, 2))
		return -EINVAL;
	fs->block_shift = 10 + super->s_log_block_size; /* 0 means 1 KiB */
	fs->summary.block_size = 1u << fs->block_shift;
	fs->inode_size = old ? EXT_OLD_INODE_SIZE : super->s_inode_size;
	fs->first_inode = old ? EXT_OLD_FIRST_INODE : super->s_first_ino;
	fs->summary.descriptor_size = wide ? super->s_desc_size : EXT_DESCRIPTOR_SMALL;
	if (out_of_range(fs, "revision", super->s_rev_level, 0, 1) ||
	    no_power_in_range(fs, "inode size", fs->inode_size, EXT_OLD_INODE_SIZE,
			      fs->summary.block_size) ||
	    no_power_in_range(fs, "descriptor size", fs->summary.descriptor_size, least, 1024) ||
	    out_of_range(fs, "first inode", fs->first_inode, EXT_OLD_FIRST_INODE,
			 super->s_inodes_count))
		return -EUCLEAN;
	return 0;
}

/* A device may be larger than its file system, not smaller: the image would be cut off. */
static int check_block_count(struct ext_fs *fs)
{
	const struct ext_super_block *super = &fs->super;
	uint64_t device_blocks = fs->device->sectors >> (fs->block_shift - 9);
	uint64_t blocks = ext_halves(fs, super->s_blocks_count_lo, super->s_blocks_count_hi);

	if (blocks > device_blocks)
		return ext_corrupt(fs, "superblock",
				   "block count %ju is larger than the device's %ju blocks", blocks,
				   device_blocks);
	fs->summary.blocks = blocks;
	return 0;
}

/* A group's two bitmaps are a block each: a bit for an inode, and a bit for a block or, with
 * bigalloc, for a cluster of blocks. Clusters of 1 KiB are the ones that are counted from 1. */
static int check_group_sizes(struct ext_fs *fs)
{
	const struct ext_super_block *super = &fs->super;
	uint32_t block_log = super->s_log_block_size;
	bool clusters = ext_has_ro_compat(fs, EXT_RO_COMPAT_BIGALLOC);
	uint32_t log = clusters ? super->s_log_cluster_size : block_log;
	uint64_t bits = 8 * fs->summary.block_size;
	uint32_t first = log == 0;

	if (out_of_range(fs, "log of the cluster size", log, block_log, EXT_CLUSTER_LOG_MAX) ||
	    out_of_range(fs, "first data block", super->s_first_data_block, first, first) ||
	    out_of_range(fs, "inodes per group", super->s_inodes_per_group,
			 fs->summary.block_size / fs->inode_size, bits) ||
	    out_of_range(fs, "blocks per group", super->s_blocks_per_group, 1,
			 bits << (log - block_log)))
		return -EUCLEAN;
	return 0;
}

/* The number of groups follows twice, from inodes and from blocks. Counting by inodes and checking
 * against blocks needs no 64-bit division. */
static int check_group_count(struct ext_fs *fs)
{
	const struct ext_super_block *super = &fs->super;
	uint32_t groups = super->s_inodes_count / super->s_inodes_per_group;
	uint64_t room = (uint64_t)groups * super->s_blocks_per_group;
	uint64_t used = fs->summary.blocks - super->s_first_data_block;

	/* Every group has the same number of inodes, the last one too, although it may have fewer
	 * blocks. */
	if (groups * super->s_inodes_per_group != super->s_inodes_count)
		return ext_corrupt(fs, "superblock",
				   "inode count %u is not a multiple of %u per group",
				   super->s_inodes_count, super->s_inodes_per_group);
	if (used == 0 || used > room || used + super->s_blocks_per_group <= room)
		return ext_corrupt(fs, "superblock", "%ju blocks do not make %u groups of %u", used,
				   groups, super->s_blocks_per_group);
	fs->summary.groups = groups;
	fs->summary.inodes = super->s_inodes_count;
	return 0;
}

/* The checksum covers all bytes of the superblock before its own field, which is the last. */
static int check_checksum(struct ext_fs *fs)
{
	const struct ext_super_block *super = &fs->super;
	uint32_t type = super->s_checksum_type;
	uint32_t checksum;

	if (!ext_has_ro_compat(fs, EXT_RO_COMPAT_METADATA_CSUM))
		return 0;
	if (out_of_range(fs, "checksum type", type, EXT_CHECKSUM_CRC32C, EXT_CHECKSUM_CRC32C))
		return -EUCLEAN;
	checksum = ext_super_checksum(super);
	if (checksum != super->s_checksum) {
		ext_corrupt(fs, "superblock", EXT_CHECKSUM_WRONG, super->s_checksum, checksum);
		return -EBADMSG;
	}
	fs->seed = ext_checksum_seed(fs);
	return 0;
}

/* The whole path is tried once: descriptor, inode table, inode. Its failure at mount time is easier
 * to understand than that of the first lookup. */
static int check_root(struct ext_fs *fs)
{
	struct ext_inode root;
	int error = ext_inode_read(fs, EXT_ROOT_INODE, &root);

	if (!error && !ext_is_directory(&root))
		return ext_corrupt_inode(&root, "the root is not a directory");
	return error;
}

/* In this order: each check may rely on those before it. A damaged field is named as such, so the
 * checksum, which can only say that there is damage, comes last. */
static int (*const checks[])(struct ext_fs *fs) = {
	read_super,	   ext_features_check, check_sizes,  check_block_count, check_group_sizes,
	check_group_count, check_checksum,     ext_own_find, check_root,
};

/* All checks up to the first that fails. The label is for people, also after an error. */
static int run_checks(struct ext_fs *fs)
{
	int error = 0;

	for (unsigned i = 0; i < sizeof(checks) / sizeof(checks[0]) && !error; i++)
		error = checks[i](fs);
	/* The label has no NUL when all of its 16 bytes are used; the summary has one more. */
	memcpy(fs->summary.label, fs->super.s_volume_name, sizeof(fs->super.s_volume_name));
	return error;
}

/* Begins from nothing. What was replayed may be anything that was just checked. */
static int start(struct ext_fs *fs, struct block_device *device, const struct ext_options *options)
{
	bool replayed = false;

	memset(fs, 0, sizeof(*fs));
	fs->device = device;
	fs->options = *options;
	int error = run_checks(fs);

	if (!error && !options->must_be_clean)
		error = ext_journal_begin(fs, &replayed);
	if (!error && replayed)
		error = run_checks(fs);
	if (!error && fs->options.read_only && fs->journal)
		error = ext_journal_leave(fs);
	if (!error && !fs->options.read_only)
		error = ext_write_begin(fs);
	if (error && fs->journal)
		journal_close(fs->journal);
	return error;
}

/* After an error all that was allocated has been freed. The reason was printed: an errno has none,
 * and a damaged disk is a matter for people. */
int ext_mount(struct block_device *device, const struct ext_options *options, struct ext_fs **out)
{
	struct ext_fs *fs = page_alloc(0);

	if (!fs)
		return -ENOMEM;
	int error = start(fs, device, options);

	if (error) {
		ext_unmount(fs); /* it cannot be written to */
		return error;
	}
	*out = fs;
	return 0;
}

/* What was checked at the first mount is kept until the second one has succeeded. If the last
 * changes did not get to the disk, inodes in memory are newer than it: nobody may write then. */
int ext_remount(struct ext_fs *fs, const struct ext_options *options)
{
	if (fs->failed && !options->read_only)
		return -EROFS;
	struct ext_fs *before = page_alloc(0);

	if (!before)
		return -ENOMEM;
	int error = fs->writable ? ext_write_end(fs) : 0;

	fs->writable = false;
	fs->failed |= error != 0;
	memcpy(before, fs, sizeof(*fs));
	if (!error) {
		error = start(fs, before->device, options);
		ext_own_forget(error ? fs : before);
	}
	if (error)
		memcpy(fs, before, sizeof(*fs));
	fs->failed = before->failed;
	page_free(before, 0);
	return error;
}

/* What a contradiction does to the mount: nothing, "read only", or the end of the machine. */
void ext_set_errors(struct ext_fs *fs, enum ext_errors errors)
{
	fs->options.errors = errors;
}

/* Asked for, or become so by an error of the journal or by a contradiction. */
bool ext_is_read_only(const struct ext_fs *fs)
{
	return !fs->writable || fs->failed || journal_is_aborted(fs->journal);
}

/* The cache may keep blocks of it: they are what is on the disk. What could not be written is
 * dropped, and is the error that is returned. */
int ext_unmount(struct ext_fs *fs)
{
	int error = fs->writable ? ext_write_end(fs) : 0;

	if (!fs->options.must_be_clean) /* else the device may be mounted elsewhere, too */
		bcache_abandon(fs->device);
	ext_own_forget(fs);
	page_free(fs, 0);
	return error;
}

/* For people: what `mount` prints; and for the VFS, the sizes that statfs tells. Valid until the
 * unmount. */
const struct ext_summary *ext_summary(const struct ext_fs *fs)
{
	return &fs->summary;
}

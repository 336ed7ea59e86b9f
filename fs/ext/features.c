/* Which ext features this driver supports: the rule that has allowed new ones for thirty years. */
#include "fs/ext/mount.h"
#include "kernel/lib/errno.h"
#include "kernel/report/printk.h"

/*
 * A feature is a bit in one of three words, by what a driver must do that does not know it:
 *   s_feature_compat     nothing: it may read and write
 *   s_feature_ro_compat  read, but never write
 *   s_feature_incompat   not mount it at all
 */

/* MMP guards against two writers. A reader may ignore it, as Linux does on a read-only mount. */
#define INCOMPAT_KNOWN                                                                             \
	(EXT_INCOMPAT_FILETYPE | EXT_INCOMPAT_META_BG | EXT_INCOMPAT_EXTENTS |                     \
	 EXT_INCOMPAT_64BIT | EXT_INCOMPAT_MMP | EXT_INCOMPAT_FLEX_BG | EXT_INCOMPAT_CSUM_SEED)

#define RO_COMPAT_KNOWN                                                                            \
	(EXT_RO_COMPAT_SPARSE_SUPER | EXT_RO_COMPAT_LARGE_FILE | EXT_RO_COMPAT_HUGE_FILE |         \
	 EXT_RO_COMPAT_GDT_CSUM | EXT_RO_COMPAT_DIR_NLINK | EXT_RO_COMPAT_EXTRA_ISIZE |            \
	 EXT_RO_COMPAT_METADATA_CSUM | EXT_RO_COMPAT_ORPHAN_PRESENT)

/* What ext2 and ext3 may have. One bit more than this makes an ext4. */
#define INCOMPAT_EXT3 (EXT_INCOMPAT_FILETYPE | EXT_INCOMPAT_RECOVER | EXT_INCOMPAT_META_BG)
#define RO_COMPAT_EXT3                                                                             \
	(EXT_RO_COMPAT_SPARSE_SUPER | EXT_RO_COMPAT_LARGE_FILE | EXT_RO_COMPAT_BTREE_DIR)

/* Names by bit, as mke2fs and dumpe2fs of e2fsprogs use them. */
/* clang-format off */
static const char *const incompat_names[32] = {
	"compression", "filetype", "needs_recovery", "journal_dev",
	"meta_bg", NULL, "extent", "64bit",
	"mmp", "flex_bg", "ea_inode", NULL,
	"dirdata", "metadata_csum_seed", "large_dir", "inline_data",
	"encrypt", "casefold",
};

static const char *const ro_compat_names[32] = {
	"sparse_super", "large_file", NULL, "huge_file",
	"uninit_bg", "dir_nlink", "extra_isize", NULL,
	"quota", "bigalloc", "metadata_csum", "replica",
	"read-only", "project", "shared_blocks", "verity",
	"orphan_present",
};
/* clang-format on */

/* Prints a line for each bit of `features`; one without a name as dumpe2fs does: "FEATURE_I27". */
static void say_features(const struct ext_fs *fs, uint32_t features, const char *const *names,
			 char class, const char *consequence)
{
	for (unsigned bit = 0; bit < 32; bit++) {
		char number[16];

		if (!(features >> bit & 1))
			continue;
		snprintk(number, sizeof(number), "FEATURE_%c%u", class, bit);
		printk("%s: unsupported feature %s: %s\n", fs->device->name,
		       names[bit] ? names[bit] : number, consequence);
	}
}

/* Tells the type as blkid does. */
static const char *type_of_super(const struct ext_super_block *super)
{
	if (super->s_feature_incompat & ~INCOMPAT_EXT3 ||
	    super->s_feature_ro_compat & ~RO_COMPAT_EXT3)
		return "ext4";
	return super->s_feature_compat & EXT_COMPAT_HAS_JOURNAL ? "ext3" : "ext2";
}

/* Comes right after the magic number: what the other fields mean depends on the features. */
int ext_features_check(struct ext_fs *fs)
{
	const struct ext_super_block *super = &fs->super;
	uint32_t unknown = super->s_feature_incompat & ~(INCOMPAT_KNOWN | EXT_INCOMPAT_RECOVER);
	uint32_t read_only = super->s_feature_ro_compat & ~RO_COMPAT_KNOWN;

	say_features(fs, unknown, incompat_names, 'I', "not mounted");
	if (unknown)
		return -EOPNOTSUPP;
	/* Known, but it needs a driver that replays the journal: until then the blocks on disk are
	 * not the truth. */
	if (fs->options.must_be_clean && super->s_feature_incompat & EXT_INCOMPAT_RECOVER)
		return ext_corrupt(
		    fs, "needs_recovery",
		    "the journal holds changes that are not in place yet; run e2fsck "
		    "on the image first");
	say_features(fs, read_only, ro_compat_names, 'R', "read only");
	fs->summary.type = type_of_super(super);
	fs->summary.read_only_features = read_only != 0;
	return 0;
}

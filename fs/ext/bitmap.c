/*
 * Bitmaps: which blocks and which inodes of a group are in use.
 *
 * A bitmap is a block; bit n is bit n % 8 of byte n / 8, and belongs to block or inode n of the
 * group. What the group does not have, the end of the block, is set:
 *
 *	last group, 1000 of 8192 blocks	 bits 0 to 999, then 7192 ones
 *
 * mkfs does not write bitmaps of groups that nobody uses yet (uninit_bg): their descriptors say so
 * (BLOCK_UNINIT, INODE_UNINIT), and the first who needs one makes it.
 *
 * A bitmap read from the disk is compared with its checksum, and its zeros with the count of the
 * descriptor, because a wrong bit would give a block of one file to another. And what the file
 * system has for itself, the journal included, must be in use in it. A wrong bitmap is
 * -EUCLEAN, and is not used until the next mount, as on Linux: the console says it once, what is
 * allocated is in other groups, and blocks that are freed in it stay in use until e2fsck. (More
 * than EXT_BAD of them are said each time, and are errors of those who ask.)
 */
#include "fs/ext/internal.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"

#define FEW 16u /* bytes of a bitmap */

/* Thirty-two bits, those that are looked for as ones. */
static uint32_t word_at(const uint32_t *a, const uint32_t *b, uint32_t at, bool value)
{
	uint32_t word = a[at / 32] | (b ? b[at / 32] : 0);

	return value ? word : ~word;
}

uint32_t ext_bits_find(const void *a, const void *b, uint32_t from, uint32_t end, bool value)
{
	while (from < end) {
		uint32_t word = word_at(a, b, from, value) >> from % 32;

		if (word != 0) {
			from += (uint32_t)__builtin_ctz(word);
			return from < end ? from : end;
		}
		from = (from | 31) + 1;
	}
	return end;
}

/* Sets or clears count bits. */
static void fill(uint8_t *bits, uint32_t first, uint32_t count, bool value)
{
	for (uint32_t end = first + count; first < end;) {
		uint8_t mask = (uint8_t)(1u << first % 8);

		if (first % 8 == 0 && end - first >= 8) {
			bits[first / 8] = value ? 0xFF : 0;
			first += 8;
			continue;
		}
		bits[first / 8] = value ? bits[first / 8] | mask : bits[first / 8] & ~mask;
		first++;
	}
}

/* How many bits of a word are 1: sums of pairs, of fours, of bytes. */
static uint32_t count_ones(uint32_t word)
{
	word -= word >> 1 & 0x55555555;
	word = (word & 0x33333333) + (word >> 2 & 0x33333333);
	word = (word + (word >> 4)) & 0x0F0F0F0F;
	return word * 0x01010101 >> 24;
}

/* How many of the first `count` bits are 0. */
static uint32_t count_zeros(const uint8_t *bits, uint32_t count)
{
	const uint32_t *words = (const uint32_t *)bits;
	uint32_t ones = 0;

	for (uint32_t at = 0; at < count / 32; at++)
		ones += count_ones(words[at]);
	if (count % 32 != 0)
		ones += count_ones(words[count / 32] & ((1u << count % 32) - 1));
	return count - ones;
}

/* What belongs to one of the two kinds. */
struct about {
	const char *name;
	uint64_t block;
	uint32_t bits;	  /* that the group has */
	uint32_t covered; /* bytes that the checksum covers */
	uint32_t free;
	uint32_t checksum;
	uint16_t uninit; /* flag of the descriptor */
};

static struct about about(const struct ext_fs *fs, uint32_t group, const struct ext_group_desc *of,
			  enum ext_bitmap kind)
{
	if (kind == EXT_BITMAP_BLOCKS)
		return (struct about){
			.name = "block bitmap",
			.block = EXT_GET64(of, bg_block_bitmap),
			.bits = ext_group_blocks(fs, group),
			.covered = fs->super.s_blocks_per_group / 8,
			.free = EXT_GET32(of, bg_free_blocks_count),
			.checksum = EXT_GET32(of, bg_block_bitmap_csum),
			.uninit = EXT_GROUP_BLOCK_UNINIT,
		};
	return (struct about){
		.name = "inode bitmap",
		.block = EXT_GET64(of, bg_inode_bitmap),
		.bits = fs->super.s_inodes_per_group,
		.covered = fs->super.s_inodes_per_group / 8,
		.free = EXT_GET32(of, bg_free_inodes_count),
		.checksum = EXT_GET32(of, bg_inode_bitmap_csum),
		.uninit = EXT_GROUP_INODE_UNINIT,
	};
}

/* Small descriptors have half of a checksum. */
static uint32_t checksum_mask(const struct ext_fs *fs)
{
	return fs->summary.descriptor_size < EXT_DESCRIPTOR_LARGE ? 0xFFFF : 0xFFFFFFFF;
}

static uint32_t checksum_of(const struct ext_fs *fs, const struct about *of, const uint8_t *bits)
{
	return crc32c(fs->seed, bits, of->covered) & checksum_mask(fs);
}

static void set_checksum(const struct ext_fs *fs, struct ext_group_desc *descriptor,
			 enum ext_bitmap kind, uint32_t checksum)
{
	if (!ext_has_checksums(fs))
		return;
	checksum &= checksum_mask(fs);
	if (kind == EXT_BITMAP_BLOCKS)
		EXT_PUT32(descriptor, bg_block_bitmap_csum, checksum);
	else
		EXT_PUT32(descriptor, bg_inode_bitmap_csum, checksum);
}

/* The next of the file system's own blocks among the first `end` of a group, from bit *from on:
 * bits *from to *to (exclusive, and more than *from). */
static bool own_bits(const struct ext_fs *fs, uint32_t group, uint32_t end, uint32_t *from,
		     uint32_t *to)
{
	uint64_t first = ext_group_first(fs, group);
	struct ext_own run;

	if (!ext_own_run(fs, first + *from, first + end, &run))
		return false;
	*from = (uint32_t)(run.first - first);
	*to = (uint32_t)(run.end - first);
	return true;
}

/* Refuses a bitmap of blocks in which something of the file system itself is free: that would be
 * given to a file. */
static int check_own(const struct ext_fs *fs, uint32_t group, const uint8_t *bits)
{
	uint32_t end = ext_group_blocks(fs, group);

	for (uint32_t from = 0, to; own_bits(fs, group, end, &from, &to); from = to)
		if (ext_bits_find(bits, NULL, from, to, false) < to)
			return ext_corrupt(fs, "block bitmap",
					   "group %u: blocks of the file system itself are free",
					   group);
	return 0;
}

/* Refuses a bitmap of the disk that is not what its descriptor says. */
static int check(const struct ext_fs *fs, uint32_t group, enum ext_bitmap kind,
		 const struct about *of, const uint8_t *bits)
{
	uint32_t zeros = count_zeros(bits, of->bits);
	uint32_t checksum = checksum_of(fs, of, bits);

	if (ext_has_checksums(fs) && checksum != of->checksum) {
		ext_corrupt(fs, of->name, "group %u: " EXT_CHECKSUM_WRONG, group, of->checksum,
			    checksum);
		return -EBADMSG;
	}
	if (zeros != of->free)
		return ext_corrupt(fs, of->name, "group %u: %u free, but the descriptor says %u",
				   group, zeros, of->free);
	return kind == EXT_BITMAP_BLOCKS ? check_own(fs, group, bits) : 0;
}

/* A bitmap that was never written: of inodes all are free, of blocks all but the file system's own.
 */
static void make(const struct ext_fs *fs, uint32_t group, enum ext_bitmap kind,
		 const struct about *of, uint8_t *bits)
{
	if (kind == EXT_BITMAP_BLOCKS)
		for (uint32_t at = 0, to; own_bits(fs, group, of->bits, &at, &to); at = to)
			fill(bits, at, to - at, true);
	fill(bits, of->bits, fs->summary.block_size * 8 - of->bits, true);
}

/* Was it the last group, shorter, and without files? resize2fs leaves the bitmap of such a group
 * as it was: beyond the old end all is set, before it only what is the file system's own. */
static bool was_shorter(const struct ext_fs *fs, uint32_t group, const struct about *of,
			const uint8_t *bits)
{
	uint32_t end = of->bits, own = 0;

	while (end > 0 && ext_bits_find(bits, NULL, end - 1, end, true) < end)
		end--;
	for (uint32_t from = 0, to; own_bits(fs, group, end, &from, &to); from = to)
		own += to - from;
	return of->uninit == EXT_GROUP_BLOCK_UNINIT && end > 0 &&
	       count_zeros(bits, end) + own == end;
}

/* Refuses the flag if the disk has the bitmap, with its checksum: the group is in use. */
static int check_never_written(const struct ext_fs *fs, uint32_t group, const struct about *of)
{
	struct cached_block *old;
	int error = ext_has_checksums(fs) ? ext_block_read(fs, of->block, BLOCK_OTHER, &old) : 0;

	if (error || !ext_has_checksums(fs))
		return error;
	bool is_there = checksum_of(fs, of, old->data) == of->checksum &&
			count_zeros(old->data, of->bits) != of->free &&
			!was_shorter(fs, group, of, old->data);

	bcache_put(old);
	return is_there ? ext_corrupt(fs, of->name, "group %u: new, but it is on the disk", group)
			: 0;
}

/* Makes a bitmap, and says so in the descriptor. After an error, too, *out is the caller's. */
static int get_new(struct ext_fs *fs, uint32_t group, struct ext_group_desc *descriptor,
		   enum ext_bitmap kind, const struct about *of, struct cached_block **out)
{
	struct ext_group_desc changed = *descriptor;
	int error = check_never_written(fs, group, of);

	if (!error)
		error = bcache_get_zeroed(fs->device, of->block, fs->summary.block_size, out);
	if (error)
		return error;
	make(fs, group, kind, of, (*out)->data);
	if (count_zeros((*out)->data, of->bits) != of->free)
		error =
		    ext_corrupt(fs, of->name, "group %u: new, but the descriptor has %u of %u free",
				group, of->free, of->bits);
	else if (kind == EXT_BITMAP_INODES &&
		 (group == 0 || EXT_GET32(descriptor, bg_used_dirs_count) > 0))
		error = ext_corrupt(fs, of->name, "group %u: new, but it has inodes", group);
	if (!error)
		error = ext_change(fs, *out);
	changed.bg_flags &= (uint16_t)~of->uninit;
	set_checksum(fs, &changed, kind, crc32c(fs->seed, (*out)->data, of->covered));
	if (!error)
		error = ext_group_write(fs, group, &changed);
	if (!error)
		*descriptor = changed;
	return error;
}

/* Only file systems with checksums of descriptors have the flags. */
static bool has_flags(const struct ext_fs *fs)
{
	return ext_has_checksums(fs) || ext_has_ro_compat(fs, EXT_RO_COMPAT_GDT_CSUM);
}

/* Reads a bitmap, and checks it unless that was done. *out likewise. */
static int get_old(const struct ext_fs *fs, uint32_t group, enum ext_bitmap kind,
		   const struct about *of, struct cached_block **out)
{
	if (!ext_range_valid(fs, of->block, 1))
		return ext_corrupt(fs, of->name, "group %u: block %ju is outside the file system",
				   group, of->block);
	int error = ext_block_read(fs, of->block, BLOCK_OTHER, out);

	if (error)
		return error;
	return (*out)->verified ? 0 : check(fs, group, kind, of, (*out)->data);
}

bool ext_bitmap_is_bad(const struct ext_fs *fs, uint32_t group, enum ext_bitmap kind)
{
	for (unsigned i = 0; i < fs->bad_count; i++)
		if (fs->bad[i] == group * 2 + kind)
			return true;
	return false;
}

void ext_bitmap_note_bad(struct ext_fs *fs, uint32_t group, enum ext_bitmap kind, uint32_t free)
{
	uint32_t blocks = ext_group_blocks(fs, group);

	ext_ask_for_check(fs); /* what is freed there stays used */
	if (fs->bad_count == EXT_BAD)
		return;
	fs->bad[fs->bad_count++] = group * 2 + kind;
	if (kind != EXT_BITMAP_BLOCKS)
		return;
	fs->unusable += free < blocks ? free : blocks;
	if (group < fs->looked_at)
		fs->sure -= free;
}

void ext_bitmap_note_unreadable(struct ext_fs *fs, uint32_t group, enum ext_bitmap kind, int error)
{
	struct ext_group_desc descriptor;

	if (error == -EIO && fs->summary.groups > 1 && ext_group_read(fs, group, &descriptor) == 0)
		ext_bitmap_note_bad(fs, group, kind, EXT_GET32(&descriptor, bg_free_blocks_count));
}

int ext_bitmap_get(struct ext_fs *fs, uint32_t group, struct ext_group_desc *descriptor,
		   enum ext_bitmap kind, struct cached_block **out)
{
	int error =
	    ext_bitmap_is_bad(fs, group, kind) ? -EUCLEAN : ext_group_read(fs, group, descriptor);
	struct cached_block *bitmap = NULL;

	if (error)
		return error;
	struct about of = about(fs, group, descriptor, kind);

	if (has_flags(fs) && descriptor->bg_flags & of.uninit && ext_range_valid(fs, of.block, 1))
		error = get_new(fs, group, descriptor, kind, &of, &bitmap);
	else
		error = get_old(fs, group, kind, &of, &bitmap);
	if (error) {
		bcache_put(bitmap);
		if (error == -EUCLEAN || error == -EBADMSG)
			ext_bitmap_note_bad(fs, group, kind, of.free);
		return error;
	}
	bitmap->verified = true;
	*out = bitmap;
	return 0;
}

int ext_inode_check_used(struct ext_fs *fs, uint32_t number)
{
	uint32_t group = (number - 1) / fs->super.s_inodes_per_group;
	uint32_t index = (number - 1) % fs->super.s_inodes_per_group;
	struct ext_group_desc descriptor;
	struct cached_block *bitmap;
	int error = ext_bitmap_get(fs, group, &descriptor, EXT_BITMAP_INODES, &bitmap);

	if (error)
		return error;
	if (ext_bits_find(bitmap->data, NULL, index, index + 1, true) != index)
		error =
		    ext_corrupt(fs, "inode bitmap", "group %u: inode %u is free", group, number);
	bcache_put(bitmap);
	return error;
}

/* The checksum of a bitmap of which these bits were turned over. Of a few bits it is computed from
 * the old one, which takes a tenth of the time. */
static uint32_t new_checksum(const struct ext_fs *fs, const struct about *of, const uint8_t *bits,
			     uint32_t first, uint32_t count)
{
	uint8_t turned[FEW] = { 0 };
	uint32_t byte = first / 8, length = (first % 8 + count + 7) / 8;

	if (!ext_has_checksums(fs))
		return 0;
	if (length > sizeof(turned))
		return checksum_of(fs, of, bits);
	fill(turned, first % 8, count, true);
	return of->checksum ^ crc32c_zeros(crc32c(0, turned, length), of->covered - byte - length);
}

int ext_bitmap_change(struct ext_fs *fs, uint32_t group, struct ext_group_desc *descriptor,
		      enum ext_bitmap kind, struct cached_block *bitmap, uint32_t first,
		      uint32_t count, bool value)
{
	struct about of = about(fs, group, descriptor, kind);

	if (count > of.bits || first > of.bits - count ||
	    ext_bits_find(bitmap->data, NULL, first, first + count, value) < first + count)
		return ext_corrupt(fs, of.name, "group %u: of %u to %u not all are %s", group,
				   first, first + count - 1, value ? "free" : "in use");
	int error = ext_change(fs, bitmap);

	if (error)
		return error;
	fill(bitmap->data, first, count, value);
	set_checksum(fs, descriptor, kind, new_checksum(fs, &of, bitmap->data, first, count));
	error = ext_group_write(fs, group, descriptor);
	if (error)
		fill(bitmap->data, first, count, !value);
	else if (kind == EXT_BITMAP_BLOCKS && group < fs->looked_at)
		fs->sure = value ? fs->sure - count : fs->sure + count;
	return error;
}

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
#include "fs/ext/groups.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"

#define FEW 16u /* bytes of a bitmap */

/* Thirty-two bits, those that are looked for as ones. A bit is 1 that is so in `a` or in `b`, which
 * may be NULL. */
static uint32_t bits_at(const uint32_t *a, const uint32_t *b, uint32_t at, bool value)
{
	uint32_t word = a[at / 32] | (b ? b[at / 32] : 0);

	return value ? word : ~word;
}

/* A word at a time: of a full group that is a thousand steps. What is before `from` in its word is
 * cut off by the shifts, and a hit after the end is none. */
uint32_t ext_bits_find(const void *a, const void *b, uint32_t from, uint32_t end, bool value)
{
	uint32_t word = from < end ? bits_at(a, b, from, value) >> from % 32 << from % 32 : 0;

	from &= ~31u;
	while (word == 0) {
		from += 32;
		if (from >= end)
			return end;
		word = bits_at(a, b, from, value);
	}
	from += (uint32_t)__builtin_ctz(word);
	return from < end ? from : end;
}

/* Sets or clears count bits, by bytes where it can: a run of a file may have a whole group's. */
static void set_bits(uint8_t *bits, uint32_t first, uint32_t count, bool value)
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

/* How many bits of a word are 1: sums of pairs, of fours, of bytes; the product has the sum of all
 * four bytes in its upper one. The instruction for it (POPCNT) came with SSE4.2. */
static uint32_t count_ones(uint32_t word)
{
	word -= word >> 1 & 0x55555555;
	word = (word & 0x33333333) + (word >> 2 & 0x33333333);
	word = (word + (word >> 4)) & 0x0F0F0F0F;
	return word * 0x01010101 >> 24;
}

/* How many of the first `count` bits are 0: what the descriptor says is free. */
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

/* Small descriptors have half of a checksum, the lower one. */
static uint32_t checksum_mask(const struct ext_fs *fs)
{
	return fs->summary.descriptor_size < EXT_DESCRIPTOR_LARGE ? 0xFFFF : 0xFFFFFFFF;
}

/* Of the bits that all groups have: the last, shorter one's are filled up with ones. */
static uint32_t checksum_of(const struct ext_bitmap *bitmap, const uint8_t *bits)
{
	return crc32c(bitmap->fs->seed, bits, bitmap->covered) & checksum_mask(bitmap->fs);
}

/* Into the copy of the descriptor only; ext_group_write puts that into its block. */
static void set_checksum(struct ext_bitmap *bitmap, uint32_t checksum)
{
	struct ext_group_desc *descriptor = &bitmap->descriptor;

	if (!ext_has_checksums(bitmap->fs))
		return;
	bitmap->checksum = checksum & checksum_mask(bitmap->fs);
	if (bitmap->kind == EXT_BITMAP_BLOCKS)
		EXT_PUT32(descriptor, bg_block_bitmap_csum, bitmap->checksum);
	else
		EXT_PUT32(descriptor, bg_inode_bitmap_csum, bitmap->checksum);
}

/* The next of the file system's own blocks among the first `end` of a group, from bit *from on:
 * bits *from to *to (exclusive, and more than *from). */
static bool own_bits(const struct ext_bitmap *bitmap, uint32_t end, uint32_t *from, uint32_t *to)
{
	uint64_t first = ext_group_first(bitmap->fs, bitmap->group);
	struct ext_own run;

	if (!ext_own_run(bitmap->fs, first + *from, first + end, &run))
		return false;
	*from = (uint32_t)(run.first - first);
	*to = (uint32_t)(run.end - first);
	return true;
}

/* Refuses a bitmap of blocks in which something of the file system itself is free: that would be
 * given to a file. */
static int check_own(const struct ext_bitmap *bitmap)
{
	for (uint32_t from = 0, to; own_bits(bitmap, bitmap->bits, &from, &to); from = to)
		if (ext_bits_find(bitmap->buffer->data, NULL, from, to, false) < to)
			return ext_corrupt(bitmap->fs, bitmap->name,
					   "group %u: blocks of the file system itself are free",
					   bitmap->group);
	return 0;
}

/* Refuses a bitmap of the disk that is not what its descriptor says. The checksum comes first: a
 * block of something else is named as such. -EBADMSG, -EUCLEAN. */
static int check_bitmap(const struct ext_bitmap *bitmap)
{
	const struct ext_fs *fs = bitmap->fs;
	uint32_t zeros = count_zeros(bitmap->buffer->data, bitmap->bits);
	uint32_t checksum = checksum_of(bitmap, bitmap->buffer->data);

	if (ext_has_checksums(fs) && checksum != bitmap->checksum) {
		ext_corrupt(fs, bitmap->name, "group %u: " EXT_CHECKSUM_WRONG, bitmap->group,
			    bitmap->checksum, checksum);
		return -EBADMSG;
	}
	if (zeros != bitmap->free)
		return ext_corrupt(fs, bitmap->name,
				   "group %u: %u free, but the descriptor says %u", bitmap->group,
				   zeros, bitmap->free);
	return bitmap->kind == EXT_BITMAP_BLOCKS ? check_own(bitmap) : 0;
}

/* A bitmap that was never written: of inodes all are free, of blocks all but the file system's own.
 */
static void make_bitmap(const struct ext_bitmap *bitmap)
{
	uint8_t *bits = bitmap->buffer->data;

	if (bitmap->kind == EXT_BITMAP_BLOCKS)
		for (uint32_t at = 0, to; own_bits(bitmap, bitmap->bits, &at, &to); at = to)
			set_bits(bits, at, to - at, true);
	set_bits(bits, bitmap->bits, bitmap->buffer->size * 8 - bitmap->bits, true);
}

/* Was it the last group, shorter, and without files? resize2fs leaves the bitmap of such a group
 * as it was: beyond the old end all is set, before it only what is the file system's own. */
static bool was_shorter(const struct ext_bitmap *bitmap, const uint8_t *bits)
{
	uint32_t end = bitmap->bits, own = 0;

	while (end > 0 && ext_bits_find(bits, NULL, end - 1, end, true) < end)
		end--;
	for (uint32_t from = 0, to; own_bits(bitmap, end, &from, &to); from = to)
		own += to - from;
	return bitmap->kind == EXT_BITMAP_BLOCKS && end > 0 && count_zeros(bits, end) + own == end;
}

/* Refuses the flag if the disk has the bitmap, with its checksum: the group is in use. */
static int check_never_written(const struct ext_bitmap *bitmap)
{
	const struct ext_fs *fs = bitmap->fs;
	struct cached_block *old;
	int error =
	    ext_has_checksums(fs) ? ext_block_read(fs, bitmap->block, BLOCK_OTHER, &old) : 0;

	if (error || !ext_has_checksums(fs))
		return error;
	bool is_there = checksum_of(bitmap, old->data) == bitmap->checksum &&
			count_zeros(old->data, bitmap->bits) != bitmap->free &&
			!was_shorter(bitmap, old->data);

	bcache_put(old);
	return is_there ? ext_corrupt(fs, bitmap->name, "group %u: new, but it is on the disk",
				      bitmap->group)
			: 0;
}

/* Makes a bitmap, and says so in the descriptor: a change, which the caller has begun. -EUCLEAN if
 * the flag contradicts the descriptor's counts; group 0 is never new, since the root is in it. */
static int get_new(struct ext_bitmap *bitmap)
{
	struct ext_fs *fs = bitmap->fs;
	int error = check_never_written(bitmap)
			?: bcache_get_zeroed(fs->device, bitmap->block, fs->summary.block_size,
					     &bitmap->buffer);

	if (error)
		return error;
	make_bitmap(bitmap);
	if (count_zeros(bitmap->buffer->data, bitmap->bits) != bitmap->free)
		return ext_corrupt(fs, bitmap->name,
				   "group %u: new, but the descriptor has %u of %u free",
				   bitmap->group, bitmap->free, bitmap->bits);
	if (bitmap->kind == EXT_BITMAP_INODES &&
	    (bitmap->group == 0 || EXT_GET32(&bitmap->descriptor, bg_used_dirs_count) > 0))
		return ext_corrupt(fs, bitmap->name, "group %u: new, but it has inodes",
				   bitmap->group);
	error = ext_change(fs, bitmap->buffer);
	if (error)
		return error;
	bitmap->descriptor.bg_flags &= (uint16_t)~bitmap->uninit;
	set_checksum(bitmap, crc32c(fs->seed, bitmap->buffer->data, bitmap->covered));
	return ext_group_write(fs, bitmap->group, &bitmap->descriptor);
}

/* Reads a bitmap, and checks it unless that was done while its block is in the cache: changes keep
 * it right. */
static int get_old(struct ext_bitmap *bitmap)
{
	if (!ext_range_valid(bitmap->fs, bitmap->block, 1))
		return ext_corrupt(bitmap->fs, bitmap->name,
				   "group %u: block %ju is outside the file system", bitmap->group,
				   bitmap->block);
	int error = ext_block_read(bitmap->fs, bitmap->block, BLOCK_OTHER, &bitmap->buffer);

	return error || bitmap->buffer->verified ? error : check_bitmap(bitmap);
}

/* Kept as one number for both kinds; there are at most EXT_BAD, so a list is enough. */
bool ext_bitmap_is_bad(const struct ext_fs *fs, uint32_t group, enum ext_bitmap_kind kind)
{
	for (unsigned i = 0; i < fs->bad_count; i++)
		if (fs->bad[i] == group * 2 + kind)
			return true;
	return false;
}

/* From here on its free blocks cannot be had: they leave the counts that reservations rely on
 * (fs/ext/reserve.c). */
void ext_bitmap_note_bad(struct ext_fs *fs, uint32_t group, enum ext_bitmap_kind kind,
			 uint32_t free)
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

/* A sector that cannot be read is as bad as a wrong one, if there are other groups to go to. */
void ext_bitmap_note_unreadable(struct ext_fs *fs, uint32_t group, enum ext_bitmap_kind kind,
				int error)
{
	struct ext_group_desc descriptor;

	if (error == -EIO && fs->summary.groups > 1 && ext_group_read(fs, group, &descriptor) == 0)
		ext_bitmap_note_bad(fs, group, kind, EXT_GET32(&descriptor, bg_free_blocks_count));
}

/* What the descriptor says of it; nothing of the bitmap itself is read. */
int ext_bitmap_find(struct ext_fs *fs, uint32_t group, enum ext_bitmap_kind kind,
		    struct ext_bitmap *out)
{
	const struct ext_group_desc *of = &out->descriptor;
	bool blocks = kind == EXT_BITMAP_BLOCKS;
	uint32_t inodes = fs->super.s_inodes_per_group;

	out->fs = fs;
	out->group = group;
	out->kind = kind;
	out->buffer = NULL;
	int error = ext_group_read(fs, group, &out->descriptor);

	if (error)
		return error;
	out->name = blocks ? "block bitmap" : "inode bitmap";
	out->block = blocks ? EXT_GET64(of, bg_block_bitmap) : EXT_GET64(of, bg_inode_bitmap);
	out->bits = blocks ? ext_group_blocks(fs, group) : inodes;
	out->covered = (blocks ? fs->super.s_blocks_per_group : inodes) / 8;
	out->free =
	    blocks ? EXT_GET32(of, bg_free_blocks_count) : EXT_GET32(of, bg_free_inodes_count);
	out->checksum =
	    blocks ? EXT_GET32(of, bg_block_bitmap_csum) : EXT_GET32(of, bg_inode_bitmap_csum);
	out->uninit = blocks ? EXT_GROUP_BLOCK_UNINIT : EXT_GROUP_INODE_UNINIT;
	return 0;
}

/* -EUCLEAN, -EBADMSG, or the device's error: then there is no buffer, and a wrong bitmap is noted.
 */
int ext_bitmap_open(struct ext_bitmap *bitmap)
{
	struct ext_fs *fs = bitmap->fs;

	if (ext_bitmap_is_bad(fs, bitmap->group, bitmap->kind))
		return -EUCLEAN;
	bool is_new = ext_has_group_checksums(fs) && bitmap->descriptor.bg_flags & bitmap->uninit &&
		      ext_range_valid(fs, bitmap->block, 1);
	int error = is_new ? get_new(bitmap) : get_old(bitmap);

	if (!error) {
		bitmap->buffer->verified = true;
		return 0;
	}
	bcache_put(bitmap->buffer);
	bitmap->buffer = NULL;
	if (error == -EUCLEAN || error == -EBADMSG)
		ext_bitmap_note_bad(fs, bitmap->group, bitmap->kind, bitmap->free);
	return error;
}

/* Both steps at once, for who needs the bits in any case. The buffer is the caller's to put, also
 * after an error (then it is NULL). */
int ext_bitmap_get(struct ext_fs *fs, uint32_t group, enum ext_bitmap_kind kind,
		   struct ext_bitmap *out)
{
	int error = ext_bitmap_find(fs, group, kind, out);

	return error ? error : ext_bitmap_open(out);
}

/* For who looks for free blocks: a full group's bitmap is not even read. */
int ext_bitmap_get_free(struct ext_fs *fs, uint32_t group, struct ext_bitmap *out)
{
	int error = ext_bitmap_find(fs, group, EXT_BITMAP_BLOCKS, out);

	return error || out->free == 0 ? error : ext_bitmap_open(out);
}

/* For what names an inode on the disk: one that its bitmap has as free would be handed out again,
 * while it is in use. -EUCLEAN. */
int ext_inode_check_used(struct ext_fs *fs, uint32_t number)
{
	uint32_t index, group = ext_group_of_inode(fs, number, &index);
	struct ext_bitmap bitmap;
	int error = ext_bitmap_get(fs, group, EXT_BITMAP_INODES, &bitmap);

	if (error)
		return error;
	if (ext_bits_find(bitmap.buffer->data, NULL, index, index + 1, true) != index)
		error = ext_corrupt(fs, bitmap.name, "group %u: inode %u is free", group, number);
	return bcache_done(bitmap.buffer, error);
}

/* The checksum of a bitmap of which these bits were turned over. Of a few bits it is computed from
 * the old one, which takes a tenth of the time. */
static uint32_t new_checksum(const struct ext_bitmap *bitmap, uint32_t first, uint32_t count)
{
	uint8_t turned[FEW] = { 0 };
	uint32_t byte = first / 8, length = (first % 8 + count + 7) / 8;

	if (!ext_has_checksums(bitmap->fs))
		return 0;
	if (length > sizeof(turned))
		return checksum_of(bitmap, bitmap->buffer->data);
	set_bits(turned, first % 8, count, true);
	return bitmap->checksum ^
	       crc32c_zeros(crc32c(0, turned, length), bitmap->covered - byte - length);
}

int ext_bitmap_change(struct ext_bitmap *bitmap, uint32_t first, uint32_t count, bool value)
{
	struct ext_fs *fs = bitmap->fs;
	uint8_t *bits = bitmap->buffer->data;

	if (count > bitmap->bits || first > bitmap->bits - count ||
	    ext_bits_find(bits, NULL, first, first + count, value) < first + count)
		return ext_corrupt(fs, bitmap->name, "group %u: of %u to %u not all are %s",
				   bitmap->group, first, first + count - 1,
				   value ? "free" : "in use");
	int error = ext_change(fs, bitmap->buffer);

	if (error)
		return error;
	set_bits(bits, first, count, value);
	set_checksum(bitmap, new_checksum(bitmap, first, count));
	error = ext_group_write(fs, bitmap->group, &bitmap->descriptor);
	if (error)
		set_bits(bits, first, count, !value);
	else if (bitmap->kind == EXT_BITMAP_BLOCKS && bitmap->group < fs->looked_at)
		fs->sure = value ? fs->sure - count : fs->sure + count;
	return error;
}

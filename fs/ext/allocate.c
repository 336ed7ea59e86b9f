/*
 * Allocation of blocks: near the goal, in runs, and so that growing files stay in one piece.
 *
 * The goal is the block after the file's last one. If it is free, that is the answer. Otherwise the
 * file gets a free run as long as it is itself (at least 8 blocks, at most 1024), and what it does
 * not need yet is its window: others leave it alone while there is room elsewhere. Two files that
 * grow at the same time, a block each turn, from a disk that is free from 100 on:
 *
 *	A 100    B 101		the first blocks
 *	A 102    window 103-110	101 is B's; a run of 1 + 8
 *	B 111    window 112-119	102 is A's, and what follows is A's window
 *	A 103 to 110, B 112 to 119
 *	A 120, window 121-130	...: twenty blocks in three pieces, not in twenty
 *
 * The groups are searched from the goal's on: for such a run, for shorter ones, for any free block.
 *
 * A block that the open transaction has freed is not given out before its commit: after a power cut
 * the old file would have it back, with another's contents. struct ext_pending has such blocks.
 *
 * A group whose bitmap is damaged, or cannot be read, counts as full; with no other left the error
 * is -ENOSPC, or -EIO. What others have reserved is not free, either: reserve.c.
 *
 * Bitmap, descriptor and superblock change in one transaction; what fails has changed nothing.
 */
#include "fs/ext/allocation.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "mm/page_alloc.h"

#define WINDOW_LEAST 8u /* blocks */
#define WINDOW_MOST  1024u

/* What is looked for, and what was found. */
struct search {
	struct ext_inode *inode;
	uint32_t count;	 /* blocks to take, at most */
	uint32_t window; /* free ones after them that the file would like */
	uint32_t least;	 /* blocks of a run */
	bool any;	 /* in windows of others, too */
	bool exact;	 /* only where the search begins */
	int nothing;	 /* the error if none is found: -ENOSPC, or that of a group not read */
	uint64_t first;	 /* block taken */
};

uint64_t ext_reserved_blocks(const struct ext_fs *fs)
{
	return ext_halves(fs, fs->super.s_r_blocks_count_lo, fs->super.s_r_blocks_count_hi);
}

uint64_t ext_sure_blocks(const struct ext_fs *fs)
{
	uint64_t blocks = ext_free_blocks(fs);

	return fs->sure < blocks ? fs->sure : blocks;
}

/* Changes a group's count of free blocks, in a copy of its descriptor. */
static void count_free(struct ext_group_desc *descriptor, int change)
{
	uint32_t in_group = EXT_GET32(descriptor, bg_free_blocks_count) + (uint32_t)change;

	EXT_PUT32(descriptor, bg_free_blocks_count, in_group);
}

void ext_count_free(struct ext_fs *fs, uint64_t blocks)
{
	struct ext_super_block *super = &fs->super;

	super->s_free_blocks_count_lo = (uint32_t)blocks;
	if (ext_has_incompat(fs, EXT_INCOMPAT_64BIT))
		super->s_free_blocks_count_hi = (uint32_t)(blocks >> 32);
	fs->super_changed = true;
}

static void count_super(struct ext_fs *fs, int change)
{
	const struct ext_super_block *super = &fs->super;
	uint64_t free =
	    ext_halves(fs, super->s_free_blocks_count_lo, super->s_free_blocks_count_hi);

	ext_count_free(fs, free + (uint64_t)(int64_t)change);
}

/* ---- blocks that wait for the commit ---- */

static struct ext_pending *find_pending(struct ext_fs *fs, uint32_t group)
{
	for (unsigned i = 0; i < fs->pending_count; i++)
		if (fs->pending[i].group == group)
			return &fs->pending[i];
	return NULL;
}

/* Those of a group, as a bitmap; NULL: there are none. */
static const uint8_t *pending_bits(struct ext_fs *fs, uint32_t group)
{
	const struct ext_pending *pending = find_pending(fs, group);

	return pending ? pending->bits : NULL;
}

/* Without room to note them nothing more may be allocated before the commit (pending_lost), which
 * the next change begins with. */
static void note_pending(struct ext_fs *fs, uint32_t group, uint32_t first, uint32_t count)
{
	struct ext_pending *pending = find_pending(fs, group);

	if (!fs->journal)
		return;
	if (!pending && fs->pending_count < EXT_PENDING) {
		pending = &fs->pending[fs->pending_count];
		*pending = (struct ext_pending){ .group = group, .bits = page_alloc(0) };
		if (pending->bits) {
			memset(pending->bits, 0, PAGE_SIZE);
			fs->pending_count++;
		}
	}
	if (!pending || !pending->bits) {
		fs->pending_lost = true;
		return;
	}
	fs->pending_blocks += count;
	for (uint32_t bit = first; bit < first + count; bit++)
		pending->bits[bit / 8] |= (uint8_t)(1u << bit % 8);
}

void ext_pending_clear(struct ext_fs *fs)
{
	while (fs->pending_count > 0)
		page_free(fs->pending[--fs->pending_count].bits, 0);
	fs->pending_blocks = 0;
	fs->pending_lost = false;
}

/* ---- windows ---- */

/* The window of somebody else that a run would touch first; NULL: none. */
static const struct ext_window *window_in(const struct ext_inode *inode, uint64_t first,
					  uint64_t end)
{
	const struct ext_window *found = NULL;

	for (unsigned i = 0; i < EXT_WINDOWS; i++) {
		const struct ext_window *window = &inode->fs->windows[i];

		if (window->inode == 0 || window->inode == inode->number || window->end <= first ||
		    window->first >= end)
			continue;
		if (!found || window->first < found->first)
			found = window;
	}
	return found;
}

/* How many blocks a growing file should find free after those that it asks for. */
static uint32_t window_size(const struct ext_inode *inode)
{
	uint64_t blocks = inode->blocks >> (inode->fs->block_shift - 9);

	if (!ext_is_regular(inode) || blocks == 0)
		return 0;
	if (blocks < WINDOW_LEAST)
		return WINDOW_LEAST;
	return blocks < WINDOW_MOST ? (uint32_t)blocks : WINDOW_MOST;
}

/* A file has one window; the oldest of all goes when there are too many. */
static void set_window(const struct ext_inode *inode, uint64_t first, uint32_t size)
{
	struct ext_fs *fs = inode->fs;
	struct ext_window *window = NULL;

	for (unsigned i = 0; i < EXT_WINDOWS; i++)
		if (fs->windows[i].inode == inode->number)
			window = &fs->windows[i];
	if (!window)
		window = &fs->windows[fs->next_window++ % EXT_WINDOWS];
	*window = (struct ext_window){ inode->number, first, first + size };
}

/* ---- allocation ---- */

/* Searches a group's bitmap from a bit on. Returns the length of the run found, or 0. */
static uint32_t find_run(const struct search *search, uint32_t group, const uint8_t *used,
			 uint32_t from, uint32_t *first)
{
	struct ext_fs *fs = search->inode->fs;
	const uint8_t *also = pending_bits(fs, group);
	uint64_t base = ext_group_first(fs, group);
	uint32_t blocks = ext_group_blocks(fs, group), most = search->count + search->window;

	for (uint32_t begin = from; begin < blocks;) {
		uint32_t start = ext_bits_find(used, also, begin, blocks, false);
		uint32_t limit = blocks - start < most ? blocks : start + most;
		uint32_t end = ext_bits_find(used, also, start, limit, true);
		const struct ext_window *window =
		    search->any ? NULL : window_in(search->inode, base + start, base + end);

		if (search->exact && start != from)
			break;
		if (window)
			end = window->first <= base + start ? start
							    : (uint32_t)(window->first - base);
		*first = start;
		if (end > start && end - start >= search->least)
			return end - start;
		begin = window ? (uint32_t)(window->end - base) : end;
	}
	return 0;
}

/* EXERCISE S4 (allocation and the write path), its first part: try_group takes blocks of one group
   for search->inode. Returns how many, 0 if the group has no such run, or an error.

   - find_run looks from bit `from` on. What it finds may be longer than search->count: the rest is
     the file's window (set_window), if the search wants one (search->window).
   - what was taken is counted: in the group's descriptor, in the superblock (count_super), and in
     inode->blocks, which counts sectors of 512 bytes. search->first becomes the first block.
   - given: ext_bitmap_find reads the descriptor: bitmap.free blocks, and a copy of it, in which
     count_free changes their number; ext_bitmap_open gets the bits, in bitmap.buffer, referenced;
     ext_bitmap_change sets bits, and writes the copy, whose counts you have changed before.

   Pitfalls: a full group needs no bitmap. When ext_bitmap_change fails, nothing has changed: count
   nothing. The bitmap goes back on every way out. */
/* SOLUTION S4 { */
static int try_group(struct search *search, uint32_t group, uint32_t from)
{
	struct ext_fs *fs = search->inode->fs;
	struct ext_bitmap bitmap;
	uint32_t start;
	int error = ext_bitmap_find(fs, group, EXT_BITMAP_BLOCKS, &bitmap);

	if (error || bitmap.free == 0)
		return error;
	error = ext_bitmap_open(&bitmap);
	if (error)
		return error;
	uint32_t found = find_run(search, group, bitmap.buffer->data, from, &start);
	uint32_t taken = found < search->count ? found : search->count;

	if (taken > 0) {
		count_free(&bitmap.descriptor, -(int)taken);
		error = ext_bitmap_change(&bitmap, start, taken, true);
	}
	if (taken > 0 && !error) {
		search->first = ext_group_first(fs, group) + start;
		count_super(fs, -(int)taken);
		search->inode->blocks += (uint64_t)taken << (fs->block_shift - 9);
		if (search->window > 0)
			set_window(search->inode, search->first + taken, found - taken);
	}
	bcache_put(bitmap.buffer);
	return error ? error : (int)taken;
}
/* } SOLUTION S4 */

int ext_free_run(struct ext_fs *fs, uint64_t from, uint64_t end, uint64_t *first)
{
	uint32_t index, group = ext_group_of(fs, from, &index),
			blocks = ext_group_blocks(fs, group);
	struct ext_bitmap bitmap;
	int error = ext_begin(fs, EXT_CREDITS);

	if (error)
		return error;
	*first = ext_group_first(fs, group) + blocks;
	error = ext_bitmap_get_free(fs, group, &bitmap);
	if (bitmap.buffer) {
		const uint8_t *bits = bitmap.buffer->data, *also = pending_bits(fs, group);

		blocks = ext_shorter(blocks, end - ext_group_first(fs, group));
		index = ext_bits_find(bits, also, index, blocks, false);
		*first = ext_group_first(fs, group) + index;
		blocks = ext_bits_find(bits, also, index, blocks, true) - index;
	}
	bcache_put(bitmap.buffer);
	ext_end(fs, 0);
	if (!bitmap.buffer)
		return error && !ext_is_left_alone(fs, group) ? error : 0;
	return (int)blocks;
}

/* A damaged group has no run, nor has one that cannot be read. */
static int try_if_sound(struct search *search, uint32_t group, uint32_t from)
{
	int got = try_group(search, group, from);

	ext_bitmap_note_unreadable(search->inode->fs, group, EXT_BITMAP_BLOCKS, got);
	if (got == -EIO)
		search->nothing = got;
	return got < 0 && ext_is_left_alone(search->inode->fs, group) ? 0 : got;
}

/* All groups, from the goal's on; that one comes again at the end, from its beginning. */
static int try_groups(struct search *search, uint64_t goal)
{
	const struct ext_fs *fs = search->inode->fs;
	uint32_t index, group = ext_group_of(fs, goal, &index);
	int got = 0;

	for (uint32_t tried = 0; tried <= fs->summary.groups && got == 0; tried++) {
		got = try_if_sound(search, group, index);
		index = 0;
		group = group + 1 < fs->summary.groups ? group + 1 : 0;
	}
	return got;
}

/* First exactly at the goal, then a long run, then shorter ones, then anything. */
static int search_all(struct search *search, uint64_t goal)
{
	uint32_t index, group = ext_group_of(search->inode->fs, goal, &index);

	search->least = 1;
	search->exact = true;
	int got = try_if_sound(search, group, index);

	search->exact = false;
	search->least = search->count + search->window;
	for (; got == 0 && search->least > 0; search->least /= 8)
		got = try_groups(search, goal);
	if (got != 0)
		return got;
	search->any = true;
	search->least = 1;
	return try_groups(search, goal);
}

/* What was reserved is only for those who reserved it. */
static uint64_t room_for(const struct ext_inode *inode)
{
	const uint64_t *reserved = inode->fs->options.reserved;
	uint64_t sure = ext_sure_blocks(inode->fs);

	if (!reserved || *reserved == 0 || inode->has_reserved)
		return ext_free_blocks(inode->fs);
	return sure > *reserved ? sure - *reserved : 0;
}

static int allocate(struct search *search, uint64_t goal)
{
	struct ext_fs *fs = search->inode->fs;
	uint64_t room = room_for(search->inode);

	search->nothing = -ENOSPC;
	if (room == 0 || fs->pending_lost)
		return room == 0 ? -ENOSPC : -ENOMEM;
	if (!ext_range_valid(fs, goal, 1))
		goal = fs->super.s_first_data_block + 1;
	search->count = ext_shorter(search->count, room);
	search->count = ext_shorter(search->count, fs->super.s_blocks_per_group);
	int got = search_all(search, goal);

	return got == 0 ? search->nothing : got;
}

int ext_blocks_allocate(struct ext_inode *inode, uint64_t goal, uint32_t count, uint64_t *first)
{
	struct search search = { .inode = inode, .count = count, .window = window_size(inode) };
	int got = allocate(&search, goal);

	*first = search.first;
	return got;
}

uint32_t ext_blocks_to_group_end(const struct ext_fs *fs, uint64_t block)
{
	uint32_t index;

	ext_group_of(fs, block, &index);
	return fs->super.s_blocks_per_group - index;
}

static int free_in_group(struct ext_fs *fs, uint32_t group, uint32_t index, uint32_t count)
{
	struct ext_bitmap bitmap;
	int error = ext_bitmap_get(fs, group, EXT_BITMAP_BLOCKS, &bitmap);

	if (error)
		return error;
	count_free(&bitmap.descriptor, (int)count);
	error = bcache_done(bitmap.buffer, ext_bitmap_change(&bitmap, index, count, false));
	if (error)
		return error;
	count_super(fs, (int)count);
	note_pending(fs, group, index, count);
	return 0;
}

void ext_count_freed(struct ext_inode *inode, uint32_t count)
{
	uint64_t sectors = (uint64_t)count << (inode->fs->block_shift - 9);

	inode->blocks -= sectors < inode->blocks ? sectors : inode->blocks;
}

int ext_blocks_free(struct ext_inode *inode, uint64_t first, uint32_t count, bool metadata)
{
	struct ext_fs *fs = inode->fs;
	uint32_t index, group = ext_group_of(fs, first, &index);
	int error = ext_check_run(inode, first, count);

	if (error)
		return error;
	error = free_in_group(fs, group, index, count);
	if (error && !ext_is_left_alone(fs, group))
		return error;
	ext_count_freed(inode, count);
	return metadata ? ext_forget(fs, first, count) : 0;
}

/* A block of which the cache has contents that somebody uses, or that are on their way to the disk,
 * is not free, whatever the bitmap said: perhaps it is a node of the very map that grows. */
static int check_unused(const struct ext_inode *inode, uint64_t block)
{
	const struct ext_fs *fs = inode->fs;
	struct cached_block *cached = bcache_find(fs->device, block, fs->summary.block_size);
	bool used = cached && (cached->references > 1 || cached->transaction);

	bcache_put(cached);
	return used ? ext_corrupt_inode(inode, "block %ju was free, and is in use", block) : 0;
}

int ext_metadata_allocate(struct ext_inode *inode, uint64_t goal, struct cached_block **out)
{
	struct ext_fs *fs = inode->fs;
	struct search search = { .inode = inode, .count = 1 };
	int got = allocate(&search, goal);

	if (got < 0)
		return got;
	uint64_t block = search.first;
	int error = check_unused(inode, block);

	if (error) { /* its bitmap is right now */
		ext_count_freed(inode, 1);
		return error;
	}
	error = bcache_get_zeroed(fs->device, block, fs->summary.block_size, out);
	if (!error) {
		(*out)->is_first = !fs->journal; /* before the inode that gets it */
		error = ext_change_or_put(fs, *out);
	}
	if (error)
		ext_blocks_free(inode, block, 1, true);
	return error;
}

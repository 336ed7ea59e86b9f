/*
 * The file system's own blocks, which no file may have.
 *
 * These are the copies of the superblock and of the descriptors, each group's two bitmaps and inode
 * table, and the journal. Where they are is read once, at the mount, into an array of runs, sorted,
 * of which no two overlap:
 *
 *	group 0			group 1			the journal
 *	0-129 130 131 132-643	32768-32897 ...		66048-70143
 *
 * So one binary search tells whether a block that a map names is one of them; and two tables that
 * overlap, of any two groups, are found as soon as the second one comes. A run that begins where
 * another ends makes that one longer: with flex_bg 16 groups need four runs.
 */
#include "fs/ext/groups.h"
#include "fs/jbd2/journal.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "mm/page_alloc.h"

/* Pages, as a power of two: 4 MiB, for 262,144 runs. */
#define ORDER_MAX 10u

/* The first run that ends after a block, by binary search; all runs, if none does. */
static uint32_t place_of(const struct ext_fs *fs, uint64_t block)
{
	uint32_t first = 0, end = fs->own_count;

	while (first < end) {
		uint32_t middle = first + (end - first) / 2;

		if (fs->own[middle].end > block)
			end = middle;
		else
			first = middle + 1;
	}
	return first;
}

/* The first run that has a block of [first, end), cut to that range. */
bool ext_own_run(const struct ext_fs *fs, uint64_t first, uint64_t end, struct ext_own *out)
{
	uint32_t place = place_of(fs, first);

	if (first >= end || place == fs->own_count || fs->own[place].first >= end)
		return false;
	*out = fs->own[place];
	if (out->first < first)
		out->first = first;
	if (out->end > end)
		out->end = end;
	return true;
}

/* For every run that a map or a descriptor names, before it is read or freed. */
int ext_check_run(const struct ext_inode *inode, uint64_t first, uint32_t count)
{
	struct ext_own own;

	if (!ext_range_valid(inode->fs, first, count))
		return ext_corrupt_inode(inode, "%u blocks from %ju on are outside the file system",
					 count, first);
	if (ext_own_run(inode->fs, first, first + count, &own))
		return ext_corrupt_inode(inode, "%u blocks from %ju on are the file system's own",
					 count, first);
	return 0;
}

/* Before it is found again, and with the mount's end. */
void ext_own_forget(struct ext_fs *fs)
{
	if (fs->own)
		page_free(fs->own, fs->own_order);
	fs->own = NULL;
	fs->own_count = 0;
}

/* Makes room for one run more: twice as many pages, and what is there is copied. -ENOMEM also for
 * more runs than any real disk has. */
static int grow_own_runs(struct ext_fs *fs)
{
	size_t size = fs->own ? (size_t)PAGE_SIZE << fs->own_order : 0;
	unsigned order = fs->own ? fs->own_order + 1 : 0;
	struct ext_own *larger;

	if ((fs->own_count + 1) * sizeof(*larger) <= size)
		return 0;
	larger = order <= ORDER_MAX ? page_alloc(order) : NULL;
	if (!larger)
		return -ENOMEM;
	if (size > 0) {
		memcpy(larger, fs->own, size);
		page_free(fs->own, fs->own_order);
	}
	fs->own = larger;
	fs->own_order = order;
	return 0;
}

/* -EUCLEAN if they are not in the file system, or some are there already. */
static int add_own_run(struct ext_fs *fs, uint64_t first, uint32_t count)
{
	uint32_t place = place_of(fs, first);
	struct ext_own added = { first, first + count };
	int error = grow_own_runs(fs);

	if (error || count == 0)
		return error;
	struct ext_own *at = &fs->own[place];

	if (added.end > fs->summary.blocks || added.end < first ||
	    (place < fs->own_count && at->first < added.end))
		return -EUCLEAN;
	if (place > 0 && at[-1].end == first) {
		at[-1].end = added.end;
	} else if (place < fs->own_count && at->first == added.end) {
		at->first = first;
	} else {
		memmove(at + 1, at, (fs->own_count++ - place) * sizeof(*at));
		*at = added;
	}
	return 0;
}

/* ---- what a mount has ---- */

/* Whether a table is in its own group, where it must be without flex_bg. */
static bool is_in(const struct ext_fs *fs, uint32_t group, uint64_t first, uint32_t count)
{
	uint64_t begin = ext_group_first(fs, group), end = begin + ext_group_blocks(fs, group);

	return first >= begin && first < end && count <= end - first;
}

/* The copies at the beginning of a group, and its tables; the inode table was checked. */
static int add_group(struct ext_fs *fs, uint32_t group, const struct ext_group_desc *of)
{
	const struct {
		uint64_t first;
		uint32_t count;
	} tables[] = {
		{ EXT_GET64(of, bg_block_bitmap), 1 },
		{ EXT_GET64(of, bg_inode_bitmap), 1 },
		{ EXT_GET64(of, bg_inode_table), ext_table_blocks(fs) },
	};
	int error = 0;

	for (unsigned i = 0; i < sizeof(tables) / sizeof(tables[0]) && !error; i++) {
		if (!ext_has_incompat(fs, EXT_INCOMPAT_FLEX_BG) &&
		    !is_in(fs, group, tables[i].first, tables[i].count))
			return -EUCLEAN;
		error = add_own_run(fs, tables[i].first, tables[i].count);
	}
	return error;
}

/* Superblocks and descriptors. The copies come first: without flex_bg, too, a table may be in a
 * later group's. */
static int add_superblock_copies(struct ext_fs *fs)
{
	int error = 0;

	for (uint32_t group = 0; group < fs->summary.groups && !error; group++)
		error = add_own_run(fs, ext_group_first(fs, group), ext_group_overhead(fs, group));
	return error;
}

/* The journal's blocks are known once it is open. -EUCLEAN if others have them. */
int ext_own_add_journal(struct ext_fs *fs)
{
	uint64_t first;
	uint32_t count;
	int error = 0;

	for (uint32_t i = 0; fs->journal && !error && journal_piece(fs->journal, i, &first, &count);
	     i++)
		error = add_own_run(fs, first, count);
	if (error == -EUCLEAN)
		return ext_corrupt(fs, "journal", "%u blocks from %ju on are something else's",
				   count, first);
	return error;
}

/* Two groups that overlap are noted: a mount that only reads can do without. */
static int find_own_of_group(struct ext_fs *fs, uint32_t group)
{
	struct ext_group_desc of;
	uint64_t table;
	int error = ext_inode_table(fs, group, &table) ?: ext_group_read(fs, group, &of);

	if (error)
		return error;
	error = add_group(fs, group, &of);
	if (error != -EUCLEAN)
		return error;
	if (fs->wrong_group == 0)
		fs->wrong_group = group + 1;
	return 0;
}

/* At the mount, and again after a replay. -EUCLEAN, -ENOMEM, or the drive's error. */
int ext_own_find(struct ext_fs *fs)
{
	ext_own_forget(fs);
	memset(fs->tables, 0, sizeof(fs->tables)); /* a replay may have brought other descriptors */
	fs->wrong_group = 0;
	/* what is noted grows with the number of groups, and has an end: ORDER_MAX */
	int error = add_superblock_copies(fs);

	for (uint32_t group = 0; group < fs->summary.groups && !error; group++)
		error = find_own_of_group(fs, group);
	return error ? error : ext_own_add_journal(fs);
}

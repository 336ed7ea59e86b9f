/*
 * Reading directories: their names one after the other, with positions to go on from.
 *
 * A position must remain valid while names come and go, and a hash tree moves names when it splits
 * a block. What never changes about a name is its hash. So a directory that is a tree, or may
 * become one, is read in the order of hashes; any other in the order of its bytes, where names do
 * not move:
 *
 *	position	bytes				hashes
 *	0		the first entry			hash 0; "." has it
 *	1						hash 2; ".." has it
 *	12		the entry at byte 12
 *	3e214005	the entry there, or after it	hash 7c42800a, half of it: bit 0 is always 0
 *	7fffffff					the end
 *
 * All fit 31 bits, which old programs rely on. Names with the same hash are rare; their order is
 * that of a checksum of the name, and a position between two of them has it in bits 31 to 62.
 *
 * A batch is a block of names, and those after it that share its last hash: of the names from the
 * position on the first 256 are sorted in a page. If there are more, the batch is repeated from
 * where it came to. So each name that was there all the time is seen once. The mount's lock is held
 * all the while; visits must not change the directory. May wait for the drive.
 */
#include "fs/ext/directories.h"
#include "kernel/lib/errno.h"
#include "mm/page_alloc.h"

#define POSITION_BITS 31
#define POSITION_END  0x7FFFFFFFu
#define HASH_OF_UP    2u /* ".." must be in the batch that has this hash */

/* The place of a name in the order: half of its hash above, and a checksum of 31 bits below. */
static uint64_t order_of(uint64_t position)
{
	return (position & POSITION_END) << 32 | position >> POSITION_BITS;
}

static uint64_t position_of(uint64_t order)
{
	return order >> 32 | (order & UINT32_MAX) << POSITION_BITS;
}

struct sorted_name {
	uint64_t order;
	uint32_t logical; /* block of the directory */
	uint32_t at;	  /* of the entry in it */
};

#define BATCH (PAGE_SIZE / sizeof(struct sorted_name))

typedef int visitor(void *context, const char *name, uint32_t inode, uint8_t type);

/* A call's question, and what is sorted meanwhile. */
struct listing {
	const struct ext_inode *directory;
	uint64_t *position; /* the caller's: a visit may look at it */
	visitor *visit;
	void *context;
	/* In the order of hashes: */
	struct sorted_name *names; /* a batch, ascending */
	unsigned count;
	uint64_t first; /* the order to begin from */
	bool is_cut;	/* there were more */
	uint8_t version;
};

/* Copies the name, which has no NUL on disk, and does not outlive its block. The position moves to
 * `next`, unless the entry is not taken. */
static int visit_entry(const struct listing *listing, const struct ext_dir_entry_2 *entry,
		       uint64_t next)
{
	bool typed = ext_has_incompat(listing->directory->fs, EXT_INCOMPAT_FILETYPE);
	uint64_t before = *listing->position;
	char name[EXT_NAME_MAX + 1];

	*listing->position = next;
	if (entry->inode == 0)
		return 0;
	memcpy(name, entry->name, entry->name_len);
	name[entry->name_len] = '\0';
	int result =
	    listing->visit(listing->context, name, entry->inode, typed ? entry->file_type : 0);

	if (result != 0)
		*listing->position = before;
	return result;
}

/* ---- in the order of bytes ---- */

static int list_name(void *context, const struct ext_dir_entry_2 *entry, uint32_t logical,
		     uint32_t at)
{
	struct listing *listing = context;
	uint64_t place = ((uint64_t)logical << listing->directory->fs->block_shift) + at;

	return place < *listing->position ? 0 : visit_entry(listing, entry, place + entry->rec_len);
}

/* From the position on, which moves. */
static int list_blocks(struct listing *listing)
{
	const struct ext_inode *directory = listing->directory;
	uint64_t first = *listing->position >> directory->fs->block_shift;

	return ext_directory_walk_from(directory, first, list_name, listing);
}

int ext_list(const struct ext_inode *directory, visitor *visit, void *context)
{
	uint64_t position = 0;
	struct listing listing = {
		.directory = directory, .position = &position, .visit = visit, .context = context
	};

	return ext_is_directory(directory) ? list_blocks(&listing) : -ENOTDIR;
}

/* ---- in the order of hashes ---- */

static uint64_t order_of_name(const struct listing *listing, const struct ext_name *name)
{
	const struct ext_fs *fs = listing->directory->fs;

	if (ext_is_dots(name))
		return (uint64_t)(name->length - 1) << 32;
	return (uint64_t)ext_name_hash(fs, listing->version, name) << 31 |
	       (crc32c(~0u, name->text, name->length) >> 1 | 1);
}

/* An entry's place in the batch; the last one makes room if it must. */
static int sort_entry(void *context, const struct ext_dir_entry_2 *entry, uint32_t logical,
		      uint32_t at)
{
	struct listing *listing = context;
	struct ext_name name = { entry->name, entry->name_len };
	struct sorted_name new = { .logical = logical, .at = at };
	unsigned place = listing->count;

	if (entry->inode == 0)
		return 0;
	new.order = order_of_name(listing, &name);
	if (new.order < listing->first)
		return 0;
	if (listing->count < BATCH)
		listing->count++;
	else
		listing->is_cut = true;
	if (place == BATCH && listing->names[--place].order <= new.order)
		return 0;
	for (; place > 0 && listing->names[place - 1].order > new.order; place--)
		listing->names[place] = listing->names[place - 1];
	listing->names[place] = new;
	return 0;
}

/* Where the batch has come to after entry `index`: further names of the same hash are next. */
static uint64_t order_after(const struct listing *listing, unsigned index)
{
	const struct sorted_name *names = listing->names;
	bool more = index + 1 < listing->count
			? names[index + 1].order >> 32 == names[index].order >> 32
			: listing->is_cut;

	return more ? names[index].order + 1 : ((names[index].order >> 32) + 1) << 32;
}

/* The entry is checked again: the block may have been read again. */
static int visit_name(const struct listing *listing, unsigned index, uint8_t *data)
{
	const struct ext_inode *directory = listing->directory;
	const struct sorted_name *name = &listing->names[index];
	uint32_t end = ext_directory_end(directory, name->logical, data);
	const struct ext_dir_entry_2 *entry =
	    name->at < end ? ext_entry_at(directory, data, name->at, end) : NULL;

	return entry ? visit_entry(listing, entry, position_of(order_after(listing, index)))
		     : -EUCLEAN;
}

static int visit_batch(const struct listing *listing)
{
	struct cached_block *buffer;
	int result = 0;

	for (unsigned i = 0; i < listing->count && result == 0; i++) {
		result =
		    ext_directory_block(listing->directory, listing->names[i].logical, &buffer);
		if (!result)
			result = bcache_done(buffer, visit_name(listing, i, buffer->data));
	}
	return result;
}

/* Collects the names from the position on of the block that has its hash, and of those after it
 * with the same last hash. *next: where the block after them begins. */
static int collect_names(struct listing *listing, struct ext_tree *tree, uint64_t *next)
{
	uint32_t begins;
	int result;

	do {
		result = ext_directory_walk(listing->directory, tree->leaf, sort_entry, listing);
		if (result)
			return result;
		result = ext_tree_next(tree, &begins);
	} while (result == 1 && (begins & 1 || begins <= HASH_OF_UP));
	*next = result == 1 ? begins >> 1 : POSITION_END;
	return result < 0 ? result : 0;
}

/* The same for a whole directory of one block, or for block 0 of a tree: "." and "..". */
static int collect_tree(struct listing *listing, uint64_t *next)
{
	struct ext_tree tree;
	int error = ext_tree_open(listing->directory, &tree);

	listing->version = tree.version;
	if (!error)
		error = ext_tree_seek(&tree, (uint32_t)(*listing->position & POSITION_END) << 1)
			    ?: ext_directory_walk(listing->directory, 0, sort_entry, listing)
			    ?: collect_names(listing, &tree, next);
	ext_tree_close(&tree);
	return error;
}

/* Hashed directories only. */
static int collect_batch(struct listing *listing, uint64_t *next)
{
	listing->count = 0;
	listing->is_cut = false;
	listing->first = order_of(*listing->position);
	if (listing->directory->flags & EXT_FLAG_INDEX)
		return collect_tree(listing, next);
	listing->version = ext_tree_version(listing->directory->fs);
	*next = POSITION_END;
	return ext_directory_walk(listing->directory, 0, sort_entry, listing);
}

/* Ends: each batch moves the position on, to the block after it or, when it was cut, past a name.
 */
static int list_hashes(struct listing *listing)
{
	while (*listing->position != POSITION_END) {
		uint64_t next;
		int result = collect_batch(listing, &next);

		if (!result)
			result = visit_batch(listing);
		if (result)
			return result;
		if (listing->is_cut)
			continue;
		if (order_of(next) <= listing->first)
			return ext_corrupt_inode(listing->directory, "hash tree is out of order");
		*listing->position = next;
	}
	return 0;
}

/* Is the directory a tree, or may it become one? A tree with a damaged root is none: its names are
 * in its blocks all the same. One of one block is listed by
 * hashes from the beginning, so that positions stay right when it becomes a tree. */
bool ext_is_hashed(const struct ext_inode *directory)
{
	struct ext_tree tree;

	if (directory->flags & EXT_FLAG_INDEX) {
		int error = ext_tree_open(directory, &tree);

		ext_tree_close(&tree);
		return error != -EUCLEAN;
	}
	return directory->fs->super.s_feature_compat & EXT_COMPAT_DIR_INDEX &&
	       ext_directory_blocks(directory) == 1;
}

int ext_iterate(const struct ext_inode *directory, uint64_t *position, visitor *visit,
		void *context)
{
	struct listing listing = {
		.directory = directory, .position = position, .visit = visit, .context = context
	};

	if (!ext_is_directory(directory))
		return -ENOTDIR;
	if (!ext_is_hashed(directory))
		return list_blocks(&listing);
	listing.names = page_alloc(0);
	if (!listing.names)
		return -ENOMEM;
	int result = list_hashes(&listing);

	page_free(listing.names, 0);
	return result;
}

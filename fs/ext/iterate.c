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
#include "kernel/lib/string.h"
#include "mm/page_alloc.h"

#define POSITION_BITS 31
#define POSITION_END  0x7FFFFFFFu
#define HASH_OF_UP    2u /* ".." must be in the batch that has this hash */

typedef int visitor(void *context, const char *name, uint32_t inode, uint8_t type);

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

struct batch {
	const struct ext_inode *directory;
	struct sorted_name *names; /* ascending */
	unsigned count;
	uint64_t first; /* the order to begin from */
	bool is_cut;	/* there were more */
	uint8_t version;
};

/* Copies the name, which has no NUL on disk, and does not outlive its block. */
static int visit_entry(const struct ext_fs *fs, const struct ext_dir_entry_2 *entry, visitor *visit,
		       void *context)
{
	bool typed = ext_has_incompat(fs, EXT_INCOMPAT_FILETYPE);
	char name[EXT_NAME_MAX + 1];

	memcpy(name, entry->name, entry->name_len);
	name[entry->name_len] = '\0';
	return visit(context, name, entry->inode, typed ? entry->file_type : 0);
}

/* ---- in the order of bytes ---- */

struct listing {
	const struct ext_inode *directory;
	uint64_t *position; /* the caller's: a visit may look at it */
	visitor *visit;
	void *context;
};

static int list_name(void *context, const struct ext_dir_entry_2 *entry, uint32_t logical,
		     uint32_t at)
{
	struct listing *listing = context;
	uint64_t place = ((uint64_t)logical << listing->directory->fs->block_shift) + at;
	int result = 0;

	if (place < *listing->position)
		return 0;
	if (entry->inode != 0)
		result =
		    visit_entry(listing->directory->fs, entry, listing->visit, listing->context);
	if (result == 0)
		*listing->position = place + entry->rec_len;
	return result;
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
	struct listing listing = { directory, &position, visit, context };

	return ext_is_directory(directory) ? list_blocks(&listing) : -ENOTDIR;
}

/* ---- in the order of hashes ---- */

static uint64_t order_of_name(const struct batch *batch, const struct ext_name *name)
{
	const struct ext_fs *fs = batch->directory->fs;

	if (ext_is_dots(name))
		return (uint64_t)(name->length - 1) << 32;
	return (uint64_t)ext_name_hash(fs, batch->version, name) << 31 |
	       (crc32c(~0u, name->text, name->length) >> 1 | 1);
}

/* An entry's place in the batch; the last one makes room if it must. */
static int sort_entry(void *context, const struct ext_dir_entry_2 *entry, uint32_t logical,
		      uint32_t at)
{
	struct batch *batch = context;
	struct ext_name name = { entry->name, entry->name_len };
	struct sorted_name new = { .logical = logical, .at = at };
	unsigned place = batch->count;

	if (entry->inode == 0)
		return 0;
	new.order = order_of_name(batch, &name);
	if (new.order < batch->first)
		return 0;
	if (batch->count < BATCH)
		batch->count++;
	else
		batch->is_cut = true;
	if (place == BATCH && batch->names[--place].order <= new.order)
		return 0;
	for (; place > 0 && batch->names[place - 1].order > new.order; place--)
		batch->names[place] = batch->names[place - 1];
	batch->names[place] = new;
	return 0;
}

/* Where the batch has come to after entry `index`: further names of the same hash are next. */
static uint64_t order_after(const struct batch *batch, unsigned index)
{
	const struct sorted_name *names = batch->names;
	bool more = index + 1 < batch->count
			? names[index + 1].order >> 32 == names[index].order >> 32
			: batch->is_cut;

	return more ? names[index].order + 1 : ((names[index].order >> 32) + 1) << 32;
}

/* The entry is checked again: the block may have been read again. */
static int visit_name(const struct ext_inode *directory, const struct sorted_name *name,
		      uint8_t *data, visitor *visit, void *context)
{
	uint32_t end = ext_directory_end(directory, name->logical, data);
	const struct ext_dir_entry_2 *entry =
	    name->at < end ? ext_entry_at(directory, data, name->at, end) : NULL;

	return entry ? visit_entry(directory->fs, entry, visit, context) : -EUCLEAN;
}

static int visit_batch(const struct batch *batch, uint64_t *position, visitor *visit, void *context)
{
	const struct ext_inode *directory = batch->directory;
	struct cached_block *buffer;
	int result = 0;

	for (unsigned i = 0; i < batch->count && result == 0; i++) {
		const struct sorted_name *name = &batch->names[i];

		result = ext_directory_block(directory, name->logical, &buffer);
		if (result)
			return result;
		result = visit_name(directory, name, buffer->data, visit, context);
		bcache_put(buffer);
		if (result == 0)
			*position = position_of(order_after(batch, i));
	}
	return result;
}

/* Collects the names from the position on of the block that has its hash, and of those after it
 * with the same last hash. *next: where the block after them begins. */
static int collect(struct batch *batch, struct ext_tree *tree, uint64_t *next)
{
	uint32_t begins;
	int result;

	do {
		result = ext_directory_walk(batch->directory, tree->leaf, sort_entry, batch);
		if (result)
			return result;
		result = ext_tree_next(tree, &begins);
	} while (result == 1 && (begins & 1 || begins <= HASH_OF_UP));
	*next = result == 1 ? begins >> 1 : POSITION_END;
	return result < 0 ? result : 0;
}

/* The same for a whole directory of one block, or for block 0 of a tree: "." and "..". */
static int collect_tree(struct batch *batch, uint64_t position, uint64_t *next)
{
	struct ext_tree tree;
	int error = ext_tree_open(batch->directory, &tree);

	batch->version = tree.version;
	if (!error)
		error = ext_tree_seek(&tree, (uint32_t)(position & POSITION_END) << 1);
	if (!error)
		error = ext_directory_walk(batch->directory, 0, sort_entry, batch);
	if (!error)
		error = collect(batch, &tree, next);
	ext_tree_close(&tree);
	return error;
}

static int collect_batch(struct batch *batch, uint64_t position, uint64_t *next)
{
	batch->count = 0;
	batch->is_cut = false;
	batch->first = order_of(position);
	if (batch->directory->flags & EXT_FLAG_INDEX)
		return collect_tree(batch, position, next);
	batch->version = ext_tree_version(batch->directory->fs);
	*next = POSITION_END;
	return ext_directory_walk(batch->directory, 0, sort_entry, batch);
}

/* Ends: each batch moves the position on, to the block after it or, when it was cut, past a name.
 */
static int list_hashes(struct batch *batch, uint64_t *position, visitor *visit, void *context)
{
	while (*position != POSITION_END) {
		uint64_t next;
		int result = collect_batch(batch, *position, &next);

		if (!result)
			result = visit_batch(batch, position, visit, context);
		if (result)
			return result;
		if (batch->is_cut)
			continue;
		if (order_of(next) <= batch->first)
			return ext_corrupt_inode(batch->directory, "hash tree is out of order");
		*position = next;
	}
	return 0;
}

/* Is the directory a tree, or may it become one? A tree with a damaged root is none: its names are
 * in its blocks all the same. */
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
	struct listing listing = { directory, position, visit, context };
	struct batch batch = { .directory = directory };

	if (!ext_is_directory(directory))
		return -ENOTDIR;
	if (!ext_is_hashed(directory))
		return list_blocks(&listing);
	batch.names = page_alloc(0);
	if (!batch.names)
		return -ENOMEM;
	int result = list_hashes(&batch, position, visit, context);

	page_free(batch.names, 0);
	return result;
}

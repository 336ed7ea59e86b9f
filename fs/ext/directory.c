/*
 * Directories: files whose blocks hold names (entries.c), or the nodes of a hash tree (htree.c).
 *
 * A directory that has just been made, in a block of 4096 bytes; with metadata_csum its last 12
 * bytes are a checksum, dressed as an entry that is not in use:
 *
 *	offset	inode	rec_len	name_len  type	name
 *	0	2	12	1	  2	.
 *	12	2	12	2	  2	..
 *	24	11	4060	10	  2	lost+found
 *	4084	0	12	0	  0xDE	checksum
 *
 * The nodes of a tree are dressed up as well: as blocks with one entry that is not in use. So a
 * driver that does not know the tree can read the names of all blocks, one after the other, as
 * ext_list does.
 *
 * A block is checked as a whole when it was read from the disk: every entry, and the checksum. A
 * block that is changed gets a new one before its transaction ends. Directories have no
 * holes, and never get shorter. May wait for the drive; calls for one mount are serialized.
 *
 * docs.kernel.org, "ext4 Data Structures and Algorithms", 4.4 Directory Entries.
 */
#include "fs/ext/directories.h"
#include "kernel/lib/errno.h"

/* No directory has more: ext_inode_read compared it with the blocks of the file system. */
uint32_t ext_directory_blocks(const struct ext_inode *directory)
{
	return (uint32_t)(directory->size >> directory->fs->block_shift);
}

/* The checksum of a node covers what is in use of it, and its tail with a checksum of 0. Returns
 * where it is, or NULL for a node without room for one. */
static uint32_t *node_checksum(uint8_t *data, uint32_t size, uint32_t at, uint32_t *sum)
{
	const union ext_dx_entry *entries = (const union ext_dx_entry *)(data + at);
	uint32_t room = (size - at) / sizeof(*entries);
	struct ext_dx_tail *tail = (struct ext_dx_tail *)(entries + entries->limit);

	if (entries->limit >= room || entries->count > entries->limit)
		return NULL;
	*sum = crc32c(*sum, data, at + entries->count * sizeof(*entries));
	*sum = crc32c(*sum, &tail->dt_reserved, sizeof(tail->dt_reserved));
	*sum = crc32c_zeros(*sum, sizeof(tail->dt_checksum));
	return &tail->dt_checksum;
}

/* The same for a block of names: it covers everything before its tail. */
static uint32_t *names_checksum(uint8_t *data, uint32_t size, uint32_t *sum)
{
	uint32_t end = size - sizeof(struct ext_dir_tail);
	struct ext_dir_tail *tail = (struct ext_dir_tail *)(data + end);

	if (tail->det_reserved_zero1 != 0 || tail->det_rec_len != sizeof(*tail) ||
	    tail->det_reserved_ft != EXT_DIR_TAIL_TYPE)
		return NULL;
	*sum = crc32c(*sum, data, end);
	return &tail->det_checksum;
}

/* *sum is the seed, and becomes the checksum. at: where a node's entries begin, or 0. */
static uint32_t *directory_checksum(struct cached_block *buffer, uint32_t at, uint32_t *sum)
{
	return at ? node_checksum(buffer->data, buffer->size, at, sum)
		  : names_checksum(buffer->data, buffer->size, sum);
}

/* A block that has no place for a checksum was refused when it was read, so there is one. */
static void seal_directory(struct cached_block *buffer)
{
	uint32_t sum = buffer->seal_seed,
		 *place = directory_checksum(buffer, buffer->seal_at, &sum);

	if (place)
		*place = sum;
}

/* Not at once: a block of names changes many times before it is written. */
void ext_directory_sum(const struct ext_inode *directory, uint32_t logical,
		       struct cached_block *buffer)
{
	if (!ext_has_checksums(directory->fs))
		return;
	buffer->seal = seal_directory;
	buffer->seal_seed = ext_inode_seed(directory);
	buffer->seal_at = ext_directory_index(directory, logical, buffer->data);
}

/* Until a visit returns something other than 0, which becomes the result. Ends: each turn moves on
 * by at least 12 bytes. */
static int walk_entries(const struct ext_inode *directory, uint32_t logical, uint8_t *data,
			ext_entry_visitor *visit, void *context)
{
	uint32_t end = ext_directory_end(directory, logical, data);
	const struct ext_dir_entry_2 *entry;
	int result = 0;

	for (uint32_t at = 0; at < end && result == 0; at += entry->rec_len) {
		entry = ext_entry_at(directory, data, at, end);
		if (!entry)
			return -EUCLEAN;
		result = visit(context, entry, logical, at);
	}
	return result;
}

static int check_visit(void *directory, const struct ext_dir_entry_2 *entry, uint32_t logical,
		       uint32_t at)
{
	(void)logical, (void)at;
	return ext_entry_check(directory, entry);
}

/* Everything that the rest of the code relies on, or would rather know. */
static int check_block(const struct ext_inode *directory, uint32_t logical,
		       struct cached_block *buffer)
{
	uint32_t at = ext_directory_index(directory, logical, buffer->data);
	int error = walk_entries(directory, logical, buffer->data, check_visit, (void *)directory);

	if (error || !ext_has_checksums(directory->fs))
		return error;
	uint32_t sum = ext_inode_seed(directory);
	uint32_t *place = directory_checksum(buffer, at, &sum);

	if (place && *place == sum)
		return 0;
	ext_corrupt_inode(directory, "directory block %u: checksum", logical);
	return -EBADMSG;
}

int ext_directory_block(const struct ext_inode *directory, uint32_t logical,
			struct cached_block **out)
{
	int error = ext_block_get(directory, logical, out);

	if (error || (*out)->verified)
		return error;
	error = check_block(directory, logical, *out);
	if (error)
		bcache_put(*out);
	else
		(*out)->verified = true;
	return error;
}

/* The block stays referenced during the visits: entries are read from the cache's memory. */
int ext_directory_walk(const struct ext_inode *directory, uint32_t logical,
		       ext_entry_visitor *visit, void *context)
{
	struct cached_block *buffer;
	int result = ext_directory_block(directory, logical, &buffer);

	if (result)
		return result;
	return bcache_done(buffer, walk_entries(directory, logical, buffer->data, visit, context));
}

int ext_directory_walk_from(const struct ext_inode *directory, uint64_t logical,
			    ext_entry_visitor *visit, void *context)
{
	uint32_t blocks = ext_directory_blocks(directory);
	int result = 0;

	for (; logical < blocks && result == 0; logical++)
		result = ext_directory_walk(directory, (uint32_t)logical, visit, context);
	return result;
}

/* A new block is one entry, not in use, until the caller writes something else. The inode is
 * written after an error, too: its map may be another one. */
int ext_directory_grow(struct ext_inode *directory, uint32_t *logical, struct cached_block **out)
{
	struct ext_packer packer = { 0 };

	*logical = ext_directory_blocks(directory);
	int error = ext_block_add(directory, *logical, out);

	if (!error) {
		packer.data = (*out)->data;
		ext_pack_end(directory->fs, &packer);
		ext_directory_sum(directory, *logical, *out);
		(*out)->verified = true;
		directory->size += directory->fs->summary.block_size;
	}
	return ext_inode_write_after(directory, error);
}

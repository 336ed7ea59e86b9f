/*
 * Directories: lists of names, block by block.
 *
 * An entry says where the next one begins (rec_len), so names can have any length, and a deleted
 * one is absorbed by the entry before it. The entries of a block fill it exactly. A directory that
 * has just been made:
 *
 *	offset	inode	rec_len	name_len  type	name
 *	0	2	12	1	  2	.
 *	12	2	12	2	  2	..
 *	24	11	20	10	  2	lost+found
 *	44	0	4052			not in use: inode 0, up to the end of the block
 *
 * Large directories also have a hash tree. This driver can ignore it: its inner blocks look like
 * blocks with one large unused entry, so that a driver that does not know the tree can read the
 * names, one after the other. This one is such a driver.
 *
 * No number of the disk is followed before it was checked: rec_len 0 would make the walk endless.
 */
#include "fs/ext/internal.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"

/* Without the filetype feature a name's length has 16 bits, the upper ones where the type is. */
static uint32_t name_length(const struct ext_fs *fs, const struct ext_dir_entry_2 *entry)
{
	if (ext_has_incompat(fs, EXT_INCOMPAT_FILETYPE))
		return entry->name_len;
	return entry->name_len | (uint32_t)entry->file_type << 8;
}

/* A NUL would end a name early, and make it another one's. */
static bool has_nul(const char *name, uint32_t length)
{
	uint32_t i = 0;

	while (i < length && name[i] != '\0')
		i++;
	return i < length;
}

/* Refuses an invalid entry. `left` is what its block has from the entry on. That is at least
 * the smallest entry's size, because an entry after which less would remain is refused, too. */
static int check_entry(const struct ext_inode *directory, const struct ext_dir_entry_2 *entry,
		       uint32_t left)
{
	uint32_t behind = left - entry->rec_len;
	uint32_t name;

	if (entry->rec_len < EXT_DIR_ENTRY_MIN || entry->rec_len > left ||
	    entry->rec_len % 4 != 0 || (behind > 0 && behind < EXT_DIR_ENTRY_MIN))
		return ext_corrupt_inode(directory, "directory entry of %u bytes, %u left in block",
					 entry->rec_len, left);
	if (entry->inode == 0)
		return 0; /* not in use, or a checksum: the rest has no meaning */
	name = name_length(directory->fs, entry);
	if (name == 0 || name > EXT_NAME_MAX ||
	    name > entry->rec_len - offsetof(struct ext_dir_entry_2, name))
		return ext_corrupt_inode(directory, "directory entry of %u bytes, a name of %u",
					 entry->rec_len, name);
	if (has_nul(entry->name, name))
		return ext_corrupt_inode(directory, "directory entry with a NUL in its name of %u",
					 name);
	if (entry->inode > directory->fs->summary.inodes)
		return ext_corrupt_inode(directory, "directory entry for inode %u of %u",
					 entry->inode, directory->fs->summary.inodes);
	return 0;
}

typedef int visitor(void *context, const char *name, uint32_t inode, uint8_t type);

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

/* Until a visit returns something other than 0, which becomes the result. */
static int list_block(const struct ext_inode *directory, const uint8_t *data, visitor *visit,
		      void *context)
{
	uint32_t size = directory->fs->summary.block_size;
	const struct ext_dir_entry_2 *entry;
	int result = 0;

	/* Ends: each turn moves on by rec_len, which check_entry found to be at least 12. */
	for (uint32_t at = 0; at < size && result == 0; at += entry->rec_len) {
		entry = (const struct ext_dir_entry_2 *)(data + at);
		result = check_entry(directory, entry, size - at);
		if (result == 0 && entry->inode != 0)
			result = visit_entry(directory->fs, entry, visit, context);
	}
	return result;
}

/* Gets a block of a directory. Those have no holes. */
static int get_block(const struct ext_inode *directory, uint64_t logical, struct cached_block **out)
{
	struct ext_fs *fs = directory->fs;
	struct ext_mapping mapping;
	int error = ext_map(directory, logical, &mapping);

	if (error)
		return error;
	if (mapping.physical == 0 || mapping.unwritten)
		return ext_corrupt_inode(directory, "directory with a hole at block %ju", logical);
	return bcache_get(fs->device, mapping.physical, fs->summary.block_size, BLOCK_OTHER, out);
}

/* The block stays referenced during the visits: the entry is read from the cache's memory. */
int ext_list(const struct ext_inode *directory, visitor *visit, void *context)
{
	uint64_t blocks = directory->size >> directory->fs->block_shift;
	int result = 0;

	if (!ext_is_directory(directory))
		return -ENOTDIR;
	for (uint64_t logical = 0; logical < blocks && result == 0; logical++) {
		struct cached_block *buffer;

		result = get_block(directory, logical, &buffer);
		if (result)
			break;
		result = list_block(directory, buffer->data, visit, context);
		bcache_put(buffer);
	}
	return result;
}

/*
 * Names: finding one in a directory, and changing it, whatever form the directory has.
 *
 *	form		found				added
 *	one block	in its entries			in its entries; full: it becomes a tree
 *	hash tree	by its hash			where its hash belongs
 *	several blocks	in one block after the other	in the first with room, or in a new one
 *
 * The third form is that of file systems without the feature dir_index. "." and ".." are in block 0
 * in each form, and outside the order of hashes.
 *
 * A change has two halves: ext_name_room or ext_name_own does everything that may fail, and gives a
 * slot; put, set or drop then writes to it, and cannot fail. So a change of two names prepares both
 * and then does both. Between the halves nothing else may add a name to the directory: that would
 * move entries. A damaged tree is good enough for finding names, in all blocks, but not for adding.
 *
 * Calls for one mount are serialized. May wait for the drive.
 */
#include "fs/ext/directories.h"
#include "kernel/lib/errno.h"

#define DAMAGED_MAX 32 /* blocks of a directory */

int ext_name_check(const struct ext_inode *directory, const struct ext_name *name)
{
	if (!ext_is_directory(directory))
		return -ENOTDIR;
	if (directory->links == 0)
		return -ENOENT;
	if (name->length > EXT_NAME_MAX)
		return -ENAMETOOLONG;
	return ext_is_dots(name) ? -EINVAL : 0; /* the empty name, too */
}

/* Searches the first `blocks` blocks, as ext_entry_look. A damaged one does not hide a name in the
 * others, but there is an end: a damaged size may be that of a million holes. It ends the search
 * for room. */
static int look_in_blocks(const struct ext_inode *directory, const struct ext_name *name,
			  uint32_t bytes, uint32_t blocks, struct ext_slot *slot)
{
	int missing = name ? -ENOENT : -ENOSPC, result = missing, left = name ? DAMAGED_MAX : 1;

	for (slot->logical = 0; slot->logical < blocks && left > 0; slot->logical++) {
		int error = ext_directory_block(directory, slot->logical, &slot->buffer)
				?: ext_entry_look(directory, slot, name, bytes);

		if (!error)
			return 0;
		if (error != missing) {
			result = error;
			left--;
		}
	}
	return result;
}

static int find_name(const struct ext_inode *directory, const struct ext_name *name,
		     struct ext_slot *slot)
{
	if (ext_is_dots(name))
		return look_in_blocks(directory, name, 0, 1, slot);
	if (directory->flags & EXT_FLAG_INDEX) {
		int error = ext_tree_find(directory, name, slot);

		if (error != -EUCLEAN)
			return error;
	}
	return look_in_blocks(directory, name, 0, ext_directory_blocks(directory), slot);
}

/* The slot is that of a name that was found. */
static uint32_t inode_in(const struct ext_slot *slot)
{
	return ((const struct ext_dir_entry_2 *)(slot->buffer->data + slot->at))->inode;
}

/* Twice in the tree, as only a damaged disk has it. */
int ext_two_names(const struct ext_inode *directory, uint32_t number)
{
	return ext_corrupt_inode(directory, "directory %u is here, and has another name", number);
}

/* Only the root is reserved and has a name: who opened or removed the journal by one would ruin it.
 * And a directory that is in itself has no end. */
int ext_find(const struct ext_inode *directory, const struct ext_name *name, uint32_t *number)
{
	struct ext_slot slot;

	if (!ext_is_directory(directory))
		return -ENOTDIR;
	if (name->length > EXT_NAME_MAX)
		return -ENAMETOOLONG;
	int error = name->length == 0 ? -ENOENT : find_name(directory, name, &slot);

	if (error)
		return error;
	*number = inode_in(&slot);
	bcache_put(slot.buffer);
	if (*number < directory->fs->first_inode && *number != EXT_ROOT_INODE)
		return ext_corrupt_inode(directory, "directory entry for reserved inode %u",
					 *number);
	if ((*number == EXT_ROOT_INODE || *number == directory->number) && !ext_is_dots(name))
		return ext_two_names(directory, *number);
	return 0;
}

/* ext_find does the names "." and "..", which are entries like others, and refuses a file that is
 * taken for a directory. */
int ext_lookup(struct ext_fs *fs, const char *path, struct ext_inode *out)
{
	int error = *path ? ext_inode_read(fs, EXT_ROOT_INODE, out) : -ENOENT;

	while (!error && *path) {
		uint32_t number;

		while (*path == '/')
			path++;
		struct ext_name name = { path, 0 };

		while (*path && *path != '/')
			path++;
		name.length = path - name.text;
		if (name.length == 0 && ext_is_directory(out))
			break;
		error = ext_find(out, &name, &number) ?: ext_inode_read(fs, number, out);
	}
	return error;
}

int ext_name_own(const struct ext_inode *directory, const struct ext_name *name,
		 const struct ext_inode *inode, struct ext_slot *slot)
{
	int error = find_name(directory, name, slot);

	if (error)
		return error;
	if (inode_in(slot) == inode->number)
		return ext_change_or_put(directory->fs, slot->buffer);
	return bcache_done(slot->buffer, -ENOENT);
}

/* Room in a directory that is not a tree. It becomes one where it may. */
static int linear_room(struct ext_inode *directory, const struct ext_name *name,
		       struct ext_slot *slot)
{
	const struct ext_super_block *super = &directory->fs->super;
	uint32_t blocks = ext_directory_blocks(directory);
	int error = look_in_blocks(directory, NULL, ext_entry_bytes(name->length), blocks, slot);

	if (error != -ENOSPC)
		return error;
	if (super->s_feature_compat & EXT_COMPAT_DIR_INDEX && blocks == 1) {
		error = ext_tree_make(directory);
		return error ? error : ext_tree_room(directory, name, slot);
	}
	slot->at = 0;
	return ext_directory_grow(directory, &slot->logical, &slot->buffer);
}

/* -ENOSPC for a full disk or a full tree; the block that the slot is in may be changed. */
int ext_name_room(struct ext_inode *directory, const struct ext_name *name, struct ext_slot *slot)
{
	int error = directory->flags & EXT_FLAG_INDEX ? ext_tree_room(directory, name, slot)
						      : linear_room(directory, name, slot);

	return error ? error : ext_change_or_put(directory->fs, slot->buffer);
}

/* The second half of a change ends. */
static void finish_change(const struct ext_inode *directory, struct ext_slot *slot)
{
	ext_directory_sum(directory, slot->logical, slot->buffer);
	bcache_put(slot->buffer);
}

void ext_name_put(const struct ext_inode *directory, struct ext_slot *slot,
		  const struct ext_name *name, const struct ext_inode *inode)
{
	ext_entry_put(slot, name, inode);
	finish_change(directory, slot);
}

void ext_name_set(const struct ext_inode *directory, struct ext_slot *slot,
		  const struct ext_inode *inode)
{
	ext_entry_set(slot, inode);
	finish_change(directory, slot);
}

void ext_name_drop(const struct ext_inode *directory, struct ext_slot *slot)
{
	ext_entry_drop(slot);
	finish_change(directory, slot);
}

static int refuse_name(void *context, const struct ext_dir_entry_2 *entry, uint32_t logical,
		       uint32_t at)
{
	struct ext_name name = { entry->name, entry->name_len };

	(void)context, (void)logical, (void)at;
	return entry->inode == 0 || ext_is_dots(&name) ? 0 : -ENOTEMPTY;
}

int ext_directory_empty(const struct ext_inode *directory)
{
	return ext_directory_walk_from(directory, 0, refuse_name, NULL);
}

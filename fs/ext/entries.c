/*
 * Entries: the names in one block of a directory.
 *
 * An entry says where the next one begins (rec_len), so names can have any length. The entries of a
 * block fill it exactly, so what is free belongs to the entry before it. "tmp" (12 bytes used) is
 * added to the block on the left, and "lost+found" removed:
 *
 *	offset	rec_len	name		rec_len	name		rec_len	name
 *	0	12	.		12	.		12	.
 *	12	12	..		12	..		32	..
 *	24	1000	lost+found	20	lost+found
 *	44				980	tmp		980	tmp
 *
 * A name never moves within its block, so a reader may remember its offset. The first entry of a
 * block has none before it: removed, it remains as one that is not in use (inode 0).
 *
 * No number of the disk is followed before it was checked: rec_len 0 would make a walk endless.
 * Nothing here waits, but for the console.
 */
#include "fs/ext/directories.h"
#include "kernel/lib/errno.h"

/* Block 0 of a hashed directory is the root; other nodes are one unused entry each. So is a block
 * without any name, where there are no checksums: then it does not matter which it is. */
uint32_t ext_directory_index(const struct ext_inode *directory, uint32_t logical,
			     const uint8_t *data)
{
	const struct ext_dir_entry_2 *first = (const struct ext_dir_entry_2 *)data;

	if (!(directory->flags & EXT_FLAG_INDEX))
		return 0;
	if (logical == 0)
		return EXT_DX_ROOT_AT + sizeof(struct ext_dx_root_info);
	if (first->inode == 0 && first->rec_len == directory->fs->summary.block_size)
		return EXT_DX_NODE_AT;
	return 0;
}

/* Where the entries of a block end: before the checksum, which nodes have elsewhere. */
uint32_t ext_directory_end(const struct ext_inode *directory, uint32_t logical, const uint8_t *data)
{
	uint32_t size = directory->fs->summary.block_size;

	if (!ext_has_checksums(directory->fs) || ext_directory_index(directory, logical, data) != 0)
		return size;
	return size - sizeof(struct ext_dir_tail);
}

/* Bytes of an entry that are in use: the rest may become another one. */
static uint32_t used_bytes(const struct ext_dir_entry_2 *entry)
{
	return entry->inode == 0 ? 0 : ext_entry_bytes(entry->name_len);
}

/* Whether a walk may go on after an entry, and its name, if it has one, ends inside of it. Where
 * less than the smallest entry would remain, there is none. */
static bool is_whole_entry(const struct ext_dir_entry_2 *entry, uint32_t left)
{
	uint32_t length = entry->rec_len;

	return length >= EXT_DIR_ENTRY_MIN && length % 4 == 0 &&
	       (length == left || length + EXT_DIR_ENTRY_MIN <= left) &&
	       (ext_entry_bytes(entry->name_len) <= length || entry->inode == 0);
}

/* -EUCLEAN. */
static int refuse_entry(const struct ext_inode *directory, const struct ext_dir_entry_2 *entry,
			uint32_t left)
{
	return ext_corrupt_inode(directory,
				 "directory entry of %u bytes, %u left in block, a name of %u",
				 entry->rec_len, left, entry->name_len);
}

/* Every step of every walk: an entry that does not lead on is NULL, after a message. */
struct ext_dir_entry_2 *ext_entry_at(const struct ext_inode *directory, uint8_t *data, uint32_t at,
				     uint32_t end)
{
	struct ext_dir_entry_2 *entry = (struct ext_dir_entry_2 *)(data + at);

	if (is_whole_entry(entry, end - at))
		return entry;
	refuse_entry(directory, entry, end - at);
	return NULL;
}

/* A NUL would end a name early, and make it another one's. */
static bool has_nul(const char *name, uint32_t length)
{
	uint32_t i = 0;

	while (i < length && name[i] != '\0')
		i++;
	return i < length;
}

/* Once for a block that was read; later walks need only what ext_entry_at checks. Without the
 * filetype feature a name's length has 16 bits, the upper ones, all 0, where the type is. */
int ext_entry_check(const struct ext_inode *directory, const struct ext_dir_entry_2 *entry)
{
	bool typed = ext_has_incompat(directory->fs, EXT_INCOMPAT_FILETYPE);
	uint32_t length = entry->name_len | (typed ? 0 : (uint32_t)entry->file_type << 8);

	if (entry->inode == 0)
		return 0; /* not in use: the rest has no meaning */
	if (length == 0 || length > EXT_NAME_MAX)
		return ext_corrupt_inode(directory, "directory entry of %u bytes, a name of %u",
					 entry->rec_len, length);
	if (has_nul(entry->name, length))
		return ext_corrupt_inode(directory, "directory entry with a NUL in its name of %u",
					 length);
	if (entry->inode > directory->fs->summary.inodes)
		return ext_corrupt_inode(directory, "directory entry for inode %u of %u",
					 entry->inode, directory->fs->summary.inodes);
	return 0;
}

static struct ext_dir_entry_2 *entry_of(const struct ext_slot *slot)
{
	return (struct ext_dir_entry_2 *)(slot->buffer->data + slot->at);
}

/* Names that are counted differ in the last letter. */
static inline bool is_named(const struct ext_dir_entry_2 *entry, const struct ext_name *name)
{
	return entry->inode != 0 && entry->name_len == name->length &&
	       entry->name[name->length - 1] == name->text[name->length - 1] &&
	       memcmp(entry->name, name->text, name->length) == 0;
}

/* A name or (NULL) room. The walk ends: no entry that is whole is shorter than 12 bytes. Inline: it
 * looks at hundreds of entries, and the two kinds of callers become two loops. */
static inline __attribute__((always_inline)) int entry_after(const struct ext_inode *directory,
							     struct ext_slot *slot,
							     const struct ext_name *name,
							     uint32_t bytes)
{
	const uint8_t *data = slot->buffer->data;
	uint32_t end = ext_directory_end(directory, slot->logical, data), at = 0, previous = 0;
	const struct ext_dir_entry_2 *entry;

	for (; at < end; at += entry->rec_len) {
		entry = (const struct ext_dir_entry_2 *)(data + at);
		if (!is_whole_entry(entry, end - at))
			return refuse_entry(directory, entry, end - at);
		if (name ? is_named(entry, name) : entry->rec_len - used_bytes(entry) >= bytes)
			break;
		previous = at;
	}
	slot->at = at;
	slot->previous = previous;
	return at < end ? 0 : name ? -ENOENT : -ENOSPC;
}

int ext_entry_look(const struct ext_inode *directory, struct ext_slot *slot,
		   const struct ext_name *name, uint32_t bytes)
{
	int error = name ? entry_after(directory, slot, name, 0)
			 : entry_after(directory, slot, NULL, bytes);

	return error ? bcache_done(slot->buffer, error) : 0;
}

uint8_t ext_entry_type(unsigned type)
{
	static const uint8_t types[16] = {
		[EXT_TYPE_REGULAR] = 1, [EXT_TYPE_DIRECTORY] = 2, [EXT_TYPE_CHARACTER] = 3,
		[EXT_TYPE_BLOCK] = 4,	[EXT_TYPE_FIFO] = 5,	  [EXT_TYPE_SOCKET] = 6,
		[EXT_TYPE_SYMLINK] = 7,
	};

	return type < 16 ? types[type] : 0;
}

void ext_entry_set(const struct ext_slot *slot, const struct ext_inode *inode)
{
	struct ext_dir_entry_2 *entry = entry_of(slot);

	entry->inode = inode->number;
	entry->file_type = ext_has_incompat(inode->fs, EXT_INCOMPAT_FILETYPE)
			       ? ext_entry_type(inode->mode >> 12)
			       : 0;
}

/* What the entry there does not use becomes the new one. */
void ext_entry_put(struct ext_slot *slot, const struct ext_name *name,
		   const struct ext_inode *inode)
{
	struct ext_dir_entry_2 *entry = entry_of(slot);
	uint32_t used = used_bytes(entry);
	uint32_t length = entry->rec_len - used;

	if (used > 0)
		entry->rec_len = (uint16_t)used;
	slot->at += used;
	entry = entry_of(slot);
	entry->rec_len = (uint16_t)length;
	entry->name_len = (uint8_t)name->length;
	memcpy(entry->name, name->text, name->length);
	ext_entry_set(slot, inode);
}

void ext_entry_drop(struct ext_slot *slot)
{
	struct ext_dir_entry_2 *entry = entry_of(slot);

	if (slot->previous == slot->at) {
		entry->inode = 0;
		return;
	}
	struct ext_dir_entry_2 *previous =
	    (struct ext_dir_entry_2 *)(slot->buffer->data + slot->previous);

	previous->rec_len += entry->rec_len;
}

/* Entries one after the other, without room between them. Those that are not in use are left out.
 */
void ext_pack(struct ext_packer *packer, const struct ext_dir_entry_2 *entry)
{
	uint32_t bytes = used_bytes(entry);

	if (bytes == 0)
		return;
	packer->last = packer->end;
	memcpy(packer->data + packer->end, entry, bytes);
	((struct ext_dir_entry_2 *)(packer->data + packer->last))->rec_len = (uint16_t)bytes;
	packer->end += bytes;
}

/* The last one gets the rest; a block without any is one entry that is not in use. */
void ext_pack_end(const struct ext_fs *fs, struct ext_packer *packer)
{
	struct ext_dir_entry_2 *last = (struct ext_dir_entry_2 *)(packer->data + packer->last);
	uint32_t end = fs->summary.block_size;

	if (ext_has_checksums(fs)) {
		struct ext_dir_tail tail = { .det_rec_len = sizeof(tail),
					     .det_reserved_ft = EXT_DIR_TAIL_TYPE };

		end -= sizeof(tail);
		memcpy(packer->data + end, &tail, sizeof(tail));
	}
	if (packer->end == 0)
		memset(last, 0, EXT_DIR_ENTRY_MIN);
	last->rec_len = (uint16_t)(end - packer->last);
}

/*
 * Extended attributes, changed: the place that gets an attribute is built again, in a page,
 * and replaces the old one when it fits.
 *
 * As in Linux the inode is tried first, then the block. What replaces a value may move:
 *
 *	set user.a, 40 bytes	into the inode
 *	set user.b, 60 bytes	no room there: into a new block
 *	set user.a, 80 bytes	no room there: into the block, and out of the inode
 *	remove user.a, user.b	the block is empty: it is freed
 *
 * A block that other inodes share is not changed: this inode gets one of its own, and the other's
 * count goes down. (Linux shares equal blocks; this code does not begin to.)
 *
 * One call is one change. Whatever can fail comes first, except for the second half of a move.
 */
#include "fs/ext/allocation.h"
#include "fs/ext/attributes.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "mm/page_alloc.h"

/* What one call is to do, and the places of its inode. */
struct job {
	struct ext_inode *inode;
	struct ext_attribute_name name;
	const void *value; /* NULL: remove it */
	uint32_t size;
	struct ext_attributes body, block;
	struct ext_attributes built; /* in a page: no buffer */
	uint32_t at, values;	     /* in it: the end of the entries, the first value */
};

/* ---- hashes of entries in a block (docs.kernel.org, ext4: "Extended Attributes") ---- */

/* Of the name's bytes and the value's words, which are padded with zeros. e2fsck compares it. */
static uint32_t entry_hash(const struct ext_attributes *place, const struct ext_xattr_entry *entry)
{
	uint32_t hash = 0, word;

	for (unsigned i = 0; i < entry->e_name_len; i++)
		hash = ext_rotate_left(hash, 5) ^ (uint8_t)entry->e_name[i];
	for (uint32_t i = 0; i < ext_value_bytes(entry->e_value_size); i += sizeof(word)) {
		memcpy(&word, place->data + entry->e_value_offs + i, sizeof(word));
		hash = ext_rotate_left(hash, 16) ^ word;
	}
	return hash;
}

/* Of a whole block: Linux looks for an equal one by it. 0, which is never looked for, when one
 * entry has 0. */
static uint32_t block_hash(const struct ext_attributes *place)
{
	uint32_t at = place->first, hash = 0;
	const struct ext_xattr_entry *entry;

	while ((entry = ext_attribute_next(place, &at))) {
		if (entry->e_hash == 0)
			return 0;
		hash = ext_rotate_left(hash, 16) ^ entry->e_hash;
	}
	return hash;
}

/* ---- a place is built again ---- */

/* An entry at the front, and its value at the back. -ENOSPC when the two would meet: the word of 0
 * that ends the entries is counted in. */
static int add_attribute(struct job *job, const struct ext_attribute_name *name, const void *value,
			 uint32_t size)
{
	uint32_t bytes = ext_attribute_bytes(name->length), end = (uint32_t)sizeof(uint32_t);
	struct ext_xattr_entry *entry = (struct ext_xattr_entry *)(job->built.data + job->at);

	if (job->at + bytes + end + ext_value_bytes(size) > job->values)
		return -ENOSPC;
	job->values -= ext_value_bytes(size);
	*entry = (struct ext_xattr_entry){ .e_name_len = name->length,
					   .e_name_index = name->prefix,
					   .e_value_size = size };
	memcpy(entry->e_name, name->text, name->length);
	memcpy(job->built.data + job->values, value, size);
	if (size > 0)
		entry->e_value_offs = (uint16_t)job->values;
	if (job->built.is_block)
		entry->e_hash = entry_hash(&job->built, entry);
	job->at += bytes;
	return 0;
}

/* The entries of a place, from byte `first` of the new one on: with the value in the place of an
 * old one, in the order of a block, or at the end; without a value, without the old one. -ENOSPC if
 * `size` bytes do not have room for them. */
static int build(struct job *job, const struct ext_attributes *from, const void *value,
		 uint32_t first, uint32_t size)
{
	const struct ext_xattr_entry *entry;
	uint32_t at = from->first;
	int error = 0;

	job->built.first = job->at = first;
	job->built.size = job->values = size;
	job->built.is_block = from->is_block;
	memset(job->built.data, 0, size);
	while (!error && from->buffer && (entry = ext_attribute_next(from, &at))) {
		const struct ext_attribute_name old = { entry->e_name, entry->e_name_len,
							entry->e_name_index };
		int order = ext_attribute_compare(&job->name, entry);

		if (value && (order == 0 || (order < 0 && from->is_block))) {
			error = add_attribute(job, &job->name, value, job->size);
			value = NULL;
		}
		if (order != 0 && !error)
			error = add_attribute(job, &old, from->data + entry->e_value_offs,
					      entry->e_value_size);
	}
	if (value && !error)
		error = add_attribute(job, &job->name, value, job->size);
	return error;
}

/* ---- inside the inode: its block of the table is part of the transaction ---- */

/* Without an entry it gets no magic number, as one that never had any. -ENOSPC: the inode has no
 * place, or too small a one. */
static int put_in_inode(struct job *job, const void *value)
{
	const struct ext_attributes *body = &job->body;
	uint32_t magic = EXT_XATTR_MAGIC;

	if (!body->buffer)
		return -ENOSPC;
	int error = build(job, body, value, 0, body->size);

	if (error)
		return error;
	if (job->at == 0)
		magic = 0;
	memcpy(body->data, job->built.data, body->size);
	memcpy(body->data - sizeof(magic), &magic, sizeof(magic));
	return 0;
}

/* ---- in a block ---- */

/* Checked when it was opened. */
static struct ext_xattr_header *header_of(struct cached_block *buffer)
{
	return (struct ext_xattr_header *)buffer->data;
}

/* Gives the inode's block back: the last one who has it frees it. The reference to the buffer goes
 * in any case; the inode keeps its number after an error. */
static int leave_block(struct ext_inode *inode, struct cached_block *buffer)
{
	struct ext_fs *fs = inode->fs;
	uint64_t block = inode->attributes;
	bool shared = header_of(buffer)->h_refcount > 1;
	int error = shared ? ext_change(fs, buffer) : 0;

	if (!error && shared) {
		header_of(buffer)->h_refcount--;
		ext_attributes_seal(fs, block, buffer->data);
		ext_count_freed(inode, 1);
	}
	bcache_put(buffer);
	if (!error && !shared)
		error = ext_blocks_free(inode, block, 1, true);
	if (!error)
		inode->attributes = 0;
	return error;
}

/* The block to be written: the inode's own, or a new one, in which nobody else's attributes are.
 * When the shared one cannot be left the new one goes again, so the inode has one block at each
 * moment. */
static int block_to_write(struct job *job, struct cached_block **out)
{
	struct ext_inode *inode = job->inode;
	struct cached_block *old = job->block.buffer;

	if (old && header_of(old)->h_refcount == 1) {
		*out = old;
		return ext_change(inode->fs, old);
	}
	int error = ext_metadata_allocate(inode, ext_inode_goal(inode), out);

	if (error || !old)
		return error;
	error = leave_block(inode, old);
	job->block.buffer = NULL;
	if (error) {
		uint64_t block = (*out)->block;

		bcache_put(*out);
		ext_blocks_free(inode, block, 1, true);
	}
	return error;
}

/* The first block in a file system sets the feature, as on Linux. */
static void note_feature(struct ext_fs *fs)
{
	if (fs->super.s_feature_compat & EXT_COMPAT_EXT_ATTR)
		return;
	fs->super.s_feature_compat |= EXT_COMPAT_EXT_ATTR;
	fs->super_changed = true;
}

/* The page is complete before the block is touched, and an empty one frees the block. */
static int put_in_block(struct job *job, const void *value)
{
	struct ext_inode *inode = job->inode;
	struct ext_fs *fs = inode->fs;
	struct ext_xattr_header *header = (struct ext_xattr_header *)job->built.data;
	struct cached_block *buffer;
	int error = build(job, &job->block, value, sizeof(*header), fs->summary.block_size);

	if (!error && job->at == sizeof(*header)) {
		buffer = job->block.buffer;
		job->block.buffer = NULL;
		return leave_block(inode, buffer);
	}
	if (!error)
		error = block_to_write(job, &buffer);
	if (error)
		return error;
	*header = (struct ext_xattr_header){ .h_magic = EXT_XATTR_MAGIC,
					     .h_refcount = 1,
					     .h_blocks = 1,
					     .h_hash = block_hash(&job->built) };
	ext_attributes_seal(fs, buffer->block, job->built.data);
	memcpy(buffer->data, job->built.data, fs->summary.block_size);
	inode->attributes = buffer->block;
	note_feature(fs);
	if (buffer != job->block.buffer)
		bcache_put(buffer);
	return 0;
}

/* ---- one call ---- */

/* Setting what is there already writes nothing, and leaves the times alone. */
static bool has_value(const struct job *job, const struct ext_attributes *place,
		      const struct ext_xattr_entry *entry)
{
	return entry && job->value && entry->e_value_size == job->size &&
	       memcmp(place->data + entry->e_value_offs, job->value, job->size) == 0;
}

/* A new value is there before the old one goes: cut off in between, the name has one of the two. */
static int change_places(struct job *job, bool in_body, bool in_block)
{
	if (!job->value)
		return in_body ? put_in_inode(job, NULL) : put_in_block(job, NULL);
	int error = put_in_inode(job, job->value);

	if (!error)
		return in_block ? put_in_block(job, NULL) : 0;
	if (error != -ENOSPC)
		return error;
	error = put_in_block(job, job->value);
	return !error && in_body ? put_in_inode(job, NULL) : error;
}

/* -EEXIST and -ENODATA as setxattr(2) has them; -ENOSPC for what no block could hold. The inode is
 * written also after an error: blocks may have been allocated and freed again. */
static int change_opened(struct job *job, enum ext_attribute_flags flags)
{
	const struct ext_xattr_entry *in_body = ext_attribute_find(&job->body, &job->name);
	const struct ext_xattr_entry *in_block = ext_attribute_find(&job->block, &job->name);
	bool exists = in_body || in_block;

	if (exists && flags & EXT_ATTRIBUTE_CREATE)
		return -EEXIST;
	if (!exists && (flags & EXT_ATTRIBUTE_REPLACE || !job->value))
		return -ENODATA;
	if (job->size > PAGE_SIZE)
		return -ENOSPC;
	if (has_value(job, &job->body, in_body) || has_value(job, &job->block, in_block))
		return 0;
	int error = change_places(job, in_body, in_block);

	if (!error)
		job->inode->changed = ext_inode_now(job->inode);
	return ext_inode_write_after(job->inode, error);
}

/* Both places stay referenced until the end: which one the name is in decides what is done. */
static int change(struct job *job, enum ext_attribute_flags flags)
{
	int error = ext_attributes_in_inode(job->inode, &job->body);

	if (error)
		return error;
	error = ext_attributes_in_block(job->inode, &job->block);
	if (!error) {
		error = change_opened(job, flags);
		bcache_put(job->block.buffer);
	}
	return bcache_done(job->body.buffer, error);
}

/* The inode on disk is pinned, so that it can be written, whatever fails. A page is as large as the
 * largest block, and so are the places that are built in it. */
int ext_attribute_set(struct ext_inode *inode, const char *name, const void *value, uint32_t size,
		      enum ext_attribute_flags flags)
{
	struct job job = { .inode = inode, .value = value, .size = size };
	int error = ext_attribute_split(name, &job.name);

	if (error)
		return error;
	job.built.data = page_alloc(0);
	if (!job.built.data)
		return -ENOMEM;
	error = ext_inode_begin(inode) ?: ext_inode_end(inode, change(&job, flags));
	page_free(job.built.data, 0);
	return error;
}

/* The inode is freed: its own place goes with it, the block only with the last that has it. */
int ext_attributes_release(struct ext_inode *inode)
{
	struct ext_attributes place;
	int error = ext_attributes_in_block(inode, &place);

	return error || !place.buffer ? error : leave_block(inode, place.buffer);
}

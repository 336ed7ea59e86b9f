/*
 * Extended attributes, read: small values with names such as "user.mime_type" that belong to
 * inodes.
 *
 * An inode of 256 bytes has about 90 for them; what does not fit goes to one block. Both are built
 * alike: entries grow from the front, values from the back, and a word of 0 ends the entries.
 *
 *	inode	  [fields 160] magic [user, "a", 3 bytes at 88] 0 ......................... "abc"
 *	block	  [header 32] [user, "b", ..] [user, "long", ..] [security, ..] 0 ... values
 *
 * The first part of a name is a number, and not stored. Attributes with any other prefix than the
 * three known ones (access control lists) are neither shown nor changed, and stay. Entries of a
 * block are sorted by prefix, length and text. Several inodes may share a block
 * (attributes_change.c).
 *
 * Nothing of a place is used before all of it was checked, so the functions for entries need no
 * bounds. docs.kernel.org, "ext4 Data Structures and Algorithms", 4.3 Extended Attributes. May wait
 * for the drive.
 */
#include "fs/ext/attributes.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"

/* As Linux's IS_LAST_ENTRY has it: where the first word is 0 there is no entry. */
#define END_BYTES ((uint32_t)sizeof(uint32_t)) /* of the word after the last entry */

static const struct {
	uint8_t number;
	uint8_t length;
	const char *text;
} prefixes[] = {
	{ EXT_XATTR_USER, 5, "user." },
	{ EXT_XATTR_TRUSTED, 8, "trusted." },
	{ EXT_XATTR_SECURITY, 9, "security." },
};

#define PREFIXES (sizeof(prefixes) / sizeof(prefixes[0]))

/* A name that is all prefix is -EINVAL, as on Linux: there it is "user." without a key. */
int ext_attribute_split(const char *name, struct ext_attribute_name *out)
{
	size_t length = strlen(name);

	if (length == 0 || length > EXT_ATTRIBUTE_NAME_MAX)
		return -ERANGE;
	for (unsigned i = 0; i < PREFIXES; i++) {
		uint8_t skipped = prefixes[i].length;

		if (length < skipped || memcmp(name, prefixes[i].text, skipped) != 0)
			continue;
		*out = (struct ext_attribute_name){ name + skipped, (uint8_t)(length - skipped),
						    prefixes[i].number };
		return length > skipped ? 0 : -EINVAL;
	}
	return -EOPNOTSUPP;
}

/* ---- entries ---- */

/* One step of every walk. The word is copied, because offsets of a damaged place need not be
 * aligned.
 */
struct ext_xattr_entry *ext_attribute_next(const struct ext_attributes *place, uint32_t *at)
{
	struct ext_xattr_entry *entry = (struct ext_xattr_entry *)(place->data + *at);
	uint32_t word;

	if (*at + END_BYTES > place->size)
		return NULL;
	memcpy(&word, entry, sizeof(word));
	if (word == 0)
		return NULL;
	*at += ext_attribute_bytes(entry->e_name_len);
	return entry;
}

/* Lengths before letters, as Linux sorts them (fs/ext4/xattr.c): so "b" comes before "aa". */
int ext_attribute_compare(const struct ext_attribute_name *name,
			  const struct ext_xattr_entry *entry)
{
	if (name->prefix != entry->e_name_index)
		return name->prefix - entry->e_name_index;
	if (name->length != entry->e_name_len)
		return name->length - entry->e_name_len;
	return memcmp(name->text, entry->e_name, name->length);
}

/* By a walk in both places: a block has few entries, so their order saves nothing. */
struct ext_xattr_entry *ext_attribute_find(const struct ext_attributes *place,
					   const struct ext_attribute_name *name)
{
	struct ext_xattr_entry *entry;
	uint32_t at = place->first;

	if (!place->buffer)
		return NULL;
	do
		entry = ext_attribute_next(place, &at);
	while (entry && ext_attribute_compare(name, entry) != 0);
	return entry;
}

/* ---- what is on the disk is checked ---- */

/* Entries end in the place, and have no value in an inode of its own, which the feature ea_inode
 * would allow; *end is after their 0. */
static bool entries_valid(const struct ext_attributes *place, uint32_t *end)
{
	const struct ext_xattr_entry *entry;
	uint32_t at = place->first;

	while ((entry = ext_attribute_next(place, &at)))
		if (at + END_BYTES > place->size || entry->e_value_inum != 0)
			return false;
	*end = at + END_BYTES;
	return true;
}

/* Each value is between the entries and the end, and there is room for all of them. */
static bool values_valid(const struct ext_attributes *place, uint32_t end)
{
	const struct ext_xattr_entry *entry;
	uint32_t at = place->first, room = place->size - end;

	while ((entry = ext_attribute_next(place, &at))) {
		uint32_t size = entry->e_value_size, offset = entry->e_value_offs;

		if (size == 0)
			continue;
		if (offset < end || offset > place->size || size > place->size - offset ||
		    ext_value_bytes(size) > room)
			return false;
		room -= ext_value_bytes(size);
	}
	return true;
}

/* -EUCLEAN; then the buffer has been given back. */
static int check_entries(const struct ext_inode *inode, struct ext_attributes *place)
{
	uint32_t end;

	if (entries_valid(place, &end) && values_valid(place, end))
		return 0;
	bcache_put(place->buffer);
	return ext_corrupt_inode(inode, "attributes in %s: an entry or a value is not inside",
				 place->is_block ? "a block" : "the inode");
}

/* After as many bytes of fields as the inode says, if there is room for one entry. */
int ext_attributes_in_inode(const struct ext_inode *inode, struct ext_attributes *out)
{
	struct ext_fs *fs = inode->fs;
	uint32_t magic;

	*out = (struct ext_attributes){ 0 };
	if (fs->inode_size == EXT_OLD_INODE_SIZE)
		return 0;
	int error = ext_inode_block(fs, inode->number, &out->buffer);

	if (error)
		return error;
	struct ext_disk_inode_large *disk = ext_inode_in(fs, inode->number, out->buffer);
	uint32_t from = EXT_OLD_INODE_SIZE + disk->i_extra_isize + (uint32_t)sizeof(magic);

	if (disk->i_extra_isize == 0 || disk->i_extra_isize % 4 != 0 ||
	    from + END_BYTES > fs->inode_size) {
		bcache_put(out->buffer);
		out->buffer = NULL;
		return 0;
	}
	out->data = (uint8_t *)disk + from;
	out->size = fs->inode_size - from;
	memcpy(&magic, out->data - sizeof(magic), sizeof(magic));
	if (magic != EXT_XATTR_MAGIC)
		out->first = out->size;
	return check_entries(inode, out);
}

/* Linux makes blocks of one block only, and never one that nobody has. The checksum is over the
 * block's number, too: a block that was written to a wrong place is found. */
static int check_attribute_header(const struct ext_inode *inode, const struct cached_block *buffer)
{
	const struct ext_xattr_header *header = (const struct ext_xattr_header *)buffer->data;

	if (header->h_magic != EXT_XATTR_MAGIC || header->h_blocks != 1 || header->h_refcount == 0)
		return ext_corrupt_inode(
		    inode, "attributes in block %ju: magic 0x%08x, %u blocks, %u inodes",
		    buffer->block, header->h_magic, header->h_blocks, header->h_refcount);
	if (!ext_has_checksums(inode->fs))
		return 0;
	uint32_t sum = ext_attributes_checksum(inode->fs, buffer->block, buffer->data);

	if (header->h_checksum == sum)
		return 0;
	ext_corrupt_inode(inode, "attributes in block %ju: " EXT_CHECKSUM_WRONG, buffer->block,
			  header->h_checksum, sum);
	return -EBADMSG;
}

/* A block that is the file system's own (a bitmap, a table) is refused before it is read. */
int ext_attributes_in_block(const struct ext_inode *inode, struct ext_attributes *out)
{
	struct ext_fs *fs = inode->fs;

	*out = (struct ext_attributes){ .is_block = true };
	if (inode->attributes == 0)
		return 0;
	int error = ext_check_run(inode, inode->attributes, 1)
			?: ext_block_read(fs, inode->attributes, BLOCK_OTHER, &out->buffer);

	if (error)
		return error;
	error = check_attribute_header(inode, out->buffer);
	if (error)
		return bcache_done(out->buffer, error);
	out->data = out->buffer->data;
	out->first = sizeof(struct ext_xattr_header);
	out->size = fs->summary.block_size;
	return check_entries(inode, out);
}

/* ---- for programs ---- */

typedef int open_place(const struct ext_inode *inode, struct ext_attributes *out);

/* In Linux's order: what is in both (a move that was cut off) is the inode's. */
static open_place *const places[] = { ext_attributes_in_inode, ext_attributes_in_block };

/* A size of 0 asks how long the value is: getxattr(2). */
static int copy_value(const struct ext_attributes *place, const struct ext_attribute_name *name,
		      void *value, uint32_t size)
{
	const struct ext_xattr_entry *entry = ext_attribute_find(place, name);

	if (!entry)
		return -ENODATA;
	if (size > 0 && size < entry->e_value_size)
		return -ERANGE;
	if (size > 0)
		memcpy(value, place->data + entry->e_value_offs, entry->e_value_size);
	return (int)entry->e_value_size;
}

/* The block is read only when the inode does not have the name. */
int ext_attribute_get(const struct ext_inode *inode, const char *name, void *value, uint32_t size)
{
	struct ext_attribute_name wanted;
	struct ext_attributes place;
	int error = ext_attribute_split(name, &wanted);
	int result = error ? error : -ENODATA;

	for (unsigned i = 0; i < 2 && result == -ENODATA; i++) {
		error = places[i](inode, &place);
		if (error)
			return error;
		result = copy_value(&place, &wanted, value, size);
		bcache_put(place.buffer);
	}
	return result;
}

/* Adds a name with its NUL; -ERANGE when it does not fit. A size of 0 only counts. A name with a
 * prefix that is not known is passed over: who lists it could not ask for its value. */
static int add_name(const struct ext_xattr_entry *entry, char *names, uint32_t size, uint32_t *used)
{
	unsigned i = 0;

	while (i < PREFIXES && prefixes[i].number != entry->e_name_index)
		i++;
	if (i == PREFIXES)
		return 0;
	uint32_t bytes = prefixes[i].length + entry->e_name_len + 1u;

	if (size > 0 && bytes > size - *used)
		return -ERANGE;
	if (size > 0) {
		memcpy(names + *used, prefixes[i].text, prefixes[i].length);
		memcpy(names + *used + prefixes[i].length, entry->e_name, entry->e_name_len);
		names[*used + bytes - 1] = '\0';
	}
	*used += bytes;
	return 0;
}

/* listxattr(2): all names one after the other, those in the inode first. */
int ext_attribute_list(const struct ext_inode *inode, char *names, uint32_t size)
{
	const struct ext_xattr_entry *entry;
	struct ext_attributes place;
	uint32_t used = 0;
	int error = 0;

	for (unsigned i = 0; i < 2 && !error; i++) {
		error = places[i](inode, &place);
		if (error || !place.buffer)
			continue;
		uint32_t at = place.first;

		while (!error && (entry = ext_attribute_next(&place, &at)))
			error = add_name(entry, names, size, &used);
		bcache_put(place.buffer);
	}
	return error ? error : (int)used;
}

/* Extended attributes: the places that have some, and their entries, for the two files that read
 * and change them. */
#pragma once

#include "fs/ext/inodes.h"

#define EXT_ATTRIBUTE_NAME_MAX 255 /* bytes, the prefix included */

/* A name as entries have it. */
struct ext_attribute_name {
	const char *text; /* what follows the prefix */
	uint8_t length;	  /* of it */
	uint8_t prefix;	  /* EXT_XATTR_... */
};

/*
 * Where an inode can have attributes: inside it, after its own fields, or in a block. What has been
 * opened was checked: all entries and values are inside, and no value is inside the entries.
 */
struct ext_attributes {
	struct cached_block *buffer; /* referenced; NULL: there is no such place */
	uint8_t *data;		     /* offsets count from here */
	uint32_t first;		     /* where entries begin; the end if there are none yet */
	uint32_t size;		     /* all, bytes */
	bool is_block;		     /* entries are sorted, and have hashes */
};

/* Splits "user.name". -EOPNOTSUPP for a prefix that is not user., trusted. or security., -EINVAL
 * for nothing after it, -ERANGE for a name that is too long. */
int ext_attribute_split(const char *name, struct ext_attribute_name *out);

/* Opens the place inside an inode, or its block; bcache_put(out->buffer) ends that. -EUCLEAN,
 * -EBADMSG or the device's error: then there is nothing to be put. */
int ext_attributes_in_inode(const struct ext_inode *inode, struct ext_attributes *out);
int ext_attributes_in_block(const struct ext_inode *inode, struct ext_attributes *out);

/* How many bytes an entry has with a name of this length, and a value. */
static inline uint32_t ext_attribute_bytes(uint32_t length)
{
	return (offsetof(struct ext_xattr_entry, e_name) + length + 3) & ~3u;
}

static inline uint32_t ext_value_bytes(uint32_t size)
{
	return (size + 3) & ~3u;
}

/* The entry at byte *at, which becomes that of the next one. NULL at the end. */
struct ext_xattr_entry *ext_attribute_next(const struct ext_attributes *place, uint32_t *at);

/* The entry of a name; NULL if there is none. */
struct ext_xattr_entry *ext_attribute_find(const struct ext_attributes *place,
					   const struct ext_attribute_name *name);

/* Below 0, 0, above 0: the order of entries in a block. */
int ext_attribute_compare(const struct ext_attribute_name *name,
			  const struct ext_xattr_entry *entry);

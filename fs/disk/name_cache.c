/*
 * Names of inodes that are in memory: a path that was walked lately needs no directory.
 *
 * Each inode keeps the name by which it was found last, and the number of its directory, and is in
 * a hash table by these:
 *
 *	inode 12 "mail" in 2	inode 40 "ann" in 12	inode 41 "bob" in 12
 *
 * So a name is freed with its inode, and nothing else has to be freed. A name that is about to
 * change is forgotten before the directory is changed, with the mount's lock, and comes back when
 * it is found again; so to find one needs no lock. Of a long name only the hash and the length are
 * kept, which tell another name of the same inode from it, and it is not found in the table. Of
 * names that are not there, a mount notes the one that was looked for last: it may be made now.
 *
 * The directory's number is enough: a directory that is removed has no entries.
 */
#include "fs/disk/name_cache.h"

#include <stddef.h>

#include "kernel/lib/string.h"

#define BUCKETS 4096u

static struct kept_name *buckets[BUCKETS];

static struct kept_name **name_bucket(uint32_t parent, uint32_t hash)
{
	return &buckets[(hash + parent * 31) % BUCKETS];
}

bool kept_name_is(const struct kept_name *kept, const struct inode *directory,
		  const struct name *name)
{
	return kept->parent == directory->number && kept->hash == name->hash &&
	       kept->filesystem == directory->filesystem && kept->length == name->length &&
	       (name->length > KEPT_NAME || memcmp(kept->text, name->text, name->length) == 0);
}

struct kept_name *kept_name_find(const struct inode *directory, const struct name *name)
{
	struct kept_name *kept = *name_bucket(directory->number, name->hash);

	while (kept && !kept_name_is(kept, directory, name))
		kept = kept->chain;
	return kept;
}

void kept_name_note(struct kept_name *kept, const struct inode *directory, const struct name *name)
{
	*kept = (struct kept_name){ .filesystem = directory->filesystem,
				    .parent = directory->number,
				    .hash = name->hash,
				    .length = name->length };
	memcpy(kept->text, name->text, name->length > KEPT_NAME ? 0 : name->length);
}

void kept_name_set(struct kept_name *kept, const struct inode *directory, const struct name *name)
{
	struct kept_name **bucket = name_bucket(directory->number, name->hash);

	kept_name_forget(kept);
	if (name_is(name, ".."))
		return;
	kept_name_note(kept, directory, name);
	if (name->length > KEPT_NAME)
		return;
	kept->chain = *bucket;
	*bucket = kept;
}

void kept_name_forget(struct kept_name *kept)
{
	struct kept_name **at = name_bucket(kept->parent, kept->hash);

	if (kept->parent == 0)
		return;
	kept->parent = 0;
	if (kept->length > KEPT_NAME)
		return;
	while (*at != kept)
		at = &(*at)->chain;
	*at = kept->chain;
}

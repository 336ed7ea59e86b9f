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
 * dentry, which tell another name of the same inode from it, and it is not found in the table. Of
 * names that are not there, a mount notes the one that was looked for last: it may be made now.
 *
 * The directory's number is enough: a directory that is removed has no entries.
 */
#include "fs/disk/dentry.h"

#define BUCKETS 4096u

static struct dentry *buckets[BUCKETS];

static struct dentry **name_bucket(uint32_t parent, uint32_t hash)
{
	return &buckets[(hash + parent * 31) % BUCKETS];
}

bool dentry_is(const struct dentry *dentry, const struct inode *directory, const struct name *name)
{
	return dentry->parent == directory->number && dentry->hash == name->hash &&
	       dentry->filesystem == directory->filesystem && dentry->length == name->length &&
	       (name->length > DENTRY_NAME || memcmp(dentry->text, name->text, name->length) == 0);
}

struct dentry *dentry_find(const struct inode *directory, const struct name *name)
{
	struct dentry *dentry = *name_bucket(directory->number, name->hash);

	while (dentry && !dentry_is(dentry, directory, name))
		dentry = dentry->chain;
	return dentry;
}

void dentry_fill(struct dentry *dentry, const struct inode *directory, const struct name *name)
{
	*dentry = (struct dentry){ .filesystem = directory->filesystem,
				   .parent = directory->number,
				   .hash = name->hash,
				   .length = name->length };
	memcpy(dentry->text, name->text, name->length > DENTRY_NAME ? 0 : name->length);
}

void dentry_set(struct dentry *dentry, const struct inode *directory, const struct name *name)
{
	struct dentry **bucket = name_bucket(directory->number, name->hash);

	dentry_forget(dentry);
	if (name_is(name, ".."))
		return;
	dentry_fill(dentry, directory, name);
	if (name->length > DENTRY_NAME)
		return;
	dentry->chain = *bucket;
	*bucket = dentry;
}

void dentry_forget(struct dentry *dentry)
{
	struct dentry **at = name_bucket(dentry->parent, dentry->hash);

	if (dentry->parent == 0)
		return;
	dentry->parent = 0;
	if (dentry->length > DENTRY_NAME)
		return;
	while (*at != dentry)
		at = &(*at)->chain;
	*at = dentry->chain;
}

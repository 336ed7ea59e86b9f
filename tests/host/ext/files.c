/* Files of one mount by path: the table of inodes in use, and paths. */
#include "tests/host/ext/files.h"

#include <stdlib.h>
#include <string.h>

#include "kernel/lib/errno.h"
#include "tests/host/ext/files_internal.h"
#include "tests/host/ext/shim.h"

#define BUCKETS	   1024u
#define ROOT_INODE 2u

struct ext_fs *fs;

static struct used_inode *buckets[BUCKETS];

static struct used_inode **link_of(uint32_t number)
{
	struct used_inode **link = &buckets[number % BUCKETS];

	while (*link != NULL && (*link)->inode.number != number)
		link = &(*link)->next;
	return link;
}

struct used_inode *inode_add(const struct ext_inode *inode)
{
	struct used_inode **link = link_of(inode->number);
	struct used_inode *used = *link != NULL ? *link : calloc(1, sizeof(*used));

	if (used == NULL)
		fail("no memory for an inode");
	used->inode = *inode;
	return *link = used;
}

int inode_use(uint32_t number, struct ext_inode **out)
{
	struct used_inode *used = *link_of(number);
	struct ext_inode inode;
	int error = 0;

	if (used == NULL) {
		error = ext_inode_read(fs, number, &inode);
		if (error)
			return error;
		used = inode_add(&inode);
	}
	*out = &used->inode;
	return 0;
}

static void drop(struct used_inode **link)
{
	struct used_inode *used = *link;

	*link = used->next;
	free(used);
}

int inode_release(struct ext_inode *inode)
{
	struct used_inode **link = link_of(inode->number);
	int error;

	if (inode->links > 0 || (*link)->open > 0)
		return 0;
	error = ext_release(inode);
	drop(link);
	return error;
}

int inode_open(struct ext_inode *inode)
{
	(*link_of(inode->number))->open++;
	return 0;
}

int inode_close_all(void)
{
	int error = 0;

	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct used_inode *used = buckets[i], *next; used != NULL; used = next) {
			int result;

			next = used->next;
			used->open = 0;
			result = inode_release(&used->inode);
			error = error ? error : result;
		}
	return error;
}

void files_forget(void)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		while (buckets[i] != NULL)
			drop(&buckets[i]);
}

int files_mount(const struct ext_options *options)
{
	return ext_mount(&disk.device, options, &fs);
}

int files_unmount(void)
{
	int error = inode_close_all();
	int result;

	files_forget();
	result = ext_unmount(fs);
	fs = NULL;
	return error ? error : result;
}

/* Finds what the path names; with a name, only its directory, and the last component. */
int path_walk(const char *path, struct ext_inode **out, struct ext_name *name)
{
	int error = inode_use(ROOT_INODE, out);

	for (path += strspn(path, "/"); !error && *path != '\0'; path += strspn(path, "/")) {
		const struct ext_name next = { path, (uint32_t)strcspn(path, "/") };
		uint32_t number;

		if (name != NULL && path[next.length] == '\0') {
			*name = next;
			return 0;
		}
		error = ext_find(*out, &next, &number);
		if (!error)
			error = inode_use(number, out);
		path += next.length;
	}
	return error == 0 && name != NULL ? -EINVAL : error;
}

int files_find(const char *path, struct ext_inode **out)
{
	return ext_find != NULL ? path_walk(path, out, NULL) : -ENOSYS;
}

void files_pattern(uint8_t *buffer, uint64_t offset, uint32_t length, uint32_t seed)
{
	for (uint32_t i = 0; i < length; i++) {
		uint64_t place = offset + i;
		uint32_t words[2] = { (uint32_t)(place / 8) + 1, seed };

		buffer[i] = ((const uint8_t *)words)[place % 8];
	}
}

/*
 * Commands about names, for a mount that is written to:
 *
 *	node PATH MODE DEVICE	makes an inode of any type; the mode is octal
 *	iterate PATH COUNT	the next COUNT names of a directory; another path, or the end of
 *				this one, begins again
 *	attributes PATH		the names and values of its attributes
 *	getattr PATH NAME SIZE	the length of a value that is to fit into SIZE bytes
 *	hash VERSION NAME	a name's hash
 *	collide MASK		from here on hashes have these bits only: names collide
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/ext/directories.h"
#include "kernel/lib/errno.h"
#include "tests/host/ext/command.h"
#include "tests/host/ext/files.h"
#include "tests/host/ext/files_internal.h"

static uint32_t hash_mask = UINT32_MAX;

/* The linker puts these in the place of the function: --wrap. */
uint32_t __real_ext_name_hash(const struct ext_fs *mount, uint8_t version,
			      const struct ext_name *name);
uint32_t __wrap_ext_name_hash(const struct ext_fs *mount, uint8_t version,
			      const struct ext_name *name);

uint32_t __wrap_ext_name_hash(const struct ext_fs *mount, uint8_t version,
			      const struct ext_name *name)
{
	return __real_ext_name_hash(mount, version, name) & hash_mask;
}

static void collide(char *mask)
{
	hash_mask = (uint32_t)strtoul(mask, NULL, 0);
}

static void hash(char *arguments)
{
	uint8_t version = (uint8_t)strtoul(arguments, &arguments, 0);
	struct ext_name name = { arguments + 1, (uint32_t)strlen(arguments + 1) };

	printf("hash %08x\n", ext_name_hash(fs, version, &name));
}

static void node(char *arguments)
{
	const char *path = strtok(arguments, " ");
	uint16_t mode = (uint16_t)strtoul(strtok(NULL, " "), NULL, 8);
	uint32_t device = (uint32_t)strtoul(strtok(NULL, " "), NULL, 0);
	struct ext_inode *directory, inode;
	struct ext_name name;
	int error = path_walk(path, &directory, &name);

	if (!error) {
		const struct ext_new new = { mode, directory->owner, directory->group, device,
					     NULL };

		error = ext_create(directory, &name, &new, &inode);
	}
	if (error)
		say_error(error);
	else
		inode_add(&inode);
}

static int print_name(void *context, const char *name, uint32_t inode, uint8_t type)
{
	unsigned *left = context;

	if (*left == 0)
		return 1;
	--*left;
	printf("name %u %u %s\n", inode, type, name);
	return 0;
}

static void iterate(char *arguments)
{
	static char path[256];
	static uint64_t position;
	const char *wanted = strtok(arguments, " ");
	unsigned left = (unsigned)strtoul(strtok(NULL, " "), NULL, 0);
	struct ext_inode *directory;
	int result = files_find(wanted, &directory);

	if (strcmp(path, wanted) != 0)
		position = 0;
	snprintf(path, sizeof(path), "%s", wanted);
	if (!result)
		result = ext_iterate(directory, &position, print_name, &left);
	if (result <= 0)
		path[0] = '\0';
	if (result == 0)
		printf("end\n");
	else if (result < 0)
		say_error(result);
}

static void getattr(char *arguments)
{
	static uint8_t value[8192];
	const char *path = strtok(arguments, " "), *name = strtok(NULL, " ");
	uint32_t size = (uint32_t)strtoul(strtok(NULL, " "), NULL, 0);
	struct ext_inode *inode;
	int result = files_find(path, &inode);

	if (!result)
		result = ext_attribute_get(inode, name, value, size);
	if (result < 0)
		say_error(result);
	else
		printf("length %d\n", result);
}

static void print_bytes(const uint8_t *bytes, int length)
{
	for (int i = 0; i < length; i++)
		printf("%02x", bytes[i]);
	printf("\n");
}

static void attributes(char *path)
{
	static char names[8192];
	uint8_t value[4096];
	struct ext_inode *inode;
	int length = files_find(path, &inode);

	printf("attributes of %s\n", path);
	if (!length)
		length = ext_attribute_list(inode, names, 0);
	if (length >= 0 && ext_attribute_list(inode, names, (uint32_t)length + 1) != length)
		length = -EIO;
	if (length < 0)
		say_error(length);
	for (const char *name = names; name < names + length; name += strlen(name) + 1) {
		int got = ext_attribute_get(inode, name, value, sizeof(value));

		printf("attribute %s ", name);
		if (got < 0)
			say_error(got);
		else
			print_bytes(value, got);
	}
}

const struct command name_commands[] = {
	{ "attributes", attributes },
	{ "getattr", getattr },
	{ "node", node },
	{ "iterate", iterate },
	{ "hash", hash },
	{ "collide", collide },
	{ NULL, NULL },
};

/*
 * The types of file systems that this kernel has, and the text of mount's options.
 *
 * Each type adds itself at start-up, to the end of a list, so /proc/filesystems has them in the
 * order in which they are linked. Nothing is ever taken out of it, so nothing is locked.
 */
#include "fs/vfs/filesystem.h"

#include "kernel/lib/string.h"

static struct filesystem *types, **end = &types;

/* At start-up: in the order in which a mount without a type tries them. */
void filesystem_register(struct filesystem *type)
{
	*end = type;
	end = &type->next;
}

const struct filesystem *filesystem_next(const struct filesystem *type)
{
	return type ? type->next : types;
}

const struct filesystem *filesystem_find(const char *name)
{
	const struct filesystem *type = types;

	while (type && strcmp(type->type, name) != 0)
		type = type->next;
	return type;
}

/* "a,,b=c" has two options: commas without one between them are passed over. */
bool mount_option_next(const char **text, char *name, uint32_t size, const char **value)
{
	const char *at = *text ? *text : "";
	uint32_t length = 0;

	while (*at == ',')
		at++;
	if (!*at)
		return false;
	for (; *at && *at != ','; at++)
		if (length < size - 1)
			name[length++] = *at;
	name[length] = '\0';
	*text = at;
	char *equals = strchr(name, '=');

	*value = equals ? equals + 1 : "";
	if (equals)
		*equals = '\0';
	return true;
}

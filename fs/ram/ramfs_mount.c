/*
 * The file system in memory as something to mount: "ramfs", which is the root at first, and
 * "tmpfs", which is the same here. All of them share one limit (ramfs_counts). See
 * statfs(2), and tmpfs(5) for its options, of which it knows one: mode.
 */

#include "fs/ram/ramfs.h"
#include "fs/vfs/filesystem.h"
#include "kernel/lib/number.h"
#include "kernel/lib/startup.h"
#include "kernel/report/printk.h"
#include "mm/memory_map.h"
#include "mm/page_alloc.h"

/* "755": a mode in octal digits; 0 for anything else, and that is refused. */
static uint32_t mode_of_option(const char *text)
{
	uint32_t mode = 0;

	for (; *text >= '0' && *text <= '7'; text++)
		mode = mode * 8 + *text - '0';
	return *text ? 0 : mode & S_ALL;
}

/* An option that is not known is named on the console: -EINVAL says nothing else. -ENOMEM. The root
 * may be written by all and cleaned up by the owner only (01777), as tmpfs(5) says. */
static int tmpfs_mount(const struct filesystem *type, struct inode *device,
		       const struct mount_options *options, struct inode **root)
{
	const char *text = options->text, *value;
	uint32_t mode = 01777;
	char name[32];

	while (mount_option_next(&text, name, sizeof(name), &value)) {
		mode = strcmp(name, "mode") == 0 ? mode_of_option(value) : 0;
		if (!mode) {
			printk("mount: %s: option %s=%s is not known (mode=755 is)\n", type->type,
			       name, value);
			return -EINVAL;
		}
	}
	*root = ramfs_create_root();
	if (!*root)
		return -ENOMEM;
	(*root)->mode = S_IFDIR | mode;
	return 0;
}

/* In pages, of the whole machine: what is free is free to files only up to the limit. The type is
 * Linux's for ramfs (statfs(2)); inodes are not limited, and not told. */
static void ramfs_statfs(struct inode *root, struct filesystem_usage *usage)
{
	uint32_t free = page_free_count();

	*usage = (struct filesystem_usage){ .type = 0x858458f6,
					    .block_size = PAGE_SIZE,
					    .blocks = memory_map_usable() / (PAGE_SIZE / 1024),
					    .free = free,
					    .available = free };
}

/* Two names of one file system, because programs ask for both; each mount is another tree. */
static void ramfs_start(void)
{
	static struct filesystem types[] = { { .type = "ramfs" }, { .type = "tmpfs" } };

	for (struct filesystem *type = types; type <= &types[1]; type++) {
		type->mount = tmpfs_mount;
		type->statfs = ramfs_statfs;
		type->unmount = ramfs_unmount;
		filesystem_register(type);
	}
}
STARTUP(ramfs_start)

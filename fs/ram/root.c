/*
 * A root with directories and links, for fs/root.c, which else has a list of files.
 *
 *	tree_make	/, /dev, /tmp				by root_initialize
 *	(start-up)	devices, /proc, ...			by STARTUP functions
 *	tree_fill	/dev/null, ..., then /bin, /etc, ...	the devices; and the host's archive
 *
 * A kernel without an archive has an empty root, and says so. The first and the last are called
 * once each, before the first program.
 */
#include "fs/root.h"

#include "fs/devices.h"
#include "fs/vfs/names.h"
#include "fs/vfs/path.h"
#include "fs/ram/ramfs.h"
#include "fs/vfs/vfs.h"
#include "kernel/report/panic.h"
#include "kernel/report/printk.h"

/* What is made here needs no program and no archive; names in the archive come on top. */
void tree_make(void)
{
	struct inode *root = ramfs_create_root();

	if (!root)
		panic("no memory for the root directory");
	path_set_root(root);
	vfs_make(root, "/dev", S_IFDIR | 0755, 0);
	vfs_make(root, "/dev/pts", S_IFDIR | 0755, 0);
	vfs_make(root, "/dev/shm", S_IFDIR | 01777, 0);
	vfs_make(root, "/tmp", S_IFDIR | 01777, 0);
}

/* The umask takes permissions away from what is made. */
int tree_open(const struct files *files, const char *path, uint32_t flags, uint32_t mode,
	      struct file **file)
{
	return vfs_open(vfs_working_directory(files), path, flags, mode & ~files->umask, file);
}

int tree_open_program(const struct files *files, const char *path, struct file **file)
{
	return vfs_open_program(vfs_working_directory(files), path, file);
}

static void make_devices(void)
{
	for (const struct device *device = device_next(NULL); device;
	     device = device_next(device)) {
		char path[32];

		snprintk(path, sizeof(path), "/dev/%s", device->name);
		vfs_make(path_root(), path, (device->mode & S_IFMT ? 0 : S_IFCHR) | device->mode,
			 device->number);
	}
}

/* Paths in /dev for a program's own descriptors: POSIX does not ask for them, shells and scripts
 * do. They lead to /proc, which may be mounted later. */
static void link_descriptors(void)
{
	vfs_symlink(path_root(), "/dev/fd", "/proc/self/fd");
	vfs_symlink(path_root(), "/dev/stdin", "/proc/self/fd/0");
	vfs_symlink(path_root(), "/dev/stdout", "/proc/self/fd/1");
	vfs_symlink(path_root(), "/dev/stderr", "/proc/self/fd/2");
}

/* After an error the kernel continues with the files that it has: its own prompt needs none. */
void tree_fill(void)
{
	make_devices();
	link_descriptors();
	initramfs_unpack();
}

/* The files that programs find when they begin. */
#include "fs/ram/root.h"

#include "drivers/qemu/fw_cfg.h"
#include "drivers/qemu/settings.h"
#include "fs/devices.h"
#include "fs/ram/initramfs.h"
#include "fs/path.h"
#include "fs/proc/procfs.h"
#include "fs/ram/ramfs.h"
#include "fs/tty/tty.h"
#include "fs/vfs.h"
#include "kernel/lib/errno.h"
#include "kernel/report/panic.h"
#include "kernel/report/printk.h"

#define ARCHIVE "opt/org.apprentice/initramfs"

static int read_archive(void *context, void *buffer, uint32_t length)
{
	uint32_t *left = context;

	if (length > *left)
		length = *left;
	fw_cfg_next(buffer, length);
	*left -= length;
	return length;
}

static void unpack(struct inode *root)
{
	struct initramfs_error error;
	int length = fw_cfg_open(ARCHIVE);
	uint32_t left = length, entries;

	if (length < 0) {
		printk("files: the host gives none (%s)\n", errno_name(-length));
		return;
	}
	int result = initramfs_unpack(root, read_archive, &left, &entries, &error);

	if (result < 0)
		printk("files: %s: %s, at byte %llu of the archive (entry %s)\n",
		       errno_name(-result), error.cause, error.offset, error.name);
	else
		printk("files: %u from the host, %u KiB\n", entries, (uint32_t)length / 1024);
}

/* What /dev has for whoever wants a path for a descriptor. */
static void link_descriptors(void)
{
	vfs_symlink(path_root(), "/dev/fd", "/proc/self/fd");
	vfs_symlink(path_root(), "/dev/stdin", "/proc/self/fd/0");
	vfs_symlink(path_root(), "/dev/stdout", "/proc/self/fd/1");
	vfs_symlink(path_root(), "/dev/stderr", "/proc/self/fd/2");
}

void root_initialize(void)
{
	struct inode *root = ramfs_create_root();

	if (!root || vfs_mount("none", "ramfs", "/", root) != 0)
		panic("no memory for the root directory");
	unpack(root);
	vfs_make(path_root(), "/tmp", S_IFDIR | 01777, 0);
	devices_initialize(setting_number("seed", 0));
	tty_initialize();
	devices_create();
	link_descriptors();
	vfs_make(path_root(), "/proc", S_IFDIR | 0555, 0);
	if (vfs_mount("none", "proc", "/proc", procfs_create()) != 0)
		printk("files: /proc is no directory, and stays as it is\n");
}

/*
 * The files that programs find when they begin.
 *
 *	root_initialize	/, /dev, /dev/null, /dev/zero, /tmp	made here
 *	(start-up)	more devices, /proc, ...		whoever is linked hooks in
 *	root_unpack	/bin, /etc, ...				from the host's archive
 *
 * The archive comes through QEMU's fw_cfg (-fw_cfg name=ARCHIVE,file=...), piece by piece, so it
 * need not fit into memory twice. A kernel without an archive has an empty root, and says so.
 *
 * Called once each, by main.c, before the first program.
 */
#include "fs/ram/root.h"

#include "drivers/qemu/fw_cfg.h"
#include "fs/devices.h"
#include "fs/ram/initramfs.h"
#include "fs/path.h"
#include "fs/ram/ramfs.h"
#include "fs/vfs.h"
#include "kernel/lib/errno.h"
#include "kernel/report/panic.h"
#include "kernel/report/printk.h"

#define ARCHIVE "opt/org.apprentice/initramfs"

/* What is made here needs no program and no archive; names in the archive come on top. */
void root_initialize(void)
{
	struct inode *root = ramfs_create_root();

	if (!root)
		panic("no memory for the root directory");
	path_set_root(root);
	vfs_make(root, "/tmp", S_IFDIR | 01777, 0);
	devices_initialize();
}

/* The next bytes of the archive, of which *context are left. */
static int read_archive(void *context, void *buffer, uint32_t length)
{
	uint32_t *left = context;

	if (length > *left)
		length = *left;
	fw_cfg_next(buffer, length);
	*left -= length;
	return length;
}

/* The kernel goes on with whatever there is: its own prompt needs no files. */
void root_unpack(void)
{
	struct initramfs_error error;
	int length = fw_cfg_open(ARCHIVE);
	uint32_t left = length, entries;

	if (length < 0) {
		printk("files: the host gives none (%s)\n", errno_name(-length));
		return;
	}
	int result = initramfs_unpack(path_root(), read_archive, &left, &entries, &error);

	if (result < 0)
		printk("files: %s: %s, at byte %llu of the archive (entry %s)\n",
		       errno_name(-result), error.cause, error.offset, error.name);
	else
		printk("files: %u from the host, %u KiB\n", entries, (uint32_t)length / 1024);
}

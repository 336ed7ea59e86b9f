/*
 * Devices: who registers one finds it under /dev.
 *
 * A name in /dev is an inode with a number and nothing else; which code has that number is looked
 * up when the file is opened, so a name may exist before its device, or without it:
 *
 *	/dev/null	inode: character device 1, 3, file_ops = device_file_ops
 *	open		device_open looks 1, 3 up in the list: null_ops
 *	read, write	null_ops, without a further look
 *
 * Devices are registered at start-up and never go; so the list needs no lock.
 */
#include "fs/devices.h"

#include <stddef.h>

#include "fs/path.h"
#include "fs/vfs.h"
#include "kernel/lib/errno.h"
#include "kernel/report/printk.h"

static struct device *devices;

/* Replaces the operations of the file by the device's, whose own open comes after that. */
static int device_open(struct file *file)
{
	const struct inode *inode = file->inode;
	const struct device *device = devices;

	while (device &&
	       (device->number != inode->device || !inode_is(inode, device->mode & S_IFMT)))
		device = device->next;
	if (!device)
		return -ENXIO;
	file->ops = device->ops;
	return file->ops->open ? file->ops->open(file) : 0;
}

const struct file_ops device_file_ops = { .open = device_open };

/* The name in /dev may be there already, from the archive: then it is used as it is. */
void device_register(struct device *device)
{
	char path[32];

	device->next = devices;
	devices = device;
	snprintk(path, sizeof(path), "/dev/%s", device->name);
	if (path_root())
		vfs_make(path_root(), path, device->mode, device->number);
}

/* ---- the two that are made of nothing but code ---- */

/* 0 bytes: the end of the file. */
static int read_nothing(struct file *file, struct buffer *to, uint64_t offset)
{
	return 0;
}

/* All of it is accepted, and nothing is looked at: not even a bad pointer is noticed. */
int device_read_zeros(struct file *file, struct buffer *to, uint64_t offset)
{
	return buffer_put_zeros(to, to->length);
}

int device_write_away(struct file *file, struct buffer *from, uint64_t offset)
{
	return from->length;
}

static const struct file_ops null_ops = { .read = read_nothing, .write = device_write_away };
static const struct file_ops zero_ops = { .read = device_read_zeros, .write = device_write_away };

/* After path_set_root. /dev itself may be there already. */
void devices_initialize(void)
{
	static struct device null = { "null", S_IFCHR | 0666, DEVICE_OF_MEMORY(3), &null_ops,
				      NULL };
	static struct device zero = { "zero", S_IFCHR | 0666, DEVICE_OF_MEMORY(5), &zero_ops,
				      NULL };

	vfs_make(path_root(), "/dev", S_IFDIR | 0755, 0);
	device_register(&null);
	device_register(&zero);
}

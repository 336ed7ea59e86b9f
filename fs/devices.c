/* Devices, and the small ones that are made of nothing but code. */
#include "fs/devices.h"

#include <stddef.h>

#include "fs/path.h"
#include "fs/vfs.h"
#include "kernel/lib/errno.h"
#include "kernel/report/printk.h"
#include "kernel/lib/random.h"

#define MEMORY(minor) (1u << 8 | (minor))

static struct device *devices;
static struct random random;

const struct file_ops *device_ops(const struct inode *inode)
{
	for (const struct device *device = devices; device; device = device->next)
		if (device->number == inode->device && inode_is(inode, device->mode & S_IFMT))
			return device->ops;
	return NULL;
}

static int create_file(const struct device *device)
{
	char path[32];

	snprintk(path, sizeof(path), "/dev/%s", device->name);
	int error = vfs_make(path_root(), path, device->mode, device->number);

	return error == -EEXIST ? 0 : error;
}

int devices_create(void)
{
	int error = vfs_make(path_root(), "/dev", S_IFDIR | 0755, 0);

	if (error && error != -EEXIST)
		return error;
	error = 0;
	for (const struct device *device = devices; device && !error; device = device->next)
		error = create_file(device);
	return error;
}

void device_register(struct device *device)
{
	device->next = devices;
	devices = device;
	if (path_root())
		create_file(device);
}

/* ---- the small ones ---- */

static int read_nothing(struct file *file, struct buffer *to, uint64_t offset)
{
	return 0;
}

static int write_away(struct file *file, struct buffer *from, uint64_t offset)
{
	return from->length;
}

static int write_full(struct file *file, struct buffer *from, uint64_t offset)
{
	return -ENOSPC;
}

static int read_zeros(struct file *file, struct buffer *to, uint64_t offset)
{
	return buffer_put_zeros(to, to->length);
}

uint64_t device_random(void)
{
	return random_next(&random);
}

int device_fill_random(struct buffer *to)
{
	int done = 0;

	while (to->length > 0) {
		uint64_t bits = device_random();
		int moved = buffer_put(to, &bits, sizeof(bits));

		if (moved < 0)
			return done ? done : moved;
		done += moved;
	}
	return done;
}

static int read_random(struct file *file, struct buffer *to, uint64_t offset)
{
	return device_fill_random(to);
}

static const struct file_ops null_ops = { .read = read_nothing, .write = write_away };
static const struct file_ops zero_ops = { .read = read_zeros, .write = write_away };
static const struct file_ops full_ops = { .read = read_zeros, .write = write_full };
static const struct file_ops random_ops = { .read = read_random, .write = write_away };

void devices_initialize(uint64_t seed)
{
	static struct device table[] = {
		{ "null", S_IFCHR | 0666, MEMORY(3), &null_ops, NULL },
		{ "zero", S_IFCHR | 0666, MEMORY(5), &zero_ops, NULL },
		{ "full", S_IFCHR | 0666, MEMORY(7), &full_ops, NULL },
		{ "random", S_IFCHR | 0666, MEMORY(8), &random_ops, NULL },
		{ "urandom", S_IFCHR | 0666, MEMORY(9), &random_ops, NULL },
	};

	random.state = seed;
	for (uint32_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		device_register(&table[i]);
}

/*
 * Devices: each one that is registered has a file under /dev.
 *
 * Devices are registered at start-up and never removed, so the list needs no lock.
 */
#include "fs/devices.h"

static struct device *devices, **end = &devices;

void device_register(struct device *device)
{
	*end = device;
	end = &device->next;
}

const struct device *device_next(const struct device *device)
{
	return device ? device->next : devices;
}

/* ---- the two devices without hardware ---- */

/* 0 bytes: the end of the file. */
static int read_nothing(struct file *file, struct buffer *to, uint64_t offset)
{
	return 0;
}

/* Accepts all of it without reading it: not even a bad pointer is noticed. */
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

void devices_initialize(void)
{
	static struct device null = { "null", DEVICE_OF_MEMORY(3), 0666, &null_ops, NULL };
	static struct device zero = { "zero", DEVICE_OF_MEMORY(5), 0666, &zero_ops, NULL };

	device_register(&null);
	device_register(&zero);
}

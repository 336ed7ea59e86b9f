/* Devices, as files under /dev. */
#pragma once

#include <stdint.h>

#include "fs/file.h"

struct device {
	const char *name;
	uint32_t mode;	 /* S_IFCHR or S_IFBLK, and who may do what */
	uint32_t number; /* major << 8 | minor */
	const struct file_ops *ops;
	struct device *next;
};

#define DEVICE_OF_MEMORY(minor)                                                                    \
	(1u << 8 | (minor)) /* Linux's number for /dev/null and its like                           \
			     */

/* Adds a device and, where the root is there already, its file under /dev. The structure must live
 * as long as the kernel. */
void device_register(struct device *device);

/* What a device's inode brings: its open finds the device of the inode's number, or -ENXIO. */
extern const struct file_ops device_file_ops;

/* Makes /dev and registers null and zero. */
void devices_initialize(void);

/* What /dev/zero does, for others like it. */
int device_read_zeros(struct file *file, struct buffer *to, uint64_t offset);
int device_write_away(struct file *file, struct buffer *from, uint64_t offset);

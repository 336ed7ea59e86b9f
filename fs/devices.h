/* Devices: the files under /dev. */
#pragma once

#include "fs/file.h"

struct device {
	const char *name; /* in /dev */
	uint32_t number;  /* Linux's: major << 8 | minor */
	uint32_t mode;	  /* who may do what, as a file system shows it; with S_IFBLK, or a type
			     of 0 for a character device */
	const struct file_ops *ops;
	struct device *next;
};

#define DEVICE_OF_MEMORY(minor) (1u << 8 | (minor)) /* /dev/null and its like */

/* Adds a device, at start-up. The structure must live as long as the kernel. */
void device_register(struct device *device);

/* Every device: the first for NULL, NULL after the last. */
const struct device *device_next(const struct device *device);

/* Registers null and zero. */
void devices_initialize(void);

/* What /dev/zero does, for others like it. */
int device_read_zeros(struct file *file, struct buffer *to, uint64_t offset);
int device_write_away(struct file *file, struct buffer *from, uint64_t offset);

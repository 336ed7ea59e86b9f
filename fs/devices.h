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

/* Adds a device, and its file under /dev if that is there already. The structure must live as long
 * as the kernel. */
void device_register(struct device *device);

/* What stands behind a device's inode, or NULL. */
const struct file_ops *device_ops(const struct inode *inode);

/* Registers null, zero, full, random and urandom. The random ones' numbers follow from the seed. */
void devices_initialize(uint64_t seed);

/* Makes /dev and the files in it, where they are not there. */
int devices_create(void);

/* 64 random bits, from the same sequence as /dev/random's. */
uint64_t device_random(void);

/* Fills the whole buffer with them. Returns how many bytes, or -EFAULT when not even the first one
 * could be written. */
int device_fill_random(struct buffer *to);

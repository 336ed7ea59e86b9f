/* Directory entries, as Linux's getdents64 has them. */
#pragma once

#include <stdint.h>

/* The head of a directory entry; the name and its NUL follow. */
struct linux_dirent64 {
	uint64_t number;
	int64_t next;
	uint16_t length; /* of the whole entry */
	uint8_t type;	 /* an inode's mode >> 12 */
} __attribute__((packed));

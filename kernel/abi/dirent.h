/* Directory entries, as Linux's getdents64 has them. */
#pragma once

#include <stdint.h>

/* Types: an inode's mode >> 12. */
#define DT_UNKNOWN 0
#define DT_CHR	   2
#define DT_DIR	   4
#define DT_REG	   8
#define DT_LNK	   10

/* The head of a directory entry; the name and its NUL follow. */
struct linux_dirent64 {
	uint64_t number;
	int64_t next;
	uint16_t length; /* of the whole entry */
	uint8_t type;	 /* one of the above */
} __attribute__((packed));

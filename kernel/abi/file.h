/* Files in Linux's system calls for i386. */
#pragma once

#include <stdint.h>

/* Of readv and writev. */
struct linux_vector {
	uint32_t base;
	uint32_t length;
};

#define VECTORS_MAX 1024

/* Commands of ioctl for any file. */
#define FIONREAD 0x541b
#define FIONBIO	 0x5421

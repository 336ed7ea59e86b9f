/* Mapping memory. */
#pragma once

#include <sys/types.h>

#include "kernel/abi/mman.h"

#define MAP_FAILED ((void *)-1)

/* offset must be a multiple of the page's size. */
void *mmap(void *address, size_t length, int protection, int flags, int descriptor, off_t offset);
int munmap(void *address, size_t length);
int mprotect(void *address, size_t length, int protection);

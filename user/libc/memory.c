/*
 * malloc on the heap that brk moves: a list of free blocks in the order of their addresses, the
 * first that fits is taken, neighbours are merged.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/libc/syscall.h"

#define ALIGNMENT 16u
#define GROWTH	  65536u /* bytes, at least, that the heap grows by */

/* Before each block, free or not; the size includes it. */
struct block {
	size_t size;
	struct block *next; /* only while it is free */
	uint32_t padding[2];
};

static struct block *first_free;

static struct block *end_of(struct block *block)
{
	return (struct block *)((char *)block + block->size);
}

void *sbrk(ptrdiff_t by)
{
	static uintptr_t end;

	if (!end)
		end = _syscall1(SYS_brk, 0);
	uintptr_t wanted = end + by, old = end;

	if (by != 0 && (uintptr_t)_syscall1(SYS_brk, wanted) != wanted) {
		errno = ENOMEM;
		return (void *)-1;
	}
	end = wanted;
	return (void *)old;
}

/* Puts a block into the list, and merges it with a neighbour on either side. */
static void give_back(struct block *block)
{
	struct block **place = &first_free, *before = NULL;

	while (*place && *place < block) {
		before = *place;
		place = &before->next;
	}
	block->next = *place;
	*place = block;
	if (block->next && end_of(block) == block->next) {
		block->size += block->next->size;
		block->next = block->next->next;
	}
	if (before && end_of(before) == block) {
		before->size += block->size;
		before->next = block->next;
	}
}

/* Returns 0, or -1 with errno set. */
static int grow(size_t size)
{
	size_t length = (size + GROWTH - 1) / GROWTH * GROWTH;
	uintptr_t gap = -(uintptr_t)sbrk(0) % ALIGNMENT;
	char *memory = sbrk(length + gap);

	if (memory == (void *)-1)
		return -1;
	struct block *block = (struct block *)(memory + gap);

	block->size = length;
	give_back(block);
	return 0;
}

/* Takes a block out of the list, and puts what it has too much back. NULL: none is large enough. */
static struct block *take(size_t size)
{
	struct block **place = &first_free;

	while (*place && (*place)->size < size)
		place = &(*place)->next;
	struct block *block = *place;

	if (!block)
		return NULL;
	if (block->size - size >= 2 * sizeof(*block)) {
		struct block *rest = (struct block *)((char *)block + size);

		rest->size = block->size - size;
		rest->next = block->next;
		block->size = size;
		*place = rest;
	} else {
		*place = block->next;
	}
	return block;
}

void *malloc(size_t size)
{
	if (size > PTRDIFF_MAX - GROWTH) {
		errno = ENOMEM;
		return NULL;
	}
	size = (size + sizeof(struct block) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	struct block *block = take(size);

	if (!block && grow(size) == 0)
		block = take(size);
	return block ? block + 1 : NULL;
}

void free(void *memory)
{
	if (memory)
		give_back((struct block *)memory - 1);
}

void *calloc(size_t count, size_t size)
{
	size_t length;

	if (__builtin_mul_overflow(count, size, &length)) {
		errno = ENOMEM;
		return NULL;
	}
	void *memory = malloc(length);

	return memory ? memset(memory, 0, length) : NULL;
}

void *realloc(void *memory, size_t size)
{
	if (!memory)
		return malloc(size);
	size_t old = ((struct block *)memory)[-1].size - sizeof(struct block);

	if (size <= old)
		return memory;
	void *larger = malloc(size);

	if (larger) {
		memcpy(larger, memory, old);
		free(memory);
	}
	return larger;
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
	if (alignment < sizeof(void *) || (alignment & (alignment - 1)))
		return EINVAL;
	uintptr_t raw = (uintptr_t)malloc(size + alignment);

	if (!raw)
		return ENOMEM;
	*memory = (void *)((raw + alignment - 1) & -alignment);
	return 0;
}

/* Memory that a process shares with those it forked from. */
#include "tests/host/crash/arena.h"

#include <string.h>
#include <sys/mman.h>

#include "tests/host/ext/shim.h"

struct arena {
	size_t used, size;
	_Alignas(16) uint8_t bytes[];
};

struct arena *arena_make(size_t size)
{
	struct arena *arena = mmap(NULL, sizeof(*arena) + size, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (arena == MAP_FAILED)
		fail("no memory for an arena of %zu bytes", size);
	arena->size = size;
	return arena;
}

void *arena_take_raw(struct arena *arena, size_t size)
{
	void *memory = arena->bytes + arena->used;

	size = (size + 15) & ~(size_t)15;
	if (size > arena->size - arena->used)
		fail("an arena of %zu bytes is full", arena->size);
	arena->used += size;
	return memory;
}

void *arena_take(struct arena *arena, size_t size)
{
	return memset(arena_take_raw(arena, size), 0, size);
}

void arena_reset(struct arena *arena)
{
	arena->used = 0;
}

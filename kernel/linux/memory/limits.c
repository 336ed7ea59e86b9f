/*
 * Limits of a program's memory: RLIMIT_AS of all areas, RLIMIT_DATA of those that are its own to
 * write to, and how many areas there may be (/proc/sys/vm/max_map_count).
 * https://man7.org/linux/man-pages/man2/getrlimit.2.html
 */
#include "fs/files.h"
#include "kernel/abi/resource.h"
#include "kernel/linux/memory/mapping.h"
#include "kernel/process/process.h"
#include "mm/area.h"
#include "mm/space_layout.h"

#define STACK_MOST (512u << 20) /* mappings need room, too */

/* What the program has set, or inherited. */
uint32_t stack_limit(void)
{
	const struct files *files = current->process ? current->process->files : NULL;
	uint32_t soft = files ? files->limits[LIMIT_STACK].soft : UINT32_MAX;

	if (soft == UINT32_MAX)
		return STACK_USUAL;
	return (soft < STACK_MOST ? soft : STACK_MOST) & -PAGE_SIZE;
}

const uint32_t usual_stack = STACK_USUAL;

/* What RLIMIT_DATA counts: private, writable, and no stack. */
#define DATA_MASK (SPACE_WRITE | AREA_SHARED | AREA_STACK)
#define DATA	  SPACE_WRITE

/* Would the resource, of this size now, be larger than its limit with `more` bytes? Written so that
 * no sum wraps around. */
static bool is_beyond(uint32_t resource, uint32_t size, uint32_t more)
{
	uint32_t limit = current->process->files->limits[resource].soft;

	return limit != UINT32_MAX && (more > limit || size > limit - more);
}

/* How many bytes of areas are in [start, end) whose flags, as far as in `mask`, are these. */
static uint32_t bytes_in(uint32_t start, uint32_t end, uint32_t mask, uint32_t flags)
{
	uint32_t bytes = 0;

	FOR_EACH_PART(part, current->space, start, end)
		bytes += (part.flags & mask) == flags ? part.end - part.start : 0;
	return bytes;
}

static bool has_data_limit(void)
{
	return current->process->files->limits[LIMIT_DATA].soft != UINT32_MAX;
}

/* Would there be more data than its limit, with this many bytes more, without what is in a range?
 */
static bool is_too_much_data(uint32_t more, uint32_t start, uint32_t end)
{
	return is_beyond(
	    LIMIT_DATA,
	    bytes_in(0, STACK_END, DATA_MASK, DATA) - bytes_in(start, end, DATA_MASK, DATA), more);
}

bool is_too_much(uint32_t more, uint32_t flags, uint32_t start, uint32_t instead)
{
	const struct space *space = current->space;
	uint32_t size = space->size, end = start + instead;

	if (space->count > space_areas_most ||
	    (is_beyond(LIMIT_SPACE, size, more) &&
	     is_beyond(LIMIT_SPACE, size - bytes_in(start, end, 0, 0), more)))
		return true;
	return (flags & DATA_MASK) == DATA && has_data_limit() &&
	       is_too_much_data(more, start, end);
}

bool would_be_too_much_data(uint32_t start, uint32_t end)
{
	return has_data_limit() && is_too_much_data(bytes_in(start, end, DATA_MASK, 0), 0, 0);
}

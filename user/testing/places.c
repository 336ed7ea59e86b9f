/* Addresses to hand to the kernel, good and bad. */
#include "user/testing/places.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/auxv.h>
#include <unistd.h>

#define KERNEL_BYTES  (8u << 20) /* of the kernel that are surely there */
#define HOLE_START    0x00010000u
#define HOLE_BYTES    0x07e00000u
#define PROGRAM_START 0x08048000u

static uint32_t read_only;

uint32_t place_address(enum place place, struct random *random)
{
	switch (place) {
	case IN_NULL_PAGE:
		return random_below(random, PAGE_BYTES);
	case IN_HOLE:
		return HOLE_START + random_below(random, HOLE_BYTES);
	case AT_BORDER:
		return KERNEL_START;
	case IN_KERNEL:
		return KERNEL_START + random_below(random, KERNEL_BYTES);
	case AT_TOP:
		return -(uint32_t)PAGE_BYTES + random_below(random, PAGE_BYTES);
	default:
		return read_only;
	}
}

/* Whatever text there is on a page of the program's, it is no address that open refuses. */
static bool is_mapped(uint32_t page)
{
	int descriptor = open((const char *)page, O_RDONLY);

	if (descriptor >= 0)
		close(descriptor);
	return descriptor >= 0 || errno != EFAULT;
}

/* On the course's kernel a program's own pages can all be written, but not the shared page. */
uint32_t places_initialize(void)
{
	uint32_t page = (uint32_t)&page & -PAGE_BYTES, shared = getauxval(AT_SYSINFO) & -PAGE_BYTES;

	read_only = shared ? shared : PROGRAM_START;
	while (is_mapped(page))
		page += PAGE_BYTES;
	return page;
}

/* Addresses to hand to the kernel, good and bad, for programs that test how it takes them. */
#pragma once

#include <stdint.h>

#include "kernel/lib/random.h"

#define PAGE_BYTES   4096u
#define KERNEL_START 0xc0000000u /* of a 32-bit Linux, and of the course's kernel */

enum place {
	IN_NULL_PAGE,
	IN_HOLE,   /* below any program */
	AT_BORDER, /* the first byte that is the kernel's */
	IN_KERNEL,
	AT_TOP,	      /* of the address space, where a length wraps */
	IN_READ_ONLY, /* mapped, but not for writing; 0 if there is none */
	PLACES
};

/* To be called first. Returns the edge: the first byte after the stack, which is not mapped.
 * Before it is what the kernel left for the program's start, which may be overwritten from now
 * on, and then is no longer there. */
uint32_t places_initialize(void);

/* An address of this kind; where there is a choice, the random numbers make it. */
uint32_t place_address(enum place place, struct random *random);

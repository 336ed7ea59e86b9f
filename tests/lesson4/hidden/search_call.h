/* What the program lives.c asks the search for: as a system call of this number, which the kernel
 * does not see. */
#pragma once

#define SEARCH_CALL 0x5ea7c4

enum {
	SEARCH_NEXT, /* with a repetition's verdict; the first one counts for nothing */
	SEARCH_RING, /* SIGALRM for this process, at the next tick */
	SEARCH_TICK, /* a tick now */
};

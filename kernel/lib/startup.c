/* Calls the start-up functions that the linker has collected: see kernel/lib/startup.h. */
#include "kernel/lib/startup.h"

/* Where boot/kernel.ld puts the pointers; the same address when there are none. */
extern startup_function *const startups_start[], *const startups_end[];

void startup_run_all(void)
{
	for (startup_function *const *each = startups_start; each < startups_end; each++)
		(*each)();
}

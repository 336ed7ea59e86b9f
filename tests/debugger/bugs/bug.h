/* What the planted bugs share. Each is a function that ends in a panic, a fault or a hang, long
 * after its cause: `bug NAME` at the kernel's prompt runs it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/report/panic.h"

/* A call that stays one, so that a backtrace has its name. */
#define CALLED __attribute__((noinline, noclone))

struct bug {
	const char *name;
	void (*run)(void);
};

/* Lets guest time go by with other work, between a cause and what is seen of it. */
void bug_work(void);

extern const struct bug bugs_of_memory[], bugs_of_tasks[], bugs_of_hardware[];

/* In place of kernel/cpu/interrupts.h: the flag is a variable, so that a test can see it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

extern bool machine_interrupts;

static inline bool interrupts_disable(void)
{
	bool enabled = machine_interrupts;

	machine_interrupts = false;
	return enabled;
}

static inline void interrupts_restore(bool enabled)
{
	machine_interrupts = enabled || machine_interrupts;
}

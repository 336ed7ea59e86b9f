/* In place of kernel/cpu/interrupts.h: a program has no interrupts to switch off. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

static inline bool interrupts_disable(void)
{
	return false;
}

static inline void interrupts_restore(bool enabled)
{
	(void)enabled;
}

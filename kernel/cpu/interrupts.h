/* The interrupt flag of the processor. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define EFLAGS_INTERRUPTS 0x200u
#define EFLAGS_ALWAYS_ONE 0x002u

/* Disables interrupts. Returns whether they were enabled; give that to interrupts_restore. */
static inline bool interrupts_disable(void)
{
	uint32_t flags;

	__asm__ volatile("pushfl; popl %0; cli" : "=r"(flags) : : "memory");
	return flags & EFLAGS_INTERRUPTS;
}

static inline void interrupts_enable(void)
{
	__asm__ volatile("sti" : : : "memory");
}

static inline void interrupts_restore(bool enabled)
{
	if (enabled)
		interrupts_enable();
}

/* Sleeps until the next interrupt. Interrupts must be enabled. */
static inline void wait_for_interrupt(void)
{
	__asm__ volatile("hlt" : : : "memory");
}

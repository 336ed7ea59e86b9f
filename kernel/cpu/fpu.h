/* The floating-point and SSE registers. Intel SDM volume 1, 10.5 and 11.6. */
#pragma once

#include <stdint.h>

/* What FXSAVE writes. */
struct fpu_state {
	uint8_t bytes[512];
} __attribute__((aligned(16)));

/* Enables the floating-point unit and SSE. Panics on a processor without them. */
void fpu_initialize(void);

/* The state that a new program finds: as FNINIT leaves it, and MXCSR 0x1f80. */
void fpu_reset(void);

static inline void fpu_save(struct fpu_state *state)
{
	__asm__ volatile("fxsave %0" : "=m"(*state));
}

static inline void fpu_restore(const struct fpu_state *state)
{
	__asm__ volatile("fxrstor %0" : : "m"(*state));
}

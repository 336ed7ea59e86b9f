/* Code in user mode, for experiments. */
#pragma once

#include <stdint.h>

/* Why a visit to user mode ended: the exception there. */
struct user_visit {
	uint32_t vector;
	uint32_t error_code;
	uint32_t address; /* CR2: of a page fault */
	uint32_t eip;	  /* where it happened */
	uint32_t eflags;  /* of user mode */
	uint32_t cs, ss;
	uint32_t eax;
};

/*
 * Copies `length` bytes of code to a user page and runs them there, until an exception without a
 * handler ends the visit; the code also ends in this way on purpose. The argument is on top of its
 * stack. Returns the visit, which the next one overwrites.
 */
const struct user_visit *ring3_run(const uint8_t *code, uint32_t length, uint32_t argument);

/* Visits to user mode: run code there until an exception brings it back. */
#pragma once

#include <stdint.h>

/* Why a visit ended: the exception in user mode. */
struct user_visit {
	uint32_t vector;
	uint32_t error_code;
	uint32_t address; /* CR2: of a page fault */
	uint32_t eip;	  /* where it happened */
	uint32_t eflags;  /* of user mode */
	uint32_t cs, ss;
	uint32_t eax;
};

/* Runs the code at eip in user mode, with this stack and interrupts on, until it causes an
 * exception. The code and its stack must be in user pages. Not to be called from within a visit. */
struct user_visit user_mode_run(uint32_t eip, uint32_t esp);

/* What visits are made of (kernel/cpu/user_entry.asm): user_enter goes to user mode, and returns
 * when somebody, in a trap from there, calls user_leave. */
void user_enter(uint32_t eip, uint32_t esp);
void user_leave(void) __attribute__((noreturn));

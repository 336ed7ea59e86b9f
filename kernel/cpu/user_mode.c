/*
 * A visit to user mode: lesson 2's way to run a few instructions there, and to see which exception
 * ends them.
 *
 *	user_mode_run --> user_enter --IRET--> user mode --exception--> trap_dispatch
 *	      ^			 ^						|
 *	      +----return--------+-----------------user_leave-------------user_mode_exception
 *
 * user_enter remembers the stack pointer, and user_leave takes it back: a setjmp and longjmp across
 * a privilege level. There is one such place, so a visit cannot contain another one. Not for
 * interrupt handlers.
 */
#include "kernel/cpu/user_mode.h"

#include "kernel/cpu/trap.h"

static struct user_visit visit;

/* An exception ends the visit. What the trap has pushed on the kernel's stack is dropped, because
 * user_leave never returns here. */
static void user_mode_exception(struct trap_frame *frame)
{
	visit = (struct user_visit){
		.vector = frame->vector,
		.error_code = frame->error_code,
		.address = trap_fault_address(),
		.eip = frame->eip,
		.eflags = frame->eflags,
		.cs = frame->cs,
		.ss = frame->user_ss,
		.eax = frame->eax,
	};
	user_leave();
}

struct user_visit user_mode_run(uint32_t eip, uint32_t esp)
{
	trap_register_user(user_mode_exception);
	user_enter(eip, esp);
	trap_register_user(0);
	return visit;
}

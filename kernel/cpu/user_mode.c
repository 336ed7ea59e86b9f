/* Visits to ring 3. */
#include "kernel/cpu/user_mode.h"

#include "kernel/cpu/trap.h"

static struct user_visit visit;

/* An exception of ring 3 ends the visit: what lies on the kernel's stack since then is dropped. */
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

/*
 * The system calls that nearly every program makes: uname, getpid, brk and exit.
 *
 * They run on the program's own kernel stack, with the registers of its call in the frame
 * (kernel/syscall/syscall.h); what they return goes back in EAX. exit does not return.
 */
#include "kernel/process/names.h"
#include "kernel/syscall/syscall.h"
#include "kernel/process/process.h"
#include "mm/space.h"
#include "mm/user_copy.h"

struct linux_names system_names = { "Linux", "apprentice", "6.1.0-apprentice",
				    "#1",    "i686",	   "(none)" };

CALL(sys_uname, give(frame->ebx, &system_names, sizeof(system_names)))
CALL(sys_getpid, current->process->leader->task->pid)
CALL(sys_brk, program_set_break ? program_set_break(frame->ebx)
				: space_set_break(current->space, frame->ebx))

/* A wait status has the code in its second byte; the first is for signals. */
static int end_with(const struct trap_frame *frame, bool all)
{
	int32_t status = (frame->ebx & 0xff) << 8;

	process_exit(program_finish ? program_finish(status, all) : status);
}

CALL(sys_exit, end_with(frame, false))
CALL(sys_exit_group, end_with(frame, true))

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 1, "exit", "d", sys_exit },
	{ 20, "getpid", "", sys_getpid },
	{ 45, "brk", "x", sys_brk },
	{ 122, "uname", "p", sys_uname },
	{ 252, "exit_group", "d", sys_exit_group },
};

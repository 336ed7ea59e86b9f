/*
 * Capabilities: root has all of them, and keeps them; and prctl.
 *
 * Nothing asks whether a process has a capability. The calls are for programs that give some up, or
 * look what they have: capabilities(7), capget(2), prctl(2). What prctl sets for a whole program is
 * in its table of files (`personality`), which its threads share and a child inherits.
 */
#include "kernel/abi/capability.h"
#include "kernel/lib/string.h"
#include "kernel/linux/call.h"

/* prctl(2)'s commands. */
#define PRCTL_SET_DEATH_SIGNAL 1
#define PRCTL_GET_DEATH_SIGNAL 2
#define PRCTL_GET_DUMPABLE     3
#define PRCTL_SET_DUMPABLE     4
#define PRCTL_GET_KEEPS	       7
#define PRCTL_SET_KEEPS	       8
#define PRCTL_SET_NAME	       15
#define PRCTL_GET_NAME	       16
#define PRCTL_HAS_CAPABILITY   23
#define PRCTL_GET_SECURE_BITS  27
#define PRCTL_GET_SLACK	       30
#define PRCTL_GET_SUBREAPER    37
#define PRCTL_SET_NO_NEW       38
#define PRCTL_GET_NO_NEW       39
#define SLACK_NS	       50000 /* of Linux: timers are as exact as the tick anyway */

/* Fetches the pid that is asked for, and the number of words in each set, which depends on the
 * version of the structures that the program was compiled for. For a fourth one the kernel writes
 * the one that it prefers, and says -EINVAL: so libcap finds out what there is. */
static int capability_header_from_user(uint32_t address, int32_t *pid, uint32_t *words)
{
	uint32_t header[2];
	const uint32_t known = LINUX_CAPABILITY_VERSION_3;

	if (copy_from_user(header, address, sizeof(header)) != 0)
		return -EFAULT;
	*pid = header[1];
	*words = header[0] == LINUX_CAPABILITY_VERSION_1 ? 1 : 2;
	if (header[0] == LINUX_CAPABILITY_VERSION_1 || header[0] == LINUX_CAPABILITY_VERSION_2 ||
	    header[0] == known)
		return *pid < 0 ? -EINVAL : process_of_call(*pid) ? 0 : -ESRCH;
	return give(address, &known, sizeof(known)) == 0 ? -EINVAL : -EFAULT;
}

/* Effective, permitted and inheritable, of each word: a bit for each capability up to CAP_LAST_CAP.
 * Nothing is inheritable, as for root on Linux. */
static const uint32_t capabilities[2][3] = {
	{ UINT32_MAX, UINT32_MAX, 0 },
	{ (1u << (CAP_LAST_CAP - 31)) - 1, (1u << (CAP_LAST_CAP - 31)) - 1, 0 },
};

/* Of every task the same, whatever pid is asked for. Without memory for the answer it only asks
 * which version the kernel has. */
SYSCALL_DEFINE(184, sys_capget, "pp")
{
	int32_t pid;
	uint32_t words;
	int error = capability_header_from_user(frame->ebx, &pid, &words);

	if (!frame->ecx)
		return error == -EINVAL ? 0 : error;
	return error ?: give(frame->ecx, capabilities, words * sizeof(capabilities[0]));
}

/* A call that changes nothing is allowed. To give some up is refused: nothing would ask for it, so
 * the program would be wrong about what it may do. */
SYSCALL_DEFINE(185, sys_capset, "pp")
{
	int32_t pid;
	uint32_t words, wanted[2][3];
	int error = capability_header_from_user(frame->ebx, &pid, &words);

	if (!error)
		error = fetch(wanted, frame->ecx, words * sizeof(wanted[0]));
	if (!error && memcmp(wanted, capabilities, words * sizeof(wanted[0])) != 0)
		error = -EPERM;
	return error;
}

/* ---- prctl ---- */

/* Sets a bit of all threads to 1 or 0; -EINVAL for other values, which prctl keeps for later
 * meanings.
 */
static int set_personality_bit(uint32_t bit, uint32_t value)
{
	uint32_t *bits = &current->process->files->personality;

	if (value > 1)
		return -EINVAL;
	*bits = value ? *bits | bit : *bits & ~bit;
	return 0;
}

/* The commands about rights, which the one user has whatever is set: they are told again, and that
 * is all. exec clears those that prctl(2) says it clears (forget_for_exec). */
static int control_rights(const struct trap_frame *frame)
{
	uint32_t bits = current->process->files->personality;
	bool has_more = frame->edx || frame->esi || frame->edi; /* must be 0 */

	switch (frame->ebx) {
	case PRCTL_SET_KEEPS:
		return set_personality_bit(FILES_KEEPS_RIGHTS, frame->ecx);
	case PRCTL_GET_KEEPS:
		return !!(bits & FILES_KEEPS_RIGHTS);
	case PRCTL_SET_DUMPABLE:
		return set_personality_bit(FILES_NOT_DUMPABLE, frame->ecx ^ 1);
	case PRCTL_GET_DUMPABLE:
		return !(bits & FILES_NOT_DUMPABLE);
	case PRCTL_SET_NO_NEW: /* and never back */
		return frame->ecx != 1 || has_more ? -EINVAL
						   : set_personality_bit(FILES_NO_NEW_RIGHTS, 1);
	case PRCTL_GET_NO_NEW:
		return frame->ecx || has_more ? -EINVAL : !!(bits & FILES_NO_NEW_RIGHTS);
	case PRCTL_GET_SECURE_BITS:
		return 0; /* none can be set */
	case PRCTL_HAS_CAPABILITY:
		return frame->ecx <= CAP_LAST_CAP ? 1 : -EINVAL;
	}
	return -EINVAL;
}

/* For sys_prctl (kernel/process/syscall_family.c). The name and the death signal are one task's. */
int prctl_more(const struct trap_frame *frame)
{
	char name[TASK_NAME] = { 0 }; /* all of it can be read again */
	uint32_t word;

	switch (frame->ebx) {
	case PRCTL_SET_NAME:
		if (string_from_user(name, frame->ecx, sizeof(name)) == -EFAULT)
			return -EFAULT;
		name[TASK_NAME - 1] = '\0';
		memcpy(current->name, name, sizeof(name));
		return 0;
	case PRCTL_GET_NAME:
		return give(frame->ecx, current->name, TASK_NAME);
	case PRCTL_GET_SLACK:
		return SLACK_NS;
	case PRCTL_SET_DEATH_SIGNAL:
		if (frame->ecx > SIGNALS)
			return -EINVAL;
		current->process->leader->death_signal = frame->ecx;
		return 0;
	case PRCTL_GET_DEATH_SIGNAL:
		word = current->process->leader->death_signal;
		return give(frame->ecx, &word, sizeof(word));
	case PRCTL_GET_SUBREAPER:
		word = current->process->adopts;
		return give(frame->ecx, &word, sizeof(word));
	}
	return control_rights(frame);
}

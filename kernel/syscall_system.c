/* System calls about the machine and its (one) user. */
#include <stddef.h>

#include "fs/devices.h"
#include "fs/files.h"
#include "kernel/abi_time.h"
#include "kernel/divide.h"
#include "kernel/errno.h"
#include "kernel/machine.h"
#include "kernel/string.h"
#include "kernel/syscall.h"
#include "kernel/syscall_program.h"
#include "kernel/task.h"
#include "kernel/time.h"
#include "kernel/user_copy.h"
#include "mm/memory_map.h"
#include "mm/page_alloc.h"

#define NAME 65 /* bytes of each of uname's texts */

struct abi_names {
	char system[NAME], node[NAME], release[NAME], version[NAME], machine[NAME], domain[NAME];
};

/* Linux's struct sysinfo for i386. */
struct abi_system {
	int32_t uptime; /* seconds */
	uint32_t loads[3];
	uint32_t memory, free_memory, shared, buffers, swap, free_swap; /* in units */
	uint16_t tasks, padding;
	uint32_t high_memory, free_high_memory;
	uint32_t unit; /* bytes */
	char filler[8];
};

struct abi_limit {
	uint32_t soft, hard;
};

#define LIMITS	    16
#define LIMIT_STACK 3
#define LIMIT_FILES 7
#define UNLIMITED   0xffffffffu
#define STACK_LIMIT (256u << 10) /* mm/space_slot.c */

/* reboot(2)'s magic numbers and commands. */
#define REBOOT_MAGIC	 0xfee1deadu
#define REBOOT_MAGIC_2	 672274793u
#define REBOOT_POWER_OFF 0x4321fedcu
#define REBOOT_HALT	 0xcdef0123u
#define REBOOT_RESTART	 0x01234567u

/* There is one user, root, and one group. */
CALL(run_zero, 0)
CALL(run_set_user, frame->ebx == 0 || frame->ebx == UNLIMITED ? 0 : -EPERM)

static int32_t run_uname(struct trap_frame *frame)
{
	static const struct abi_names names = {
		.system = "Linux",
		.node = "apprentice",
		.release = "6.1.0-apprentice",
		.version = "#1",
		.machine = "i686",
		.domain = "(none)",
	};

	return give(frame->ebx, &names, sizeof(names));
}

static int32_t run_sysinfo(struct trap_frame *frame)
{
	struct abi_system system = {
		.uptime = divide64(time_ns(), NANOSECONDS_PER_SECOND, NULL),
		.memory = memory_map_usable(),
		.free_memory = page_free_count() * (PAGE_SIZE / 1024),
		.unit = 1024,
	};

	for (const struct task *task = task_next(NULL); task; task = task_next(task))
		system.tasks++;
	return give(frame->ebx, &system, sizeof(system));
}

static int32_t run_getrandom(struct trap_frame *frame)
{
	struct buffer buffer = buffer_of_user(frame->ebx, frame->ecx);

	return device_fill_random(&buffer);
}

/* What there is of a resource; UNLIMITED where nobody counts. */
static struct abi_limit limit_of(uint32_t resource)
{
	if (resource == LIMIT_STACK)
		return (struct abi_limit){ STACK_LIMIT, UNLIMITED };
	if (resource == LIMIT_FILES)
		return (struct abi_limit){ FILES_MAX, FILES_MAX };
	return (struct abi_limit){ UNLIMITED, UNLIMITED };
}

static int32_t run_getrlimit(struct trap_frame *frame)
{
	struct abi_limit limit = limit_of(frame->ebx);

	if (frame->ebx >= LIMITS)
		return -EINVAL;
	return give(frame->ecx, &limit, sizeof(limit));
}

static uint64_t wide(uint32_t limit)
{
	return limit == UNLIMITED ? UINT64_MAX : limit;
}

/* Limits cannot be changed: a new one is accepted, and nothing comes of it. */
static int32_t run_prlimit64(struct trap_frame *frame)
{
	struct abi_limit limit = limit_of(frame->ecx);
	uint64_t answer[2] = { wide(limit.soft), wide(limit.hard) };

	if (frame->ecx >= LIMITS)
		return -EINVAL;
	if (frame->ebx != 0 && !task_find(frame->ebx))
		return -ESRCH;
	if (frame->esi == 0)
		return 0;
	return give(frame->esi, answer, sizeof(answer));
}

/* The machine ends with a status: that of the fourth argument, which Linux does not look at for
 * these commands. */
static int32_t run_reboot(struct trap_frame *frame)
{
	if (frame->ebx != REBOOT_MAGIC || frame->ecx != REBOOT_MAGIC_2)
		return -EINVAL;
	switch (frame->edx) {
	case REBOOT_POWER_OFF:
	case REBOOT_HALT:
	case REBOOT_RESTART:
		machine_exit(frame->esi & 0xff);
	default:
		return -EINVAL;
	}
}

void syscall_system_register(void)
{
	static const struct syscall calls[] = {
		{ 23, "setuid", "d", run_set_user },
		{ 24, "getuid", "", run_zero },
		{ 46, "setgid", "d", run_set_user },
		{ 47, "getgid", "", run_zero },
		{ 49, "geteuid", "", run_zero },
		{ 50, "getegid", "", run_zero },
		{ 75, "setrlimit", "dp", run_zero },
		{ 76, "getrlimit", "dp", run_getrlimit },
		{ 80, "getgroups", "dp", run_zero },
		{ 81, "setgroups", "dp", run_zero },
		{ 88, "reboot", "xxxx", run_reboot },
		{ 116, "sysinfo", "p", run_sysinfo },
		{ 122, "uname", "p", run_uname },
		{ 191, "ugetrlimit", "dp", run_getrlimit },
		{ 199, "getuid32", "", run_zero },
		{ 200, "getgid32", "", run_zero },
		{ 201, "geteuid32", "", run_zero },
		{ 202, "getegid32", "", run_zero },
		{ 205, "getgroups32", "dp", run_zero },
		{ 206, "setgroups32", "dp", run_zero },
		{ 213, "setuid32", "d", run_set_user },
		{ 214, "setgid32", "d", run_set_user },
		{ 340, "prlimit64", "ddpp", run_prlimit64 },
		{ 355, "getrandom", "pdx", run_getrandom },
	};

	syscall_register(calls, sizeof(calls) / sizeof(calls[0]));
}

/* System calls about the machine and its (one) user. */
#include <stddef.h>

#include "fs/linux/devices.h"
#include "fs/files.h"
#include "fs/proc/procfs.h"
#include "fs/vfs/vfs.h"
#include "kernel/abi/capability.h"
#include "kernel/abi/reboot.h"
#include "kernel/abi/clocks.h"
#include "kernel/lib/divide.h"
#include "kernel/lib/errno.h"
#include "kernel/linux/time/processor_time.h"
#include "kernel/linux/process/limits.h"
#include "kernel/linux/memory/mapping.h"
#include "kernel/cpu/machine.h"
#include "kernel/process/names.h"
#include "kernel/report/printk.h"
#include "kernel/lib/string.h"
#include "kernel/syscall/syscall.h"
#include "kernel/abi/signal_handler.h"
#include "kernel/process/family.h"
#include "kernel/process/signal.h"
#include "kernel/task/time.h"
#include "mm/space.h"
#include "mm/user_copy.h"
#include "mm/memory_map.h"
#include "mm/page_alloc.h"

/* Linux's struct sysinfo for i386. */
struct linux_system {
	int32_t uptime; /* seconds */
	uint32_t loads[3];
	uint32_t memory, free_memory, shared, buffers, swap, free_swap; /* in units */
	uint16_t tasks, padding;
	uint32_t high_memory, free_high_memory;
	uint32_t unit; /* bytes */
	char filler[8];
};

#define LOAD_ONE 65536u /* a load is a fraction of 16 bits */

/* setrlimit(2)'s numbers of resources. */
#define LIMIT_SIZE	1
#define LIMIT_CORE	4
#define LIMIT_NOTHING	UINT32_MAX
#define STACK_UNLIMITED (LIMIT_NOTHING - 1) /* has been set so */
#define GROUPS_MAX	65536u

#define ASK_PERSONALITY 0xffffffffu /* personality(2): change nothing */
#define PERSONALITY_32	0x00000008u
#define NO_RANDOM	0x00040000u

#define RANDOM_FLAGS 5u /* of getrandom: the highest; RANDOM and INSECURE exclude each other */

/* There is one user, root, and one group. */
CALL(sys_zero, 0)
CALL(sys_set_user, frame->ebx == 0 ? 0 : frame->ebx == LIMIT_NOTHING ? -EINVAL : -EPERM)

static int set_users(const struct trap_frame *frame, unsigned count)
{
	const uint32_t wanted[] = { frame->ebx, frame->ecx, frame->edx };

	for (unsigned i = 0; i < count; i++)
		if (wanted[i] != 0 && (uint16_t)wanted[i] != 0xffff)
			return -EPERM;
	return 0;
}

CALL(sys_set_users, set_users(frame, 2))
CALL(sys_set_all_users, set_users(frame, 3))

/* The real one, the effective one, and the one that was saved. */
static int sys_get_users(struct trap_frame *frame)
{
	const uint32_t addresses[] = { frame->ebx, frame->ecx, frame->edx }, root = 0;
	int error = 0;

	for (unsigned i = 0; i < 3 && !error; i++)
		error = give(addresses[i], &root, sizeof(root));
	return error;
}

/* Every process is in root's group only: a list of other groups is refused. `size` is
 * one element's width in bytes. */
static int set_groups(const struct trap_frame *frame, uint32_t size)
{
	uint32_t group = 0;

	if (frame->ebx > GROUPS_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < frame->ebx; i++)
		if (copy_from_user(&group, frame->ecx + i * size, size))
			return -EFAULT;
		else if (group != 0)
			return -EPERM;
	return 0;
}

CALL(sys_get_groups, (int32_t)frame->ebx < 0 ? -EINVAL : 0)
CALL(sys_set_groups, set_groups(frame, sizeof(uint16_t)))
CALL(sys_set_groups32, set_groups(frame, sizeof(uint32_t)))

static int sys_sethostname(struct trap_frame *frame)
{
	char name[SYSTEM_NAME] = { 0 };

	if (frame->ecx >= SYSTEM_NAME)
		return -EINVAL;
	if (copy_from_user(name, frame->ebx, frame->ecx) != 0)
		return -EFAULT;
	memcpy(system_names.node, name, SYSTEM_NAME);
	return 0;
}

/* ---- the kernel's log ---- */

/* syslog(2)'s actions. */
#define LOG_READ_ALL  3
#define LOG_READ_GONE 4 /* ... and clear */
#define LOG_CLEAR     5
#define LOG_LEVEL     8 /* as the two before: what consoles get; they get all */
#define LOG_BYTES     10

static uint32_t log_cleared; /* the first byte since */

/* Gives the last bytes of the log. Returns how many. */
static int read_log(uint32_t to, uint32_t length)
{
	uint32_t there = log_length - log_cleared;

	there = there < LOG_SIZE ? there : LOG_SIZE;
	length = length < there ? length : there;
	struct buffer buffer = buffer_of_user(to, length);

	for (uint32_t at = log_length - length; buffer.length > 0;) {
		uint32_t index = at % LOG_SIZE;
		int moved = buffer_put(&buffer, &log_ring[index], LOG_SIZE - index);

		if (moved < 0)
			return moved;
		at += moved;
	}
	return length;
}

static int sys_syslog(struct trap_frame *frame)
{
	int result = 0;

	switch (frame->ebx) {
	case LOG_READ_ALL:
	case LOG_READ_GONE:
		result = (int32_t)frame->edx < 0 ? -EINVAL : read_log(frame->ecx, frame->edx);
		if (result < 0 || frame->ebx == LOG_READ_ALL)
			return result;
		/* fall through */
	case LOG_CLEAR:
		log_cleared = log_length;
		return result;
	case LOG_LEVEL - 2 ... LOG_LEVEL:
		return 0;
	case LOG_BYTES:
		return LOG_SIZE;
	}
	return -EINVAL;
}

static int sys_sysinfo(struct trap_frame *frame)
{
	struct linux_system system = {
		.uptime = divide64(time_ns(), NANOSECONDS_PER_SECOND, NULL),
		.memory = memory_map_usable(),
		.free_memory = page_free_count() * (PAGE_SIZE / 1024),
		.unit = 1024,
	};

	for (const struct task *task = task_next(NULL); task; task = task_next(task)) {
		system.tasks++;
		system.loads[0] += task->pid && task->life == TASK_READY ? LOAD_ONE : 0;
	}
	system.loads[1] = system.loads[2] = system.loads[0]; /* no averages are kept */
	return give(frame->ebx, &system, sizeof(system));
}

static int sys_getrandom(struct trap_frame *frame)
{
	struct buffer buffer = buffer_of_user(frame->ebx, frame->ecx);

	return frame->edx <= RANDOM_FLAGS ? device_fill_random(&buffer) : -EINVAL;
}

/* Enforced are the limits of descriptors, processor time, file size, queued signals and, from
 * lesson 6 on, tasks, memory and the stack, which is fixed before. The others are not counted. */
static uint64_t wide(uint32_t limit)
{
	return limit == LIMIT_NOTHING ? UINT64_MAX : limit;
}

static uint32_t narrow(uint64_t limit)
{
	return limit < LIMIT_NOTHING ? (uint32_t)limit : LIMIT_NOTHING;
}

/* What the kernel has room for, whatever programs ask for. */
static uint32_t most_of(uint32_t resource)
{
	switch (resource) {
	case LIMIT_FILES:
		return FILES_MAX;
	case LIMIT_TASKS:
		return TASK_LIMIT;
	case LIMIT_QUEUED:
		return QUEUED_MAX;
	}
	return LIMIT_NOTHING;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Unless it was set, the stack's limit is that of its space, and a core dump's is 0. */
static struct limit limit_of(const struct files *files, uint32_t resource)
{
	struct limit limit = files->limits[resource];

	if (resource == LIMIT_STACK && limit.soft == LIMIT_NOTHING)
		limit.soft = usual_stack;
	else if (resource == LIMIT_STACK && limit.soft == STACK_UNLIMITED)
		limit.soft = LIMIT_NOTHING;
	if (resource == LIMIT_CORE && limit.soft == LIMIT_NOTHING)
		limit.soft = 0;
	limit.soft = least(limit.soft, most_of(resource));
	limit.hard = least(limit.hard, most_of(resource));
	return limit;
}

static int set_limit(struct files *files, uint32_t resource, const struct limit *limit)
{
	if (limit->soft > limit->hard)
		return -EINVAL;
	if (limit->hard > most_of(resource))
		return -EPERM;
	files->limits[resource] = *limit;
	if (resource == LIMIT_STACK && limit->soft == LIMIT_NOTHING)
		files->limits[resource].soft = STACK_UNLIMITED;
	if (resource == LIMIT_CPU && watch_processor_time)
		watch_processor_time();
	return 0;
}

/* `most` is what stands for no limit. */
static int get_limit(const struct trap_frame *frame, uint32_t most)
{
	if (frame->ebx >= LIMITS)
		return -EINVAL;
	struct limit limit = limit_of(current->process->files, frame->ebx);

	limit.soft = least(limit.soft, most);
	limit.hard = least(limit.hard, most);
	return give(frame->ecx, &limit, sizeof(limit));
}

/* The old call's numbers are signed. */
CALL(sys_old_getrlimit, get_limit(frame, INT32_MAX))
CALL(sys_getrlimit, get_limit(frame, LIMIT_NOTHING))

static int sys_setrlimit(struct trap_frame *frame)
{
	struct limit limit;

	if (frame->ebx >= LIMITS)
		return -EINVAL;
	if (copy_from_user(&limit, frame->ecx, sizeof(limit)) != 0)
		return -EFAULT;
	return set_limit(current->process->files, frame->ebx, &limit);
}

static int sys_prlimit64(struct trap_frame *frame)
{
	uint64_t wanted[2] = { 0, 0 };

	if (frame->ecx >= LIMITS)
		return -EINVAL;
	if (frame->edx && copy_from_user(wanted, frame->edx, sizeof(wanted)) != 0)
		return -EFAULT;
	struct process *process = frame->ebx ? process_find(frame->ebx) : current->process;

	if (!process || !process->files)
		return -ESRCH;
	const struct limit old = limit_of(process->files, frame->ecx);
	const uint64_t answer[2] = { wide(old.soft), wide(old.hard) };
	const struct limit new = { narrow(wanted[0]), narrow(wanted[1]) };
	int error = frame->edx ? set_limit(process->files, frame->ecx, &new) : 0;

	if (error || frame->esi == 0)
		return error;
	return give(frame->esi, answer, sizeof(answer));
}

/* For writing: the limit is how large a file may get. */
uint64_t vfs_room(uint64_t offset)
{
	const struct files *files = current->process ? current->process->files : NULL;
	uint32_t limit = files ? files->limits[LIMIT_SIZE].soft : LIMIT_NOTHING;

	if (limit == LIMIT_NOTHING)
		return UINT64_MAX;
	if (offset < limit)
		return limit - offset;
	signal_send(current->process, SIGXFSZ);
	return 0;
}

/* /proc/PID/limits. */
static void show_limits(struct procfs_text *text, const struct task *task)
{
	static const char *const names[LIMITS][2] = {
		{ "cpu time", "seconds" },     { "file size", "bytes" },
		{ "data size", "bytes" },      { "stack size", "bytes" },
		{ "core file size", "bytes" }, { "resident set", "bytes" },
		{ "processes", "processes" },  { "open files", "files" },
		{ "locked memory", "bytes" },  { "address space", "bytes" },
		{ "file locks", "locks" },     { "pending signals", "signals" },
		{ "msgqueue size", "bytes" },  { "nice priority", "" },
		{ "realtime priority", "" },   { "realtime timeout", "us" },
	};
	const struct files *files = task->process ? task->process->files : NULL;

	procfs_print(text, "%-25s %-20s %-20s %-10s\n", "Limit", "Soft Limit", "Hard Limit",
		     "Units");
	for (unsigned i = 0; files && i < LIMITS; i++) {
		const struct limit limit = limit_of(files, i);
		const uint32_t values[] = { limit.soft, limit.hard };

		procfs_print(text, "Max %-21s ", names[i][0]);
		for (unsigned j = 0; j < 2; j++)
			if (values[j] == LIMIT_NOTHING)
				procfs_print(text, "%-20s ", "unlimited");
			else
				procfs_print(text, "%-20u ", values[j]);
		procfs_print(text, "%-10s\n", names[i][1]);
	}
}

static struct procfs_entry limits[] = { { "limits", .show = show_limits } };
PROCFS(&procfs_task, limits)

/* What setarch asks for is true in any case: programs have 32 bits, and addresses are not random.
 */
static int sys_personality(struct trap_frame *frame)
{
	uint32_t *personality = &current->process->files->personality;
	uint32_t rights = *personality & FILES_RIGHTS, before = *personality & ~FILES_RIGHTS;

	if (frame->ebx == ASK_PERSONALITY)
		return before;
	if (frame->ebx & ~(PERSONALITY_32 | NO_RANDOM))
		return -EINVAL;
	*personality = frame->ebx | rights;
	return before;
}

static int sys_getcpu(struct trap_frame *frame)
{
	const uint32_t first = 0;
	int error = frame->ebx ? give(frame->ebx, &first, sizeof(first)) : 0;

	return !error && frame->ecx ? give(frame->ecx, &first, sizeof(first)) : error;
}

/* The machine ends with a status: that of the fourth argument, which Linux does not look at for
 * these commands. */
static int sys_reboot(struct trap_frame *frame)
{
	if (frame->ebx != LINUX_REBOOT_MAGIC1 || frame->ecx != LINUX_REBOOT_MAGIC2)
		return -EINVAL;
	switch (frame->edx) {
	case RB_POWER_OFF:
	case RB_HALT_SYSTEM:
	case RB_AUTOBOOT:
		machine_exit(frame->esi & 0xff);
	default:
		return -EINVAL;
	}
}

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 23, "setuid", "d", sys_set_user },
	{ 24, "getuid", "", sys_zero },
	{ 46, "setgid", "d", sys_set_user },
	{ 47, "getgid", "", sys_zero },
	{ 49, "geteuid", "", sys_zero },
	{ 50, "getegid", "", sys_zero },
	{ 70, "setreuid", "dd", sys_set_users },
	{ 71, "setregid", "dd", sys_set_users },
	{ 74, "sethostname", "pd", sys_sethostname },
	{ 75, "setrlimit", "dp", sys_setrlimit },
	{ 76, "getrlimit", "dp", sys_old_getrlimit },
	{ 80, "getgroups", "dp", sys_get_groups },
	{ 81, "setgroups", "dp", sys_set_groups },
	{ 88, "reboot", "xxxx", sys_reboot },
	{ 103, "syslog", "dpd", sys_syslog },
	{ 116, "sysinfo", "p", sys_sysinfo },
	{ 136, "personality", "x", sys_personality },
	{ 138, "setfsuid", "d", sys_zero },
	{ 139, "setfsgid", "d", sys_zero },
	{ 164, "setresuid", "ddd", sys_set_all_users },
	{ 170, "setresgid", "ddd", sys_set_all_users },
	{ 191, "ugetrlimit", "dp", sys_getrlimit },
	{ 199, "getuid32", "", sys_zero },
	{ 200, "getgid32", "", sys_zero },
	{ 201, "geteuid32", "", sys_zero },
	{ 202, "getegid32", "", sys_zero },
	{ 203, "setreuid32", "dd", sys_set_users },
	{ 204, "setregid32", "dd", sys_set_users },
	{ 205, "getgroups32", "dp", sys_get_groups },
	{ 206, "setgroups32", "dp", sys_set_groups32 },
	{ 208, "setresuid32", "ddd", sys_set_all_users },
	{ 209, "getresuid32", "ppp", sys_get_users },
	{ 210, "setresgid32", "ddd", sys_set_all_users },
	{ 211, "getresgid32", "ppp", sys_get_users },
	{ 213, "setuid32", "d", sys_set_user },
	{ 214, "setgid32", "d", sys_set_user },
	{ 215, "setfsuid32", "d", sys_zero },
	{ 216, "setfsgid32", "d", sys_zero },
	{ 318, "getcpu", "pp", sys_getcpu },
	{ 340, "prlimit64", "ddpp", sys_prlimit64 },
	{ 355, "getrandom", "pdx", sys_getrandom },
};

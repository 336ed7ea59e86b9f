/*
 * System calls about the machine and its one user: users and groups, the log of the kernel, limits,
 * and what else is one number or one word.
 *
 *	getuid ... setgroups	always root; to be another user or in another group is -EPERM
 *	syslog			the ring that printk writes (kernel/report/printk.h)
 *	getrlimit ... prlimit64	numbers in struct files; those who use up a resource compare
 *	the others		a number or a word of the kernel's
 *
 * Nothing here waits. A call that takes or gives a structure sleeps at most in that copy.
 * credentials(7), syslog(2), sysinfo(2), getrlimit(2), personality(2), reboot(2).
 */
#include "fs/linux/devices.h"
#include "fs/proc/procfs.h"
#include "fs/vfs/vfs.h"
#include "kernel/abi/capability.h"
#include "kernel/abi/reboot.h"
#include "kernel/abi/resource.h"
#include "kernel/abi/signal_handler.h"
#include "kernel/cpu/machine.h"
#include "kernel/lib/divide.h"
#include "kernel/linux/call.h"
#include "kernel/linux/memory/mapping.h"
#include "kernel/linux/process/usage.h"
#include "kernel/process/names.h"
#include "kernel/process/signal.h"
#include "kernel/report/printk.h"
#include "kernel/task/time.h"
#include "mm/memory_map.h"

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

#define LIMIT_NOTHING	UINT32_MAX
#define STACK_UNLIMITED (LIMIT_NOTHING - 1) /* has been set so */
#define GROUPS_MAX	65536u

#define ASK_PERSONALITY 0xffffffffu /* personality(2): change nothing */
#define PERSONALITY_32	0x00000008u
#define NO_RANDOM	0x00040000u

#define RANDOM_FLAGS 5u /* of getrandom: the highest; RANDOM and INSECURE exclude each other */

/* ---- the one user ---- */

/* There is one user, root, and one group: both have the number 0. i386 has each call twice, for
 * numbers of 16 bits and, with a name that ends in 32, of 32. */
SYSCALL_PAIR(24, sys_getuid, 199, sys_getuid32, "", 0)
SYSCALL_PAIR(47, sys_getgid, 200, sys_getgid32, "", 0)
SYSCALL_PAIR(49, sys_geteuid, 201, sys_geteuid32, "", 0)
SYSCALL_PAIR(50, sys_getegid, 202, sys_getegid32, "", 0)
SYSCALL_PAIR(138, sys_setfsuid, 215, sys_setfsuid32, "d", 0)
SYSCALL_PAIR(139, sys_setfsgid, 216, sys_setfsgid32, "d", 0)

/* setuid and setgid: -1 is the number of no user, and so another error than that of others. */
static int set_user(uint32_t wanted)
{
	return wanted == 0 ? 0 : wanted == LIMIT_NOTHING ? -EINVAL : -EPERM;
}

SYSCALL_PAIR(23, sys_setuid, 213, sys_setuid32, "d", set_user(frame->ebx))
SYSCALL_PAIR(46, sys_setgid, 214, sys_setgid32, "d", set_user(frame->ebx))

/* The real one, the effective one, and (count 3) the saved one; -1 leaves one as it is. */
static int set_users(const struct trap_frame *frame, unsigned count)
{
	const uint32_t wanted[] = { frame->ebx, frame->ecx, frame->edx };

	for (unsigned i = 0; i < count; i++)
		if (wanted[i] != 0 && (uint16_t)wanted[i] != 0xffff)
			return -EPERM;
	return 0;
}

SYSCALL_PAIR(70, sys_setreuid, 203, sys_setreuid32, "dd", set_users(frame, 2))
SYSCALL_PAIR(71, sys_setregid, 204, sys_setregid32, "dd", set_users(frame, 2))
SYSCALL_PAIR(164, sys_setresuid, 208, sys_setresuid32, "ddd", set_users(frame, 3))
SYSCALL_PAIR(170, sys_setresgid, 210, sys_setresgid32, "ddd", set_users(frame, 3))

/* getresuid(2): the same three, at user addresses; what was given before a bad one stays. */
static int give_users(const struct trap_frame *frame)
{
	const uint32_t root = 0;

	return give(frame->ebx, &root, sizeof(root))
		   ?: give(frame->ecx, &root, sizeof(root))
		   ?: give(frame->edx, &root, sizeof(root));
}

SYSCALL(209, sys_getresuid32, "ppp", give_users(frame))
SYSCALL(211, sys_getresgid32, "ppp", give_users(frame))

/* Every process is in root's group only. */
SYSCALL_PAIR(80, sys_getgroups, 205, sys_getgroups32, "dp", (int32_t)frame->ebx < 0 ? -EINVAL : 0)

/* A list of other groups is refused. `size` is one element's width in bytes. */
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

SYSCALL(81, sys_setgroups, "dp", set_groups(frame, sizeof(uint16_t)))
SYSCALL(206, sys_setgroups32, "dp", set_groups(frame, sizeof(uint32_t)))

/* ---- the machine ---- */

/* What uname and /proc/sys/kernel/hostname show from now on. The rest of the name is zeros. */
SYSCALL_DEFINE(74, sys_sethostname, "pd")
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

/* Gives the last bytes of the log, as many as are asked for and there, oldest first. log_length
 * counts all that was ever printed, so byte n is at n % LOG_SIZE, and the newest LOG_SIZE of them
 * are there. A reader that is slow may get newer bytes in their place: nothing holds the log while
 * a copy sleeps. Returns how many, or -EFAULT. */
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

/* The log is what the kernel has printed: the last LOG_SIZE bytes of it (kernel/report/printk.h).
 * Every console gets all messages, so a level is accepted and ignored. */
SYSCALL_DEFINE(103, sys_syslog, "dpd")
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

/* sysinfo(2). There is no swap space, and shared memory and buffers are not counted: these stay 0.
 * Memory is in KiB, and one load stands for all three: the tasks that could run now. */
SYSCALL_DEFINE(116, sys_sysinfo, "p")
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

/* getrandom(2): the same bytes as /dev/urandom gives. It never waits, also without GRND_NONBLOCK,
 * because nothing here counts what is random. */
SYSCALL_DEFINE(355, sys_getrandom, "pdx")
{
	struct buffer buffer = buffer_of_user(frame->ebx, frame->ecx);

	return frame->edx <= RANDOM_FLAGS ? device_fill_random(&buffer) : -EINVAL;
}

/* ---- limits ---- */

/* Enforced are the limits of descriptors, processor time, file size, queued signals and, from
 * lesson 6 on, tasks, memory and the stack, which is fixed before. The others are not counted. */

/* What the kernel has room for, whatever programs ask for: tables of descriptors, tasks and queued
 * signals have a fixed size. It does not count the other resources. */
static uint32_t limit_most(uint32_t resource)
{
	static const uint32_t fixed[LIMITS] = { [LIMIT_FILES] = FILES_MAX,
						[LIMIT_TASKS] = TASK_LIMIT,
						[LIMIT_QUEUED] = QUEUED_MAX };

	return fixed[resource] ?: LIMIT_NOTHING;
}

/* The same limit, but no part of it is more than this. */
static struct limit limit_cut(struct limit limit, uint32_t most)
{
	limit.soft = limit.soft < most ? limit.soft : most;
	limit.hard = limit.hard < most ? limit.hard : most;
	return limit;
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
	return limit_cut(limit, limit_most(resource));
}

/* setrlimit(2): -EINVAL without such a resource, or if the soft limit is above the hard one; -EPERM
 * for more than there can be. */
static int set_limit(struct files *files, uint32_t resource, const struct limit *limit)
{
	if (resource >= LIMITS || limit->soft > limit->hard)
		return -EINVAL;
	if (limit->hard > limit_most(resource))
		return -EPERM;
	files->limits[resource] = *limit;
	if (resource == LIMIT_STACK && limit->soft == LIMIT_NOTHING)
		files->limits[resource].soft = STACK_UNLIMITED;
	if (resource == LIMIT_CPU && watch_processor_time)
		watch_processor_time();
	return 0;
}

/* getrlimit(2): of the current program, whose threads share its limits. `most` is what stands for
 * no limit: the first call that i386 had gave 31 bits, and ugetrlimit all. -EINVAL, -EFAULT. */
static int get_limit(const struct trap_frame *frame, uint32_t most)
{
	if (frame->ebx >= LIMITS)
		return -EINVAL;
	const struct limit limit = limit_cut(limit_of(current->process->files, frame->ebx), most);

	return give(frame->ecx, &limit, sizeof(limit));
}

/* The old call's numbers are signed. */
SYSCALL(76, sys_getrlimit, "dp", get_limit(frame, INT32_MAX))
SYSCALL(191, sys_ugetrlimit, "dp", get_limit(frame, LIMIT_NOTHING))

/* Root may raise a hard limit. */
SYSCALL_DEFINE(75, sys_setrlimit, "dp")
{
	struct limit limit;

	return fetch(&limit, frame->ecx, sizeof(limit))
		   ?: set_limit(current->process->files, frame->ebx, &limit);
}

/* prlimit64's limits have 64 bits; no limit is all ones in both. More than 32 bits can say is none,
 * since no resource of this machine has so much. */
static uint64_t limit_wide(uint32_t limit)
{
	return limit == LIMIT_NOTHING ? UINT64_MAX : limit;
}

static uint32_t limit_narrow(uint64_t limit)
{
	return limit < LIMIT_NOTHING ? (uint32_t)limit : LIMIT_NOTHING;
}

/* Both at once, and of any program: the old limit goes to ESI (0: nowhere) only if the new one (0:
 * none) could be set. */
SYSCALL_DEFINE(340, sys_prlimit64, "ddpp")
{
	uint64_t wanted[2] = { 0, 0 };

	if (frame->ecx >= LIMITS)
		return -EINVAL;
	if (frame->edx && copy_from_user(wanted, frame->edx, sizeof(wanted)) != 0)
		return -EFAULT;
	const struct process *process = frame->ebx ? process_find(frame->ebx) : current->process;

	if (!process || !process->files)
		return -ESRCH;
	const struct limit old = limit_of(process->files, frame->ecx);
	const uint64_t answer[2] = { limit_wide(old.soft), limit_wide(old.hard) };
	const struct limit new = { limit_narrow(wanted[0]), limit_narrow(wanted[1]) };
	int error = frame->edx ? set_limit(process->files, frame->ecx, &new) : 0;

	return error || !frame->esi ? error : give(frame->esi, answer, sizeof(answer));
}

/* How many bytes a write at this offset may have: RLIMIT_FSIZE. At the limit SIGXFSZ is sent. */
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

/* One line for each resource, by its number: the columns are Linux's. */
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

PROCFS_ENTRY(&procfs_task, limits, "limits", .show = show_limits)

/* What setarch asks for is true in any case: programs have 32 bits, and addresses are not random.
 */
SYSCALL_DEFINE(136, sys_personality, "x")
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

/* getcpu(2): both words may be missing. There is one processor, on one node of memory. */
SYSCALL_DEFINE(318, sys_getcpu, "pp")
{
	const uint32_t first = 0;

	if (frame->ebx && give(frame->ebx, &first, sizeof(first)) != 0)
		return -EFAULT;
	return frame->ecx ? give(frame->ecx, &first, sizeof(first)) : 0;
}

/* The machine ends well. As on Linux these commands have no fourth argument: ESI is what the
 * program had in it. */
SYSCALL_DEFINE(88, sys_reboot, "xxxx")
{
	if (frame->ebx != LINUX_REBOOT_MAGIC1 || frame->ecx != LINUX_REBOOT_MAGIC2)
		return -EINVAL;
	switch (frame->edx) {
	case RB_POWER_OFF:
	case RB_HALT_SYSTEM:
	case RB_AUTOBOOT:
		machine_exit(0);
	default:
		return -EINVAL;
	}
}

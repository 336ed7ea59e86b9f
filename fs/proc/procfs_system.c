/* /proc files about the whole machine: proc(5) of Linux's manual has the formats. */
#include <cpuid.h>
#include <stddef.h>

#include "fs/file.h"
#include "fs/proc/procfs.h"
#include "fs/vfs/mounts.h"
#include "fs/vfs/wall_time.h"
#include "kernel/lib/divide.h"
#include "kernel/lib/startup.h"
#include "kernel/report/printk.h"
#include "kernel/process/process.h"
#include "kernel/task/time.h"

#define TICK_NS (1000000000u / TICKS_PER_SECOND)

/* Ticks since the start, and what became of them. */
struct usage {
	uint32_t user, system, idle;
	uint32_t tasks, running;
	uint64_t switches;
};

/* The ticks of tasks that have ended are counted with their parents'. */
static struct usage measure(void)
{
	struct usage usage = { 0 };
	uint32_t all = divide64(time_ns(), TICK_NS, NULL);

	for (const struct task *task = task_next(NULL); task; task = task_next(task)) {
		if (task->pid == 0)
			continue;
		const struct process *process = task->process;

		usage.user += task->user_ticks + (process ? process->children_user_ticks : 0);
		usage.system += task->system_ticks + (process ? process->children_system_ticks : 0);
		usage.tasks++;
		usage.running += task->life == TASK_READY;
		usage.switches += task->switches;
	}
	usage.idle = all > usage.user + usage.system ? all - usage.user - usage.system : 0;
	return usage;
}

static void show_stat(struct procfs_text *text, const struct task *task)
{
	struct usage usage = measure();
	uint64_t booted = divide64(time_wall_ns() - time_ns(), 1000000000, NULL);

	for (unsigned i = 0; i < 2; i++) /* all processors, then each */
		procfs_print(text, "cpu%s %u 0 %u %u 0 0 0 0 0 0\n", i ? "0" : " ", usage.user,
			     usage.system, usage.idle);
	procfs_print(text, "intr 0\nctxt %llu\nbtime %llu\nprocesses %u\n", usage.switches, booted,
		     usage.tasks);
	procfs_print(text, "procs_running %u\nprocs_blocked 0\n", usage.running);
}

/* Hundredths of seconds as a number with two places. */
static void print_seconds(struct procfs_text *text, uint64_t hundredths, char end)
{
	uint32_t rest;
	uint64_t whole = divide64(hundredths, 100, &rest);

	procfs_print(text, "%llu.%02u%c", whole, rest, end);
}

static void show_uptime(struct procfs_text *text, const struct task *task)
{
	print_seconds(text, divide64(time_ns(), TICK_NS, NULL), ' ');
	print_seconds(text, measure().idle, '\n');
}

/* No averages are kept: it is the load at this moment, three times. */
static void show_load(struct procfs_text *text, const struct task *task)
{
	struct usage usage = measure();

	procfs_print(text, "%u.00 %u.00 %u.00 %u/%u %d\n", usage.running, usage.running,
		     usage.running, usage.running, usage.tasks, current->pid);
}

static void show_version(struct procfs_text *text, const struct task *task)
{
	procfs_print(text, "Apprentice: an i386 kernel to learn from\n");
}

static void show_mounts(struct procfs_text *text, const struct task *task)
{
	const struct mount *mount;

	for (uint32_t i = 0; (mount = vfs_mount_at(i)); i++)
		procfs_print(text, "%s %s %s %s%s%s%s%s 0 0\n", mount->source, mount->path,
			     mount->type->type, mount_is_read_only(mount) ? "ro" : "rw",
			     mount->options.synchronous		      ? ",sync"
			     : mount->options.synchronous_directories ? ",dirsync"
								      : "",
			     mount->options.no_access_time ? ",noatime" : "",
			     *mount->text ? "," : "", mount->text);
}

/* The parent of every mount is the first one. */
static void show_mount_tree(struct procfs_text *text, const struct task *task)
{
	const struct mount *mount;

	for (uint32_t i = 0; (mount = vfs_mount_at(i)); i++)
		procfs_print(text, "%u %u %u:%u / %s %s - %s %s rw\n", i + 1, i ? 1 : 0,
			     mount->root->filesystem >> 8, mount->root->filesystem & 0xff,
			     mount->path, mount_is_read_only(mount) ? "ro" : "rw",
			     mount->type->type, mount->source);
}

/* There are none: only the heading. */
static void show_swaps(struct procfs_text *text, const struct task *task)
{
	procfs_print(text, "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n");
}

static void show_filesystems(struct procfs_text *text, const struct task *task)
{
	const struct filesystem *type = filesystem_next(NULL);

	for (; type; type = filesystem_next(type))
		procfs_print(text, "%s\t%s\n", type->needs_device ? "" : "nodev", type->type);
}

static void show_processor(struct procfs_text *text, const struct task *task)
{
	uint32_t eax, words[12], khz = time_tsc_khz();

	__cpuid(0, eax, words[0], words[2], words[1]);
	procfs_print(text, "processor\t: 0\nvendor_id\t: %.12s\n", (const char *)words);
	__cpuid(1, eax, words[0], words[1], words[2]);
	procfs_print(text, "cpu family\t: %u\nmodel\t\t: %u\nstepping\t: %u\n", eax >> 8 & 15,
		     eax >> 4 & 15, eax & 15);
	procfs_print(text, "cpu MHz\t\t: %u.%03u\nfpu\t\t: yes\n\n", khz / 1000, khz % 1000);
}

static int link_self(const void *unused, char *target, uint32_t size)
{
	return snprintk(target, size, "%d", current->process->leader->task->pid);
}

static int link_mounts(const void *unused, char *target, uint32_t size)
{
	return snprintk(target, size, "self/mounts");
}

static void system_register(void)
{
	static struct procfs_entry table[] = {
		{ .name = "cpuinfo", .show = show_processor },
		{ .name = "filesystems", .show = show_filesystems },
		{ .name = "loadavg", .show = show_load },
		{ .name = "mounts", .link = link_mounts },
		{ .name = "self", .link = link_self },
		{ .name = "stat", .show = show_stat },
		{ .name = "swaps", .show = show_swaps },
		{ .name = "uptime", .show = show_uptime },
		{ .name = "version", .show = show_version },
	};

	static struct procfs_entry mounts = { .name = "mounts", .show = show_mounts };
	static struct procfs_entry tree = { .name = "mountinfo", .show = show_mount_tree };

	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		procfs_register(&table[i]);
	procfs_register_task(&mounts);
	procfs_register_task(&tree);
}
STARTUP(system_register)

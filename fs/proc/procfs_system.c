/*
 * /proc files about the whole machine, in the formats of proc(5): what top, free, uptime, vmstat,
 * df and C libraries read. A tick is a hundredth of a second, as USER_HZ on Linux.
 *
 *	stat, loadavg, uptime	how busy the processor is
 *	meminfo			pages, in KiB
 *	cpuinfo			what CPUID says
 *	mounts, mountinfo	the mounts, which are the same for all tasks
 *
 * Texts are made for one reader at a time, and nothing that they count changes meanwhile.
 */
#include <cpuid.h>

#include "fs/proc/procfs.h"
#include "fs/ram/ramfs.h"
#include "fs/vfs/mounts.h"
#include "kernel/lib/divide.h"
#include "kernel/report/printk.h"
#include "kernel/process/process.h"
#include "kernel/task/time.h"
#include "mm/memory_map.h"
#include "mm/page_alloc.h"

#define TICK_NS (1000000000u / TICKS_PER_SECOND)

/* Ticks since the kernel started, and what became of them. */
struct usage {
	uint32_t user, system, idle;
	uint32_t tasks, running;
	uint64_t switches;
};

/* The ticks of tasks that have ended are counted with their parents'. */
static struct usage measure_usage(void)
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

/* "cpu" lines: user, nice, system, idle, iowait and others, in ticks since the kernel started. What
 * is not told apart is 0. btime is in seconds since 1970. */
static void show_machine_stat(struct procfs_text *text, const struct task *task)
{
	struct usage usage = measure_usage();
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

/* Seconds: since the kernel started, and idle ones of all processors, of which there is one. */
static void show_uptime(struct procfs_text *text, const struct task *task)
{
	print_seconds(text, divide64(time_ns(), TICK_NS, NULL), ' ');
	print_seconds(text, measure_usage().idle, '\n');
}

/* No averages are kept: it is the load at this moment, three times. */
static void show_load(struct procfs_text *text, const struct task *task)
{
	struct usage usage = measure_usage();

	procfs_print(text, "%u.00 %u.00 %u.00 %u/%u %d\n", usage.running, usage.running,
		     usage.running, usage.running, usage.tasks, current->pid);
}

/* The six columns of fstab(5); spaces in names are not escaped. */
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

/* "nodev": it needs no device. mount(8) tries the others. */
static void show_filesystems(struct procfs_text *text, const struct task *task)
{
	const struct filesystem *type = filesystem_next(NULL);

	for (; type; type = filesystem_next(type))
		procfs_print(text, "%s\t%s\n", type->needs_device ? "" : "nodev", type->type);
}

/* CPUID's leaf 0 has the vendor in EBX, EDX, ECX; leaf 1 family, model and stepping in EAX (Intel
 * SDM, volume 2, CPUID). */
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

/* /proc/self: the program of the task that reads the link. */
static int link_self(const void *unused, char *target, uint32_t size)
{
	return snprintk(target, size, "%d", current->process->leader->task->pid);
}

/* A line of /proc/meminfo. */
static void print_kib(struct procfs_text *text, const char *name, uint32_t pages)
{
	procfs_print(text, "%-15s %8u kB\n", name, pages << (PAGE_SHIFT - 10));
}

/* Pages of empty slabs could be given back, and those of files on disks: they are reclaimable. */
static void show_meminfo(struct procfs_text *text, const struct task *task)
{
	static const char *const none[] = { "Buffers:",	 "SwapCached:", "SwapTotal:",
					    "SwapFree:", "Dirty:",	"Writeback:" };
	uint32_t free = page_free_count(), shared = ramfs_counts.pages, empty = 0;
	uint32_t cached = procfs_cached_pages ? procfs_cached_pages() : 0;
	uint32_t slabs = procfs_slab_pages ? procfs_slab_pages(&empty) : 0;

	procfs_print(text, "%-15s %8u kB\n", "MemTotal:", (uint32_t)memory_map_usable());
	print_kib(text, "MemFree:", free);
	print_kib(text, "MemAvailable:", free + empty + cached);
	print_kib(text, "Cached:", shared + cached);
	for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		print_kib(text, none[i], 0);
	print_kib(text, "Shmem:", shared);
	print_kib(text, "Slab:", slabs);
	print_kib(text, "SReclaimable:", empty);
	if (procfs_show_large)
		procfs_show_large(text);
}

/* Of the machine: the same for all who read them. */
static struct procfs_entry machine[] = {
	{ "cpuinfo", .show = show_processor },
	{ "filesystems", .show = show_filesystems },
	{ "loadavg", .show = show_load },
	{ "meminfo", .show = show_meminfo },
	{ "mounts", .target = "self/mounts" },
	{ "self", .link = link_self },
	{ "stat", .show = show_machine_stat },
	/* There are none: only the heading. */
	{ "swaps", .text = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority" },
	{ "uptime", .show = show_uptime },
	{ "version", .text = "Apprentice: an i386 kernel to learn from" },
};
PROCFS(&procfs_root, machine)

/* Of a task, since on Linux each may see other mounts; /proc/mounts is a link to one's own. */
static struct procfs_entry mount_tables[] = {
	{ "mounts", .show = show_mounts },
	{ "mountinfo", .show = show_mount_tree },
};
PROCFS(&procfs_task, mount_tables)

/*
 * /proc files about each task, in the formats of proc(5). What a column means there and nothing
 * here is 0, or what a process on Linux has at first.
 *
 *	stat, status	life, family, signals, times		ps, top
 *	statm, maps	memory					free, glibc, gdb
 *	cmdline, environ, comm	strings, read from its memory	ps, pgrep
 *	fd, fdinfo, exe, cwd	its files			lsof, ls -l
 *
 * /proc/PID/task/TID has the same files: those of a thread are about the thread, where Linux's are.
 *
 * A text is made by the task that reads it, which may sleep only where the other's memory is read;
 * the other task may have ended by then. What a zombie has no longer is empty.
 */
#include "fs/files.h"
#include "fs/proc/procfs.h"
#include "kernel/abi/capability.h"
#include "kernel/abi/file.h"
#include "kernel/lib/divide.h"
#include "kernel/process/family.h"
#include "mm/space_map.h"

/* A page is too little for these; what does not fit is lost. */
#define STRINGS_ORDER 5 /* pages: all that exec takes */
#define MAPS_ORDER    3

static const struct {
	char letter;
	const char *name;
} lives[] = {
	[TASK_READY] = { 'R', "running" },	[TASK_SLEEPING] = { 'S', "sleeping" },
	[TASK_BLOCKED] = { 'D', "disk sleep" }, [TASK_STOPPED] = { 'T', "stopped" },
	[TASK_ZOMBIE] = { 'Z', "zombie" },
};

/* A kernel thread has no process; it shows up as one that has nothing, and ignores no signal. */
static const struct process *process_of(const struct task *task)
{
	static struct process nothing = { .signals.actions = nothing.signals.own };

	return task->process ? task->process : &nothing;
}

/* Every task of the program counts, its first one too. */
static uint32_t threads_of(const struct task *task)
{
	uint32_t count = 0;

	for (const struct task *each = task_next(NULL); each; each = task_next(each))
		count += procfs_program(each) == procfs_program(task);
	return count;
}

/* The pid of the program's parent; 0 for what the kernel has started. */
static int parent_pid(const struct task *task)
{
	return process_parent_pid(process_of(task)->leader);
}

/* Bytes of a task's memory; a zombie has none. */
static struct space_sizes sizes_of(const struct task *task)
{
	return task->space ? space_sizes(task->space) : (struct space_sizes){ 0 };
}

/* Bytes of areas by their flags: those that the mask selects are these. */
static uint32_t range_bytes(const struct task *task, uint32_t mask, uint32_t flags)
{
	struct space_range range = { .end = 0 };
	uint32_t bytes = 0;

	for (; task->space && space_next_range(task->space, &range); range.start = range.end)
		bytes += (range.flags & mask) == flags ? range.end - range.start : 0;
	return bytes;
}

/* The 52 columns of stat. Times are in hundredths of seconds, which are ticks here; a priority is
 * 20 plus the nice value; sizes are bytes, but the resident one is pages. The limit of the resident
 * size is 2^32 - 1: none. Column 38 is the signal that tells the parent of the end, SIGCHLD. */
static void show_task_stat(struct procfs_text *text, const struct task *task)
{
	uint64_t begun = divide64(task->begun_ns, 10000000, NULL);
	int nice = task->schedule.nice;
	const struct process *process = process_of(task);

	procfs_print(text, "%d (%s) %c %d %d %d %u -1 0 %u %u %u %u ", task->pid, task->name,
		     lives[task->life].letter, parent_pid(task), process->pgrp, process->session,
		     process->tty, task->counts.minor_faults, process->children_counts.minor_faults,
		     task->counts.major_faults, process->children_counts.major_faults);
	procfs_print(text, "%u %u %u %u %d %d %u 0 %llu %u %u 4294967295", task->user_ticks,
		     task->system_ticks, process->children_user_ticks,
		     process->children_system_ticks, 20 + nice, nice, threads_of(task), begun,
		     sizes_of(task).mapped, sizes_of(task).resident / PAGE_SIZE);
	procfs_print(text, " 0 0 0 0 0 %u %u 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
		     (uint32_t)process->signals.pending, (uint32_t)process->signals.blocked);
}

/* Pages: all, resident, shared with files, code, 0, data and stack, 0. */
static void show_statm(struct procfs_text *text, const struct task *task)
{
	const struct space_sizes sizes = sizes_of(task);
	uint32_t shared = task->space && procfs_shared ? procfs_shared(task->space) : 0;
	uint32_t code = range_bytes(task, SPACE_WRITE | SPACE_EXECUTE, SPACE_EXECUTE);
	uint32_t data = range_bytes(task, SPACE_WRITE | RANGE_SHARED, SPACE_WRITE);

	procfs_print(text, "%u %u %u %u 0 %u 0\n", sizes.mapped / PAGE_SIZE,
		     sizes.resident / PAGE_SIZE, shared / PAGE_SIZE, code / PAGE_SIZE,
		     data / PAGE_SIZE);
}

/* Sets of signals. Those that wait are said to be for the whole process. */
static void show_signals(struct procfs_text *text, const struct process_signals *signals)
{
	uint64_t ignored = 0, caught = 0;

	for (int signal = 1; signal <= SIGNALS; signal++) {
		uint32_t handler = signals->actions[signal - 1].handler;

		ignored |= handler == SIGNAL_IGNORE ? SIGNAL_BIT(signal) : 0;
		caught |= handler > SIGNAL_IGNORE ? SIGNAL_BIT(signal) : 0;
	}
	procfs_print(text, "SigPnd:\t%016llx\nShdPnd:\t%016llx\n", 0ull, signals->pending);
	procfs_print(text, "SigBlk:\t%016llx\nSigIgn:\t%016llx\nSigCgt:\t%016llx\n",
		     signals->blocked, ignored, caught);
}

/* For people, a line each. User and group are root's, four times: real, effective, saved, and that
 * of file systems. */
static void show_status(struct procfs_text *text, const struct task *task)
{
	const struct space_sizes sizes = sizes_of(task);
	const struct files *files = process_of(task)->files;

	procfs_print(text, "Name:\t%s\nState:\t%c (%s)\nTgid:\t%d\nPid:\t%d\nPPid:\t%d\n",
		     task->name, lives[task->life].letter, lives[task->life].name,
		     procfs_program(task), task->pid, parent_pid(task));
	procfs_print(text, "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n");
	procfs_print(text, "VmSize:\t%8u kB\nVmLck:\t%8u kB\nVmRSS:\t%8u kB\nThreads:\t%u\n",
		     sizes.mapped / 1024, range_bytes(task, RANGE_PINNED, RANGE_PINNED) / 1024,
		     sizes.resident / 1024, threads_of(task));
	show_signals(text, &process_of(task)->signals);
	procfs_print(text, "NoNewPrivs:\t%u\n",
		     files && files->personality & FILES_NO_NEW_RIGHTS ? 1 : 0);
	procfs_print(text, "voluntary_ctxt_switches:\t%u\nnonvoluntary_ctxt_switches:\t%u\n",
		     task->switches - task->preemptions, task->preemptions);
}

PROCFS_SHOW(show_comm, "%s\n", task->name)

/* Up to the first page that is not mapped. A zombie has no memory any more: nothing, as on Linux.
 */
static void show_strings(struct procfs_text *text, const struct task *task, uint32_t start,
			 uint32_t end)
{
	uint32_t length = end - start < text->size ? end - start : text->size;

	if (task->space)
		text->length = space_read(task->space, start, text->bytes, length);
}

/* A program that shows what it does (setproctitle) writes over the end of its arguments, and over
 * its environment: then they are one string. On Linux, too: proc(5). */
static void show_arguments(struct procfs_text *text, const struct task *task)
{
	const struct process *process = process_of(task);
	uint32_t length = process->environment - process->arguments, end = 0;

	show_strings(text, task, process->arguments, process->environment);
	if (length == 0 || text->length < length || text->bytes[length - 1] == '\0')
		return;
	show_strings(text, task, process->arguments, process->strings_end);
	while (end < text->length && text->bytes[end++] != '\0')
		;
	text->length = end;
}

/* As it was when the program began, unless that has written over it. */
static void show_environment(struct procfs_text *text, const struct task *task)
{
	show_strings(text, task, process_of(task)->environment, process_of(task)->strings_end);
}

/* A line of maps: addresses, what is allowed, private or shared, the offset, and a name, which
 * begins in column 74. The device and the inode are not known here. */
static void show_range(struct procfs_text *text, const struct space *space,
		       const struct space_range *range)
{
	bool is_stack = range->end == space_stack_top(space);

	procfs_print(text, "%08x-%08x %c%c%c%c %08x 00:00 0 ", range->start, range->end,
		     range->flags & SPACE_READ ? 'r' : '-', range->flags & SPACE_WRITE ? 'w' : '-',
		     range->flags & SPACE_EXECUTE ? 'x' : '-',
		     range->flags & RANGE_SHARED ? 's' : 'p', range->index * PAGE_SIZE);
	if (is_stack || !procfs_name_range)
		procfs_print(text, "%s\n", is_stack ? "                         [stack]" : "");
	else
		procfs_name_range(text, space, range);
}

void procfs_show_ranges(struct procfs_text *text, const struct task *task,
			void (*more)(struct procfs_text *text, const struct space *space,
				     const struct space_range *range))
{
	struct space_range range = { .end = 0 };

	for (; task->space && space_next_range(task->space, &range); range.start = range.end) {
		show_range(text, task->space, &range);
		if (more)
			more(text, task->space, &range);
	}
}

static void show_maps(struct procfs_text *text, const struct task *task)
{
	procfs_show_ranges(text, task, NULL);
}

/* ---- open files ---- */

/* What the links exe and cwd lead to: struct procfs_entry's file. */
static struct file *program_of(const struct files *files, uint32_t unused)
{
	return files->program;
}

static struct file *directory_of(const struct files *files, uint32_t unused)
{
	return files->directory;
}

/* The first descriptor from object->number on that is open. */
static bool next_descriptor(const struct procfs_node *directory, struct procfs_object *object)
{
	const struct process *process = process_find(directory->pid);
	const struct files *files = process ? process->files : NULL;

	while (files && object->number < FILES_MAX && !files_get(files, object->number))
		object->number++;
	object->it = (const void *)(uintptr_t)object->number;
	return files && object->number < FILES_MAX;
}

/* fdinfo. The flags are octal, as open(2) takes them. Nothing, if it was closed meanwhile. */
static void show_descriptor(struct procfs_text *text, const struct task *task)
{
	const struct files *files = task->process ? task->process->files : NULL;
	uint32_t descriptor = (uintptr_t)text->object;
	const struct file *file = files ? files_get(files, descriptor) : NULL;

	if (!file)
		return;
	uint32_t flags = file->flags & O_PATH ? O_PATH : file->flags;

	flags |= files_closes_on_exec(files, descriptor) ? O_CLOEXEC : 0;
	procfs_print(text, "pos:\t%llu\nflags:\t0%o\nmnt_id:\t1\nino:\t%u\n", file->offset, flags,
		     file->inode ? file->inode->number : 0);
}

/* /proc/PID/fd/N jumps to the open file itself, so it works for a file without a name, too. */
static struct procfs_entry descriptor_links[] = { { .each = next_descriptor, .file = files_get } };
static struct procfs_entry descriptor_texts[] = {
	{ .each = next_descriptor, .show = show_descriptor },
};

static struct procfs_entry of_task[] = {
	{ "fd", PROCFS_ENTRIES(descriptor_links), .permissions = 0500 },
	{ "cmdline", .show = show_arguments, .order = STRINGS_ORDER },
	{ "comm", .show = show_comm },
	{ "cwd", .file = directory_of, .target = "/" },
	{ "fdinfo", PROCFS_ENTRIES(descriptor_texts) },
	{ "environ", .show = show_environment, .order = STRINGS_ORDER },
	{ "exe", .file = program_of },
	{ "maps", .show = show_maps, .order = MAPS_ORDER },
	{ "root", .target = "/" },
	{ "stat", .show = show_task_stat },
	{ "statm", .show = show_statm },
	{ "status", .show = show_status },
};
PROCFS(&procfs_task, of_task)

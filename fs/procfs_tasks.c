/* What /proc says of each task: proc(5) of Linux's manual has the formats. */
#include <stddef.h>

#include "fs/files.h"
#include "fs/procfs.h"
#include "fs/vfs.h"
#include "kernel/divide.h"
#include "kernel/printk.h"
#include "kernel/string.h"
#include "kernel/task.h"
#include "mm/page_alloc.h"
#include "mm/space.h"

static const struct {
	char letter;
	const char *name;
} lives[] = {
	[TASK_READY] = { 'R', "running" },	[TASK_SLEEPING] = { 'S', "sleeping" },
	[TASK_BLOCKED] = { 'D', "disk sleep" }, [TASK_STOPPED] = { 'T', "stopped" },
	[TASK_ZOMBIE] = { 'Z', "zombie" },
};

static int32_t parent_of(const struct task *task)
{
	return task->parent ? task->parent->pid : 0;
}

static uint32_t memory_of(const struct task *task)
{
	return task->space ? space_size(task->space) : 0;
}

static void show_stat(struct procfs_text *text, const struct task *task)
{
	uint64_t begun = divide64(task->begun_ns, 10000000, NULL);
	int nice = task->schedule.nice;

	procfs_print(text, "%d (%s) %c %d %d %d %u -1 0 0 0 0 0 ", task->pid, task->name,
		     lives[task->life].letter, parent_of(task), task->pgrp, task->session,
		     task->tty);
	procfs_print(text, "%u %u %u %u %d %d 1 0 %llu %u %u 4294967295", task->user_ticks,
		     task->system_ticks, task->children_user_ticks, task->children_system_ticks,
		     20 + nice, nice, begun, memory_of(task), memory_of(task) / PAGE_SIZE);
	procfs_print(text, " 0 0 0 0 0 %u %u 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
		     (uint32_t)task->signals.pending, (uint32_t)task->signals.blocked);
}

static void show_statm(struct procfs_text *text, const struct task *task)
{
	uint32_t pages = memory_of(task) / PAGE_SIZE;

	procfs_print(text, "%u %u 0 0 0 %u 0\n", pages, pages, pages);
}

static void show_status(struct procfs_text *text, const struct task *task)
{
	procfs_print(text, "Name:\t%s\nState:\t%c (%s)\nTgid:\t%d\nPid:\t%d\nPPid:\t%d\n",
		     task->name, lives[task->life].letter, lives[task->life].name, task->pid,
		     task->pid, parent_of(task));
	procfs_print(text, "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n");
	procfs_print(text, "VmSize:\t%8u kB\nVmRSS:\t%8u kB\nThreads:\t1\n", memory_of(task) / 1024,
		     memory_of(task) / 1024);
	procfs_print(text, "SigPnd:\t%016llx\nSigBlk:\t%016llx\n", task->signals.pending,
		     task->signals.blocked);
	procfs_print(text, "voluntary_ctxt_switches:\t%u\nnonvoluntary_ctxt_switches:\t%u\n",
		     task->switches - task->preemptions, task->preemptions);
}

static void show_name(struct procfs_text *text, const struct task *task)
{
	procfs_print(text, "%s\n", task->name);
}

/* A zombie has no files any more, and so no arguments. */
static void show_arguments(struct procfs_text *text, const struct task *task)
{
	if (!task->files)
		return;
	text->length = task->files->arguments_length;
	memcpy(text->bytes, task->files->arguments, text->length);
}

static int link_program(char *target, uint32_t size, const struct task *task)
{
	return snprintk(target, size, "%s", task->files ? task->files->program : "");
}

static int link_directory(char *target, uint32_t size, const struct task *task)
{
	int32_t length = task->files ? vfs_directory_path(task->files->directory, target, size) : 0;

	return length > 0 ? length - 1 : 0;
}

const struct procfs_entry procfs_task_files[] = {
	{ .name = "cmdline", .show = show_arguments }, { .name = "comm", .show = show_name },
	{ .name = "cwd", .link = link_directory },     { .name = "exe", .link = link_program },
	{ .name = "stat", .show = show_stat },	       { .name = "statm", .show = show_statm },
	{ .name = "status", .show = show_status },     { 0 },
};

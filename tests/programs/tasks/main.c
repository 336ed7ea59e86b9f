/*
 * tasks DRIVE TYPE OPTIONS TASKS SEED CALLS PHASES FREE [REPORT]: mounts DRIVE at /mnt with
 * OPTIONS, and lets 2 to 4 tasks make CALLS system calls each, on the same files and on their own.
 * After each of the phases the drive is unmounted, mounted again, and all files are compared with
 * what the tasks know. FREE: leave so many blocks of the disk free, 0: all.
 *
 *	cells of a shared file	[ 0 0 1 1 2 2 3 3 | 0 0 1 1 2 2 3 3 | ...	who writes to them
 *				`---- a page ---'
 *
 * Each cell has one writer, which knows exactly what must be in it; what all others may read there
 * is something that its writer has written. Each task has files and names of its own, too, in
 * directories that two tasks have together.
 *
 * With REPORT, a drive, all calls are written there (struct record): when each was begun and when
 * it returned, by the clock by which the kernel notes when the drive has finished a request.
 */
#define _GNU_SOURCE
#include "tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_WRONG 10

struct together *together;
struct task *me;
unsigned task_count;
bool is_recorded, is_full;

const struct operation operations[] = {
	{ do_write, 20 },  { do_store, 8 },  { do_punch, 3 }, { do_resize, 5 },	   { do_read, 8 },
	{ do_range, 3 },   { do_fsync, 15 }, { do_sync, 2 },  { do_directory, 3 }, { do_drop, 3 },
	{ do_evicted, 4 }, { do_create, 6 }, { do_link, 2 },  { do_rename, 5 },	   { do_unlink, 4 },
	{ do_mkdir, 3 },   { do_rmdir, 2 },  { do_fill, 2 },  { do_append, 4 },	   { NULL, 0 },
};

uint32_t below(uint32_t limit)
{
	me->random = me->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(me->random >> 33) % limit;
}

bool one_in(uint32_t times)
{
	return below(times) == 0;
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

struct record *begin(enum kind kind, uint32_t file, uint32_t first, uint32_t count)
{
	struct record *record = &together->records[me->number][me->records % RECORDS];

	me->records++;
	*record = (struct record){ .task = (uint8_t)me->number, .kind = (uint8_t)kind };
	record->file = (uint8_t)file;
	record->first = first;
	record->count = count;
	record->value = me->number << 24 | ++me->serial;
	record->begun = now();
	errno = 0;
	return record;
}

long end(struct record *record, long result)
{
	record->result = result < 0 ? -errno : (int32_t)result;
	record->returned = now();
	me->done++;
	return result;
}

void wrong(const char *format, ...)
{
	va_list rest;

	if (me->wrong++ >= MOST_WRONG)
		return;
	printf("WRONG: task %u, call %u: ", me->number, me->serial);
	va_start(rest, format);
	vprintf(format, rest);
	va_end(rest);
	printf("\n");
	fflush(stdout);
}

unsigned owner_of(uint32_t file, uint32_t cell)
{
	if (file < SHARED)
		return cell / 2 % task_count;
	return file < SHARED + TASKS ? file - SHARED : (file - SHARED - TASKS) / SLOTS;
}

uint64_t word_of(uint32_t file, uint32_t cell, uint32_t value)
{
	return value ? (uint64_t)cell << 48 | (uint64_t)file << 32 | value : 0;
}

/* A little time between two calls, so that tasks meet in other places. */
static void pause_a_little(void)
{
	switch (below(8)) {
	case 0:
		sched_yield();
		break;
	case 1:
		usleep(1);
		break;
	case 2:
		for (volatile uint32_t i = below(20000); i > 0; i--)
			;
	}
}

static void work(unsigned number, unsigned calls)
{
	unsigned sum = 0;

	me = &together->tasks[number];
	for (const struct operation *each = operations; each->run; each++)
		sum += each->weight;
	for (unsigned i = 0; i < calls && me->wrong == 0; i++) {
		const struct operation *each = operations;
		unsigned chosen = below(sum);

		while (chosen >= each->weight)
			chosen -= each++->weight;
		each->run();
		pause_a_little();
	}
	exit(0);
}

static void must(const char *what, long result)
{
	if (result >= 0)
		return;
	printf("WRONG: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void make_files(void)
{
	must("mkdir", mkdir("/mnt/d0", 0755) | mkdir("/mnt/d1", 0755));
	for (uint32_t file = 0; file < SHARED + task_count; file++) {
		int made = open(path_of(file), O_RDWR | O_CREAT | O_EXCL, 0644);

		must("creat", made);
		if (file < SHARED)
			must("ftruncate", ftruncate(made, (off_t)CELLS * CELL));
		close(made);
		together->files[file].size = file < SHARED ? CELLS : 0;
	}
	close(open("/mnt/log", O_RDWR | O_CREAT, 0644));
}

/* Fills the disk, but for some blocks. */
static void fill_disk(unsigned blocks)
{
	static char data[4096];
	int filler = open("/mnt/fill", O_RDWR | O_CREAT, 0644);
	struct stat status;
	off_t size = 0;

	memset(data, 'f', sizeof(data));
	while (write(filler, data, sizeof(data)) == sizeof(data))
		size += sizeof(data);
	must("fsync of what fills the disk", fsync(filler));
	must("fstat", fstat(filler, &status));
	must("ftruncate", ftruncate(filler, size - (off_t)blocks * status.st_blksize));
	must("fsync", fsync(filler));
	close(filler);
}

static void run_tasks(unsigned calls)
{
	fflush(stdout);
	for (unsigned i = 0; i < task_count; i++)
		if (fork() == 0)
			work(i, calls);
	for (int status; wait(&status) > 0;)
		if (status != 0)
			me->wrong++, printf("WRONG: a task ended with status %d\n", status);
}

/* What all files have, by the parent, when no task runs. */
static void check_all(void)
{
	for (unsigned i = 0; i < task_count; i++) {
		me = &together->tasks[i];
		for (uint32_t file = 0; file < FILES; file++)
			if (owner_of(file, 0) == i || file < SHARED)
				check_file(file, false);
	}
	me = &together->tasks[0];
	check_appended();
}

static void write_report(const char *drive)
{
	int report = open(drive, O_WRONLY);
	static char page[4096];
	unsigned total = 0;

	must(drive, report);
	for (unsigned i = 0; i < task_count; i++)
		total += together->tasks[i].records;
	snprintf(page, sizeof(page), "tasks %u calls %u\n", task_count, total);
	must("report", write(report, page, 512));
	for (unsigned i = 0; i < task_count; i++) {
		size_t length = together->tasks[i].records * sizeof(struct record);

		must("report", write(report, together->records[i], length));
	}
	must("report", fsync(report));
	close(report);
}

int main(int count, char **words)
{
	if (count < 9)
		return 2;
	unsigned calls = (unsigned)atoi(words[6]), phases = (unsigned)atoi(words[7]);
	size_t size = sizeof(struct together);

	task_count = (unsigned)atoi(words[4]);
	is_full = atoi(words[8]) > 0;
	is_recorded = count > 9;
	together = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (unsigned i = 0; i < TASKS; i++) {
		me = &together->tasks[i];
		*me = (struct task){ .number = i, .random = strtoull(words[5], NULL, 10) * 97 + i };
		memset(me->names, NO_FILE, NAMES);
		below(1);
	}
	me = &together->tasks[0];
	mkdir("/mnt", 0755);
	must("mount", mount(words[1], "/mnt", words[2], 0, words[3]));
	make_files();
	if (is_full)
		fill_disk((unsigned)atoi(words[8]));
	sync();
	for (unsigned i = 0; i < phases; i++) {
		run_tasks(calls);
		check_all();
		must("umount", umount("/mnt"));
		must("mount again", mount(words[1], "/mnt", words[2], 0, words[3]));
		check_all();
	}
	must("umount", umount("/mnt"));
	if (is_recorded)
		write_report(words[9]);
	uint64_t done = 0;
	unsigned faults = 0;

	for (unsigned i = 0; i < task_count; i++) {
		done += together->tasks[i].done;
		faults += together->tasks[i].wrong;
	}
	printf("%llu calls, %u wrong\n", (unsigned long long)done, faults);
	return faults > 0;
}

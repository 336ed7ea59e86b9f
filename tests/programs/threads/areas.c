/* Thread-local segments beside the one of the C library: programs have three (set_thread_area). */
#include "threads.h"

#include <asm/ldt.h>

#define OTHERS 2 /* glibc has the first */

static uint32_t words[OTHERS];

static long set_area(int entry, uint32_t *base, struct user_desc *area)
{
	*area = (struct user_desc){ .entry_number = entry,
				    .base_addr = (uintptr_t)base,
				    .limit = 0xfffff,
				    .seg_32bit = 1,
				    .limit_in_pages = 1,
				    .useable = 1 };
	return syscall(SYS_set_thread_area, area) < 0 ? -errno : 0;
}

static long clear_area(int entry)
{
	struct user_desc area = { .entry_number = entry };

	return syscall(SYS_set_thread_area, &area) < 0 ? -errno : 0;
}

static uint32_t read_by(int entry)
{
	uint32_t value;

	__asm__ volatile("pushl %%fs\n\t"
			 "movw %w1, %%fs\n\t"
			 "movl %%fs:0, %0\n\t"
			 "popl %%fs"
			 : "=r"(value)
			 : "r"(entry * 8 + 3));
	return value;
}

static uint32_t fs_now(void)
{
	uint32_t value;

	__asm__ volatile("movl %%fs, %0" : "=r"(value));
	return value;
}

/* Each task has its own: others run meanwhile. */
static void *other_areas(void *first)
{
	uint32_t mine = 77;
	struct user_desc area;

	set_area((int)(intptr_t)first, &mine, &area);
	for (int i = 0; i < 50; i++) {
		sched_yield();
		if (read_by((int)(intptr_t)first) != mine)
			return (void *)1;
	}
	return NULL;
}

static void keep(int signal)
{
}

/* FS stays over signals and switches, until its descriptor goes. */
static void keep_loaded(int entry)
{
	__asm__ volatile("movw %w0, %%fs" : : "r"(entry * 8 + 3));
	signal(SIGUSR1, keep);
	raise(SIGUSR1);
	sched_yield();
	say("kept", fs_now() == (uint32_t)entry * 8 + 3);
	say("clear", clear_area(entry));
	say("loaded", fs_now());
}

void part_areas(void)
{
	struct user_desc first, second, third;
	int before = words[0] = 11, after = words[1] = 22;

	say("second", set_area(-1, &words[0], &first));
	say("third", set_area(-1, &words[1], &second));
	say("after it", second.entry_number - first.entry_number);
	say("no more", set_area(-1, words, &third));
	say("far", set_area(first.entry_number + OTHERS, words, &third));
	say("values", read_by(first.entry_number) == (uint32_t)before &&
			  read_by(second.entry_number) == (uint32_t)after);
	third.entry_number = second.entry_number;
	third.seg_32bit = 0;
	say("of 16 bits", syscall(SYS_set_thread_area, &third));
	void *wrong;
	pthread_t thread = start(other_areas, (void *)(intptr_t)first.entry_number);

	for (int i = 0; i < 50; i++)
		sched_yield();
	pthread_join(thread, &wrong);
	say("another's", wrong != NULL);
	say("mine", read_by(first.entry_number));
	pid_t child = fork();

	if (child == 0)
		_exit(read_by(second.entry_number));
	say("inherited", end_of(child));
	keep_loaded(second.entry_number);
	say("free again", set_area(-1, &words[0], &third));
	say("the same", third.entry_number == second.entry_number);
	say("by it", read_by(third.entry_number));
	clear_area(first.entry_number);
	clear_area(third.entry_number);
}

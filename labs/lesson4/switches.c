/*
 * The commands `pingpong` and `quantum`: raw figures of the cost of a task switch.
 *
 *	pingpong 64 1 1000	two threads, with 64 pages and an address space each, yield to each
 *				other 1000 times: what a switch costs, caches and TLB included
 *	quantum 1000 50000	two threads share work, in turns of a millisecond: pre-emption
 *
 * Only raw figures are printed, in TSC cycles; measure.py makes tables of them.
 */

#include "drivers/clock/pit.h"
#include "kernel/task/lock.h"
#include "kernel/cpu/machine.h"
#include "kernel/cpu/paging.h"
#include "kernel/report/monitor.h"
#include "kernel/lib/number.h"
#include "kernel/report/printk.h"
#include "kernel/task/sched.h"
#include "kernel/task/task_make.h"
#include "mm/page_alloc.h"
#include "mm/space.h"

#define PAGES_ORDER 9 /* 512 pages */
#define ROUND_LOOPS 1000u

static struct semaphore ended;

/* A number up to `most`, or UINT32_MAX for anything else. */
static uint32_t parse(const char *word, uint32_t most)
{
	uint64_t number;

	return number_parse(word, &number) && number <= most ? (uint32_t)number : UINT32_MAX;
}

/* --- pingpong: two threads that yield to each other, and touch pages in between --- */

static uint32_t page_count, round_count, loads, last_cr3, ready;
static bool has_spaces;
static uint64_t begin, end; /* of the game: both are there, one has ended */

/* One byte of each page: as many TLB entries as possible for as little work. */
static void touch(volatile uint8_t *pages)
{
	for (uint32_t i = 0; i < page_count; i++)
		pages[i * PAGE_SIZE]++;
}

/* Both threads are there before the clock starts, and the clock stops when the first has ended: a
 * thread alone would measure itself. Pre-emption is disabled, so that only yield switches. */
static void play(void *argument)
{
	uint32_t left = round_count;

	preempt_disable();
	current->space = has_spaces ? space_create() : NULL;
	ready++;
	while (ready < 2)
		yield();
	if (ready++ == 2)
		begin = time_stamp();
	while (left-- > 0) {
		touch(argument);
		yield();
		loads += paging_directory() != last_cr3;
		last_cr3 = paging_directory();
	}
	if (ready++ == 4)
		end = time_stamp();
	if (current->space) {
		bool enabled = interrupts_disable();

		space_destroy(task_unload());
		interrupts_restore(enabled);
	}
	preempt_enable();
}

/* Plays, alone with one other thread. Returns the TSC cycles that it took. */
static uint64_t play_game(uint8_t *first, uint8_t *second)
{
	uint32_t before = task_count;

	ready = 0;
	preempt_disable();
	kthread_create("ping", play, first);
	kthread_create("pong", play, second);
	preempt_enable();
	while (task_count > before)
		yield();
	return end - begin;
}

/* 512 pages for each thread, of which the first page_count are touched. */
static int run_pingpong(int count, char **words)
{
	uint8_t *first = page_alloc(PAGES_ORDER), *second = page_alloc(PAGES_ORDER);

	page_count = parse(words[1], 1 << PAGES_ORDER);
	has_spaces = parse(words[2], 1);
	round_count = parse(words[3], 1000000);
	loads = 0;
	if (first && second && page_count != UINT32_MAX && round_count != UINT32_MAX) {
		uint64_t passed = play_game(first, second);

		printk("pingpong: %u pages, %u spaces, %u rounds, %llu TSC cycles, %u loads\n",
		       page_count, has_spaces ? 2 : 1, round_count, passed, loads);
	}
	if (first)
		page_free(first, PAGES_ORDER);
	if (second)
		page_free(second, PAGES_ORDER);
	return EXIT_SUCCESS;
}

/* --- quantum: two threads that share some work, with turns of one tick --- */

static volatile int32_t rounds_left;

static void run_worker(void *argument)
{
	while (rounds_left > 0) {
		uint32_t loops = ROUND_LOOPS;

		/* One instruction: a tick between a load and a store would undo the other one's
		 * work. */
		__asm__ volatile("decl %0" : "+m"(rounds_left));
		__asm__ volatile("1: decl %0; jnz 1b" : "+r"(loops));
	}
	semaphore_up(&ended);
}

/* Each thread ends on its own, when it sees that nothing is left. */
static void share_work(void)
{
	kthread_create("work", run_worker, NULL);
	kthread_create("work", run_worker, NULL);
	semaphore_down(&ended);
	semaphore_down(&ended);
}

/* The timer and the quantum are the whole machine's: both are put back. */
static int run_quantum(int count, char **words)
{
	uint32_t hz = parse(words[1], 20000), rounds = parse(words[2], 100000000);
	uint32_t quantum = sched_quantum, changes = sched_trace.total;

	if (hz < 20 || hz == UINT32_MAX || rounds == UINT32_MAX) {
		printk("quantum: 20 to 20000 Hz, and a number of rounds\n");
		return EXIT_FAILURE;
	}
	sched_quantum = 1;
	pit_initialize(hz);
	rounds_left = rounds;
	uint64_t start = time_stamp();

	share_work();
	printk("quantum: %u Hz, %u rounds, %llu TSC cycles, %u switches\n", hz, rounds,
	       time_stamp() - start, sched_trace.total - changes);
	pit_initialize(TICKS_PER_SECOND);
	sched_quantum = quantum;
	return EXIT_SUCCESS;
}

static const struct command commands[] COMMAND_TABLE = {
	{ "pingpong", "PAGES 0|1 ROUNDS", "touch pages and yield; 1: two spaces", 3, run_pingpong },
	{ "quantum", "HZ ROUNDS", "two threads share work, a tick a turn", 2, run_quantum },
};

/*
 * The command `spin`: threads that never give up the processor, and the current one, which sleeps
 * for short times. It shows what a scheduling class does with tasks that compute, and with one that
 * sleeps.
 */

#include "kernel/lib/divide.h"
#include "kernel/lib/number.h"
#include "kernel/report/monitor.h"
#include "kernel/report/printk.h"
#include "kernel/task/sched.h"
#include "kernel/task/time.h"
#include "kernel/task/wait.h"

#define MOST_SPINNERS 16
#define SPIN_MS	      1000
#define NAP_MS	      20

static volatile bool spinning;

/* Never sleeps and never yields: only the tick can take the processor from it. */
static void spin(void *argument)
{
	while (spinning)
		;
}

/* Waits for the threads to end, for as long as they may need for their turns. */
static void await_end(uint32_t before)
{
	for (unsigned i = 0; i < MOST_SPINNERS && task_count > before; i++)
		msleep(SPIN_MS);
}

/* Sleeps for short times, for a second. Returns by how many microseconds it was late to get the
 * processor, on average. */
static uint32_t take_naps(void)
{
	uint64_t start = time_ns(), late = 0;
	uint32_t naps = 0;

	do {
		uint64_t due = time_ns() + NAP_MS * 1000000ull;

		msleep(NAP_MS);
		late += time_ns() - due;
		naps++;
	} while (time_ns() - start < SPIN_MS * 1000000ull);
	return divide64(late, naps * 1000, NULL);
}

/* The figures are read before the threads are told to end: after that they are gone. */
static int run_spin(int count, char **words)
{
	struct task *tasks[MOST_SPINNERS];
	uint32_t before = task_count;
	uint64_t wanted;

	if (!number_parse(words[1], &wanted) || wanted > MOST_SPINNERS) {
		printk("spin: 1 to %u threads\n", MOST_SPINNERS);
		return 1;
	}
	spinning = true;
	for (unsigned i = 0; i < wanted; i++)
		tasks[i] = kthread_create("spin", spin, NULL);
	uint32_t late = take_naps();

	for (unsigned i = 0; i < wanted; i++)
		if (tasks[i])
			printk("spin: thread %d had the processor for %llu ms\n", tasks[i]->pid,
			       divide64(tasks[i]->schedule.total, time_tsc_khz(), NULL));
	printk("spin: a task that sleeps for %u ms gets the processor %u us late\n", NAP_MS, late);
	spinning = false;
	await_end(before);
	return 0;
}

static const struct command commands[] COMMAND_TABLE = {
	{ "spin", "N", "N threads share a second of processor", 1, run_spin },
};

/* Bugs of tasks and interrupts: something happens between two steps that belong together. */
#include "kernel/task/sched.h"
#include "kernel/task/time.h"
#include "kernel/task/timer.h"
#include "kernel/task/wait.h"
#include "tests/debugger/bugs/bug.h"

#define MILLISECOND 1000000

/* wakeup: the event comes between the look at it and the sleep. */
static struct wait_queue slow_readers;
static bool reader_is_ready;
static uint32_t sleepers;

static CALLED void announce(void *unused)
{
	reader_is_ready = true;
	wait_wake(&slow_readers);
}

static CALLED void wait_for_it(void)
{
	if (!reader_is_ready) {
		msleep(20);
		sleepers++;
		bool enabled = interrupts_disable();

		wait_sleep_until(&slow_readers, time_ns() + 40 * MILLISECOND);
		interrupts_restore(enabled);
	}
}

static void bug_wakeup(void)
{
	kthread_create("announcer", announce, NULL);
	wait_for_it();
	panic("nobody has woken the reader");
}

/* race: an interrupt counts between the reading and the writing of a counter. */
static volatile uint32_t race_total;
static volatile uint32_t race_added;
static struct timer adder;

static void add_from_interrupt(struct timer *timer)
{
	race_total += 1000;
	race_added += 1000;
}

static CALLED void add_slowly(void)
{
	uint32_t copy = race_total;

	while (!race_added)
		;
	race_total = copy + 1;
	race_added++;
}

static void bug_race(void)
{
	timer_start(&adder, time_ns() + 5 * MILLISECOND, add_from_interrupt);
	add_slowly();
	bug_work();
	if (race_total != race_added)
		panic("%u, not %u", race_total, race_added);
}

/* late: a timer was not stopped before its data was given to another one. */
static struct timer alarm;
static uint32_t late_letters;
static volatile bool mailbox_is_closed;

static CALLED void on_alarm(struct timer *timer)
{
	late_letters++;
}

static CALLED void close_mailbox(void)
{
	mailbox_is_closed = true;
	late_letters = 0;
}

static void bug_late(void)
{
	timer_start(&alarm, time_ns() + 20 * MILLISECOND, on_alarm);
	close_mailbox();
	msleep(60);
	if (late_letters)
		panic("a letter in a closed mailbox");
}

/* order: it is made public before it is complete. */
static struct {
	bool is_public;
	uint32_t size;
} volatile new_volume;

static CALLED void publish(void)
{
	new_volume.is_public = true;
}

static void bug_order(void)
{
	publish();
	bug_work();
	new_volume.size = 512;
	panic("somebody has seen size 0");
}

/* pair: a task goes on with a value that another task has changed while it slept. */
static uint32_t owner_of_line;

static CALLED void take_line(void *number)
{
	owner_of_line = (uintptr_t)number;
}

static void bug_pair(void)
{
	take_line((void *)1);
	kthread_create("other", take_line, (void *)2);
	msleep(30);
	if (owner_of_line != 1)
		panic("the line is task %u's", owner_of_line);
}

/* hang: what the loop waits for has been taken back. */
static volatile bool job_is_done;

static CALLED void finish_job(void)
{
	job_is_done = true;
}

static CALLED void reset_job(void)
{
	job_is_done = false;
}

static CALLED void wait_for_job(void)
{
	while (!job_is_done)
		;
}

static void bug_hang(void)
{
	finish_job();
	reset_job();
	bug_work();
	interrupts_disable();
	wait_for_job();
}

const struct bug bugs_of_tasks[] = {
	{ "wakeup", bug_wakeup }, { "race", bug_race }, { "late", bug_late },
	{ "order", bug_order },	  { "pair", bug_pair }, { "hang", bug_hang },
	{ NULL, NULL },
};

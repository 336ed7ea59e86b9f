/* The beginning and the end of code that a test puts into a stopped kernel. */
#include "tests/lesson4/threads/thread_test.h"

#include "drivers/clock/pit.h"
#include "kernel/report/panic.h"

uint32_t questions[QUESTIONS];
uint32_t answers[ANSWERS];
uint32_t answer_count;
uint32_t clock_rate = 1; /* from the test */

__asm__(".section .begin, \"ax\"\n"
	".globl begin, finished\n"
	"begin:\n"
	"	andl $-16, %esp\n"
	"	call begin_test\n"
	"finished:\n"
	"	jmp finished\n"
	".text\n");

/* Has a tick after a tenth of the instructions, say: the clock goes faster, and to the kernel the
 * processor is slower. */
static void set_clock(uint32_t rate)
{
	bool enabled = interrupts_disable();

	if (rate > 1) {
		time_initialize(time_tsc_khz() / rate);
		pit_initialize(rate * TICKS_PER_SECOND);
	}
	interrupts_restore(enabled);
}

void __attribute__((regparm(1))) begin_test(void (*function)(void))
{
	set_clock(clock_rate);
	function();
}

void answer(uint32_t word)
{
	bool enabled = interrupts_disable();

	if (answer_count < ANSWERS)
		answers[answer_count++] = word;
	interrupts_restore(enabled);
}

struct task *begin_thread(void (*function)(void *argument), uintptr_t argument)
{
	struct task *task = kthread_create("test", function, (void *)argument);

	if (!task)
		panic("no memory for a thread of the test");
	return task;
}

void await_threads(uint32_t count)
{
	while (task_count > count)
		yield();
}

void busy(uint32_t stamps)
{
	uint64_t start = time_stamp();

	while (time_stamp() - start < stamps)
		;
}

void busy_ticks(uint32_t ticks)
{
	uint32_t start = pit_ticks();

	while (pit_ticks() - start < ticks)
		;
}

void sleep_ticks(uint32_t ticks)
{
	static struct wait_queue nobody;
	uint64_t deadline = time_ns() + ticks * TICK_NS;
	bool enabled = interrupts_disable();

	while (deadline > time_ns())
		wait_sleep_until(&nobody, deadline);
	interrupts_restore(enabled);
}

static void spin_for_ever(void *argument)
{
	(void)argument;
	for (;;)
		__asm__ volatile("");
}

struct task *begin_spinner(int nice)
{
	bool enabled = interrupts_disable();
	struct task *task = begin_thread(spin_for_ever, 0);

	if (nice != task->schedule.nice) /* else it has the place where it began */
		sched_set_nice(task, nice);
	interrupts_restore(enabled);
	return task;
}

void answer_total(const struct task *task)
{
	answer((uint32_t)task->schedule.total);
	answer((uint32_t)(task->schedule.total >> 32));
}

void begin_mlfq(void)
{
	preempt_disable();
	current->schedule.nice = 19;
	sched_use("mlfq");
}

struct task *begin_nice(void (*function)(void *argument), uintptr_t argument, int nice)
{
	preempt_disable();
	bool enabled = interrupts_disable();
	struct task *task = begin_thread(function, argument);

	list_remove(&task->schedule.in_queue);
	task->schedule.nice = nice;
	sched_class->join(task);
	sched_class->enqueue(task, SCHED_NEW);
	interrupts_restore(enabled);
	preempt_enable();
	return task;
}

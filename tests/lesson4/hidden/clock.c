/* Exercise 4.2: what the clock takes away, and from whom. */
#include "kernel/task/lock.h"
#include "kernel/task/timer.h"
#include "kernel/cpu/trap.h"
#include "tests/lesson4/threads/thread_test.h"

#define SPINNERS    8
#define BREAKPOINT  3
#define USER_CODE   0x1b
#define KERNEL_CODE 0x08

void share(void);
void yields_early(void);
void alone_then_not(void);
void works_for_a_program(void);
void interrupts_off(void);
void ticks(void);
void before_user(void);
void many_signals(void);
void woken_by_the_tick(void);
void woken_last(void);
void mixers(void);

static volatile bool going;
static volatile uint32_t counts[SPINNERS];

static void spin(void *argument)
{
	while (going)
		counts[(uintptr_t)argument]++;
}

/* questions: threads, ticks, quantum. answers: their pids, the number of changes when all are
 * there and at the end. */
void share(void)
{
	uint32_t before = task_count;

	going = true;
	sched_quantum = questions[2];
	for (uint32_t i = 0; i < questions[0]; i++)
		answer(begin_thread(spin, i)->pid);
	answer(sched_trace.total);
	sleep_ticks(questions[1]);
	answer(sched_trace.total);
	going = false;
	await_threads(before);
}

static void spin_and_yield(void *argument)
{
	busy((uintptr_t)argument);
	if (questions[2])
		sleep_ticks(1);
	else
		yield();
	spin((void *)0);
}

/* questions: quantum, stamps after which the first thread yields for once, or (1) sleeps. answers:
 * pids. */
void yields_early(void)
{
	uint32_t before = task_count;

	going = true;
	sched_quantum = questions[0];
	answer(begin_thread(spin_and_yield, questions[1])->pid);
	answer(begin_thread(spin, 1)->pid);
	sleep_ticks(6 * questions[0]);
	going = false;
	await_threads(before);
}

static uint64_t began, ran;

static void note_first_run(void *argument)
{
	(void)argument;
	ran = time_stamp();
}

/* questions: quantum, ticks for which the first one is alone. */
void alone_then_not(void)
{
	uint32_t before = task_count;

	going = true;
	sched_quantum = questions[0];
	begin_thread(spin, 0);
	sleep_ticks(questions[1]);
	began = time_stamp();
	begin_thread(note_first_run, 0);
	sleep_ticks(4 * questions[0]);
	answer(ran != 0);
	answer(ran - began);
	going = false;
	await_threads(before);
}

static void say(void *argument)
{
	answer((uintptr_t)argument);
}

static void serve(void *argument)
{
	preempt_disable();
	current->space = (struct space *)1;
	preempt_enable();
	begin_thread(say, 2);
	busy_ticks((uintptr_t)argument);
	answer(1);
	current->space = NULL;
	busy_ticks((uintptr_t)argument);
	answer(3);
}

void works_for_a_program(void)
{
	uint32_t before = task_count;

	begin_thread(serve, questions[0]);
	while (task_count > before)
		sleep_ticks(1);
}

static void ignore(struct trap_frame *frame)
{
	(void)frame;
}

static void trap_with_request(void *argument)
{
	uint32_t total;

	(void)argument;
	interrupts_disable();
	begin_thread(say, 7);
	total = sched_trace.total;
	trap_return_work |= WORK_SCHEDULE;
	__asm__ volatile("int3" : : : "memory");
	answer(sched_trace.total - total);
	trap_return_work |= WORK_SCHEDULE;
	interrupts_enable();
	__asm__ volatile("int3" : : : "memory");
	answer(sched_trace.total - total > 0);
}

void interrupts_off(void)
{
	uint32_t before = task_count;

	quiet();
	trap_register(BREAKPOINT, ignore);
	begin_thread(trap_with_request, 0);
	await_threads(before);
}

static uint32_t expired;

static void expire(struct timer *timer)
{
	uint32_t flags;

	(void)timer;
	__asm__ volatile("pushfl; popl %0" : "=r"(flags));
	expired += flags & EFLAGS_INTERRUPTS ? 100 : 1;
}

static void deliver_nothing(struct trap_frame *frame)
{
	(void)frame;
	trap_return_work &= ~WORK_SIGNAL;
}

/* One tick, many traps, while a signal waits: then one from ring 3. */
void ticks(void)
{
	static struct timer timer;
	struct trap_frame frame = { .cs = USER_CODE };
	uint32_t user = current->user_ticks, system = current->system_ticks;

	quiet();
	trap_register(BREAKPOINT, ignore);
	timer_start(&timer, time_ns() - 1, expire);
	sched_tick();
	answer(expired);
	trap_return_work |= WORK_SIGNAL;
	for (unsigned i = 0; i < 10; i++)
		__asm__ volatile("int3" : : : "memory");
	answer(expired);
	answer(current->system_ticks - system);
	answer(current->user_ticks - user);
	answer(trap_return_work & WORK_SIGNAL);
	interrupts_disable();
	trap_return_work = WORK_SCHEDULE | WORK_SIGNAL;
	sched_tick();
	answer(trap_return_work);
	deliver_signals = deliver_nothing;
	sched_work(&frame);
	answer(current->system_ticks - system);
	answer(current->user_ticks - user);
}

static void nap(void *argument)
{
	msleep((uintptr_t)argument);
}

/* A sleeper is due at the tick that ends this thread's turn; nobody else is there. */
void woken_by_the_tick(void)
{
	struct trap_frame frame = { .cs = KERNEL_CODE };

	quiet();
	sched_quantum = 1;
	begin_thread(nap, 15);
	yield();
	for (uint64_t start = time_ns(); time_ns() - start < 2 * TICK_NS;)
		;
	interrupts_disable();
	preempt_disable();
	sched_tick();
	sched_work(&frame);
	answer((trap_return_work & WORK_SCHEDULE) != 0);
}

static struct semaphore gate;

static void wait_at_gate(void *argument)
{
	semaphore_down(&gate);
	answer((uintptr_t)argument);
}

void woken_last(void)
{
	uint32_t before = task_count;

	quiet();
	begin_thread(wait_at_gate, 9);
	yield();
	begin_thread(say, 1);
	begin_thread(say, 2);
	semaphore_up(&gate);
	await_threads(before);
}

static unsigned delivered;
static volatile bool is_over;

static void keep_yielding(void *argument)
{
	(void)argument;
	while (!is_over)
		yield();
}

static void deliver(struct trap_frame *frame)
{
	answer(frame->eip);
	trap_return_work &= ~WORK_SIGNAL;
	if (delivered++ == 0)
		trap_return_work |= WORK_SCHEDULE;
}

/* A signal's delivery asks for another task; then both wait at the same time. */
void before_user(void)
{
	struct trap_frame frame = { .cs = USER_CODE, .eip = questions[0] };
	uint32_t before = task_count;

	quiet();
	deliver_signals = deliver;
	begin_thread(say, 5);
	interrupts_disable();
	trap_return_work = WORK_SIGNAL;
	sched_work(&frame);
	answer(trap_return_work & (WORK_SIGNAL | WORK_SCHEDULE));
	begin_thread(say, 6);
	trap_return_work = WORK_SCHEDULE | WORK_SIGNAL;
	task_before_user(&frame);
	answer(trap_return_work & (WORK_SIGNAL | WORK_SCHEDULE));
	interrupts_enable();
	await_threads(before);
}

static void deliver_again(struct trap_frame *frame)
{
	trap_return_work &= ~WORK_SIGNAL;
	trap_return_work |= ++delivered < frame->eip ? WORK_SIGNAL : WORK_SCHEDULE;
}

/* questions: signals, each of which comes with the one before it, and with the last one a request
 * for a change. answers: how many are delivered on the way to the kernel, and to user mode; how
 * often this thread was pre-empted. */
void many_signals(void)
{
	struct trap_frame frame = { .cs = KERNEL_CODE, .eip = questions[0] };
	uint32_t before = task_count, preemptions = current->preemptions;
	uint32_t count = current->schedule.preempt_count;

	quiet();
	deliver_signals = deliver_again;
	begin_thread(keep_yielding, 0);
	interrupts_disable();
	frame.eflags = EFLAGS_INTERRUPTS;
	trap_return_work = WORK_SIGNAL;
	current->schedule.preempt_count = 0;
	sched_work(&frame);
	current->schedule.preempt_count = count + 1; /* quiet */
	answer(delivered);
	frame.cs = USER_CODE;
	trap_return_work = WORK_SIGNAL;
	sched_work(&frame);
	answer(delivered);
	answer(current->preemptions - preemptions);
	is_over = true;
	interrupts_enable();
	await_threads(before);
}

/* ---- threads that use every register and flag ---- */

extern void mix(const uint32_t *values);

__asm__("	.globl mix, mix_loop, mix_end\n"
	"mix:\n"
	"	pushl %ebp\n"
	"	pushl %ebx\n"
	"	pushl %esi\n"
	"	pushl %edi\n"
	"	movl 20(%esp), %edi\n"
	"	movl (%edi), %eax\n"
	"	movl 4(%edi), %ebx\n"
	"	movl 8(%edi), %edx\n"
	"	movl 12(%edi), %esi\n"
	"	movl 16(%edi), %ebp\n"
	"	movl 20(%edi), %ecx\n"
	"	movl 24(%edi), %edi\n"
	"	addl $0, %eax\n"
	"mix_loop:\n"
	"	adcl %ebx, %eax\n"
	"	rcll $3, %ebx\n"
	"	sbbl %eax, %edx\n"
	"	pushl %edx\n"
	"	adcl %edx, %esi\n"
	"	rcrl $5, %edi\n"
	"	popl %edx\n"
	"	adcl %edi, %ebp\n"
	"	leal -1(%ecx), %ecx\n"
	"	jecxz mix_end\n"
	"	jmp mix_loop\n"
	"mix_end:\n"
	"	popl %edi\n"
	"	popl %esi\n"
	"	popl %ebx\n"
	"	popl %ebp\n"
	"	ret\n");

static void mix_thread(void *argument)
{
	mix(&questions[8 * (uintptr_t)argument]);
}

/* questions: for each thread seven registers; an eighth word that is not 0 if it is there. */
void mixers(void)
{
	uint32_t before = task_count;

	quiet();
	sched_quantum = 1;
	for (uint32_t i = 0; i < SPINNERS; i++)
		if (questions[8 * i + 7])
			begin_thread(mix_thread, i);
	await_threads(before);
}

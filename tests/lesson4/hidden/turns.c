/* Exercise 4.1: the switch itself, first steps, ends, and what schedule does besides. */
#include "kernel/cpu/trap.h"
#include "kernel/task/switch.h"
#include "mm/kernel_stack.h"
#include "mm/page_alloc.h"
#include "tests/lesson4/threads/thread_test.h"

void switch_registers(void);
void first_steps(void);
void many_lives(void);
void new_after_end(void);
void beside_the_idle_task(void);
void accounts(void);
void no_gap(void);
void who_is_pre_empted(void);
void flags(void);
void alone(void);
void clears_the_request(void);
void no_memory(void);
void for_ever(void);
void create_twice(void);

/* ---- the switch itself: tasks that are nothing but a stack ---- */

extern void there(void);
extern void go(struct task *from, struct task *to, const uint32_t *values, uint32_t *found);

/* go loads EBX, ESI, EDI, EBP with values, switches, and stores what it finds in them, and ESP
 * before and after. there stores what it finds, and comes back with other values. */
__asm__("go:\n"
	"	pushl %ebp\n"
	"	pushl %ebx\n"
	"	pushl %esi\n"
	"	pushl %edi\n"
	"	movl 32(%esp), %eax\n"
	"	movl %esp, 16(%eax)\n"
	"	movl 28(%esp), %eax\n"
	"	movl (%eax), %ebx\n"
	"	movl 4(%eax), %esi\n"
	"	movl 8(%eax), %edi\n"
	"	movl 12(%eax), %ebp\n"
	"	movl 20(%esp), %ecx\n"
	"	movl 24(%esp), %edx\n"
	"	pushl %edx\n"
	"	pushl %ecx\n"
	"	call switch_to\n"
	"	addl $8, %esp\n"
	"	movl 32(%esp), %eax\n"
	"	movl %ebx, (%eax)\n"
	"	movl %esi, 4(%eax)\n"
	"	movl %edi, 8(%eax)\n"
	"	movl %ebp, 12(%eax)\n"
	"	movl %esp, 20(%eax)\n"
	"	popl %edi\n"
	"	popl %esi\n"
	"	popl %ebx\n"
	"	popl %ebp\n"
	"	ret\n"
	"there:\n"
	"	movl %ebx, found_there\n"
	"	movl %esi, found_there + 4\n"
	"	movl %edi, found_there + 8\n"
	"	movl %ebp, found_there + 12\n"
	"	movl %esp, found_there + 16\n"
	"	notl %ebx\n"
	"	notl %esi\n"
	"	notl %edi\n"
	"	notl %ebp\n"
	"	pushl $here_task\n"
	"	pushl $there_task\n"
	"	call switch_to\n");

uint32_t found_there[5];
struct task here_task, there_task;
static uint32_t there_stack[256];

/* questions: EBX, ESI, EDI, EBP here; the same there. */
void switch_registers(void)
{
	struct switch_frame *frame = (struct switch_frame *)&there_stack[200] - 1;
	uint32_t found[6];

	quiet();
	interrupts_disable();
	frame->ebx = questions[4];
	frame->esi = questions[5];
	frame->edi = questions[6];
	frame->ebp = questions[7];
	frame->resume = there;
	there_task.esp = (uintptr_t)frame;
	go(&here_task, &there_task, questions, found);
	for (unsigned i = 0; i < 4; i++)
		answer(found[i]);
	answer(found[5] - found[4]);
	for (unsigned i = 0; i < 4; i++)
		answer(found_there[i]);
	answer(found_there[4] - (uintptr_t)(frame + 1));
}

/* ---- the first steps of a thread ---- */

extern void newborn(void *argument);
uint32_t born[4]; /* ESP, EBP, EFLAGS, argument */

__asm__("newborn:\n"
	"	pushf\n"
	"	popl born + 8\n"
	"	movl %esp, born\n"
	"	movl %ebp, born + 4\n"
	"	movl 4(%esp), %eax\n"
	"	movl %eax, born + 12\n"
	"	ret\n");

void first_steps(void)
{
	uint32_t before = task_count;

	quiet();
	interrupts_disable();
	struct task *task = begin_thread(newborn, questions[0]);
	uint32_t stack = (uintptr_t)task->kernel_stack;

	uint32_t frame = task->esp, name;

	__builtin_memcpy(&name, task->name, sizeof(name));
	answer(interrupts_disable());
	await_threads(before);
	interrupts_enable();
	for (unsigned i = 0; i < 4; i++)
		answer(born[i]);
	answer(stack);
	answer(stack + KERNEL_STACK_SIZE);
	answer(frame);
	answer(name);
}

/* ---- many lives ---- */

static void short_life(void *argument)
{
	if ((uintptr_t)argument % 3 == 0)
		yield();
	if ((uintptr_t)argument % 2)
		kthread_exit();
}

/* questions: how many, and how many at a time. */
void many_lives(void)
{
	quiet();
	for (uint32_t done = 0; done <= questions[0]; done += questions[1]) {
		uint32_t before = task_count;

		for (uint32_t i = 0; i < questions[1]; i++)
			begin_thread(short_life, done + i);
		await_threads(before);
		if (done == 0 || done + questions[1] > questions[0]) {
			answer(task_count);
			answer(page_free_count());
		}
	}
}

static void last_look(void *argument)
{
	(void)argument;
	answer(task_count);
}

static void end_after_a_child(void *argument)
{
	(void)argument;
	begin_thread(last_look, 0);
}

/* The task that runs behind one that has ended is new. */
void new_after_end(void)
{
	quiet();
	preempt_disable();
	answer(task_count);
	begin_thread(end_after_a_child, 0);
	begin_thread(last_look, 0);
	for (unsigned i = 0; i < 10; i++)
		yield();
	answer(task_count);
}

/* ---- what schedule does besides ---- */

static volatile bool going;

static void keep_yielding(void *argument)
{
	(void)argument;
	while (going)
		yield();
}

static void wait_ticks(uint32_t ticks)
{
	wait_sleep_until(&(struct wait_queue){ 0 }, time_ns() + ticks * TICK_NS);
}

static uint32_t count_of(void)
{
	return sched_trace.total;
}

/* answers: the numbers of changes before, behind the time with two threads, behind that alone. */
void beside_the_idle_task(void)
{
	uint32_t before = task_count;

	going = true;
	begin_thread(keep_yielding, 0);
	begin_thread(keep_yielding, 0);
	answer(count_of());
	interrupts_disable();
	wait_ticks(3);
	answer(count_of());
	going = false;
	interrupts_enable();
	await_threads(before);
	answer(count_of());
	interrupts_disable();
	wait_ticks(3);
	interrupts_enable();
	answer(count_of());
}

static void work(void *argument)
{
	for (unsigned i = 0; i < 4; i++) {
		busy((uintptr_t)argument);
		yield();
	}
	answer((uint32_t)current->schedule.total);
	answer(current->switches);
	answer(current->preemptions);
}

/* questions: stamps of work of three threads, four times. */
void accounts(void)
{
	uint32_t before = task_count;
	struct task *tasks[3];

	quiet();
	for (unsigned i = 0; i < 3; i++)
		tasks[i] = begin_thread(work, questions[i]);
	while (task_count > before)
		yield();
	(void)tasks;
}

/* Two threads and nobody else: how much time passes, and how much of it they pay for. */
void no_gap(void)
{
	uint32_t before = task_count;

	quiet();
	going = true;
	struct task_schedule *other = &begin_thread(keep_yielding, 0)->schedule,
			     *own = &current->schedule;

	yield();
	uint64_t begun = own->started, paid = own->total + other->total;

	for (unsigned i = 0; i < 20; i++)
		yield();
	begun = own->started - begun;
	paid = own->total + other->total - paid;
	answer((uint32_t)begun);
	answer((uint32_t)paid);
	going = false;
	await_threads(before);
}

static void give_away(void *argument)
{
	interrupts_disable();
	schedule((enum sched_reason)(uintptr_t)argument);
	interrupts_enable();
	answer(current->preemptions);
}

/* One is pre-empted, the one behind it yields. */
void who_is_pre_empted(void)
{
	uint32_t before = task_count;

	quiet();
	begin_thread(give_away, SCHED_PREEMPTED);
	begin_thread(give_away, SCHED_YIELDED);
	await_threads(before);
}

static void note_flags(void *argument)
{
	uint32_t flags;

	(void)argument;
	interrupts_disable();
	yield();
	__asm__ volatile("pushfl; popl %0" : "=r"(flags));
	answer(flags);
	interrupts_enable();
	yield();
	__asm__ volatile("pushfl; popl %0" : "=r"(flags));
	answer(flags);
}

void flags(void)
{
	uint32_t before = task_count;

	quiet();
	begin_thread(note_flags, 0);
	begin_thread(note_flags, 0);
	await_threads(before);
}

/* Nobody else is there. */
void alone(void)
{
	quiet();
	uint32_t total = sched_trace.total, switches = current->switches;
	uint32_t preemptions = current->preemptions;

	interrupts_disable();
	for (unsigned i = 0; i < 5; i++)
		schedule(i % 2 ? SCHED_PREEMPTED : SCHED_YIELDED);
	trap_return_work |= WORK_SCHEDULE;
	schedule(SCHED_PREEMPTED);
	answer(trap_return_work & WORK_SCHEDULE);
	answer(sched_trace.total - total);
	answer(current->switches - switches);
	answer(current->preemptions - preemptions);
	answer(current->life == TASK_READY);
}

static void look_at_work(void *argument)
{
	(void)argument;
	answer(trap_return_work & WORK_SCHEDULE);
}

void clears_the_request(void)
{
	uint32_t before = task_count;

	quiet();
	preempt_disable();
	begin_thread(look_at_work, 0);
	interrupts_disable();
	trap_return_work |= WORK_SCHEDULE | WORK_TICK;
	schedule(SCHED_YIELDED);
	answer(trap_return_work & (WORK_SCHEDULE | WORK_TICK));
	interrupts_enable();
	await_threads(before);
}

static void nothing(void *argument)
{
	(void)argument;
}

/* Threads until there is no room; then they end, and there is room again. */
void no_memory(void)
{
	uint32_t before = task_count, count = 0, preempt_count = current->schedule.preempt_count;

	quiet();
	while (kthread_create("many", nothing, NULL))
		count++;
	answer(count);
	answer(current->schedule.preempt_count - preempt_count);
	await_threads(before);
	answer(kthread_create("one", nothing, NULL) != NULL);
	await_threads(before);
}

static void for_ever_yielding(void *argument)
{
	(void)argument;
	for (;;)
		yield();
}

void for_ever(void)
{
	quiet();
	begin_thread(for_ever_yielding, 0);
	for_ever_yielding(NULL);
}

static void create_another(void *argument)
{
	(void)argument;
	begin_thread(nothing, 0);
}

/* The first one, which may be interrupted, makes the second one; turns end at each tick. */
void create_twice(void)
{
	uint32_t before = task_count;

	quiet();
	sched_quantum = 1;
	begin_thread(create_another, 0);
	await_threads(before);
}

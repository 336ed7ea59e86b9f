/* The beginning and the end of code that a test puts into a stopped kernel. */
#include "tests/lesson4/threads/thread_test.h"

#include "kernel/panic.h"

uint32_t questions[QUESTIONS];
uint32_t answers[ANSWERS];
uint32_t answer_count;

__asm__(".section .begin, \"ax\"\n"
	".globl begin, finished\n"
	"begin:\n"
	"	andl $-16, %esp\n"
	"	call *%eax\n"
	"finished:\n"
	"	jmp finished\n"
	".text\n");

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

/* Exercise 4.2: threads that use every register and flag. */
#include "tests/lesson4/threads/thread_test.h"

#define MIXERS 8

void mixers(void);

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
	for (uint32_t i = 0; i < MIXERS; i++)
		if (questions[8 * i + 7])
			begin_thread(mix_thread, i);
	await_threads(before);
}

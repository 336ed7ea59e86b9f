/* Exercise 4.5: what a child has of its parent. */
#include "tests/lesson4/programs/family.h"

#define CLONE_VM	     0x00000100u
#define CLONE_VFORK	     0x00004000u
#define CLONE_THREAD	     0x00010000u
#define CLONE_PARENT_SETTID  0x00100000u
#define CLONE_CHILD_CLEARTID 0x00200000u
#define CLONE_CHILD_SETTID   0x01000000u

extern uint32_t fork_with(const uint32_t *values, uint32_t *found);
__asm__("fork_with:\n"
	"	pushl %ebp\n"
	"	pushl %ebx\n"
	"	pushl %esi\n"
	"	pushl %edi\n"
	"	movl 24(%esp), %eax\n"
	"	movl %eax, found_at\n"
	"	movl %esp, old_stack\n"
	"	movl 20(%esp), %eax\n"
	"	movl (%eax), %ebx\n"
	"	movl 4(%eax), %ecx\n"
	"	movl 8(%eax), %edx\n"
	"	movl 12(%eax), %esi\n"
	"	movl 16(%eax), %edi\n"
	"	movl 20(%eax), %ebp\n"
	"	movl 24(%eax), %esp\n"
	"	stc\n"
	"	std\n"
	"	movl $2, %eax\n"
	"	int $0x80\n"
	"	movl %eax, result\n"
	"	pushf\n"
	"	popl %eax\n"
	"	cld\n"
	"	movl %eax, flags\n"
	"	movl found_at, %eax\n"
	"	movl %ebx, (%eax)\n"
	"	movl %ecx, 4(%eax)\n"
	"	movl %edx, 8(%eax)\n"
	"	movl %esi, 12(%eax)\n"
	"	movl %edi, 16(%eax)\n"
	"	movl %ebp, 20(%eax)\n"
	"	movl %esp, 24(%eax)\n"
	"	movl old_stack, %esp\n"
	"	movl result, %eax\n"
	"	popl %edi\n"
	"	popl %esi\n"
	"	popl %ebx\n"
	"	popl %ebp\n"
	"	ret\n");
uint32_t found_at, old_stack, result, flags;
uint32_t far_stack[64];

static uint32_t differing(const uint32_t *values, const uint32_t *found)
{
	uint32_t count = 0;

	for (unsigned i = 0; i < 7; i++)
		count += values[i] != found[i];
	return count + ((flags & 0x401) != 0x401);
}

static void registers(void)
{
	uint32_t found[7];

	numbers[6] = (uintptr_t)&far_stack[60];
	int32_t child = fork_with(numbers, found);

	if (child == 0) {
		say("child", differing(numbers, found));
		leave(0);
	}
	wait_for(child, 0, 0);
	say("parent", differing(numbers, found));
}

extern int clone_with_stack(void *stack, uint32_t flags);
__asm__("clone_with_stack:\n"
	"	pushl %ebx\n"
	"	movl 8(%esp), %ecx\n"
	"	movl 12(%esp), %ebx\n"
	"	movl $120, %eax\n"
	"	int $0x80\n"
	"	testl %eax, %eax\n"
	"	jnz 1f\n"
	"	movl %esp, %ebx\n"
	"	subl $far_stack, %ebx\n"
	"	movl $1, %eax\n"
	"	int $0x80\n"
	"1:	popl %ebx\n"
	"	ret\n");

static void stack(void)
{
	int32_t status = 0, child = clone_with_stack(&far_stack[numbers[0]], SIGCHLD);

	wait_for(child, &status, 0);
	say("stack", status >> 8);
}

static void set_unit(uint32_t number)
{
	__asm__ volatile("fninit; fildl %0; movd %0, %%xmm5" : : "m"(number));
}

static uint32_t unit_differs(uint32_t number)
{
	uint32_t from_stack, from_register;

	__asm__ volatile("fistpl %0; movd %%xmm5, %1" : "=m"(from_stack), "=m"(from_register));
	return (from_stack != number) + (from_register != number);
}

static void unit(void)
{
	uint32_t number = numbers[0] & 0x7fffffff;

	set_unit(1);
	call(CALL_SCHED_YIELD, 0, 0, 0);
	set_unit(number);
	int32_t child = fork(), status;

	if (child == 0) {
		rest();
		leave(unit_differs(number));
	}
	set_unit(number + 1);
	wait_for(child, &status, 0);
	say("child", status >> 8);
	say("parent", unit_differs(number + 1));
}

static void flags_of_clone(void)
{
	static int32_t parent_word, child_word;
	uint32_t wanted = SIGCHLD | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID;

	say("threads", call(CALL_CLONE, SIGCHLD | CLONE_THREAD, 0, 0));
	say("memory", call(CALL_CLONE, SIGCHLD | CLONE_VM, 0, 0));
	int32_t status, child = call5(CALL_CLONE, wanted, 0, (uintptr_t)&parent_word, 0,
				      (uintptr_t)&child_word);

	if (child == 0)
		leave(child_word == call(CALL_GETPID, 0, 0, 0));
	wait_for(child, &status, 0);
	say("child", status >> 8);
	say("parent", parent_word == child && child_word == 0);
	parent_word = 7;
	child = call5(CALL_CLONE, SIGCHLD, 0, (uintptr_t)&parent_word, 0, 0);
	if (child == 0)
		leave(0);
	wait_for(child, &status, 0);
	say("unasked", parent_word);
	child = call5(CALL_CLONE, SIGCHLD | CLONE_PARENT_SETTID, 0, 4, 0, 0);
	if (child == 0)
		leave(0);
	say("nowhere", child > 0 && wait_for(child, &status, 0) == child);
}

volatile uint32_t shared;
volatile int32_t word_of_child = 7;

extern int vfork_and_add(uint32_t flags, uint32_t number);
__asm__("vfork_and_add:\n"
	"	popl cold_home\n"
	"	pushl %ebx\n"
	"	pushl %esi\n"
	"	pushl %edi\n"
	"	movl 12(%esp), %ebx\n"
	"	xorl %ecx, %ecx\n"
	"	xorl %edx, %edx\n"
	"	movl $word_of_child, %edi\n"
	"	movl $120, %eax\n"
	"	int $0x80\n"
	"	testl %eax, %eax\n"
	"	jnz 1f\n"
	"	movl $158, %eax\n"
	"	int $0x80\n"
	"	movl 16(%esp), %eax\n"
	"	addl %eax, shared\n"
	"	movl $158, %eax\n"
	"	int $0x80\n"
	"	movl $0, %ebx\n"
	"	movl $1, %eax\n"
	"	int $0x80\n"
	"1:	popl %edi\n"
	"	popl %esi\n"
	"	popl %ebx\n"
	"	jmp *cold_home\n");
uint32_t cold_home;

/* The child works in its parent's memory, while the parent sleeps; another child ends meanwhile. */
static void borrowed(void)
{
	uint32_t wanted = CLONE_VM | CLONE_VFORK | SIGCHLD | CLONE_CHILD_CLEARTID;
	int32_t other = fork();

	if (other == 0)
		leave(0);
	int32_t child = vfork_and_add(wanted, numbers[0]);
	uint32_t seen = shared;

	say("seen", seen - numbers[0]);
	say("word", word_of_child);
	say("child", wait_for(child, 0, 0) == child);
	wait_for(other, 0, 0);
}

/* Many children at the same time, each with a result of its own. */
static void crowd(void)
{
	int32_t children[6], status;
	uint32_t wrong = 0;

	for (unsigned i = 0; i < 6; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			uint32_t sum = numbers[i];

			for (volatile uint32_t n = 0; n < 200000; n++)
				sum = sum * 5 + 1;
			leave(sum >> 8 & 0xff);
		}
	}
	for (unsigned i = 0; i < 6; i++) {
		uint32_t sum = numbers[i];

		for (uint32_t n = 0; n < 200000; n++)
			sum = sum * 5 + 1;
		wait_for(children[i], &status, 0);
		wrong += (uint32_t)status != (sum >> 8 & 0xff) << 8;
	}
	say("wrong", wrong);
}

int run(int count, char **words)
{
	static const struct trial trials[] = {
		{ "registers", registers },
		{ "stack", stack },
		{ "unit", unit },
		{ "clone", flags_of_clone },
		{ "borrowed", borrowed },
		{ "crowd", crowd },
		{ 0 },
	};

	return run_trial(trials, count, words);
}

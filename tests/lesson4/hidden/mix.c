/* Exercise 4.2: a calculation in every register and flag, for each number that it is given, at the
 * same time. */
#include "tests/lesson4/programs/program.h"

extern uint32_t mix(uint32_t seed, uint32_t rounds);

/* ESP calculates too: ring 3 needs no stack to be interrupted. DF and FS are odd for odd seeds. */
__asm__("mix:\n"
	"	pushl %ebp\n"
	"	pushl %ebx\n"
	"	pushl %esi\n"
	"	pushl %edi\n"
	"	movl %esp, kept_stack\n"
	"	movl 20(%esp), %eax\n"
	"	movl 24(%esp), %ecx\n"
	"	testl $1, %eax\n"
	"	jz 1f\n"
	"	movl $0, %edx\n"
	"	movw %dx, %fs\n"
	"	std\n"
	"1:	movl %eax, %ebx\n"
	"	movl %eax, %edx\n"
	"	movl %eax, %esi\n"
	"	movl %eax, %edi\n"
	"	movl %eax, %ebp\n"
	"	movl %eax, %esp\n"
	"2:	adcl %ebx, %eax\n"
	"	rcll $3, %ebx\n"
	"	sbbl %eax, %edx\n"
	"	adcl %edx, %esi\n"
	"	rcrl $5, %edi\n"
	"	adcl %edi, %ebp\n"
	"	leal (%esp,%ebp), %esp\n"
	"	cmpl %esi, %edi\n"
	"	jz 3f\n"
	"	cmc\n"
	"3:	leal -1(%ecx), %ecx\n"
	"	jecxz 4f\n"
	"	jmp 2b\n"
	"4:	adcl %esp, %eax\n"
	"	movl kept_stack, %esp\n"
	"	pushf\n"
	"	popl %ecx\n"
	"	cld\n"
	"	andl $0xcd5, %ecx\n"
	"	xorl %ecx, %eax\n"
	"	movw %fs, %cx\n"
	"	addl %ecx, %eax\n"
	"	xorl %ebx, %eax\n"
	"	addl %edx, %eax\n"
	"	xorl %esi, %eax\n"
	"	addl %edi, %eax\n"
	"	xorl %ebp, %eax\n"
	"	popl %edi\n"
	"	popl %esi\n"
	"	popl %ebx\n"
	"	popl %ebp\n"
	"	ret\n");

uint32_t kept_stack;

/* rounds, then seeds. */
int run(int count, char **words)
{
	uint32_t rounds = number_of(words[1]);

	for (int i = 2; i < count; i++)
		if (call(CALL_FORK, 0, 0, 0) == 0) {
			uint32_t result = mix(number_of(words[i]), rounds);

			say(words[i], result >> 1);
			return 0;
		}
	for (int i = 2; i < count; i++)
		call(CALL_WAITPID, -1, 0, 0);
	return 0;
}

/* The beginning of the tests' programs, and how they print. */
#include "tests/lesson4/programs/program.h"

__asm__(".globl _start\n"
	"_start:\n"
	"	movl %esp, %eax\n"
	"	andl $-16, %esp\n"
	"	subl $8, %esp\n"
	"	leal 4(%eax), %edx\n"
	"	pushl %edx\n"
	"	pushl (%eax)\n"
	"	call run\n"
	"	movl %eax, %ebx\n"
	"	movl $1, %eax\n"
	"	int $0x80\n");

void say(const char *word, int32_t number)
{
	char line[80], digits[12];
	uint32_t length = 0, count = 0, rest = number < 0 ? -(uint32_t)number : (uint32_t)number;

	while (*word && length < 60)
		line[length++] = *word++;
	line[length++] = ' ';
	if (number < 0)
		line[length++] = '-';
	do
		digits[count++] = '0' + rest % 10;
	while (rest /= 10);
	while (count)
		line[length++] = digits[--count];
	line[length++] = '\n';
	call(CALL_WRITE, 1, (uintptr_t)line, length);
}

uint32_t number_of(const char *text)
{
	uint32_t number = 0;

	while (*text >= '0' && *text <= '9')
		number = 10 * number + (*text++ - '0');
	return number;
}

/* The start of a program in C, and its end. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "user/libc/syscall.h"

void libc_start(long *stack) __attribute__((noreturn));
int main(int count, char **arguments, char **environment);

int errno;
char **environ;

/* Pairs of tag and value; a tag 0 ends them. */
static const unsigned long *auxiliary;

void libc_start(long *stack)
{
	char **arguments = (char **)(stack + 1);

	environ = arguments + *stack + 1;
	char **end = environ;

	while (*end)
		end++;
	auxiliary = (const unsigned long *)(end + 1);
	exit(main(*stack, arguments, environ));
}

unsigned long getauxval(unsigned long tag)
{
	for (const unsigned long *pair = auxiliary; pair[0]; pair += 2)
		if (pair[0] == tag)
			return pair[1];
	return 0;
}

void exit(int status)
{
	fflush(NULL);
	_exit(status);
}

void _exit(int status)
{
	for (;;)
		_syscall1(SYS_exit_group, status);
}

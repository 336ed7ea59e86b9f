/* echo [-n] [WORD ...]: prints its arguments. */
#include <stdio.h>
#include <string.h>

int main(int count, char **arguments)
{
	int first = count > 1 && strcmp(arguments[1], "-n") == 0 ? 2 : 1;

	for (int i = first; i < count; i++)
		printf("%s%s", i > first ? " " : "", arguments[i]);
	if (first == 1)
		putchar('\n');
	return fflush(stdout) < 0;
}

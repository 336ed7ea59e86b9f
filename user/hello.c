/* hello: the first program. */
#include <stdio.h>

int main(int count, char **arguments)
{
	printf("Hello from ring 3!\n");
	for (int i = 1; i < count; i++)
		printf("argument %d: %s\n", i, arguments[i]);
	return 0;
}

/* pingpong [COUNT]: a byte goes to another process and back, through two pipes. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/measure.h"

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void answer(int input, int output)
{
	char byte;

	while (read(input, &byte, 1) == 1)
		if (write(output, &byte, 1) != 1)
			break;
	_exit(0);
}

static void ask(int output, int input)
{
	char byte = 0;

	if (write(output, &byte, 1) != 1 || read(input, &byte, 1) != 1)
		fail("pingpong: the other side is gone");
}

int main(int count, char **arguments)
{
	unsigned rounds = count > 1 ? strtoul(arguments[1], NULL, 10) : 1000;
	int there[2], back[2];

	if (rounds == 0 || pipe(there) < 0 || pipe(back) < 0)
		fail("pingpong: COUNT or a pipe");
	pid_t process = fork();

	if (process < 0)
		fail("pingpong: fork");
	if (process == 0) {
		close(there[1]);
		close(back[0]);
		answer(there[0], back[1]);
	}
	ask(there[1], back[0]); /* once, to have all that is needed in its place */
	uint64_t start = counter_read();

	for (unsigned i = 0; i < rounds; i++)
		ask(there[1], back[0]);
	counter_report("pipe round trip", counter_read() - start, rounds);
	close(there[1]);
	waitpid(process, NULL, 0);
	return 0;
}

/* forkbench [COUNT]: fork, exit and wait; and the same with an exec of this
 * program, which then does nothing. */
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/measure.h"

static const char *own_path;

static void run_child(int with_exec)
{
	if (with_exec)
		execv(own_path, (char *[]){ (char *)own_path, "0", NULL });
	_exit(with_exec);
}

static void once(int with_exec)
{
	int status;
	pid_t process = fork();

	if (process == 0)
		run_child(with_exec);
	if (process < 0 || waitpid(process, &status, 0) != process || status != 0) {
		fprintf(stderr, "forkbench: a child could not be made or failed\n");
		exit(1);
	}
}

static void measure(const char *what, int with_exec, unsigned count)
{
	once(with_exec);
	uint64_t start = counter_read();

	for (unsigned i = 0; i < count; i++)
		once(with_exec);
	counter_report(what, counter_read() - start, count);
}

int main(int count, char **arguments)
{
	unsigned times = count > 1 ? strtoul(arguments[1], NULL, 10) : 20;

	if (times == 0) /* what the child is told */
		return 0;
	own_path = (const char *)getauxval(AT_EXECFN);
	measure("fork + exit + wait", 0, times);
	measure("fork + exec + exit + wait", 1, times);
	return 0;
}

/* The command `bug NAME`. */
#include "kernel/cpu/machine.h"
#include "kernel/lib/string.h"
#include "kernel/report/monitor.h"
#include "tests/debugger/bugs/bug.h"

#define ROUNDS 200000

static volatile uint32_t sum;

void bug_work(void)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		sum += i;
}

static int run_bug(int count, char **words)
{
	const struct bug *const tables[] = { bugs_of_memory, bugs_of_tasks, bugs_of_hardware };

	for (unsigned i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		for (const struct bug *bug = tables[i]; bug->name; bug++) {
			if (strcmp(bug->name, words[1]) == 0)
				bug->run();
		}
	}
	return EXIT_FAILURE;
}

static const struct command commands[] COMMAND_TABLE = {
	{ "bug", "NAME", "run a planted bug", 1, run_bug },
};

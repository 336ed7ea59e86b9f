/* A bug of a program: a signal comes between two steps of `take` that belong together, and its
 * handler takes, too. Both get the same item. */
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALLED	__attribute__((noinline, noclone))
#define TICK_US 5000

struct item {
	struct item *next;
	int owner;
};

enum { HANDLER = 1, MAIN };

static struct item items[2] = { { &items[1], 0 }, { NULL, 0 } };
static struct item *volatile shelf = items;
static struct item *volatile taken_by_handler;
static volatile bool has_rung;

static CALLED struct item *take(int owner)
{
	struct item *first = shelf;

	while (owner == MAIN && !has_rung)
		;
	shelf = first->next;
	first->owner = owner;
	return first;
}

static CALLED void on_alarm(int signal)
{
	taken_by_handler = take(HANDLER);
	has_rung = true;
}

static CALLED void found_out(void)
{
	write(1, "an item has two owners\n", 23);
}

int main(void)
{
	long timer[4] = { 0, 0, 0, TICK_US };

	signal(SIGALRM, on_alarm);
	syscall(SYS_setitimer, 0, (long)timer, 0, 0, 0, 0);
	take(MAIN);
	if (taken_by_handler->owner != HANDLER)
		found_out();
	return 0;
}

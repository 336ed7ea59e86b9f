/* Exercise 4.5: processes that begin, end, and wait for each other, for search_calls.c: again and
 * again, with a tick at another place. The first one does nothing else but look at them. */
#include "tests/lesson4/programs/family.h"

#include "tests/lesson4/hidden/search_call.h"
#include "tests/lesson4/hidden/vfork.h"

#define NOHANG	      1
#define SIGALRM	      14
#define SET_SUBREAPER 36
#define LOOKS	      30

static int32_t ask(uint32_t what, uint32_t number)
{
	return call(SEARCH_CALL, what, number, 0);
}

static void yield(void)
{
	call(CALL_SCHED_YIELD, 0, 0, 0);
}

/* 1: it does not end. 2: another one does, or none is there. Else its status is `expected`, or 3.
 */
static uint32_t verdict_of(int32_t child, int32_t expected)
{
	int32_t status = 0, pid = 0;

	for (unsigned i = 0; i < LOOKS && pid == 0; i++) {
		yield();
		pid = wait_for(child, &status, NOHANG);
	}
	if (pid == 0)
		return 1;
	if (child == -1 ? pid < 0 : pid != child)
		return 2;
	return status == expected ? 0 : 3;
}

/* A child ends; its parent has waited for it, or not yet. */
static uint32_t life(void)
{
	int32_t status, parent = fork();

	if (parent == 0) {
		int32_t child = fork();

		if (child == 0)
			leave(7);
		int32_t pid = wait_for(-1, &status, 0);

		leave(pid == child && status == 7 << 8 ? 8 : 9);
	}
	return verdict_of(parent, 8 << 8);
}

static uint32_t borrowed(void)
{
	int32_t status, parent = fork();

	if (parent == 0) {
		int32_t child = vfork_and_leave();

		leave(wait_for(child, &status, NOHANG) == child && status == 3 << 8 ? 8 : 9);
	}
	return verdict_of(parent, 8 << 8);
}

/* A child that nobody waits for is the driver's in the end. */
static uint32_t orphan(void)
{
	int32_t parent = fork();

	if (parent == 0) {
		if (fork() == 0) {
			yield();
			leave(8);
		}
		leave(8);
	}
	uint32_t verdict = verdict_of(parent, 8 << 8);

	return verdict ? verdict : verdict_of(-1, 8 << 8);
}

/* SIGALRM ends a parent that waits for a child which does not end before it. */
static uint32_t alarm(void)
{
	int32_t parent = fork();

	if (parent == 0) {
		int32_t me = call(CALL_GETPID, 0, 0, 0);

		if (fork() == 0) {
			while (call(CALL_GETPPID, 0, 0, 0) == me)
				yield();
			leave(8);
		}
		ask(SEARCH_RING, 0);
		wait_for(-1, 0, 0);
		leave(9);
	}
	for (unsigned i = 0; i < 4; i++)
		yield();
	ask(SEARCH_TICK, 0);
	uint32_t verdict = verdict_of(parent, SIGALRM);

	return verdict ? verdict : verdict_of(-1, 8 << 8);
}

int run(int count, char **words)
{
	static const struct {
		const char *name;
		uint32_t (*run)(void);
	} scenarios[] = {
		{ "life", life },
		{ "borrowed", borrowed },
		{ "orphan", orphan },
		{ "alarm", alarm },
	};
	uint32_t verdict = 0, chosen = 0;

	while (count > 1 && chosen < 3 && !is_same(scenarios[chosen].name, words[1]))
		chosen++;
	call(CALL_PRCTL, SET_SUBREAPER, 1, 0);
	while (ask(SEARCH_NEXT, verdict))
		verdict = scenarios[chosen].run();
	return 0;
}

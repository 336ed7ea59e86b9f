/*
 * limits: the limit of the stack is what getrlimit says, and is kept. One line a promise, the same
 * on Linux.
 *
 *	limits deep KIB		uses so much stack
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define KIB 1024u
#define MIB (KIB * KIB)

static int number;
static char *self;

static void ok(int good, const char *what)
{
	printf("%s %d %s\n", good ? "ok" : "not ok", ++number, what);
	fflush(stdout);
}

static __attribute__((noinline)) unsigned use(unsigned kib, const volatile char *above)
{
	volatile char room[KIB];

	room[0] = above[0] + 1;
	return kib > 1 ? use(kib - 1, room) + room[0] : 1;
}

/* What becomes of a child that uses so much stack: 0, or its signal. A new program, if `exec`: the
 * memory below the stack of this one may be in use. */
static int uses(unsigned kib, int exec)
{
	char text[16], room = 0;
	int status;

	snprintf(text, sizeof(text), "%u", kib);
	if (fork() == 0) {
		if (exec)
			execl(self, self, "deep", text, NULL);
		else
			use(kib, &room);
		_exit(exec);
	}
	wait(&status);
	return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static rlim_t limit(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_STACK, &limit);
	return limit.rlim_cur;
}

static int set(rlim_t soft)
{
	struct rlimit limit;

	getrlimit(RLIMIT_STACK, &limit);
	limit.rlim_cur = soft;
	return setrlimit(RLIMIT_STACK, &limit) == 0;
}

int main(int count, char **words)
{
	char room = 0;

	self = words[0];
	if (count > 2)
		return use(atoi(words[2]), &room) == 0;
	ok(limit() == 8 * MIB, "a stack may have 8 MiB");
	ok(uses(7 * KIB, 0) == 0, "of which 7 can be used");
	ok(uses(9 * KIB, 1) == 11, "and 9 cannot");
	ok(set(256 * KIB) && limit() == 256 * KIB, "less is set, and told");
	ok(uses(128, 0) == 0 && uses(128, 1) == 0, "a child uses half of it");
	ok(uses(512, 0) == 11, "but not twice as much");
	ok(uses(512, 1) == 11, "nor does a new program");
	ok(set(32 * MIB) && limit() == 32 * MIB, "more is set, and told");
	ok(uses(24 * KIB, 1) == 0, "a new program uses most of it");
	ok(uses(40 * KIB, 1) == 11, "but not more");
	ok(set(RLIM_INFINITY) && limit() == RLIM_INFINITY, "no limit is set, and told");
	ok(uses(48 * KIB, 1) == 0, "a new program uses 48 MiB");
	printf("1..%d\n", number);
	return 0;
}

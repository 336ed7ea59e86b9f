/*
 * Exercise 6.6: programs that take more memory than there is. Numbers are pages. Each has the same
 * room, of which only what it touches is memory.
 */
#include "tests/lesson4/programs/family.h"

#define EXECVE 11
#define PAGE   4096
#define ROOM   65536 /* pages: 256 MiB, more than any machine of the tests has */

static volatile uint8_t room[ROOM][PAGE];

static void touch(uint32_t first, uint32_t pages)
{
	for (uint32_t page = first; page < first + pages && page < ROOM; page++)
		room[page][0] = 1;
}

static void eat(void)
{
	touch(0, numbers[0]);
	say("has", numbers[0]);
}

static int32_t ends[2]; /* of a pipe, into which nobody writes */

static void sleep_for_ever(void)
{
	uint8_t byte;

	call(CALL_READ, ends[0], (uintptr_t)&byte, 1);
	leave(9);
}

/* Says what became of a child: 1000 and a signal, or its exit code. */
static void say_end(const char *word, int32_t child)
{
	int32_t status = -1;

	wait_for(child, &status, 0);
	say(word, status & 0x7f ? 1000 + (status & 0x7f) : status >> 8);
}

static int32_t sleeper(uint32_t pages)
{
	int32_t child = fork();

	if (child == 0) {
		touch(0, pages);
		sleep_for_ever();
	}
	call(CALL_SCHED_YIELD, 0, 0, 0);
	rest();
	return child;
}

static int32_t eater(uint32_t pages, int32_t code)
{
	int32_t child = fork();

	if (child == 0) {
		touch(0, pages);
		leave(code);
	}
	return child;
}

/* A child takes all there is. */
static void all(void)
{
	say_end("all", eater(ROOM, 1));
	say("alive", 1);
}

static char **arguments;

static void hold(void)
{
	call(CALL_PIPE, (uintptr_t)ends, 0, 0);
	touch(0, numbers[0]);
	sleep_for_ever();
}

/* A sleeper that is another program, so that it has a name of its own. */
static int32_t holder(void)
{
	char *const words[] = { "holder", "hold", arguments[2], 0 };
	int32_t child = fork();

	if (child == 0) {
		call(EXECVE, (uintptr_t)"/bin/holder", (uintptr_t)words, 0);
		leave(8);
	}
	call(CALL_SCHED_YIELD, 0, 0, 0);
	rest();
	return child;
}

/* numbers: pages of one that sleeps, pages of another that takes more than is left. A third one is
 * older, has the same room, and touches nothing of it. */
static void largest(void)
{
	call(CALL_PIPE, (uintptr_t)ends, 0, 0);
	int32_t idle = sleeper(0), large = holder();
	int32_t small = eater(numbers[1], 5);

	say_end("small", small);
	call(CALL_KILL, idle, SIGKILL, 0);
	say_end("idle", idle);
	call(CALL_KILL, large, SIGKILL, 0);
	say_end("large", large);
	say("sleeper", large);
}

/* numbers: pages of one that sleeps, and of two that take more than is left. A zombie is there,
 * too.
 */
static void two(void)
{
	call(CALL_PIPE, (uintptr_t)ends, 0, 0);
	int32_t zombie = eater(numbers[0] / 2, 3);

	rest();
	int32_t large = sleeper(numbers[0]), one = eater(numbers[1], 5),
		other = eater(numbers[1], 6);

	say_end("one", one);
	say_end("other", other);
	say_end("zombie", zombie);
	call(CALL_KILL, large, SIGKILL, 0);
	say_end("large", large);
}

/* numbers: pages of the session's leader, and of its child, which takes more than is left, and has
 * begun without those of the leader. */
static void leader(void)
{
	uint8_t byte = 0;

	call(CALL_PIPE, (uintptr_t)ends, 0, 0);
	int32_t child = fork();

	if (child == 0) {
		call(CALL_READ, ends[0], (uintptr_t)&byte, 1);
		touch(0, numbers[1]);
		leave(5);
	}
	touch(0, numbers[0]);
	call(CALL_WRITE, ends[1], (uintptr_t)&byte, 1);
	say_end("child", child);
	say("leader", room[numbers[0] - 1][0]);
}

/* numbers: pages of a process, whose child uses its memory and takes all the rest. It is not the
 * leader of its session. */
static void borrowed(void)
{
	static volatile uint32_t before;
	int32_t process = fork();

	if (process) {
		say_end("process", process);
		return;
	}
	touch(0, numbers[0]);
	before = 77;
	int32_t child = call(CALL_VFORK, 0, 0, 0);

	if (child == 0) {
		touch(numbers[0], ROOM);
		leave(4);
	}
	say_end("child", child);
	say("parent", before);
	leave(0);
}

/* The machine's first program. numbers do not come from the command line, but from its file. The
 * child begins without the pages of its parent, which takes nearly all: more than eight times what
 * is left, because a page of a session's leader counts an eighth. */
static void first(void)
{
	uint8_t byte = 0;

	call(CALL_PIPE, (uintptr_t)ends, 0, 0);
	int32_t child = fork();

	if (child == 0) {
		call(CALL_READ, ends[0], (uintptr_t)&byte, 1);
		touch(0, ROOM);
		leave(1);
	}
	touch(0, numbers[0]);
	call(CALL_WRITE, ends[1], (uintptr_t)&byte, 1);
	say_end("child", child);
	say("init", room[numbers[0] - 1][0]);
}

int run(int count, char **words)
{
	static const struct trial trials[] = {
		{ "eat", eat }, { "all", all },		  { "largest", largest }, { "hold", hold },
		{ "two", two }, { "borrowed", borrowed }, { "leader", leader },	  { 0, 0 },
	};

	if (count < 2) {
		numbers[0] = 7050; /* of some 7500 that are free */
		first();
		return 0;
	}
	arguments = words;
	return run_trial(trials, count, words);
}

/* Exercise 4.5: what becomes of those whose parent ends, and what a parent is told. */
#include "tests/lesson4/programs/family.h"

#define NOHANG	      1
#define GOES_ON	      8
#define ALL	      0x40000000 /* whatever signal their end sends */
#define SET_SUBREAPER 36
#define SIGTERM	      15
#define IGNORE	      1u

#define CALL_SETPGID 57
#define CALL_SETSID  66

static void set_action(uint32_t signal, uint32_t handler, uint32_t flags)
{
	const uint32_t action[5] = { handler, flags, 0, 0, 0 };

	call5(CALL_SIGACTION, signal, (uintptr_t)action, 0, 8, 0);
}

static void rest_often(unsigned times)
{
	while (times-- > 0)
		rest();
}

static void rest_for_ever(void)
{
	for (;;)
		rest();
}

/* The child's child was made without a signal for its end. Who inherits it wants no zombies. */
static void silent_orphan(void)
{
	call(CALL_PRCTL, SET_SUBREAPER, 1, 0);
	set_action(SIGCHLD, IGNORE, 0);
	if (fork() == 0) {
		if (call(CALL_CLONE, 0, 0, 0) == 0)
			rest();
		leave(0);
	}
	say("none", wait_for(-1, 0, ALL));
}

/* The child begins a session, stops its own child, and ends: nobody there can continue that. */
static void stopped_orphan(void)
{
	int32_t status = 0;

	call(CALL_PRCTL, SET_SUBREAPER, 1, 0);
	int32_t child = fork();

	if (child == 0) {
		call(CALL_SETSID, 0, 0, 0);
		int32_t orphan = fork();

		if (orphan == 0)
			rest_for_ever();
		call(CALL_KILL, orphan, SIGSTOP, 0);
		rest();
		leave(0);
	}
	wait_for(child, 0, 0);
	rest_often(2);
	say("orphan", wait_for(-1, &status, NOHANG) > 0 ? status : -1);
}

/* The child's two children are one group, which the child alone could continue. It stops the first
 * one, and ends: the second one is no keeper of the first. */
static void stopped_group(void)
{
	int32_t status;

	call(CALL_PRCTL, SET_SUBREAPER, 1, 0);
	int32_t child = fork();

	if (child == 0) {
		int32_t members[2];

		call(CALL_SETSID, 0, 0, 0);
		for (unsigned i = 0; i < 2; i++) {
			members[i] = fork();
			if (members[i] == 0)
				rest_for_ever();
			call(CALL_SETPGID, members[i], members[0], 0);
		}
		call(CALL_KILL, members[0], SIGSTOP, 0);
		rest();
		leave(0);
	}
	wait_for(child, 0, 0);
	rest_often(3);
	for (unsigned i = 0; i < 2; i++) {
		status = -1;
		wait_for(-1, &status, NOHANG);
		say("member", status);
	}
}

/* A child stops its parent, which waits, and lets it go on; later the child ends. */
static void interrupted(void)
{
	int32_t parent = call(CALL_GETPID, 0, 0, 0), status, child = fork();

	if (child == 0) {
		rest();
		call(CALL_KILL, parent, SIGSTOP, 0);
		rest();
		call(CALL_KILL, parent, SIGCONT, 0);
		rest();
		leave(0);
	}
	int32_t result = wait_for(-1, &status, 0);

	say("waited", result == child ? 1 : result);
}

/* A child was stopped and continued, which nobody asked for; then it ends. */
static void news_of_the_dead(void)
{
	int32_t status = -1, child = fork();

	if (child == 0)
		for (;;)
			rest();
	call(CALL_KILL, child, SIGSTOP, 0);
	rest();
	call(CALL_KILL, child, SIGCONT, 0);
	rest();
	call(CALL_KILL, child, SIGKILL, 0);
	rest();
	wait_for(child, &status, GOES_ON);
	say("killed", status);
}

/* numbers: ticks that the child's child works for, in ring 3 and in the kernel. */
static void times_of_grandchildren(void)
{
	uint32_t times[4] = { 0 };

	if (fork() == 0) {
		if (fork() == 0) {
			while (times[0] < numbers[0]) {
				for (volatile uint32_t i = 0; i < 50000; i++)
					;
				call(CALL_TIMES, (uintptr_t)times, 0, 0);
			}
			while (times[1] < numbers[0])
				call(CALL_TIMES, (uintptr_t)times, 0, 0);
			leave(0);
		}
		wait_for(-1, 0, 0);
		leave(0);
	}
	wait_for(-1, 0, 0);
	call(CALL_TIMES, (uintptr_t)times, 0, 0);
	say("user", times[2] >= numbers[0]);
	say("system", times[3] >= numbers[0]);
}

extern int vfork_and_kill(uint32_t signal, int32_t parent);
__asm__("vfork_and_kill:\n"
	"	popl kill_home\n"
	"	movl $190, %eax\n"
	"	int $0x80\n"
	"	testl %eax, %eax\n"
	"	jnz 1f\n"
	"	movl 4(%esp), %ebx\n"
	"	movl (%esp), %ecx\n"
	"	movl $37, %eax\n"
	"	int $0x80\n"
	"	movl $158, %eax\n"
	"	int $0x80\n"
	"	pushl $1\n"
	"	pushl $kill_done\n"
	"	call say\n"
	"	movl $0, %ebx\n"
	"	movl $1, %eax\n"
	"	int $0x80\n"
	"1:	jmp *kill_home\n");
uint32_t kill_home;
const char kill_done[] = "done";

/* The child works in its parent's memory, and sends it a signal that ends it: but not before the
 * child has ended. The asm changes EBX in the child alone. */
static void vfork_with_signal(void)
{
	int32_t status = -1, parent = fork();

	if (parent == 0) {
		vfork_and_kill(SIGTERM, call(CALL_GETPID, 0, 0, 0));
		leave(0);
	}
	say("parent", wait_for(parent, &status, 0) == parent);
	say("ended by", status);
}

static volatile int32_t own_word = 7;

/* A child whose word is zeroed at its end. */
static void word(void)
{
	const uint32_t clear_word = 0x00200000;

	if (call5(CALL_CLONE, SIGCHLD | clear_word, 0, 0, 0, (uintptr_t)&own_word) == 0)
		leave(0);
	wait_for(-1, 0, 0);
	say("word", own_word);
}

int run(int count, char **words)
{
	static const struct trial trials[] = {
		{ "silent", silent_orphan },
		{ "stopped", stopped_orphan },
		{ "members", stopped_group },
		{ "interrupted", interrupted },
		{ "news", news_of_the_dead },
		{ "grandchildren", times_of_grandchildren },
		{ "vfork", vfork_with_signal },
		{ "word", word },
		{ 0 },
	};

	return run_trial(trials, count, words);
}

/* Exercise 4.5: who learns of the end of a child, and how many there can be. */
#include "tests/lesson4/hidden/vfork.h"
#include "tests/lesson4/programs/family.h"

#define SIGNAL_QUEUED 40

#define NOHANG	      1
#define UNTRACED      2
#define GOES_ON	      8
#define SET_SUBREAPER 36

#define CALL_ALARM   27
#define CALL_SETPGID 57

static void rules(void)
{
	int32_t status, live[2];

	say("none", wait_for(-1, 0, 0));
	say("first", wait_for(1, 0, 0));
	say("options", wait_for(-1, 0, 0x100));
	call(CALL_PIPE, (uintptr_t)live, 0, 0);
	int32_t children[4];

	for (unsigned i = 0; i < 4; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			char byte;

			call(CALL_CLOSE, live[1], 0, 0);
			if (i == 3)
				call(CALL_READ, live[0], (uintptr_t)&byte, 1);
			leave(numbers[i] & 0xff);
		}
	}
	say("group", wait_for(-children[0], 0, NOHANG));
	for (int i = 2; i >= 0; i--) {
		int32_t pid = wait_for(children[i], &status, 0);

		say("code", pid == children[i] ? status >> 8 : -1);
	}
	say("again", wait_for(children[0], 0, 0));
	say("busy", wait_for(-1, 0, NOHANG));
	say("busy", wait_for(0, 0, NOHANG));
	if (fork() == 0)
		leave(wait_for(children[3], 0, 0) == -10 ? 1 : 2);
	wait_for(-1, &status, 0);
	say("brother", status >> 8);
	call(CALL_CLOSE, live[1], 0, 0);
	say("last", wait_for(0, &status, 0) == children[3] ? status >> 8 : -1);
	say("none", wait_for(-1, 0, NOHANG));
}

static void groups(void)
{
	int32_t status, one = fork();

	if (one == 0) {
		rest();
		leave(1);
	}
	call(CALL_SETPGID, one, one, 0);
	int32_t two = fork();

	if (two == 0)
		leave(2);
	say("own", wait_for(0, &status, 0) == two ? status >> 8 : -1);
	say("other", wait_for(-one, &status, 0) == one ? status >> 8 : -1);
}

static void statuses(void)
{
	int32_t status, child = fork();

	if (child == 0)
		leave(numbers[0]);
	wait_for(child, &status, 0);
	say("code", status);
	child = fork();
	if (child == 0)
		for (;;)
			call(CALL_SCHED_YIELD, 0, 0, 0);
	say("runs", wait_for(child, &status, NOHANG));
	call(CALL_KILL, child, SIGSTOP, 0);
	rest();
	say("stopped", wait_for(child, &status, NOHANG));
	say("stopped", wait_for(child, &status, UNTRACED) == child ? status : -1);
	say("told", wait_for(child, &status, UNTRACED | NOHANG));
	call(CALL_KILL, child, SIGCONT, 0);
	rest();
	say("goes on", wait_for(child, &status, UNTRACED | NOHANG));
	say("goes on", wait_for(child, &status, GOES_ON) == child ? status : -1);
	call(CALL_KILL, child, SIGKILL, 0);
	say("killed", wait_for(child, &status, 0) == child ? status : -1);
}

static void unwanted(void)
{
	uint32_t ignore[5] = { 1, 0, 0, 0, 0 };

	call5(CALL_SIGACTION, SIGCHLD, (uintptr_t)ignore, 0, 8, 0);
	for (unsigned i = 0; i < 3; i++)
		if (fork() == 0)
			leave(i);
	say("none", wait_for(-1, 0, 0));
}

static void times_of_children(void)
{
	uint32_t times[4], status;
	int32_t child = fork();

	if (child == 0) {
		do
			call(CALL_TIMES, (uintptr_t)times, 0, 0);
		while (times[0] + times[1] < numbers[0]);
		leave(0);
	}
	do
		call(CALL_TIMES, (uintptr_t)times, 0, 0);
	while (wait_for(child, (int32_t *)&status, NOHANG) == 0);
	uint32_t before = times[2] + times[3];

	call(CALL_TIMES, (uintptr_t)times, 0, 0);
	say("before", before);
	say("after", times[2] + times[3] - numbers[0] < 3);
}

/* ---- orphans, zombies, and too many ---- */

/* A child with two children: one that ends before it, and one that lives on for a while. */
static void have_children(void)
{
	int32_t children[2];

	for (unsigned i = 0; i < 2; i++) {
		children[i] = fork();
		if (children[i] != 0)
			continue;
		for (unsigned times = 0; i == 1 && times < 5; times++)
			rest();
		if (i == 1)
			say("parent", call(CALL_GETPPID, 0, 0, 0));
		leave(0);
	}
	rest();
	leave(children[0] & 0xff);
}

static void orphans(void)
{
	int32_t alive[2];
	char byte;

	call(CALL_PIPE, (uintptr_t)alive, 0, 0);
	int32_t child = fork();

	if (child == 0)
		have_children();
	call(CALL_CLOSE, alive[1], 0, 0);
	int32_t status, pid = wait_for(child, &status, 0);

	say("child", pid == child);
	say("none", wait_for(-1, 0, 0));
	rest();
	say("zombie", call(CALL_KILL, status >> 8, 0, 0));
	say("end", call(CALL_READ, alive[0], (uintptr_t)&byte, 1));
}

/* The child's child ends, and leaves a zombie behind. That goes to the one above all, who has asked
 * for orphans, and who sleeps; the child in between lives on. */
static void heirs(void)
{
	call(CALL_PRCTL, SET_SUBREAPER, 1, 0);
	int32_t child = fork();

	if (child == 0) {
		if (fork() == 0) {
			if (fork() != 0)
				rest();
			leave(0);
		}
		for (unsigned times = 0; times < 5; times++)
			rest();
		leave(0);
	}
	int32_t heir = wait_for(-1, 0, 0);

	say("heir", heir > 0 && heir != child);
	say("early", wait_for(child, 0, NOHANG));
	say("child", wait_for(child, 0, 0) == child);
}

/* Children that nobody waits for, until there is no room. */
static void zombies(void)
{
	int error, count = 0, waited = 0, status;

	while ((error = vfork_and_leave()) > 0)
		count++;
	say("error", error);
	say("many", count > 200 && count < 256);
	while (wait_for(-1, &status, 0) > 0)
		waited += status == 3 << 8;
	say("missing", count - waited);
	say("room", vfork_and_leave() > 0 && wait_for(-1, 0, 0) > 0);
}

/* Children that live, until there is no memory; then once more. */
static void no_memory(void)
{
	int32_t counts[2], error = 0;

	for (unsigned round = 0; round < 2; round++) {
		int32_t gate[2], child;
		char byte;

		counts[round] = 0;
		call(CALL_PIPE, (uintptr_t)gate, 0, 0);
		while ((child = fork()) > 0)
			counts[round]++;
		if (child == 0) {
			call(CALL_CLOSE, gate[1], 0, 0);
			call(CALL_READ, gate[0], (uintptr_t)&byte, 1);
			leave(0);
		}
		error = child;
		call(CALL_CLOSE, gate[0], 0, 0);
		call(CALL_CLOSE, gate[1], 0, 0);
		while (wait_for(-1, 0, 0) > 0)
			;
	}
	say("error", error);
	say("some", counts[0] > 2);
	say("fewer", counts[0] - counts[1]);
}

/* Children that end while hundreds of queued signals wait for them: more, in all, than the system
 * keeps. Without the breadth there are no such calls, and nothing to lose. */
static void queued_signals(void)
{
	static uint32_t information[32] = { SIGNAL_QUEUED, 0, -1u };
	static const uint32_t blocked[2] = { 0, 1u << (SIGNAL_QUEUED - 33) };
	int32_t refused = 0;

	for (unsigned i = 0; i < 8; i++) {
		int32_t status = 0, child = fork();

		if (child == 0) {
			int32_t error = call5(175, 0, (uintptr_t)blocked, 0, sizeof(blocked), 0);
			int32_t self = call(CALL_GETPID, 0, 0, 0);

			for (unsigned n = 0; n < 200 && !error; n++)
				if (call(178, self, SIGNAL_QUEUED, (uintptr_t)information) != 0)
					leave(1);
			leave(0);
		}
		wait_for(child, &status, 0);
		refused += status != 0;
	}
	say("refused", refused);
}

/* A child that ends before its alarm rings; its place in memory is another one's by then. */
static void early_end(void)
{
	int32_t child = fork();

	if (child == 0) {
		call(CALL_ALARM, 1, 0, 0);
		leave(0);
	}
	wait_for(child, 0, 0);
	if (fork() == 0) {
		for (unsigned i = 0; i < 40; i++)
			rest();
		leave(0);
	}
	int32_t status = -1;

	wait_for(-1, &status, 0);
	say("next", status);
}

int run(int count, char **words)
{
	static const struct trial trials[] = {
		{ "rules", rules },	  { "groups", groups },		  { "statuses", statuses },
		{ "unwanted", unwanted }, { "times", times_of_children }, { "orphans", orphans },
		{ "heirs", heirs },	  { "zombies", zombies },	  { "full", no_memory },
		{ "alarm", early_end },	  { "queued", queued_signals },	  { 0 },
	};

	return run_trial(trials, count, words);
}

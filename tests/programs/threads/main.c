/*
 * Threads of glibc, as real programs use them: runs unchanged on Linux and on our kernel, and says
 * the same on both. threads PART [SEED]; without a PART all of them.
 */
#include "threads.h"

#include <sys/prctl.h>

unsigned seed = 1;
sem_t done;
char myself[4096]; /* the path of this program */
int key;

void say(const char *what, long value)
{
	printf("%s %ld\n", what, value);
	fflush(stdout);
}

unsigned next_random(unsigned *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 16;
}

/* Gives the processor away now and then, or sleeps for a while. */
void dawdle(unsigned *state)
{
	unsigned choice = next_random(state) % 16;

	if (choice < 4)
		sched_yield();
	if (choice == 15)
		usleep(next_random(state) % 300);
	for (volatile unsigned i = next_random(state) % 200; i > 0; i--)
		;
}

pthread_t start(void *(*function)(void *), void *argument)
{
	pthread_t thread;
	int error = pthread_create(&thread, NULL, function, argument);

	if (error)
		say("pthread_create", error);
	return thread;
}

void each(void *(*function)(void *))
{
	pthread_t threads[THREADS];

	for (intptr_t i = 0; i < THREADS; i++)
		threads[i] = start(function, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

void rest(long milliseconds)
{
	const struct timespec time = { milliseconds / 1000, milliseconds % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

/* The end of a child: its exit code, or 1000 and its signal. */
long end_of(pid_t child)
{
	int status = 0;

	if (waitpid(child, &status, 0) != child)
		return -errno;
	return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

static const struct {
	const char *name;
	void (*run)(void);
} parts[] = {
	{ "join", part_join },
	{ "detach", part_detach },
	{ "ids", part_ids },
	{ "mutex", part_mutex },
	{ "condition", part_condition },
	{ "barrier", part_barrier },
	{ "semaphore", part_semaphore },
	{ "readers", part_readers },
	{ "cancel", part_cancel },
	{ "signals", part_signals },
	{ "pending", part_pending },
	{ "end", part_end },
	{ "frames", part_frames },
	{ "borrow", part_borrow },
	{ "last", part_last },
	{ "stop", part_stop },
	{ "fork", part_fork },
	{ "close", part_close },
	{ "memory", part_memory },
	{ "processes", part_processes },
	{ "robust", part_robust },
	{ "change", part_change },
	{ "checking", part_checking },
	{ "systemv", part_systemv },
	{ "attach", part_attach },
	{ "posix", part_posix },
	{ "proc", part_proc },
	{ "timers", part_timers },
	{ "inherit", part_inherit },
	{ "circle", part_circle },
	{ "pipes", part_pipes },
	{ "sockets", part_sockets },
	{ "terminals", part_terminals },
	{ "settings", part_settings },
	{ "wide", part_wide },
	{ "answers", part_answers },
	{ "random", part_random },
	{ "events", part_events },
	{ "watches", part_watches },
	{ "system", part_system },
	{ "use", part_use },
	{ "datagrams", part_datagrams },
	{ "areas", part_areas },
	{ "written", part_written },
	{ "semaphores", part_semaphores },
	{ "credentials", part_credentials },
	{ "messages", part_messages },
	{ "clones", part_clones },
	{ "sends", part_sends },
	{ "jobs", part_jobs },
	{ "large", part_large },
	{ "refusals", part_refusals },
	{ "resets", part_resets },
};

int main(int argc, char **argv)
{
	const char *wanted = argc > 1 ? argv[1] : NULL;

	if (argc == 1 && argv[0][0] == '\0') {
		printf("no name; %s %s\n", getenv("A") ?: "-", getenv("B") ?: "-");
		return 8;
	}
	if (wanted && strcmp(wanted, "-executed") == 0)
		return 9;
	if (wanted && strcmp(wanted, "-tasks") == 0)
		return limit_tasks();
	if (wanted && strcmp(wanted, "-rights") == 0)
		return prctl(PR_GET_KEEPCAPS) + 2 * prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
	if (readlink("/proc/self/exe", myself, sizeof(myself) - 1) < 0)
		return 1;
	key = (1 << 24) + 2 * getpid();
	if (argc > 2)
		seed = atoi(argv[2]);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (wanted && strcmp(wanted, parts[i].name) != 0)
			continue;
		printf("part %s\n", parts[i].name);
		fflush(stdout);
		parts[i].run();
	}
	return 0;
}

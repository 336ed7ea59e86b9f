/*
 * shares [CLASS...]: how the processor is shared, with each of the scheduler's classes in turn
 * (/proc/sched). Where there is no such file, as on Linux, CLASS is only a name to print.
 *
 * COMPETITORS processes compute for WINDOW_MS, all at once. First all are equal, and this one
 * sleeps and wakes up again and again beside them; then each is nicer than the one before.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COMPETITORS   4
#define NICER	      5 /* each than the one before */
#define WINDOW_MS     4000
#define START_MS      500 /* until all are there */
#define NAP_MS	      37  /* no multiple of a tick, nor of a quantum */
#define ROUND	      500 /* steps between two looks at the clock */
#define US_PER_MS     1000ull
#define US_PER_SECOND 1000000ull

struct window {
	uint64_t start, end; /* microseconds */
};

static void fail(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

static uint64_t now_us(void)
{
	struct timespec now;

	if (clock_gettime(CLOCK_MONOTONIC, &now) < 0)
		fail("shares: clock_gettime");
	return now.tv_sec * US_PER_SECOND + now.tv_nsec / 1000;
}

static void sleep_us(uint64_t us)
{
	struct timespec length = { us / US_PER_SECOND, us % US_PER_SECOND * 1000 };

	nanosleep(&length, NULL);
}

static void sleep_until(uint64_t time)
{
	uint64_t now = now_us();

	if (now < time)
		sleep_us(time - now);
}

static void choose(const char *class)
{
	int file = open("/proc/sched", O_WRONLY);

	if (file < 0)
		return;
	if (write(file, class, strlen(class)) < 0)
		fail(class);
	close(file);
}

/* Computes until the end, and says how far it came. */
static void compete(const struct window *window, int niceness, int output)
{
	unsigned rounds = 0;

	if (setpriority(PRIO_PROCESS, 0, niceness) < 0)
		fail("shares: setpriority");
	sleep_until(window->start);
	while (now_us() < window->end) {
		for (volatile unsigned i = 0; i < ROUND; i++)
			;
		rounds++;
	}
	_exit(write(output, &rounds, sizeof(rounds)) != sizeof(rounds));
}

/* Starts the competitors; each has a pipe for what it says. */
static struct window start(int step, int inputs[COMPETITORS])
{
	uint64_t now = now_us() + START_MS * US_PER_MS;
	struct window window = { now, now + WINDOW_MS * US_PER_MS };

	for (int i = 0; i < COMPETITORS; i++) {
		int ends[2];

		if (pipe(ends) < 0)
			fail("shares: pipe");
		pid_t process = fork();

		if (process < 0)
			fail("shares: fork");
		if (process == 0)
			compete(&window, i * step, ends[1]);
		close(ends[1]);
		inputs[i] = ends[0];
	}
	return window;
}

static void collect(const char *class, const char *what, const int inputs[COMPETITORS])
{
	printf("shares %s %s", class, what);
	for (int i = 0; i < COMPETITORS; i++) {
		unsigned rounds;

		if (read(inputs[i], &rounds, sizeof(rounds)) != sizeof(rounds))
			fail("shares: a competitor ended without a word");
		close(inputs[i]);
		printf(" %u", rounds);
	}
	printf("\n");
	for (int i = 0; i < COMPETITORS; i++)
		wait(NULL);
}

/* How late this process wakes up, in microseconds. */
static void nap(const char *class, const struct window *window)
{
	uint64_t total = 0, longest = 0;
	unsigned count = 0;

	sleep_until(window->start);
	for (uint64_t before = now_us(); before < window->end; before = now_us()) {
		sleep_us(NAP_MS * US_PER_MS);
		uint64_t delay = now_us() - before - NAP_MS * US_PER_MS;

		total += delay;
		longest = delay > longest ? delay : longest;
		count++;
	}
	printf("shares %s delay %u %u\n", class, (unsigned)(total / count), (unsigned)longest);
}

static void measure(const char *class)
{
	int inputs[COMPETITORS];
	struct window window;

	choose(class);
	window = start(0, inputs);
	nap(class, &window);
	collect(class, "equal", inputs);
	window = start(NICER, inputs);
	sleep_until(window.end);
	collect(class, "nice", inputs);
}

int main(int count, char **arguments)
{
	for (int i = 1; i < count; i++)
		measure(arguments[i]);
	printf("end\n");
	if (getpid() == 1)
		reboot(RB_POWER_OFF);
	return EXIT_SUCCESS;
}

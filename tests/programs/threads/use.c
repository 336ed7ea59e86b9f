/* What of the processor a program's threads have used, and who learns of it. */
#include "threads.h"

#include <sys/resource.h>
#include <sys/time.h>
#include <sys/times.h>

#define MUCH	100000000ll /* nanoseconds */
#define LITTLE	50000000ll
#define PATIENT 20000000000ll /* a backstop */

static volatile bool is_over;
static volatile sig_atomic_t rings;

static long long read_clock(clockid_t clock)
{
	struct timespec time = { 0, 0 };

	return clock_gettime(clock, &time) ? -1 : time.tv_sec * 1000000000ll + time.tv_nsec;
}

static void *use_much(void *unused)
{
	long long begin = read_clock(CLOCK_THREAD_CPUTIME_ID);

	while (read_clock(CLOCK_THREAD_CPUTIME_ID) < begin + MUCH)
		;
	return NULL;
}

static void *use_until_over(void *unused)
{
	while (!is_over)
		;
	return NULL;
}

/* Waits until a clock has run on, or the flag is set. */
static bool becomes(clockid_t clock, volatile sig_atomic_t *flag)
{
	long long begin = flag ? 0 : read_clock(clock), end = read_clock(CLOCK_MONOTONIC) + PATIENT;

	while (read_clock(CLOCK_MONOTONIC) < end) {
		if (flag ? *flag != 0 : read_clock(clock) > begin + LITTLE)
			return true;
		rest(10);
	}
	return false;
}

static long long used_by(int who)
{
	struct rusage usage = { 0 };

	if (getrusage(who, &usage) != 0)
		return -1;
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000ll +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000ll;
}

static clock_t ticks(void)
{
	struct tms times_now;

	times(&times_now);
	return times_now.tms_utime + times_now.tms_stime;
}

/* A thread works, and ends; the main thread only waits. */
static void of_one_that_has_ended(void)
{
	long long own = read_clock(CLOCK_THREAD_CPUTIME_ID);
	long long all = read_clock(CLOCK_PROCESS_CPUTIME_ID);
	long long own_usage = used_by(RUSAGE_THREAD), usage = used_by(RUSAGE_SELF);
	clock_t before = ticks();

	pthread_join(start(use_much, NULL), NULL);
	say("not its own", read_clock(CLOCK_THREAD_CPUTIME_ID) - own < LITTLE);
	say("the program's", read_clock(CLOCK_PROCESS_CPUTIME_ID) - all >= MUCH);
	say("RUSAGE_THREAD", used_by(RUSAGE_THREAD) - own_usage < LITTLE);
	say("RUSAGE_SELF", used_by(RUSAGE_SELF) - usage >= LITTLE);
	say("times", ticks() - before >= LITTLE * sysconf(_SC_CLK_TCK) / 1000000000);
}

static void ring(int signal)
{
	rings++;
}

/* A thread works, and can be watched. */
static void of_one_that_runs(void)
{
	const struct itimerval soon = { { 0, 0 }, { 0, 50000 } };
	clockid_t clock;

	is_over = false;
	pthread_t thread = start(use_until_over, NULL);

	say("its clock", pthread_getcpuclockid(thread, &clock));
	say("it runs", becomes(clock, NULL));
	say("the program's runs", becomes(CLOCK_PROCESS_CPUTIME_ID, NULL));
	say("by its pid", clock_getcpuclockid(getpid(), &clock));
	say("it runs", becomes(clock, NULL));
	signal(SIGVTALRM, ring);
	rings = 0;
	setitimer(ITIMER_VIRTUAL, &soon, NULL);
	say("rings for its work", becomes(0, &rings));
	is_over = true;
	pthread_join(thread, NULL);
}

static void clocks(void)
{
	long long begin = read_clock(CLOCK_THREAD_CPUTIME_ID);
	clockid_t clock;

	for (volatile int i = 0; i < 50000; i++)
		;
	say("runs between ticks", read_clock(CLOCK_THREAD_CPUTIME_ID) > begin);
	say("of the first", clock_getcpuclockid(1, &clock));
	say("of nobody", clock_getcpuclockid(0x3ffffff0, &clock));
	say("no such kind", clock_gettime(~getpid() * 8 + 3, &(struct timespec){ 0, 0 }));
}

static void *set_alarm(void *seconds)
{
	alarm((intptr_t)seconds);
	return NULL;
}

/* It is the program's: it stays when the thread has ended that has set it. */
static void alarms(void)
{
	signal(SIGALRM, ring);
	rings = 0;
	pthread_join(start(set_alarm, (void *)100), NULL);
	say("left", alarm(0) > 50);
	pthread_join(start(set_alarm, (void *)1), NULL);
	say("rings", becomes(0, &rings));
}

void part_use(void)
{
	of_one_that_has_ended();
	of_one_that_runs();
	clocks();
	alarms();
}

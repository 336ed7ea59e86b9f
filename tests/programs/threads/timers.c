/* Timers that send signals. */
#include "threads.h"

#include <sys/time.h>

#define VALUE  2010
#define PERIOD 20 /* milliseconds: two of our kernel's ticks */

static volatile sig_atomic_t times, value, overrun;
static volatile pid_t handled_by;

static void handle(int signal, siginfo_t *info, void *context)
{
	times++;
	value = info->si_value.sival_int;
	overrun = info->si_overrun;
	handled_by = syscall(SYS_gettid);
}

static struct itimerspec after(long first, long period)
{
	return (struct itimerspec){ { 0, period * 1000000 }, { 0, first * 1000000 } };
}

static long create(clockid_t clock, int notify, timer_t *timer)
{
	struct sigevent event = { .sigev_value.sival_int = VALUE,
				  .sigev_signo = SIGUSR1,
				  .sigev_notify = notify };

	return timer_create(clock, &event, timer) == 0 ? 0 : errno;
}

/* What comes while the signal is pending is counted. */
static void signals(timer_t timer, const sigset_t *set)
{
	struct itimerspec setting = after(PERIOD, PERIOD), left;

	say("set", timer_settime(timer, 0, &setting, NULL));
	rest(8 * PERIOD);
	say("blocked", times);
	pthread_sigmask(SIG_UNBLOCK, set, NULL);
	say("came", times > 0);
	say("after others", overrun >= 3);
	say("with its value", value);
	say("overrun", timer_getoverrun(timer) >= 3);
	say("left", timer_gettime(timer, &left) == 0 && left.it_value.tv_nsec > 0);
	say("interval", left.it_interval.tv_nsec);
	setting = after(0, 0);
	timer_settime(timer, 0, &setting, NULL);
	times = 0;
	rest(3 * PERIOD);
	say("stopped", times);
}

static void absolute(timer_t timer, clockid_t clock)
{
	struct itimerspec setting = after(0, 0);

	times = 0;
	clock_gettime(clock, &setting.it_value);
	setting.it_value.tv_sec += 100;
	timer_settime(timer, TIMER_ABSTIME, &setting, &setting);
	timer_gettime(timer, &setting);
	say("seconds left", (setting.it_value.tv_sec + 1) / 10);
	setting.it_value = (struct timespec){ 0, 1 };
	timer_settime(timer, TIMER_ABSTIME, &setting, NULL);
	rest(3 * PERIOD);
	say("a time that has passed comes at once", times);
}

/* Two whose time is the same, with one signal, which another sender may have sent before: a task
 * that waits for each of them would wait for ever if one were lost. */
static void at_once(int signal, int others)
{
	struct sigevent event = { .sigev_signo = signal, .sigev_notify = SIGEV_SIGNAL };
	struct itimerspec setting = after(0, 0);
	const struct timespec at_most = { 0, 1 };
	timer_t timers[2];
	sigset_t set, before;
	int sum = 0, count = 0;
	siginfo_t info;

	sigemptyset(&set);
	sigaddset(&set, signal);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	for (int i = 0; i < others; i++)
		sigqueue(getpid(), signal, (union sigval){ 100 });
	clock_gettime(CLOCK_MONOTONIC, &setting.it_value);
	for (int i = 0; i < 2; i++) {
		event.sigev_value.sival_int = i + 1;
		timer_create(CLOCK_MONOTONIC, &event, &timers[i]);
		timer_settime(timers[i], TIMER_ABSTIME, &setting, NULL);
	}
	rest(3 * PERIOD);
	for (; sigtimedwait(&set, &info, &at_most) == signal; count++)
		sum += info.si_value.sival_int +
		       (info.si_code == SI_TIMER ? 1000 * info.si_overrun : 0);
	say("signals", count);
	say("each one's value", sum);
	say("deleted", timer_delete(timers[0]) + timer_delete(timers[1]));
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void notice(union sigval what)
{
	value = what.sival_int;
	sem_post(&done);
}

/* glibc has a thread of its own that gets the signal, and makes one for each time. */
static void threads(void)
{
	struct sigevent event = { .sigev_value.sival_int = VALUE + 1,
				  .sigev_notify = SIGEV_THREAD,
				  .sigev_notify_function = notice };
	struct itimerspec setting = after(PERIOD, PERIOD);
	timer_t timer;

	sem_init(&done, 0, 0);
	say("thread", timer_create(CLOCK_MONOTONIC, &event, &timer));
	timer_settime(timer, 0, &setting, NULL);
	for (int i = 0; i < 3; i++)
		while (sem_wait(&done) != 0)
			;
	say("its value", value);
	say("delete", timer_delete(timer));
}

/* fork leaves them, and exec deletes them: the signal would end the program. */
static void others(timer_t timer)
{
	struct itimerspec setting = { { 0, 0 }, { 1, 0 } };
	timer_t own;
	pid_t child = fork();

	if (child == 0)
		_exit(timer_delete(timer) == 0 ? 0 : errno);
	say("not the child's", end_of(child));
	child = fork();
	if (child == 0) {
		signal(SIGUSR1, SIG_DFL);
		create(CLOCK_MONOTONIC, SIGEV_SIGNAL, &own);
		freopen("/dev/null", "w", stdout);
		timer_settime(own, 0, &setting, NULL);
		execl("/bin/sleep", "sleep", "2", NULL);
		execl("/usr/bin/sleep", "sleep", "2", NULL);
	}
	say("gone after exec", end_of(child));
}

static long error_of(long result)
{
	return result < 0 ? -errno : result;
}

/* Times that no clock is set to: nothing here changes it. */
static void wrong_times(void)
{
	const struct timespec no_time = { 1000000000, 1000000000 }, negative = { -1, 0 };
	const struct timeval no_second = { 1000000000, 1000001 };

	say("another clock", error_of(clock_settime(CLOCK_MONOTONIC, &no_time)));
	say("nanoseconds", error_of(clock_settime(CLOCK_REALTIME, &no_time)));
	say("negative", error_of(clock_settime(CLOCK_REALTIME, &negative)));
	say("nowhere", error_of(syscall(SYS_clock_settime, CLOCK_REALTIME, (void *)16)));
	say("microseconds", error_of(settimeofday(&no_second, NULL)));
	say("of day nowhere", error_of(syscall(SYS_settimeofday, (void *)16, NULL)));
	say("zone nowhere", error_of(syscall(SYS_settimeofday, NULL, (void *)16)));
	say("nowhere", error_of(syscall(SYS_stime, (void *)16)));
}

/* ---- setitimer ---- */

static long microseconds(struct timeval time)
{
	return time.tv_sec * 1000000 + time.tv_usec;
}

/* What is left, and the interval, to the microsecond; of processor time a tick more. */
static void intervals(void)
{
	const struct itimerval none = { 0 }, odd = { { 20, 3 }, { 40, 7 } };
	struct itimerval now, before;

	for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++) {
		say("set", error_of(setitimer(which, &odd, NULL)));
		say("get", error_of(getitimer(which, &now)));
		say("interval", microseconds(now.it_interval));
		say("left", (microseconds(now.it_value) + 9980000) / 10000000);
		say("off", error_of(setitimer(which, &none, &before)));
		say("old interval", microseconds(before.it_interval));
		say("not longer", microseconds(before.it_value) <= microseconds(now.it_value));
		say("no ticks", which || microseconds(before.it_value) % 1000 != 0 ||
				    microseconds(now.it_value) % 1000 != 0);
		getitimer(which, &now);
		say("none", microseconds(now.it_value) + microseconds(now.it_interval));
	}
	say("which", error_of(syscall(SYS_getitimer, 3, &now)));
	say("nowhere", error_of(syscall(SYS_getitimer, 0, 16)));
	say("which first", error_of(syscall(SYS_getitimer, -1, 16)));
}

void part_timers(void)
{
	struct sigaction action = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO };
	timer_t timer, day, none, before = NULL;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	sigaction(SIGUSR1, &action, NULL);
	times = 0;
	say("create", create(CLOCK_MONOTONIC, SIGEV_SIGNAL, &timer));
	say("of the day", create(CLOCK_REALTIME, SIGEV_SIGNAL, &day));
	say("silent", create(CLOCK_MONOTONIC, SIGEV_NONE, &none));
	say("no such clock", create(77, SIGEV_SIGNAL, &before));
	say("no such way", create(CLOCK_MONOTONIC, 77, &before));
	signals(timer, &set);
	say("handled by main", handled_by == getpid());
	absolute(timer, CLOCK_MONOTONIC);
	absolute(day, CLOCK_REALTIME);
	others(timer);
	at_once(SIGRTMIN, 0);
	at_once(SIGRTMIN, 3);
	at_once(SIGUSR2, 0);
	threads();
	say("delete", timer_delete(timer) + timer_delete(day) + timer_delete(none));
	say("twice", timer_delete(day) == 0 ? 0 : errno);
	wrong_times();
	intervals();
	say("bad pointer", syscall(SYS_timer_create, CLOCK_MONOTONIC, NULL, 16) == 0 ? 0 : errno);
}

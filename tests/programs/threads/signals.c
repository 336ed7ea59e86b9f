/* Signals to one thread, and to the program. */
#include "threads.h"

/* ---- signals ---- */

static volatile pid_t handled_by;

static void handle(int signal)
{
	handled_by = syscall(SYS_gettid);
	sem_post(&done);
}

static void *take_signals(void *argument)
{
	sigset_t set;
	int signal = 0;

	*(pid_t *)argument = syscall(SYS_gettid);
	sem_post(&done);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigwait(&set, &signal);
	say("sigwait", signal);
	return NULL;
}

/* Linux may say EINTR to a task that another one was faster than. */
static void *take_one(void *unused)
{
	const struct timespec patience = { 2, 0 };
	sigset_t set;
	int signal;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	do
		signal = sigtimedwait(&set, NULL, &patience);
	while (signal < 0 && errno == EINTR);
	return (void *)(long)(signal == SIGRTMIN);
}

/* Two that wait for one signal each, and two signals before either runs: each has one. */
static void one_for_each(void)
{
	const union sigval none = { 0 };
	pthread_t threads[2];
	sigset_t set, before;
	void *has_one;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	for (int i = 0; i < 2; i++)
		threads[i] = start(take_one, NULL);
	rest(20);
	sigqueue(getpid(), SIGRTMIN, none);
	sigqueue(getpid(), SIGRTMIN, none);
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], &has_one);
		say("each has one", (long)has_one);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Ends when it has sent what it was asked to: 0 is kill. */
static pid_t sender(int signal, int value)
{
	pid_t child = fork();

	if (child == 0) {
		if (value)
			sigqueue(getppid(), signal, (union sigval){ value });
		else
			kill(getppid(), signal);
		_exit(value);
	}
	waitid(P_PID, child, NULL, WEXITED | WNOWAIT);
	return child;
}

/* Of those that several processes send while one is pending, the first tells its cause. */
static void first_tells(void)
{
	const struct timespec now = { 0, 0 };
	sigset_t set, before;
	siginfo_t info;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	for (int first = 0; first < 2; first++) {
		pid_t one = sender(SIGUSR1, first ? 5 : 0), other = sender(SIGUSR1, first ? 0 : 6);

		for (int i = 0; i < 2; i++) {
			int signal = sigtimedwait(&set, &info, &now);

			say("the first's signal", signal);
			say("is its own", info.si_pid == one);
			say("code", info.si_code);
			say("value or status", info.si_int);
		}
		say("no more", sigtimedwait(&set, &info, &now));
		waitpid(one, NULL, 0);
		waitpid(other, NULL, 0);
	}
	pthread_kill(pthread_self(), SIGUSR1);
	pthread_kill(pthread_self(), SIGUSR1);
	sigtimedwait(&set, &info, &now);
	say("of a thread", info.si_code);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void part_signals(void)
{
	struct sigaction action = { .sa_handler = handle };
	sigset_t set, before;
	volatile pid_t tid = 0;
	pthread_t thread;

	sem_init(&done, 0, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	thread = start(take_signals, (void *)&tid);
	while (sem_wait(&done) != 0)
		;
	sigaction(SIGUSR1, &action, NULL);
	pthread_kill(thread, SIGUSR1);
	while (sem_wait(&done) != 0)
		;
	say("in the thread that was meant", handled_by == tid);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	kill(getpid(), SIGUSR1);
	while (sem_wait(&done) != 0)
		;
	say("in the thread that does not block it", handled_by == tid);
	kill(getpid(), SIGUSR2);
	pthread_join(thread, NULL);
	kill(getpid(), SIGUSR1);
	sigpending(&set);
	say("all block it", sigismember(&set, SIGUSR1));
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	say("in main", handled_by == getpid());
	one_for_each();
	first_tells();
}

static void *wait_for_it(void *unused)
{
	sigset_t set;
	int signal = 0;

	rest(20);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigwait(&set, &signal);
	say("found", signal);
	return NULL;
}

/* Sent while all block it, before anybody waits for it. */
void part_pending(void)
{
	sigset_t set, before;
	pthread_t thread;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	thread = start(wait_for_it, NULL);
	kill(getpid(), SIGTERM);
	pthread_join(thread, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- families ---- */

static void *fork_in_thread(void *argument)
{
	pid_t child = fork();

	if (child == 0)
		_exit(getppid() == (pid_t)(intptr_t)argument ? 3 : 4);
	return (void *)(intptr_t)child;
}

static void *wait_in_thread(void *argument)
{
	return (void *)end_of((intptr_t)argument);
}

void part_fork(void)
{
	void *child, *end;

	pthread_join(start(fork_in_thread, (void *)(intptr_t)getpid()), &child);
	pthread_join(start(wait_in_thread, child), &end);
	say("a thread's child", (intptr_t)end);
	say("nobody is left", waitpid(-1, NULL, 0) < 0 ? errno : 0);
	say("system", system("exit 6") >> 8);
}

/* Making tasks: clone's flags, how a parent waits for what it has made, and what exec changes. */
#include "threads.h"

#include <linux/sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define WALL   0x40000000
#define WCLONE (int)0x80000000

static volatile sig_atomic_t signalled;

static void note(int signal)
{
	signalled = signal;
}

static long error_of(long result)
{
	return result < 0 ? -errno : result;
}

/* As the call itself: a child goes on below, and ends at once. */
static long clone_with(unsigned flags)
{
	long child = error_of(syscall(SYS_clone, flags, 0, NULL, NULL, NULL));

	if (child == 0)
		_exit(7);
	return child;
}

/* ---- combinations ---- */

/* A thread that clone must refuse to make has no stack of its own. */
static void refused(void)
{
	static const unsigned flags[] = {
		CLONE_THREAD,
		CLONE_THREAD | CLONE_VM,
		CLONE_SIGHAND,
		CLONE_SIGHAND | CLONE_FS | SIGCHLD,
		CLONE_THREAD | CLONE_SIGHAND,
		CLONE_NEWNS | CLONE_FS,
		CLONE_PIDFD | CLONE_PARENT_SETTID | SIGCHLD,
		CLONE_PIDFD | CLONE_DETACHED | SIGCHLD,
	};

	for (unsigned i = 0; i < sizeof(flags) / sizeof(*flags); i++)
		say("refused", clone_with(flags[i]));
}

/* No tracer, no I/O scheduler's context: these are accepted. */
static void without_effect(void)
{
	static const unsigned flags[] = { CLONE_PTRACE, CLONE_UNTRACED, CLONE_DETACHED, CLONE_IO,
					  CLONE_VFORK };

	for (unsigned i = 0; i < sizeof(flags) / sizeof(*flags); i++)
		say("accepted", end_of(clone_with(flags[i] | SIGCHLD)));
}

/* Its parent is this program's, and it is waited for there. */
static void siblings(void)
{
	int pipes[2], sibling = 0;

	(void)!pipe(pipes);
	pid_t child = fork();

	if (child == 0) {
		sibling = clone_with(CLONE_PARENT | SIGUSR1);
		(void)!write(pipes[1], &sibling, sizeof(sibling));
		say("not its child", error_of(waitpid(sibling, NULL, 0)));
		_exit(0);
	}
	(void)!read(pipes[0], &sibling, sizeof(sibling));
	say("sibling", end_of(sibling));
	say("child", end_of(child));
	close(pipes[0]);
	close(pipes[1]);
}

/* ---- exit signals ---- */

/* A wait finds the children whose end sends SIGCHLD, unless it asks for others. */
static void waits(unsigned signal)
{
	siginfo_t info = { 0 };

	signalled = 0;
	long child = clone_with(signal);

	say("signal", signal);
	say("usual", error_of(waitpid(child, NULL, 0)));
	say("usual any", error_of(waitpid(-1, NULL, WNOHANG)));
	say("usual id", error_of(waitid(P_PID, child, &info, WEXITED | WNOHANG)));
	say("look", error_of(waitid(P_PID, child, &info, WEXITED | WNOWAIT | WCLONE)));
	say("status", info.si_status);
	say("stops no more", error_of(waitid(P_PID, child, &info, WSTOPPED | WNOHANG | WCLONE)));
	say("clones", error_of(waitpid(child, NULL, WCLONE)) == child);
	say("gone", error_of(waitpid(child, NULL, WALL)));
	say("signalled", signalled);
}

static void exit_signals(void)
{
	static const int signals[] = { 0, SIGUSR1, SIGUSR2, 64, 65, 255 };

	signal(SIGUSR1, note);
	signal(SIGUSR2, note);
	signal(64, note);
	for (unsigned i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		waits(signals[i]);
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	say("not a clone", error_of(waitpid(child, NULL, WCLONE)));
	say("not a clone", error_of(waitpid(-1, NULL, WCLONE | WNOHANG)));
	say("all", error_of(waitpid(child, NULL, WALL)) == child);
}

/* An orphan, and a program, send SIGCHLD whatever was asked for. */
static void changed(void)
{
	pid_t child = clone_with(SIGUSR1 | CLONE_VFORK);

	signalled = 0;
	say("vfork", error_of(waitpid(child, NULL, 0)));
	say("clone", error_of(waitpid(child, NULL, WCLONE)) == child);
	child = syscall(SYS_clone, SIGUSR1, 0, NULL, NULL, NULL);
	if (child == 0) {
		execl(myself, "threads", "-executed", NULL);
		_exit(1);
	}
	long found;

	while ((found = error_of(waitpid(child, NULL, WNOHANG))) == -ECHILD)
		rest(10);
	if (found == 0)
		found = error_of(waitpid(child, NULL, 0));
	say("executed", found == child);
}

/* ---- exec ---- */

/* Without arguments a program gets one that is empty, and its environment is its own. */
static void no_arguments(void)
{
	char *const none[] = { NULL }, *const environment[] = { "A=1", "B=2", NULL };
	int pipes[2];
	char text[64] = "";
	long length = 0, more;

	(void)!pipe(pipes);
	for (int i = 0; i < 3; i++) {
		pid_t child = fork();

		if (child == 0) {
			dup2(pipes[1], 1);
			execve("/proc/self/exe", i ? none : NULL, i == 1 ? NULL : environment);
			_exit(1);
		}
		say("no arguments", end_of(child));
	}
	close(pipes[1]);
	while ((more = read(pipes[0], text + length, sizeof(text) - 1 - length)) > 0)
		length += more;
	close(pipes[0]);
	printf("%s", text);
	fflush(stdout);
}

static void kept_by_exec(void)
{
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_KEEPCAPS, 1);
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		execl(myself, "threads", "-rights", NULL);
		_exit(1);
	}
	say("rights", end_of(child));
}

/* ---- limits ---- */

/* Real-time signals need room to wait, also the first. */
static void queued(void)
{
	struct rlimit limit = { 0, 0 };
	union sigval value = { 0 };
	sigset_t set;

	if (fork() == 0) {
		sigemptyset(&set);
		sigaddset(&set, SIGRTMIN);
		sigaddset(&set, SIGRTMIN + 1);
		sigaddset(&set, SIGUSR2);
		sigprocmask(SIG_BLOCK, &set, NULL);
		say("limit", error_of(setrlimit(RLIMIT_SIGPENDING, &limit)));
		say("usual", error_of(syscall(SYS_tgkill, getpid(), getpid(), SIGUSR2)));
		say("tgkill", error_of(syscall(SYS_tgkill, getpid(), getpid(), SIGRTMIN)));
		say("tkill", error_of(syscall(SYS_tkill, getpid(), SIGRTMIN)));
		say("queue", error_of(sigqueue(getpid(), SIGRTMIN, value)));
		say("nothing", error_of(syscall(SYS_tgkill, getpid(), getpid(), 0)));
		say("kill", error_of(kill(getpid(), SIGRTMIN + 1)));
		sigpending(&set);
		say("pending", sigismember(&set, SIGUSR2) * 100 + sigismember(&set, SIGRTMIN) * 10 +
				   sigismember(&set, SIGRTMIN + 1));
		_exit(0);
	}
	wait(NULL);
}

/* On Linux the limit of tasks does not bind root, so this is of our kernel alone. */
int limit_tasks(void)
{
	struct rlimit limit, none = { RLIM_INFINITY, RLIM_INFINITY };
	pthread_t thread;
	int made = 0;

	getrlimit(RLIMIT_NPROC, &limit);
	say("tasks at most", limit.rlim_max);
	say("more", error_of(setrlimit(RLIMIT_NPROC, &none)));
	limit.rlim_cur = 30;
	say("less", error_of(setrlimit(RLIMIT_NPROC, &limit)));
	while (made < 100 && fork() > 0)
		made++;
	if (errno != EAGAIN) /* a child */
		return pause();
	say("some", made > 10 && made < 30);
	say("vfork", error_of(syscall(SYS_vfork)));
	say("clone", clone_with(SIGCHLD));
	say("thread", pthread_create(&thread, NULL, sleep_for_ever, NULL));
	signal(SIGTERM, SIG_IGN);
	kill(0, SIGTERM);
	for (int i = 0; i < made; i++)
		wait(NULL);
	say("again", end_of(clone_with(SIGCHLD)));
	return 0;
}

void part_clones(void)
{
	refused();
	without_effect();
	siblings();
	exit_signals();
	changed();
	no_arguments();
	kept_by_exec();
	queued();
}

/* Terminals and jobs: who may change a terminal, who is stopped, and the errors. */
#include "threads.h"

#include <sys/ioctl.h>
#include <termios.h>

static int slave;

static long error_of(long result)
{
	return result < 0 ? -errno : result;
}

/* What becomes of a child in the background that does this: its result; or 2000 and the signal that
 * stops it. */
static long background(long (*act)(void), int ignored)
{
	int status = 0, pipes[2];
	long result = 0;

	(void)!pipe(pipes);
	pid_t child = fork();

	if (child == 0) {
		setpgid(0, 0);
		if (ignored)
			signal(ignored, SIG_IGN);
		result = act();
		(void)!write(pipes[1], &result, sizeof(result));
		_exit(0);
	}
	waitpid(child, &status, WUNTRACED);
	if (WIFSTOPPED(status)) {
		result = 2000 + WSTOPSIG(status);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	} else {
		(void)!read(pipes[0], &result, sizeof(result));
	}
	close(pipes[0]);
	close(pipes[1]);
	return result;
}

/* The same, when no process could continue it: its parent has gone. */
static long orphaned(long (*act)(void))
{
	int pipes[2];
	long result = 0;

	(void)!pipe(pipes);
	if (fork() == 0) {
		setpgid(0, 0);
		pid_t parent = getpid();

		if (fork() == 0) {
			while (getppid() == parent)
				rest(5);
			result = act();
			(void)!write(pipes[1], &result, sizeof(result));
		}
		_exit(0);
	}
	wait(NULL);
	close(pipes[1]);
	(void)!read(pipes[0], &result, sizeof(result));
	close(pipes[0]);
	return result;
}

static long reads(void)
{
	char byte;

	return error_of(read(slave, &byte, 1));
}

static long writes(void)
{
	return error_of(write(slave, "x", 1));
}

static long gets(void)
{
	struct termios settings;

	return error_of(tcgetattr(slave, &settings));
}

static long sets(void)
{
	struct termios settings;

	tcgetattr(slave, &settings);
	return error_of(tcsetattr(slave, TCSANOW, &settings));
}

static long moves_front(void)
{
	return error_of(tcsetpgrp(slave, getpgrp()));
}

static long drains(void)
{
	return error_of(tcdrain(slave));
}

static long flushes(void)
{
	return error_of(tcflush(slave, TCIFLUSH));
}

static long flows(void)
{
	return error_of(tcflow(slave, TCOON));
}

static long gives_up(void)
{
	return error_of(ioctl(slave, TIOCNOTTY)) * 1000 + error_of(ioctl(slave, TIOCNOTTY));
}

static long takes(void)
{
	return error_of(ioctl(slave, TIOCSCTTY, 0));
}

static const struct {
	const char *name;
	long (*act)(void);
	int signal; /* that stops it */
} acts[] = {
	{ "read", reads, SIGTTIN },
	{ "write", writes, SIGTTOU },
	{ "get", gets, SIGTTOU },
	{ "set", sets, SIGTTOU },
	{ "front", moves_front, SIGTTOU },
	{ "drain", drains, SIGTTOU },
	{ "flush", flushes, SIGTTOU },
	{ "flow", flows, SIGTTOU },
	{ "take", takes, 0 },
};

static void each_act(void)
{
	for (unsigned i = 0; i < sizeof(acts) / sizeof(*acts); i++) {
		pid_t front = tcgetpgrp(slave);

		printf("%s: %ld", acts[i].name, background(acts[i].act, 0));
		printf(" ignored %ld", background(acts[i].act, acts[i].signal));
		signal(SIGTTOU, SIG_IGN);
		tcsetpgrp(slave, front); /* as it was: the act may have changed it */
		signal(SIGTTOU, SIG_DFL);
		printf(" orphaned %ld\n", orphaned(acts[i].act));
		fflush(stdout);
	}
}

/* Groups that cannot come to the front. */
static void groups(void)
{
	pid_t own = getpgrp(), other = fork();

	if (other == 0) {
		setsid();
		rest(5000);
		_exit(0);
	}
	while (getsid(other) != other)
		rest(5);
	say("other session", error_of(tcsetpgrp(slave, other)));
	say("its process", error_of(tcsetpgrp(slave, getppid())));
	say("nobody", error_of(tcsetpgrp(slave, 99999999)));
	say("none", error_of(ioctl(slave, TIOCSPGRP, &(pid_t){ 0 })));
	say("negative", error_of(ioctl(slave, TIOCSPGRP, &(pid_t){ -1 })));
	say("nowhere", error_of(ioctl(slave, TIOCSPGRP, 16)));
	say("same", error_of(tcsetpgrp(slave, own)));
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
}

/* Pointers and arguments that are wrong. */
static void wrong(int file)
{
	static const unsigned commands[] = { TCGETS,   TCSETS,	 TIOCGWINSZ, TIOCSWINSZ, TIOCGPGRP,
					     TIOCGSID, FIONREAD, TIOCOUTQ,   TIOCGETD };

	for (unsigned i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		say("nowhere", error_of(ioctl(file, commands[i], 16)));
	say("flush", error_of(ioctl(file, TCFLSH, 2)) + error_of(ioctl(file, TCFLSH, 1)));
	say("flush", error_of(ioctl(file, TCFLSH, 3)));
	say("flow", error_of(ioctl(file, TCXONC, 4)));
	say("out", error_of(ioctl(file, TIOCOUTQ, &(int){ 7 })));
	say("exclusive", error_of(ioctl(file, TIOCEXCL)) + error_of(ioctl(file, TIOCNXCL)));
	say("unknown", error_of(ioctl(file, 0x54ff, 0)));
	say("read", error_of(read(file, (void *)16, 0)));
}

/* By root, in any terminal; Linux's other users may not, or only in their own. */
static void types(void)
{
	char byte = 'k';

	say("nowhere", geteuid() ? -EFAULT : error_of(ioctl(slave, TIOCSTI, 16)));
	say("typed", geteuid() ? 0 : error_of(ioctl(slave, TIOCSTI, &byte)));
	byte = '\n';
	say("typed", geteuid() ? 0 : error_of(ioctl(slave, TIOCSTI, &byte)));
	rest(20);
	say("read", geteuid() ? 2 : read(slave, (char[4]){ 0 }, 4));
}

/* Another session takes the terminal away. */
static void steal(void)
{
	pid_t child = fork();

	if (child == 0) {
		setsid();
		say("not a leader's", error_of(ioctl(slave, TIOCGPGRP, &child)));
		say("its session", error_of(ioctl(slave, TIOCGSID, &child)));
		say("taken", error_of(ioctl(slave, TIOCSCTTY, 0)));
		say("set", error_of(sets()));
		say("front", moves_front());
		say("give up", gives_up());
		say("stolen", geteuid() ? 0 : error_of(ioctl(slave, TIOCSCTTY, 1)));
		say("own", geteuid() ? 1 : tcgetpgrp(slave) == getpid());
		_exit(0);
	}
	waitpid(child, NULL, 0);
	say("lost", geteuid() ? -ENOTTY : error_of(tcgetpgrp(slave)));
}

static void session(int master)
{
	setsid();
	signal(SIGHUP, SIG_IGN);
	int half = open(ptsname(master), O_WRONLY);

	say("write-only", error_of(tcgetpgrp(half)));
	close(half);
	slave = open(ptsname(master), O_RDWR);
	struct termios settings;

	tcgetattr(slave, &settings);
	settings.c_lflag |= TOSTOP;
	tcsetattr(slave, TCSANOW, &settings);
	say("again", error_of(ioctl(slave, TIOCSCTTY, 0)));
	each_act();
	groups();
	wrong(slave);
	types();
	say("master's session", ioctl(master, TIOCGSID, &(int){ 0 }));
	say("master gives up", error_of(ioctl(master, TIOCNOTTY)));
	say("gives up", background(gives_up, 0));
	steal();
	_exit(0);
}

/* ---- programs with threads ---- */

static int written;

static void *wait_on(void *main)
{
	sigset_t none;

	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	if (main)
		pthread_join(*(pthread_t *)main, NULL);
	(void)!write(written, "", 1);
	for (;;)
		pause();
}

/* A wait's status, if there is news soon. */
static long news_of(pid_t child, int options)
{
	int status = 0;

	for (int i = 0; i < 20 && waitpid(child, &status, options | WNOHANG) == 0; i++)
		rest(5);
	return status;
}

/* The parent learns of a stop whose first task has ended, and of a continuation that another task
 * than the first is told. */
static void stop_threads(int first_ends)
{
	int pipes[2], status;
	char byte;

	(void)!pipe(pipes);
	written = pipes[1];
	pid_t child = fork();

	if (child == 0) {
		pthread_t first = pthread_self();
		sigset_t set;

		sigemptyset(&set);
		sigaddset(&set, SIGCONT);
		pthread_sigmask(SIG_BLOCK, &set, NULL);
		start(wait_on, first_ends ? &first : NULL);
		if (first_ends)
			pthread_exit(NULL);
		for (;;)
			pause();
	}
	(void)!read(pipes[0], &byte, 1);
	for (int i = 0; i < 2; i++) {
		kill(child, SIGSTOP);
		say("stopped", news_of(child, WUNTRACED));
		say("once", waitpid(child, &status, WUNTRACED | WNOHANG));
		kill(child, SIGCONT);
		say("continued", news_of(child, WCONTINUED));
	}
	kill(child, SIGKILL);
	say("ended", news_of(child, 0));
	close(pipes[0]);
	close(pipes[1]);
}

static void *count(void *number)
{
	for (;; rest(1))
		++*(volatile int *)number;
}

/* A task that sends itself a stop signal stops the others, too; and SIGCONT to it continues all. */
static void stop_by_one(void)
{
	volatile int *number =
	    mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child = fork();

	if (child == 0) {
		start(count, (void *)number);
		while (*number == 0)
			rest(1);
		raise(SIGSTOP);
		for (;;)
			pause();
	}
	say("stopped by one", news_of(child, WUNTRACED));
	rest(20);
	int before = *number;

	rest(50);
	say("all stop", *number == before);
	syscall(SYS_tgkill, child, child, SIGCONT);
	say("continued by one", news_of(child, WCONTINUED));
	rest(50);
	say("all go on", *number != before);
	kill(child, SIGKILL);
	say("ended", news_of(child, 0));
}

void part_jobs(void)
{
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY), group;

	unlockpt(master);
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	say("no session", error_of(ioctl(master, TIOCGSID, &group)));
	say("no group", ioctl(master, TIOCGPGRP, &group) + group);
	say("not its own", error_of(ioctl(slave, TIOCGPGRP, &group)));
	say("not its own", error_of(ioctl(slave, TIOCNOTTY)));
	pid_t child = fork();

	if (child == 0)
		session(master);
	say("end", end_of(child));
	close(master);
	say("hung up", error_of(ioctl(slave, TIOCGWINSZ, 16)));
	say("hung up", error_of(ioctl(slave, TIOCSPGRP, 16)));
	close(slave);
	say("not a terminal", error_of(tcgetpgrp(memfd_create("file", 0))));
	close(master);
	stop_threads(0);
	stop_threads(1);
	stop_by_one();
}

/*
 * outside NAME: does one thing that must be seen from outside. `orphan` ends before its child,
 * `flush` reads a line after input that it threw away, `session` (as the leader of the console's
 * session) leaves sessions when it ends.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FLUSH_SECONDS 2

static void sleep_ms(long ms)
{
	const struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

static int leave_orphan(void)
{
	if (fork() == 0)
		sleep_ms(100);
	return 0;
}

static int flush(void)
{
	char line[80];

	puts("sleeping");
	fflush(stdout);
	sleep_ms(FLUSH_SECONDS * 1000);
	syscall(SYS_ioctl, 0, TCFLSH, 0, 0, 0, 0);
	puts("flushed");
	fflush(stdout);
	do
		fgets(line, sizeof(line), stdin);
	while (line[0] == 'x'); /* what had no room before */
	return printf("read %s", line) < 0;
}

/* Leads a session on the console, with a member that outlives it and one in the background. */
static void lead_session(int report)
{
	setsid();
	if (open("/dev/console", O_RDWR) < 0 || tcgetpgrp(0) != getpid())
		_exit(1);
	pid_t foreground = fork();

	if (foreground == 0)
		pause();
	pid_t background = fork();

	if (background == 0) {
		setpgid(0, 0);
		pause();
	}
	pid_t members[2] = { foreground, background };

	setpgid(background, background);
	write(report, members, sizeof(members));
	_exit(0);
}

static bool leads(int report)
{
	int status = 1;
	pid_t pid = fork();

	if (pid == 0)
		lead_session(report);
	return waitpid(pid, &status, 0) == pid && status == 0;
}

/* When its leader ends, a session loses its terminal to the next one; and the group that was in
 * the foreground is told. */
static int leave_sessions(void)
{
	pid_t members[2] = { 0, 0 };
	int ends[2];

	pipe(ends);
	signal(SIGHUP, SIG_IGN); /* of the session that ends here */
	if (ioctl(0, TIOCNOTTY) != 0)
		return 1;
	signal(SIGHUP, SIG_DFL);
	bool first = leads(ends[1]);

	if (first)
		read(ends[0], members, sizeof(members));
	sleep_ms(100);
	printf("first %d foreground %d background %d\n", first, kill(members[0], 0),
	       kill(members[1], 0));
	printf("second %d\n", leads(ends[1]));
	return 0;
}

int main(int count, char **words)
{
	const char *what = count > 1 ? words[1] : "";

	if (strcmp(what, "orphan") == 0)
		return leave_orphan();
	if (strcmp(what, "flush") == 0)
		return flush();
	return strcmp(what, "session") == 0 ? leave_sessions() : 2;
}

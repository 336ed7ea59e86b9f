/*
 * init [-c COMMAND]: the first process. Runs the script /etc/rc if it is there; then a shell on the
 * terminal or, with -c, the shell's COMMAND; and takes in orphans meanwhile. When that ends the
 * machine ends with its status: switched off by reboot(2) for 0, else by the end of process 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHELL  "/bin/sh"
#define SCRIPT "/etc/rc"

static char *const environment[] = {
	"PATH=/bin:/sbin:/usr/bin:/usr/sbin:/course/bin",
	"HOME=/",
	"TERM=linux",
	"USER=root",
	"PS1=\\w # ",
	NULL,
};

/* Descriptors 0 to 2, where the kernel gave none. */
static void open_terminal(void)
{
	int descriptor = fcntl(STDIN_FILENO, F_GETFD) < 0 ? open("/dev/console", O_RDWR) : -1;

	while (descriptor >= 0 && descriptor < STDERR_FILENO)
		descriptor = dup(descriptor);
}

/* In a session of its own the shell gets the terminal. */
static pid_t start(char *const arguments[], bool session)
{
	pid_t process = fork();

	if (process == 0) {
		if (session) {
			setsid();
			ioctl(STDIN_FILENO, TIOCSCTTY, 0);
		}
		execve(arguments[0], arguments, environment);
		fprintf(stderr, "init: %s: %s\n", arguments[0], strerror(errno));
		_exit(errno == ENOENT ? 127 : 126);
	}
	if (process < 0)
		perror("init: fork");
	return process;
}

/* Runs a program, and takes in whatever else ends. Returns a status as a shell's $? has it. */
static int run(char *const arguments[], bool session)
{
	pid_t process = start(arguments, session), ended;
	int status;

	if (process < 0)
		return EXIT_FAILURE;
	do
		ended = wait(&status);
	while (ended != process && (ended >= 0 || errno == EINTR));
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int main(int count, char **arguments)
{
	bool one_command = count > 2 && strcmp(arguments[1], "-c") == 0;

	open_terminal();
	if (getpid() == 1)
		ioctl(STDIN_FILENO, TIOCNOTTY); /* where opening it has made it init's */
	if (access(SCRIPT, R_OK) == 0)
		run((char *[]){ SHELL, SCRIPT, NULL }, false);
	int status = one_command ? run((char *[]){ SHELL, "-c", arguments[2], NULL }, true)
				 : run((char *[]){ SHELL, NULL }, true);

	if (getpid() == 1 && status == 0) {
		sync();
		reboot(RB_POWER_OFF);
	}
	return status;
}

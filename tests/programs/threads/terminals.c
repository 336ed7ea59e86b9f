/* Pseudo-terminals: what goes through them, job control, and how they end. */
#include "threads.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>

static long error_of(long result)
{
	return result < 0 ? -errno : result;
}

static int open_master(void)
{
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY);

	unlockpt(master);
	return master;
}

static long ready(int file)
{
	struct pollfd one = { file, POLLIN | POLLOUT, 0 };

	poll(&one, 1, 0);
	return one.revents;
}

/* Linux hands on what is typed in a thread of its own. */
static long type(int master, const char *text)
{
	long result = error_of(write(master, text, strlen(text)));

	rest(50);
	return result;
}

/* What there is to read, or the error; line ends as letters. */
static void show(const char *what, int file)
{
	char text[256] = "", shown[600];
	long length = error_of(read(file, text, sizeof(text) - 1));
	char *to = shown;

	for (long i = 0; i < length; i++)
		to += sprintf(to, text[i] < ' ' ? "<%d>" : "%c", text[i]);
	*to = '\0';
	printf("%s %ld %s\n", what, length, shown);
	fflush(stdout);
}

static void lines(void)
{
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY), slave, zero = 0;
	char name[64];

	ptsname_r(master, name, sizeof(name));
	say("name", strncmp(name, "/dev/pts/", 9));
	say("locked", error_of(open(name, O_RDWR | O_NOCTTY)));
	say("unlock", ioctl(master, TIOCSPTLCK, &zero));
	slave = open(name, O_RDWR | O_NOCTTY);
	say("terminals", isatty(master) + isatty(slave));
	say("ready", ready(master) * 100 + ready(slave));
	say("type", type(master, "word\rhalf"));
	say("ready", ready(master) * 100 + ready(slave));
	show("line", slave);
	show("echo", master);
	say("show", write(slave, "a\nb\n", 4));
	rest(50);
	show("shown", master);
	close(slave);
	show("closed", master);
	say("ready", ready(master) & POLLHUP);
	slave = open(name, O_RDWR | O_NOCTTY);
	type(master, "\n");
	show("opened again", slave);
	close(master);
	show("hung up", slave);
	say("write", error_of(write(slave, "x", 1)));
	say("ready", ready(slave));
	close(slave);
}

static void full(void)
{
	int master = open_master(), slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	static char much[65536];
	long sent = 0, got = 0, n;

	fcntl(master, F_SETFL, O_NONBLOCK);
	fcntl(slave, F_SETFL, O_NONBLOCK);
	memset(much, 'x', sizeof(much));
	while ((n = error_of(write(slave, much, 999))) > 0)
		sent += n;
	say("full", n);
	while ((n = error_of(read(master, much, sizeof(much)))) > 0)
		got += n;
	say("empty", n);
	say("all of it", sent - got);
	close(slave);
	close(master);
}

/* A child that leads a session with this terminal, until a signal. */
static int begin(int master)
{
	int child = fork();

	if (child == 0) {
		setsid();
		say("not its own", close(open(ptsname(master), O_RDWR | O_NOCTTY)));
		say("/dev/tty", error_of(open("/dev/tty", O_RDWR)));
		int slave = open(ptsname(master), O_RDWR);

		say("own", tcgetpgrp(slave) == getpid() && tcgetsid(slave) == getpid());
		say("/dev/tty", close(open("/dev/tty", O_RDWR)));
		close(master);
		write(slave, "!", 1);
		rest(5000);
		_exit(7);
	}
	char ready;

	while (read(master, &ready, 1) != 1) /* when the child has closed its first slave: EIO */
		rest(1);
	return child;
}

static void keys(void)
{
	static const char *const keys[] = { "\003", "\034" };

	for (int i = 0; i < 2; i++) {
		int master = open_master(), child = begin(master), group = 0;

		say("in front", ioctl(master, TIOCGPGRP, &group) + (group == child));
		type(master, keys[i]);
		say("ended", end_of(child));
		show("echo", master);
		close(master);
	}
	int master = open_master(), child = begin(master);

	close(master);
	say("hung up", end_of(child));
}

static void set_mode(int file, tcflag_t local)
{
	struct termios settings;

	tcgetattr(file, &settings);
	settings.c_lflag = local;
	tcsetattr(file, TCSANOW, &settings);
}

/* What was typed before is bytes like others after a change of mode: ^D, too, which a program that
 * asks for single bytes must not take for the end. */
static void modes(void)
{
	int master = open_master(), slave = open(ptsname(master), O_RDWR | O_NOCTTY);

	fcntl(slave, F_SETFL, O_NONBLOCK);
	type(master, "\004");
	set_mode(slave, 0);
	show("end of file", slave);
	show("then", slave);
	set_mode(slave, ICANON);
	type(master, "a\nb\004c");
	set_mode(slave, 0);
	show("lines", slave);
	type(master, "raw");
	set_mode(slave, ICANON);
	show("one line", slave);
	show("then", slave);
	type(master, "x\n");
	show("line", slave);
	close(slave);
	close(master);
}

void part_terminals(void)
{
	lines();
	modes();
	full();
	keys();
}

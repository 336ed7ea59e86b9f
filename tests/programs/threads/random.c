/*
 * Random calls on files that have no name, and that processes talk by: sockets with names and the
 * files that go through them, pseudo-terminals, signalfd, memfd, epoll. Nothing is said of what
 * they answer: the kernel must survive, and lose nothing. Half of the children are killed.
 */
#include "threads.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <termios.h>

#define SEEDS 40
#define CALLS 600
#define FIRST 3
#define FILES 40

static unsigned state;
static char memory[70000];

static unsigned below(unsigned bound)
{
	return next_random(&state) % bound;
}

static int any(void)
{
	return FIRST + (int)below(FILES);
}

static void *pointer(void)
{
	return below(12) ? memory + below(4096) : (void *)(uintptr_t)(below(2) ? 16 : 0xc0100000);
}

/* No file waits, so that no child does. */
static void keep(int file)
{
	if (file >= FIRST + FILES)
		close(file);
	else if (file >= 0)
		fcntl(file, F_SETFL, O_NONBLOCK | fcntl(file, F_GETFL));
}

static struct sockaddr_un name(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	unsigned number = below(6);

	sprintf(name.sun_path + (number > 2), number > 2 ? "random%u" : "/tmp/random%u", number);
	return name;
}

static void move_message(int socket, bool sends)
{
	union {
		struct cmsghdr header;
		char room[512];
	} control = { 0 };
	struct iovec vectors[2] = { { pointer(), below(60000) }, { pointer(), below(100) } };
	struct msghdr message = { .msg_iov = vectors,
				  .msg_iovlen = below(3),
				  .msg_control = below(10) ? control.room : pointer(),
				  .msg_controllen = below(2) ? 12 + 4 * below(8) : below(60) };

	control.header.cmsg_len = below(4) ? 12 + 4 * below(8) : below(1000000);
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = below(9) ? SCM_RIGHTS : SCM_CREDENTIALS;
	for (unsigned i = 0; i < 8; i++)
		((int *)CMSG_DATA(&control.header))[i] = any();
	if (sends)
		sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	else
		recvmsg(socket, &message, MSG_DONTWAIT);
}

static void open_some(void)
{
	int pair[2], yes = 0;
	char slave[32];
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sprintf(slave, "/dev/pts/%u", below(6));
	switch (below(10)) {
	case 0:
		keep(open("/dev/ptmx", O_RDWR | O_NONBLOCK));
		break;
	case 1:
		ioctl(any(), TIOCSPTLCK, &yes);
		break;
	case 2:
	case 3:
		keep(open(slave, O_RDWR | O_NONBLOCK | (below(2) ? O_NOCTTY : 0)));
		break;
	case 4:
	case 5:
		keep(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
		break;
	case 6:
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0) {
			keep(pair[0]);
			keep(pair[1]);
		}
		break;
	case 7:
		keep(signalfd(below(2) ? -1 : any(), &set, SFD_NONBLOCK));
		break;
	case 8:
		keep(memfd_create("random", 0));
		break;
	case 9:
		keep(epoll_create1(0));
	}
}

static void use_terminal(int file)
{
	static const unsigned commands[] = { TCGETS,	TCFLSH,	   TIOCGWINSZ, TIOCSWINSZ,
					     TIOCGPGRP, TIOCSPGRP, TIOCSCTTY,  TIOCNOTTY,
					     TIOCGSID,	FIONREAD,  TIOCGPTN,   TCSBRK };
	struct termios settings;

	if (below(2) || tcgetattr(file, &settings) < 0) {
		ioctl(file, commands[below(12)], pointer());
		return;
	}
	settings.c_lflag ^= below(2) ? ICANON : ECHO | ISIG;
	settings.c_cc[VMIN] = below(3);
	tcsetattr(file, below(2) ? TCSANOW : TCSAFLUSH, &settings);
}

static void use_socket(int file)
{
	struct sockaddr_un place = name();
	socklen_t length = sizeof(place);

	switch (below(9)) {
	case 0:
		bind(file, (struct sockaddr *)&place, sizeof(place));
		break;
	case 1:
	case 2:
		connect(file, (struct sockaddr *)&place, below(5) ? sizeof(place) : below(120));
		break;
	case 3:
		listen(file, (int)below(5));
		break;
	case 4:
		keep(accept4(file, below(2) ? NULL : pointer(), &length, SOCK_NONBLOCK));
		break;
	case 5:
		shutdown(file, (int)below(3));
		break;
	case 6:
		getpeername(file, pointer(), &length);
		break;
	default:
		move_message(file, below(2));
	}
}

static void use_any(int file)
{
	struct pollfd polled = { any(), POLLIN | POLLOUT, 0 };
	struct epoll_event event = { .events = EPOLLIN };
	char path[64], target[64];

	switch (below(10)) {
	case 0:
	case 1:
		read(file, pointer(), below(2) ? below(300) : below(60000));
		break;
	case 2:
	case 3:
		write(file, pointer(), below(2) ? below(300) : below(60000));
		break;
	case 4:
		keep(dup(file));
		break;
	case 5:
		close(file);
		break;
	case 6:
		poll(&polled, 1, 0);
		break;
	case 7:
		epoll_ctl(file, 1 + (int)below(3), any(), &event);
		epoll_wait(file, &event, 1, 0);
		break;
	case 8:
		sprintf(path, "/proc/self/fd/%d", file);
		if (readlink(path, target, sizeof(target)) > 0 && below(2))
			keep(open(path, O_RDWR | O_NONBLOCK));
		break;
	case 9:
		kill(getpid(), SIGUSR1);
	}
}

static void call(void)
{
	static void (*const use[])(int file) = { use_terminal, use_socket, use_any };
	unsigned which = below(4);

	if (which == 3)
		open_some();
	else
		use[which](any());
}

static void child(void)
{
	static const int ignored[] = { SIGPIPE, SIGHUP,	 SIGTTOU, SIGTTIN, SIGCONT,
				       SIGINT,	SIGQUIT, SIGTSTP, SIGWINCH };
	sigset_t set;

	setsid();
	for (int file = FIRST; file < FIRST + FILES; file++)
		close(file);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (unsigned i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	alarm(60);
	for (unsigned i = 0; i < CALLS; i++)
		call();
	_exit(0);
}

void part_random(void)
{
	for (unsigned i = 0; i < SEEDS; i++) {
		state = 1000 * seed + i;
		pid_t one = fork();

		if (one == 0)
			child();
		state += i;
		pid_t other = fork();

		if (other == 0)
			child();
		rest(2);
		kill(other, SIGKILL);
		if (end_of(one) != 0)
			say("waits", i);
		end_of(other);
	}
	for (char number = '0'; number < '3'; number++) {
		char path[] = "/tmp/random?";

		path[11] = number;
		unlink(path);
	}
}

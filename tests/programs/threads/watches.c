/* What epoll sees of sockets that are connected later, and of other epolls; and which lock is told.
 */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "threads.h"

#define DEEP 5 /* epolls that may watch each other in a chain */

static const struct sockaddr_un name = { AF_UNIX, "\0threads-watches" };
static int listener, client, epoll;

static long error_of(long result)
{
	return result < 0 ? -errno : result;
}

static long watch(int file, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.u32 = file };

	return error_of(epoll_ctl(epoll, EPOLL_CTL_ADD, file, &event));
}

/* For as long as it takes. */
static void wait_for_one(const char *what)
{
	struct epoll_event event = { .events = 0 };

	say(what, error_of(epoll_wait(epoll, &event, 1, -1)));
	say("  events", event.events);
}

static void open_two(void)
{
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	bind(listener, (const struct sockaddr *)&name, sizeof(name));
	listen(listener, 2);
	client = socket(AF_UNIX, SOCK_STREAM, 0);
	epoll = epoll_create1(0);
}

static void close_two(void)
{
	close(listener);
	close(client);
	close(epoll);
}

/* Added before it is connected. */
static void connected_later(void)
{
	open_two();
	say("add", watch(client, EPOLLIN));
	say("connect", error_of(connect(client, (const struct sockaddr *)&name, sizeof(name))));
	int server = accept(listener, NULL, NULL);
	struct epoll_event event;

	say("quiet", epoll_wait(epoll, &event, 1, 0));
	write(server, "x", 1);
	wait_for_one("data");
	char byte;

	read(client, &byte, 1);
	say("quiet again", epoll_wait(epoll, &event, 1, 0));
	write(server, "x", 1);
	wait_for_one("more data");
	close(server);
	wait_for_one("end");
	close_two();
}

static void *connect_later(void *unused)
{
	rest(30);
	connect(client, (const struct sockaddr *)&name, sizeof(name));
	int server = accept(listener, NULL, NULL);

	rest(30);
	write(server, "x", 1);
	return (void *)(intptr_t)server;
}

/* Connected while another thread waits. */
static void connected_meanwhile(void)
{
	struct epoll_event event;
	void *server;

	open_two();
	watch(client, EPOLLIN | EPOLLET);
	say("hang-up", epoll_wait(epoll, &event, 1, -1));
	pthread_t thread = start(connect_later, NULL);

	do
		event.events = 0;
	while (epoll_wait(epoll, &event, 1, -1) == 1 && !(event.events & EPOLLIN));
	say("woken", event.events);
	pthread_join(thread, &server);
	close((intptr_t)server);
	close_two();
}

/* From the bottom up. */
static void nested(void)
{
	int epolls[DEEP], counter = eventfd(0, 0), below = counter;
	struct epoll_event event;
	uint64_t one = 1;

	for (int i = 0; i < DEEP; i++) {
		epoll = epolls[i] = epoll_create1(0);
		say("nested", watch(below, EPOLLIN));
		below = epoll;
	}
	epoll = epolls[0];
	say("circle", watch(epolls[DEEP - 1], EPOLLIN));
	say("quiet", epoll_wait(epolls[DEEP - 1], &event, 1, 0));
	write(counter, &one, sizeof(one));
	say("from below", epoll_wait(epolls[DEEP - 1], &event, 1, -1));
	for (int i = 0; i < DEEP; i++)
		close(epolls[i]);
	close(counter);
}

/* Where it ends depends on the version of Linux. */
static void too_deep(void)
{
	int epolls[2 * DEEP];
	long refused = 0;

	epolls[0] = epoll_create1(0);
	for (int i = 1; i < 2 * DEEP; i++) {
		epoll = epolls[i] = epoll_create1(0);
		if (!refused)
			refused = watch(epolls[i - 1], EPOLLIN);
	}
	say("too deep", refused);
	for (int i = 0; i < 2 * DEEP; i++)
		close(epolls[i]);
}

/* A file of which epolls are the last to know goes all the same: also while another waits. */
static void closed(void)
{
	int ends[2], others[3];
	struct epoll_event event;

	pipe(ends);
	for (int i = 0; i < 3; i++) {
		epoll = others[i] = epoll_create1(0);
		watch(ends[1], EPOLLOUT);
		watch(ends[0], EPOLLIN);
	}
	close(others[1]);
	close(ends[1]);
	epoll = others[0];
	wait_for_one("reader only");
	close(ends[0]);
	say("none", epoll_wait(others[0], &event, 1, 0));
	say("none", epoll_wait(others[2], &event, 1, 0));
	close(others[0]);
	close(others[2]);
}

/* Of several locks in the way F_GETLK tells the one that begins first. */
static void first_lock(void)
{
	int file = syscall(SYS_memfd_create, "locks", 0), ready[2], done[2];
	struct flock lock = { .l_type = F_WRLCK, .l_start = 10, .l_len = 5 };
	char byte;

	pipe(ready);
	pipe(done);
	pid_t child = fork();

	if (child == 0) {
		for (lock.l_start = 10; lock.l_start < 100; lock.l_start += 30)
			fcntl(file, F_SETLK, &lock);
		write(ready[1], "x", 1);
		read(done[0], &byte, 1);
		_exit(0);
	}
	read(ready[0], &byte, 1);
	lock = (struct flock){ .l_type = F_WRLCK };
	say("asked", error_of(fcntl(file, F_GETLK, &lock)));
	say("begins", lock.l_start);
	lock = (struct flock){ .l_type = F_WRLCK, .l_start = 20 };
	fcntl(file, F_GETLK, &lock);
	say("begins", lock.l_start);
	write(done[1], "x", 1);
	waitpid(child, NULL, 0);
	for (int i = 0; i < 2; i++) {
		close(ready[i]);
		close(done[i]);
	}
	close(file);
}

void part_watches(void)
{
	connected_later();
	connected_meanwhile();
	nested();
	too_deep();
	closed();
	first_lock();
}

/* Sockets whose other end is closed or shut down, and sockets that are sent through sockets. */
#include "threads.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#define DEEP 300

static long error_of(long result)
{
	return result < 0 ? -errno : result;
}

static int ready(int socket)
{
	struct pollfd one = { socket, POLLIN | POLLOUT | POLLRDHUP, 0 };

	poll(&one, 1, 0);
	return one.revents;
}

static int pending(int socket)
{
	int error = -1;
	socklen_t room = sizeof(error);

	getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &room);
	return error;
}

static long receive(int socket, int flags)
{
	char bytes[16];

	return error_of(recv(socket, bytes, sizeof(bytes), flags | MSG_DONTWAIT));
}

static long transmit(int socket, const char *text)
{
	return error_of(send(socket, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT));
}

static void make(int type, int pair[2])
{
	socketpair(AF_UNIX, type, 0, pair);
}

/* ---- what was not read is lost, and who sent it hears of that once ---- */

static void unread(void)
{
	int pair[2];

	make(SOCK_STREAM, pair);
	transmit(pair[0], "abc");
	transmit(pair[1], "defg");
	close(pair[1]);
	say("reset", ready(pair[0]));
	say("first", receive(pair[0], 0));
	say("reset", receive(pair[0], MSG_PEEK));
	say("end", receive(pair[0], 0));
	say("write", transmit(pair[0], "x"));
	close(pair[0]);
	make(SOCK_STREAM, pair);
	transmit(pair[0], "abc");
	close(pair[1]);
	say("option", pending(pair[0]));
	say("option", pending(pair[0]));
	say("end", receive(pair[0], 0));
	close(pair[0]);
	make(SOCK_STREAM, pair);
	transmit(pair[0], "abc");
	receive(pair[1], 0);
	close(pair[1]);
	say("all read", ready(pair[0]));
	say("end", receive(pair[0], 0));
	close(pair[0]);
}

/* Nobody has accepted it. */
static void in_the_queue(void)
{
	const struct sockaddr_un name = { AF_UNIX, "\0resets" };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), one = socket(AF_UNIX, SOCK_STREAM, 0);

	bind(listener, (const struct sockaddr *)&name, 9);
	listen(listener, 1);
	say("connect", error_of(connect(one, (const struct sockaddr *)&name, 9)));
	close(listener);
	say("reset", receive(one, 0));
	say("end", receive(one, 0));
	close(one);
}

/* ---- shutdown ---- */

static void shut(int type)
{
	int pair[2], alone = socket(AF_UNIX, type, 0);

	make(type, pair);
	transmit(pair[0], "early");
	say("shut", error_of(shutdown(pair[0], SHUT_WR)));
	say("write", transmit(pair[0], "x"));
	say("other", transmit(pair[1], "x"));
	say("other", ready(pair[1]));
	say("early", receive(pair[1], 0));
	say("then", receive(pair[1], 0));
	say("shut", error_of(shutdown(pair[0], SHUT_RD)));
	say("there", receive(pair[0], 0));
	say("then", receive(pair[0], 0));
	say("waits", error_of(recv(pair[0], &alone, 0, 0)));
	say("other", transmit(pair[1], "x"));
	say("ready", ready(pair[0]));
	say("other", ready(pair[1]));
	say("no such", error_of(shutdown(pair[0], 7)));
	say("alone", error_of(shutdown(alone, 7)));
	close(pair[0]);
	close(pair[1]);
	close(alone);
}

static void *wait_for_end(void *pair)
{
	char byte;

	say("ended", error_of(read(((int *)pair)[0], &byte, 1)));
	return NULL;
}

/* Who waits in a read hears of it. */
static void shut_while_one_reads(void)
{
	int pair[2];

	make(SOCK_DGRAM, pair);
	pthread_t thread = start(wait_for_end, pair);

	rest(20);
	shutdown(pair[0], SHUT_RD);
	pthread_join(thread, NULL);
	close(pair[1]);
	close(pair[0]);
}

/* ---- sockets on the way ---- */

static long pass(int through, int socket)
{
	return send_control(through, SCM_RIGHTS, &socket, sizeof(socket), sizeof(socket));
}

static void say_end(const char *what, int socket)
{
	char byte;

	say(what, error_of(read(socket, &byte, 1)));
	close(socket);
}

/* Two connections that have each other's ends, which nobody else has: then they end, and with them
 * what they have besides. */
static void circles(void)
{
	int first[2], second[2], third[2];

	make(SOCK_STREAM, first);
	make(SOCK_STREAM, second);
	make(SOCK_STREAM, third);
	say("itself", pass(first[0], first[1]));
	say("each other", pass(first[0], second[1]));
	say("each other", pass(second[0], first[1]));
	say("and more", pass(second[0], third[1]));
	close(third[1]);
	close(second[1]);
	close(first[1]);
	close(second[0]);
	close(first[0]);
	say_end("no circle", third[0]);
}

/* One end is still open: what is on the way to it stays. */
static void no_circle(void)
{
	int first[2], second[2];

	make(SOCK_STREAM, first);
	make(SOCK_STREAM, second);
	pass(first[0], second[1]);
	pass(second[0], second[0]);
	close(second[1]);
	say("still there", transmit(second[0], "x"));
	close(second[0]);
	say("byte", receive(first[1], 0));
	close(first[0]);
	close(first[1]);
}

/* The last reference of each is in the one before. Older kernels of Linux allow four. */
static void chain(void)
{
	int last[2], next[2];
	long sent = 1;

	make(SOCK_STREAM, last);
	int end = last[0];

	for (int i = 0; i < DEEP && sent == 1; i++) {
		make(SOCK_STREAM, next);
		sent = pass(next[0], last[1]);
		close(last[1]);
		if (i > 0)
			close(last[0]);
		memcpy(last, next, sizeof(last));
	}
	say("chain", sent == 1 || sent == -ETOOMANYREFS);
	close(last[1]);
	close(last[0]);
	say_end("ended", end);
}

static void others(void)
{
	const struct sockaddr_un name = { AF_UNIX, "\0resets" };
	int pair[2], listener = socket(AF_UNIX, SOCK_STREAM, 0);
	int datagrams = socket(AF_UNIX, SOCK_DGRAM, 0);

	make(SOCK_STREAM, pair);
	bind(listener, (const struct sockaddr *)&name, 9);
	listen(listener, 1);
	say("listens", pass(pair[0], listener));
	say("alone", pass(pair[0], datagrams));
	close(listener);
	int one = socket(AF_UNIX, SOCK_STREAM, 0);

	say("connect", error_of(connect(one, (const struct sockaddr *)&name, 9)));
	say("through it", pass(one, pair[1]));
	close(pair[1]);
	close(one);
	close(datagrams);
	close(pair[0]);
}

void part_resets(void)
{
	unread();
	in_the_queue();
	shut(SOCK_STREAM);
	shut(SOCK_DGRAM);
	shut_while_one_reads();
	circles();
	no_circle();
	chain();
	others();
}

/* Socket pairs: their own calls, by which two processes or threads talk. */
#include "threads.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

static int ends[2];

static void pair(void)
{
	say("pair", socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
}

static void leave(void)
{
	close(ends[0]);
	close(ends[1]);
}

static long error_of(long result)
{
	return result < 0 ? -errno : result;
}

static void *answer(void *unused)
{
	char text[8];

	long got = recv(ends[1], text, sizeof(text), 0);

	rest(30);
	return (void *)(got * 100 + send(ends[1], text, 2, 0));
}

static void talk(void)
{
	char text[16] = "";
	void *result;
	struct sockaddr_storage from;
	socklen_t length = sizeof(from);
	pthread_t thread = start(answer, NULL);

	say("nothing yet", error_of(recv(ends[0], text, sizeof(text), MSG_DONTWAIT)));
	say("sent", sendto(ends[0], "hello", 5, MSG_NOSIGNAL, NULL, 0));
	say("from", recvfrom(ends[0], text, sizeof(text), 0, (struct sockaddr *)&from, &length));
	say("no address", length);
	say("text", strcmp(text, "he"));
	pthread_join(thread, &result);
	say("got, and answered", (long)result);
}

static void with_vectors(void)
{
	char one[3], two[16];
	struct iovec out[] = { { "ab", 2 }, { "cdef", 4 } }, in[] = { { one, 3 }, { two, 16 } };
	struct msghdr message = { .msg_iov = out, .msg_iovlen = 2 };

	say("sends vectors", sendmsg(ends[0], &message, 0));
	message.msg_iov = in;
	say("gets vectors", recvmsg(ends[1], &message, 0));
	say("in order", memcmp(one, "abc", 3) + memcmp(two, "def", 3));
	message.msg_iovlen = 5000;
	say("too many", error_of(recvmsg(ends[1], &message, 0)));
}

static void ask(void)
{
	static const int options[] = { SO_TYPE, SO_ERROR, SO_DOMAIN, SO_PROTOCOL, SO_ACCEPTCONN };
	struct sockaddr_storage name = { 0 };
	socklen_t length = sizeof(name);
	int value = -1, file = open("/dev/null", O_RDWR);

	for (int i = 0; i < 5; i++) {
		socklen_t size = sizeof(value);

		getsockopt(ends[0], SOL_SOCKET, options[i], &value, &size);
		say("option", value);
	}
	say("no such option", error_of(getsockopt(ends[0], SOL_SOCKET, 9999, &value, &length)));
	say("name", getsockname(ends[0], (struct sockaddr *)&name, &length));
	say("length", length);
	say("family", name.ss_family);
	length = sizeof(name);
	say("the other's", getpeername(ends[0], (struct sockaddr *)&name, &length));
	say("no socket", error_of(send(file, "x", 1, 0)));
	close(file);
	say("no file", error_of(send(file, "x", 1, 0)));
	say("nowhere", error_of(send(ends[0], (void *)16, 4, 0)));
}

static long ready(int end)
{
	struct pollfd one = { end, POLLIN | POLLOUT | POLLRDHUP, 0 };

	poll(&one, 1, 0);
	return one.revents;
}

static void part_ways(void)
{
	char text[4];

	signal(SIGPIPE, SIG_IGN);
	say("ready", ready(ends[0]));
	say("how", error_of(shutdown(ends[0], 7)));
	send(ends[0], "x", 1, 0);
	say("half", shutdown(ends[0], SHUT_WR));
	say("what was sent", recv(ends[1], text, 4, 0));
	say("the end", recv(ends[1], text, 4, 0));
	say("no more", error_of(send(ends[0], "x", 1, 0)));
	say("back", send(ends[1], "yz", 2, 0));
	say("comes", recv(ends[0], text, 4, 0));
	say("ready", ready(ends[1]));
	say("all", shutdown(ends[0], SHUT_RDWR));
	say("broken", error_of(send(ends[1], "x", 1, MSG_NOSIGNAL)));
	say("read there", recv(ends[0], text, 4, 0));
	signal(SIGPIPE, SIG_DFL);
}

/* Without MSG_NOSIGNAL it is a signal. */
static void break_it(void)
{
	pid_t child;

	pair();
	child = fork();
	if (child == 0) {
		close(ends[1]);
		send(ends[0], "x", 1, MSG_NOSIGNAL);
		send(ends[0], "x", 1, 0);
		_exit(0);
	}
	close(ends[1]);
	say("SIGPIPE", end_of(child));
	close(ends[0]);
}

static void *receive(void *unused)
{
	char text[4];

	return (void *)error_of(recv(ends[0], text, 4, 0));
}

/* More than there is room for. */
static void *send_much(void *unused)
{
	static char much[1 << 20];
	long sent = error_of(send(ends[0], much, sizeof(much), MSG_NOSIGNAL));

	return (void *)(long)(sent > 0 && sent < (long)sizeof(much));
}

/* A shutdown ends a wait of another thread. */
static void end_waits(void)
{
	char text[4];
	void *result;

	pair();
	pthread_t thread = start(receive, NULL);

	rest(30);
	say("no more to receive", shutdown(ends[0], SHUT_RD));
	pthread_join(thread, &result);
	say("got", (long)result);
	say("refused", error_of(send(ends[1], "x", 1, MSG_NOSIGNAL)));
	leave();
	pair();
	send(ends[1], "ab", 2, 0);
	shutdown(ends[0], SHUT_RD);
	say("what was there", recv(ends[0], text, 4, 0));
	say("and then", recv(ends[0], text, 4, 0));
	thread = start(send_much, NULL);
	rest(30);
	say("no more to send", shutdown(ends[0], SHUT_WR));
	pthread_join(thread, &result);
	say("some", (long)result);
	leave();
}

void part_sockets(void)
{
	pair();
	talk();
	with_vectors();
	ask();
	part_ways();
	leave();
	break_it();
	end_waits();
}

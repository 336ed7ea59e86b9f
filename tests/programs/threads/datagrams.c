/* Datagrams: sockets of AF_UNIX whose messages arrive whole. */
#include "threads.h"

#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>

#define PATH "/tmp/threads.datagrams"

static long error_of(long result)
{
	return result < 0 ? -errno : result;
}

static socklen_t name_of(struct sockaddr_un *name, const char *path)
{
	*name = (struct sockaddr_un){ .sun_family = AF_UNIX };
	strcpy(name->sun_path, path);
	return offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1;
}

static long say_message(const char *what, int file, int flags)
{
	char text[64] = "";
	long length = error_of(recv(file, text, sizeof(text) - 1, flags | MSG_DONTWAIT));

	printf("%s %ld %s\n", what, length, text);
	return length;
}

static void pair(void)
{
	const struct iovec parts[] = { { "one ", 4 }, { "message", 7 } };
	struct msghdr message = { .msg_iov = (struct iovec *)parts, .msg_iovlen = 2 };
	int ends[2], type = 0;
	socklen_t size = sizeof(type);
	char two[2] = "", rest[3] = "";
	struct iovec into[] = { { two, 2 }, { rest, 2 } };

	say("pair", socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
	getsockopt(ends[0], SOL_SOCKET, SO_TYPE, &type, &size);
	say("type", type);
	say("write", write(ends[0], "first", 5));
	say("send", send(ends[0], "", 0, 0));
	say("sendmsg", sendmsg(ends[0], &message, 0));
	say_message("looked at", ends[1], MSG_PEEK);
	say_message("whole", ends[1], 0);
	say_message("empty", ends[1], 0);
	message.msg_iov = into;
	say("recvmsg", recvmsg(ends[1], &message, 0));
	printf("%.2s%.2s\n", two, rest);
	say("cut", message.msg_flags & MSG_TRUNC);
	say("its rest is gone", error_of(recv(ends[1], two, 2, MSG_DONTWAIT)));
	into[1] = (struct iovec){ rest, 0 };
	say("writev", error_of(writev(ends[0], parts, 2)));
	say("one message", say_message("it", ends[1], 0));
	write(ends[0], "12", 2);
	write(ends[0], "345", 3);
	into[0].iov_len = 1;
	into[1].iov_len = 2;
	say("readv", readv(ends[1], into, 2));
	say("the next", readv(ends[1], into, 2));
	printf("%.1s%.2s\n", two, rest);
	into[1].iov_len = -1;
	say("negative", error_of(readv(ends[1], into, 2)));
	say("an empty one", writev(ends[0], parts, 0));
	say("nothing", say_message("", ends[1], 0));
	write(ends[0], "long", 4);
	say("MSG_TRUNC", recv(ends[1], two, 1, MSG_TRUNC));
	write(ends[1], "back", 4);
	say_message("the other way", ends[0], 0);
	say("too long", error_of(send(ends[0], two, 1 << 28, 0)) < 0);
	say("nowhere", error_of(send(ends[0], (void *)16, 8, 0)));
	say("listen", error_of(listen(ends[0], 1)));
	say("accept", error_of(accept(ends[0], NULL, NULL)));
	close(ends[1]);
	say("nobody", error_of(send(ends[0], "x", 1, MSG_NOSIGNAL)) < 0);
	close(ends[0]);
}

static void *send_much(void *file)
{
	for (char i = 0; i < 100; i++)
		if (send(*(int *)file, &i, 1, 0) != 1)
			return (void *)1;
	return NULL;
}

static void *poll_for_room(void *file)
{
	struct pollfd writable = { *(int *)file, POLLOUT, 0 };

	return (void *)(long)poll(&writable, 1, 10000);
}

/* Who polls for room hears of it, also if the receiver's own peer is nobody. */
static void poll_until_room(int from, int to)
{
	void *ready;
	char byte;

	while (send(from, "x", 1, MSG_DONTWAIT) == 1)
		;
	pthread_t thread = start(poll_for_room, &from);

	rest(20);
	recv(to, &byte, 1, 0);
	pthread_join(thread, &ready);
	say("room", (long)ready);
	while (recv(to, &byte, 1, MSG_DONTWAIT) == 1)
		;
}

/* A sender waits for room, and no message is lost. */
static void wait_for_room(int from, int to)
{
	struct pollfd writable = { from, POLLOUT, 0 }, readable = { to, POLLIN, 0 };
	char got = 0, wrong = 0;
	int sent = 0;

	say("nothing", poll(&readable, 1, 0));
	say("room", poll(&writable, 1, 0));
	while (send(from, "x", 1, MSG_DONTWAIT) == 1)
		sent++;
	say("full", errno);
	say("no room", poll(&writable, 1, 0));
	say("something", poll(&readable, 1, 0));
	while (sent-- > 0)
		recv(to, &got, 1, 0);
	pthread_t thread = start(send_much, &from);

	rest(30);
	for (char i = 0; i < 100; i++)
		wrong += recv(to, &got, 1, 0) != 1 || got != i;
	say("wrong", wrong);
	void *failed;

	pthread_join(thread, &failed);
	say("failed", failed != NULL);
	poll_until_room(from, to);
}

static void *receive_late(void *file)
{
	char text[8] = "";

	rest(20);
	say("received", recv(*(int *)file, text, sizeof(text), 0));
	return NULL;
}

static void names(void)
{
	int server = socket(AF_UNIX, SOCK_DGRAM, 0), client = socket(AF_UNIX, SOCK_DGRAM, 0);
	int third = socket(AF_UNIX, SOCK_DGRAM, 0), stream = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un to, own, from;
	socklen_t length = name_of(&to, PATH), own_length = name_of(&own, PATH ".client");
	socklen_t size = sizeof(from);
	char text[16];
	struct iovec into = { text, sizeof(text) };
	struct msghdr message = { .msg_name = &from, .msg_iov = &into, .msg_iovlen = 1 };

	say("not bound", error_of(sendto(client, "x", 1, 0, (void *)&to, length)));
	say("bind", bind(server, (void *)&to, length));
	say("again", error_of(bind(third, (void *)&to, length)));
	say("stream", error_of(connect(stream, (void *)&to, length)));
	say("to nobody", error_of(send(client, "x", 1, 0)));
	say("sendto", sendto(client, "anonymous", 9, 0, (void *)&to, length));
	say("recvfrom", recvfrom(server, text, sizeof(text), 0, (void *)&from, &size));
	say("no name", size);
	say("bind", bind(client, (void *)&own, own_length));
	say("connect", connect(client, (void *)&to, length));
	say("send", send(client, "named", 5, 0));
	size = sizeof(from);
	recvfrom(server, text, sizeof(text), 0, (void *)&from, &size);
	say("name", strcmp(from.sun_path, own.sun_path));
	size = sizeof(from);
	send(client, "by recvmsg", 10, 0);
	memset(&from, 0, sizeof(from));
	message.msg_namelen = sizeof(from);
	say("recvmsg", recvmsg(server, &message, 0));
	say("name", strcmp(from.sun_path, own.sun_path));
	say("its size", message.msg_namelen);
	say("no control data", message.msg_controllen);
	size = sizeof(from);
	say("peer", getpeername(client, (void *)&from, &size));
	say("its name", strcmp(from.sun_path, to.sun_path));
	say("answer", sendto(server, "ok", 2, 0, (void *)&own, own_length));
	say_message("answered", client, 0);
	say("a third", error_of(sendto(third, "x", 1, 0, (void *)&own, own_length)));
	wait_for_room(client, server);
	pthread_t thread = start(receive_late, &server);

	send(client, "late", 4, 0);
	pthread_join(thread, NULL);
	close(server);
	say("closed", error_of(send(client, "x", 1, 0)) < 0);
	say("refused", error_of(sendto(third, "x", 1, 0, (void *)&to, length)));
	close(client);
	close(third);
	close(stream);
	unlink(PATH);
	unlink(PATH ".client");
}

/* A file goes with the message that names it. A receiver that has no memory for it, or does not
 * ask, loses it. */
static void with_files(int type)
{
	int ends[2], pipes[2];
	char control[64], byte = 0;
	struct iovec into = { &byte, 1 };
	struct msghdr message = { .msg_iov = &into, .msg_iovlen = 1 };

	socketpair(AF_UNIX, type, 0, ends);
	(void)!pipe(pipes);
	for (int i = 0; i < 3; i++)
		say("sent", send_control(ends[0], SCM_RIGHTS, &pipes[1], 4, 4));
	message.msg_control = control;
	message.msg_controllen = sizeof(control);
	say("received", error_of(recvmsg(ends[1], &message, 0)));
	const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	int file = header ? *(const int *)CMSG_DATA(header) : -1;

	say("length", message.msg_controllen);
	say("through it", error_of(write(file, "x", 1)));
	say("arrived", read(pipes[0], &byte, 1));
	close(file);
	message.msg_controllen = 4;
	say("cut", error_of(recvmsg(ends[1], &message, 0)));
	say("flags", message.msg_flags & MSG_CTRUNC);
	say("not asked for", error_of(recv(ends[1], &byte, 1, 0)));
	close(pipes[1]);
	say("all gone", read(pipes[0], &byte, 1));
	close(pipes[0]);
	close(ends[0]);
	close(ends[1]);
}

/* The second page of the buffer is not there. */
static void half_a_buffer(int type)
{
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ends[2];

	munmap(pages + 4096, 4096);
	socketpair(AF_UNIX, type, 0, ends);
	say("half", error_of(write(ends[0], pages, 8192)));
	say("nothing was sent", error_of(recv(ends[1], pages, 4096, MSG_DONTWAIT)));
	say("sent", error_of(write(ends[0], "0123456789", 10)));
	say("half", error_of(read(ends[1], pages + 4090, 10)));
	munmap(pages, 4096);
	close(ends[0]);
	close(ends[1]);
}

void part_datagrams(void)
{
	pair();
	with_files(SOCK_DGRAM);
	with_files(SOCK_STREAM);
	half_a_buffer(SOCK_DGRAM);
	half_a_buffer(SOCK_STREAM);
	names();
	say("other kinds", error_of(socket(AF_UNIX, 9, 0)));
}

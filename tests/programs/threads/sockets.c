/* Sockets: their own calls, by which two processes or threads talk, names, files that are sent. */
#include "threads.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>

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
	close(ends[1]);
	child = fork();
	if (child == 0) {
		send(ends[0], "x", 1, MSG_NOSIGNAL);
		send(ends[0], "x", 1, 0);
		_exit(0);
	}
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

static const struct sockaddr_un place = { AF_UNIX, "/tmp/threads-socket" };

static long join(int socket)
{
	return error_of(connect(socket, (struct sockaddr *)&place, sizeof(place)));
}

static void *connect_later(void *socket)
{
	rest(30);
	return (void *)join((int)(intptr_t)socket);
}

/* A server by a path; who comes when the queue is full waits. */
static void names(void)
{
	int server = socket(AF_UNIX, SOCK_STREAM, 0), clients[3], end;
	struct sockaddr_un name;
	socklen_t length = sizeof(name);
	struct stat state;
	void *result;

	for (int i = 0; i < 3; i++)
		clients[i] = socket(AF_UNIX, SOCK_STREAM, 0);
	unlink(place.sun_path);
	say("nobody", join(clients[0]));
	say("family", error_of(socket(77, SOCK_STREAM, 0)));
	say("bind", bind(server, (struct sockaddr *)&place, sizeof(place)));
	say("bind again", error_of(bind(server, (struct sockaddr *)&place, sizeof(place))));
	say("taken", error_of(bind(clients[0], (struct sockaddr *)&place, sizeof(place))));
	say("nowhere", error_of(bind(clients[0], (void *)16, 10)));
	say("type", stat(place.sun_path, &state) || !S_ISSOCK(state.st_mode));
	say("open", error_of(open(place.sun_path, O_RDWR)));
	say("does not listen", join(clients[0]) - error_of(accept(server, NULL, NULL)));
	say("listen", listen(server, 0));
	say("nobody came", ready(server));
	say("connect", join(clients[0]));
	say("somebody came", ready(server));
	pthread_t thread = start(connect_later, (void *)(intptr_t)clients[1]);

	rest(60);
	end = accept(server, (struct sockaddr *)&name, &length);
	say("no name", length);
	length = sizeof(name);
	pthread_join(thread, &result);
	say("waited", (long)result);
	say("server's name", getsockname(end, (struct sockaddr *)&name, &length));
	say("length", length - strlen(place.sun_path));
	say("nowhere", error_of(accept(server, (void *)16, &length)));
	say("send", send(clients[0], "word", 4, 0));
	say("receive", recv(end, &name, 9, 0));
	say("not connected", error_of(send(clients[2], "x", 1, MSG_NOSIGNAL)));
	fcntl(server, F_SETFL, O_NONBLOCK);
	say("nobody", error_of(accept(server, NULL, NULL)));
	join(clients[2]);
	close(server);
	say("sent away", recv(clients[2], &name, 1, 0) > 0);
	say("gone", join(socket(AF_UNIX, SOCK_STREAM, 0)));
	unlink(place.sun_path);
	close(end);
	for (int i = 0; i < 3; i++)
		close(clients[i]);
}

long send_control(int end, int type, const void *data, size_t size, size_t length)
{
	char control[CMSG_SPACE(64)] = { 0 };
	struct iovec byte = { "b", 1 };
	struct msghdr message = { .msg_iov = &byte,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = CMSG_SPACE(size) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	*header = (struct cmsghdr){ CMSG_LEN(length), SOL_SOCKET, type };
	memcpy(CMSG_DATA(header), data, size);
	return error_of(sendmsg(end, &message, 0));
}

/* A message of one byte, with a descriptor. */
static long send_file(int end, int file)
{
	return send_control(end, SCM_RIGHTS, &file, sizeof(file), sizeof(file));
}

/* Its descriptor, or -1. */
static int take_file(int end, size_t room)
{
	char control[64], byte;
	struct iovec vector = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &vector, .msg_iovlen = 1, .msg_control = control, .msg_controllen = room
	};
	int file = -1;

	recvmsg(end, &message, 0);
	if (message.msg_controllen >= CMSG_LEN(sizeof(int)))
		memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(file));
	say("flags", message.msg_flags);
	return file;
}

/* What is sent stays open until it is received, or until nobody can receive it. */
static void files(void)
{
	int ways[2], got;
	char text[8] = "";

	pair();
	say("pipe", pipe(ways));
	say("send", send_file(ends[0], ways[1]));
	close(ways[1]);
	got = take_file(ends[1], 64);
	say("write", write(got, "text", 4));
	close(got);
	say("read", read(ways[0], text, 8));
	say("end", read(ways[0], text, 8));
	say("none", send_file(ends[0], 99));
	close(ways[0]);
	say("pipe", pipe(ways));
	send_file(ends[0], ways[1]);
	close(ways[1]);
	say("no room", take_file(ends[1], 0));
	say("end", read(ways[0], text, 8));
	close(ways[0]);
	say("pipe", pipe(ways));
	send_file(ends[0], ways[1]);
	close(ways[1]);
	leave();
	say("end", read(ways[0], text, 8));
	close(ways[0]);
}

static void signals(void)
{
	struct signalfd_siginfo info = { 0 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	int file = signalfd(-1, &set, SFD_NONBLOCK);

	say("none", error_of(read(file, &info, sizeof(info))));
	say("ready", ready(file));
	kill(getpid(), SIGUSR1);
	say("ready", ready(file));
	say("short", error_of(read(file, &info, 100)));
	say("read", read(file, &info, sizeof(info)));
	say("signal", info.ssi_signo == SIGUSR1 && info.ssi_pid == (uint32_t)getpid());
	say("nowhere", error_of(syscall(SYS_signalfd4, -1, (void *)16, 8, 0)));
	say("nowhere", error_of(syscall(SYS_signalfd, -1, (void *)16, 8)));
	say("no signalfd", error_of(signalfd(0, &set, 0)));
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	close(file);
}

static void nameless(void)
{
	int file = memfd_create("name", MFD_CLOEXEC);
	struct stat state;

	say("truncate", ftruncate(file, 5000));
	char *shared = mmap(NULL, 5000, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	shared[4999] = 'x';
	say("write", pwrite(file, "y", 1, 4998));
	say("one memory", shared[4998] * 1000 + shared[4999]);
	say("state", fstat(file, &state) + (long)state.st_size + (long)state.st_nlink);
	say("flags", error_of(memfd_create("name", 0x100)));
	say("nowhere", error_of(memfd_create((void *)16, 0)));
	close(file);
	shared[0] = 'z';
	munmap(shared, 5000);
}

/* The lines of /proc/net/unix with such a name and state, without the two numbers that are each
 * kernel's: a line's place is, too. */
static void list(const char *name, unsigned wanted)
{
	FILE *file = fopen("/proc/net/unix", "r");
	char line[256], path[128];
	unsigned references, protocol, flags, type, state;

	while (fgets(line, sizeof(line), file)) {
		path[0] = '\0';
		sscanf(line, "%*[^:]: %x %x %x %x %x %*u %127s", &references, &protocol, &flags,
		       &type, &state, path);
		if (strncmp(path, name, strlen(name)) == 0 && state == wanted)
			printf("%08X %08X %08X %04X %02X %s\n", references, protocol, flags, type,
			       state, path);
		else if (strncmp(line, "Num", 3) == 0)
			printf("%s", strstr(line, "RefCount"));
	}
	fflush(stdout);
	fclose(file);
}

static void listed(void)
{
	struct sockaddr_un path = { AF_UNIX, "/dev/shm/listed" }, other = { AF_UNIX, "\0lis\0ted" };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
	int datagram = socket(AF_UNIX, SOCK_DGRAM, 0);

	unlink(path.sun_path);
	bind(listener, (struct sockaddr *)&path, sizeof(path));
	list("/dev/shm/listed", 1);
	listen(listener, 3);
	list("/dev/shm/listed", 1);
	connect(client, (struct sockaddr *)&path, sizeof(path));
	int accepted = accept(listener, NULL, NULL);

	list("/dev/shm/listed", 1);
	list("/dev/shm/listed", 3);
	bind(datagram, (struct sockaddr *)&other, sizeof(other.sun_family) + 8);
	list("@lis", 1);
	close(datagram);
	list("@lis", 1);
	close(listener);
	close(client);
	close(accepted);
	list("/dev/shm/listed", 1);
	unlink(path.sun_path);
}

void part_sockets(void)
{
	listed();
	names();
	files();
	signals();
	nameless();
	pair();
	talk();
	with_vectors();
	ask();
	part_ways();
	leave();
	break_it();
	end_waits();
}

/* Who has sent what came through a socket (SO_PASSCRED), and receivers that want all of it, or only
 * look at it. */
#include "threads.h"

#include <sys/socket.h>

static int ends[2];

static long error_of(long result)
{
	return result < 0 ? -errno : result;
}

/* A byte with credentials of this process, or of another pid; with `length` bytes of them. */
static long send_as(pid_t pid, int type, size_t length)
{
	const struct ucred sender = { pid, getuid(), getgid() };

	return send_control(ends[0], type, &sender, sizeof(sender), length);
}

/* Takes a byte, and says who has sent it. */
static void take(const char *what, pid_t expected, size_t room)
{
	char control[128], byte;
	struct iovec vector = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &vector, .msg_iovlen = 1, .msg_control = control, .msg_controllen = room
	};
	struct ucred sender = { 0 };

	printf("%s %ld", what, error_of(recvmsg(ends[1], &message, 0)));
	printf(" flags %d in place %d", message.msg_flags, message.msg_control == control);
	for (struct cmsghdr *each = CMSG_FIRSTHDR(&message); each;
	     each = CMSG_NXTHDR(&message, each)) {
		printf(" type %d length %d", each->cmsg_type, (int)each->cmsg_len);
		if (each->cmsg_type != SCM_CREDENTIALS)
			continue;
		memcpy(&sender, CMSG_DATA(each), sizeof(sender));
		printf(" right %d",
		       sender.pid == expected && sender.uid == getuid() && sender.gid == getgid());
	}
	printf("\n");
}

static void of_kind(int type)
{
	const int yes = 1;
	int set = 0;
	socklen_t size = sizeof(set);

	socketpair(AF_UNIX, type, 0, ends);
	send_as(getpid(), SCM_CREDENTIALS, sizeof(struct ucred));
	take("not asked for", getpid(), 128);
	say("set", setsockopt(ends[1], SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)));
	getsockopt(ends[1], SOL_SOCKET, SO_PASSCRED, &set, &size);
	say("is set", set);
	say("said", send_as(getpid(), SCM_CREDENTIALS, sizeof(struct ucred)));
	take("taken", getpid(), 128);
	say("short", send_as(getpid(), SCM_CREDENTIALS, 4));
	say("unknown", send_as(getpid(), 77, sizeof(struct ucred)) < 0);
	say("write", write(ends[0], "x", 1));
	take("not said", getpid(), 128);
	write(ends[0], "x", 1);
	take("no room", getpid(), 8);
	pid_t child = fork();

	if (child == 0)
		_exit(send(ends[0], "y", 1, 0));
	say("child", end_of(child));
	take("by a child", child, 128);
}

static void *send_slowly(void *unused)
{
	for (int i = 0; i < 5; i++) {
		rest(5);
		(void)!write(ends[0], "ab", 2);
	}
	return NULL;
}

/* What is looked at is still there. */
static void look(void)
{
	static char much[10000], seen[10000];

	say("empty", error_of(recv(ends[1], seen, 5, MSG_PEEK | MSG_DONTWAIT)));
	memset(much, 'm', sizeof(much));
	much[9999] = 'e';
	write(ends[0], "hello", 5);
	write(ends[0], much, sizeof(much));
	say("some", recv(ends[1], seen, 3, MSG_PEEK));
	printf("%.3s\n", seen);
	read(ends[1], seen, 1);
	say("over pages", recv(ends[1], seen, sizeof(seen), MSG_PEEK | MSG_WAITALL));
	printf("%.5s\n", seen);
	say("nowhere", error_of(recv(ends[1], (void *)16, 4, MSG_PEEK)));
	say("all", recv(ends[1], seen, 4, 0) + recv(ends[1], seen, sizeof(seen), MSG_WAITALL));
	say("the same", memcmp(much, seen, sizeof(much)));
}

void part_credentials(void)
{
	char text[10];

	of_kind(SOCK_DGRAM);
	close(ends[0]);
	close(ends[1]);
	of_kind(SOCK_STREAM);
	look();
	pthread_t thread = start(send_slowly, NULL);

	say("all of it", recv(ends[1], text, sizeof(text), MSG_WAITALL));
	pthread_join(thread, NULL);
	write(ends[0], "few", 3);
	say("what is there", recv(ends[1], text, sizeof(text), MSG_WAITALL | MSG_DONTWAIT));
	write(ends[0], "last", 4);
	close(ends[0]);
	say("looked at", recv(ends[1], text, 1, MSG_PEEK));
	say("until the end", recv(ends[1], text, sizeof(text), MSG_WAITALL));
	say("the end", recv(ends[1], text, 1, MSG_PEEK));
	close(ends[1]);
}

/* sendfile: to what is full, its offsets, and its errors. */
#include "threads.h"

#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#define BYTES 300000

static long error_of(long result)
{
	return result < 0 ? -errno : result;
}

static int source(int flags)
{
	static char bytes[BYTES];
	int file = memfd_create("source", 0);
	char path[64];

	for (int i = 0; i < BYTES; i++)
		bytes[i] = i * 7;
	(void)!write(file, bytes, BYTES);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	int again = open(path, flags);

	close(file);
	return again;
}

/* A pipe takes what fits, and then nothing; the offset is where the next call goes on. */
static void full_pipe(void)
{
	int pipes[2], from = source(O_RDONLY);
	off_t offset = 10000;
	char byte;

	(void)!pipe2(pipes, O_NONBLOCK);
	fcntl(pipes[1], F_SETPIPE_SZ, 65536);
	long sent = error_of(sendfile(pipes[1], from, &offset, BYTES));

	say("sent", sent > 0 && sent <= 65536);
	say("offset", offset == 10000 + sent);
	sent = offset;
	say("full", error_of(sendfile(pipes[1], from, &offset, BYTES)));
	say("offset", offset == sent);
	say("full", error_of(sendfile(pipes[1], from, NULL, BYTES)));
	say("own offset", lseek(from, 0, SEEK_CUR));
	(void)!read(pipes[0], &byte, 1);
	say("byte", byte == (char)(10000 * 7));
	close(pipes[0]);
	signal(SIGPIPE, SIG_IGN);
	say("broken", error_of(sendfile(pipes[1], from, &offset, 1)));
	signal(SIGPIPE, SIG_DFL);
	close(pipes[1]);
	close(from);
}

static void full_socket(int type)
{
	int pair[2], from = source(O_RDONLY);
	off_t offset = 5;
	static char bytes[1000];

	socketpair(AF_UNIX, type | SOCK_NONBLOCK, 0, pair);
	while (write(pair[0], bytes, sizeof(bytes)) > 0)
		;
	while (write(pair[0], bytes, 1) > 0)
		;
	say("full", error_of(sendfile(pair[0], from, &offset, 10)));
	say("offset", offset);
	while (read(pair[1], bytes, sizeof(bytes)) > 0)
		;
	say("room", error_of(sendfile(pair[0], from, &offset, 10)));
	say("offset", offset);
	say("arrived", error_of(read(pair[1], bytes, sizeof(bytes))));
	say("first", bytes[0]);
	close(pair[0]);
	close(pair[1]);
	close(from);
}

/* The offset is read first, and stored whatever happens. */
static void offsets(void)
{
	int from = source(O_RDONLY), to = memfd_create("to", 0), pipes[2];
	char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	off_t offset = BYTES - 3;
	off64_t wide = -1;

	(void)!pipe(pipes);
	say("end", error_of(sendfile(to, from, &offset, 100)));
	say("offset", offset);
	say("beyond", error_of(sendfile(to, from, &offset, 100)));
	say("read-only", error_of(sendfile(to, from, (off_t *)page, 1)));
	say("nothing", error_of(sendfile(to, from, (off_t *)page, 0)));
	say("nowhere", error_of(sendfile(99, 98, (off_t *)16, 1)));
	say("no file", error_of(sendfile(to, 99, &offset, 1)));
	say("no target", error_of(sendfile(99, from, &offset, 1)));
	say("pipe", error_of(sendfile(to, pipes[0], &offset, 1)));
	say("negative", error_of(sendfile64(to, from, &wide, 1)));
	offset = -1;
	say("negative", error_of(sendfile(to, from, &offset, 1)));
	offset = INT32_MAX;
	say("most", error_of(sendfile(to, from, &offset, 1)));
	wide = 1ll << 40;
	say("wide", error_of(sendfile64(to, from, &wide, 1)));
	wide = 7;
	say("wide", error_of(sendfile64(to, from, &wide, 100000)));
	say("offset", wide);
	say("own", error_of(sendfile(to, from, NULL, 50000)));
	say("own", lseek(from, 0, SEEK_CUR));
	say("size", lseek(to, 0, SEEK_END));
	fcntl(to, F_SETFL, O_APPEND);
	say("appends", error_of(sendfile(to, from, NULL, 1)));
	close(to);
	to = source(O_WRONLY);
	say("not to read", error_of(sendfile(from, to, NULL, 1)));
	say("not to read", error_of(sendfile(to, to, NULL, 1)));
	munmap(page, 4096);
	close(from);
	close(to);
	close(pipes[0]);
	close(pipes[1]);
}

/* ---- flags and times of open files ---- */

/* F_SETFL with O_ASYNC is taken by what can be waited for. */
static void asynchronous(void)
{
	int pair[2], pipes[2], file = memfd_create("file", 0);

	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	(void)!pipe(pipes);
	say("socket", error_of(fcntl(pair[0], F_SETFL, O_ASYNC | O_NONBLOCK)));
	say("flags", fcntl(pair[0], F_GETFL));
	say("off", error_of(fcntl(pair[0], F_SETFL, 0)));
	say("flags", fcntl(pair[0], F_GETFL));
	say("pipe", error_of(fcntl(pipes[0], F_SETFL, O_ASYNC)));
	say("flags", fcntl(pipes[0], F_GETFL));
	say("file", error_of(fcntl(file, F_SETFL, O_ASYNC)));
	say("flags", fcntl(file, F_GETFL) & O_ASYNC);
	for (int i = 0; i < 2; i++)
		close(pair[i]), close(pipes[i]);
	close(file);
}

/* Without a path the calls set the times of the descriptor's own file. */
static void times(void)
{
	struct timeval both[2] = { { 1000, 0 }, { 2000, 0 } };
	int file = memfd_create("file", 0);
	struct timespec now[2] = { { 0, UTIME_NOW }, { 0, UTIME_NOW } };

	say("own", error_of(syscall(SYS_futimesat, file, NULL, both)));
	say("microseconds",
	    (both[0].tv_usec = 1000000, error_of(syscall(SYS_futimesat, file, NULL, both))));
	say("no path", error_of(syscall(SYS_futimesat, AT_FDCWD, NULL, NULL)));
	say("no path", error_of(syscall(SYS_utimensat, AT_FDCWD, NULL, now, 0)));
	say("no file", error_of(syscall(SYS_futimesat, 99, NULL, NULL)));
	say("empty path", error_of(syscall(SYS_futimesat, AT_FDCWD, "", NULL)));
	say("nowhere", error_of(syscall(SYS_futimesat, file, NULL, 16)));
	close(file);
}

void part_sends(void)
{
	full_pipe();
	full_socket(SOCK_STREAM);
	full_socket(SOCK_DGRAM);
	offsets();
	asynchronous();
	times();
}

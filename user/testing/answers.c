/*
 * answers: what Linux's calls answer where its own test project asks: at limits, with arguments
 * that are nearly right, with files that are not of the kind that a call is for. On Linux all are
 * ok.
 */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "kernel/abi/socket.h"
#include "user/testing/checks.h"

#define FOLDER "/tmp/answers"
#define FILE_A FOLDER "/a"
#define FILE_B FOLDER "/b"

#define CALL_fcntl	55
#define CALL_flock	143
#define CALL_readahead	225
#define CALL_statfs64	268
#define CALL_mknod	14
#define CALL_readlinkat 305
#define CALL_ppoll	309
#define CALL_utimensat	320
#define CALL_pipe2	331
#define CALL_socket	359
#define CALL_socketpair 360
#define CALL_connect	362
#define CALL_getsockopt 365
#define CALL_setsockopt 366
#define CALL_sendto	369
#define CALL_sendmsg	370
#define CALL_recvfrom	371

#define LIMIT_FILES    7
#define NO_FLAG	       0x40000000 /* of open: no kernel knows it */
#define DIRECT	       040000
#define GET_FLAGS      3 /* fcntl's commands */
#define SET_FLAGS      4
#define SET_OWNER      8
#define PIPE_SIZE      1031
#define LOCK_SHARED    1 /* flock's */
#define LOCK_ALONE_NOW 6
#define HOW_MANY       0x541b /* ioctl's FIONREAD */
#define SETTINGS       0x5401 /* TCGETS */
#define STATFS_SIZE    84

#define ask(number, ...) syscall(number, __VA_ARGS__, 0, 0, 0, 0, 0)

/* ---- files ---- */

static int make(const char *path)
{
	return open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
}

static bool no_file_without_a_number(void)
{
	unlink(FILE_B);
	limit(LIMIT_FILES, 16);
	while (dup(0) >= 0)
		;
	return errno == EMFILE && fails(open(FILE_B, O_RDWR | O_CREAT, 0600), EMFILE) &&
	       fails(open(FOLDER "/none", O_RDONLY), EMFILE) && fails(access(FILE_B, F_OK), ENOENT);
}

static bool an_empty_path_is_no_link(void)
{
	char target[8];
	int folder = open(FOLDER, O_RDONLY);

	return fails(readlink("", target, 8), ENOENT) &&
	       fails(ask(CALL_readlinkat, folder, "", target, 8), ENOENT) &&
	       fails(readlink(FOLDER, target, 8), EINVAL);
}

static bool flags_are_those_of_open(void)
{
	int file = open(FILE_A, O_RDWR | O_CREAT | NO_FLAG, 0600), ends[2];

	return file >= 0 && !(ask(CALL_fcntl, file, GET_FLAGS) & NO_FLAG) && pipe(ends) == 0 &&
	       fails(ask(CALL_fcntl, open(FOLDER, O_RDONLY), SET_FLAGS, DIRECT), EINVAL) &&
	       fails(ask(CALL_fcntl, file, SET_OWNER, INT_MIN), EINVAL) &&
	       fails(ask(CALL_fcntl, ends[0], PIPE_SIZE, -1), EINVAL);
}

static bool only_pages_are_read_ahead(void)
{
	int file = make(FILE_A), ends[2];

	return pipe(ends) == 0 && ask(CALL_readahead, file, 0, 0, 10) == 0 &&
	       fails(ask(CALL_readahead, open(FILE_A, O_WRONLY), 0, 0, 10), EBADF) &&
	       fails(ask(CALL_readahead, open(FOLDER, O_RDONLY), 0, 0, 10), EINVAL) &&
	       fails(ask(CALL_readahead, ends[0], 0, 0, 10), EINVAL);
}

static bool a_file_says_what_is_left(void)
{
	int file = make(FILE_A), left = 0;

	return write(file, "12345", 5) == 5 && lseek(file, 2, SEEK_SET) == 2 &&
	       ioctl(file, HOW_MANY, &left) == 0 && left == 3;
}

static bool writes_stay_apart_or_cannot(void)
{
	char bytes[8];
	int ends[2];

	if (ask(CALL_pipe2, ends, DIRECT) < 0)
		return errno == EINVAL;
	return write(ends[1], "abc", 3) == 3 && write(ends[1], "de", 2) == 2 &&
	       read(ends[0], bytes, 8) == 3;
}

/* Two have it, and the second wants it alone: it has lost its lock when that fails. */
static bool a_lock_is_lost_on_the_way(void)
{
	int first = make(FILE_A), second = open(FILE_A, O_RDONLY);

	return ask(CALL_flock, first, LOCK_SHARED) == 0 &&
	       ask(CALL_flock, second, LOCK_SHARED) == 0 &&
	       fails(ask(CALL_flock, second, LOCK_ALONE_NOW), EAGAIN) &&
	       ask(CALL_flock, first, LOCK_ALONE_NOW) == 0;
}

static bool sizes_and_flags_are_right(void)
{
	char room[STATFS_SIZE + 8];

	return ask(CALL_statfs64, "/", STATFS_SIZE, room) == 0 &&
	       fails(ask(CALL_statfs64, "/", STATFS_SIZE - 4, room), EINVAL) &&
	       fails(ask(CALL_utimensat, AT_FDCWD, NULL, NULL, 0), EFAULT) &&
	       fails(ask(CALL_utimensat, make(FILE_A), NULL, NULL, 0x100), EINVAL) &&
	       fails(ask(CALL_ppoll, NULL, 0, NULL, room, 4), EINVAL);
}

static short ready(int file)
{
	struct pollfd one = { file, POLLIN, 0 };

	return poll(&one, 1, 0) >= 0 ? one.revents : -1;
}

/* No writer has come yet: that is not one who has gone. */
static bool a_fifo_waits_for_its_first_writer(void)
{
	int reader, writer;

	unlink(FILE_B);
	ask(CALL_mknod, FILE_B, S_IFIFO | 0600, 0);
	reader = open(FILE_B, O_RDONLY | O_NONBLOCK);
	if (reader < 0 || ready(reader) != 0)
		return false;
	writer = open(FILE_B, O_WRONLY);
	return ready(reader) == 0 && close(writer) == 0 && ready(reader) == POLLHUP;
}

/* ---- sockets ---- */

static bool sockets_are_no_terminals(void)
{
	char settings[64];
	int each = ask(CALL_socket, 1, SOCK_STREAM, 0), bytes = 9, ends[2];

	return fails(ioctl(each, SETTINGS, settings), ENOTTY) &&
	       ask(CALL_socketpair, 1, SOCK_STREAM, 0, ends) == 0 &&
	       fails(ioctl(ends[0], SETTINGS, settings), ENOTTY) &&
	       ioctl(ends[0], HOW_MANY, &bytes) == 0 && bytes == 0;
}

static bool options_have_a_length(void)
{
	int each = ask(CALL_socket, 1, SOCK_STREAM, 0), type = 0, room = 2;

	return ask(CALL_getsockopt, each, SOL_SOCKET, SO_TYPE, &type, &room) == 0 && room == 2 &&
	       type == SOCK_STREAM &&
	       fails(ask(CALL_getsockopt, each, 6, 1, &type, &room), EOPNOTSUPP) &&
	       fails(ask(CALL_setsockopt, each, 6, 1, &type, 4), EOPNOTSUPP) &&
	       fails(ask(CALL_setsockopt, each, SOL_SOCKET, 16, &type, -1), EINVAL);
}

/* A stream goes to the other end; what control data says to another protocol is not its own. */
static bool streams_need_no_address(void)
{
	static const struct {
		unsigned short family;
		char path[6];
	} name = { 1, "/none" };
	const int control[] = { 16, 0, 1, 0 };
	const struct {
		const char *base;
		unsigned length;
	} part = { "x", 1 };
	const uint32_t message[] = { 0, 0, (uintptr_t)&part, 1, (uintptr_t)control, 16, 0 };
	int ends[2];

	return ask(CALL_socketpair, 1, SOCK_STREAM, 0, ends) == 0 &&
	       fails(ask(CALL_sendto, ends[0], "x", 1, 0, &name, sizeof(name)), EISCONN) &&
	       ask(CALL_sendmsg, ends[0], message, 0) == 1;
}

static bool a_datagram_stays_for_who_wants_nothing(void)
{
	char bytes[8];
	int ends[2], length = 0;

	return ask(CALL_socketpair, 1, SOCK_DGRAM, 0, ends) == 0 && write(ends[0], "abc", 3) == 3 &&
	       ioctl(ends[1], HOW_MANY, &length) == 0 && length == 3 &&
	       read(ends[1], bytes, 0) == 0 &&
	       ask(CALL_recvfrom, ends[1], bytes, 8, MSG_DONTWAIT, NULL, NULL) == 3;
}

static bool no_family_ends_a_peer(void)
{
	const unsigned short none[2] = { 0, 0 };
	int ends[2];

	return ask(CALL_socketpair, 1, SOCK_DGRAM, 0, ends) == 0 && write(ends[0], "a", 1) == 1 &&
	       ask(CALL_connect, ends[0], none, 2) == 0 && fails(write(ends[0], "a", 1), ENOTCONN);
}

static const struct check checks[] = {
	{ "no file without a number", no_file_without_a_number },
	{ "an empty path is no link", an_empty_path_is_no_link },
	{ "flags are those of open", flags_are_those_of_open },
	{ "only pages are read ahead", only_pages_are_read_ahead },
	{ "a file says what is left", a_file_says_what_is_left },
	{ "writes stay apart, or cannot", writes_stay_apart_or_cannot },
	{ "a lock is lost on the way to another", a_lock_is_lost_on_the_way },
	{ "sizes and flags are right", sizes_and_flags_are_right },
	{ "a FIFO waits for its first writer", a_fifo_waits_for_its_first_writer },
	{ "sockets are no terminals", sockets_are_no_terminals },
	{ "options have a length", options_have_a_length },
	{ "streams need no address", streams_need_no_address },
	{ "a datagram stays for who wants nothing", a_datagram_stays_for_who_wants_nothing },
	{ "no family ends a peer", no_family_ends_a_peer },
};

int main(void)
{
	return check_all_in(FOLDER, checks, sizeof(checks) / sizeof(checks[0]));
}

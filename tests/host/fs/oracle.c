/* The host's own file system. It uses the host's headers, and so shares no constants with ours. */
#include "tests/host/fs/oracle.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[] = "oracle-XXXXXX";
static char start[PATH_MAX];
static char base[PATH_MAX];

static void require(int result, const char *what)
{
	if (result >= 0)
		return;
	perror(what);
	exit(EXIT_FAILURE);
}

const char *oracle_begin(void)
{
	char *resolved;

	umask(022);
	require(getcwd(start, sizeof(start)) ? 0 : -1, "getcwd");
	require(mkdtemp(top) ? 0 : -1, top);
	require(chdir(top), top);
	for (int i = 0; i < 6; i++) {
		require(mkdir("deep", 0755), "deep");
		require(chdir("deep"), "deep");
	}
	resolved = getcwd(base, sizeof(base));
	require(resolved ? 0 : -1, "getcwd");
	return base;
}

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *where)
{
	(void)stat, (void)type, (void)where;
	return remove(path);
}

void oracle_end(void)
{
	require(chdir(start), start);
	require(nftw(top, remove_one, 20, FTW_DEPTH | FTW_PHYS), top);
}

static int open_close(const char *path, int flags, const char *text)
{
	int descriptor = open(path, flags, 0644);

	if (descriptor < 0)
		return -1;
	if (text && write(descriptor, text, strlen(text)) < 0)
		return -1;
	return close(descriptor);
}

static int look(const char *path, int (*stat_function)(const char *, struct stat *),
		struct outcome *outcome)
{
	struct stat stat;

	if (stat_function(path, &stat) < 0)
		return -1;
	outcome->type = stat.st_mode >> 12;
	outcome->links = S_ISDIR(stat.st_mode) ? 0 : stat.st_nlink;
	outcome->size = S_ISDIR(stat.st_mode) ? 0 : stat.st_size;
	return 0;
}

static int perform(enum operation operation, const char *first, const char *second,
		   struct outcome *outcome)
{
	switch (operation) {
	case MAKE:
		return open_close(first, O_CREAT | O_RDWR, NULL);
	case MAKE_NEW:
		return open_close(first, O_CREAT | O_EXCL | O_RDWR, NULL);
	case READ:
		return open_close(first, O_RDONLY, NULL);
	case WRITE:
		return open_close(first, O_WRONLY | O_TRUNC, first);
	case ENTER:
		return open_close(first, O_RDONLY | O_DIRECTORY, NULL);
	case NO_FOLLOW:
		return open_close(first, O_RDONLY | O_NOFOLLOW, NULL);
	case MAKE_DIRECTORY:
		return mkdir(first, 0755);
	case REMOVE_DIRECTORY:
		return rmdir(first);
	case REMOVE:
		return unlink(first);
	case MAKE_LINK:
		return link(first, second);
	case MAKE_SYMLINK:
		return symlink(first, second);
	case RENAME:
		return rename(first, second);
	case RENAME_NEW:
		return renameat2(AT_FDCWD, first, AT_FDCWD, second, RENAME_NOREPLACE);
	case EXCHANGE:
		return renameat2(AT_FDCWD, first, AT_FDCWD, second, RENAME_EXCHANGE);
	case STAT:
		return look(first, stat, outcome);
	case LSTAT:
		return look(first, lstat, outcome);
	default:
		return readlink(first, outcome->text, sizeof(outcome->text) - 1) < 0 ? -1 : 0;
	}
}

struct outcome oracle_do(enum operation operation, const char *first, const char *second)
{
	struct outcome outcome;

	memset(&outcome, 0, sizeof(outcome));
	errno = 0;
	if (perform(operation, first, second, &outcome) < 0)
		outcome.error = -errno;
	return outcome;
}

/* ---- a pipe ---- */

static int ends[2];
static char bytes[1 << 20];

int oracle_pipe_begin(void)
{
	if (pipe2(ends, O_NONBLOCK) < 0 || fcntl(ends[0], F_SETPIPE_SZ, 1 << 16) != 1 << 16)
		return -errno;
	return 0;
}

void oracle_pipe_end(void)
{
	close(ends[0]);
	close(ends[1]);
}

int oracle_pipe_write(uint32_t length)
{
	int moved = (int)write(ends[1], bytes, length);

	return moved < 0 ? -errno : moved;
}

int oracle_pipe_read(uint32_t length)
{
	int moved = (int)read(ends[0], bytes, length);

	return moved < 0 ? -errno : moved;
}

uint32_t oracle_pipe_filled(void)
{
	int filled = 0;

	require(ioctl(ends[0], FIONREAD, &filled), "FIONREAD");
	return (uint32_t)filled;
}

int oracle_pipe_is_writable(void)
{
	struct pollfd side = { .fd = ends[1], .events = POLLOUT };

	return poll(&side, 1, 0) == 1;
}

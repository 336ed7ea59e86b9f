/* O_LARGEFILE: without it a file does not reach 2 GiB, and one that has cannot be opened. */
#include "threads.h"

#include <sys/stat.h>

#define LAST INT32_MAX
#define PATH "/dev/shm/large"

static long error_of(long result)
{
	return result < 0 ? -errno : result;
}

static long open_with(int flags)
{
	return error_of(syscall(SYS_open, PATH, flags, 0600));
}

static long seek(int file, long long offset)
{
	long long where;

	return error_of(syscall(SYS__llseek, file, (long)(offset >> 32), (long)offset, &where, 0));
}

/* Linux's structures of the days of 32 bits; the room is enough. */
static void old_stat(int file)
{
	char room[128];

	say("stat", error_of(syscall(SYS_stat, PATH, room)));
	say("lstat", error_of(syscall(SYS_lstat, PATH, room)));
	say("fstat", error_of(syscall(SYS_fstat, file, room)));
}

static void small(int file)
{
	say("flags", fcntl(file, F_GETFL));
	say("seek", seek(file, LAST - 2));
	say("cut", error_of(write(file, "12345", 5)));
	say("at the end", error_of(write(file, "1", 1)));
	say("nothing", error_of(write(file, "1", 0)));
	say("beyond", error_of(pwrite64(file, "1", 1, 1ll << 32)));
	say("all", error_of(pwrite64(file, "1234", 4, LAST - 4ll)));
	say("cut", error_of(pwrite64(file, "12345678", 8, LAST - 4ll)));
	old_stat(file);
}

void part_large(void)
{
	int file = open_with(O_RDWR | O_CREAT | O_TRUNC), large;

	small(file);
	large = open_with(O_RDWR | O_LARGEFILE);
	say("larger", error_of(syscall(SYS_ftruncate64, large, 0, 1)));
	close(large);
	old_stat(file);
	say("read", error_of(pread64(file, (char[1]){ 1 }, 1, LAST)));
	say("open", open_with(O_RDONLY));
	say("open", open_with(O_RDWR | O_TRUNC));
	say("exclusive", open_with(O_RDWR | O_CREAT | O_EXCL));
	large = open_with(O_RDWR | O_LARGEFILE);
	say("flags", fcntl(large, F_GETFL));
	say("set", error_of(fcntl(large, F_SETFL, O_NONBLOCK)));
	say("flags", fcntl(large, F_GETFL));
	say("write", error_of(pwrite64(large, "12", 2, 3ll << 30)));
	say("size", lseek64(large, 0, SEEK_END) >> 20);
	say("cut", error_of(syscall(SYS_ftruncate, large, LAST)));
	say("open", open_with(O_RDONLY) == large + 1);
	close(large + 1);
	close(large);
	close(file);
	large = memfd_create("large", 0);
	say("memory", fcntl(large, F_GETFL));
	say("write", error_of(pwrite64(large, "1", 1, 3ll << 30)));
	close(large);
	say("creat", close(syscall(SYS_creat, PATH, 0600)));
	unlink(PATH);
}

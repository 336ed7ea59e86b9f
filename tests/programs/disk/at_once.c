/*
 * What is true when a call returns, or while another one runs.
 *
 *	names DRIVE DIRECTORY	says of each change of a name whether it has flushed the drive
 *	changes DRIVE FILE	the same of each change of a file that is no write
 *	flag - DIRECTORY -	chattr +D
 *	zero DEVICE		counts msyncs while another task zeroes most of the device
 *	times FILE		says what a write leaves: nanoseconds of its time
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/fs.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define PAGE 4096
#define LEFT (1 << 20) /* bytes at the end that stay */

static const char *drive;

static unsigned flushes(void)
{
	char line[256], name[16];
	unsigned count = 0;
	FILE *file = fopen("/proc/diskstats", "r");

	while (fgets(line, sizeof(line), file))
		if (sscanf(line,
			   "%*u %*u %15s %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u "
			   "%*u %*u %u",
			   name, &count) == 2 &&
		    strcmp(name, drive) == 0)
			break;
	fclose(file);
	return count;
}

static void say(const char *what, int result)
{
	static unsigned before;
	unsigned now = flushes();

	if (what)
		printf("%s: %d, %s\n", what, result, now > before ? "flushed" : "not flushed");
	before = now;
}

static void names(const char *directory)
{
	chdir(directory);
	say(NULL, 0);
	say("create", close(open("a", O_CREAT | O_WRONLY, 0644)));
	say("mkdir", mkdir("b", 0755));
	say("mkfifo", mkfifo("c", 0644));
	say("symlink", symlink("a", "d"));
	say("link", link("a", "e"));
	say("rename", rename("e", "f"));
	say("rename over", rename("f", "d"));
	say("rename away", rename("d", "../d"));
	say("rename here", rename("../d", "d"));
	say("exchange", renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_EXCHANGE));
	say("rmdir", rmdir("a"));
	say("unlink", unlink("b"));
	say("no such name", unlink("b"));
}

static void changes(const char *path)
{
	int file = open(path, O_RDWR | O_CREAT, 0644), flags = 0;
	static char data[3 * PAGE];

	write(file, data, sizeof(data));
	fsync(file);
	ioctl(file, FS_IOC_GETFLAGS, &flags);
	flags |= FS_NODUMP_FL;
	say(NULL, 0);
	say("shorter", ftruncate(file, PAGE + 100));
	say("longer", truncate(path, 3 * PAGE));
	say("allocated", fallocate(file, FALLOC_FL_KEEP_SIZE, 4 * PAGE, PAGE));
	say("hole", fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 10, PAGE));
	say("attribute", fsetxattr(file, "user.a", "b", 1, 0));
	say("no attribute", fremovexattr(file, "user.a"));
	say("flags", ioctl(file, FS_IOC_SETFLAGS, &flags));
	say("open", close(open(path, O_WRONLY | O_TRUNC)));
	say("refused", ftruncate(file, -1));
	unlink(path);
}

static void zero(const char *device)
{
	int file = open(device, O_RDWR), *done, count = 0;
	uint64_t size, range[2] = { 0 };

	ioctl(file, BLKGETSIZE64, &size);
	range[1] = size - LEFT;
	done = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)size - PAGE);

	if (fork() == 0) {
		int result = ioctl(file, BLKZEROOUT, range);

		*done = 1;
		printf("zeroed: %d\n", result);
		return;
	}
	for (; !*done; count++) {
		*at = (char)count;
		msync(at, PAGE, MS_SYNC);
	}
	wait(NULL);
	printf("msyncs: %s\n", count > 10 ? "many" : "few");
}

static void times(const char *path)
{
	int file = open(path, O_RDWR);
	struct stat state;

	write(file, "new", 3);
	fstat(file, &state);
	printf("nanoseconds: %s\n", state.st_mtim.tv_nsec ? "some" : "none");
}

static void set_flag(const char *directory)
{
	int place = open(directory, O_RDONLY), flags = 0;

	ioctl(place, FS_IOC_GETFLAGS, &flags);
	flags |= FS_DIRSYNC_FL;
	printf("set: %d\n", ioctl(place, FS_IOC_SETFLAGS, &flags));
}

int main(int count, char **words)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	drive = words[2];
	if (strcmp(words[1], "zero") == 0)
		zero(words[2]);
	else if (strcmp(words[1], "times") == 0)
		times(words[2]);
	else if (strcmp(words[1], "changes") == 0)
		changes(words[3]);
	else if (count == 4)
		names(words[3]);
	else
		set_flag(words[3]);
	return 0;
}

/* The times of a file that is written to through a mapping: they change when a page is written to
 * that was not, or was written back. */
#include "threads.h"

#include <sys/stat.h>

#define PAGES 4
#define PATH  "/var/tmp/threads.written" /* not /tmp, which is of another kind on some machines */

static int file;

static struct timespec modified(void)
{
	struct stat state;

	fstat(file, &state);
	if (state.st_mtim.tv_nsec != state.st_ctim.tv_nsec)
		say("another ctime", 1);
	return state.st_mtim;
}

/* Does the time change when the program touches a byte? */
static void touch(const char *what, volatile char *byte, bool write)
{
	struct timespec before = modified();

	rest(30);
	if (write)
		*byte += 1;
	else
		(void)*byte;
	struct timespec after = modified();

	say(what, after.tv_sec != before.tv_sec || after.tv_nsec != before.tv_nsec);
}

static char *map(int flags)
{
	return mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, flags, file, 0);
}

void part_written(void)
{
	(void)!(mkdir("/var", 0755) + mkdir("/var/tmp", 01777));
	file = open(PATH, O_RDWR | O_CREAT | O_TRUNC, 0600);
	say("size", ftruncate(file, PAGES * 4096));
	char *shared = map(MAP_SHARED), *private = map(MAP_PRIVATE);

	touch("first write", shared, true);
	touch("again", shared, true);
	touch("a read", shared + 4096, false);
	touch("a write after it", shared + 4096, true);
	touch("a copy", private + 2 * 4096, true);
	say("msync", msync(shared, PAGES * 4096, MS_SYNC));
	touch("a write after msync", shared, true);
	touch("the copy is still there", private + 2 * 4096, true);
	say("its bytes", private[2 * 4096]);
	munmap(shared, PAGES * 4096);
	shared = map(MAP_SHARED);
	touch("mapped again", shared, false);
	touch("and written", shared + 3 * 4096, true);
	say("bytes", shared[0] * 100 + shared[4096] * 10 + shared[2 * 4096]);
	munmap(shared, PAGES * 4096);
	munmap(private, PAGES * 4096);
	close(file);
	unlink(PATH);
}

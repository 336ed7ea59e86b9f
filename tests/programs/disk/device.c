/*
 * device FILE: what Linux promises about a block device, one line a promise. FILE has at least 1
 * MiB, in whole pages; all of it is overwritten: byte i of the file is (i * 7 + i / 4096) % 251 at
 * the end. With a second word, FILE is a regular file of that size: what only devices have is left
 * out.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/hdreg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE   4096
#define SECTOR 512

static int number, is_device;
static off_t size;

static void ok(int good, const char *what)
{
	printf("%s %d %s\n", good ? "ok" : "not ok", ++number, what);
	fflush(stdout);
}

/* Did a call fail, for this reason? */
static int fails(long result, int reason)
{
	return result == -1 && errno == reason;
}

static unsigned char *memory(size_t bytes)
{
	void *made;

	return posix_memalign(&made, PAGE, bytes) ? NULL : made;
}

static int all(const unsigned char *bytes, int value, int count)
{
	while (count-- > 0)
		if (*bytes++ != value)
			return 0;
	return 1;
}

static void sizes(int file)
{
	struct hd_geometry geometry;
	unsigned long sectors = 0;
	uint64_t bytes = 0;
	int value = 0;
	unsigned physical = 0;
	struct stat status;
	uint64_t range[2] = { 0, SECTOR };

	fstat(file, &status);
	ok(S_ISBLK(status.st_mode) && status.st_size == 0, "stat says block device, of size 0");
	ok(ioctl(file, BLKGETSIZE64, &bytes) == 0 && (off_t)bytes == size, "BLKGETSIZE64");
	ok(ioctl(file, BLKGETSIZE, &sectors) == 0 && (off_t)sectors == size / SECTOR, "BLKGETSIZE");
	ok(ioctl(file, BLKSSZGET, &value) == 0 && value == SECTOR, "BLKSSZGET");
	ok(ioctl(file, BLKPBSZGET, &physical) == 0 && physical == SECTOR, "BLKPBSZGET");
	ok(ioctl(file, BLKBSZGET, &value) == 0 && value == PAGE, "BLKBSZGET");
	ok(ioctl(file, BLKROGET, &value) == 0 && value == 0, "BLKROGET");
	ok(ioctl(file, HDIO_GETGEO, &geometry) == 0 && geometry.heads && geometry.start == 0,
	   "HDIO_GETGEO");
	ok(ioctl(file, BLKRAGET, &sectors) == 0 && sectors == 128, "BLKRAGET");
	ok(fails(ioctl(file, BLKSECDISCARD, range), EOPNOTSUPP), "BLKSECDISCARD: EOPNOTSUPP");
	ok(ioctl(file, BLKFLSBUF, 0) == 0, "BLKFLSBUF");
	ok(fails(ioctl(file, TIOCGWINSZ, range), ENOTTY), "it is no terminal: ENOTTY");
	ok(fails(ioctl(file, BLKGETSIZE64, (void *)1), EFAULT), "a bad address: EFAULT");
}

/* Both ioctls change whole sectors of the device, of a file that is open to be written; pages that
 * were dirty there are not written afterwards, and what is around them stays. */
static void ranges(int file, const char *name)
{
	static const unsigned long commands[] = { BLKDISCARD, BLKZEROOUT };
	static const char *const names[] = { "BLKDISCARD", "BLKZEROOUT" };
	int reading = open(name, O_RDONLY);
	unsigned char *page = memory(3 * PAGE);

	for (int i = 0; i < 2; i++) {
		uint64_t odd[2] = { 1, SECTOR }, none[2] = { 0, 0 }, far[2] = { size, SECTOR };
		uint64_t wraps[2] = { SECTOR, -(uint64_t)SECTOR },
			 part[2] = { PAGE - SECTOR, 6000 };
		uint64_t some[2] = { PAGE - SECTOR, PAGE + 2 * SECTOR };

		printf("# %s\n", names[i]);
		ok(fails(ioctl(reading, commands[i], some), EBADF), "only to read: EBADF");
		ok(fails(ioctl(file, commands[i], odd), EINVAL), "an odd offset: EINVAL");
		ok(fails(ioctl(file, commands[i], part), EINVAL), "an odd length: EINVAL");
		ok(fails(ioctl(file, commands[i], none), EINVAL), "no length: EINVAL");
		ok(fails(ioctl(file, commands[i], far), EINVAL), "after the end: EINVAL");
		ok(fails(ioctl(file, commands[i], wraps), EINVAL), "a sum that wraps: EINVAL");
		ok(fails(ioctl(file, commands[i], 1), EFAULT), "a bad address: EFAULT");
		memset(page, 'r', 3 * PAGE);
		pwrite(file, page, 3 * PAGE, 0);
		ok(ioctl(file, commands[i], some) == 0, "a range");
		fsync(file);
		pread(file, page, 3 * PAGE, 0);
		ok(all(page, 'r', PAGE - SECTOR) && all(page + 2 * PAGE + SECTOR, 'r', SECTOR),
		   "what is around it stays");
		ok(all(page + PAGE - SECTOR, 0, PAGE + 2 * SECTOR), "and the range is empty");
	}
	close(reading);
	free(page);
}

/* Of those who ask for it only one has the device, however it is open elsewhere. */
static void exclusive(const char *name)
{
	int one = open(name, O_RDONLY | O_EXCL), two = open(name, O_RDWR);

	ok(one >= 0 && two >= 0, "O_EXCL, and others without it");
	ok(fails(open(name, O_RDWR | O_EXCL), EBUSY), "a second O_EXCL: EBUSY");
	ok(fails(mount(name, "/tmp", "ext4", 0, NULL), EBUSY), "and to mount it: EBUSY");
	ok((fcntl(one, F_GETFL) & O_EXCL) == 0, "fcntl does not show it");
	close(one);
	close(two);
	one = open(name, O_WRONLY | O_EXCL);
	ok(one >= 0 && close(one) == 0, "O_EXCL again, after close");
}

static void ends(int file)
{
	char bytes[1000];

	memset(bytes, 'e', sizeof(bytes));
	ok(pread(file, bytes, sizeof(bytes), size - 300) == 300, "a read ends at the end");
	ok(pread(file, bytes, sizeof(bytes), size) == 0, "no bytes at the end");
	ok(pread(file, bytes, sizeof(bytes), size + 5000) == 0, "no bytes after the end");
	if (!is_device)
		return;
	ok(pwrite(file, bytes, sizeof(bytes), size - 300) == 300, "a write ends at the end");
	ok(fails(pwrite(file, bytes, sizeof(bytes), size), ENOSPC), "at the end: ENOSPC");
	ok(pwrite(file, bytes, 0, size) == 0, "nothing can be written there");
	ok(fails(ftruncate(file, 0), EINVAL), "ftruncate: EINVAL");
	ok(fails(fallocate(file, 0, 0, PAGE), EOPNOTSUPP), "fallocate: EOPNOTSUPP");
}

/* Linux's rules: address, length and offset are multiples of a sector. (A file system may go
 * through its cache instead, as ext4 does.) */
static void alignment(int direct)
{
	unsigned char *page = memory(2 * PAGE);

	ok(pread(direct, page, SECTOR, SECTOR) == SECTOR, "direct: one sector");
	ok(pread(direct, page + SECTOR, PAGE, 3 * SECTOR) == PAGE, "direct: odd sectors");
	ok(fails(pread(direct, page, SECTOR, 100), EINVAL), "direct: an offset of 100: EINVAL");
	ok(fails(pread(direct, page, 100, 0), EINVAL), "direct: a length of 100: EINVAL");
	ok(fails(pread(direct, page + 1, SECTOR, 0), EINVAL), "direct: an odd address: EINVAL");
	ok(fails(pwrite(direct, page, SECTOR, 1), EINVAL), "direct: writing at 1: EINVAL");
	ok(fails(pwrite(direct, page, SECTOR + 1, 0), EINVAL), "direct: writing 513: EINVAL");
	ok(fails(pwrite(direct, page + 2, SECTOR, 0), EINVAL), "direct: writing from 2: EINVAL");
	ok(pread(direct, page, PAGE, size) == 0, "direct: no bytes at the end");
	free(page);
}

/* Whoever writes, whoever reads: the same bytes. */
static void coherence(int file, int direct)
{
	unsigned char *shown = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	unsigned char *buffer = memory(PAGE);

	ok(shown != MAP_FAILED, "mmap");
	memset(buffer, 'a', PAGE);
	pwrite(file, buffer, PAGE, 0);
	ok(all(shown, 'a', PAGE), "what is written is shown");
	memset(shown + PAGE, 'b', PAGE);
	pread(file, buffer, PAGE, PAGE);
	ok(all(buffer, 'b', PAGE), "what is written to the mapping is read");
	pread(direct, buffer, PAGE, PAGE);
	ok(all(buffer, 'b', PAGE), "and by direct reads");
	memset(buffer, 'c', PAGE);
	pwrite(direct, buffer, PAGE, PAGE);
	ok(all(shown + PAGE, 'c', PAGE), "what is written directly is shown");
	pread(file, buffer, 100, PAGE + 50);
	ok(all(buffer, 'c', 100), "and read");
	memset(buffer, 'd', PAGE);
	pwrite(file, buffer, 10, 2 * PAGE - 5);
	pread(direct, buffer, SECTOR, 2 * PAGE);
	ok(all(buffer, 'd', 5), "a direct read gets what was just written");
	ok(msync(shown, 4 * PAGE, MS_SYNC) == 0, "msync");
	munmap(shown, 4 * PAGE);
	free(buffer);
}

/* In pieces of many lengths, in three ways. */
static void fill(int file, int direct)
{
	unsigned char *bytes = memory(size);
	off_t place = 0;
	int good = 1;

	for (off_t i = 0; i < size; i++)
		bytes[i] = (i * 7 + i / PAGE) % 251;
	for (int i = 0; place < size / 2; i++) {
		int length = 1 + i * 997 % 20000;

		good &= pwrite(file, bytes + place, length, place) == length;
		place += length;
	}
	place &= -(off_t)PAGE;
	for (; place < size; place += 8 * PAGE) {
		int length = size - place < 8 * PAGE ? size - place : 8 * PAGE;

		good &= pwrite(direct, bytes + place, length, place) == length;
	}
	good &= pwrite(file, bytes + place / 2, PAGE, place / 2) == PAGE;
	ok(good, "all of it is written");
	ok(fsync(file) == 0 && fdatasync(direct) == 0, "fsync, fdatasync");
	good = pread(file, memory(PAGE), PAGE, 0) == PAGE;
	unsigned char *again = memory(size);

	for (place = 0; place < size; place += 10000)
		good &= pread(file, again + place, 10000, place) > 0;
	ok(good && memcmp(again, bytes, size) == 0, "all of it is read");
}

int main(int count, char **words)
{
	int file = open(words[1], O_RDWR), direct = open(words[1], O_RDWR | O_DIRECT);
	int safe = open(words[1], O_WRONLY | O_SYNC);

	is_device = count == 2;
	size = lseek(file, 0, SEEK_END);
	ok(file >= 0 && direct >= 0 && safe >= 0 && size >= 1 << 20, "open");
	if (is_device)
		sizes(file);
	if (is_device)
		exclusive(words[1]);
	if (is_device)
		ranges(file, words[1]);
	ends(file);
	if (is_device)
		alignment(direct);
	coherence(file, direct);
	ok(pwrite(safe, "safe", 4, 12345) == 4, "O_SYNC");
	fill(file, direct);
	ok(close(file) == 0 && close(direct) == 0 && close(safe) == 0, "close");
	printf("1..%d\n", number);
	return 0;
}

/*
 * seams: copies between the kernel and a program that fault, while others use the same pipe, file
 * or directory. Every copy is to or from pages that are not there: with the kernel's `faults slow`
 * each sleeps in its middle. One line a promise, the same on Linux.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE	4096u
#define RECORD	512u
#define RECORDS 60u
#define TASKS	3u
#define NAME	"/tmp/seams-test"

static int number;

static void ok(int good, const char *what)
{
	printf("%s %d %s\n", good ? "ok" : "not ok", ++number, what);
	fflush(stdout);
}

static char *map(size_t bytes, int flags)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);
}

/* Two pages that are not there; a copy of at most a page to their middle faults twice. */
static char *absent(void)
{
	static char *pages;

	if (!pages)
		pages = map(2 * PAGE, MAP_PRIVATE);
	madvise(pages, 2 * PAGE, MADV_DONTNEED);
	return pages + PAGE - RECORD / 2;
}

static int all_end_well(void)
{
	int status, good = 1;

	while (wait(&status) > 0)
		good &= status == 0;
	return good;
}

/* Each record is of one letter. The second half of it is in a page that must be copied first. */
static void write_records(int to, char letter)
{
	char *pages = map(2 * PAGE, MAP_PRIVATE), *record = pages + PAGE - RECORD / 2;

	for (unsigned i = 0; i < RECORDS; i++) {
		char *shared = mmap(pages, 2 * PAGE, PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

		(void)shared;
		memset(record, letter, RECORD);
		madvise(pages, 2 * PAGE, MADV_DONTNEED); /* shared: the contents stay */
		if (write(to, record, RECORD) != RECORD)
			_exit(1);
	}
	_exit(0);
}

static void test_writers(void)
{
	unsigned whole = 0, letters[256] = { 0 }, good = 1;
	char record[RECORD];
	int ends[2];

	(void)!pipe(ends);
	for (unsigned i = 0; i < TASKS; i++)
		if (fork() == 0)
			write_records(ends[1], 'a' + i);
	close(ends[1]);
	for (int length, filled = 0;
	     (length = read(ends[0], record + filled, RECORD - filled)) > 0;) {
		filled += length;
		if (filled < (int)RECORD)
			continue;
		filled = 0;
		letters[(unsigned char)record[0]]++;
		whole += memcmp(record, record + 1, RECORD - 1) == 0;
	}
	for (unsigned i = 0; i < TASKS; i++)
		good &= letters['a' + i] == RECORDS;
	ok(all_end_well() && good, "pipe: all that is written arrives");
	ok(whole == TASKS * RECORDS, "pipe: a short write is not torn apart");
	close(ends[0]);
}

struct sums {
	unsigned bytes[TASKS], sum[TASKS];
};

static void test_readers(void)
{
	struct sums *sums = (struct sums *)map(PAGE, MAP_SHARED);
	unsigned bytes = 0, sum = 0, wanted = 0, total = TASKS * RECORDS * RECORD;
	int ends[2];

	(void)!pipe(ends);
	for (unsigned i = 0; i < TASKS; i++) {
		if (fork() > 0)
			continue;
		close(ends[1]);
		char *to = absent();

		for (int length; (length = read(ends[0], to, RECORD)) > 0; to = absent()) {
			sums->bytes[i] += length;
			while (length-- > 0)
				sums->sum[i] += (unsigned char)to[length];
		}
		_exit(0);
	}
	for (unsigned at = 0; at < total; at += RECORD) {
		char record[RECORD];

		for (unsigned i = 0; i < RECORD; i++)
			wanted += (unsigned char)(record[i] = (at + i) * 7 >> 3);
		(void)!write(ends[1], record, RECORD);
	}
	close(ends[0]);
	close(ends[1]);
	ok(all_end_well(), "pipe: its readers come to the end");
	for (unsigned i = 0; i < TASKS; i++)
		bytes += sums->bytes[i], sum += sums->sum[i];
	ok(bytes == total && sum == wanted, "pipe: each byte is read once");
}

/* Cuts the file and makes it again; between the two, the pages that it had belong to somebody else.
 */
static void cut_again_and_again(int file, const volatile int *is_over)
{
	char *other = map(8 * PAGE, MAP_PRIVATE), text[PAGE];
	int good = 1;

	memset(text, 'f', sizeof(text));
	while (!*is_over) {
		madvise(other, 8 * PAGE, MADV_DONTNEED);
		good &= ftruncate(file, 0) == 0;
		memset(other, 'o', 8 * PAGE);
		usleep(1000);
		for (unsigned i = 0; i < 8 * PAGE; i++)
			good &= other[i] == 'o';
		for (unsigned i = 0; i < 4; i++)
			good &= pwrite(file, text, PAGE, i * PAGE) == PAGE;
	}
	_exit(!good);
}

static void test_cuts(void)
{
	int file = open(NAME, O_RDWR | O_CREAT | O_TRUNC, 0600), good = 1;
	volatile int *is_over = (int *)map(PAGE, MAP_SHARED);

	if (fork() == 0)
		cut_again_and_again(file, is_over);
	for (unsigned i = 0; i < RECORDS; i++) {
		char *to = absent();
		int length = pread(file, to, RECORD, i % 4 * PAGE);

		while (length-- > 0)
			good &= to[length] == 'f' || to[length] == 'w' || to[length] == 0;
		memset(to, 'w', RECORD / 2);
		madvise(to + RECORD / 2, PAGE, MADV_DONTNEED);
		good &= pwrite(file, to, RECORD, i % 4 * PAGE) == RECORD;
	}
	*is_over = 1;
	ok(good, "a file that is cut: nobody else's bytes are read");
	ok(all_end_well(), "and none of its own are written elsewhere");
	unlink(NAME);
	close(file);
}

/* Each task takes what comes next in an open file that they share. */
static void test_shared_reads(void)
{
	struct sums *sums = (struct sums *)map(PAGE, MAP_SHARED);
	unsigned bytes = 0, sum = 0, wanted = 0, total = TASKS * RECORDS * RECORD;
	int file = open(NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);

	for (unsigned at = 0; at < total; at++) {
		unsigned char byte = at * 7 >> 3;

		wanted += byte;
		(void)!write(file, &byte, 1);
	}
	lseek(file, 0, SEEK_SET);
	for (unsigned i = 0; i < TASKS; i++) {
		if (fork() > 0)
			continue;
		char *to = absent();

		for (int length; (length = read(file, to, RECORD)) > 0; to = absent()) {
			sums->bytes[i] += length;
			while (length-- > 0)
				sums->sum[i] += (unsigned char)to[length];
		}
		_exit(0);
	}
	ok(all_end_well(), "an open file that is shared: its readers come to the end");
	for (unsigned i = 0; i < TASKS; i++)
		bytes += sums->bytes[i], sum += sums->sum[i];
	ok(bytes == total && sum == wanted, "and each byte is read once");
	close(file);
}

/* They write to one open file; or each opens it, to append. */
static void test_shared_writes(int flags, const char *what)
{
	int file = open(NAME, O_RDWR | O_CREAT | O_TRUNC | flags, 0600), good = 1;
	unsigned whole = 0, letters[256] = { 0 };
	char record[RECORD];

	for (unsigned i = 0; i < TASKS; i++)
		if (fork() == 0)
			write_records(flags ? open(NAME, O_WRONLY | flags) : file, 'a' + i);
	good &= all_end_well();
	lseek(file, 0, SEEK_SET);
	while (read(file, record, RECORD) == RECORD) {
		letters[(unsigned char)record[0]]++;
		whole += memcmp(record, record + 1, RECORD - 1) == 0;
	}
	for (unsigned i = 0; i < TASKS; i++)
		good &= letters['a' + i] == RECORDS;
	ok(good && whole == TASKS * RECORDS, what);
	close(file);
}

static void make_and_remove(const volatile int *is_over)
{
	unsigned made = 0, removed = 0;
	char name[64];

	while (!*is_over || removed < made) {
		if (!*is_over) {
			snprintf(name, sizeof(name), "/tmp/seams/file-%u", made++);
			close(open(name, O_WRONLY | O_CREAT, 0600));
		}
		if (made < removed + 20 && !*is_over)
			continue;
		snprintf(name, sizeof(name), "/tmp/seams/file-%u", removed++);
		unlink(name);
	}
	_exit(0);
}

/* A directory is read while its entries go. */
static void test_directory(void)
{
	volatile int *is_over = (int *)map(PAGE, MAP_SHARED);
	int good = 1;

	mkdir("/tmp/seams", 0777);
	if (fork() == 0)
		make_and_remove(is_over);
	for (unsigned i = 0; i < RECORDS; i++) {
		int directory = open("/tmp/seams", O_RDONLY | O_DIRECTORY), length;
		char *to = absent();

		while ((length = syscall(SYS_getdents64, directory, to, RECORD)) > 0)
			for (int at = 0; at < length; at += *(unsigned short *)(to + at + 16))
				good &=
				    to[at + 19] == '.' || strncmp(to + at + 19, "file-", 5) == 0;
		good &= length == 0;
		close(directory);
	}
	*is_over = 1;
	good &= all_end_well();
	ok(good, "a directory that changes: only its own names are read");
	rmdir("/tmp/seams");
}

int main(void)
{
	mkdir("/tmp", 0777);
	test_writers();
	test_readers();
	test_cuts();
	test_shared_reads();
	test_shared_writes(0, "an open file that is shared: no write is lost or torn apart");
	test_shared_writes(O_APPEND, "nor one that several have opened to append");
	test_directory();
	unlink(NAME);
	printf("1..%d\n", number);
	return 0;
}

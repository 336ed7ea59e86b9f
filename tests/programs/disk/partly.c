/*
 * partly DIRECTORY: on a full disk of blocks that are smaller than a page, tasks write again what
 * has blocks, in pages that also have holes. One line a file says what went wrong; what was said to
 * be written is there after an fsync, for this machine's e2fsprogs to read:
 *
 *	part0 to part3	a block, the one of that number in a page of four; task t writes "t" there
 *	part4		a block that fallocate gave, if the file system does so: "given"
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK 1024
#define FILES 4
#define TASKS 3
#define GIVEN FILES
#define ALL   (FILES + 1)

static const char *directory;
static sigjmp_buf no_room;

static int open_file(int number, int flags)
{
	char path[100];

	snprintf(path, sizeof(path), "%s/part%d", directory, number);
	return open(path, O_RDWR | flags, 0600);
}

static void expect(const char *what, long result, int error)
{
	if (result < 0 ? errno != error : error != 0)
		printf("WRONG %s: %s\n", what, result < 0 ? strerror(errno) : "success");
}

static void fill(void)
{
	char block[BLOCK] = "";
	int file = open_file(ALL, O_CREAT);

	for (int turn = 0; turn < 2; turn++) { /* what was reserved ahead comes back */
		while (write(file, block, BLOCK) > 0)
			;
		expect("fsync of all", fsync(file), 0);
	}
}

/* Its byte in each file, and then something where there is no block, in a page that is dirty. */
static void task(int number)
{
	char letter = (char)('0' + number);

	for (int turn = 0; turn < 3; turn++)
		for (int i = 0; i < FILES; i++) {
			int file = open_file(i, 0), hole = (i + 1 + turn) % FILES * BLOCK;

			expect("again", pwrite(file, &letter, 1, i * BLOCK + number), 0);
			expect("into a hole", pwrite(file, "hole", 4, hole), ENOSPC);
			if (turn == number)
				expect("fsync", fsync(file), 0);
			close(file);
		}
	_exit(0);
}

static void end_store(int signal)
{
	siglongjmp(no_room, signal);
}

/* Of an area all of the page would be written. */
static void store(void)
{
	int file = open_file(0, 0);
	char *page = mmap(NULL, FILES * BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	signal(SIGBUS, end_store);
	expect("again, before a store", pwrite(file, "s", 1, 8), 0);
	if (sigsetjmp(no_room, 1) == 0) {
		*(volatile char *)&page[BLOCK] = 1;
		printf("WRONG a store into a hole: success\n");
	}
	expect("msync", msync(page, FILES * BLOCK, MS_SYNC), 0);
}

int main(int count, char **words)
{
	int given, has_given;

	directory = words[count - 1];
	for (int i = 0; i < FILES; i++) {
		int file = open_file(i, O_CREAT);

		expect("a block", pwrite(file, "....", 4, i * BLOCK), 0);
		expect("a page", ftruncate(file, FILES * BLOCK), 0);
		close(file);
	}
	given = open_file(GIVEN, O_CREAT);
	has_given = fallocate(given, FALLOC_FL_KEEP_SIZE, 0, BLOCK) == 0;
	sync();
	fill();
	for (int i = 0; i < TASKS; i++)
		if (fork() == 0)
			task(i);
	while (wait(NULL) > 0)
		;
	store();
	expect("of what fallocate gave", pwrite(given, "given", 5, 0), has_given ? 0 : ENOSPC);
	expect("fsync of that", fsync(given), 0);
	printf("done\n");
	return 0;
}

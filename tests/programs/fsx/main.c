/*
 * fsx: an exerciser of file systems, for comparing kernels.
 *
 *	fsx DIRECTORY SEED COUNT [FROM TO]	this many operations in DIRECTORY
 *	fsx walk DIRECTORY			what is there now
 *
 * Operations and their arguments come from the seed alone, not from what the kernel answered: so
 * two kernels are asked the same, also after a first difference. Three processes, each with its own
 * open files and mappings, take turns of a few operations, so that the order is always the same.
 * Each operation is a line with its answer; a hash is printed for each BLOCK of lines, and the
 * lines from FROM to TO themselves:
 *
 *	17 p1 pread 3 5000 at 4096 = 5000 9ae16a3b
 *	block 0 5f0a1c22
 *
 * A line has nothing that a kernel may choose: numbers of inodes and blocks, the time of day, the
 * order of names in a directory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fsx.h"

#define BLOCK	   1000 /* operations with one hash */
#define TURN	   8	/* operations of one process at most */
#define LONG_NAME  255
#define HASH_START 2166136261u
#define HASH_PRIME 16777619u

struct shared *shared;
static uint32_t count, first, last;
static int turns[PROCESSES][2]; /* pipes: a byte gives the turn */

uint32_t below(uint32_t limit)
{
	shared->random = shared->random * 6364136223846793005u + 1442695040888963407u;
	return (shared->random >> 33) % limit;
}

bool one_in(uint32_t times)
{
	return below(times) == 0;
}

void say(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	shared->used += vsnprintf(shared->line + shared->used, sizeof(shared->line) - shared->used,
				  format, arguments);
	va_end(arguments);
}

void say_result(long result)
{
	if (result < 0)
		say(" = %s", strerrorname_np(errno));
	else
		say(" = %ld", result);
}

uint32_t hash_of(const void *bytes, uint32_t length)
{
	const uint32_t *words = bytes;
	const uint8_t *rest = (const uint8_t *)bytes + length / 4 * 4;
	uint32_t hash = HASH_START;

	for (uint32_t i = 0; i < length / 4; i++)
		hash = (hash ^ words[i]) * HASH_PRIME;
	for (uint32_t i = 0; i < length % 4; i++)
		hash = (hash ^ rest[i]) * HASH_PRIME;
	return hash;
}

/* Few short names, long ones, one that is too long; and sometimes . and .., which do not leave the
 * directory that main made. a and b are directories most of the time, the others are not. */
static void add_name(char *path, bool is_first, bool is_directory)
{
	uint32_t choice = below(100), length = LONG_NAME + (choice == 99);
	char *end = path + strlen(path);

	if (choice < 95) {
		*end = (is_directory ? choice < 90 : choice < 12) ? 'a' + below(2) : 'c' + below(4);
		say("%c", *end);
	} else if (choice < 97) {
		strcpy(end, choice == 95 || is_first ? "." : "..");
		say("%s", end);
	} else {
		memset(end, 'L', length);
		say("L%u", length);
	}
}

static const char *path_to(bool is_directory)
{
	static const uint8_t depths[] = { 1, 1, 1, 1, 2, 2, 2, 2, 2, 3 };
	static char paths[2][4 * (LONG_NAME + 3)];
	static int turn;
	char *path = paths[turn ^= 1];
	uint32_t depth = depths[below(sizeof(depths))];

	memset(path, 0, sizeof(paths[0]));
	say(" ");
	for (uint32_t i = 0; i < depth; i++) {
		if (i > 0) {
			strcat(path, "/");
			say("/");
		}
		add_name(path, i == 0, is_directory || i + 1 < depth);
	}
	if (one_in(50)) {
		strcat(path, "/");
		say("/");
	}
	return path;
}

const char *any_path(void)
{
	return path_to(false);
}

const char *any_directory(void)
{
	return path_to(true);
}

void say_status(long result, const struct stat *status)
{
	say_result(result);
	if (result < 0)
		return;
	say(" mode %o links %u owner %u.%u", status->st_mode, (unsigned)status->st_nlink,
	    status->st_uid, status->st_gid);
	if (S_ISCHR(status->st_mode) || S_ISBLK(status->st_mode))
		say(" device %x", (unsigned)status->st_rdev);
	if (!S_ISDIR(status->st_mode))
		say(" size %lld", (long long)status->st_size);
	say(" block %ld", (long)status->st_blksize);
}

/* --- operations in turn --- */

static void write_all(const char *text, uint32_t length)
{
	while (length > 0) {
		ssize_t done = write(STDOUT_FILENO, text, length);

		if (done <= 0)
			_exit(3);
		text += done;
		length -= done;
	}
}

/* The line is done: into the hash, and out, if it was asked for. */
static void end_line(void)
{
	say("\n");
	shared->hash = (shared->hash ^ hash_of(shared->line, shared->used)) * HASH_PRIME;
	if (shared->operation >= first && shared->operation < last)
		write_all(shared->line, shared->used);
	if (++shared->operation % BLOCK == 0 || shared->operation == count) {
		shared->used = 0;
		say("block %u %08x\n", (shared->operation - 1) / BLOCK, shared->hash);
		write_all(shared->line, shared->used);
		shared->hash = HASH_START;
	}
}

static unsigned weight_of(const struct operation *operations)
{
	unsigned sum = 0;

	for (; operations->run; operations++)
		sum += operations->weight;
	return sum;
}

static void run_one(unsigned process)
{
	const struct operation *operation = below(5) < 3 ? file_operations : name_operations;
	uint32_t choice = below(weight_of(operation));

	shared->used = 0;
	say("%u p%u ", shared->operation, process);
	for (; choice >= operation->weight; operation++)
		choice -= operation->weight;
	operation->run();
	end_line();
}

static void give_turn(unsigned process)
{
	if (write(turns[process][1], "", 1) != 1)
		_exit(4);
}

/* Until all is done; then the next one gets the turn to see that, too. */
static void take_turns(unsigned process)
{
	char byte;
	unsigned next = process;

	while (read(turns[process][0], &byte, 1) == 1 && shared->operation < count) {
		for (uint32_t left = 1 + below(TURN); left && shared->operation < count; left--)
			run_one(process);
		next = below(PROCESSES);
		give_turn(next);
	}
	give_turn((process + 1) % PROCESSES);
	_exit(0);
}

/* Without one of them nobody gets the turn any more, so it is not waited for the others. */
static int exercise(void)
{
	int status;

	signal(SIGPIPE, SIG_IGN); /* a pipe with a name may have lost its readers: EPIPE */
	for (unsigned i = 0; i < PROCESSES; i++)
		if (pipe(turns[i]) < 0)
			return 2;
	for (unsigned i = 0; i < PROCESSES; i++)
		if (fork() == 0)
			take_turns(i);
	give_turn(0);
	while (wait(&status) > 0) {
		if (status == 0)
			continue;
		printf("a process ended with status %x\n", status);
		return 1;
	}
	return 0;
}

/* --- what is there --- */

static uint32_t contents_of(const char *path, const struct stat *status)
{
	static char bytes[BUFFER];
	int file = S_ISREG(status->st_mode) ? open(path, O_RDONLY) : -1;
	uint32_t hash = 0;
	ssize_t length;

	if (S_ISLNK(status->st_mode)) {
		length = readlink(path, bytes, sizeof(bytes));
		return hash_of(bytes, length > 0 ? length : 0);
	}
	while (file >= 0 && (length = read(file, bytes, sizeof(bytes))) > 0)
		hash = hash * HASH_PRIME ^ hash_of(bytes, length);
	close(file);
	return hash;
}

static int compare_names(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

static char *found[100000];
static unsigned found_count;

static int note(const char *path, const struct stat *status, int kind, struct FTW *place)
{
	static char text[16384];

	(void)kind, (void)place;
	shared->used = 0;
	say_status(0, status);
	snprintf(text, sizeof(text), "%s%s %08x\n", path, shared->line, contents_of(path, status));
	found[found_count++] = strdup(text);
	return found_count == sizeof(found) / sizeof(*found);
}

static int walk(const char *directory)
{
	if (chdir(directory) < 0 || nftw(".", note, 16, FTW_PHYS) != 0)
		return 1;
	qsort(found, found_count, sizeof(*found), compare_names);
	for (unsigned i = 0; i < found_count; i++)
		write_all(found[i], strlen(found[i]));
	return 0;
}

int main(int words_count, char **words)
{
	shared =
	    mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (words_count < 3 || shared == MAP_FAILED)
		return 2;
	if (strcmp(words[1], "walk") == 0)
		return walk(words[2]);
	shared->random = strtoul(words[2], NULL, 10);
	shared->hash = HASH_START;
	count = strtoul(words[3], NULL, 10);
	first = words_count > 5 ? strtoul(words[4], NULL, 10) : 0;
	last = words_count > 5 ? strtoul(words[5], NULL, 10) : 0;
	if (mkdir(words[1], 0777) < 0 || chdir(words[1]) < 0) {
		perror(words[1]);
		return 2;
	}
	return exercise();
}

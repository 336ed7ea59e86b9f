/* What e2fsck says of the image in memory. */
#include "tests/host/crash/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/lib/errno.h"
#include "tests/host/crash/session.h"
#include "tests/host/ext/files.h"
#include "tests/host/ext/shim.h"

#define JOURNAL_INODE  8u
#define SUPER_OFFSET   1024u
#define PIECE	       4096u
#define SECONDS	       60     /* for one run of e2fsck on a busy machine */
#define LAST_ORPHAN    0x4e8u /* bytes: s_last_orphan of the superblock */
#define RO_COMPAT      0x464u /* bytes: s_feature_ro_compat */
#define ORPHAN_PRESENT 0x10000u

const char *check_folder = "/dev/shm";

static const char *file_name(const char *kind)
{
	static char name[4][256];
	static unsigned next;
	char *text = name[next++ % 4];

	snprintf(text, sizeof(name[0]), "%s/%d.%s", check_folder, (int)getpid(), kind);
	return text;
}

/* Writes the image; what is zero stays a hole. */
static void save(const char *path)
{
	static const uint8_t zeros[PIECE];
	uint64_t size = disk.device.sectors * SECTOR_SIZE;
	int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	if (file < 0 || ftruncate(file, (off_t)size) != 0)
		fail("cannot write %s", path);
	for (uint64_t at = 0; at + PIECE <= size; at += PIECE)
		if (memcmp(disk.bytes + at, zeros, PIECE) != 0 &&
		    pwrite(file, disk.bytes + at, PIECE, (off_t)at) != PIECE)
			fail("cannot write %s", path);
	close(file);
}

static void become_e2fsck(const char *const *options, const char *image, const char *log)
{
	const char *words[8] = { "e2fsck" };
	int out = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600), count = 1;

	for (; *options != NULL; options++)
		words[count++] = *options;
	words[count] = image;
	dup2(out, 1);
	dup2(out, 2);
	alarm(SECONDS);
	execvp("e2fsck", (char *const *)words);
	_exit(127);
}

/* The first lines that e2fsck printed, in one. */
static void read_log(const char *log, char *text, size_t size)
{
	FILE *file = fopen(log, "r");
	size_t length = file != NULL ? fread(text, 1, size - 1, file) : 0;

	text[length] = '\0';
	for (size_t i = 0; i < length; i++)
		if (text[i] == '\n' || text[i] == '\t')
			text[i] = ' ';
	if (file != NULL)
		fclose(file);
}

/* Returns false when its exit status is above `allowed`. */
static bool e2fsck(const char *const *options, const char *image, int allowed, char *problem)
{
	const char *log = file_name("log");
	char said[600];
	int status;
	pid_t child = fork();

	if (child == 0)
		become_e2fsck(options, image, log);
	if (child < 0 || waitpid(child, &status, 0) != child)
		fail("no process for e2fsck");
	read_log(log, said, sizeof(said));
	unlink(log);
	if (WIFEXITED(status) && WEXITSTATUS(status) <= allowed)
		return true;
	snprintf(problem, PROBLEM_SIZE, "e2fsck %s ended with status 0x%x: %s", options[0], status,
		 said);
	return false;
}

static const char *const only_journal[] = { "-yE", "journal_only", NULL };
static const char *const only_orphans[] = { "-p", NULL };
static const char *const find_all[] = { "-fn", NULL };

static bool has_orphans(const char *path)
{
	uint32_t first = 0, features = 0;
	int file = open(path, O_RDONLY);

	if (file < 0 || pread(file, &first, sizeof(first), LAST_ORPHAN) != sizeof(first) ||
	    pread(file, &features, sizeof(features), RO_COMPAT) != sizeof(features))
		fail("cannot read %s", path);
	close(file);
	return first != 0 || (features & ORPHAN_PRESENT) != 0;
}

/* Blocks that the two replays may leave different: times and counts of the superblock, and the
 * journal's own, which says how far it got. */
static bool may_differ(uint64_t block, uint32_t block_size, uint64_t log)
{
	return block == SUPER_OFFSET / block_size || block == log;
}

static uint64_t first_of_log(void)
{
	struct ext_mapping mapping = { .physical = 0 };
	struct ext_inode inode;

	if (ext_inode_read(fs, JOURNAL_INODE, &inode) == 0)
		ext_map(&inode, 0, &mapping);
	return mapping.physical;
}

/* A mount that only reads does nothing but replay. */
static bool same_replay(const char *image, char *problem)
{
	struct ext_options options = { .now = clock_count, .read_only = true };
	uint64_t size = disk.device.sectors * SECTOR_SIZE, log;
	uint32_t block_size, orphans;
	const uint8_t *theirs;
	int file = open(image, O_RDONLY), error = files_mount(&options);

	if (error) {
		snprintf(problem, PROBLEM_SIZE, "mount to read: %s", errno_name(-error));
		return false;
	}
	theirs = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
	if (file < 0 || theirs == MAP_FAILED)
		fail("cannot map %s", image);
	memcpy(&orphans, disk.bytes + LAST_ORPHAN, sizeof(orphans));
	block_size = ext_summary(fs)->block_size;
	log = first_of_log();
	if (orphans != 0) /* e2fsck has released them, too */
		return true;
	for (uint64_t at = 0; at < size; at += block_size)
		if (memcmp(disk.bytes + at, theirs + at, block_size) != 0 &&
		    !may_differ(at / block_size, block_size, log)) {
			snprintf(problem, PROBLEM_SIZE,
				 "block %ju is different after our replay and after e2fsck's",
				 at / block_size);
			return false;
		}
	return true;
}

/* In a process of its own, since it replays on the disk in memory. */
static bool check_same(const char *image, char *problem)
{
	int status;
	pid_t child = fork();

	if (child == 0)
		_exit(same_replay(image, problem) ? 0 : 1);
	if (child < 0 || waitpid(child, &status, 0) != child)
		fail("no process for a replay");
	if (WIFSIGNALED(status))
		snprintf(problem, PROBLEM_SIZE, "our replay ended by signal %d", WTERMSIG(status));
	return status == 0;
}

bool check_replay(char *problem)
{
	const char *image = file_name("img");
	bool good;

	save(image);
	good = e2fsck(only_journal, image, 1, problem) && check_same(image, problem);
	if (good && has_orphans(image))
		good = e2fsck(only_orphans, image, 1, problem);
	good = good && e2fsck(find_all, image, 0, problem);
	unlink(image);
	return good;
}

bool check_clean(char *problem)
{
	const char *image = file_name("img");
	bool good;

	save(image);
	good = e2fsck(find_all, image, 0, problem);
	unlink(image);
	return good;
}

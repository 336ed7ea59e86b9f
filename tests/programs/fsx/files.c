/* Operations on open files. Each process has four; an
 * operation on one that is not there fails, which is an answer like any other. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "fsx.h"

#define FILES	    4
#define COUNT(list) (sizeof(list) / sizeof(*(list)))

struct flag {
	const char *name;
	int value;
	unsigned one_in; /* 1: three of four */
};

static const struct flag flags[] = {
	{ "CREAT", O_CREAT, 1 },	  { "EXCL", O_EXCL, 12 },
	{ "TRUNC", O_TRUNC, 10 },	  { "APPEND", O_APPEND, 7 },
	{ "DIRECT", O_DIRECT, 5 },	  { "SYNC", O_SYNC, 40 },
	{ "DSYNC", O_DSYNC, 40 },	  { "NOFOLLOW", O_NOFOLLOW, 15 },
	{ "DIRECTORY", O_DIRECTORY, 50 }, { "NOATIME", O_NOATIME, 30 },
	{ "PATH", O_PATH, 90 },
};
static const char *const accesses[] = { "RDONLY", "WRONLY", "RDWR", "RDWR", "RDWR", "RDWR" };

static int files[FILES]; /* the descriptor and 1; 0 is none */
uint8_t buffer[BUFFER + PAGE] __attribute__((aligned(PAGE)));

static int any_slot(void)
{
	uint32_t slot = below(FILES);

	say(" %u", slot);
	return slot;
}

int any_file(void)
{
	return files[any_slot()] - 1;
}

/* Half of them at the border of a sector, a block or a page. */
static uint32_t aligned(uint32_t value)
{
	static const uint16_t units[] = { 1, 1, 512, 512, 1024, PAGE };
	uint32_t unit = units[below(COUNT(units))];

	return value / unit * unit;
}

uint32_t any_offset(void)
{
	return aligned(below(one_in(2) ? MOST : 20000));
}

uint32_t any_length(void)
{
	return aligned(below(one_in(8) ? BUFFER : 6000) + 1);
}

/* From the operation's number: `below` must be asked as often on each kernel. */
void fill(uint8_t *bytes, uint32_t length)
{
	uint32_t value = shared->operation * 2654435761u;

	for (uint32_t i = 0; i < length; i++) {
		value = value * 1664525u + 1013904223u;
		bytes[i] = value >> 24;
	}
}

/* --- open and close --- */

static void open_file(void)
{
	uint32_t access = below(COUNT(accesses));
	int value = access > 1 ? O_RDWR : (int)access, slot;

	say("open");
	slot = any_slot();
	const char *path = any_path();

	say(" %s", accesses[access]);
	for (unsigned i = 0; i < COUNT(flags); i++)
		if (flags[i].one_in == 1 ? below(4) > 0 : one_in(flags[i].one_in)) {
			value |= flags[i].value;
			say("|%s", flags[i].name);
		}
	uint32_t mode = below(010000);

	say(" %o", mode);
	int file = open(path, value | O_NONBLOCK, mode);

	say_result(file < 0 ? -1 : 0);
	if (file < 0)
		return;
	if (files[slot])
		close(files[slot] - 1);
	files[slot] = file + 1;
}

static void close_file(void)
{
	say("close");
	int slot = any_slot();

	say_result(close(files[slot] - 1));
	files[slot] = 0;
}

/* --- read and write --- */

static void say_read(long length)
{
	say_result(length);
	if (length > 0)
		say(" %08x", hash_of(buffer, length));
}

/* A direct one wants an aligned address: sometimes it is not. */
static uint8_t *any_place(void)
{
	return buffer + (one_in(10) ? below(PAGE) : 0);
}

/* Linux lets a direct read begin in the middle of a sector if the file has a hole there: nobody
 * relies on it, so direct reads are of whole sectors here. */
static bool is_direct(int file)
{
	int flags = fcntl(file, F_GETFL);

	return flags >= 0 && flags & O_DIRECT;
}

static void read_file(void)
{
	say("read");
	int file = any_file();
	uint32_t length = any_length();

	say(" %u", length);
	if (!is_direct(file))
		say_read(read(file, buffer, length));
}

static void write_file(void)
{
	say("write");
	int file = any_file();
	uint32_t length = any_length();
	uint8_t *place = any_place();

	say(" %u", length);
	fill(place, length);
	say_result(write(file, place, length));
}

static void read_at(void)
{
	say("pread");
	int file = any_file();
	uint32_t offset = any_offset(), length = any_length();

	if (is_direct(file)) {
		offset &= -512u;
		length &= -512u;
	}
	say(" %u at %u", length, offset);
	say_read(pread(file, buffer, length, offset));
}

static void write_at(void)
{
	say("pwrite");
	int file = any_file();
	uint32_t offset = any_offset(), length = any_length();
	uint8_t *place = any_place();

	say(" %u at %u from %u", length, offset, (unsigned)(place - buffer));
	fill(place, length);
	say_result(pwrite(file, place, length, offset));
}

static void vector(void)
{
	bool writes = one_in(2);

	say(writes ? "writev" : "readv");
	int file = any_file();
	uint32_t one = below(3000), two = below(3000);
	struct iovec parts[] = { { buffer, one }, { buffer + one, two } };

	say(" %u %u", one, two);
	if (writes) {
		fill(buffer, one + two);
		say_result(writev(file, parts, 2));
	} else if (!is_direct(file)) {
		say_read(readv(file, parts, 2));
	}
}

/* Of a directory and a device the offset is its own affair. */
static void say_kind(int file)
{
	struct stat status;

	if (fstat(file, &status) == 0)
		say(S_ISDIR(status.st_mode)   ? " directory"
		    : S_ISCHR(status.st_mode) ? " device"
					      : "");
}

static void seek(void)
{
	static const char *const names[] = { "SET", "CUR", "END" };

	say("lseek");
	int file = any_file(), whence = below(3);
	long offset = (long)any_offset() - (whence ? MOST / 2 : 0);

	say(" %ld %s", offset, names[whence]);
	say_kind(file);
	say_result(lseek(file, offset, whence));
}

/* Data past 4 GiB, in a file that goes again. */
static void write_far(void)
{
	int file = open("far", O_RDWR | O_CREAT | O_TRUNC | O_LARGEFILE, 0600);
	off64_t offset = (off64_t)below(1u << 20) << below(24);
	uint32_t length = any_length();
	struct stat64 status = { 0 };

	say("far %u at %lld", length, (long long)offset);
	fill(buffer, length);
	say_result(pwrite64(file, buffer, length, offset));
	say_read(pread64(file, buffer, length, offset));
	fstat64(file, &status);
	say(" size %lld", (long long)status.st_size);
	say_result(ftruncate64(file, offset / 2));
	say_read(pread64(file, buffer, length, offset / 2 - length));
	close(file);
	say_result(unlink("far"));
}

/* --- size, blocks, the disk --- */

static void set_size(void)
{
	say("ftruncate");
	int file = any_file();
	uint32_t size = any_offset();

	say(" %u", size);
	say_result(ftruncate(file, size));
}

static void allocate(void)
{
	static const struct {
		const char *name;
		int mode;
	} modes[] = {
		{ "", 0 },
		{ " keep", FALLOC_FL_KEEP_SIZE },
		{ " punch", FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE },
		{ " punch", FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE },
		{ " punch", FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE },
		{ " punch and grow", FALLOC_FL_PUNCH_HOLE },
	};
	uint32_t choice = below(COUNT(modes));

	say("fallocate%s", modes[choice].name);
	int file = any_file();
	uint32_t offset = any_offset(), length = one_in(30) ? 0 : any_length();

	say(" %u at %u", length, offset);
	say_result(fallocate(file, modes[choice].mode, offset, length));
}

static void save(void)
{
	bool only_data = one_in(2);

	say(only_data ? "fdatasync" : "fsync");
	int file = any_file();

	say_result(only_data ? fdatasync(file) : fsync(file));
}

static void save_all(void)
{
	say("sync");
	sync();
}

static void save_system(void)
{
	say("syncfs");
	say_result(syncfs(any_file()));
}

static void advise(void)
{
	say("fadvise");
	int file = any_file(), advice = below(7);
	uint32_t offset = any_offset();

	say(" %u %d", offset, advice);
	errno = posix_fadvise(file, offset, any_length(), advice);
	say_result(errno ? -1 : 0);
}

static void status_of_file(void)
{
	struct stat status;

	say("fstat");
	long result = fstat(any_file(), &status);

	say_status(result, &status);
}

static void status_of_system(void)
{
	struct statfs status;

	say("fstatfs");
	long result = fstatfs(any_file(), &status);

	say_result(result);
	if (result == 0)
		say(" type %lx block %ld name %ld", (long)status.f_type, (long)status.f_bsize,
		    (long)status.f_namelen);
}

static void change_mode(void)
{
	say("fchmod");
	int file = any_file();
	uint32_t mode = below(010000);

	say(" %o", mode);
	say_result(fchmod(file, mode));
}

static void change_owner(void)
{
	say("fchown");
	int file = any_file(), owner = (int)below(5) - 1, group = (int)below(5) - 1;

	say(" %d %d", owner, group);
	say_result(fchown(file, owner, group));
}

const struct operation file_operations[] = {
	{ open_file, 16 },
	{ close_file, 2 },
	{ read_file, 8 },
	{ write_file, 14 },
	{ read_at, 12 },
	{ write_at, 16 },
	{ vector, 4 },
	{ seek, 4 },
	{ write_far, 1 },
	{ set_size, 6 },
	{ allocate, 7 },
	{ save, 3 },
	{ save_all, 1 },
	{ save_system, 1 },
	{ advise, 2 },
	{ status_of_file, 5 },
	{ status_of_system, 1 },
	{ change_mode, 2 },
	{ change_owner, 2 },
	{ map_file, 6 },
	{ read_map, 8 },
	{ write_map, 6 },
	{ save_map, 3 },
	{ unmap, 2 },
	{ NULL, 0 },
};

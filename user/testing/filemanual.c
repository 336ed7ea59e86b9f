/*
 * filemanual: what section 2 of Linux's manual promises of files, where a kernel is tempted to
 * accept a call and do nothing (see manual.c). On Linux all are ok.
 */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "user/testing/checks.h"

#define FOLDER "/tmp/filemanual"
#define FILE_A FOLDER "/a"
#define FILE_B FOLDER "/b"

#define CALL_utime	30
#define CALL_statx	383
#define CALL_old_stat	106
#define CALL_flock	143
#define CALL_fdatasync	148
#define CALL_sendfile	187
#define CALL_fadvise64	250
#define CALL_utimensat	320
#define CALL_preadv	333
#define CALL_renameat2	353
#define CALL_chown32	212
#define RENAME_EXCHANGE 2
#define LOCK_EX_NB	6
#define SET_LOCK	13 /* fcntl64's F_SETLK64 */
#define WRITE_LOCK	1
#define SET_PIPE_SIZE	1031
#define GROUP		1234

/* A new file that is open to read and write. */
static int make(const char *path)
{
	return open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
}

/* Negative seconds come back, in the old structure too, and the file can be removed. */
static bool times_before_1970(void)
{
	const long sixties[2] = { -315619200, -315619200 };
	const struct timespec halves[2] = { { -1, 500000000 }, { -2000000000, 1 } };
	struct stat status;
	uint32_t old[16];
	int64_t new[32]; /* struct statx: word 14 is the seconds of st_mtim */

	close(make(FILE_A));
	return syscall(CALL_utime, FILE_A, sixties, 0, 0, 0, 0) == 0 &&
	       stat(FILE_A, &status) == 0 && status.st_mtim.tv_sec == sixties[1] &&
	       syscall(CALL_old_stat, FILE_A, old, 0, 0, 0, 0) == 0 &&
	       syscall(CALL_statx, AT_FDCWD, FILE_A, 0, 0x7ff, new, 0) == 0 &&
	       new[14] == sixties[1] &&
	       syscall(CALL_utimensat, AT_FDCWD, FILE_A, halves, 0, 0, 0) == 0 &&
	       stat(FILE_A, &status) == 0 && status.st_atim.tv_sec == -1 &&
	       status.st_atim.tv_nsec == 500000000 &&
	       status.st_mtim.tv_sec == halves[1].tv_sec &&status.st_mtim.tv_nsec == 1 &&
	       unlink(FILE_A) == 0;
}

/* One wrong piece, and nothing is moved. */
static bool lengths_are_signed(void)
{
	char bytes[8] = "";
	const unsigned vector[4] = { (unsigned)bytes, 4, (unsigned)bytes, -4u };
	int file = make(FILE_A);

	return fails(syscall(SYS_writev, file, vector, 2, 0, 0, 0), EINVAL) &&
	       lseek(file, 0, SEEK_END) == 0 && write(file, "12345678", 8) == 8 &&
	       fails(syscall(CALL_preadv, file, vector, 2, 0, 0, 0), EINVAL) && bytes[0] == '\0';
}

static bool offsets_are_signed(void)
{
	const int32_t wrong = -1;
	int file = make(FILE_A), other = make(FILE_B);

	return fails(syscall(CALL_sendfile, other, file, &wrong, 1, 0, 0), EINVAL);
}

static bool advice_is_checked(void)
{
	int ends[2], file = make(FILE_A);

	return pipe(ends) == 0 && syscall(CALL_fadvise64, file, 0, 0, 0, 2, 0) == 0 &&
	       fails(syscall(CALL_fadvise64, 99, 0, 0, 0, 2, 0), EBADF) &&
	       fails(syscall(CALL_fadvise64, file, 0, 0, 0, 9, 0), EINVAL) &&
	       fails(syscall(CALL_fadvise64, ends[0], 0, 0, 0, 2, 0), ESPIPE);
}

static bool fsync_is_for_files(void)
{
	int ends[2], null = open("/dev/null", O_RDWR);

	return pipe(ends) == 0 && fsync(make(FILE_A)) == 0 && fsync(open(FOLDER, O_RDONLY)) == 0 &&
	       fails(fsync(null), EINVAL) &&
	       fails(syscall(CALL_fdatasync, ends[1], 0, 0, 0, 0, 0), EINVAL);
}

/* A descriptor that is only a place is none to most calls. */
static bool places_are_no_files(void)
{
	close(make(FILE_A));
	int place = open(FILE_A, O_PATH);
	struct stat status;
	char byte;

	return place >= 0 && fstat(place, &status) == 0 && fails(read(place, &byte, 1), EBADF) &&
	       fails(fsync(place), EBADF) && fails(lseek(place, 0, SEEK_SET), EBADF) &&
	       fails(ftruncate(place, 0), EBADF) && fails(fcntl(place, F_SETFL, 0), EBADF) &&
	       fails(syscall(SYS_ioctl, place, 0x5421, &byte, 0, 0, 0), EBADF) &&
	       mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, place, 0) == MAP_FAILED && errno == EBADF;
}

static bool pipes_have_a_size(void)
{
	int ends[2];

	return pipe(ends) == 0 && fcntl(ends[0], SET_PIPE_SIZE, 4096) >= 4096 &&
	       fails(fcntl(make(FILE_A), SET_PIPE_SIZE, 4096), EBADF);
}

static bool names_are_exchanged(void)
{
	char byte = 0;
	int file = make(FILE_A);

	write(file, "a", 1);
	rmdir(FILE_B);
	unlink(FILE_B);
	if (mkdir(FILE_B, 0700) < 0 ||
	    syscall(CALL_renameat2, AT_FDCWD, FILE_A, AT_FDCWD, FILE_B, RENAME_EXCHANGE, 0) < 0)
		return false;
	bool ok = read(open(FILE_B, O_RDONLY), &byte, 1) == 1 && byte == 'a' &&
		  rmdir(FILE_A) == 0 && unlink(FILE_B) == 0;

	return ok && fails(syscall(CALL_renameat2, AT_FDCWD, FILE_A, AT_FDCWD, FILE_B,
				   RENAME_EXCHANGE, 0),
			   ENOENT);
}

/* That a directory cannot move below itself is said before what else is wrong with the new name. */
static bool directories_do_not_move_below_themselves(void)
{
	mkdir(FILE_A, 0700);
	close(make(FILE_A "/f"));
	mkdir(FILE_A "/d", 0700);
	bool ok = fails(rename(FILE_A, FILE_A "/f/"), EINVAL) &&
		  fails(rename(FILE_A, FILE_A "/f"), EINVAL) &&
		  fails(rename(FILE_A "/d", FILE_A "/f/"), ENOTDIR) &&
		  fails(rename(FILE_A "/f", FILE_A "/d/"), ENOTDIR) &&
		  fails(syscall(CALL_renameat2, AT_FDCWD, FILE_A "/d", AT_FDCWD, FILE_A "/f/",
				RENAME_EXCHANGE, 0),
			ENOTDIR);

	unlink(FILE_A "/f");
	rmdir(FILE_A "/d");
	return rmdir(FILE_A) == 0 && ok;
}

static bool links_are_no_directories(void)
{
	bool ok = symlink(FOLDER, FILE_A) == 0 &&
		  fails(open(FILE_A, O_RDONLY | O_NOFOLLOW), ELOOP) &&
		  fails(open(FILE_A, O_RDONLY | O_NOFOLLOW | O_DIRECTORY), ENOTDIR) &&
		  close(open(FILE_A, O_RDONLY | O_DIRECTORY)) == 0;

	return unlink(FILE_A) == 0 && ok;
}

/* What is made in a directory with the bit gets its group; directories get the bit as well. */
static bool directories_pass_their_group_on(void)
{
	struct stat folder, file;

	mkdir(FILE_A, 0777);
	syscall(CALL_chown32, FILE_A, -1, GROUP, 0, 0, 0); /* which only root may */
	chmod(FILE_A, 02777);
	mkdir(FILE_A "/d", 0777);
	close(make(FILE_A "/f"));
	bool ok = stat(FILE_A "/d", &folder) == 0 && folder.st_mode & S_ISGID &&
		  stat(FILE_A, &folder) == 0 && stat(FILE_A "/f", &file) == 0 &&
		  file.st_gid == folder.st_gid;

	unlink(FILE_A "/f");
	rmdir(FILE_A "/d");
	return rmdir(FILE_A) == 0 && ok;
}

/* Two descriptors of one file: if the first may lock it, the second may not. */
static bool locks_exclude_or_fail(void)
{
	const struct {
		short type, whence;
		long long start, length;
		int pid;
	} lock = { WRITE_LOCK, 0, 0, 0, 0 };
	int first = make(FILE_A), second = open(FILE_A, O_RDWR);
	bool ok = syscall(CALL_flock, first, LOCK_EX_NB, 0, 0, 0, 0) < 0 ||
		  syscall(CALL_flock, second, LOCK_EX_NB, 0, 0, 0, 0) < 0;

	if (syscall(SYS_fcntl64, first, SET_LOCK, &lock, 0, 0, 0) < 0)
		return ok;
	pid_t pid = fork();

	if (pid == 0)
		_exit(syscall(SYS_fcntl64, second, SET_LOCK, &lock, 0, 0, 0) == 0);
	return ok && end_of(pid) == 0;
}

/* A write up to the limit is cut; one at it sends SIGXFSZ, and so does a longer truncate. */
static bool files_are_limited(void)
{
	static char bytes[200];
	int file = make(FILE_A);

	signal(SIGXFSZ, note);
	return limit(LIMIT_SIZE, 100) == 0 && write(file, bytes, 200) == 100 && caught == 0 &&
	       fails(write(file, bytes, 1), EFBIG) && caught == 1 &&
	       fails(ftruncate(file, 101), EFBIG) && caught == 2 && ftruncate(file, 100) == 0;
}

static const struct check checks[] = {
	{ "times before 1970", times_before_1970 },
	{ "lengths in vectors are signed", lengths_are_signed },
	{ "sendfile's offset is signed", offsets_are_signed },
	{ "advice about files is checked", advice_is_checked },
	{ "fsync is for files", fsync_is_for_files },
	{ "places are no files", places_are_no_files },
	{ "pipes have a size", pipes_have_a_size },
	{ "names are exchanged", names_are_exchanged },
	{ "directories do not move below themselves", directories_do_not_move_below_themselves },
	{ "links are no directories", links_are_no_directories },
	{ "directories pass their group on", directories_pass_their_group_on },
	{ "locks exclude, or fail", locks_exclude_or_fail },
	{ "the size of files is limited", files_are_limited },
};

int main(void)
{
	return check_all_in(FOLDER, checks, sizeof(checks) / sizeof(checks[0]));
}

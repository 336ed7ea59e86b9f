/*
 * manual: what section 2 of Linux's manual promises, where a kernel is tempted to accept a call and
 * do nothing. A call that is missing may be refused; one that succeeds must do what it says. On
 * Linux all are ok.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "user/testing/checks.h"

#define FOLDER "/tmp/manual"
#define FILE_A FOLDER "/a"
#define FILE_B FOLDER "/b"

/* Calls that the C library does not know. */
#define CALL_utime		    30
#define CALL_old_getrlimit	    76
#define CALL_old_stat		    106
#define CALL_personality	    136
#define CALL_flock		    143
#define CALL_fdatasync		    148
#define CALL_sched_get_priority_max 159
#define CALL_sched_get_priority_min 160
#define CALL_prctl		    172
#define CALL_rt_sigqueueinfo	    178
#define CALL_sendfile		    187
#define CALL_getrlimit		    191
#define CALL_madvise		    219
#define CALL_fadvise64		    250
#define CALL_utimensat		    320
#define CALL_preadv		    333
#define CALL_renameat2		    353
#define CALL_setrlimit		    75
#define CALL_getitimer		    105
#define CALL_clock_getres64	    406
#define CALL_chown32		    212

#define LIMIT_CPU	 0
#define LIMIT_SIZE	 1
#define LIMIT_QUEUED	 11
#define TIMER_VIRTUAL	 1
#define TIMER_PROFILE	 2
#define RENAME_EXCHANGE	 2
#define PR_SET_PDEATHSIG 1
#define PR_GET_PDEATHSIG 2
#define PR_GET_NAME	 16
#define LOCK_EX_NB	 6
#define SET_LOCK	 13 /* fcntl64's F_SETLK64 */
#define WRITE_LOCK	 1
#define SET_PIPE_SIZE	 1031
#define WIPE_ON_FORK	 18
#define REAL_TIME	 40 /* a signal that is pending as often as it was sent */
#define QUEUE		 8
#define GROUP		 1234
#define CONTEXT_CS	 20 /* words in a handler's context */
#define NO_SELECTOR	 0x1234
#define SCRIPT		 "manual-script"
#define CPU_PATIENCE	 100

static volatile sig_atomic_t caught;

static void note(int signal)
{
	(void)signal;
	caught++;
}

/* A new file that is open to read and write. */
static int make(const char *path)
{
	return open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
}

static bool fails(long result, int error)
{
	return result == -1 && errno == error;
}

static int end_of(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	return status;
}

/* ---- files ---- */

/* Negative seconds come back, in the old structure too, and the file can be removed. */
static bool times_before_1970(void)
{
	const long sixties[2] = { -315619200, -315619200 };
	const struct timespec halves[2] = { { -1, 500000000 }, { -2000000000, 1 } };
	struct stat status;
	uint32_t old[16];

	close(make(FILE_A));
	return syscall(CALL_utime, FILE_A, sixties, 0, 0, 0, 0) == 0 &&
	       stat(FILE_A, &status) == 0 && status.st_mtim.tv_sec == sixties[1] &&
	       syscall(CALL_old_stat, FILE_A, old, 0, 0, 0, 0) == 0 &&
	       syscall(CALL_utimensat, AT_FDCWD, FILE_A, halves, 0, 0, 0) == 0 &&
	       stat(FILE_A, &status) == 0 && status.st_atim.tv_sec == -1 &&
	       status.st_atim.tv_nsec == 500000000 && status.st_mtim.tv_sec == halves[1].tv_sec &&
	       status.st_mtim.tv_nsec == 1 && unlink(FILE_A) == 0;
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

/* ---- memory ---- */

/* What a child writes into shared memory its parent reads. */
static bool shared_memory_is_shared(void)
{
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return true;
	pid_t pid = fork();

	if (pid == 0)
		_exit(*page = 1);
	return end_of(pid) == 1 << 8 && *page == 1;
}

static bool wiped_memory_is_wiped(void)
{
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*page = 1;
	if (syscall(CALL_madvise, page, 4096, WIPE_ON_FORK, 0, 0, 0) < 0)
		return errno == EINVAL;
	pid_t pid = fork();

	if (pid == 0)
		_exit(*page);
	return end_of(pid) == 0;
}

/* ---- limits and timers ---- */

/* Sets the soft limit. */
static long limit(int resource, unsigned soft)
{
	unsigned both[2];

	syscall(CALL_getrlimit, resource, both, 0, 0, 0, 0);
	both[0] = soft;
	return syscall(CALL_setrlimit, resource, both, 0, 0, 0, 0);
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

static bool processor_time_is_limited(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		alarm(CPU_PATIENCE);
		limit(LIMIT_CPU, 1);
		for (;;)
			;
	}
	alarm(CPU_PATIENCE);
	return (end_of(pid) & 0x7f) == SIGXCPU;
}

/* Rings after so much of its processor time, and not while it sleeps. */
static bool timer_counts_use(int which, int signal_number)
{
	const long timer[4] = { 0, 0, 0, 50000 };
	const struct timespec pause = { 0, 200000000 };
	long left[4];

	alarm(CPU_PATIENCE);
	signal(signal_number, note);
	syscall(SYS_setitimer, which, timer, NULL, 0, 0, 0);
	nanosleep(&pause, NULL);
	bool ok = caught == 0 && syscall(CALL_getitimer, which, left, 0, 0, 0, 0) == 0 &&
		  left[2] == 0 && left[3] > 0 && left[3] <= 60000;

	while (!caught)
		;
	return ok;
}

static bool virtual_timer_rings(void)
{
	return timer_counts_use(TIMER_VIRTUAL, SIGVTALRM);
}

static bool profile_timer_rings(void)
{
	return timer_counts_use(TIMER_PROFILE, SIGPROF);
}

/* The old call has signed numbers. */
static bool limits_fit_the_old_call(void)
{
	unsigned old[2], new[2];

	return limit(LIMIT_SIZE, -1u) == 0 &&
	       syscall(CALL_old_getrlimit, LIMIT_SIZE, old, 0, 0, 0, 0) == 0 &&
	       syscall(CALL_getrlimit, LIMIT_SIZE, new, 0, 0, 0, 0) == 0 && new[0] == -1u &&
	       old[0] == INT_MAX;
}

/* ---- signals and processes ---- */

/* As many as the limit allows wait, and sigqueue says when there are no more. */
static bool queue_is_limited(void)
{
	const int32_t info[32] = { REAL_TIME, 0, -1 };
	int count = 0;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, REAL_TIME);
	sigprocmask(SIG_BLOCK, &set, NULL);
	limit(LIMIT_QUEUED, QUEUE);
	while (count <= QUEUE &&
	       syscall(CALL_rt_sigqueueinfo, getpid(), REAL_TIME, info, 0, 0, 0) == 0)
		count++;
	return count <= QUEUE && errno == EAGAIN && kill(getpid(), REAL_TIME) == 0;
}

static unsigned long long set_of(const char *status, const char *name)
{
	const char *line = strstr(status, name);

	return line ? strtoull(line + strlen(name), NULL, 16) : 0;
}

static bool actions_are_shown(void)
{
	static char status[4096];

	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, note);
	read(open("/proc/self/status", O_RDONLY), status, sizeof(status) - 1);
	return set_of(status, "\nSigIgn:\t") & SIGNAL_BIT(SIGUSR1) &&
	       set_of(status, "\nSigCgt:\t") & SIGNAL_BIT(SIGUSR2) &&
	       !(set_of(status, "\nSigIgn:\t") & SIGNAL_BIT(SIGUSR2));
}

static void spoil(int signal, void *info, unsigned *context)
{
	(void)signal;
	(void)info;
	context[CONTEXT_CS] = NO_SELECTOR;
}

static bool sigreturn_refuses_selectors(void)
{
	const struct sigaction action = { .sa_handler = (void *)spoil, .sa_flags = SA_SIGINFO };
	pid_t pid = fork();

	if (pid == 0) {
		sigaction(SIGUSR1, &action, NULL);
		raise(SIGUSR1);
		_exit(0);
	}
	return (end_of(pid) & 0x7f) == SIGSEGV;
}

static bool no_group_is_waited_for(void)
{
	return fails(waitpid(INT_MIN, NULL, 0), ESRCH);
}

static bool priorities_are_linux(void)
{
	return syscall(CALL_sched_get_priority_max, 0, 0, 0, 0, 0, 0) == 0 &&
	       syscall(CALL_sched_get_priority_max, 1, 0, 0, 0, 0, 0) == 99 &&
	       syscall(CALL_sched_get_priority_min, 2, 0, 0, 0, 0, 0) == 1 &&
	       fails(syscall(CALL_sched_get_priority_min, 77, 0, 0, 0, 0, 0), EINVAL);
}

static bool clocks_have_a_resolution(void)
{
	long long resolution[2] = { 1, 0 };

	return syscall(CALL_clock_getres64, CLOCK_MONOTONIC, resolution, 0, 0, 0, 0) == 0 &&
	       resolution[0] == 0 && resolution[1] > 0;
}

/* What was set can be asked for again; or it could not be set. */
static bool settings_stay_or_fail(void)
{
	int signal = 0;
	long before = syscall(CALL_personality, -1, 0, 0, 0, 0, 0);

	if (before < 0 || syscall(CALL_personality, -1, 0, 0, 0, 0, 0) != before)
		return false;
	if (syscall(CALL_personality, before | 0x40000, 0, 0, 0, 0, 0) >= 0 &&
	    syscall(CALL_personality, -1, 0, 0, 0, 0, 0) != (before | 0x40000))
		return false;
	return syscall(CALL_prctl, PR_SET_PDEATHSIG, SIGUSR1, 0, 0, 0, 0) < 0
		   ? errno == EINVAL
		   : syscall(CALL_prctl, PR_GET_PDEATHSIG, &signal, 0, 0, 0, 0) == 0 &&
			 signal == SIGUSR1;
}

/* ---- programs ---- */

static bool is_written(const char *path, const void *bytes, unsigned length)
{
	unlink(path);
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0700);
	bool ok = write(file, bytes, length) == (ssize_t)length;

	close(file);
	return ok;
}

/* A task that runs a script is called as the script; this program is the interpreter. */
static bool scripts_give_their_name(void)
{
	char line[300] = "#!";
	ssize_t length = readlink("/proc/self/exe", line + 2, 200);
	char *const arguments[] = { SCRIPT, NULL };

	strcpy(line + 2 + length, " name\n");
	if (length < 0 || !is_written(FOLDER "/" SCRIPT, line, strlen(line)))
		return false;
	pid_t pid = fork();

	if (pid == 0) {
		execv(FOLDER "/" SCRIPT, arguments);
		_exit(1);
	}
	int status = end_of(pid);

	unlink(FOLDER "/" SCRIPT);
	return status == 0;
}

static int tell_name(void)
{
	char name[16] = "";

	syscall(CALL_prctl, PR_GET_NAME, name, 0, 0, 0, 0);
	return strcmp(name, SCRIPT) != 0;
}

/* Not ENOEXEC: a shell would take it for a script. */
static bool linker_is_missed(void)
{
	static const struct {
		uint8_t identity[16];
		uint16_t type, machine;
		uint32_t version, entry, phoff, shoff, flags;
		uint16_t ehsize, phentsize, phnum, shentsize, shnum, shstrndx;
		uint32_t interpret[8], load[8];
		char linker[16];
	} program = {
		{ 0x7f, 'E', 'L', 'F', 1, 1, 1 },
		2,
		3,
		1,
		0x08048000,
		52,
		0,
		0,
		52,
		32,
		2,
		40,
		0,
		0,
		{ 3, 116, 0x08048074, 0x08048074, 12, 12, 4, 1 },
		{ 1, 0, 0x08048000, 0x08048000, 132, 132, 5, 4096 },
		"/none/ld.so",
	};
	char *const arguments[] = { "program", NULL };

	return is_written(FILE_A, &program, sizeof(program)) &&
	       fails(execv(FILE_A, arguments), ENOENT);
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
	{ "directories pass their group on", directories_pass_their_group_on },
	{ "locks exclude, or fail", locks_exclude_or_fail },
	{ "shared memory is shared, or refused", shared_memory_is_shared },
	{ "wiped memory is wiped, or refused", wiped_memory_is_wiped },
	{ "the size of files is limited", files_are_limited },
	{ "processor time is limited", processor_time_is_limited },
	{ "a timer counts time in user mode", virtual_timer_rings },
	{ "a timer counts processor time", profile_timer_rings },
	{ "limits fit the old call", limits_fit_the_old_call },
	{ "the queue of signals is limited", queue_is_limited },
	{ "a process's actions are shown", actions_are_shown },
	{ "sigreturn refuses selectors", sigreturn_refuses_selectors },
	{ "no group is waited for", no_group_is_waited_for },
	{ "priorities are those of policies", priorities_are_linux },
	{ "clocks have a resolution", clocks_have_a_resolution },
	{ "settings stay, or fail", settings_stay_or_fail },
	{ "scripts give their name", scripts_give_their_name },
	{ "a dynamic linker is missed", linker_is_missed },
};

int main(int count, char **arguments)
{
	if (count > 1 && strcmp(arguments[1], "name") == 0)
		return tell_name();
	mkdir(FOLDER, 0777);
	int status = check_all(checks, sizeof(checks) / sizeof(checks[0]));

	unlink(FILE_A);
	unlink(FILE_B);
	rmdir(FOLDER);
	return status;
}

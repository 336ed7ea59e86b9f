/*
 * callcheck: what programs for Linux expect of calls that the course's own programs do not use.
 * Prints a line for each check (KTAP). On Linux all are ok.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALL_UTIME	  30
#define CALL_MLOCK	  150
#define CALL_FADVISE	  272
#define CALL_SYSLOG	  103
#define CALL_SETGROUPS	  206
#define CALL_CHOWN	  212
#define CALL_SETAFFINITY  241
#define CALL_FSTATAT	  300
#define CALL_FCHMOD	  94
#define CALL_FALLOCATE	  324
#define CALL_SENDFILE	  187
#define CALL_GETRESUID	  209
#define CALL_MADVISE	  219
#define CALL_FUTEX	  240
#define CALL_WAITID	  284
#define CALL_PREADV	  333
#define CALL_PRLIMIT	  340
#define CALL_PRCTL	  172
#define CALL_SIGTIMEDWAIT 177
#define CALL_SIGQUEUEINFO 178
#define CALL_SELECT	  142
#define CALL_CLOSE_RANGE  436
#define CALL_MMAP2	  192
#define CALL_MREMAP	  163
#define CALL_FCHOWNAT	  298
#define CALL_LINKAT	  303
#define CALL_UTIMENSAT	  320
#define CALL_FACCESSAT2	  439

#define FIRST_QUEUED  34 /* a signal that is pending as often as it was sent */
#define WITH_INFO     4
#define SUBREAPER     36
#define SET_NAME      15
#define GET_NAME      16
#define LIMIT_FILES   7
#define ADVICE_FORGET 4
#define SEEK_TO_DATA  3
#define SEEK_TO_HOLE  4
#define HERE	      (-100) /* as a directory: the working directory */
#define NO_FLAG	      0x10000000
#define EFFECTIVE     0x200
#define OMIT	      0x3ffffffe
#define PLACE	      010000000
#define NO_FOLLOW     0400000
#define EMPTY_PATH    0x1000

static unsigned checks, failed;

static void check(const char *name, bool ok)
{
	printf("%s %u %s\n", ok ? "ok" : "not ok", ++checks, name);
	failed += !ok;
}

/* The call's result, or a negated error number. */
static long call(long number, long a, long b, long c, long d, long e)
{
	long result = syscall(number, a, b, c, d, e, 0);

	return result == -1 ? -errno : result;
}

#define ADDRESS(object) ((long)&(object))

static void check_futex(void)
{
	uint32_t word = 5;
	const int32_t time[2] = { 0, 1000000 };

	check("futex wakes nobody", call(CALL_FUTEX, ADDRESS(word), 129, 1, 0, 0) == 0);
	check("another value", call(CALL_FUTEX, ADDRESS(word), 0, 4, 0, 0) == -EAGAIN);
	check("a wait for a time",
	      call(CALL_FUTEX, ADDRESS(word), 128, 5, ADDRESS(time), 0) == -ETIMEDOUT);
	check("an address inside a word",
	      call(CALL_FUTEX, ADDRESS(word) + 1, 1, 1, 0, 0) == -EINVAL);
}

static void check_queue(void)
{
	uint64_t set = 1ull << (FIRST_QUEUED - 1), old;
	const int32_t time[2] = { 0, 1000000 };
	int32_t info[32], order = 0;

	call(SYS_rt_sigprocmask, SIG_BLOCK, ADDRESS(set), ADDRESS(old), 8, 0);
	for (int value = 1; value <= 3; value++) {
		int32_t wanted[32] = { FIRST_QUEUED, 0, -1, getpid(), 0, value };

		call(CALL_SIGQUEUEINFO, getpid(), FIRST_QUEUED, ADDRESS(wanted), 0, 0);
	}
	while (call(CALL_SIGTIMEDWAIT, ADDRESS(set), ADDRESS(info), ADDRESS(time), 8, 0) ==
	       FIRST_QUEUED)
		order = order * 10 + info[5];
	check("signals wait in a queue, with their values", order == 123 && info[2] == -1);
	check("sigtimedwait's time",
	      call(CALL_SIGTIMEDWAIT, ADDRESS(set), 0, ADDRESS(time), 8, 0) == -EAGAIN);
	call(SYS_rt_sigprocmask, SIG_SETMASK, ADDRESS(old), 0, 8, 0);
}

static int start_child(int status)
{
	int pid = fork();

	if (pid == 0)
		_exit(status);
	return pid;
}

static void check_waitid(void)
{
	int32_t info[32] = { 0 };
	int pid = start_child(7);

	check("waitid can leave the news",
	      call(CALL_WAITID, 1, pid, ADDRESS(info), 0x01000004, 0) == 0 && info[0] == SIGCHLD &&
		  info[2] == 1 && info[3] == pid && info[5] == 7);
	check("and take it", call(CALL_WAITID, 0, 0, ADDRESS(info), 4, 0) == 0 && info[3] == pid);
	check("no child is left", call(CALL_WAITID, 0, 0, ADDRESS(info), 4, 0) == -ECHILD);
	check("no kind of news", call(CALL_WAITID, 0, 0, ADDRESS(info), 1, 0) == -EINVAL);
}

/* A child that ends before its own child, which says who its parent is then. */
static void check_subreaper(void)
{
	int ends[2], parent = 0;

	check("to adopt orphans", call(CALL_PRCTL, SUBREAPER, 1, 0, 0, 0) == 0 && pipe(ends) == 0);
	int pid = fork();

	if (pid == 0) {
		pid = getpid();
		if (fork() > 0)
			_exit(0);
		while (getppid() == pid)
			call(SYS_sched_yield, 0, 0, 0, 0, 0);
		parent = getppid();
		write(ends[1], &parent, sizeof(parent));
		_exit(0);
	}
	read(ends[0], &parent, sizeof(parent));
	check("it is mine", parent == getpid());
	while (wait(NULL) > 0)
		;
	close(ends[0]);
	close(ends[1]);
	call(CALL_PRCTL, SUBREAPER, 0, 0, 0, 0);
}

static void check_names(void)
{
	char name[16];
	uint32_t users[3] = { 1, 1, 1 };

	call(CALL_PRCTL, SET_NAME, (long)"a name of my own", 0, 0, 0);
	call(CALL_PRCTL, GET_NAME, (long)name, 0, 0, 0);
	check("a name, cut", strcmp(name, "a name of my ow") == 0);
	check("an unknown wish", call(CALL_PRCTL, 9999, 0, 0, 0, 0) == -EINVAL);
	check("three users", call(CALL_GETRESUID, ADDRESS(users[0]), ADDRESS(users[1]),
				  ADDRESS(users[2]), 0, 0) == 0 &&
				 users[0] == (uint32_t)getuid());
	memset(name, 'x', sizeof(name));
	call(CALL_PRCTL, SET_NAME, (long)"ab", 0, 0, 0);
	call(CALL_PRCTL, GET_NAME, (long)name, 0, 0, 0);
	check("nothing after a short name", memcmp(name, "ab\0\0\0\0\0\0\0\0\0\0\0\0\0", 16) == 0);
}

static void check_select(void)
{
	int32_t time[2] = { 0, 20000 };

	check("select's time is over",
	      call(CALL_SELECT, 0, 0, 0, 0, ADDRESS(time)) == 0 && time[0] == 0 && time[1] == 0);
}

static void check_limits(void)
{
	uint64_t before[2], few[2] = { 5, 5 }, wrong[2] = { 6, 5 };

	call(CALL_PRLIMIT, 0, LIMIT_FILES, 0, ADDRESS(before), 0);
	few[1] = before[1];
	check("a limit that makes no sense",
	      call(CALL_PRLIMIT, 0, LIMIT_FILES, ADDRESS(wrong), 0, 0) == -EINVAL);
	call(CALL_PRLIMIT, 0, LIMIT_FILES, ADDRESS(few), 0, 0);
	check("the limit of descriptors", dup2(1, 4) == 4 && dup2(1, 5) == -1 && errno == EBADF &&
					      dup2(1, 3) == 3 && dup(1) == -1 && errno == EMFILE);
	check("close_range", call(CALL_CLOSE_RANGE, 3, -1, 0, 0, 0) == 0 && close(4) == -1);
	call(CALL_PRLIMIT, 0, LIMIT_FILES, ADDRESS(before), 0, 0);
}

static void check_files(void)
{
	char text[8] = { 0 };
	const uint32_t vectors[2][2] = { { ADDRESS(text[3]), 3 }, { ADDRESS(text[0]), 3 } };
	uint32_t offset = 4;
	int from = open("/tmp/callcheck", O_RDWR | O_CREAT | O_TRUNC, 0600);
	int to = open("/tmp/callcheck.to", O_RDWR | O_CREAT | O_TRUNC, 0600);

	write(from, "0123456789", 10);
	check("preadv", call(CALL_PREADV, from, ADDRESS(vectors), 2, 1, 0) == 6 &&
			    strcmp(text, "456123") == 0);
	check("sendfile", call(CALL_SENDFILE, to, from, ADDRESS(offset), 99, 0) == 6 &&
			      offset == 10 && lseek(from, 0, SEEK_CUR) == 10 &&
			      pread(to, text, 6, 0) == 6 && strcmp(text, "456789") == 0);
	check("data and holes", lseek(from, 3, SEEK_TO_DATA) == 3 &&
				    lseek(from, 3, SEEK_TO_HOLE) == 10 &&
				    lseek(from, 10, SEEK_TO_DATA) == -1 && errno == ENXIO);
	close(from);
	close(to);
	from = open("/tmp/callcheck", O_WRONLY);
	check("a mapping needs a file that can be read",
	      call(CALL_MMAP2, 0, 4096, 1, 2, from) == -EACCES);
	close(from);
	unlink("/tmp/callcheck");
	unlink("/tmp/callcheck.to");
}

static void check_flags(void)
{
	const char *path = "/tmp/callcheck";

	close(open(path, O_RDWR | O_CREAT | O_TRUNC, 0600));
	check("flags that nobody knows",
	      call(CALL_FCHOWNAT, HERE, (long)path, -1, -1, NO_FLAG) == -EINVAL &&
		  call(CALL_LINKAT, HERE, (long)path, HERE, (long)"/tmp/other", NO_FLAG) ==
		      -EINVAL &&
		  call(CALL_UTIMENSAT, HERE, (long)path, 0, NO_FLAG, 0) == -EINVAL &&
		  call(CALL_FACCESSAT2, HERE, (long)path, 0, NO_FLAG, 0) == -EINVAL);
	check("the effective user's access",
	      call(CALL_FACCESSAT2, HERE, (long)path, 0, EFFECTIVE, 0) == 0);
	unlink(path);
}

/* The second time makes no sense: then the first one must not be set either. */
static void check_times(void)
{
	const char *path = "/tmp/callcheck";
	const int32_t good[4] = { 1000, 1, 2000, 2 }, wrong[4] = { 3000, 3, 4000, -5 };
	const int32_t second[4] = { 0, OMIT, 5000, 5 };
	struct stat found;

	close(open(path, O_RDWR | O_CREAT | O_TRUNC, 0600));
	call(CALL_UTIMENSAT, HERE, (long)path, ADDRESS(good), 0, 0);
	check("a time that is not valid",
	      call(CALL_UTIMENSAT, HERE, (long)path, ADDRESS(wrong), 0, 0) == -EINVAL &&
		  stat(path, &found) == 0 && found.st_atim.tv_sec == 1000 &&
		  found.st_mtim.tv_sec == 2000);
	check("one time of two",
	      call(CALL_UTIMENSAT, HERE, (long)path, ADDRESS(second), 0, 0) == 0 &&
		  stat(path, &found) == 0 && found.st_atim.tv_sec == 1000 &&
		  found.st_mtim.tv_sec == 5000);
	unlink(path);
}

static void check_lost_directory(void)
{
	char link[32], path[128] = { 0 };
	int descriptor;

	mkdir("/tmp/callcheck.d", 0700);
	descriptor = open("/tmp/callcheck.d", O_RDONLY | O_DIRECTORY);
	rmdir("/tmp/callcheck.d");
	snprintf(link, sizeof(link), "/proc/self/fd/%d", descriptor);
	check("a directory that is gone", readlink(link, path, sizeof(path) - 1) > 10 &&
					      strcmp(strchr(path, ' '), " (deleted)") == 0);
	close(descriptor);
}

/* Open only to name what is there, even a symbolic link. */
static void check_places(void)
{
	char text[4];
	uint64_t stat[12];
	int place, link;

	symlink("/tmp/callcheck", "/tmp/callcheck.link");
	close(open("/tmp/callcheck", O_WRONLY | O_CREAT, 0600));
	place = open("/tmp/callcheck", PLACE | O_WRONLY | O_TRUNC);
	link = open("/tmp/callcheck.link", PLACE | NO_FOLLOW);
	check("a place is neither read nor written",
	      place >= 0 && read(place, text, 1) == -1 && errno == EBADF &&
		  write(place, text, 1) == -1 && errno == EBADF);
	check("nor changed", call(CALL_FCHMOD, place, 0, 0, 0, 0) == -EBADF &&
				 call(CALL_FALLOCATE, place, 0, 0, 0, 1) == -EBADF);
	check("a link's place",
	      call(CALL_FSTATAT, link, (long)"", (long)stat, EMPTY_PATH, 0) == 0 &&
		  (((uint32_t *)stat)[4] & 0170000) == 0120000);
	check("no directory",
	      open("/tmp/callcheck", PLACE | O_DIRECTORY) == -1 && errno == ENOTDIR);
	close(place);
	close(link);
	unlink("/tmp/callcheck.link");
	unlink("/tmp/callcheck");
}

static uint32_t mode_of(int file)
{
	uint32_t stat[24];

	call(SYS_fstat64, file, (long)stat, 0, 0, 0);
	return stat[4] & 07777;
}

static void check_owners(void)
{
	int file = open("/tmp/callcheck", O_RDWR | O_CREAT | O_TRUNC, 0600);
	const uint32_t group = getuid() == 0 ? 0 : 1;
	uint32_t seconds[2] = { 5, 7 }, stat[24];

	call(CALL_FCHMOD, file, 06755, 0, 0, 0);
	call(CALL_CHOWN, (long)"/tmp/callcheck", -1, -1, 0, 0);
	check("a new owner's program runs as who calls it", mode_of(file) == 0755);
	check("root's group",
	      call(CALL_SETGROUPS, 1, ADDRESS(group), 0, 0, 0) == (getuid() == 0 ? 0 : -EPERM));
	check("whole seconds",
	      call(CALL_UTIME, (long)"/tmp/callcheck", ADDRESS(seconds), 0, 0, 0) == 0 &&
		  call(SYS_fstat64, file, (long)stat, 0, 0, 0) == 0 && stat[16] == 5 &&
		  stat[17] == 0 && stat[18] == 7);
	check("room for a file", syscall(CALL_FALLOCATE, file, 0, 100, 0, 50, 0) == 0 &&
				     lseek(file, 0, SEEK_END) == 150 &&
				     syscall(CALL_FALLOCATE, file, 1, 0, 0, 500, 0) == 0 &&
				     lseek(file, 0, SEEK_END) == 150);
	check("advice is taken", call(CALL_FADVISE, file, 0, 0, 0, 0) == 0 &&
				     call(CALL_FADVISE, 99, 0, 0, 0, 0) == -EBADF);
	check("none of no length",
	      syscall(CALL_FALLOCATE, file, 0, 0, 0, 0, 0) == -1 && errno == EINVAL);
	close(file);
	unlink("/tmp/callcheck");
}

static void check_machine(void)
{
	uint32_t mask = 0, first = 1;

	check("a processor that is not there",
	      call(CALL_SETAFFINITY, 0, 4, ADDRESS(mask), 0, 0) == -EINVAL);
	check("one that is", call(CALL_SETAFFINITY, 0, 4, ADDRESS(first), 0, 0) == 0);
	check("no more of the log than there is room",
	      call(CALL_SYSLOG, 3, 16, 64, 0, 0) <= 0 && call(CALL_SYSLOG, 3, 16, -1, 0, 0) < 0);
}

static void check_memory(void)
{
	char *page = (char *)syscall(CALL_MMAP2, 0, 4096, 3, 0x22, -1, 0);

	*page = 1;
	check("memory that is forgotten",
	      call(CALL_MADVISE, (long)page, 4096, ADVICE_FORGET, 0, 0) == 0 && *page == 0);
	check("any bytes can be kept in memory",
	      call(CALL_MLOCK, (long)page + 5, 10, 0, 0, 0) == 0);
	check("unknown advice", call(CALL_MADVISE, (long)page, 4096, 99, 0, 0) == -EINVAL);
	check("a mapping of no length grows into none",
	      call(CALL_MREMAP, (long)page, 0, 4096, 1, 0) == -EINVAL);
}

static void tell_code(int signal, const int32_t *info)
{
	(void)signal;
	_exit(info[2] & 0xff);
}

/* The code that a child finds with its SIGSEGV. */
static int code_of(void (*mistake)(void))
{
	const struct sigaction action = {
		.sa_handler = (void (*)(int))(uintptr_t)tell_code,
		.sa_flags = WITH_INFO,
	};
	int status = 0, pid = fork();

	if (pid == 0) {
		sigaction(SIGSEGV, &action, NULL);
		mistake();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static void read_kernel(void)
{
	*(volatile char *)0xc0100000;
}

/* A descriptor of a local table, which there is not. */
static void load_segment(void)
{
	__asm__ volatile("movl %0, %%gs" : : "r"(0x1234));
}

static void check_faults(void)
{
	check("the kernel's memory is not there", code_of(read_kernel) == 1);
	check("no local descriptors", code_of(load_segment) == 0x80);
}

/* A program's name, as it is after its start by a longer one. */
static int tell_name(void)
{
	char name[16];

	call(CALL_PRCTL, GET_NAME, (long)name, 0, 0, 0);
	return memcmp(name, "exe\0\0\0\0\0\0\0\0\0\0\0\0", 16) == 0 ? 3 : 4;
}

static void check_name_of_program(void)
{
	char *words[] = { "callcheck", "name", NULL };
	int status = 0, pid = fork();

	if (pid == 0) {
		call(CALL_PRCTL, SET_NAME, (long)"a name of my own", 0, 0, 0);
		execve("/proc/self/exe", words, environ);
		_exit(5);
	}
	waitpid(pid, &status, 0);
	check("nothing after a program's name", WEXITSTATUS(status) == 3);
}

int main(int count, char **words)
{
	if (count > 1 && strcmp(words[1], "name") == 0)
		return tell_name();
	printf("KTAP version 1\n");
	check_futex();
	check_queue();
	check_waitid();
	check_subreaper();
	check_names();
	check_name_of_program();
	check_select();
	check_limits();
	check_files();
	check_flags();
	check_times();
	check_lost_directory();
	check_places();
	check_owners();
	check_machine();
	check_memory();
	check_faults();
	printf("1..%u\n", checks);
	return failed > 0;
}

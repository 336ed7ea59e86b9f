/*
 * corners: what system calls must do in cases that programs seldom come to. Prints a line for each
 * (KTAP). On Linux all are ok.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "user/testing/checks.h"

#define ANY_CHILD		0x40000000 /* waitpid: one that sends no SIGCHLD, too */
#define NO_SIGNAL		200	   /* clone: what is sent at the end, and is no signal */
#define NEVER_MAPPED		((void *)16)
#define PIECE			0x7ffff000u /* bytes that one call moves at most */
#define FLUSH_SECONDS		2
#define NESTED			64 /* handlers in handlers: more than 8 KiB */
#define CALL_pwritev		334
#define CALL_getpgid		132
#define CALL_sched_getscheduler 157
#define CALL_sched_getaffinity	242
#define CALL_rt_sigreturn	173
#define CALL_sigaltstack	186
#define CALL_timerfd_create	322
#define CALL_timerfd_settime	325

/* set_thread_area's struct user_desc, for the whole address space. */
struct segment {
	unsigned entry, base, limit, flags;
};

#define SEGMENT_WRITABLE 0x51
#define SEGMENT_NONE	 0x28 /* clears the entry */

/* Words in the context that a handler is given. */
#define CONTEXT_EIP   19
#define CONTEXT_FLAGS 21
#define TRAP_FLAG     0x100

static void sleep_ms(long ms)
{
	const struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- the end of a child that sends what is no signal ---- */

static bool ends_without_signal(void)
{
	int status = 1;
	long pid = syscall(SYS_clone, NO_SIGNAL, 0, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	return pid > 0 && waitpid(pid, &status, ANY_CHILD) == pid && status == 0;
}

/* ---- selectors whose descriptor goes away ---- */

/* Runs in a child, which may end by a signal: the machine must not. */
static bool survives(void (*attack)(unsigned selector))
{
	struct segment segment = { -1u, 0, 0xfffff, SEGMENT_WRITABLE };
	pid_t pid = fork();

	if (pid == 0) {
		syscall(SYS_set_thread_area, &segment, 0, 0, 0, 0, 0);
		attack(segment.entry * 8);
		segment = (struct segment){ segment.entry, 0, 0, SEGMENT_NONE };
		syscall(SYS_set_thread_area, &segment, 0, 0, 0, 0, 0);
		_exit(0);
	}
	return waitpid(pid, NULL, 0) == pid;
}

static void load_data(unsigned selector)
{
	__asm__ volatile("movl %0, %%fs" : : "r"(selector)); /* as if it were ring 0's */
}

static void load_stack(unsigned selector)
{
	__asm__ volatile("movl %0, %%ss" : : "r"(selector | 3));
}

static bool data_segment_goes(void)
{
	return survives(load_data);
}

static bool stack_segment_goes(void)
{
	return survives(load_stack);
}

/* ---- signals ---- */

/* One that waits already ends ppoll, its handler runs, and the mask is the old one again. */
static bool ppoll_takes_pending(void)
{
	const struct timespec second = { 1, 0 };
	sigset_t none, usr1, mask;

	signal(SIGUSR1, note);
	sigemptyset(&none);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	raise(SIGUSR1);
	long result = syscall(SYS_ppoll, NULL, 0, &second, &none, 8, 0);
	bool is_interrupted = result == -1 && errno == EINTR && caught == 1;

	sigprocmask(SIG_BLOCK, NULL, &mask);
	return is_interrupted && mask == usr1;
}

static void set_timer(long ms)
{
	long timer[4] = { 0, 0, 0, ms * 1000 };

	syscall(SYS_setitimer, 0, timer, NULL, 0, 0, 0);
}

/* A sleep whose rest could not be told is over: the next one is as long as it should be. */
static bool sleep_is_forgotten(void)
{
	const struct timespec long_time = { 3, 0 };

	signal(SIGALRM, note);
	set_timer(50);
	if (nanosleep(&long_time, NEVER_MAPPED) != -1 || errno != EFAULT)
		return false;
	long start = now_ms();

	sleep_ms(20);
	return now_ms() - start < 1000;
}

/* A task that was stopped and continued meanwhile goes on polling, up to the same time. */
static bool poll_goes_on(void)
{
	int status = 1;
	pid_t pid = fork();

	if (pid == 0) {
		long start = now_ms();
		int result = poll(NULL, 0, 400);

		_exit(result == 0 && now_ms() - start >= 400 && now_ms() - start < 600 ? 0 : 1);
	}
	sleep_ms(100);
	kill(pid, SIGSTOP);
	sleep_ms(100);
	kill(pid, SIGCONT);
	return waitpid(pid, &status, 0) == pid && status == 0;
}

/* Sends itself the next signal, up to more of them than its stack has room for. */
static void nest(int signal)
{
	if (++caught < NESTED)
		raise(signal);
}

/* Frames do not go on below the end of the alternate stack: that program dies. */
static bool handlers_stay_on_stack(void)
{
	static char memory[NESTED * 2048];
	const unsigned stack[3] = { (unsigned)&memory[sizeof(memory) - 8192], 0, 8192 };
	const struct sigaction action = { .sa_handler = nest, .sa_flags = SA_ONSTACK | SA_NODEFER };
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		syscall(CALL_sigaltstack, stack, NULL, 0, 0, 0, 0);
		sigaction(SIGUSR1, &action, NULL);
		_exit(raise(SIGUSR1));
	}
	return waitpid(pid, &status, 0) == pid && status == SIGSEGV;
}

/* The fast call in the page that the kernel shares: SYSENTER, or SYSCALL on AMD's processors; NULL
 * without such a page. An INT 0x80 for calls that begin again is after both. */
static const unsigned char *fast_call(void)
{
	const unsigned char *at = (const unsigned char *)getauxval(AT_SYSINFO);

	while (at && (at[0] != 0x0f || (at[1] != 0x34 && at[1] != 0x05)))
		at++;
	return at;
}

/* Goes to where fast calls come back with the trap flag set, by SYSENTER, which usually ends there;
 * by INT 0x80 on a processor that has no SYSENTER here. */
static void forge(int signal, void *info, unsigned *context)
{
	const unsigned char *call = fast_call();

	(void)signal;
	if (!call)
		_exit(1);
	context[CONTEXT_EIP] = (unsigned)call + 4;
	context[CONTEXT_FLAGS] |= TRAP_FLAG;
	__asm__ volatile("testl %2, %2; movl %0, %%esp; movl %%esp, %%ebp; jz 1f; sysenter\n"
			 "1:\tint $0x80"
			 :
			 : "r"((unsigned)info - 12), "a"(CALL_rt_sigreturn), "r"(call[1] == 0x34));
}

/* The trap comes in the program. */
static bool sigreturn_can_trap(void)
{
	const struct sigaction action = { .sa_handler = (void *)forge, .sa_flags = SA_SIGINFO };
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		sigaction(SIGUSR1, &action, NULL);
		raise(SIGUSR1);
		_exit(0);
	}
	return waitpid(pid, &status, 0) == pid && status == SIGTRAP;
}

/* Makes a member of a group, its leader if that is 0. It writes when SIGHUP comes, which is noted
 * already. */
static pid_t make_member(pid_t group, int report)
{
	pid_t pid = fork();

	if (pid == 0) {
		setpgid(0, group);
		alarm(PATIENCE);
		if (group == 0)
			raise(SIGSTOP);
		while (!caught)
			sleep_ms(1000);
		_exit(write(report, "", 1) != 1);
	}
	setpgid(pid, group ? group : pid);
	return pid;
}

/* When its last keeper ends, a group with a stopped member is told and continued: all of it. */
static bool orphans_are_told(void)
{
	int ends[2];
	char bytes[2];

	pipe(ends);
	pid_t keeper = fork();

	if (keeper == 0) {
		setsid();
		signal(SIGHUP, note); /* the members', too, from their first moment on */
		pid_t stopped = make_member(0, ends[1]);

		make_member(stopped, ends[1]);
		_exit(waitpid(stopped, NULL, WUNTRACED) != stopped);
	}
	return read(ends[0], bytes, 1) == 1 && read(ends[0], bytes, 1) == 1;
}

/* A group's only keeper stays, but the child that it could have continued the group for ends. A
 * stopped member is told that is not a child of the one that ends. */
static bool grandchildren_are_told(void)
{
	int ends[2];
	char byte;

	pipe(ends);
	pid_t child = fork();

	if (child == 0) {
		setpgid(0, 0);
		signal(SIGHUP, note);
		if (fork() > 0)
			pause(); /* until SIGUSR1 */
		pid_t stopped = fork();

		alarm(PATIENCE);
		if (stopped > 0) {
			waitpid(stopped, NULL, WUNTRACED);
			kill(getppid(), SIGUSR1);
			pause();
			_exit(0);
		}
		raise(SIGSTOP);
		_exit(!caught || write(ends[1], "", 1) != 1);
	}
	close(ends[1]);
	return read(ends[0], &byte, 1) == 1;
}

/* Any task can find the first process of all. */
static bool finds_the_first(void)
{
	char processors[128];

	return syscall(CALL_getpgid, 1, 0, 0, 0, 0, 0) >= 0 &&
	       syscall(CALL_sched_getscheduler, 1, 0, 0, 0, 0, 0) >= 0 &&
	       syscall(CALL_sched_getaffinity, 1, sizeof(processors), processors, 0, 0, 0) > 0 &&
	       syscall(CALL_getpgid, 0x7ffffff0, 0, 0, 0, 0, 0) == -1 && errno == ESRCH;
}

/* A parent may put its child into a group only until the child runs another program. */
static bool group_stays_after_exec(void)
{
	int input[2], gone[2];
	char byte;

	pipe(input);
	pipe(gone);
	fcntl(gone[1], F_SETFD, FD_CLOEXEC);
	pid_t pid = fork();

	if (pid == 0) {
		dup2(input[0], STDIN_FILENO); /* on which it waits */
		execv("/bin/cat", (char *[]){ "cat", NULL });
		_exit(1);
	}
	close(gone[1]);
	read(gone[0], &byte, 1); /* until exec has closed the other end */
	bool ok = setpgid(pid, pid) < 0 && errno == EACCES;

	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return ok;
}

/* ---- files ---- */

/* More than a call can move, in two pieces: the sum must not look like an error. */
static bool writev_is_cut(void)
{
	const unsigned vector[4] = { 4096, PIECE, 4096, PIECE };

	return syscall(SYS_writev, open("/dev/null", O_WRONLY), vector, 2, 0, 0, 0) == PIECE;
}

/* Whatever offset a write names: with O_APPEND it goes to the end, and the file's own offset stays.
 */
static bool pwrite_appends(void)
{
	const unsigned vector[4] = { (unsigned)"ef", 2, (unsigned)"gh", 2 };
	char text[9] = "";
	int file = open("/tmp/corners", O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);

	unlink("/tmp/corners");
	return write(file, "ab", 2) == 2 && pwrite(file, "cd", 2, 0) == 2 &&
	       syscall(CALL_pwritev, file, vector, 2, 1, 0, 0) == 4 &&
	       lseek(file, 0, SEEK_CUR) == 2 && lseek(file, 0, SEEK_SET) == 0 &&
	       read(file, text, 9) == 8 && strcmp(text, "abcdefgh") == 0;
}

/* What fills the first piece of memory exactly is enough: a pipe is not waited for once more. */
static bool readv_takes_what_is_there(void)
{
	char first[4], second[4];
	const unsigned vector[4] = { (unsigned)first, 4, (unsigned)second, 4 };
	int ends[2];

	return pipe(ends) == 0 && write(ends[1], "12345678", 4) == 4 &&
	       syscall(SYS_readv, ends[0], vector, 2, 0, 0, 0) == 4 &&
	       write(ends[1], "12345678", 7) == 7 &&
	       syscall(SYS_readv, ends[0], vector, 2, 0, 0, 0) == 7;
}

/* A file with both ends of a pipe waits for either. */
static bool poll_hears_both_ends(void)
{
	static char bytes[65536];
	const char *path = "/tmp/corners";

	syscall(SYS_mknod, path, S_IFIFO | 0600, 0, 0, 0, 0);
	struct pollfd file = { open(path, O_RDWR | O_NONBLOCK), POLLOUT, 0 };

	unlink(path);
	while (write(file.fd, bytes, sizeof(bytes)) > 0)
		;
	long start = now_ms();

	if (fork() == 0) {
		sleep_ms(50);
		read(file.fd, bytes, sizeof(bytes));
		_exit(0);
	}
	return poll(&file, 1, 2000) == 1 && now_ms() - start < 1000;
}

/* A timer that is a file: EAGAIN until its time has come, then a count, of 8 bytes. */
static bool timer_is_a_file(void)
{
	const struct timespec interval_and_first[2] = { { 0, 30000000 }, { 0, 20000000 } };
	int number = syscall(CALL_timerfd_create, CLOCK_MONOTONIC, O_NONBLOCK, 0, 0, 0, 0);
	struct pollfd file = { number, POLLIN, 0 };
	uint64_t times = 0;

	return read(number, &times, sizeof(times)) < 0 && errno == EAGAIN &&
	       syscall(CALL_timerfd_settime, number, 0, interval_and_first, NULL, 0, 0) == 0 &&
	       poll(&file, 1, 2000) == 1 && read(number, &times, 7) < 0 && errno == EINVAL &&
	       poll(&file, 1, 0) == 1 && read(number, &times, 8) == 8 && times > 0 &&
	       poll(&file, 1, 2000) == 1;
}

static bool map_fails(int file, int error)
{
	return mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0) == MAP_FAILED && errno == error;
}

/* Memory shows files only that can be read at any place. */
static bool mmap_is_for_files(void)
{
	int ends[2], file = open("/tmp/corners", O_WRONLY | O_CREAT, 0600);

	unlink("/tmp/corners");
	return pipe(ends) == 0 && map_fails(file, EACCES) && map_fails(ends[0], ENODEV);
}

/* What cannot be mapped takes nothing away, not even with MAP_FIXED. */
static bool mmap_fails_harmlessly(void)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS, folder = open("/tmp", O_RDONLY | O_DIRECTORY);
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags, -1, 0);

	*page = 'x';
	return map_fails(folder, ENODEV) &&
	       mmap(page, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, folder, 0) == MAP_FAILED &&
	       *page == 'x' && munmap(page, 4096) == 0 &&
	       mmap(page - 4096, 4096, PROT_READ, flags | MAP_FIXED_NOREPLACE, -1, 0) != MAP_FAILED;
}

/* MAP_FIXED_NOREPLACE: EEXIST is only for what is taken, not for what no program can have here. */
static bool mmap_knows_its_end(void)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
	void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return mmap(page, 4096, PROT_READ, flags, -1, 0) == MAP_FAILED && errno == EEXIST &&
	       (mmap((void *)0x70000000, 4096, PROT_READ, flags, -1, 0) != MAP_FAILED ||
		errno == ENOMEM);
}

static bool mmap_wants_whole_pages(void)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;

	return mmap((void *)0x08200010, 4096, PROT_READ, flags, -1, 0) == MAP_FAILED &&
	       errno == EINVAL;
}

static const struct check checks[] = {
	{ "a child's end sends what is no signal", ends_without_signal },
	{ "a data segment's descriptor goes", data_segment_goes },
	{ "the stack segment's descriptor goes", stack_segment_goes },
	{ "ppoll takes a signal that waits", ppoll_takes_pending },
	{ "a sleep that failed is over", sleep_is_forgotten },
	{ "poll goes on after a stop", poll_goes_on },
	{ "handlers stay on their stack", handlers_stay_on_stack },
	{ "sigreturn can set a trap", sigreturn_can_trap },
	{ "orphans are told", orphans_are_told },
	{ "stopped grandchildren are told", grandchildren_are_told },
	{ "the first process is found", finds_the_first },
	{ "writev moves no more than write", writev_is_cut },
	{ "pwrite appends", pwrite_appends },
	{ "readv takes what is there", readv_takes_what_is_there },
	{ "poll hears both ends of a pipe", poll_hears_both_ends },
	{ "a timer is a file", timer_is_a_file },
	{ "mmap is for files that can be read", mmap_is_for_files },
	{ "mmap fails harmlessly", mmap_fails_harmlessly },
	{ "mmap knows its end", mmap_knows_its_end },
	{ "mmap wants whole pages", mmap_wants_whole_pages },
	{ "a child's group stays after its exec", group_stays_after_exec },
};

int main(void)
{
	return check_all(checks, sizeof(checks) / sizeof(checks[0]));
}

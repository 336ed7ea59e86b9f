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
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "user/testing/checks.h"

static char *title; /* where this program's arguments begin */

#define FOLDER "/tmp/manual"
#define FILE_A FOLDER "/a"

#define CALL_old_getrlimit	    76
#define CALL_personality	    136
#define CALL_sched_get_priority_max 159
#define CALL_sched_get_priority_min 160
#define CALL_prctl		    172
#define CALL_rt_sigqueueinfo	    178
#define CALL_madvise		    219
#define CALL_getitimer		    105
#define CALL_clock_getres64	    406
#define TIMER_VIRTUAL		    1
#define TIMER_PROFILE		    2
#define PR_SET_PDEATHSIG	    1
#define PR_GET_PDEATHSIG	    2
#define PR_GET_NAME		    16
#define WIPE_ON_FORK		    18
#define REAL_TIME		    40 /* a signal that is pending as often as it was sent */
#define QUEUE			    8
#define CONTEXT_CS		    20 /* words in a handler's context */
#define NO_SELECTOR		    0x1234
#define SCRIPT			    "manual-script"
#define CPU_PATIENCE		    100

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

/* A title that is written over the arguments and on into the environment is one string: proc(5). */
static bool title_is_whole(void)
{
	static char line[4096];
	size_t length = strlen(title) + 3;

	memset(title, 't', length);
	int file = open("/proc/self/cmdline", O_RDONLY);
	ssize_t whole = read(file, line, sizeof(line));

	return whole > (ssize_t)length && line[length - 1] == 't' &&
	       strlen(line) == (size_t)whole - 1;
}

static const struct check checks[] = {
	{ "a title is whole", title_is_whole },
	{ "shared memory is shared, or refused", shared_memory_is_shared },
	{ "wiped memory is wiped, or refused", wiped_memory_is_wiped },
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
	title = arguments[0];
	mkdir(FOLDER, 0777);
	int status = check_all(checks, sizeof(checks) / sizeof(checks[0]));

	unlink(FILE_A);
	rmdir(FOLDER);
	return status;
}

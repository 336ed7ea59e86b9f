/* The calls with times of 64 bits, by their numbers: C libraries use them whose time_t has as many.
 * Each has garbage in the upper half of the nanoseconds, as a program may. */
#include "threads.h"

#include <poll.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <sys/timerfd.h>

#define PATH "/dev/shm/threads.wide" /* any time can be set there on Linux */

enum { TIMERFD_GET = 410, TIMERFD_SET, UTIMENSAT, PSELECT6, PPOLL, SEMTIMEDOP = 420 };

struct wide {
	int64_t seconds, nanoseconds;
};

#define GARBAGE	     (0x1234567ll << 32)
#define WIDE(s, ns)  ((struct wide){ s, GARBAGE | (uint32_t)(ns) })
#define NOW	     0x3fffffff
#define OMIT	     0x3ffffffe
#define MILLISECONDS 1000000

static long error_of(long result)
{
	return result < 0 ? -errno : result;
}

static void show_times(const char *what, const char *path)
{
	struct statx state;

	memset(&state, 0, sizeof(state));
	long result = error_of(statx(AT_FDCWD, path, 0, STATX_BASIC_STATS, &state));

	printf("%s %ld %lld.%09u %lld.%09u\n", what, result, state.stx_atime.tv_sec,
	       state.stx_atime.tv_nsec, state.stx_mtime.tv_sec, state.stx_mtime.tv_nsec);
	fflush(stdout);
}

static void set(const char *what, const char *path, struct wide accessed, struct wide modified)
{
	struct wide both[2] = { accessed, modified };

	say(what, error_of(syscall(UTIMENSAT, AT_FDCWD, path, both, 0)));
	show_times(what, path);
}

static void files(void)
{
	int file = open(PATH, O_RDWR | O_CREAT | O_TRUNC, 0644);
	struct wide both[2] = { WIDE(4102444800, 123456789), WIDE(-2000000000, 5) };

	set("after 2038", PATH, both[0], WIDE(4102444801, 987654321));
	set("before 1970", PATH, both[1], WIDE(-1, 999999999));
	set("2400", PATH, WIDE(13569465600, 1), WIDE(9223372037, 854775807));
	set("as it is", PATH, WIDE(1, 2), WIDE(7, OMIT));
	set("both as they are", "/nowhere", WIDE(1, OMIT), WIDE(7, OMIT));
	set("not there", "/nowhere", WIDE(1, 0), WIDE(7, OMIT));
	set("wrong", PATH, WIDE(1, 1000000000), WIDE(7, 0));
	say("of a descriptor", error_of(syscall(UTIMENSAT, file, NULL, both, 0)));
	show_times("of a descriptor", PATH);
	say("bad pointer", error_of(syscall(UTIMENSAT, file, NULL, 16, 0)));
	set("now", PATH, WIDE(1, 1), WIDE(1, 1));
	both[0] = WIDE(0, NOW);
	syscall(UTIMENSAT, file, NULL, both, 0);

	struct stat state;
	struct timeval old[2] = { { 5, 999999 }, { -7, 3 } };

	fstat(file, &state);
	say("is now", state.st_atim.tv_sec > 1000000000);
	say("futimesat", error_of(syscall(SYS_futimesat, AT_FDCWD, PATH, old)));
	show_times("futimesat", PATH);
	close(file);
	unlink(PATH);
}

static void waits(void)
{
	struct wide time = WIDE(0, 20 * MILLISECONDS), wrong = WIDE(0, 1000000000),
		    past = WIDE(-1, 0);
	int pipes[2];
	fd_set set;

	say("pipe", pipe(pipes));
	struct pollfd one = { pipes[0], POLLIN, 0 };

	say("ppoll", error_of(syscall(PPOLL, &one, 1, &time, NULL, 8)));
	printf("left %lld %lld\n", (long long)time.seconds, (long long)time.nanoseconds);
	say("wrong", error_of(syscall(PPOLL, &one, 1, &wrong, NULL, 8)));
	say("past", error_of(syscall(PPOLL, &one, 1, &past, NULL, 8)));
	say("bad pointer", error_of(syscall(PPOLL, &one, 1, 16, NULL, 8)));
	FD_ZERO(&set);
	FD_SET(pipes[0], &set);
	time = WIDE(0, 20 * MILLISECONDS);
	say("pselect6", error_of(syscall(PSELECT6, pipes[0] + 1, &set, NULL, NULL, &time, NULL)));
	say("wrong", error_of(syscall(PSELECT6, pipes[0] + 1, &set, NULL, NULL, &wrong, NULL)));
	write(pipes[1], "x", 1);
	FD_SET(pipes[0], &set);
	time = WIDE(1ll << 40, 0);
	say("pselect6", error_of(syscall(PSELECT6, pipes[0] + 1, &set, NULL, NULL, &time, NULL)));
	say("ppoll", error_of(syscall(PPOLL, &one, 1, &time, NULL, 8)));
	say("for ever", error_of(syscall(PPOLL, &one, 1, NULL, NULL, 8)));
	say("left", time.seconds > 1ll << 30);
	close(pipes[0]);
	close(pipes[1]);

	int id = semget(key, 1, IPC_CREAT | 0600);
	struct sembuf take = { 0, -1, 0 };

	time = WIDE(0, 20 * MILLISECONDS);
	say("semtimedop", error_of(syscall(SEMTIMEDOP, id, &take, 1, &time)));
	say("wrong", error_of(syscall(SEMTIMEDOP, id, &take, 1, &wrong)));
	take.sem_op = 1;
	say("semtimedop", error_of(syscall(SEMTIMEDOP, id, &take, 1, NULL)));
	semctl(id, 0, IPC_RMID);
}

static void timers(void)
{
	int timer = timerfd_create(CLOCK_MONOTONIC, 0);
	struct wide all[2] = { WIDE(3, 7), WIDE(5000000000, 0) };
	struct itimerspec old;

	say("set", error_of(syscall(TIMERFD_SET, timer, 0, all, NULL)));
	say("get", error_of(syscall(TIMERFD_GET, timer, all)));
	printf("is %lld %lld, left %d\n", (long long)all[0].seconds, (long long)all[0].nanoseconds,
	       all[1].seconds > 2000000000);
	say("get", error_of(syscall(SYS_timerfd_gettime, timer, &old)));
	say("is", old.it_interval.tv_sec * 10 + old.it_interval.tv_nsec);
	say("bad pointer", error_of(syscall(TIMERFD_GET, timer, NULL)));
	say("not one", error_of(syscall(TIMERFD_GET, 1, all)));
	close(timer);
	say("closed", error_of(syscall(TIMERFD_GET, timer, all)));
}

void part_wide(void)
{
	files();
	waits();
	timers();
}

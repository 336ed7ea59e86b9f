/* Small calls, and what they answer to arguments that are wrong. */
#include "threads.h"

#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>

static long error_of(long result)
{
	return result < 0 ? -errno : result;
}

/* ---- prctl, owners, SIGIO's flag ---- */

static volatile int died;

static void note(int signal)
{
	died = signal;
}

/* The child of a child gets the signal when that ends. */
static void orphan(void)
{
	int pipes[2], signal = 0;

	(void)!pipe(pipes);
	if (fork() == 0) {
		if (fork() == 0) {
			struct sigaction action = { .sa_handler = note };

			sigaction(SIGUSR1, &action, NULL);
			prctl(PR_SET_PDEATHSIG, SIGUSR1);
			prctl(PR_GET_PDEATHSIG, &signal);
			(void)!write(pipes[1], &signal, 1);
			for (int i = 0; i < 500 && !died; i++)
				rest(10);
			(void)!write(pipes[1], (char *)&died, 1);
			_exit(0);
		}
		char ready;

		(void)!read(pipes[0], &ready, 1);
		say("wanted", ready);
		_exit(0);
	}
	wait(NULL);
	(void)!read(pipes[0], &signal, 1);
	say("parent's end", signal);
	say("no signal", error_of(prctl(PR_SET_PDEATHSIG, 65)));
	close(pipes[0]);
	close(pipes[1]);
}

static void rights(void)
{
	if (fork() == 0) {
		say("keep", error_of(prctl(PR_SET_KEEPCAPS, 2)));
		say("keep", error_of(prctl(PR_SET_KEEPCAPS, 1)));
		say("keeps", error_of(prctl(PR_GET_KEEPCAPS)));
		say("no new", error_of(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)));
		say("no new", error_of(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0)));
		say("no new", error_of(prctl(PR_SET_NO_NEW_PRIVS, 1, 1, 0, 0)));
		say("no new", error_of(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)));
		say("no new", error_of(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)));
		if (fork() == 0) {
			say("child's", error_of(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)));
			_exit(0);
		}
		wait(NULL);
		_exit(0);
	}
	wait(NULL);
	say("not so", error_of(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)));
	say("own id", error_of(setuid(getuid())) + error_of(setgid(getgid())));
	say("own ids", error_of(setresuid(-1, getuid(), -1)) + error_of(setregid(-1, getgid())));
	say("nobody", error_of(syscall(SYS_setuid32, -1)));
	say("for files", syscall(SYS_setfsuid32, getuid()) == getuid());
}

static void owners(void)
{
	int pair[2], on = 1, file = memfd_create("owned", 0);

	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	say("owner", fcntl(pair[0], F_GETOWN));
	say("set", error_of(fcntl(pair[0], F_SETOWN, getpid())));
	say("is", fcntl(pair[0], F_GETOWN) == getpid());
	say("not there", error_of(fcntl(pair[0], F_SETOWN, 99999999)));
	say("nobody", error_of(fcntl(pair[0], F_SETOWN, 0)) + fcntl(pair[0], F_GETOWN));
	say("asynchronous", error_of(ioctl(pair[0], FIOASYNC, &on)));
	say("flags", fcntl(pair[0], F_GETFL));
	on = 0;
	say("not so", error_of(ioctl(pair[0], FIOASYNC, &on)));
	say("flags", fcntl(pair[0], F_GETFL));
	on = 1;
	say("file", error_of(ioctl(file, FIOASYNC, &on)));
	say("bad pointer", error_of(ioctl(pair[0], FIOASYNC, 16)));
	close(pair[0]);
	close(pair[1]);
	close(file);
}

/* ---- wrong arguments ---- */

static void futexes(void)
{
	unsigned *there =
	    mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned *gone = there + 1024;

	munmap(gone, 4096);
	say("wake", error_of(syscall(SYS_futex, there, FUTEX_WAKE, 1)));
	say("wake", error_of(syscall(SYS_futex, gone, FUTEX_WAKE, 1)));
	say("private", error_of(syscall(SYS_futex, gone, FUTEX_WAKE_PRIVATE, 1)));
	say("bits", error_of(syscall(SYS_futex, gone, FUTEX_WAKE_BITSET, 1, NULL, NULL, -1)));
	say("move", error_of(syscall(SYS_futex, there, FUTEX_REQUEUE, 1, 1, gone)));
	say("move", error_of(syscall(SYS_futex, gone, FUTEX_REQUEUE, 1, 1, there)));
	say("move", error_of(syscall(SYS_futex, there, FUTEX_CMP_REQUEUE, 1, 1, gone, 0)));
	say("move", error_of(syscall(SYS_futex, there, FUTEX_CMP_REQUEUE, 1, 1, gone, 7)));
	say("private", error_of(syscall(SYS_futex, there, FUTEX_REQUEUE_PRIVATE, 1, 1, gone)));
	munmap(there, 4096);
}

static void scheduling(void)
{
	struct sched_param param = { 0 };

	say("getparam", error_of(sched_getparam(-1, &param)));
	say("getparam", error_of(sched_getparam(0, NULL)));
	say("getparam", error_of(sched_getparam(9999999, &param)));
	say("setparam", error_of(sched_setparam(-1, &param)));
	say("setparam", error_of(sched_setparam(0, NULL)));
	say("setscheduler", error_of(sched_setscheduler(-1, SCHED_OTHER, &param)));
	say("setscheduler", error_of(sched_setscheduler(0, -1, &param)));
	say("getscheduler", error_of(sched_getscheduler(-1)));
}

static void mappings(void)
{
	int file = memfd_create("mapped", 0);

	say("no file", mmap(NULL, 0, PROT_READ, MAP_SHARED, 99, 0) == MAP_FAILED ? errno : 0);
	say("no length", mmap(NULL, 0, PROT_READ, MAP_SHARED, file, 0) == MAP_FAILED ? errno : 0);
	say("no kind", mmap(NULL, 1, PROT_READ, 0, 99, 0) == MAP_FAILED ? errno : 0);
	say("no kind", mmap(NULL, 1, PROT_READ, 0, file, 0) == MAP_FAILED ? errno : 0);
	close(file);
}

static void clocks(void)
{
	static const int clocks[] = { CLOCK_REALTIME,
				      CLOCK_MONOTONIC,
				      CLOCK_THREAD_CPUTIME_ID,
				      CLOCK_MONOTONIC_RAW,
				      CLOCK_REALTIME_COARSE,
				      CLOCK_MONOTONIC_COARSE,
				      CLOCK_BOOTTIME,
				      CLOCK_TAI,
				      99 };
	const struct timespec soon = { 0, 1 };

	for (unsigned i = 0; i < sizeof(clocks) / sizeof(*clocks); i++)
		say("sleep", error_of(syscall(SYS_clock_nanosleep, clocks[i], 0, &soon, NULL)));
}

static void sockets(void)
{
	static const int asked[][3] = { { 0, SOCK_STREAM, 0 },	   { AF_UNIX, 75, 0 },
					{ AF_UNIX, SOCK_RAW, 0 },  { AF_UNIX, SOCK_STREAM, 6 },
					{ AF_UNIX, 4, 0 },	   { AF_UNIX, SOCK_STREAM, 1 },
					{ AF_UNIX, SOCK_DGRAM, 0 } };
	int pair[2];

	for (unsigned i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
		const int *each = asked[i];

		say("socket", error_of(close(error_of(socket(each[0], each[1], each[2])))));
		int result = error_of(socketpair(each[0], each[1], each[2], pair));

		say("pair", result);
		if (result == 0)
			close(pair[0]), close(pair[1]);
		say("socket", socket(each[0], each[1], each[2]) < 0 ? errno : 0);
		close(3);
	}
	say("bad pointer", error_of(socketpair(AF_UNIX, SOCK_STREAM, 0, (int *)16)));
	say("call 0", error_of(syscall(SYS_socketcall, 0, pair)));
	say("call 21", error_of(syscall(SYS_socketcall, 21, pair)));
	say("call -1", error_of(syscall(SYS_socketcall, -1, pair)));
}

static void others(void)
{
	struct statx state;
	struct sysinfo info;

	say("statx", error_of(statx(AT_FDCWD, "/", 0, 0x80000000, &state)));
	say("statx", error_of(statx(AT_FDCWD, "/", 0x6000, 0x7ff, &state)));
	say("statx", error_of(statx(AT_FDCWD, "/", 0x2000, 0x7ff, &state)));
	say("unnamed", error_of(open("/dev/shm", O_TMPFILE | O_CREAT | O_RDWR, 0600)));
	sysinfo(&info);
	say("loads", info.loads[0] > 0 || info.procs > 1);
}

/* ---- arguments that exclude each other, and lengths that wrap around ---- */

static long control(int epoll, int operation, int file, unsigned events)
{
	struct epoll_event event = { .events = events };

	return error_of(epoll_ctl(epoll, operation, file, &event));
}

static void exclusive(void)
{
	int epoll = epoll_create1(0), other = epoll_create1(0), file = eventfd(0, 0);
	unsigned long long mask = 0;
	struct epoll_event event;

	say("epolls", control(epoll, EPOLL_CTL_ADD, other, EPOLLIN | EPOLLEXCLUSIVE));
	say("once", control(epoll, EPOLL_CTL_ADD, file, EPOLLEXCLUSIVE | EPOLLONESHOT));
	say("alone", control(epoll, EPOLL_CTL_ADD, file, EPOLLIN | EPOLLEXCLUSIVE | EPOLLET));
	say("changed", control(epoll, EPOLL_CTL_MOD, file, EPOLLIN));
	say("removed", control(epoll, EPOLL_CTL_DEL, file, 0));
	say("added", control(epoll, EPOLL_CTL_ADD, file, EPOLLIN));
	say("later", control(epoll, EPOLL_CTL_MOD, file, EPOLLIN | EPOLLEXCLUSIVE));
	for (int size = 4; size <= 8; size += 4)
		say("mask", error_of(syscall(SYS_epoll_pwait, epoll, &event, 1, 0, &mask, size)));
	say("no mask", error_of(syscall(SYS_epoll_pwait, epoll, &event, 1, 0, NULL, 4)));
	close(epoll), close(other), close(file);
}

static void excluded(void)
{
	stack_t stack = { .ss_sp = malloc(65536), .ss_flags = 3, .ss_size = 65536 };
	struct timeval long_second = { 0, 1000001 };
	struct sigevent event = { .sigev_notify = SIGEV_NONE };
	struct ucred peer = { 1, 1, 1 };
	socklen_t size = sizeof(peer);
	int socket_of_none = socket(AF_UNIX, SOCK_STREAM, 0), folder = open("/", O_RDONLY);
	int file = open("/tmp/threads", O_RDWR | O_CREAT, 0600), timer;
	void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	say("stack", error_of(sigaltstack(&stack, NULL)));
	for (int flags = 0; flags < 9; flags++)
		say("random", error_of(syscall(SYS_getrandom, &peer, 1, flags)));
	say("select", error_of(syscall(SYS__newselect, 0, NULL, NULL, NULL, &long_second)));
	for (int clock = 4; clock <= 6; clock++)
		say("timer", error_of(syscall(SYS_timer_create, clock, &event, &timer)));
	getsockopt(socket_of_none, SOL_SOCKET, SO_PEERCRED, &peer, &size);
	say("peer", peer.pid + (long)peer.uid + (long)peer.gid);
	say("groups", error_of(syscall(SYS_getgroups32, -1, NULL)));
	say("folder", error_of(sendfile(file, folder, NULL, 1)));
	say("advice", error_of(syscall(SYS_fadvise64, file, 0, 0, -1, POSIX_FADV_NORMAL)));
	say("wraps", madvise(page, -1, MADV_NORMAL) < 0);
	say("msync", error_of(msync(page, -8192, MS_ASYNC)));
	say("dump", error_of(prctl(PR_SET_DUMPABLE, 0)) + prctl(PR_GET_DUMPABLE));
	say("dump", error_of(prctl(PR_SET_DUMPABLE, 2)) + prctl(PR_GET_DUMPABLE));
	say("dump", error_of(prctl(PR_SET_DUMPABLE, 1)) + prctl(PR_GET_DUMPABLE));
	munmap(page, 4096), free(stack.ss_sp), unlink("/tmp/threads");
	close(file), close(folder), close(socket_of_none);
}

void part_answers(void)
{
	orphan();
	rights();
	owners();
	futexes();
	scheduling();
	mappings();
	clocks();
	sockets();
	others();
	exclusive();
	excluded();
}

/* Files that are for waiting: eventfd, epoll, and what fstat and /proc say of them. */
#include "threads.h"

#include <dirent.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>

#define MANY 100

static long error_of(long result)
{
	return result < 0 ? -errno : result;
}

/* ---- eventfd ---- */

static long add(int file, uint64_t number)
{
	return error_of(write(file, &number, sizeof(number)));
}

static long take(int file)
{
	uint64_t number = 0;
	long result = error_of(read(file, &number, sizeof(number)));

	return result == 8 ? (long)number : result;
}

static long ready(int file)
{
	struct pollfd one = { file, POLLIN | POLLOUT, 0 };

	poll(&one, 1, 0);
	return one.revents;
}

static void *add_later(void *file)
{
	rest(30);
	return (void *)add((int)(intptr_t)file, 7);
}

static void *take_later(void *file)
{
	rest(30);
	return (void *)take((int)(intptr_t)file);
}

static void counters(void)
{
	int file = eventfd(5, EFD_NONBLOCK), one = eventfd(2, EFD_SEMAPHORE), waits = eventfd(0, 0);
	char few[7];

	say("begins with", take(file));
	say("nothing", take(file));
	say("ready", ready(file));
	add(file, 3);
	add(file, 4);
	say("sum", take(file));
	say("semaphore", take(one) * 10 + take(one));
	say("most", add(file, UINT64_MAX - 1));
	say("ready", ready(file));
	say("one more", add(file, 1));
	say("none more", add(file, 0));
	say("no number", add(file, UINT64_MAX));
	say("short", error_of(read(file, few, 7)) + 100 * error_of(write(file, few, 7)));
	say("bad pointer", error_of(write(file, (void *)16, 8)));
	say("flags", error_of(eventfd(0, 0x10)));
	pthread_t thread = start(add_later, (void *)(intptr_t)waits);

	say("waits", take(waits));
	pthread_join(thread, NULL);
	add(waits, UINT64_MAX - 1);
	thread = start(take_later, (void *)(intptr_t)waits);
	say("waits for room", add(waits, 9));
	pthread_join(thread, NULL);
	say("and adds", take(waits));
	close(file);
	close(one);
	close(waits);
}

/* ---- epoll ---- */

static int epoll;

static long control(int operation, int file, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.u64 = (uint64_t)file << 33 | 5 };

	return error_of(epoll_ctl(epoll, operation, file, &event));
}

/* Waits for at most this many milliseconds. Of each file that is ready: its events. */
static void wait_for(const char *what, int milliseconds, const int *files, int count)
{
	struct epoll_event events[8];
	long found = error_of(epoll_wait(epoll, events, 8, milliseconds));

	say(what, found);
	for (int i = 0; i < count; i++)
		for (long j = 0; j < found; j++)
			if (events[j].data.u64 == ((uint64_t)files[i] << 33 | 5))
				say("  has", i * 0x10000 + events[j].events);
}

static void errors(void)
{
	int file = open("/proc/self/exe", O_RDONLY), counter = eventfd(0, 0);
	struct epoll_event event;

	say("file", control(EPOLL_CTL_ADD, file, EPOLLIN));
	say("itself", control(EPOLL_CTL_ADD, epoll, EPOLLIN));
	say("closed", control(EPOLL_CTL_ADD, 999, EPOLLIN));
	say("missing", control(EPOLL_CTL_MOD, counter, EPOLLIN));
	say("missing", control(EPOLL_CTL_DEL, counter, EPOLLIN));
	say("operation", control(9, counter, EPOLLIN));
	say("add", control(EPOLL_CTL_ADD, counter, EPOLLIN));
	say("twice", control(EPOLL_CTL_ADD, counter, EPOLLIN));
	say("no epoll", error_of(epoll_ctl(counter, EPOLL_CTL_ADD, epoll, &event)));
	say("pointer", error_of(epoll_ctl(epoll, EPOLL_CTL_MOD, counter, (void *)16)));
	say("none", error_of(epoll_wait(epoll, &event, 0, 0)));
	say("negative", error_of(epoll_wait(epoll, &event, -1, 0)));
	say("what", error_of(epoll_wait(counter, &event, 1, 0)));
	say("delete", error_of(epoll_ctl(epoll, EPOLL_CTL_DEL, counter, NULL)));
	say("size", error_of(epoll_create(0)) * 100 + error_of(epoll_create1(7)));
	close(file);
	close(counter);
}

/* Level: as long as it is so. Edge: when it has become so, or more came. */
static void modes(void)
{
	int pipes[3][2], ends[3];

	for (int i = 0; i < 3; i++) {
		(void)!pipe(pipes[i]);
		ends[i] = pipes[i][0];
	}
	control(EPOLL_CTL_ADD, ends[0], EPOLLIN);
	control(EPOLL_CTL_ADD, ends[1], EPOLLIN | EPOLLET);
	control(EPOLL_CTL_ADD, ends[2], EPOLLIN | EPOLLONESHOT);
	wait_for("quiet", 0, ends, 3);
	for (int i = 0; i < 3; i++)
		(void)!write(pipes[i][1], "ab", 2);
	wait_for("all", -1, ends, 3);
	wait_for("level", 0, ends, 3);
	for (int i = 0; i < 3; i++)
		(void)!write(pipes[i][1], "c", 1);
	wait_for("level and edge", 50, ends, 3);
	control(EPOLL_CTL_MOD, ends[2], EPOLLIN);
	wait_for("armed", 0, ends, 3);
	control(EPOLL_CTL_DEL, ends[2], 0);
	control(EPOLL_CTL_MOD, ends[0], 0);
	wait_for("no events", 0, ends, 3);
	close(pipes[0][1]);
	close(pipes[1][1]);
	wait_for("hang-ups", 0, ends, 3);
	for (int i = 0; i < 3; i++)
		close(ends[i]);
	wait_for("closed", 0, ends, 3);
	close(pipes[2][1]);
}

static void *write_later(void *file)
{
	rest(30);
	return (void *)(long)write((int)(intptr_t)file, "x", 1);
}

static void sleeps(void)
{
	int ends[2];

	socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
	control(EPOLL_CTL_ADD, ends[0], EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
	wait_for("room", -1, ends, 2);
	pthread_t thread = start(write_later, (void *)(intptr_t)ends[1]);

	wait_for("until it comes", -1, ends, 2);
	pthread_join(thread, NULL);
	wait_for("and only once", 40, ends, 2);
	shutdown(ends[1], SHUT_WR);
	wait_for("half shut", 0, ends, 2);
	close(ends[1]);
	wait_for("gone", 0, ends, 2);
	close(ends[0]);
}

/* Each has its turn, though fewer events are asked for than there are. */
static void turns(void)
{
	static int files[MANY];
	bool seen[MANY] = { 0 };
	struct epoll_event events[8];
	int count = 0;

	for (int i = 0; i < MANY; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.u32 = i };

		files[i] = eventfd(1, 0);
		epoll_ctl(epoll, EPOLL_CTL_ADD, files[i], &event);
	}
	for (int i = 0; i < MANY; i++) {
		int found = epoll_wait(epoll, events, 8, 0);

		for (int j = 0; j < found; j++) {
			count += !seen[events[j].data.u32];
			seen[events[j].data.u32] = true;
		}
	}
	say("each", count);
	for (int i = 0; i < MANY; i++)
		close(files[i]);
	say("none left", epoll_wait(epoll, events, 8, 0));
}

/* Another descriptor of the file keeps it watched. */
static void copies(void)
{
	int counter = eventfd(1, 0), copy = dup(counter), files[] = { counter };
	pid_t child;

	control(EPOLL_CTL_ADD, counter, EPOLLIN);
	close(counter);
	wait_for("by its copy", 0, files, 1);
	child = fork();
	if (child == 0) {
		rest(60);
		_exit(0);
	}
	close(copy);
	wait_for("by a child", 0, files, 1);
	say("ends", end_of(child));
	wait_for("by nobody", 0, files, 1);
}

static void nested(void)
{
	int inner = epoll_create1(EPOLL_CLOEXEC), counter = eventfd(0, 0), outer = epoll;
	int files[] = { inner };
	struct epoll_event event = { .events = EPOLLIN };

	epoll_ctl(inner, EPOLL_CTL_ADD, counter, &event);
	say("nested", control(EPOLL_CTL_ADD, inner, EPOLLIN));
	epoll = inner;
	say("circle", control(EPOLL_CTL_ADD, outer, EPOLLIN));
	epoll = outer;
	wait_for("quiet", 0, files, 1);
	pthread_t thread = start(add_later, (void *)(intptr_t)counter);

	wait_for("from within", -1, files, 1);
	pthread_join(thread, NULL);
	say("polled", ready(epoll));
	close(counter);
	say("no more", ready(epoll));
	close(inner);
}

/* Each watches the next: not all of this is allowed, and nothing comes of it. */
static void chain(void)
{
	static int chained[MANY];
	int first = epoll;
	struct epoll_event event;

	for (int i = 0; i < MANY; i++) {
		chained[i] = epoll_create1(0);
		control(EPOLL_CTL_ADD, chained[i], EPOLLIN);
		epoll = chained[i];
	}
	epoll = first;
	say("chain", epoll_wait(epoll, &event, 1, 0));
	for (int i = 0; i < MANY; i++)
		close(chained[i]);
}

static void handle(int signal)
{
}

static void *signal_later(void *thread)
{
	rest(30);
	pthread_kill(*(pthread_t *)thread, SIGUSR1);
	return NULL;
}

static void interrupted(void)
{
	struct sigaction action = { .sa_handler = handle, .sa_flags = SA_RESTART };
	pthread_t me = pthread_self();
	struct epoll_event event;
	struct timespec before, after;
	sigset_t none, one;

	sigaction(SIGUSR1, &action, NULL);
	pthread_t thread = start(signal_later, &me);

	say("interrupted", error_of(epoll_wait(epoll, &event, 1, -1)));
	pthread_join(thread, NULL);
	sigemptyset(&none);
	sigemptyset(&one);
	sigaddset(&one, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &one, NULL);
	pthread_kill(me, SIGUSR1);
	say("masked", error_of(epoll_wait(epoll, &event, 1, 20)));
	say("unmasked", error_of(epoll_pwait(epoll, &event, 1, -1, &none)));
	pthread_sigmask(SIG_UNBLOCK, &one, NULL);
	clock_gettime(CLOCK_MONOTONIC, &before);
	say("in time", error_of(epoll_wait(epoll, &event, 1, 50)));
	clock_gettime(CLOCK_MONOTONIC, &after);
	say("not earlier",
	    (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000 >=
		50);
}

/* ---- what they are ---- */

static void show(int file)
{
	char path[32], target[64] = "";
	struct stat stat;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	say("link", readlink(path, target, sizeof(target) - 1) > 0);
	printf("%s\n", target);
	say("fstat", error_of(fstat(file, &stat)));
	say("mode", stat.st_mode);
	/* The file is root's: nobody else gets as far as to the answer. */
	say("open", geteuid() == 0 ? error_of(open(path, O_RDONLY)) : -ENXIO);
	say("seek", error_of(ftruncate(file, 0)));
	say("enter", error_of(fchdir(file)));
	say("below", error_of(openat(file, "x", O_RDONLY)));
}

static void kinds(void)
{
	int files[] = { eventfd(0, 0), timerfd_create(CLOCK_MONOTONIC, 0), epoll };

	for (int i = 0; i < 3; i++)
		show(files[i]);
	close(files[0]);
	close(files[1]);
}

/* On our kernel a thread of its own serves epoll: it can be looked at as every task. */
static void look_at_all_tasks(void)
{
	DIR *directory = opendir("/proc");
	const struct dirent *entry;
	char path[300], text[256];
	long wrong = 0;

	while ((entry = readdir(directory))) {
		snprintf(path, sizeof(path), "/proc/%s/status", entry->d_name);
		int file = atoi(entry->d_name) ? open(path, O_RDONLY) : -1;

		wrong += file >= 0 && read(file, text, sizeof(text)) == 0;
		close(file);
	}
	closedir(directory);
	say("tasks without a status", wrong);
}

void part_events(void)
{
	counters();
	epoll = epoll_create1(0);
	errors();
	modes();
	sleeps();
	turns();
	copies();
	nested();
	chain();
	interrupted();
	kinds();
	look_at_all_tasks();
	close(epoll);
}

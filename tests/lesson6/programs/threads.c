/*
 * Threads of glibc, as real programs use them: runs unchanged on Linux and on our kernel, and says
 * the same on both. threads PART [SEED]; without a PART all of them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 8
#define TURNS	400
#define ROOM	4

static unsigned seed = 1;
static char myself[4096]; /* the path of this program */

static void say(const char *what, long value)
{
	printf("%s %ld\n", what, value);
	fflush(stdout);
}

static unsigned next_random(unsigned *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 16;
}

/* Gives the processor away now and then, or sleeps for a while. */
static void dawdle(unsigned *state)
{
	unsigned choice = next_random(state) % 16;

	if (choice < 4)
		sched_yield();
	if (choice == 15)
		usleep(next_random(state) % 300);
	for (volatile unsigned i = next_random(state) % 200; i > 0; i--)
		;
}

static pthread_t start(void *(*function)(void *), void *argument)
{
	pthread_t thread;
	int error = pthread_create(&thread, NULL, function, argument);

	if (error)
		say("pthread_create", error);
	return thread;
}

static void each(void *(*function)(void *))
{
	pthread_t threads[THREADS];

	for (intptr_t i = 0; i < THREADS; i++)
		threads[i] = start(function, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void rest(long milliseconds)
{
	const struct timespec time = { milliseconds / 1000, milliseconds % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

/* The end of a child: its exit code, or 1000 and its signal. */
static long end_of(pid_t child)
{
	int status = 0;

	if (waitpid(child, &status, 0) != child)
		return -errno;
	return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- beginning and end ---- */

static __thread int own = 5;

static void *add_one(void *argument)
{
	own += (intptr_t)argument;
	return (void *)(intptr_t)(own + 1);
}

static void part_join(void)
{
	pthread_t threads[THREADS];
	void *result;

	for (intptr_t i = 0; i < THREADS; i++)
		threads[i] = start(add_one, (void *)i);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &result);
		say("result", (intptr_t)result);
	}
	say("main's own", own);
}

static sem_t done;

static void *detached(void *unused)
{
	pthread_detach(pthread_self());
	sem_post(&done);
	return NULL;
}

static void part_detach(void)
{
	sem_init(&done, 0, 0);
	for (int i = 0; i < 100; i++) {
		start(detached, NULL);
		sem_wait(&done);
	}
	say("detached", 100);
}

static void *identify(void *argument)
{
	long *ids = argument;

	ids[0] = getpid();
	ids[1] = syscall(SYS_gettid);
	ids[2] = getppid();
	ids[3] = syscall(SYS_tgkill, getpid(), ids[1], 0);
	ids[4] = syscall(SYS_tgkill, ids[1], ids[1], 0) ? errno : 0;
	return NULL;
}

static void part_ids(void)
{
	long ids[5];

	pthread_join(start(identify, ids), NULL);
	say("one pid", ids[0] == getpid());
	say("another tid", ids[1] != getpid());
	say("one parent", ids[2] == getppid());
	say("main's tid", syscall(SYS_gettid) == getpid());
	say("tgkill", ids[3]);
	say("of another group", ids[4]);
	say("of one that has ended", syscall(SYS_tgkill, getpid(), ids[1], 0) ? errno : 0);
	errno = 0;
	say("clone3 or clone", syscall(SYS_clone, 0x10000, 0, 0, 0, 0) < 0 ? errno : 0);
}

/* ---- locks ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_changed = PTHREAD_COND_INITIALIZER;
static long counters[4];

static void *count(void *argument)
{
	unsigned state = seed * 31 + (intptr_t)argument;

	for (int i = 0; i < TURNS; i++) {
		pthread_mutex_lock(&lock);
		for (int j = 0; j < 4; j++) {
			long value = counters[j];

			dawdle(&state);
			counters[j] = value + 1;
		}
		pthread_mutex_unlock(&lock);
		dawdle(&state);
	}
	return NULL;
}

static void part_mutex(void)
{
	memset(counters, 0, sizeof(counters));
	each(count);
	for (int i = 0; i < 4; i++)
		say("counter", counters[i]);
}

static struct {
	long items[ROOM];
	int count, first, producers;
	long sum, taken;
} queue;

static void *produce_or_consume(void *argument)
{
	intptr_t number = (intptr_t)argument;
	unsigned state = seed * 7 + number;

	for (long i = 1; number % 2 && i <= TURNS; i++) {
		pthread_mutex_lock(&lock);
		while (queue.count == ROOM)
			pthread_cond_wait(&is_changed, &lock);
		queue.items[(queue.first + queue.count++) % ROOM] = i * number;
		pthread_cond_broadcast(&is_changed);
		pthread_mutex_unlock(&lock);
		dawdle(&state);
	}
	pthread_mutex_lock(&lock);
	queue.producers -= number % 2;
	pthread_cond_broadcast(&is_changed);
	while (number % 2 == 0 && (queue.count > 0 || queue.producers > 0)) {
		if (queue.count == 0) {
			pthread_cond_wait(&is_changed, &lock);
			continue;
		}
		queue.sum += queue.items[queue.first];
		queue.first = (queue.first + 1) % ROOM;
		queue.count--;
		queue.taken++;
		pthread_cond_broadcast(&is_changed);
		pthread_mutex_unlock(&lock);
		dawdle(&state);
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void part_condition(void)
{
	memset(&queue, 0, sizeof(queue));
	queue.producers = THREADS / 2;
	each(produce_or_consume);
	say("taken", queue.taken);
	say("sum", queue.sum);
}

static pthread_barrier_t barrier;
static int turns_of[THREADS], last_ones, mismatches;

static void *meet(void *argument)
{
	intptr_t number = (intptr_t)argument;
	unsigned state = seed + number;

	for (int i = 0; i < 50; i++) {
		turns_of[number]++;
		dawdle(&state);
		if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
			last_ones++;
		for (int j = 0; j < THREADS; j++)
			mismatches += turns_of[j] != i + 1;
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void part_barrier(void)
{
	pthread_barrier_init(&barrier, NULL, THREADS);
	each(meet);
	say("last ones", last_ones);
	say("mismatches", mismatches);
	pthread_barrier_destroy(&barrier);
}

static sem_t ping, pong;

static void *answer(void *unused)
{
	for (int i = 0; i < TURNS; i++) {
		sem_wait(&ping);
		counters[0]++;
		sem_post(&pong);
	}
	return NULL;
}

static void part_semaphore(void)
{
	pthread_t thread;
	struct timespec soon;

	counters[0] = 0;
	sem_init(&ping, 0, 0);
	sem_init(&pong, 0, 0);
	thread = start(answer, NULL);
	for (int i = 0; i < TURNS; i++) {
		sem_post(&ping);
		sem_wait(&pong);
	}
	pthread_join(thread, NULL);
	say("answers", counters[0]);
	clock_gettime(CLOCK_REALTIME, &soon);
	soon.tv_nsec += 20000000;
	soon.tv_sec += soon.tv_nsec / 1000000000;
	soon.tv_nsec %= 1000000000;
	say("nobody posts", sem_timedwait(&ping, &soon) ? errno : 0);
	pthread_mutex_lock(&lock);
	say("nobody signals", pthread_cond_timedwait(&is_changed, &lock, &soon));
	pthread_mutex_unlock(&lock);
}

static pthread_rwlock_t both = PTHREAD_RWLOCK_INITIALIZER;

static void *read_or_write(void *argument)
{
	unsigned state = seed * 3 + (intptr_t)argument;

	for (int i = 0; i < TURNS; i++) {
		if ((intptr_t)argument < 2) {
			pthread_rwlock_wrlock(&both);
			counters[0]++;
			dawdle(&state);
			counters[1]++;
		} else {
			pthread_rwlock_rdlock(&both);
			dawdle(&state);
			mismatches += counters[0] != counters[1];
		}
		pthread_rwlock_unlock(&both);
	}
	return NULL;
}

static void part_readers(void)
{
	counters[0] = counters[1] = mismatches = 0;
	each(read_or_write);
	say("written", counters[1]);
	say("mismatches", mismatches);
}

/* ---- cancelling ---- */

static void cleaned(void *what)
{
	say(what, 1);
}

static void *sleep_for_ever(void *argument)
{
	sem_t *never = argument;

	pthread_cleanup_push(cleaned, "cleaned");
	sem_post(&done);
	if (never)
		sem_wait(never);
	else
		pause();
	pthread_cleanup_pop(0);
	return NULL;
}

static void part_cancel(void)
{
	sem_t never;
	void *result;

	sem_init(&never, 0, 0);
	sem_init(&done, 0, 0);
	for (int i = 0; i < 2; i++) {
		pthread_t thread = start(sleep_for_ever, i ? &never : NULL);

		sem_wait(&done);
		say("cancel", pthread_cancel(thread));
		pthread_join(thread, &result);
		say("cancelled", result == PTHREAD_CANCELED);
	}
}

/* ---- signals ---- */

static volatile pid_t handled_by;

static void handle(int signal)
{
	handled_by = syscall(SYS_gettid);
	sem_post(&done);
}

static void *take_signals(void *argument)
{
	sigset_t set;
	int signal = 0;

	*(pid_t *)argument = syscall(SYS_gettid);
	sem_post(&done);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigwait(&set, &signal);
	say("sigwait", signal);
	return NULL;
}

static void part_signals(void)
{
	struct sigaction action = { .sa_handler = handle };
	sigset_t set, before;
	volatile pid_t tid = 0;
	pthread_t thread;

	sem_init(&done, 0, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	thread = start(take_signals, (void *)&tid);
	while (sem_wait(&done) != 0)
		;
	sigaction(SIGUSR1, &action, NULL);
	pthread_kill(thread, SIGUSR1);
	while (sem_wait(&done) != 0)
		;
	say("in the thread that was meant", handled_by == tid);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	kill(getpid(), SIGUSR1);
	while (sem_wait(&done) != 0)
		;
	say("in the thread that does not block it", handled_by == tid);
	kill(getpid(), SIGUSR2);
	pthread_join(thread, NULL);
	kill(getpid(), SIGUSR1);
	sigpending(&set);
	say("all block it", sigismember(&set, SIGUSR1));
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	say("in main", handled_by == getpid());
}

static void *wait_for_it(void *unused)
{
	sigset_t set;
	int signal = 0;

	rest(20);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigwait(&set, &signal);
	say("found", signal);
	return NULL;
}

/* Sent while all block it, before anybody waits for it. */
static void part_pending(void)
{
	sigset_t set, before;
	pthread_t thread;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	thread = start(wait_for_it, NULL);
	kill(getpid(), SIGTERM);
	pthread_join(thread, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- the end of a program with threads ---- */

static void *end_as(void *argument)
{
	rest(20);
	switch ((intptr_t)argument) {
	case 0:
		exit(7);
	case 1:
		*(volatile int *)8 = 1;
		return NULL;
	case 2:
		abort();
	case 3:
		execl(myself, "threads", "-executed", NULL);
		return NULL;
	case 4:
		rest(2000);
		return NULL;
	default:
		return NULL;
	}
}

static void *spin(void *unused)
{
	for (volatile int i = 0;; i++)
		;
	return NULL;
}

static pid_t child_with(intptr_t end, bool leaves, bool spins)
{
	pid_t child = fork();

	if (child)
		return child;
	for (int i = 0; i < 3; i++)
		start(sleep_for_ever, NULL);
	if (spins)
		start(spin, NULL);
	start(end_as, (void *)end);
	if (leaves)
		pthread_exit(NULL);
	for (;;)
		pause();
}

static void part_end(void)
{
	say("exit_group", end_of(child_with(0, false, true)));
	say("a fault", end_of(child_with(1, false, false)));
	say("abort", end_of(child_with(2, false, false)));
	say("exec", end_of(child_with(3, false, true)));
	say("exit_group, without main", end_of(child_with(0, true, true)));
	say("a fault, without main", end_of(child_with(1, true, false)));
	say("exec, without main", end_of(child_with(3, true, false)));
	pid_t child = child_with(4, false, true);

	rest(30);
	kill(child, SIGKILL);
	say("killed", end_of(child));
	child = child_with(4, true, true);
	rest(30);
	kill(child, SIGTERM);
	say("terminated, without main", end_of(child));
}

static void *last_one(void *unused)
{
	rest(30);
	return NULL;
}

/* main ends by itself, and the others after it: the program ends with the last one. */
static void part_last(void)
{
	pid_t child = fork();

	if (child == 0) {
		start(last_one, NULL);
		pthread_exit(NULL);
	}
	say("not yet", waitpid(child, NULL, WNOHANG));
	say("the last one", end_of(child));
}

static void part_stop(void)
{
	pid_t child = child_with(4, false, true);
	int status = 0;

	rest(20);
	kill(child, SIGSTOP);
	waitpid(child, &status, WUNTRACED);
	say("stopped", WIFSTOPPED(status) ? WSTOPSIG(status) : -1);
	kill(child, SIGCONT);
	waitpid(child, &status, WCONTINUED);
	say("continued", WIFCONTINUED(status));
	kill(child, SIGINT);
	say("ended", end_of(child));
}

/* ---- families ---- */

static void *fork_in_thread(void *argument)
{
	pid_t child = fork();

	if (child == 0)
		_exit(getppid() == (pid_t)(intptr_t)argument ? 3 : 4);
	return (void *)(intptr_t)child;
}

static void *wait_in_thread(void *argument)
{
	return (void *)end_of((intptr_t)argument);
}

static void part_fork(void)
{
	void *child, *end;

	pthread_join(start(fork_in_thread, (void *)(intptr_t)getpid()), &child);
	pthread_join(start(wait_in_thread, child), &end);
	say("a thread's child", (intptr_t)end);
	say("nobody is left", waitpid(-1, NULL, 0) < 0 ? errno : 0);
	say("system", system("exit 6") >> 8);
}

/* ---- files and memory ---- */

static int ends[2];

static void *read_byte(void *unused)
{
	char byte = 0;

	sem_post(&done);
	return (void *)(intptr_t)(read(ends[0], &byte, 1) == 1 ? byte : -errno);
}

/* One thread closes what another one reads from. */
static void part_close(void)
{
	pthread_t thread;
	void *result;

	sem_init(&done, 0, 0);
	if (pipe(ends) != 0)
		return;
	thread = start(read_byte, NULL);
	sem_wait(&done);
	rest(20);
	say("close", close(ends[0]));
	say("write", write(ends[1], "x", 1));
	pthread_join(thread, &result);
	say("read", (intptr_t)result);
	close(ends[1]);
	say("closed for all", read(ends[0], &result, 1) < 0 ? errno : 0);
}

static void *copy_in(void *unused)
{
	long sum = 0;

	for (int i = 0; i < 20; i++) {
		size_t length = 64 * 1024;
		char *room =
		    mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		for (size_t at = 0; at < length;) {
			ssize_t moved = read(ends[0], room + at, length - at);

			if (moved <= 0)
				return (void *)-1;
			at += moved;
		}
		for (size_t at = 0; at < length; at++)
			sum += room[at];
		munmap(room, length);
	}
	return (void *)sum;
}

static void *copy_out(void *unused)
{
	char page[5000];

	memset(page, 1, sizeof(page));
	for (long left = 20 * 64 * 1024; left > 0;) {
		ssize_t moved = write(ends[1], page, left < 5000 ? left : 5000);

		if (moved <= 0)
			return (void *)-1;
		left -= moved;
	}
	return NULL;
}

/* Maps, unmaps and forks, while two others copy. */
static void part_memory(void)
{
	pthread_t reader, writer;
	void *sum;
	long ended = 0;
	unsigned state = seed;

	if (pipe(ends) != 0)
		return;
	reader = start(copy_in, NULL);
	writer = start(copy_out, NULL);
	for (int i = 0; i < 20; i++) {
		char *room =
		    mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		for (int j = 0; j < 1 << 20; j += 16384)
			room[j] = next_random(&state);
		pid_t child = fork();

		if (child == 0) {
			room[0] = 3;
			_exit(room[0]);
		}
		munmap(room, 1 << 20);
		ended += end_of(child);
		dawdle(&state);
	}
	pthread_join(writer, NULL);
	pthread_join(reader, &sum);
	say("children", ended);
	say("bytes", (long)sum);
	close(ends[0]);
	close(ends[1]);
}

/* ---- between processes ---- */

struct shared {
	pthread_mutex_t lock;
	pthread_cond_t is_changed;
	pthread_barrier_t barrier;
	sem_t semaphore;
	long counter, turn;
};

static struct shared *share(bool is_robust)
{
	struct shared *shared =
	    mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t attribute;
	pthread_condattr_t condition;
	pthread_barrierattr_t meeting;

	pthread_mutexattr_init(&attribute);
	say("setpshared", pthread_mutexattr_setpshared(&attribute, PTHREAD_PROCESS_SHARED));
	if (is_robust)
		pthread_mutexattr_setrobust(&attribute, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&shared->lock, &attribute);
	pthread_condattr_init(&condition);
	pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
	pthread_cond_init(&shared->is_changed, &condition);
	pthread_barrierattr_init(&meeting);
	pthread_barrierattr_setpshared(&meeting, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&shared->barrier, &meeting, 4);
	sem_init(&shared->semaphore, 1, 0);
	return shared;
}

static void work_shared(struct shared *shared, int number)
{
	unsigned state = seed + number;

	pthread_barrier_wait(&shared->barrier);
	for (int i = 0; i < TURNS / 4; i++) {
		pthread_mutex_lock(&shared->lock);
		long value = shared->counter;

		dawdle(&state);
		shared->counter = value + 1;
		pthread_mutex_unlock(&shared->lock);
	}
	for (int i = 0; i < 10; i++) {
		pthread_mutex_lock(&shared->lock);
		while (shared->turn % 4 != number)
			pthread_cond_wait(&shared->is_changed, &shared->lock);
		shared->turn++;
		pthread_cond_broadcast(&shared->is_changed);
		pthread_mutex_unlock(&shared->lock);
	}
	sem_post(&shared->semaphore);
}

static void part_processes(void)
{
	struct shared *shared = share(false);

	for (int i = 0; i < 4; i++)
		if (fork() == 0) {
			work_shared(shared, i);
			_exit(0);
		}
	for (int i = 0; i < 4; i++)
		sem_wait(&shared->semaphore);
	for (int i = 0; i < 4; i++)
		end_of(-1);
	say("counter", shared->counter);
	say("turns", shared->turn);
	munmap(shared, sizeof(*shared));
}

static void *take_and_end(void *argument)
{
	say("taken", pthread_mutex_lock(argument));
	return NULL;
}

static void robust(struct shared *shared, const char *who)
{
	int error = pthread_mutex_lock(&shared->lock);

	printf("%s: ", who);
	say("owner died", error == EOWNERDEAD);
	say("consistent", pthread_mutex_consistent(&shared->lock));
	pthread_mutex_unlock(&shared->lock);
	say("again", pthread_mutex_lock(&shared->lock));
	pthread_mutex_unlock(&shared->lock);
}

static void part_robust(void)
{
	struct shared *shared = share(true);
	pid_t child;

	pthread_join(start(take_and_end, &shared->lock), NULL);
	robust(shared, "a thread");
	child = fork();
	if (child == 0) {
		pthread_mutex_lock(&shared->lock);
		sem_post(&shared->semaphore);
		rest(30);
		raise(SIGKILL);
	}
	sem_wait(&shared->semaphore);
	robust(shared, "a process, while this one waits");
	say("child", end_of(child));
	child = fork();
	if (child == 0) {
		pthread_mutex_lock(&shared->lock);
		execl(myself, "threads", "-executed", NULL);
	}
	say("child", end_of(child));
	robust(shared, "one that called exec");
	munmap(shared, sizeof(*shared));
}

static const struct {
	const char *name;
	void (*run)(void);
} parts[] = {
	{ "join", part_join },
	{ "detach", part_detach },
	{ "ids", part_ids },
	{ "mutex", part_mutex },
	{ "condition", part_condition },
	{ "barrier", part_barrier },
	{ "semaphore", part_semaphore },
	{ "readers", part_readers },
	{ "cancel", part_cancel },
	{ "signals", part_signals },
	{ "pending", part_pending },
	{ "end", part_end },
	{ "last", part_last },
	{ "stop", part_stop },
	{ "fork", part_fork },
	{ "close", part_close },
	{ "memory", part_memory },
	{ "processes", part_processes },
	{ "robust", part_robust },
};

int main(int argc, char **argv)
{
	const char *wanted = argc > 1 ? argv[1] : NULL;

	if (wanted && strcmp(wanted, "-executed") == 0)
		return 9;
	if (readlink("/proc/self/exe", myself, sizeof(myself) - 1) < 0)
		return 1;
	if (argc > 2)
		seed = atoi(argv[2]);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (wanted && strcmp(wanted, parts[i].name) != 0)
			continue;
		printf("part %s\n", parts[i].name);
		fflush(stdout);
		parts[i].run();
	}
	return 0;
}

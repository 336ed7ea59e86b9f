/* How threads begin, and how they and their program end. */
#include "threads.h"

/* ---- beginning and end ---- */

static __thread int own = 5;

static void *add_one(void *argument)
{
	own += (intptr_t)argument;
	return (void *)(intptr_t)(own + 1);
}

void part_join(void)
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

static void *detached(void *unused)
{
	pthread_detach(pthread_self());
	sem_post(&done);
	return NULL;
}

void part_detach(void)
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

void part_ids(void)
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

/* ---- cancelling ---- */

static void cleaned(void *what)
{
	say(what, 1);
}

void *sleep_for_ever(void *argument)
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

void part_cancel(void)
{
	sem_t never;
	void *result;

	sem_init(&never, 0, 0);
	sem_init(&done, 0, 0);
	for (int i = 0; i < 2; i++) {
		pthread_t thread = start(sleep_for_ever, i ? &never : NULL);

		sem_wait(&done);
		int error = pthread_cancel(thread);

		pthread_join(thread, &result);
		say("cancel", error);
		say("cancelled", result == PTHREAD_CANCELED);
	}
}

/* ---- the end of a program with threads ---- */

/* rt_sigreturn where there is no frame. */
static void return_from_nothing(void)
{
	__asm__ volatile("movl $16, %%esp; int $0x80" : : "a"(SYS_rt_sigreturn));
}

static void ignore(int signal)
{
}

/* A signal that has a handler, where there is no room for its frame. */
static void raise_without_stack(void)
{
	signal(SIGUSR1, ignore);
	__asm__ volatile("movl $16, %%esp; int $0x80"
			 :
			 : "a"(SYS_tgkill), "b"(getpid()), "c"(syscall(SYS_gettid)), "d"(SIGUSR1));
}

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
	case 5:
		return_from_nothing();
		return NULL;
	case 6:
		raise_without_stack();
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

void part_end(void)
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

static void leave(int signal)
{
	_exit(signal);
}

/* main has a bad frame, not another thread; it may have a handler for that, with its own stack. */
static pid_t child_with_frame(intptr_t end, bool handles)
{
	static char room[16384];
	const stack_t stack = { .ss_sp = room, .ss_size = sizeof(room) };
	const struct sigaction action = { .sa_handler = leave, .sa_flags = SA_ONSTACK };
	pid_t child = fork();

	if (child)
		return child;
	start(sleep_for_ever, NULL);
	start(spin, NULL);
	if (handles) {
		sigaltstack(&stack, NULL);
		sigaction(SIGSEGV, &action, NULL);
	}
	end_as((void *)end);
	return child;
}

/* The frames of signals, which the program has spoilt. */
void part_frames(void)
{
	for (intptr_t end = 5; end <= 6; end++) {
		say("in a thread", end_of(child_with(end, false, true)));
		say("in a thread, without main", end_of(child_with(end, true, true)));
		say("in main", end_of(child_with_frame(end, false)));
		say("handled", end_of(child_with_frame(end, true)));
	}
}

/* ---- a child that borrows this program's memory ---- */

#define AS_THREAD (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD)

static char stacks[2][16384];

static int execute(void *unused)
{
	execl(myself, "threads", "-executed", NULL);
	return 1;
}

static int execute_in_thread(void *unused)
{
	clone(execute, stacks[1] + sizeof(stacks[1]), AS_THREAD | CLONE_SYSVSEM, NULL);
	for (;;)
		pause();
}

/* Its second thread calls exec, and so gives the memory back. */
void part_borrow(void)
{
	pid_t child = clone(execute_in_thread, stacks[0] + sizeof(stacks[0]),
			    CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);

	say("executed", end_of(child));
}

static void *last_one(void *unused)
{
	rest(30);
	return NULL;
}

/* main ends by itself, and the others after it: the program ends with the last one. */
void part_last(void)
{
	pid_t child = fork();

	if (child == 0) {
		start(last_one, NULL);
		pthread_exit(NULL);
	}
	say("not yet", waitpid(child, NULL, WNOHANG));
	say("the last one", end_of(child));
}

void part_stop(void)
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

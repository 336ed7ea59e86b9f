/* Changes to what QEMU does, loaded with LD_PRELOAD.
 *
 * It writes its record at once: it would keep the last 4 KiB to itself, and what is not in the file
 * cannot be run again. The record's path is in RECORD_AT_ONCE.
 *
 * It repeats a run without waiting, where REPLAY_AT_ONCE is set: while the guest is idle, the time
 * comes from the record, and QEMU would sleep for as long as when it was recorded. Nor does it wait
 * for ever: it may have missed that the next event of the record is due, and looks again.
 *
 * In both, the clock of idle time is off while the machine is stopped. If the timer of an idle
 * guest expires then, QEMU does not add the idle time; in a run that is not stopped there it does,
 * and from there on the two differ: the repeated run waits for an event that never comes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <stdbool.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *opened(const char *call, const char *path, const char *mode)
{
	FILE *(*real)(const char *, const char *);
	*(void **)&real = dlsym(RTLD_NEXT, call);
	FILE *file = real(path, mode);
	const char *record = getenv("RECORD_AT_ONCE");
	if (file && record && strcmp(path, record) == 0) {
		setvbuf(file, NULL, _IONBF, 0);
	}
	return file;
}

FILE *fopen(const char *path, const char *mode)
{
	return opened("fopen", path, mode);
}

FILE *fopen64(const char *path, const char *mode)
{
	return opened("fopen64", path, mode);
}

/* QEMU's own, which it exports for its modules: include/qemu/timer.h, include/sysemu/runstate.h. */
enum { IDLE_CLOCK = 3 }; /* QEMU_CLOCK_VIRTUAL_RT */
__attribute__((weak)) void qemu_clock_enable(int clock, bool is_on);
__attribute__((weak)) bool runstate_is_running(void);
__attribute__((weak)) void *qemu_add_vm_change_state_handler(void (*handler)(void *, bool, int),
							     void *opaque);

static void at_start_or_stop(void *opaque, bool is_running, int state)
{
	(void)opaque;
	(void)state;
	qemu_clock_enable(IDLE_CLOCK, is_running);
}

/* QEMU begins to wait for the first time: its clocks are there, and nothing has run yet. */
static void stop_idle_clock_with_machine(void)
{
	static bool is_done;

	if (is_done || !qemu_clock_enable || !runstate_is_running ||
	    !qemu_add_vm_change_state_handler) {
		return;
	}
	is_done = true;
	if (getenv("REPLAY_AT_ONCE") || getenv("RECORD_AT_ONCE")) {
		qemu_add_vm_change_state_handler(at_start_or_stop, NULL);
		qemu_clock_enable(IDLE_CLOCK, runstate_is_running());
	}
}

static bool is_replay(void)
{
	static int known = -1;

	if (known < 0) {
		known = getenv("REPLAY_AT_ONCE") != NULL;
	}
	return known;
}

int ppoll(struct pollfd *descriptors, nfds_t count, const struct timespec *timeout,
	  const sigset_t *mask)
{
	static const struct timespec at_once, soon = { .tv_nsec = 1000000 };
	static int (*real)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);

	if (!real) {
		*(void **)&real = dlsym(RTLD_NEXT, "ppoll");
	}
	stop_idle_clock_with_machine();
	if (is_replay()) {
		timeout = timeout ? &at_once : &soon;
	}
	return real(descriptors, count, timeout, mask);
}

int __ppoll_chk(struct pollfd *descriptors, nfds_t count, const struct timespec *timeout,
		const sigset_t *mask, size_t size)
{
	return ppoll(descriptors, count, timeout, mask);
}

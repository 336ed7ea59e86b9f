/* Signals. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "kernel/abi/signal_handler.h"

#define SIG_DFL ((void (*)(int))SIGNAL_DEFAULT)
#define SIG_IGN ((void (*)(int))SIGNAL_IGNORE)
#define SIG_ERR ((void (*)(int)) - 1)

typedef uint64_t sigset_t; /* bit n - 1 for signal n */
typedef int sig_atomic_t;

/* As rt_sigaction has it. */
struct sigaction {
	void (*sa_handler)(int);
	unsigned long sa_flags;
	void (*sa_restorer)(void); /* set by sigaction */
	sigset_t sa_mask;
};

int kill(pid_t pid, int signal);
int raise(int signal);
int sigaction(int signal, const struct sigaction *action, struct sigaction *old);
#define SIG_ERR ((void (*)(int)) - 1)
void (*signal(int signal, void (*handler)(int)))(int);
int sigprocmask(int how, const sigset_t *set, sigset_t *old);
int sigsuspend(const sigset_t *mask);

static inline int sigemptyset(sigset_t *set)
{
	*set = 0;
	return 0;
}

static inline int sigaddset(sigset_t *set, int signal)
{
	*set |= SIGNAL_BIT(signal);
	return 0;
}

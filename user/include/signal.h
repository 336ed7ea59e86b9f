/* Signals. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#define SIGHUP	1
#define SIGINT	2
#define SIGQUIT 3
#define SIGILL	4
#define SIGTRAP 5
#define SIGABRT 6
#define SIGBUS	7
#define SIGFPE	8
#define SIGKILL 9
#define SIGUSR1 10
#define SIGSEGV 11
#define SIGUSR2 12
#define SIGPIPE 13
#define SIGALRM 14
#define SIGTERM 15
#define SIGCHLD 17
#define SIGCONT 18
#define SIGSTOP 19
#define SIGTSTP 20
#define SIGTTIN 21
#define SIGTTOU 22

#define SIG_DFL ((void (*)(int))0)
#define SIG_IGN ((void (*)(int))1)
#define SIG_ERR ((void (*)(int)) - 1)

#define SA_SIGINFO  0x00000004u
#define SA_RESTORER 0x04000000u
#define SA_RESTART  0x10000000u
#define SA_NODEFER  0x40000000u

#define SIG_BLOCK   0
#define SIG_UNBLOCK 1
#define SIG_SETMASK 2

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
/* With SA_RESTART. Returns the handler before it, or SIG_ERR. */
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
	*set |= 1ull << (signal - 1);
	return 0;
}

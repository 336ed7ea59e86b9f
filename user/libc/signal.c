/* The system calls for signals. */
#include <signal.h>

#include <stddef.h>
#include <unistd.h>

#include "user/libc/syscall.h"

/* user/libc/start.asm */
void signal_return(void);
void signal_information_return(void);

int sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
	struct sigaction changed;

	if (action) {
		changed = *action;
		changed.sa_flags |= SA_RESTORER;
		changed.sa_restorer =
		    action->sa_flags & SA_SIGINFO ? signal_information_return : signal_return;
		action = &changed;
	}
	return result_of(
	    _syscall4(SYS_rt_sigaction, signal, (long)action, (long)old, sizeof(sigset_t)));
}

void (*signal(int signal, void (*handler)(int)))(int)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART }, old;

	return sigaction(signal, &action, &old) < 0 ? SIG_ERR : old.sa_handler;
}

int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	return result_of(
	    _syscall4(SYS_rt_sigprocmask, how, (long)set, (long)old, sizeof(sigset_t)));
}

int sigsuspend(const sigset_t *mask)
{
	return result_of(_syscall2(SYS_rt_sigsuspend, (long)mask, sizeof(sigset_t)));
}

int pause(void)
{
	sigset_t mask;

	sigprocmask(SIG_BLOCK, NULL, &mask);
	return sigsuspend(&mask);
}

int kill(pid_t pid, int signal)
{
	return result_of(_syscall2(SYS_kill, pid, signal));
}

int raise(int signal)
{
	return kill(getpid(), signal);
}

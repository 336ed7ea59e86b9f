/* Signals as programs see them: Linux's numbers and structures for i386. What only handlers need is
 * in kernel/abi/signal_handler.h. */
#pragma once

#include <stdint.h>

#define SIGNALS 64

#define SIGHUP	 1
#define SIGINT	 2
#define SIGQUIT	 3
#define SIGILL	 4
#define SIGTRAP	 5
#define SIGABRT	 6
#define SIGBUS	 7
#define SIGFPE	 8
#define SIGKILL	 9
#define SIGUSR1	 10
#define SIGSEGV	 11
#define SIGUSR2	 12
#define SIGPIPE	 13
#define SIGALRM	 14
#define SIGTERM	 15
#define SIGCHLD	 17
#define SIGCONT	 18
#define SIGSTOP	 19
#define SIGTSTP	 20
#define SIGTTIN	 21
#define SIGTTOU	 22
#define SIGURG	 23
#define SIGWINCH 28

#define SIGNAL_BIT(signal) (1ull << ((signal) - 1))

/* Instead of a handler's address. */
#define SIGNAL_DEFAULT 0u
#define SIGNAL_IGNORE  1u

/* Flags of an action. */
#define SA_NOCLDSTOP 0x00000001u
#define SA_NOCLDWAIT 0x00000002u

/* rt_sigaction's structure. */
struct linux_signal_action {
	uint32_t handler; /* a user address, or one of the two above */
	uint32_t flags;
	uint32_t restorer;
	uint64_t mask; /* blocked while the handler runs */
};

#define SS_DISABLE 2u

struct linux_signal_stack {
	uint32_t address;
	uint32_t flags;
	uint32_t size;
};

/* What siginfo says of where a signal came from. */
#define SI_USER	    0
#define SI_KERNEL   0x80
#define SEGV_MAPERR 1
#define SEGV_ACCERR 2
#define BUS_ADRERR  2

/* The middle of siginfo: for kill and SIGCHLD the sender's pid, its user (0), the status; for
 * exceptions the address. */
struct signal_cause {
	int32_t code;
	union {
		int32_t pid;
		uint32_t address;
	};
	int32_t status;
};

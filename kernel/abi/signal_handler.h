/* Handlers of signals as programs see them: Linux's numbers and structures for i386. */
#pragma once

#include <stddef.h>

#include "kernel/abi/signal.h"

#define SIGXCPU	  24
#define SIGXFSZ	  25
#define SIGVTALRM 26
#define SIGPROF	  27

#define SIGNAL_QUEUED 32 /* from here on a signal is pending as often as it was sent */

#define SIGNAL_MASK_SIZE 8 /* bytes of a set of 64 signals */

/* Flags of an action. */
#define SA_SIGINFO   0x00000004u
#define SA_RESTORER  0x04000000u
#define SA_ONSTACK   0x08000000u
#define SA_RESTART   0x10000000u
#define SA_NODEFER   0x40000000u
#define SA_RESETHAND 0x80000000u

/* How sigprocmask changes the mask. */
#define SIG_BLOCK   0
#define SIG_UNBLOCK 1
#define SIG_SETMASK 2

/* sigaction's structure, of the days of 32 signals. */
struct linux_old_signal_action {
	uint32_t handler;
	uint32_t mask;
	uint32_t flags;
	uint32_t restorer;
};

/* The stack that handlers may have. */
#define SS_ONSTACK	   1u
#define SIGNAL_STACK_LEAST 2048u

/* What siginfo says of where a signal came from: tkill, or an exception. */
#define SI_TIMER   (-2)
#define SI_TKILL   (-6)
#define ILL_ILLOPN 2
#define FPE_INTDIV 1
#define FPE_FLTINV 7
#define BUS_ADRALN 1
#define TRAP_TRACE 2

/* struct siginfo, as most signals fill it. Where only a part of it is given, that is all but the
 * rest. */
struct linux_signal_info {
	int32_t signal, error, code;
	int32_t pid, user; /* or an address */
	int32_t status;	   /* or a value */
	uint32_t rest[26];
};

#define SIGNAL_INFO_CAUSE offsetof(struct linux_signal_info, rest)

/*
 * Which signal an exception in user mode becomes, as in Linux.
 *
 *	#DE, #MF, #XM	SIGFPE		#UD	SIGILL		#DB, #BP	SIGTRAP
 *	#NP, #SS, #AC	SIGBUS		all others	SIGSEGV
 */
#include "kernel/process/signal.h"

int signal_of_exception(uint32_t vector)
{
	static const uint8_t signals[EXCEPTIONS] = {
		[0] = SIGFPE,  [1] = SIGTRAP, [3] = SIGTRAP, [6] = SIGILL,  [11] = SIGBUS,
		[12] = SIGBUS, [16] = SIGFPE, [17] = SIGBUS, [19] = SIGFPE,
	};

	return signals[vector] ? signals[vector] : SIGSEGV;
}

/*
 * Which signal an exception of user mode is, as Linux has it.
 *
 *	#DE, #MF, #XM	SIGFPE		#UD	SIGILL		#DB, #BP	SIGTRAP
 *	#NP, #SS, #AC	SIGBUS		all others	SIGSEGV
 *
 * A page fault says more: SEGV_ACCERR if there is a page that the program may not use so,
 * SEGV_MAPERR if there is none. Pages of the kernel are none to a program.
 */
#include "kernel/cpu/memory_layout.h"
#include "kernel/process/signal.h"

int signal_of_exception(const struct trap_frame *frame, struct signal_cause *cause)
{
	static const struct {
		uint8_t signal, code;
	} table[EXCEPTIONS] = {
		[0] = { SIGFPE, FPE_INTDIV },  [1] = { SIGTRAP, TRAP_TRACE },
		[3] = { SIGTRAP, SI_KERNEL },  [6] = { SIGILL, ILL_ILLOPN },
		[11] = { SIGBUS, SI_KERNEL },  [12] = { SIGBUS, SI_KERNEL },
		[16] = { SIGFPE, FPE_FLTINV }, [17] = { SIGBUS, BUS_ADRALN },
		[19] = { SIGFPE, FPE_FLTINV },
	};
	int signal = table[frame->vector].signal;

	*cause = (struct signal_cause){ table[frame->vector].code, { .address = frame->eip }, 0 };
	if (frame->vector == VECTOR_PAGE_FAULT) {
		uint32_t address = trap_fault_address();
		bool is_there = (frame->error_code & 1) && address < KERNEL_BASE;

		*cause = (struct signal_cause){
			.code = is_there ? SEGV_ACCERR : SEGV_MAPERR,
			.address = address,
		};
	} else if (!signal) {
		*cause = (struct signal_cause){ .code = SI_KERNEL };
	}
	return signal ? signal : SIGSEGV;
}

/*
 * The frame on a program's stack while a signal handler runs: Linux's structures for i386.
 *
 * The program can change all of it before it returns: nothing in it is trusted.
 */
#include <stddef.h>

#include "kernel/abi/entry.h"
#include "kernel/abi/signal_return.h"
#include "kernel/lib/errno.h"
#include "kernel/cpu/fpu.h"
#include "kernel/linux/signals/frame.h"
#include "kernel/lib/string.h"
#include "kernel/linux/signals/mask.h"
#include "kernel/linux/process/thread_local.h"
#include "kernel/process/signal_actions.h"
#include "mm/user_copy.h"

/* The processor's state: struct sigcontext. */
struct context {
	uint32_t gs, fs, es, ds; /* their upper halves are 0 */
	uint32_t edi, esi, ebp, esp, ebx, edx, ecx, eax;
	uint32_t trap, error_code;
	uint32_t eip, cs, eflags, esp_at_signal, ss;
	uint32_t fpu;	  /* address of a struct fpu_frame */
	uint32_t blocked; /* signals 1 to 32 */
	uint32_t fault_address;
};

/* The floating-point unit: as FNSAVE writes it, for old programs, then as FXSAVE does. */
struct fpu_frame {
	uint8_t old[108];
	uint16_t status, has_new; /* 0: the new part is there */
	struct fpu_state new;
};

/* For handlers that want the signal's number only. */
struct frame {
	uint32_t return_address;
	uint32_t signal;
	struct context context;
	uint32_t blocked; /* signals 33 to 64 */
	uint8_t code[8];
};

/* For handlers with SA_SIGINFO: with struct siginfo and struct ucontext. */
struct info_frame {
	uint32_t return_address;
	uint32_t signal, info_address, context_address;
	struct linux_signal_info info;
	struct {
		uint32_t flags, link;
		struct linux_signal_stack stack;
		struct context context;
		uint64_t blocked;
	} user;
	uint8_t code[8];
};

_Static_assert(sizeof(struct context) == 88 && sizeof(struct linux_signal_info) == 128 &&
		   offsetof(struct fpu_frame, new) == 112 &&
		   offsetof(struct info_frame, user.blocked) == 252,
	       "as Linux has it");

/* A handler returns here if its program gives no restorer: the calls sigreturn and rt_sigreturn.
 */
static const uint8_t old_code[8] = { 0x58, 0xb8, SYS_sigreturn, 0, 0, 0, 0xcd, SYSCALL_VECTOR };
static const uint8_t info_code[8] = { 0xb8, SYS_rt_sigreturn, 0, 0, 0, 0xcd, SYSCALL_VECTOR, 0x90 };

#define USER_FLAGS   0x50dd5u /* what a program may set: AC, RF, OF, DF, TF, SF, ZF, AF, PF, CF */
#define TRAP_FLAG    0x00100u
#define DOWN_FLAG    0x00400u
#define KNOWN_MXCSR  0x0000ffbfu /* other bits fault: Intel SDM volume 1, 11.6.6 */
#define MXCSR_OFFSET 24
#define RING	     3u

/* ---- there ---- */

bool signal_stack_holds(const struct linux_signal_stack *stack, uint32_t esp)
{
	return esp - stack->address - 1 < stack->size && !(stack->flags & SS_DISABLE);
}

/* Where the frame may end. */
static uint32_t stack_for(const struct trap_frame *frame, const struct linux_signal_action *action)
{
	const struct linux_signal_stack *stack = &current->process->signals.stack;

	if (!(action->flags & SA_ONSTACK) || (stack->flags & SS_DISABLE) || stack->size == 0 ||
	    signal_stack_holds(stack, frame->user_esp))
		return frame->user_esp;
	return stack->address + stack->size;
}

/* Saves the unit's state at an address. FNSAVE clears the unit. */
static int save_fpu(uint32_t address)
{
	struct fpu_frame state = { .status = 0 };

	fpu_save(&state.new);
	__asm__ volatile("fnsave %0" : "=m"(state.old));
	fpu_restore(&state.new);
	return copy_to_user(address, &state, sizeof(state)) == 0 ? 0 : -EFAULT;
}

static struct context context_of(const struct trap_frame *frame, const struct signal_cause *cause,
				 uint32_t fpu, uint64_t blocked)
{
	return (struct context){
		.gs = frame->gs & 0xffff,
		.fs = frame->fs & 0xffff,
		.es = frame->es & 0xffff,
		.ds = frame->ds & 0xffff,
		.edi = frame->edi,
		.esi = frame->esi,
		.ebp = frame->ebp,
		.esp = frame->user_esp,
		.ebx = frame->ebx,
		.edx = frame->edx,
		.ecx = frame->ecx,
		.eax = frame->eax,
		.trap = frame->vector,
		.error_code = frame->error_code,
		.eip = frame->eip,
		.cs = frame->cs & 0xffff,
		.eflags = frame->eflags,
		.esp_at_signal = frame->user_esp,
		.ss = frame->user_ss & 0xffff,
		.fpu = fpu,
		.blocked = blocked,
		.fault_address = frame->vector == VECTOR_PAGE_FAULT ? cause->address : 0,
	};
}

/* Makes the program continue in the handler, with its stack at esp and a unit that is clear. */
static void enter_handler(struct trap_frame *frame, uint32_t handler, uint32_t esp, uint32_t signal,
			  uint32_t info, uint32_t context)
{
	frame->eip = handler;
	frame->user_esp = esp;
	frame->eax = signal;
	frame->edx = info;
	frame->ecx = context;
	frame->cs = USER_CODE;
	frame->ds = frame->es = frame->user_ss = USER_DATA;
	frame->eflags &= ~(TRAP_FLAG | DOWN_FLAG);
	fpu_reset();
}

/* The place for a frame of this size: as at the first instruction of a function, esp + 4 is a
 * multiple of 16. */
static uint32_t place(uint32_t below, uint32_t size)
{
	return ((below - size + 4) & -16u) - 4;
}

static int build_plain(struct trap_frame *frame, uint32_t address, int signal,
		       const struct linux_signal_action *action, const struct context *context,
		       uint32_t blocked)
{
	struct frame plain = {
		.return_address = address + offsetof(struct frame, code),
		.signal = signal,
		.context = *context,
		.blocked = blocked,
	};

	memcpy(plain.code, old_code, sizeof(plain.code));
	if (action->flags & SA_RESTORER)
		plain.return_address = action->restorer;
	if (copy_to_user(address, &plain, sizeof(plain)) != 0)
		return -EFAULT;
	enter_handler(frame, action->handler, address, signal, 0, 0);
	return 0;
}

struct linux_signal_info signal_info(int signal, const struct signal_cause *cause)
{
	bool is_timer = cause->code == SI_TIMER && signal_overrun;

	return (struct linux_signal_info){
		.signal = signal,
		.code = cause->code,
		.pid = cause->pid,
		.user = is_timer ? signal_overrun(cause->pid) : 0,
		.status = cause->status,
	};
}

static int build_with_info(struct trap_frame *frame, uint32_t address, int signal,
			   const struct signal_cause *cause,
			   const struct linux_signal_action *action, const struct context *context,
			   uint64_t blocked)
{
	struct info_frame full = {
		.return_address = address + offsetof(struct info_frame, code),
		.signal = signal,
		.info_address = address + offsetof(struct info_frame, info),
		.context_address = address + offsetof(struct info_frame, user),
		.info = signal_info(signal, cause),
		.user = { 0, 0, current->process->signals.stack, *context, blocked },
	};

	memcpy(full.code, info_code, sizeof(full.code));
	if (action->flags & SA_RESTORER)
		full.return_address = action->restorer;
	if (copy_to_user(address, &full, sizeof(full)) != 0)
		return -EFAULT;
	enter_handler(frame, action->handler, address, signal, full.info_address,
		      full.context_address);
	return 0;
}

int signal_frame_build(struct trap_frame *frame, int signal, const struct signal_cause *cause,
		       const struct linux_signal_action *action, uint64_t blocked)
{
	const struct linux_signal_stack *stack = &current->process->signals.stack;
	bool with_info = action->flags & SA_SIGINFO;
	uint32_t end = stack_for(frame, action), fpu = (end - sizeof(struct fpu_frame)) & -16u;
	uint32_t address = place(fpu, with_info ? sizeof(struct info_frame) : sizeof(struct frame));

	if (signal_stack_holds(stack, end) && !signal_stack_holds(stack, address))
		return -EFAULT; /* what is below the alternative stack is not the handler's */
	if (save_fpu(fpu) != 0)
		return -EFAULT;
	const struct context context = context_of(frame, cause, fpu, blocked);

	if (with_info)
		return build_with_info(frame, address, signal, cause, action, &context, blocked);
	return build_plain(frame, address, signal, action, &context, blocked >> 32);
}

/* ---- and back ---- */

static int restore_fpu(uint32_t address)
{
	struct fpu_state state;
	uint32_t mxcsr;

	if (address == 0) {
		fpu_reset();
		return 0;
	}
	if (copy_from_user(&state, address + offsetof(struct fpu_frame, new), sizeof(state)) != 0)
		return -EFAULT;
	memcpy(&mxcsr, &state.bytes[MXCSR_OFFSET], sizeof(mxcsr));
	mxcsr &= KNOWN_MXCSR;
	memcpy(&state.bytes[MXCSR_OFFSET], &mxcsr, sizeof(mxcsr));
	fpu_restore(&state);
	return 0;
}

/* The selector, if the program could have loaded it itself; else the null selector. */
static uint32_t data_selector(uint32_t selector)
{
	selector = (selector & 0xffff) | RING;
	if (selector == USER_DATA || selector == USER_CODE)
		return selector;
	return thread_local_has(&current->thread_local, selector) ? selector : 0;
}

static void restore_registers(struct trap_frame *frame, const struct context *context)
{
	frame->gs = data_selector(context->gs);
	frame->fs = data_selector(context->fs);
	frame->es = data_selector(context->es);
	frame->ds = data_selector(context->ds);
	frame->edi = context->edi;
	frame->esi = context->esi;
	frame->ebp = context->ebp;
	frame->ebx = context->ebx;
	frame->edx = context->edx;
	frame->ecx = context->ecx;
	frame->eip = context->eip;
	frame->cs = USER_CODE;
	frame->eflags = (frame->eflags & ~USER_FLAGS) | (context->eflags & USER_FLAGS);
	frame->user_esp = context->esp;
	frame->user_ss = USER_DATA;
	frame->vector = 0; /* this is not a system call that could begin again */
}

/* The program gets a signal, which it may handle. It may have threads, so only the delivery of
 * signals ends it (program_finish). */
static int refuse(void)
{
	signal_force(SIGSEGV, NULL);
	return 0;
}

/* No program can run with another code or stack segment; the others become the null selector if
 * they are wrong, as on Linux. */
static int restore(struct trap_frame *frame, const struct context *context, uint64_t blocked)
{
	if (((context->cs & 0xffff) | RING) != USER_CODE || !data_selector(context->ss) ||
	    restore_fpu(context->fpu) != 0)
		return refuse();
	restore_registers(frame, context);
	bool enabled = interrupts_disable();

	trap_return_work |= WORK_SIGNAL; /* so that IRET loads the flags: one may be the trap's */
	interrupts_restore(enabled);
	signal_block(blocked);
	return context->eax;
}

/* Handlers return with RET; the plain one's place of return pops the signal's number, too. */
int signal_frame_restore(struct trap_frame *frame, bool with_info)
{
	struct frame plain;
	struct info_frame full;

	if (with_info) {
		if (copy_from_user(&full, frame->user_esp - 4, sizeof(full)) != 0)
			return refuse();
		return restore(frame, &full.user.context, full.user.blocked);
	}
	if (copy_from_user(&plain, frame->user_esp - 8, sizeof(plain)) != 0)
		return refuse();
	return restore(frame, &plain.context,
		       (uint64_t)plain.blocked << 32 | plain.context.blocked);
}

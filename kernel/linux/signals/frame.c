/*
 * The frame on a program's stack while a signal handler runs: Linux's structures for i386.
 *
 *	esp at the signal	^ upwards: what the program had there
 *	struct fpu_frame	at a multiple of 16, as FXSAVE wants
 *	plain_frame, info_frame	return address, signal's number, registers, masks
 *	esp of the handler	its return address; esp + 4 is a multiple of 16
 *
 * signal_frame_build writes it, and sigreturn (signal_frame_restore) reads it back. Between them
 * the program can change all of it: nothing in it is trusted. Both copy, and so may sleep.
 *
 * sigreturn(2), sigaltstack(2); Linux's arch/x86/include/uapi/asm/sigcontext.h.
 */

#include "kernel/abi/signal_return.h"
#include "kernel/linux/call.h"
#include "kernel/linux/signals/frame.h"
#include "kernel/lib/string.h"
#include "kernel/linux/signals/mask.h"
#include "kernel/linux/process/thread_local.h"

/* The processor's state: struct sigcontext. Its registers are those of a trap frame, in three runs
 * that have another order. */
struct context {
	uint32_t gs, fs, es, ds; /* their upper halves are 0 */
	uint32_t edi, esi, ebp, esp, ebx, edx, ecx, eax;
	uint32_t trap, error_code, eip, cs, eflags, esp_at_signal, ss;
	uint32_t fpu;	  /* address of a struct fpu_frame */
	uint32_t blocked; /* signals 1 to 32 */
	uint32_t fault_address;
};

#define SELECTORS offsetof(struct context, edi)
#define GENERAL	  (offsetof(struct context, trap) - offsetof(struct context, edi))
#define TRAP	  (offsetof(struct context, fpu) - offsetof(struct context, trap))

/* The floating-point unit: as FNSAVE writes it, for old programs, then as FXSAVE does. */
struct fpu_frame {
	uint8_t old[108];
	uint16_t status, has_new; /* 0: the new part is there */
	struct fpu_state new;
};

/* A frame ends with code that returns, for programs that give no restorer: Linux keeps it there,
 * and debuggers know a signal's frame by it. It calls sigreturn or rt_sigreturn. */
#define CODE_SIZE 8

/* For handlers that want the signal's number only: struct sigframe. */
struct plain_frame {
	uint32_t return_address, signal;
	struct context context;
	uint32_t blocked; /* signals 33 to 64 */
	uint8_t code[CODE_SIZE];
};

/* For handlers with SA_SIGINFO: struct rt_sigframe, with a struct ucontext from `flags` on. */
struct info_frame {
	uint32_t return_address, signal;
	uint32_t info_address, context_address;
	struct linux_signal_info info;
	uint32_t flags, link;
	struct linux_signal_stack stack;
	struct context context;
	uint64_t blocked;
	uint8_t code[CODE_SIZE];
};

/* Either kind; which one it is the action says, and later the call that returns. */
union frame {
	struct plain_frame plain;
	struct info_frame info;
};

_Static_assert(sizeof(struct context) == 88 && sizeof(struct linux_signal_info) == 128 &&
		   offsetof(struct fpu_frame, new) == 112 &&
		   offsetof(struct info_frame, blocked) == 252 && SELECTORS == 16 &&
		   GENERAL == offsetof(struct trap_frame, gs) &&
		   TRAP == sizeof(struct trap_frame) - offsetof(struct trap_frame, vector),
	       "as Linux has it");

/* pop %eax; mov $SYS_sigreturn, %eax; int $0x80 */
static const uint8_t plain_code[CODE_SIZE] = { 0x58, 0xb8, SYS_sigreturn, 0,
					       0,    0,	   0xcd,	  SYSCALL_VECTOR };
/* mov $SYS_rt_sigreturn, %eax; int $0x80; nop */
static const uint8_t info_code[CODE_SIZE] = { 0xb8, SYS_rt_sigreturn, 0,   0, 0,
					      0xcd, SYSCALL_VECTOR,   0x90 };

#define USER_FLAGS   0x50dd5u /* what a program may set: AC, RF, OF, DF, TF, SF, ZF, AF, PF, CF */
#define TRAP_FLAG    0x00100u
#define DOWN_FLAG    0x00400u
#define KNOWN_MXCSR  0x0000ffbfu /* other bits fault: Intel SDM volume 1, 11.6.6 */
#define MXCSR_OFFSET 24

/* ---- there ---- */

bool signal_stack_holds(const struct linux_signal_stack *stack, uint32_t esp)
{
	return esp - stack->address - 1 < stack->size && !(stack->flags & SS_DISABLE);
}

/* Where the frame may end: below the program's stack, or at the top of the alternative one, if the
 * action wants that and no handler runs on it yet. */
static uint32_t stack_for(const struct trap_frame *frame, const struct linux_signal_action *action)
{
	const struct linux_signal_stack *stack = &current->process->signals.stack;

	if (!(action->flags & SA_ONSTACK) || (stack->flags & SS_DISABLE) || stack->size == 0 ||
	    signal_stack_holds(stack, frame->user_esp))
		return frame->user_esp;
	return stack->address + stack->size;
}

/* Saves the unit's state at an address. FNSAVE clears the unit. FXSAVE leaves some bytes as they
 * are (Intel SDM volume 1, 10.5.1), and the program must not see what was on the kernel's stack. */
static int save_fpu(uint32_t address)
{
	struct fpu_frame state;

	memset(&state, 0, sizeof(state));
	fpu_save(&state.new);
	__asm__ volatile("fnsave %0" : "=m"(state.old));
	fpu_restore(&state.new);
	return give(address, &state, sizeof(state));
}

/* What the program was doing. The kernel's stack may have anything in a selector's upper half. */
static void save_registers(struct context *to, const struct trap_frame *frame)
{
	memcpy(&to->gs, &frame->gs, SELECTORS);
	memcpy(&to->edi, &frame->edi, GENERAL);
	memcpy(&to->trap, &frame->vector, TRAP);
	to->esp = frame->user_esp;
	uint32_t *const selectors[] = { &to->gs, &to->fs, &to->es, &to->ds, &to->cs, &to->ss };

	for (unsigned i = 0; i < sizeof(selectors) / sizeof(selectors[0]); i++)
		*selectors[i] &= 0xffff;
}

/* Makes the program continue in the handler, with its frame at esp and a unit that is clear. The
 * arguments are on the stack, and in registers for handlers compiled to look there. */
static void enter_handler(struct trap_frame *frame, uint32_t handler, uint32_t esp, int signal,
			  bool with_info)
{
	frame->eip = handler;
	frame->user_esp = esp;
	frame->eax = signal;
	frame->edx = with_info ? esp + offsetof(struct info_frame, info) : 0;
	frame->ecx = with_info ? esp + offsetof(struct info_frame, flags) : 0;
	frame->cs = USER_CODE;
	frame->ds = frame->es = frame->user_ss = USER_DATA;
	frame->eflags &= ~(TRAP_FLAG | DOWN_FLAG);
	fpu_reset();
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

/* Fills in what the two kinds have apart from each other, for a frame at this address. Returns
 * where the registers go. */
static struct context *fill_frame(union frame *new, uint32_t address, int signal,
				  const struct signal_cause *cause, uint64_t blocked,
				  bool with_info)
{
	if (!with_info) {
		new->plain.blocked = blocked >> 32;
		return &new->plain.context;
	}
	new->info.info_address = address + offsetof(struct info_frame, info);
	new->info.context_address = address + offsetof(struct info_frame, flags);
	new->info.info = signal_info(signal, cause);
	new->info.flags = new->info.link = 0;
	new->info.stack = current->process->signals.stack;
	new->info.blocked = blocked;
	return &new->info.context;
}

/* As at the first instruction of a function, esp + 4 is a multiple of 16. What is below the
 * alternative stack is not the handler's. */
int signal_frame_build(struct trap_frame *frame, int signal, const struct signal_cause *cause,
		       const struct linux_signal_action *action, uint64_t blocked)
{
	const struct linux_signal_stack *stack = &current->process->signals.stack;
	bool with_info = action->flags & SA_SIGINFO;
	uint32_t size = with_info ? sizeof(struct info_frame) : sizeof(struct plain_frame);
	uint32_t end = stack_for(frame, action), fpu = (end - sizeof(struct fpu_frame)) & -16u;
	uint32_t address = ((fpu - size + 4) & -16u) - 4;
	union frame new;
	struct context *context = fill_frame(&new, address, signal, cause, blocked, with_info);

	if ((signal_stack_holds(stack, end) && !signal_stack_holds(stack, address)) ||
	    save_fpu(fpu) != 0)
		return -EFAULT;
	new.plain.return_address =
	    action->flags &SA_RESTORER ? action->restorer : address + size - CODE_SIZE;
	new.plain.signal = signal;
	memcpy((uint8_t *)&new + size - CODE_SIZE, with_info ? info_code : plain_code, CODE_SIZE);
	save_registers(context, frame);
	context->fpu = fpu;
	context->blocked = blocked;
	context->fault_address = frame->vector == VECTOR_PAGE_FAULT ? cause->address : 0;
	if (copy_to_user(address, &new, size) != 0)
		return -EFAULT;
	enter_handler(frame, action->handler, address, signal, with_info);
	return 0;
}

/* ---- and back ---- */

/* 0 or -EFAULT. A program that has cleared the address gets a unit as after FNINIT. Bits that
 * FXRSTOR would fault on are cleared. */
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

/* Of EFLAGS the program sets what it could set itself. EAX is the call's result. */
static void restore_registers(struct trap_frame *frame, const struct context *context)
{
	memcpy(&frame->gs, &context->gs, SELECTORS);
	memcpy(&frame->edi, &context->edi, GENERAL);
	frame->eip = context->eip;
	frame->cs = USER_CODE;
	frame->eflags = (frame->eflags & ~USER_FLAGS) | (context->eflags & USER_FLAGS);
	frame->user_esp = context->esp;
	frame->user_ss = USER_DATA;
	frame->vector = 0; /* this is not a system call that could begin again */
	selectors_check(frame);
}

/* Handlers return with RET; the plain one's place of return pops the signal's number, too. No
 * program can run with another code or stack segment; the others become the null selector if they
 * are wrong, as on Linux. A frame that is wrong is a signal, which the program may handle. It may
 * have threads, so only the delivery of signals ends it (program_finish). */
int signal_frame_restore(struct trap_frame *frame, bool with_info)
{
	union frame old;
	const struct context *context = with_info ? &old.info.context : &old.plain.context;
	uint32_t popped = with_info ? 4 : 8;
	uint32_t size = with_info ? sizeof(struct info_frame) : sizeof(struct plain_frame);

	if (copy_from_user(&old, frame->user_esp - popped, size) != 0 ||
	    selector_for_user(context->cs) != USER_CODE || !selector_for_user(context->ss) ||
	    restore_fpu(context->fpu) != 0) {
		signal_force(SIGSEGV, NULL);
		return 0;
	}
	restore_registers(frame, context);
	bool enabled CLEANUP(interrupts_leave) = interrupts_disable();

	trap_return_work |= WORK_SIGNAL; /* so that IRET loads the flags: one may be the trap's */
	signal_block(with_info ? old.info.blocked
			       : (uint64_t)old.plain.blocked << 32 | context->blocked);
	return context->eax;
}

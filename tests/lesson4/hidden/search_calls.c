/*
 * The search for races with the timer in the calls of programs: as search.c, but a scenario is what
 * the processes of lives.c do, and its first one, the driver, says how it came out.
 *
 * Breakpoints of the processor (DR0 to DR2) are at the exercise's three functions. From there on it
 * single-steps as long as it is in the exercise's code: what that calls runs at full speed, up to a
 * breakpoint (DR3) where it returns to. The driver's own calls are not disturbed.
 */
#include "kernel/lib/string.h"
#include "kernel/process/family.h"
#include "kernel/process/signal.h"
#include "tests/lesson4/hidden/search.h"
#include "tests/lesson4/hidden/search_call.h"

#define SYSTEM_CALL	0x80
#define BREAK_AT_0_TO_3 0x2aa
#define SLOT		(4u << 20)
#define PROGRAM		0x48000	   /* where the linker puts it, from the beginning of its memory */
#define USED		(8u << 10) /* of it, and at the end, for the stack */
#define JUMP		0xe9

void search_of_calls(void);
int search_asked(uint32_t what, uint32_t number);

extern const char search_gate[], finished[];
uint32_t search_call; /* where the kernel's calls begin */

static uint32_t point, tried;
static struct timer alarm_timer;
static struct process *rings_for;

__asm__("	.globl search_gate\n"
	"search_gate:\n"
	"	cmpl $0x5ea7c4, %eax\n"
	"	je 1f\n"
	"	jmp *%cs:search_call\n"
	"1:	pushl %ds\n"
	"	pushl %es\n"
	"	pushl %ecx\n"
	"	pushl %edx\n"
	"	movl %ss, %eax\n"
	"	movl %eax, %ds\n"
	"	movl %eax, %es\n"
	"	cld\n"
	"	pushl %ecx\n"
	"	pushl %ebx\n"
	"	call search_asked\n"
	"	addl $8, %esp\n"
	"	popl %edx\n"
	"	popl %ecx\n"
	"	popl %es\n"
	"	popl %ds\n"
	"	iretl\n");

static void ring(struct timer *timer)
{
	(void)timer;
	signal_send(rings_for, 14);
}

static void break_at(void)
{
	__asm__ volatile("movl %0, %%dr0" : : "r"(process_fork));
	__asm__ volatile("movl %0, %%dr1" : : "r"(process_exit));
	__asm__ volatile("movl %0, %%dr2" : : "r"(process_wait));
	__asm__ volatile("movl %0, %%dr7" : : "r"(BREAK_AT_0_TO_3));
}

static void __attribute__((noreturn)) end(uint32_t verdict)
{
	answer(verdict);
	answer(search_at);
	answer(tried);
	__asm__ volatile("jmp finished");
	__builtin_unreachable();
}

/* 1: once more, with the tick at the next place. */
static int next(uint32_t verdict)
{
	if (!search_driver)
		break_at();
	else if (verdict)
		end(verdict);
	else if (search_seen < point)
		end(0);
	else
		tried = point++;
	search_driver = current;
	search_seen = search_at = 0;
	search_left = point;
	return 1;
}

int search_asked(uint32_t what, uint32_t number)
{
	if (what == SEARCH_NEXT)
		return next(number);
	if (what == SEARCH_TICK) {
		tick();
		return 0;
	}
	rings_for = current->process;
	timer_cancel(&alarm_timer);
	timer_start(&alarm_timer, time_ns() - 1, ring);
	return 0;
}

/* In place of the kernel's: of the 4 MiB of a program, only what lives.c uses. */
static void *copy(void *to, const void *from, size_t size)
{
	void *at = to;

	if (size == SLOT) {
		copy((char *)to + PROGRAM, (const char *)from + PROGRAM, USED);
		copy((char *)to + SLOT - USED, (const char *)from + SLOT - USED, USED);
	} else {
		size_t words = size / 4;

		size %= 4;
		__asm__ volatile("rep movsl" : "+D"(at), "+S"(from), "+c"(words) : : "memory");
		__asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(size) : : "memory");
	}
	return to;
}

static void replace(void *function, const void *by)
{
	uint8_t *code = function;
	uint32_t distance = (uintptr_t)by - (uintptr_t)function - 5;

	code[0] = JUMP;
	for (unsigned i = 0; i < 4; i++)
		code[1 + i] = distance >> 8 * i;
}

/* Back to the kernel's prompt, which runs the program. */
void search_of_calls(void)
{
	uint16_t *gate = take_over() + 4 * SYSTEM_CALL;

	quiet();
	sched_quantum = 1;
	current->schedule.quantum = 1;
	trap_register(BREAKPOINT, ignore);
	replace(memcpy, copy);
	search_call = gate_offset(gate);
	search_stops_outside = 1;
	gate[0] = (uint32_t)search_gate & 0xffff;
	gate[3] = (uint32_t)search_gate >> 16;
}

/*
 * The search itself, for search.c and search_calls.c.
 *
 * The processor single-steps (TF), and the gate of its debug exceptions is the test's own, which
 * counts the instructions of the exercise's functions that are executed with interrupts enabled. At
 * the one whose turn it is, it ends the stepping and goes on at the gate of IRQ 0: the processor
 * pushes the same three words for both. The EOI that follows finds nothing in service, and does
 * nothing.
 */
#pragma once

#include "kernel/cpu/trap.h"
#include "tests/lesson4/threads/thread_test.h"

#define DEBUG_TRAP 1
#define BREAKPOINT 3
#define IRQ_0	   32
#define RANGES	   8

extern const char search_trap[];

uint32_t search_left;	   /* instructions to go */
uint32_t search_seen;	   /* how many there were */
uint32_t search_at;	   /* where the tick came */
uint32_t search_was_on;	   /* interrupts, before the last instruction */
uint32_t search_interrupt; /* where IRQ 0 begins */
/* From the test: where the exercise's functions begin and end. The last range is empty. */
uint32_t search_ranges[RANGES][2];

uint32_t search_stops_outside; /* of the exercise's code, the stepping ends: DR3 goes on */
struct task *search_driver;    /* is never disturbed; or NULL */

/* After STI (0xfb) one more instruction is executed before any interrupt. RF (0x10000): go on at a
 * breakpoint. search_in_range: is EAX in the exercise's code? CF; clobbers ECX. */
__asm__("	.globl search_trap\n"
	"search_trap:\n"
	"	pushl %eax\n"
	"	pushl %ecx\n"
	"	movl 8(%esp), %eax\n"
	"	orl $0x10000, 16(%esp)\n"
	"	movl current, %ecx\n"
	"	cmpl %ecx, search_driver\n"
	"	je 6f\n"
	"	movl 16(%esp), %ecx\n"
	"	andl $0x200, %ecx\n"
	"	xchgl %ecx, search_was_on\n"
	"	pushl %ecx\n"
	"	call search_in_range\n"
	"	popl %ecx\n"
	"	jnc 5f\n"
	"	orl $0x100, 16(%esp)\n"
	"	testl $0x200, 16(%esp)\n"
	"	jz 1f\n"
	"	testl %ecx, %ecx\n"
	"	jnz 2f\n"
	"	cmpb $0xfb, -1(%eax)\n"
	"	je 1f\n"
	"2:	incl search_seen\n"
	"	decl search_left\n"
	"	jz 3f\n"
	"1:	popl %ecx\n"
	"	popl %eax\n"
	"	iretl\n"
	"3:	movl %eax, search_at\n"
	"	andl $~0x100, 16(%esp)\n"
	"	popl %ecx\n"
	"	popl %eax\n"
	"	jmp *search_interrupt\n"
	"5:	cmpl $0, search_stops_outside\n"
	"	je 1b\n"
	"	movl 20(%esp), %eax\n"
	"	call search_in_range\n"
	"	jnc 6f\n"
	"	movl %eax, %dr3\n"
	"6:	andl $~0x100, 16(%esp)\n"
	"	jmp 1b\n"
	"search_in_range:\n"
	"	movl $search_ranges - 8, %ecx\n"
	"4:	addl $8, %ecx\n"
	"	cmpl $0, (%ecx)\n"
	"	je 5f\n"
	"	cmpl (%ecx), %eax\n"
	"	jb 4b\n"
	"	cmpl 4(%ecx), %eax\n"
	"	jae 4b\n"
	"5:	ret\n");

struct table {
	uint16_t limit;
	uint32_t base;
} __attribute__((packed));

static inline uint32_t gate_offset(const uint16_t *gate)
{
	return gate[0] | (uint32_t)gate[3] << 16;
}

/* Returns the table of gates. */
static inline uint16_t *take_over(void)
{
	struct table idt;

	__asm__ volatile("sidt %0" : "=m"(idt));
	uint16_t *gates = (uint16_t *)idt.base;
	uint16_t *own = gates + 4 * DEBUG_TRAP;

	search_interrupt = gate_offset(gates + 4 * IRQ_0);
	own[0] = (uint32_t)search_trap & 0xffff;
	own[3] = (uint32_t)search_trap >> 16;
	own[2] = 0x8e00;
	return gates;
}

static inline void steps_begin(void)
{
	__asm__ volatile("pushfl; orl $0x100, (%%esp); popfl" : : : "memory", "cc");
}

static inline void steps_end(void)
{
	__asm__ volatile("pushfl; andl $~0x100, (%%esp); popfl" : : : "memory", "cc");
}

static inline void ignore(struct trap_frame *frame)
{
	(void)frame;
}

static inline uint32_t repetition(uint32_t (*scenario)(void), uint32_t point)
{
	search_seen = 0;
	search_left = point;
	steps_begin();
	uint32_t verdict = scenario();

	steps_end();
	return verdict;
}

/* answers: the verdict, where the tick came (0: none came), and how many places were tried. */
static inline void search(uint32_t (*scenario)(void))
{
	uint32_t tried = 0, verdict;

	quiet();
	sched_quantum = 1;
	current->schedule.quantum = 1;
	trap_register(BREAKPOINT, ignore);
	take_over();
	verdict = scenario();
	while (verdict == 0) {
		search_at = 0;
		verdict = repetition(scenario, tried + 1);
		if (search_seen <= tried)
			break;
		tried++;
	}
	answer(verdict);
	answer(search_at);
	answer(tried);
}

/* A tick now, in the test's own code. */
static inline void tick(void)
{
	sched_tick();
	__asm__ volatile("int3" : : : "memory");
}

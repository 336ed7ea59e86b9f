/*
 * The commands `ticktax` and `roundtrip`: raw figures of the cost of entering the kernel.
 *
 *	ticktax 1000 5000	some work under 1000 ticks a second; compared with 0 Hz,
 *				the difference, divided by the ticks, is the price of one
 *	roundtrip		one trap, timed by RDTSC before and after the instruction
 *
 * Only raw figures are printed, in TSC cycles: measure.py makes tables of them, with their spread.
 * Both commands reprogram hardware or gates, and put everything back before they return.
 */

#include "drivers/clock/pic.h"
#include "drivers/clock/pit.h"
#include "kernel/cpu/memory_layout.h"
#include "kernel/cpu/descriptors.h"
#include "kernel/cpu/gates.h"
#include "kernel/cpu/interrupts.h"
#include "kernel/cpu/machine.h"
#include "kernel/report/monitor.h"
#include "kernel/lib/number.h"
#include "kernel/report/printk.h"
#include "kernel/cpu/trap.h"
#include "labs/lesson2/probes.h"

#define TIMER_LINE	  0
#define ROUND_LOOPS	  10000u /* of two instructions */
#define TICKS_AT_MOST	  20000u
#define VECTOR_BREAKPOINT 3
#define FORBIDDEN	  (KERNEL_BASE + DIRECT_MAP_SIZE) /* no page is there */
#define FAULT_LENGTH	  2 /* of the instruction that faults, in bytes */
#define TRIES		  4

extern const uintptr_t trap_stubs[]; /* kernel/cpu/trap_entry.asm */

/* --- ticktax: the same work, with the timer at different speeds --- */

static volatile uint32_t ticks;

/* A timer that is too fast leaves no instruction to the work: such a run ends here. */
static void count_tick(void)
{
	if (++ticks == TICKS_AT_MOST)
		pit_initialize(TICKS_PER_SECOND);
}

/* Two instructions in each iteration, in assembly, so that the compiler cannot change what is
 * measured. */
static void work(void)
{
	uint32_t loops = ROUND_LOOPS;

	__asm__ volatile("1: decl %0; jnz 1b" : "+r"(loops));
}

/* Works for this many rounds, if the ticks let it. Returns how many there were. */
static uint32_t work_rounds(uint32_t rounds)
{
	uint32_t done = 0;

	while (done < rounds && ticks < TICKS_AT_MOST) {
		work();
		done++;
	}
	return done;
}

/* Interrupts are disabled until the clock has been read, so that every tick is inside the
 * measurement. Without a timer they stay off. */
static void measure_ticks(uint32_t hz, uint32_t rounds)
{
	interrupts_disable();
	if (hz > 0) {
		pit_initialize(hz);
		irq_register(TIMER_LINE, count_tick);
	}
	ticks = 0;
	uint64_t start = time_stamp();

	interrupts_restore(hz > 0);
	uint32_t done = work_rounds(rounds);
	uint64_t passed = time_stamp() - start;

	printk("ticktax: %u Hz, %u of %u rounds, %llu TSC cycles, %u ticks\n", hz, done, rounds,
	       passed, ticks);
	pit_initialize(TICKS_PER_SECOND);
	interrupts_enable();
}

/* The same range as the timer's; 0 is the run without one. */
static int run_ticktax(int count, char **arguments)
{
	uint64_t hz, rounds;

	if (!number_parse(arguments[1], &hz) || !number_parse(arguments[2], &rounds) ||
	    (hz != 0 && (hz < 18 || hz > 65536)) || rounds > UINT32_MAX) {
		printk("ticktax: 0 Hz (no timer), or 18 to 65536; and a number of rounds\n");
		return EXIT_FAILURE;
	}
	measure_ticks(hz, rounds);
	return EXIT_SUCCESS;
}

/* --- roundtrip: one trap, from the instruction before it to the one after it --- */

/* labs/lesson2/round_trip.asm; the last kind has the name NULL. */
struct trip {
	const char *name;
	uint32_t (*in_ring0)(uint32_t argument);
	const uint8_t *in_ring3;
	uint32_t length;
};

extern const struct trip trips[];

/* INT3 pushes the address of the next instruction: there is nothing to do. */
static void go_on(struct trap_frame *frame)
{
}

/* A fault pushes the address of the instruction itself, which would fault again. */
static void skip_the_access(struct trap_frame *frame)
{
	frame->eip += FAULT_LENGTH;
}

/* Both return the difference of the two counts in EAX. */
static uint32_t trip_from(const struct trip *trip, unsigned ring)
{
	if (ring == 0)
		return trip->in_ring0(FORBIDDEN);
	return ring3_run(trip->in_ring3, trip->length, FORBIDDEN)->eax;
}

/* The shortest of a few tries: an interrupt may come between. */
static uint32_t shortest_trip(const struct trip *trip, unsigned ring)
{
	uint32_t shortest = UINT32_MAX;

	for (unsigned i = 0; i < TRIES; i++) {
		uint32_t passed = trip_from(trip, ring);

		if (passed < shortest)
			shortest = passed;
	}
	return shortest;
}

/* While `open`, user mode may use INT3, and both kinds of traps go back to where they came from. */
static void set_handlers(bool open)
{
	gate_set(VECTOR_BREAKPOINT, KERNEL_CODE, trap_stubs[VECTOR_BREAKPOINT], GATE_INTERRUPT,
		 open ? 3 : 0);
	trap_register(VECTOR_BREAKPOINT, open ? go_on : NULL);
	trap_register(VECTOR_PAGE_FAULT, open ? skip_the_access : NULL);
}

/* Each kind from both privilege levels: the difference is what changing them costs. */
static int run_roundtrip(int count, char **arguments)
{
	set_handlers(true);
	for (const struct trip *trip = trips; trip->name; trip++)
		for (unsigned ring = 0; ring <= 3; ring += 3)
			printk("roundtrip: %s from ring %u: %u TSC cycles\n", trip->name, ring,
			       shortest_trip(trip, ring));
	set_handlers(false);
	return EXIT_SUCCESS;
}

static const struct command commands[] COMMAND_TABLE = {
	{ "ticktax", "HZ ROUNDS", "work under a timer of HZ ticks a second", 2, run_ticktax },
	{ "roundtrip", "", "what a trap costs, by its kind and ring", 0, run_roundtrip },
};

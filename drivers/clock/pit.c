/*
 * The 8254 interval timer: three counters that count 1193182 times a second.
 *
 * Channel 0 is wired to IRQ 0. As a rate generator (mode 2) it counts a divisor down to 1,
 * interrupts, and begins again:
 *
 *	hz 100 -> divisor 11932 (1193182 / 100, rounded) -> an interrupt every 10.0002 ms
 *
 * Channel 2 is wired to the speaker, and its output can be read at port 0x61. As a one-shot (mode
 * 0) it measures how many TSC cycles pass while it counts down from 23864, which takes 20.0 ms.
 * That needs no interrupt, so the clock is known before interrupts are enabled.
 *
 * A counter takes its 16 bits as two writes, low byte first, because the command said so; the
 * second one starts it (82C54 data sheet, "programming the 82C54"). Nothing may come between them.
 */
#include "drivers/clock/pit.h"

#include "drivers/clock/pic.h"
#include "kernel/lib/divide.h"
#include "kernel/cpu/io.h"
#include "kernel/report/panic.h"

#define FREQUENCY      1193182u /* Hz: a third of the NTSC colour carrier */
#define SLOWEST	       65536u	/* the largest divisor */
#define CHANNEL_0      0x40
#define CHANNEL_2      0x42
#define COMMAND	       0x43
#define RATE_GENERATOR 0x34 /* channel 0, low then high byte, mode 2 */
#define ONE_SHOT       0xb0 /* channel 2, low then high byte, mode 0: OUT rises at zero */
#define GATE	       0x61 /* bit 0 opens channel 2's gate, bit 1 the speaker, bit 5 reads OUT */
#define GATE_OPEN      0x01
#define SPEAKER	       0x02
#define OUT	       0x20

#define INTERVAL     23864u /* counts: 20.0 ms */
#define TURN_LIMIT   10000000u
#define MEASUREMENTS 5 /* at most */

static uint32_t ticks;
void (*pit_on_tick)(void);

/* Channel 2 counts down from INTERVAL. Returns the TSC cycles that passed meanwhile.
 * The loop reads the output once in sixteen iterations: reading a port is slow, and under an
 * emulator very slow. volatile keeps the iterations in between. */
static uint64_t measure_once(void)
{
	out8(GATE, (in8(GATE) & ~SPEAKER) | GATE_OPEN);
	out8(COMMAND, ONE_SHOT);
	out8(CHANNEL_2, INTERVAL & 0xff);
	out8(CHANNEL_2, INTERVAL >> 8); /* this write starts the count */
	uint64_t start = time_stamp();

	for (volatile unsigned turn = 0; turn < TURN_LIMIT; turn++)
		if (turn % 16 == 0 && in8(GATE) & OUT)
			return time_stamp() - start;
	panic("the interval timer does not count: there is no clock");
}

/* kHz = cycles / milliseconds, and the milliseconds are INTERVAL * 1000 / FREQUENCY: the product
 * comes first and needs 64 bits. At boot, with interrupts disabled: a handler in the middle would
 * lengthen the measured time. So does a host that lets a virtual machine wait: the least of five
 * measurements is right then, and two that agree are enough. */
uint32_t pit_measure_tsc_khz(void)
{
	uint64_t passed = measure_once();

	for (uint64_t i = 1, off = passed; off > passed / 1024 && i < MEASUREMENTS; i++) {
		uint64_t again = measure_once();

		off = again < passed ? passed - again : again - passed;
		passed = again < passed ? again : passed;
	}
	return divide64(passed * FREQUENCY, INTERVAL * 1000u, 0);
}

/* The handler of IRQ 0, so interrupts are disabled. If the processor is too late, ticks are lost:
 * the controller keeps only one. */
static void pit_tick(void)
{
	ticks++;
	if (pit_on_tick)
		pit_on_tick();
}

/* EXERCISE 2.4 (timer and interrupt controllers, part 2): the timer's frequency, divided (82C54
   data sheet, "programming the 82C54").
   pit_initialize: channel 0 as RATE_GENERATOR with the divisor nearest to FREQUENCY / hz, but 65536
   at most; IRQ 0 calls pit_tick. hz outside of what drivers/clock/pit.h promises fails an ASSERT.
   Pitfalls: the register has 16 bits and stands for 65536 when it is 0. It takes two bytes, the
   low one first. Integer division rounds down. */
/* SOLUTION 2.4 { */
void pit_initialize(uint32_t hz)
{
	ASSERT(hz >= 18 && hz <= 65536);
	uint32_t divisor = (FREQUENCY + hz / 2) / hz;

	if (divisor > SLOWEST)
		divisor = SLOWEST;
	out8(COMMAND, RATE_GENERATOR);
	out8(CHANNEL_0, divisor & 0xff);
	out8(CHANNEL_0, divisor >> 8 & 0xff);
	irq_register(0, pit_tick);
}
/* } SOLUTION 2.4 */

/* One aligned word: it may be read with interrupts enabled. */
uint32_t pit_ticks(void)
{
	return ticks;
}

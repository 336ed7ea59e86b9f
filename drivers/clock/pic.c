/* The two 8259 interrupt controllers. Commands: Intel 8259A data sheet. */
#include "drivers/clock/pic.h"

#include <stdbool.h>
#include <stdint.h>

#include "kernel/cpu/io.h"
#include "kernel/report/panic.h"
#include "kernel/cpu/trap.h"

#define LINES	     16
#define FIRST_VECTOR 32
#define CASCADE	     2 /* the second controller hangs on this line of the first */
#define FIRST	     0x20
#define SECOND	     0xa0
#define MASK	     1	  /* offset of the mask register */
#define INITIALIZE   0x11 /* ICW1, with ICW4 to come */
#define MODE_8086    0x01
#define READ_SERVICE 0x0b /* OCW3: the next read gives the lines in service */
#define END	     0x20 /* OCW2: end of interrupt, not specific */

static void (*handlers[LINES])(void);

/* EXERCISE 2.4 (timer and interrupt controllers, part 1): commands are in the Intel 8259A data
   sheet.
   1. initialize one controller: INITIALIZE to its port; then to its mask register the vector of its
   first line, the cascade (the first controller wants a bit set, the second a line's number),
   MODE_8086; and a mask that shuts every line.
   2. in_service: READ_SERVICE to the port, then the register has the line's bit.
   3. end_of_interrupt: END to the first controller; for lines 8 to 15 to the second one as well.
   4. is_spurious: a line that falls back too soon arrives as line 7 of its controller, without
   being in service. It gets no END; but when it came from the second controller, the first one
   waits for its own. */
/* SOLUTION 2.4 { */
static void initialize(uint16_t port, uint8_t vector, uint8_t cascade)
{
	out8(port, INITIALIZE);
	out8(port + MASK, vector);
	out8(port + MASK, cascade);
	out8(port + MASK, MODE_8086);
	out8(port + MASK, 0xff);
}

static bool in_service(uint16_t port, unsigned line)
{
	out8(port, READ_SERVICE);
	return in8(port) >> line & 1;
}

static void end_of_interrupt(unsigned line)
{
	if (line >= 8)
		out8(SECOND, END);
	out8(FIRST, END);
}

/* A line that falls back before the processor asks gives the controller's line 7, not in service:
 * such an interrupt is nobody's, and only the first controller, if any, waits for its end. */
static bool is_spurious(unsigned line)
{
	if (line == 7)
		return !in_service(FIRST, 7);
	if (line != 15 || in_service(SECOND, 7))
		return false;
	out8(FIRST, END);
	return true;
}
/* } SOLUTION 2.4 */

static void pic_dispatch(struct trap_frame *frame)
{
	unsigned line = frame->vector - FIRST_VECTOR;

	if (is_spurious(line))
		return;
	if (handlers[line])
		handlers[line]();
	end_of_interrupt(line);
}

void pic_initialize(void)
{
	initialize(FIRST, FIRST_VECTOR, 1 << CASCADE);
	initialize(SECOND, FIRST_VECTOR + 8, CASCADE);
	for (unsigned line = 0; line < LINES; line++)
		trap_register(FIRST_VECTOR + line, pic_dispatch);
}

static void unmask(unsigned line)
{
	uint16_t port = (line < 8 ? FIRST : SECOND) + MASK;

	out8(port, in8(port) & ~(1 << line % 8));
}

void irq_register(unsigned line, void (*handler)(void))
{
	ASSERT(line < LINES);
	handlers[line] = handler;
	if (line >= 8)
		unmask(CASCADE);
	unmask(line);
}

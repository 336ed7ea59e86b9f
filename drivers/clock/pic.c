/*
 * The two 8259A interrupt controllers: which device interrupts the processor, and in which order.
 *
 *	IRQ 0  timer	--+				IRQ 8  clock	--+
 *	IRQ 1  keyboard	--+				IRQ 9		--+
 *	IRQ 2		--+<-- output of the second --	...		--+
 *	...		--+				IRQ 15		--+
 *	IRQ 7		--+--> INTR of the processor
 *
 * IRQ n arrives at vector 32 + n: the BIOS's choice, vectors 8 to 15, belongs to exceptions. A
 * controller delivers no further interrupt of equal or lower priority until it receives an
 * end-of-interrupt command (EOI). The second controller is a device of the first, so its interrupts
 * need an EOI at both.
 *
 * Initialization is four command words in a row (8259A data sheet, ICW1 to ICW4): the first at the
 * command port, the others at the mask register's port, where only their order tells them apart. So
 * nothing may interrupt pic_initialize. Handlers run with interrupts disabled; the EOI comes after
 * the handler.
 */
#include "drivers/clock/pic.h"

#include "kernel/cpu/io.h"
#include "kernel/report/panic.h"
#include "kernel/cpu/trap.h"

#define IRQS	     16
#define FIRST_VECTOR EXCEPTIONS /* the first that is not the processor's */
#define CASCADE	     2 /* the second controller's output is wired to this IRQ of the first */
#define FIRST	     0x20
#define SECOND	     0xa0
#define MASK	     1	  /* offset of the mask register */
#define INITIALIZE   0x11 /* ICW1, with ICW4 to come */
#define MODE_8086    0x01
#define READ_SERVICE 0x0b /* OCW3: the next read gives the in-service bits */
#define EOI	     0x20 /* OCW2: non-specific end of interrupt */

static void (*handlers[IRQS])(void); /* by IRQ; NULL: no handler */

/* EXERCISE 2.4 (timer and interrupt controllers, part 1): commands are in the Intel 8259A data
   sheet.
   initialize: the four initialization command words of one controller: INITIALIZE to its port;
   then, to its mask register, the vector of its first IRQ, the cascade, and MODE_8086. Afterwards
   every IRQ is masked.
   in_service, a helper of your own: is the in-service bit of an input, 0 to 7, of a controller set?
   end_of_interrupt: an EOI to every controller that the IRQ came through.
   is_spurious: if a device withdraws its request before the processor acknowledges it, the
   controller reports its IRQ 7 although no in-service bit is set. Such an interrupt gets no EOI.
   Pitfalls: the first controller takes the cascade as a bit mask, the second as a number. The
   IRQ 7 of the second controller is IRQ 15, and a spurious one is a real interrupt for the first
   controller. */
/* SOLUTION 2.4 { */
/* ICW1 to ICW4, and then OCW1: the mask, with every IRQ masked. */
static void initialize(uint16_t port, uint8_t vector, uint8_t cascade)
{
	out8(port, INITIALIZE);
	out8(port + MASK, vector);
	out8(port + MASK, cascade);
	out8(port + MASK, MODE_8086);
	out8(port + MASK, 0xff);
}

/* OCW3 selects what the next read of the command port gives; the in-service register here. */
static bool in_service(uint16_t port, unsigned input)
{
	out8(port, READ_SERVICE);
	return in8(port) >> input & 1;
}

/* Non-specific: the controller clears its in-service bit of the highest priority, which is
 * that of this interrupt. */
static void end_of_interrupt(unsigned irq)
{
	if (irq >= 8)
		out8(SECOND, EOI);
	out8(FIRST, EOI);
}

/* If a device withdraws its request before the processor acknowledges it, the controller must still
 * answer with some vector, and answers with that of its IRQ 7, without setting the in-service bit.
 * Such an interrupt belongs to no device. An EOI would end another interrupt. Only the first
 * controller has one in service, IRQ 2, if the request came through the second. */
static bool is_spurious(unsigned irq)
{
	if (irq == 7)
		return !in_service(FIRST, 7);
	if (irq != 15 || in_service(SECOND, 7))
		return false;
	out8(FIRST, EOI);
	return true;
}
/* } SOLUTION 2.4 */

/* For all sixteen vectors, with interrupts disabled. An IRQ without a handler is acknowledged and
 * ignored. */
static void pic_dispatch(struct trap_frame *frame)
{
	unsigned irq = frame->vector - FIRST_VECTOR;

	if (is_spurious(irq))
		return;
	if (handlers[irq])
		handlers[irq]();
	end_of_interrupt(irq);
}

void pic_initialize(void)
{
	initialize(FIRST, FIRST_VECTOR, 1 << CASCADE);
	initialize(SECOND, FIRST_VECTOR + 8, CASCADE);
	for (unsigned irq = 0; irq < IRQS; irq++)
		trap_register(FIRST_VECTOR + irq, pic_dispatch);
}

/* A clear bit of the mask lets an IRQ through. */
static void unmask(unsigned irq)
{
	uint16_t port = (irq < 8 ? FIRST : SECOND) + MASK;

	out8(port, in8(port) & ~(1 << irq % 8));
}

/* The handler is set before the IRQ is unmasked: it may come at the very next instruction. Called
 * at boot, or with the device quiet. */
void irq_register(unsigned irq, void (*handler)(void))
{
	ASSERT(irq < IRQS);
	handlers[irq] = handler;
	if (irq >= 8)
		unmask(CASCADE);
	unmask(irq);
}

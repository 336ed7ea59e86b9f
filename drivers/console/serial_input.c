/*
 * Input on the serial line, by interrupts, without losing a byte.
 *
 * IRQ 4 is edge-triggered: the request must go low before it can go high again. So the handler
 * takes every byte that the port has. If the receiver is full it cannot, and disables the port's
 * interrupt instead:
 *
 *	has_room	the handler takes all bytes; the request falls; the next byte raises it
 *	no room		interrupts of the port off; 16 bytes fit into its FIFO, more are lost
 *	serial_resume	interrupts enabled again; bytes that wait raise the request at once
 *
 * `is_waiting` says that the second state holds. serial_resume may be called from any context; a
 * call without need does nothing.
 */
#include <stddef.h>

#include "drivers/clock/pic.h"
#include "drivers/console/serial.h"

#define LINE 4

static void (*receive)(uint8_t byte);
static bool (*has_room)(void);
static volatile bool is_waiting;

/* IRQ 4, with interrupts disabled. `byte` stays negative only if the port was emptied. A request
 * from before serial_listen may come after it, when there is no receiver any more. */
static void serial_interrupt(void)
{
	int byte = 0;

	while (receive && has_room() && (byte = serial_get()) >= 0)
		receive(byte);
	is_waiting = byte >= 0;
	if (is_waiting)
		serial_interrupts(false);
}

/* The port's interrupt is disabled while the two functions change, so that no interrupt sees an old
 * one and a new one. */
void serial_listen(void (*receive_byte)(uint8_t byte), bool (*has_room_for_more)(void))
{
	serial_interrupts(false);
	receive = receive_byte;
	has_room = has_room_for_more;
	irq_register(LINE, serial_interrupt);
	serial_interrupts(receive != NULL);
}

void serial_resume(void)
{
	if (is_waiting && has_room())
		serial_interrupts(true); /* bytes that are already there interrupt at once */
}

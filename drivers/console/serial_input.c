/* What arrives on the serial line, by interrupts. */
#include <stddef.h>

#include "drivers/clock/pic.h"
#include "drivers/console/serial.h"

#define LINE 4

static void (*receive)(uint8_t byte);
static bool (*has_room)(void);
static volatile bool is_waiting;

/* All that is there must be taken, for the line to fall and to rise again. */
static void serial_interrupt(void)
{
	int byte = 0;

	while (has_room() && (byte = serial_get()) >= 0)
		receive(byte);
	is_waiting = byte >= 0;
	if (is_waiting)
		serial_interrupts(false);
}

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
		serial_interrupts(true); /* what is there already interrupts at once */
}

/* The first serial port, COM1: an 8250 or 16550 at 115200 baud. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Sets the port up and registers it as a console. A port that is not there costs nothing. */
void serial_initialize(void);

/* The next character that has arrived, 0 to 255, or -1 when there is none. Does not wait. */
int serial_get(void);

/* Enables or disables the port's interrupt, IRQ 4, for characters that arrive. */
void serial_interrupts(bool wanted);

/* ---- drivers/console/serial_input.c: needs interrupts ---- */

/* From now on the interrupt handler passes each character to `receive`, as long as has_room returns
 * true. The others wait in the port, and at the sender, for serial_resume. If receive is NULL,
 * characters are for serial_get again. */
void serial_listen(void (*receive)(uint8_t byte), bool (*has_room)(void));

/* There may be room again. */
void serial_resume(void);

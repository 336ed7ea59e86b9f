/* The first serial port, COM1: an 8250 or 16550 at 115200 baud. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Sets the port up and registers it as a console. A port that is not there costs nothing. */
void serial_initialize(void);

/* The next character that has arrived, 0 to 255, or -1 when there is none. Does not wait. */
int serial_get(void);

/* Makes the port interrupt, on IRQ 4, when a character has arrived, or not. */
void serial_interrupts(bool wanted);

/* ---- drivers/console/serial_input.c: needs interrupts ---- */

/* From now on gives each character that arrives to receive, from the interrupt handler, while
 * has_room says so. After that the others wait in the port, and with the sender, for
 * serial_resume. receive NULL: as before, for serial_get. */
void serial_listen(void (*receive)(uint8_t byte), bool (*has_room)(void));

/* There may be room again. */
void serial_resume(void);

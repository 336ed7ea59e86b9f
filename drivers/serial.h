/* The first serial port, COM1: an 8250 or 16550 at 115200 baud. */
#pragma once

/* Sets the port up and registers it as a console. A port that is not there costs nothing. */
void serial_initialize(void);

/* The next character that has arrived, 0 to 255, or -1 when there is none. Does not wait. */
int serial_get(void);

/* The terminal: the serial line and the screen with its keyboard, as one. */
#pragma once

#include <stdbool.h>

#define TTY_DEVICE (5u << 8 | 1) /* /dev/console */

/* Registers /dev/console and /dev/tty. */
void tty_initialize(void);

/* The current task ends: if it leads the terminal's session, that loses the terminal. */
void tty_leave(void);

/* Whether what is typed goes to programs, as it does at first; if not, the prompt gets it. */
void tty_listen(bool wanted);

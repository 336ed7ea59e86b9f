/* The terminal: the serial line and the screen with its keyboard, as one. */
#pragma once

#include "fs/file.h"

#define TTY_DEVICE (5u << 8 | 1) /* /dev/console */

#define TTY_CELLS	4096u  /* a power of two, so that numbers may wrap around */
#define TTY_ENDS_LINE	0x100u /* in a cell: a line ends after this byte */
#define TTY_END_OF_FILE 0x200u /* a line ends here, and this is not a byte of it */

/* What was typed. Cell number n is at n % TTY_CELLS. Touched with interrupts disabled. */
struct tty_ring {
	uint16_t cells[TTY_CELLS];
	uint32_t taken, ready, typed; /* see the drawing in fs/tty/tty.c */
};

/* The console's. */
extern struct tty_ring tty_ring;

/* Adds a cell; with `is_ready` that and those before it can be read. The last free cell is kept for
 * one of those, so that a line can be ended. What does not fit is lost. */
void tty_add(struct tty_ring *ring, uint16_t content, bool is_ready);

/* Takes up to size bytes that are ready, up to the end of a line, and then sets *is_end. Returns
 * how many: none for an end of the file, or when nothing is ready. Any context. */
uint32_t tty_take(struct tty_ring *ring, char *to, uint32_t size, bool *is_end);

/* Sends a signal to a process group. */
typedef unsigned tty_signaller(int32_t group, int signal);

/* The process group that gets ^C; 0: none. */
extern int32_t tty_foreground;

/* Called when the current task ends, for a module that keeps sessions. */
void tty_leave(void) OPTIONAL;

/* Registers /dev/console. */
void tty_initialize(tty_signaller *signal_group);

/* Sends what is typed to programs, as at first; or, if not `wanted`, to the prompt. */
void tty_listen(bool wanted);

/* ---- a console with settings (termios) and job control: kernel/linux/terminal/console.c ---- */

/* Opens it: gives the file other operations than those here. Is typed to, at the serial line and at
 * the keyboard, in interrupt handlers. */
int console_open(struct file *file) OPTIONAL;
void console_type(uint8_t byte) OPTIONAL;
void console_type_key(uint8_t byte) OPTIONAL;

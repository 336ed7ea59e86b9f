/* The terminal: the serial line and the screen with its keyboard, as one. */
#pragma once

#include "fs/file.h"

#define TTY_DEVICE (5u << 8 | 1) /* /dev/console */

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
 * the keyboard, in interrupt handlers. Has room for a byte, as serial_listen asks. */
int console_open(struct file *file) OPTIONAL;
void console_type(uint8_t byte) OPTIONAL;
void console_type_key(uint8_t byte) OPTIONAL;
bool console_has_room(void) OPTIONAL;

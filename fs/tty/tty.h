/* The terminal: the serial line and the screen with its keyboard, as one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fs/file.h"
#include "fs/tty/line.h"
#include "kernel/task/wait.h"

#define TTY_DEVICE (5u << 8 | 1) /* /dev/console */

/* Sends a signal to a process group. */
typedef unsigned tty_signaller(int32_t group, int signal);

struct terminal {
	struct line line;
	int32_t foreground; /* the process group that gets ^C; 0: none */
	tty_signaller *signal_group;
	void (*leave)(void); /* of who wants to know of a task's end; or NULL */
};

extern struct terminal tty;
extern struct wait_queue tty_readers; /* wakes when something can be read */

/* What the terminal can do. Not const: job control puts itself in between at start-up. */
extern struct file_ops tty_ops;

/* Registers /dev/console. */
void tty_initialize(tty_signaller *signal_group);

/* The current task ends. */
void tty_leave(void);

/* Whether what is typed goes to programs, as it does at first; if not, the prompt gets it. */
void tty_listen(bool wanted);

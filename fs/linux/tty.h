/* The terminal with a line discipline that has settings: it stands in for fs/tty/tty.c, and job
 * control puts itself before it. */
#pragma once

#include "fs/linux/line.h"
#include "fs/tty/tty.h"
#include "kernel/task/wait.h"

extern struct line tty_line;
extern struct wait_queue tty_readers; /* wakes when something can be read */

/* What the terminal can do. Not const: job control puts itself in between at start-up. */
extern struct file_ops tty_ops;

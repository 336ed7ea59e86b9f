/*
 * Job control and raw mode: which tasks may read the terminal, who gets its signals, what its
 * settings mean. It puts itself between programs and the operations of fs/linux/tty.c at start-up,
 * and calls those for what a terminal without all this does as well.
 */
#include <stddef.h>

#include "drivers/console/serial.h"
#include "drivers/qemu/settings.h"
#include "fs/devices.h"
#include "kernel/abi/file.h"
#include "kernel/abi/poll.h"
#include "kernel/abi/signal.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/startup.h"
#include "fs/linux/tty.h"
#include "fs/linux/poll.h"
#include "kernel/process/family.h"
#include "kernel/process/signal_actions.h"
#include "kernel/task/time.h"

#define TTY_ANY	    (5u << 8 | 0) /* /dev/tty: the terminal of whoever opens it */
#define TENTH_OF_NS 100000000ull

static int32_t session; /* whose terminal it is; 0: nobody's */
static struct linux_window_size window = { .rows = 24, .columns = 80 };
static struct file_ops plain; /* the terminal's operations without job control */

static void signal_foreground(int signal)
{
	if (tty_foreground > 0)
		signal_send_group(tty_foreground, signal);
}

/* ---- job control ---- */

/* A task in the background that touches its terminal is stopped, with its group: -ERESTART. One
 * that ignores or blocks the signal goes on: 0. */
static int check_background(int signal)
{
	if (current->process->tty != TTY_DEVICE || current->process->pgrp == tty_foreground ||
	    tty_foreground == 0)
		return 0;
	if ((current->process->signals.blocked & SIGNAL_BIT(signal)) ||
	    signal_is_ignored(current->process, signal))
		return signal == SIGTTIN ? -EIO : 0;
	if (process_group_is_orphaned(current->process))
		return -EIO;
	signal_send_group(current->process->pgrp, signal);
	return -ERESTART;
}

/* Makes it the terminal of the current session, if the task leads one that has none. */
static int acquire(void)
{
	if (current->process->tty == TTY_DEVICE)
		return 0;
	if (current->process->session != current->pid || current->process->tty != 0 || session != 0)
		return -EPERM;
	session = current->process->session;
	tty_foreground = current->process->pgrp;
	current->process->tty = TTY_DEVICE;
	return 0;
}

/* The session's leader gives the terminal up for all of it; others for themselves. */
static int give_up(void)
{
	if (current->process->tty != TTY_DEVICE)
		return -ENOTTY;
	current->process->tty = 0;
	if (current->process->session != current->pid)
		return 0;
	signal_foreground(SIGHUP);
	signal_foreground(SIGCONT);
	for (struct process *each = process_next(NULL); each; each = process_next(each))
		if (each->session == session)
			each->tty = 0;
	session = tty_foreground = 0;
	return 0;
}

/* The current task ends: if it leads the terminal's session, that loses the terminal. */
static void job_leave(void)
{
	if (current->process->session == current->pid)
		give_up();
}

static int set_foreground(uint32_t argument)
{
	int32_t group;
	int error = check_background(SIGTTOU);

	if (current->process->tty != TTY_DEVICE)
		return -ENOTTY;
	if (error)
		return error;
	if (copy_from_user(&group, argument, sizeof(group)))
		return -EFAULT;
	if (group < 0)
		return -EINVAL;
	for (const struct process *each = process_next(NULL); each; each = process_next(each))
		if (each->pgrp == group && each->session == session) {
			tty_foreground = group;
			return 0;
		}
	return -EPERM;
}

/* ---- operations ---- */

static int job_open_console(struct file *file)
{
	if (!(file->flags & O_NOCTTY))
		acquire(); /* who may not have it may still write to it */
	return 0;
}

static int job_open_own(struct file *file)
{
	return current->process->tty == TTY_DEVICE ? 0 : -ENXIO;
}

/* Without ICANON: VMIN bytes, or fewer when VTIME tenths of a second pass. */
static int wait_for_bytes(uint32_t wanted)
{
	uint32_t least = tty_line.settings.characters[VMIN];
	uint64_t patience = tty_line.settings.characters[VTIME] * TENTH_OF_NS;
	int error = 0;

	if (least > wanted)
		least = wanted;
	if (least == 0 && patience > 0)
		error = wait_event_until(&tty_readers, line_available(&tty_line) > 0,
					 time_ns() + patience);
	else if (least > 0)
		error =
		    wait_event(&tty_readers, line_available(&tty_line) >= (patience ? 1 : least));
	while (!error && patience > 0 && line_available(&tty_line) < least) {
		uint32_t seen = line_available(&tty_line);

		error = wait_event_until(&tty_readers, line_available(&tty_line) != seen,
					 time_ns() + patience);
	}
	return error == -ETIMEDOUT ? 0 : error;
}

/* Without ICANON there may be nothing to read after the wait, if that is what the settings say. */
static int job_read(struct file *file, struct buffer *to, uint64_t offset)
{
	bool is_raw = !(tty_line.settings.local & ICANON) && !(file->flags & O_NONBLOCK);
	int error = to->length > 0 ? check_background(SIGTTIN) : 0;

	if (!error && is_raw && to->length > 0 && line_available(&tty_line) == 0) {
		error = wait_for_bytes(to->length);
		if (!error && line_available(&tty_line) == 0)
			return 0;
	}
	return error ? error : plain.read(file, to, offset);
}

static int job_write(struct file *file, struct buffer *from, uint64_t offset)
{
	int error = tty_line.settings.local & TOSTOP ? check_background(SIGTTOU) : 0;

	return error ? error : plain.write(file, from, offset);
}

static uint32_t job_poll(struct file *file, struct poll_table *table)
{
	poll_add(table, &tty_readers);
	return line_available(&tty_line) > 0 ? POLLIN | POLLOUT : POLLOUT;
}

static int set_settings(uint32_t command, uint32_t argument)
{
	struct linux_termios settings;
	int error = check_background(SIGTTOU);

	if (error)
		return error;
	if (copy_from_user(&settings, argument, sizeof(settings)))
		return -EFAULT;
	line_set(&tty_line, &settings, command == TCSETSF);
	serial_resume();
	return 0;
}

static int set_window(uint32_t argument)
{
	struct linux_window_size before = window, wanted;

	if (copy_from_user(&wanted, argument, sizeof(wanted)))
		return -EFAULT;
	window = wanted;
	if (window.rows != before.rows || window.columns != before.columns)
		signal_foreground(SIGWINCH);
	return 0;
}

/* What only those may ask whose terminal it is. */
static int control_session(uint32_t command, uint32_t argument)
{
	int32_t value = command == TIOCGPGRP ? tty_foreground : session;

	return current->process->tty == TTY_DEVICE ? give(argument, &value, sizeof(value))
						   : -ENOTTY;
}

static int control_line(uint32_t command, uint32_t argument)
{
	uint32_t available = line_available(&tty_line);

	switch (command) {
	case TCGETS:
		return give(argument, &tty_line.settings, sizeof(tty_line.settings));
	case TCSETS:
	case TCSETSW:
	case TCSETSF:
		return set_settings(command, argument);
	case TCFLSH:
		line_flush(&tty_line);
		serial_resume();
		return 0;
	case TCSBRK: /* all output is out */
	case TCXONC:
		return 0;
	case FIONREAD:
		return give(argument, &available, sizeof(available));
	}
	return -ENOTTY;
}

static int job_control(struct file *file, uint32_t command, uint32_t argument)
{
	switch (command) {
	case TIOCGWINSZ:
		return give(argument, &window, sizeof(window));
	case TIOCSWINSZ:
		return set_window(argument);
	case TIOCGPGRP:
	case TIOCGSID:
		return control_session(command, argument);
	case TIOCSPGRP:
		return set_foreground(argument);
	case TIOCSCTTY:
		return acquire();
	case TIOCNOTTY:
		return give_up();
	}
	return control_line(command, argument);
}

/* ---- start-up ---- */

static void job_control_start(void)
{
	static struct file_ops own_ops;
	static struct device own = { "tty", TTY_ANY, 0666, &own_ops, NULL };

	window.rows = setting_number("rows", window.rows);
	window.columns = setting_number("columns", window.columns);
	tty_leave = job_leave;
	plain = tty_ops;
	tty_ops.read = job_read;
	tty_ops.write = job_write;
	tty_ops.control = job_control;
	tty_ops.poll = job_poll;
	own_ops = tty_ops;
	own_ops.open = job_open_own;
	tty_ops.open = job_open_console;
	device_register(&own);
}
STARTUP(job_control_start)

/*
 * The terminal with settings (termios), sessions and job control; it replaces fs/tty/tty.c.
 *
 *	keyboard, serial line  --interrupt-->  type  -->  line_type  -->  echo on the screen
 *							      | a whole line
 *	program  <--  tty_read  <--  line_take  <--wakes--  tty_readers
 *
 * One terminal for the machine. ^C goes to the process group in front (tty_foreground): the program
 * that the kernel has started, or the one that a shell has put there. A process of the terminal's
 * session in another group is in the background: it is stopped when it reads.
 *
 * The serial line stops taking bytes while nothing fits (line_has_room), and goes on when a reader
 * has taken some (serial_resume): so nothing that is sent is lost.
 */
#include <stddef.h>

#include "drivers/console/keyboard.h"
#include "drivers/console/serial.h"
#include "drivers/qemu/settings.h"
#include "fs/devices.h"
#include "fs/linux/line.h"
#include "fs/linux/poll.h"
#include "fs/tty/tty.h"
#include "kernel/abi/file.h"
#include "kernel/abi/poll.h"
#include "kernel/lib/errno.h"
#include "kernel/process/family.h"
#include "kernel/process/signal_actions.h"
#include "kernel/report/printk.h"
#include "kernel/task/time.h"

#define TTY_ANY	    (5u << 8 | 0) /* /dev/tty: the terminal of the process that opens it */
#define TENTH_OF_NS 100000000ull
#define CHUNK	    256u
#define BACKSPACE   '\b'

static struct line tty_line;
static struct wait_queue tty_readers; /* wakes when something can be read */
static int32_t session;		      /* whose terminal it is; 0: nobody's */
static struct linux_window_size window = { .rows = 24, .columns = 80 };

int32_t tty_foreground;

/* ---- from the keys, in interrupt handlers ---- */

/* ^C, for the group in the foreground; at boot there is none. */
static void signal_foreground(int signal)
{
	if (tty_foreground > 0)
		signal_send_group(tty_foreground, signal);
}

/* Wakes even for half a line: settings may ask for single bytes. */
static void type(uint8_t byte)
{
	line_type(&tty_line, byte);
	wait_wake(&tty_readers);
}

/* For the serial line, which can make its sender wait. */
static bool tty_has_room(void)
{
	return line_has_room(&tty_line);
}

/* The key is the terminal's erase character, whichever that is. */
static void type_key(uint8_t byte)
{
	type(byte == BACKSPACE ? tty_line.settings.characters[VERASE] : byte);
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

/* The session's leader gives the terminal up for the whole session, other processes for themselves.
 */
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
static void leave(void)
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

void (*tty_leave)(void) = leave;

/* ---- opening, reading, writing ---- */

static int open_console(struct file *file)
{
	if (!(file->flags & O_NOCTTY))
		acquire(); /* without it the process may still write */
	return 0;
}

static int open_own(struct file *file)
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

/* Waits until there is something to read; without ICANON that may be nothing. */
static int wait_for_input(const struct file *file, uint32_t wanted)
{
	if (line_available(&tty_line) > 0)
		return 0;
	if (file->flags & O_NONBLOCK)
		return -EAGAIN;
	if (!(tty_line.settings.local & ICANON))
		return wait_for_bytes(wanted);
	return wait_event(&tty_readers, line_available(&tty_line) > 0);
}

/* At most one line. It goes through the stack in pieces, because the ring may only be touched with
 * interrupts disabled, and the program's memory only with interrupts enabled. */
static int tty_read(struct file *file, struct buffer *to, uint64_t offset)
{
	char chunk[CHUNK];
	int done = 0;
	bool is_end = to->length == 0;
	int error = is_end ? 0 : check_background(SIGTTIN);

	if (!error && !is_end)
		error = wait_for_input(file, to->length);
	if (error)
		return error;
	while (to->length > 0 && !is_end) {
		uint32_t size = to->length < CHUNK ? to->length : CHUNK;
		uint32_t count = line_take(&tty_line, chunk, size, &is_end);
		int moved = buffer_put(to, chunk, count);

		if (moved < 0)
			return done ? done : moved;
		done += moved;
		if ((uint32_t)moved < count || count == 0)
			break;
	}
	serial_resume();
	return done;
}

/* Through the stack as well: the screen and the serial line are written with interrupts disabled.
 */
static int tty_write(struct file *file, struct buffer *from, uint64_t offset)
{
	char chunk[CHUNK];
	int done = 0;
	int error = tty_line.settings.local & TOSTOP ? check_background(SIGTTOU) : 0;

	if (error)
		return error;
	while (from->length > 0) {
		int moved = buffer_take(from, chunk, CHUNK);

		if (moved < 0)
			return done ? done : moved;
		line_output(&tty_line, chunk, moved);
		done += moved;
	}
	return done;
}

static uint32_t tty_poll(struct file *file, struct poll_table *table)
{
	poll_add(table, &tty_readers);
	return line_available(&tty_line) > 0 ? POLLIN | POLLOUT : POLLOUT;
}

/* ---- ioctl ---- */

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

/* Only processes whose controlling terminal it is may ask. */
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

static int tty_control(struct file *file, uint32_t command, uint32_t argument)
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

/* The caller's function is for fs/tty/tty.c, which may not use kernel/process. */
void tty_initialize(tty_signaller *unused)
{
	static struct file_ops console_ops = {
		.open = open_console,
		.read = tty_read,
		.write = tty_write,
		.control = tty_control,
		.poll = tty_poll,
		.is_stream = true,
	}, own_ops;
	static struct device console = { "console", TTY_DEVICE, 0600, &console_ops, NULL };
	static struct device own = { "tty", TTY_ANY, 0666, &own_ops, NULL };

	own_ops = console_ops;
	own_ops.open = open_own;
	window.rows = setting_number("rows", window.rows);
	window.columns = setting_number("columns", window.columns);
	line_initialize(&tty_line, console_write, signal_foreground);
	device_register(&console);
	device_register(&own);
	tty_listen(true);
}

/* False: the kernel's own prompt reads the keys. */
void tty_listen(bool wanted)
{
	keyboard_listener = wanted ? type_key : NULL;
	serial_listen(wanted ? type : NULL, tty_has_room);
}

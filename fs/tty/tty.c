/* The terminal: which tasks may read it, and who gets its signals. */
#include "fs/tty/tty.h"

#include <stddef.h>

#include "drivers/console/keyboard.h"
#include "drivers/console/serial.h"
#include "drivers/qemu/settings.h"
#include "fs/devices.h"
#include "fs/tty/line.h"
#include "kernel/abi/signal.h"
#include "kernel/lib/errno.h"
#include "kernel/report/printk.h"
#include "kernel/process/signal.h"
#include "kernel/task/time.h"

#define TTY_ANY	    (5u << 8 | 0) /* /dev/tty: the terminal of whoever opens it */
#define CHUNK	    256u
#define TENTH_OF_NS 100000000ull
#define BACKSPACE   '\b'

static struct line line;
static struct wait_queue readers;
static int32_t session;	   /* whose terminal it is; 0: nobody's */
static int32_t foreground; /* the process group that may read and gets the signals */
static struct linux_window_size window = { .rows = 24, .columns = 80 };

/* ---- from the keys ---- */

static void tty_signal_foreground(int signal)
{
	if (foreground > 0)
		signal_send_group(foreground, signal);
}

static void type(uint8_t byte)
{
	line_type(&line, byte);
	wait_wake(&readers);
}

static bool tty_has_room(void)
{
	return line_has_room(&line);
}

/* The key is the terminal's erase character, whichever that is. */
static void type_key(uint8_t byte)
{
	type(byte == BACKSPACE ? line.settings.characters[VERASE] : byte);
}

/* ---- job control ---- */

/* A task in the background that touches its terminal is stopped, with its group: -ERESTART. One
 * that ignores or blocks the signal goes on: 0. */
static int check_background(int signal)
{
	if (current->process->tty != TTY_DEVICE || current->process->pgrp == foreground ||
	    foreground == 0)
		return 0;
	if (signal_is_ignored(current->process, signal))
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
	foreground = current->process->pgrp;
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
	tty_signal_foreground(SIGHUP);
	tty_signal_foreground(SIGCONT);
	for (struct process *each = process_next(NULL); each; each = process_next(each))
		if (each->session == session)
			each->tty = 0;
	session = foreground = 0;
	return 0;
}

void tty_leave(void)
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
			foreground = group;
			return 0;
		}
	return -EPERM;
}

/* ---- operations ---- */

static int tty_open_console(struct file *file)
{
	if (!(file->flags & O_NOCTTY))
		acquire(); /* who may not have it may still write to it */
	return 0;
}

static int tty_open_own(struct file *file)
{
	return current->process->tty == TTY_DEVICE ? 0 : -ENXIO;
}

/* Without ICANON: VMIN bytes, or fewer when VTIME tenths of a second pass. */
static int wait_for_bytes(uint32_t wanted)
{
	uint32_t least = line.settings.characters[VMIN];
	uint64_t patience = line.settings.characters[VTIME] * TENTH_OF_NS;
	int error = 0;

	if (least > wanted)
		least = wanted;
	if (least == 0 && patience > 0)
		error = wait_event_until(&readers, line_available(&line) > 0, time_ns() + patience);
	else if (least > 0)
		error = wait_event(&readers, line_available(&line) >= (patience ? 1 : least));
	while (!error && patience > 0 && line_available(&line) < least) {
		uint32_t seen = line_available(&line);

		error =
		    wait_event_until(&readers, line_available(&line) != seen, time_ns() + patience);
	}
	return error == -ETIMEDOUT ? 0 : error;
}

static int wait_for_input(const struct file *file, uint32_t wanted)
{
	int error = check_background(SIGTTIN);

	if (error || line_available(&line) > 0)
		return error;
	if (file->flags & O_NONBLOCK)
		return -EAGAIN;
	if (line.settings.local & ICANON)
		return wait_event(&readers, line_available(&line) > 0);
	return wait_for_bytes(wanted);
}

static int tty_read(struct file *file, struct buffer *to, uint64_t offset)
{
	char chunk[CHUNK];
	int done = 0;
	bool is_end = to->length == 0;
	int error = is_end ? 0 : wait_for_input(file, to->length);

	if (error)
		return error;
	while (to->length > 0 && !is_end) {
		uint32_t count =
		    line_take(&line, chunk, to->length < CHUNK ? to->length : CHUNK, &is_end);
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

static int tty_write(struct file *file, struct buffer *from, uint64_t offset)
{
	char chunk[CHUNK];
	int done = 0;
	int error = line.settings.local & TOSTOP ? check_background(SIGTTOU) : 0;

	while (!error && from->length > 0) {
		int moved = buffer_take(from, chunk, CHUNK);

		if (moved < 0)
			return done ? done : moved;
		line_output(&line, chunk, moved);
		done += moved;
	}
	return error ? error : done;
}

static uint32_t tty_poll(struct file *file, struct poll_table *table)
{
	poll_add(table, &readers);
	return line_available(&line) > 0 ? POLLIN | POLLOUT : POLLOUT;
}

static int set_settings(uint32_t command, uint32_t argument)
{
	struct linux_termios settings;
	int error = check_background(SIGTTOU);

	if (error)
		return error;
	if (copy_from_user(&settings, argument, sizeof(settings)))
		return -EFAULT;
	line_set(&line, &settings, command == TCSETSF);
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
		tty_signal_foreground(SIGWINCH);
	return 0;
}

/* What only those may ask whose terminal it is. */
static int control_session(uint32_t command, uint32_t argument)
{
	int32_t value = command == TIOCGPGRP ? foreground : session;

	return current->process->tty == TTY_DEVICE ? give(argument, &value, sizeof(value))
						   : -ENOTTY;
}

static int control_line(uint32_t command, uint32_t argument)
{
	uint32_t available = line_available(&line);

	switch (command) {
	case TCGETS:
		return give(argument, &line.settings, sizeof(line.settings));
	case TCSETS:
	case TCSETSW:
	case TCSETSF:
		return set_settings(command, argument);
	case TCFLSH:
		line_flush(&line);
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

#define TTY_OPS                                                                                    \
	.read = tty_read, .write = tty_write, .control = tty_control, .poll = tty_poll,            \
	.is_stream = true

static const struct file_ops console_ops = { .open = tty_open_console, TTY_OPS };
static const struct file_ops own_ops = { .open = tty_open_own, TTY_OPS };

void tty_initialize(void)
{
	static struct device console = { "console", S_IFCHR | 0600, TTY_DEVICE, &console_ops,
					 NULL };
	static struct device own = { "tty", S_IFCHR | 0666, TTY_ANY, &own_ops, NULL };

	window.rows = setting_number("rows", window.rows);
	window.columns = setting_number("columns", window.columns);
	line_initialize(&line, console_write, tty_signal_foreground);
	device_register(&console);
	device_register(&own);
	tty_listen(true);
}

void tty_listen(bool wanted)
{
	keyboard_listen(wanted ? type_key : NULL);
	serial_listen(wanted ? type : NULL, tty_has_room);
}

/*
 * Terminals with settings (termios), sessions and job control.
 *
 *	the other end  -->  line_type  -->  echo to the other end
 *				| a whole line
 *	program  <--  terminal_read  <--  line_take  <--wakes--  readers
 *
 * ^C goes to the process group in front: the program that the kernel has started, or the one that a
 * shell has put there. A process of the terminal's session in another group is in the background:
 * it is stopped when it reads.
 *
 * The other end is a keyboard and a screen (kernel/linux/terminal/console.c), or a program
 * (kernel/linux/terminal/pty.c). The line is touched with interrupts disabled.
 *
 * Sessions and groups (credentials(7), setsid(2)): a session is led by the process whose pid is its
 * number. A process has at most one controlling terminal (`tty`, its device number), and a terminal
 * one session, which gets it by opening it. The end of the leader, or of the other end, ends that.
 *
 * Reading, writing and what check_background guards may sleep, or stop the task. POSIX.1, chapter
 * 11
 * ("General Terminal Interface"); termios(3), ioctl_tty(2).
 */
#include "kernel/linux/terminal/terminal.h"

#include "fs/linux/poll.h"
#include "kernel/abi/poll.h"
#include "kernel/linux/call.h"
#include "kernel/linux/list_each.h"
#include "kernel/process/signal_actions.h"
#include "kernel/task/time.h"

#define TENTH_OF_NS 100000000ull

static struct list terminals = LIST_EMPTY(terminals);

struct terminal *terminal_find(uint32_t device)
{
	list_for_each(struct terminal, terminal, &terminals, link)
		if (terminal->device == device)
			return terminal;
	return NULL;
}

/* ^C, for the group in the foreground; at boot there is none. */
static void signal_foreground(struct line *line, int signal)
{
	int32_t group = *((struct terminal *)line)->foreground;

	if (group > 0)
		signal_send_group(group, signal);
}

void terminal_add(struct terminal *terminal, struct tty_ring *ring)
{
	line_initialize(&terminal->line, ring, terminal->hardware->put, signal_foreground);
	list_append(&terminals, &terminal->link);
}

/* ---- job control ---- */

/* Is it the current process's controlling terminal? Job control is for nobody else. */
static bool is_controlling(const struct terminal *terminal)
{
	return current->process->tty == terminal->device;
}

/* A task in the background that touches its terminal is stopped, with its group: -ERESTART; or
 * -EIO, if no process could continue it. One that ignores or blocks the signal goes on: 0. */
static int check_background(const struct terminal *terminal, int signal)
{
	int32_t foreground = *terminal->foreground;

	if (!is_controlling(terminal) || current->process->pgrp == foreground || foreground == 0)
		return 0;
	if ((current->process->signals.blocked & SIGNAL_BIT(signal)) ||
	    signal_is_ignored(current->process, signal))
		return signal == SIGTTIN ? -EIO : 0;
	if (process_group_is_orphaned(current->process))
		return -EIO;
	signal_send_group(current->process->pgrp, signal);
	return -ERESTART;
}

/* Its session has no terminal any more. */
static void clear_session(struct terminal *terminal)
{
	for (struct process *each = process_next(NULL); each; each = process_next(each))
		if (each->session == terminal->session && each->tty == terminal->device)
			each->tty = 0;
	terminal->session = *terminal->foreground = 0;
}

/* Makes it the terminal of the current session, if the task leads one that has none; another
 * session loses it only if the caller `steals` it, which root may. */
static int set_controlling(struct terminal *terminal, bool steals)
{
	bool leads = current->process->session == current->pid;

	if (leads && is_controlling(terminal))
		return 0;
	if (!leads || current->process->tty != 0 || (terminal->session != 0 && !steals))
		return -EPERM;
	if (terminal->session != 0)
		clear_session(terminal);
	terminal->session = current->process->session;
	*terminal->foreground = current->process->pgrp;
	current->process->tty = terminal->device;
	return 0;
}

/* The terminal is no longer that of its session. */
static void leave_session(struct terminal *terminal)
{
	signal_foreground(&terminal->line, SIGHUP);
	signal_foreground(&terminal->line, SIGCONT);
	clear_session(terminal);
}

/* The session's leader gives the terminal up for the whole session, other processes for themselves.
 */
static int disassociate(struct terminal *terminal)
{
	if (!is_controlling(terminal))
		return -ENOTTY;
	current->process->tty = 0;
	if (current->process->session == current->pid)
		leave_session(terminal);
	return 0;
}

/* The current task ends: if it leads the terminal's session, that loses the terminal. */
void tty_leave(void)
{
	struct terminal *terminal = terminal_find(current->process->tty);

	if (terminal && current->process->session == current->pid)
		disassociate(terminal);
}

void terminal_hang_up(struct terminal *terminal)
{
	struct process *leader = terminal->session ? process_find(terminal->session) : NULL;

	terminal->is_hung_up = true;
	if (leader && leader->pgrp != *terminal->foreground) {
		signal_send(leader, SIGHUP);
		signal_send(leader, SIGCONT);
	}
	leave_session(terminal);
	wait_wake(&terminal->readers);
	wait_wake(&terminal->writers);
}

/* The session of a group, or of the process with that pid; 0: there is neither. */
static int32_t session_of(int32_t group)
{
	const struct process *process = process_next(NULL);

	while (process && process->pgrp != group)
		process = process_next(process);
	process = process ? process : process_find(group);
	return process ? process->session : 0;
}

/* TIOCSPGRP (tcsetpgrp): only within the session. -ENOTTY, -EPERM, -ESRCH, -EINVAL, -EFAULT. */
static int set_foreground(struct terminal *terminal, uint32_t argument)
{
	int32_t group;
	int error = check_background(terminal, SIGTTOU);

	if (error)
		return error == -EIO ? -ENOTTY : error;
	if (copy_from_user(&group, argument, sizeof(group)))
		return -EFAULT;
	if (group < 0)
		return -EINVAL;
	if (!is_controlling(terminal) || terminal->session != current->process->session)
		return -ENOTTY;
	int32_t session = session_of(group);

	if (session != terminal->session)
		return session ? -EPERM : -ESRCH;
	*terminal->foreground = group;
	return 0;
}

/* ---- reading and writing ---- */

static void terminal_release(struct file *file)
{
	struct terminal *terminal = file->private;

	if (--terminal->files == 0 && terminal->hardware->leave)
		terminal->hardware->leave(terminal);
}

/* Bytes; an end of file counts as one. */
static uint32_t available(const struct terminal *terminal)
{
	return line_available(&terminal->line);
}

/* Without ICANON, by VMIN bytes and VTIME tenths of a second (termios(3)):
 *
 *	VMIN  VTIME
 *	0     0		nothing is waited for
 *	0     t		one byte is enough; until t is over
 *	n     0		n bytes, or as many as the read wants, however long that takes
 *	n     t		the same; after the first byte t begins again with each, and ends it
 *
 * Returns 0, also when time is over, or -ERESTART for a signal. */
static int wait_for_bytes(struct terminal *terminal, uint32_t wanted)
{
	uint32_t least = terminal->line.settings.characters[VMIN];
	uint64_t patience = terminal->line.settings.characters[VTIME] * TENTH_OF_NS;
	uint32_t needed = least == 0 ? patience > 0 : least < wanted ? least : wanted;
	int error = 0;

	while (!error && available(terminal) < needed && !terminal->is_hung_up) {
		uint32_t seen = available(terminal);
		bool is_timed = patience > 0 && (seen > 0 || least == 0);

		error = wait_event_until(&terminal->readers,
					 terminal->is_hung_up || available(terminal) != seen,
					 is_timed ? time_ns() + patience : WAIT_FOREVER);
	}
	return error == -ETIMEDOUT ? 0 : error;
}

/* Waits until there is something to read; without ICANON that may be nothing. */
static int wait_for_input(struct terminal *terminal, uint32_t flags, uint32_t wanted)
{
	if (available(terminal) > 0 || terminal->is_hung_up)
		return 0;
	if (flags & O_NONBLOCK)
		return -EAGAIN;
	if (!(terminal->line.settings.local & ICANON))
		return wait_for_bytes(terminal, wanted);
	return wait_event(&terminal->readers, terminal->is_hung_up || available(terminal) > 0);
}

/* At most one line. It goes through the stack in pieces, because the ring may only be touched with
 * interrupts disabled, and the program's memory only with interrupts enabled. */
static int terminal_read(struct file *file, struct buffer *to, uint64_t offset)
{
	struct terminal *terminal = file->private;
	char chunk[TERMINAL_CHUNK];
	int done = 0;
	bool is_end = to->length == 0;
	int error = is_end ? 0 : check_background(terminal, SIGTTIN);

	if (!error && !is_end)
		error = wait_for_input(terminal, file->flags, to->length);
	if (error)
		return error;
	while (to->length > 0 && !is_end) {
		uint32_t size = to->length < sizeof(chunk) ? to->length : sizeof(chunk);
		uint32_t count = line_take(&terminal->line, chunk, size, &is_end);
		int moved = buffer_put(to, chunk, count);

		if (moved < 0)
			return done ? done : moved;
		done += moved;
		if ((uint32_t)moved < count || count == 0)
			break;
	}
	terminal->hardware->resume(terminal);
	return done;
}

/* Also where writing fails at once: nothing is to be waited for. */
static bool can_write(const struct terminal *terminal)
{
	const struct terminal_hardware *hardware = terminal->hardware;

	return terminal->is_hung_up || !hardware->has_room || hardware->has_room(terminal);
}

/* 0; -EAGAIN; -ERESTART; -EIO if nobody is at the other end any more. */
static int wait_for_room(struct terminal *terminal, uint32_t flags)
{
	if (flags & O_NONBLOCK && !can_write(terminal))
		return -EAGAIN;
	int error = wait_event(&terminal->writers, can_write(terminal));

	return error || !terminal->is_hung_up ? error : -EIO;
}

/* Through the stack as well: the screen and the serial line are written with interrupts disabled.
 */
static int terminal_write(struct file *file, struct buffer *from, uint64_t offset)
{
	struct terminal *terminal = file->private;
	char chunk[TERMINAL_CHUNK];
	int done = 0;
	bool stops = terminal->line.settings.local & TOSTOP;
	int error = stops ? check_background(terminal, SIGTTOU) : 0;

	if (error)
		return error;
	while (from->length > 0) {
		int moved = buffer_take(from, chunk, sizeof(chunk));

		error = moved < 0 ? moved : wait_for_room(terminal, file->flags);
		if (error)
			return done ? done : error;
		line_output(&terminal->line, chunk, moved);
		done += moved;
	}
	return done;
}

/* A terminal that is hung up is ready for everything, and all of it fails. */
static uint32_t terminal_poll(struct file *file, struct poll_table *table)
{
	struct terminal *terminal = file->private;

	poll_add(table, &terminal->readers);
	poll_add(table, &terminal->writers);
	if (terminal->is_hung_up)
		return POLLIN | POLLOUT | POLLERR | POLLHUP;
	return (available(terminal) > 0 ? POLLIN : 0) | (can_write(terminal) ? POLLOUT : 0);
}

/* ---- ioctl ---- */

/* TCSETS to TCSETSF2. Those without speeds leave the speeds as they are. */
static int set_settings(struct terminal *terminal, uint32_t command, uint32_t argument)
{
	struct linux_termios2 settings = terminal->line.all;
	uint32_t size = command >= TCSETS2 ? sizeof(settings) : sizeof(settings.settings);
	int error = check_background(terminal, SIGTTOU) ?: fetch(&settings, argument, size);

	if (error)
		return error;
	line_set(&terminal->line, &settings, command == TCSETSF || command == TCSETSF2);
	terminal->hardware->resume(terminal);
	return 0;
}

/* Programs that draw want to know of another size: SIGWINCH. */
static int set_window_size(struct terminal *terminal, uint32_t argument)
{
	struct linux_window_size before = terminal->window, wanted;

	if (copy_from_user(&wanted, argument, sizeof(wanted)))
		return -EFAULT;
	terminal->window = wanted;
	if (wanted.rows != before.rows || wanted.columns != before.columns)
		signal_foreground(&terminal->line, SIGWINCH);
	return 0;
}

/* Only processes whose controlling terminal it is may ask. */
static int control_session(const struct terminal *terminal, uint32_t command, uint32_t argument)
{
	int32_t value = command == TIOCGPGRP ? *terminal->foreground : terminal->session;

	return is_controlling(terminal) ? give(argument, &value, sizeof(value)) : -ENOTTY;
}

/* A byte of the program's, as if it had been typed: root may do this to every terminal. */
static int type_for(struct terminal *terminal, uint32_t argument)
{
	uint8_t byte;

	if (copy_from_user(&byte, argument, sizeof(byte)))
		return -EFAULT;
	bool enabled CLEANUP(interrupts_leave) = interrupts_disable();

	line_type(&terminal->line, byte);
	wait_wake(&terminal->readers);
	return 0;
}

/* Commands about what is on its way, which a task in the background may not give. All output is out
 * at once, and nothing stops it. */
static int control_flow(struct terminal *terminal, uint32_t command, uint32_t argument)
{
	int error = check_background(terminal, SIGTTOU);

	if (error || command == TCSBRK || command == TCSBRKP)
		return error;
	if (argument > (command == TCFLSH ? TCIOFLUSH : TCION))
		return -EINVAL;
	if (command == TCFLSH && argument != TCOFLUSH) {
		line_flush(&terminal->line);
		terminal->hardware->resume(terminal);
	}
	return 0;
}

/* Commands about the line: all but those about the window and the session. Output does not wait, so
 * TCSETS and TCSETSW mean the same, and none is left to count (TIOCOUTQ). */
static int control_line(struct terminal *terminal, uint32_t command, uint32_t argument)
{
	const struct linux_termios2 settings = line_settings(&terminal->line);
	uint32_t count = available(terminal), zero = 0;

	switch (command) {
	case TCGETS:
		return give(argument, &settings, sizeof(settings.settings));
	case TCGETS2:
		return give(argument, &settings, sizeof(settings));
	case TCSETS ... TCSETSF:
	case TCSETS2 ... TCSETSF2:
		return set_settings(terminal, command, argument);
	case TCSBRK:
	case TCSBRKP:
	case TCXONC:
	case TCFLSH:
		return control_flow(terminal, command, argument);
	case FIONREAD:
		return give(argument, &count, sizeof(count));
	case TIOCOUTQ:
	case TIOCGETD: /* 0: the only discipline */
		return give(argument, &zero, sizeof(zero));
	}
	return -ENOTTY;
}

/* ioctl_tty(2). Of a terminal that is hung up each command fails, as on Linux. */
int terminal_control(struct terminal *terminal, uint32_t command, uint32_t argument)
{
	if (terminal->is_hung_up)
		return command == TIOCSPGRP ? -ENOTTY : -EIO;
	switch (command) {
	case TIOCGWINSZ:
		return give(argument, &terminal->window, sizeof(terminal->window));
	case TIOCSWINSZ:
		return set_window_size(terminal, argument);
	case TIOCGPGRP:
	case TIOCGSID:
		return control_session(terminal, command, argument);
	case TIOCSPGRP:
		return set_foreground(terminal, argument);
	case TIOCSCTTY:
		return set_controlling(terminal, argument == 1);
	case TIOCNOTTY:
		return disassociate(terminal);
	case TIOCSTI:
		return type_for(terminal, argument);
	case TIOCEXCL: /* root may still open it */
	case TIOCNXCL:
		return 0;
	}
	return control_line(terminal, command, argument);
}

/* The operation of a terminal's own file; a pseudo-terminal's master has another one, which passes
 * most commands on. */
static int control_file(struct file *file, uint32_t command, uint32_t argument)
{
	return terminal_control(file->private, command, argument);
}

static const struct file_ops terminal_ops = {
	.read = terminal_read,
	.write = terminal_write,
	.control = control_file,
	.poll = terminal_poll,
	.release = terminal_release,
	.is_stream = true,
};

/* open(2), O_NOCTTY: a leader of a session without a terminal gets this one, if it is nobody's and
 * the file can be read. Open succeeds without that, too. */
int terminal_open(struct file *file, struct terminal *terminal)
{
	file->ops = &terminal_ops;
	file->private = terminal;
	terminal->files++;
	if (!(file->flags & O_NOCTTY) && file_readable(file))
		set_controlling(terminal, false); /* without it the process may still write */
	return 0;
}

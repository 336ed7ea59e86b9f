/*
 * Pseudo-terminals: terminals with a program at the other end, in place of keyboard and screen.
 *
 *	program at the master		the terminal		program at the slave
 *	   write  ------------------->  line_type  --line-->	read
 *					   | echo
 *	   read  <------ ring <------------+------------------	write
 *
 * Opening /dev/ptmx makes one, with a number; its slave is /dev/pts/NUMBER, once it is unlocked. It
 * is freed when the master and all the slave's files are closed. The master's end hangs the
 * terminal up; the last slave's lets the master read what is left, and then -EIO (pty(7)). Called
 * by system calls only.
 */

#include "fs/devices.h"
#include "fs/linux/poll.h"
#include "fs/vfs/inode.h"
#include "kernel/abi/file.h"
#include "kernel/abi/poll.h"
#include "kernel/lib/startup.h"
#include "kernel/linux/terminal/terminal.h"
#include "kernel/report/printk.h"
#include "mm/page_alloc.h"

/* Linux's numbers (Documentation/admin-guide/devices.txt), which programs compare. */
#define MASTER (5u << 8 | 2)
#define SLAVE  (136u << 8) /* and its number */
#define PTYS   32u
#define RING   4096u /* bytes; a power of two */
#define ORDER  2u    /* a pty's pages */

struct pty {
	struct terminal terminal; /* first: the two have one address */
	struct tty_ring keys;	  /* what the master has typed */
	struct wait_queue master; /* wakes when the master may read or write, or should look */
	uint32_t shown, taken;	  /* bytes, ever: by the slave, by the master */
	int32_t foreground;
	bool is_locked, was_open; /* of the slave */
	char ring[RING];
};

_Static_assert(sizeof(struct pty) <= PAGE_SIZE << ORDER, "a pty is larger than its pages");

/* ---- the terminal's hardware ---- */

/* An echo that does not fit is lost. */
static void pty_put(struct line *line, const char *text, uint32_t length)
{
	struct pty *pty = (struct pty *)line;

	for (uint32_t i = 0; i < length && pty->shown - pty->taken < RING; i++)
		pty->ring[pty->shown++ % RING] = text[i];
	wait_wake(&pty->master);
}

/* For a chunk in which all are newlines, which become two bytes each. */
static bool pty_has_room(const struct terminal *terminal)
{
	const struct pty *pty = (const struct pty *)terminal;

	return RING - (pty->shown - pty->taken) >= 2 * TERMINAL_CHUNK;
}

/* The master may write again. */
static void pty_resume(struct terminal *terminal)
{
	wait_wake(&((struct pty *)terminal)->master);
}

/* The slave's last file is closed: the master's reads end with -EIO. The last end frees both. */
static void pty_leave(struct terminal *terminal)
{
	wait_wake(&((struct pty *)terminal)->master);
	if (!terminal->is_hung_up)
		return;
	list_remove(&terminal->link);
	page_free(terminal, ORDER);
}

/* /dev/pts/NUMBER; which one it is the inode's device number says. -EIO before unlockpt(3), and
 * after the master has gone. */
static int slave_open(struct file *file)
{
	struct pty *pty = (struct pty *)terminal_find(file->inode->device);

	if (!pty || pty->is_locked || pty->terminal.is_hung_up)
		return -EIO;
	pty->was_open = true;
	return terminal_open(file, &pty->terminal);
}

/* ---- the master ---- */

/* /dev/ptmx, each time another one. Its settings are those of Linux's, a little other than the
 * console's. -ENOSPC when all numbers are in use, -ENOMEM. */
static int master_open(struct file *file)
{
	static const struct terminal_hardware hardware = { pty_put, pty_has_room, pty_resume,
							   pty_leave };
	uint32_t number = 0;

	while (number < PTYS && terminal_find(SLAVE | number))
		number++;
	if (number == PTYS)
		return -ENOSPC;
	struct pty *pty = page_alloc(ORDER);

	if (!pty)
		return -ENOMEM;
	memset(pty, 0, sizeof(*pty));
	pty->terminal.hardware = &hardware;
	pty->terminal.device = SLAVE | number;
	pty->terminal.foreground = &pty->foreground;
	terminal_add(&pty->terminal, &pty->keys);
	pty->terminal.line.settings.input = ICRNL | IXON;
	pty->terminal.line.settings.control = B38400 | CS8 | CREAD;
	pty->is_locked = true;
	file->private = pty;
	return 0;
}

/* Not before the slave was open for the first time: until then a reader waits. */
static bool is_closed(const struct pty *pty)
{
	return pty->was_open && pty->terminal.files == 0;
}

/* Moves bytes that the slave has written, or that were echoed, out of the ring. */
static uint32_t take_shown(struct pty *pty, char *to, uint32_t size)
{
	uint32_t count = 0;

	while (count < size && pty->taken != pty->shown)
		to[count++] = pty->ring[pty->taken++ % RING];
	return count;
}

/* It goes through the stack, since copying to the program may sleep, and others read meanwhile. */
static int master_read(struct file *file, struct buffer *to, uint64_t offset)
{
	struct pty *pty = file->private;
	char chunk[TERMINAL_CHUNK];
	int done = 0, moved = 1;

	if (file->flags & O_NONBLOCK && pty->shown == pty->taken && !is_closed(pty))
		return -EAGAIN;
	int error = wait_event(&pty->master, pty->shown != pty->taken || is_closed(pty));

	if (error || pty->shown == pty->taken)
		return error ? error : -EIO;
	while (to->length > 0 && moved > 0) {
		uint32_t size = to->length < sizeof(chunk) ? to->length : sizeof(chunk);

		moved = buffer_put(to, chunk, take_shown(pty, chunk, size));
		done += moved > 0 ? moved : 0;
	}
	wait_wake(&pty->terminal.writers);
	return done > 0 ? done : moved;
}

/* At most a ring's size, so that nobody holds the processor for long: a line that is too long is
 * taken without end. */
static int master_write(struct file *file, struct buffer *from, uint64_t offset)
{
	struct pty *pty = file->private;
	struct line *line = &pty->terminal.line;
	char chunk[TERMINAL_CHUNK];
	int done = 0;

	while (from->length > 0 && done < (int)RING) {
		if (file->flags & O_NONBLOCK && !line_has_room(line))
			return done ? done : -EAGAIN;
		int error = wait_event(&pty->master, line_has_room(line));
		int moved = error ? error : buffer_take(from, chunk, sizeof(chunk));

		if (moved < 0)
			return done ? done : moved;
		for (int i = 0; i < moved; i++)
			line_type(line, chunk[i]);
		wait_wake(&pty->terminal.readers);
		done += moved;
	}
	return done;
}

/* Room is in the slave's line, data in the master's ring. Both may change at once, since one queue
 * wakes for both: who polls looks again. */
static uint32_t master_poll(struct file *file, struct poll_table *table)
{
	struct pty *pty = file->private;

	poll_add(table, &pty->master);
	return (pty->shown != pty->taken ? POLLIN : 0) | (is_closed(pty) ? POLLHUP : 0) |
	       (line_has_room(&pty->terminal.line) ? POLLOUT : 0);
}

/* What Linux answers at the master's end is sometimes of the slave (the session, the window, the
 * settings), sometimes its own (the number, the lock, how much there is to read). pts(4),
 * ioctl_tty(2). */
static int master_control(struct file *file, uint32_t command, uint32_t argument)
{
	struct pty *pty = file->private;
	int32_t session = pty->terminal.session;
	uint32_t number = pty->terminal.device - SLAVE, count = pty->shown - pty->taken, lock;

	switch (command) {
	case TIOCGPTN:
		return give(argument, &number, sizeof(number));
	case TIOCSPTLCK:
		if (copy_from_user(&lock, argument, sizeof(lock)))
			return -EFAULT;
		pty->is_locked = lock;
		return 0;
	case FIONREAD:
		return give(argument, &count, sizeof(count));
	case TIOCGPGRP:
		return give(argument, &pty->foreground, sizeof(pty->foreground));
	case TIOCGSID:
		return session ? give(argument, &session, sizeof(session)) : -ENOTTY;
	case TIOCNOTTY:
	case TIOCSTI: /* nobody's controlling terminal, and nobody types there */
		return -ENOTTY;
	}
	return terminal_control(&pty->terminal, command, argument);
}

/* The slave may still be open: then its last file frees the pty. Until then reads there give the
 * end, and writes -EIO: terminal_hang_up. */
static void master_release(struct file *file)
{
	struct terminal *terminal = file->private;

	terminal_hang_up(terminal);
	if (terminal->files == 0)
		pty_leave(terminal);
}

/* ---- start-up ---- */

/* Every slave has a name, also while there is none. */
static void ptys_start(void)
{
	static const struct file_ops master_ops = {
		.open = master_open,
		.read = master_read,
		.write = master_write,
		.control = master_control,
		.poll = master_poll,
		.release = master_release,
		.is_stream = true,
	};
	static const struct file_ops slave_ops = { .open = slave_open };
	static struct device master = { "ptmx", MASTER, 0666, &master_ops, NULL };
	static struct device slaves[PTYS];
	static char names[PTYS][8];

	device_register(&master);
	for (uint32_t i = 0; i < PTYS; i++) {
		snprintk(names[i], sizeof(names[i]), "pts/%u", i);
		slaves[i] = (struct device){ names[i], SLAVE | i, 0620, &slave_ops, NULL };
		device_register(&slaves[i]);
	}
}
STARTUP(ptys_start)

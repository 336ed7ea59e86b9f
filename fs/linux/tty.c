/*
 * The terminal with settings (termios): it stands in for fs/tty/tty.c.
 *
 *	keyboard, serial line  --interrupt-->  type  -->  line_type  -->  echo on the screen
 *							      | a whole line
 *	program  <--  tty_read  <--  line_take  <--wakes--  tty_readers
 *
 * One terminal for the machine. Everybody may read and write it; ^C goes to the process group in
 * front (`foreground`): the program that the kernel has started, or the one that a shell has put
 * there. Sessions, and who may not read, are job control, which can be put in between (tty_ops).
 *
 * The serial line stops taking bytes while nothing fits (line_has_room), and goes on when a reader
 * has taken some (serial_resume): so nothing that is sent is lost.
 */
#include "fs/linux/tty.h"

#include <stddef.h>

#include "drivers/console/keyboard.h"
#include "drivers/console/serial.h"
#include "fs/devices.h"
#include "kernel/lib/errno.h"
#include "kernel/report/printk.h"

#define CHUNK	  256u
#define BACKSPACE '\b'

struct line tty_line;
struct wait_queue tty_readers;
int32_t tty_foreground;
void (*tty_leave)(void);

static tty_signaller *signal_group;

/* ---- from the keys, in interrupt handlers ---- */

/* ^C, for the group in the foreground; at boot there is none. */
static void tty_interrupt(int signal)
{
	if (tty_foreground > 0)
		signal_group(tty_foreground, signal);
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

/* ---- operations, for the current task ---- */

/* Waits until a line, or with other settings some bytes, can be read. */
static int wait_for_line(const struct file *file)
{
	if (line_available(&tty_line) > 0)
		return 0;
	if (file->flags & O_NONBLOCK)
		return -EAGAIN;
	return wait_event(&tty_readers, line_available(&tty_line) > 0);
}

/* At most one line. It goes through the stack in pieces, because the ring may only be touched with
 * interrupts off, and the program's memory only with interrupts on. */
static int tty_read(struct file *file, struct buffer *to, uint64_t offset)
{
	char chunk[CHUNK];
	int done = 0;
	bool is_end = to->length == 0;
	int error = is_end ? 0 : wait_for_line(file);

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

/* Through the stack as well: the screen and the serial line are written with interrupts off. */
static int tty_write(struct file *file, struct buffer *from, uint64_t offset)
{
	char chunk[CHUNK];
	int done = 0;

	while (from->length > 0) {
		int moved = buffer_take(from, chunk, CHUNK);

		if (moved < 0)
			return done ? done : moved;
		line_output(&tty_line, chunk, moved);
		done += moved;
	}
	return done;
}

/* TCGETS: a program that asks for the settings wants to know whether this is a terminal (isatty).
 * TIOCSPGRP: a shell says who is in front. */
static int tty_control(struct file *file, uint32_t command, uint32_t argument)
{
	int32_t group;

	if (command == TCGETS)
		return give(argument, &tty_line.settings, sizeof(tty_line.settings));
	if (command != TIOCSPGRP)
		return -ENOTTY;
	if (copy_from_user(&group, argument, sizeof(group)))
		return -EFAULT;
	tty_foreground = group;
	return 0;
}

struct file_ops tty_ops = {
	.read = tty_read,
	.write = tty_write,
	.control = tty_control,
	.is_stream = true,
};

/* The signaller comes from above: this folder knows no processes. */
void tty_initialize(tty_signaller *send_to_group)
{
	static struct device console = { "console", TTY_DEVICE, 0600, &tty_ops, NULL };

	signal_group = send_to_group;
	line_initialize(&tty_line, console_write, tty_interrupt);
	device_register(&console);
	tty_listen(true);
}

/* False: the kernel's own prompt reads the keys. */
void tty_listen(bool wanted)
{
	keyboard_listen(wanted ? type_key : NULL);
	serial_listen(wanted ? type : NULL, tty_has_room);
}

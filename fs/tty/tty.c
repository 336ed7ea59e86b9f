/*
 * The terminal: keys come in by interrupts, and go to the program that reads, a line at a time.
 *
 *	keyboard, serial line  --interrupt-->  type: echo, and into the ring
 *							| a whole line
 *	program  <--  tty_read  <--  tty_take  <--wakes--  readers
 *
 * A line can be edited until it ends. The typed bytes are in a ring of cells, and three numbers
 * that only grow divide it; number n is at n % TTY_CELLS:
 *
 *	... | l  s  \n | e  c  h  o |
 *	    ^          ^            ^
 *	  taken      ready        typed
 *
 * A program may read what is before `ready`. From there on a line is being edited: the erase key
 * takes `typed` back, but never before `ready`. A newline makes the line ready. ^D makes it ready
 * as well, by a cell that ends the line and is not a byte of it; typed at a line's beginning it is
 * therefore a line without bytes, which a program reads as the end of the file. ^C drops the line,
 * and a signal goes to the process group in front: the program that the kernel has started, or the
 * one that a shell has put there. See termios(3), "Canonical and noncanonical mode".
 *
 * One terminal for the machine. The serial line stops taking bytes while nothing fits
 * (tty_has_room), and goes on when a reader has taken some (serial_resume): so nothing that is sent
 * is lost. The ring is touched with interrupts disabled.
 *
 * Where kernel/linux/terminal/console.c is linked, the console has all settings of termios(3): then
 * keys and open files go there.
 */
#include "fs/tty/tty.h"

#include "drivers/console/keyboard.h"
#include "drivers/console/serial.h"
#include "fs/devices.h"
#include "kernel/abi/signal.h"
#include "kernel/abi/terminal.h"
#include "kernel/report/printk.h"

/* The keys with a meaning. */
#define KEY_INTERRUPT 3	   /* ^C */
#define KEY_END	      4	   /* ^D */
#define KEY_KILL      0x15 /* ^U */
#define KEY_ERASE     0x7f

struct tty_ring tty_ring;
static struct wait_queue readers;
static tty_signaller *signal_group;

int32_t tty_foreground;

/* ---- the screen ---- */

/* A newline becomes two characters; the text between them goes out in one piece. */
static void tty_show(const char *text, uint32_t length)
{
	uint32_t start = 0;

	for (uint32_t i = 0; i < length; i++) {
		if (text[i] != '\n')
			continue;
		console_write(text + start, i - start);
		console_write("\r\n", 2);
		start = i + 1;
	}
	console_write(text + start, length - start);
}

/* ---- the keys, in interrupt handlers ---- */

void tty_add(struct tty_ring *ring, uint16_t content, bool is_ready)
{
	if (ring->typed - ring->taken >= (is_ready ? TTY_CELLS : TTY_CELLS - 1))
		return;
	ring->cells[ring->typed++ % TTY_CELLS] = content;
	if (is_ready)
		ring->ready = ring->typed;
}

/* Takes the last character of the line back, or all of them, on the screen too. */
static void tty_erase(bool all)
{
	for (bool more = true; more && tty_ring.typed != tty_ring.ready; more = all) {
		tty_ring.typed--;
		tty_show("\b \b", 3);
	}
}

/* Other control characters have no meaning here, and are dropped. */
static void tty_type_character(char character)
{
	bool ends = character == '\n';

	if ((uint8_t)character < ' ' && character != '\t' && !ends)
		return;
	tty_show(&character, 1);
	tty_add(&tty_ring, (uint8_t)character | (ends ? TTY_ENDS_LINE : 0), ends);
}

static void tty_type(uint8_t byte)
{
	if (byte == KEY_ERASE || byte == '\b' || byte == KEY_KILL) {
		tty_erase(byte == KEY_KILL);
	} else if (byte == KEY_END) {
		tty_add(&tty_ring, TTY_END_OF_FILE, true);
	} else if (byte == KEY_INTERRUPT) {
		tty_ring.taken = tty_ring.ready = tty_ring.typed;
		tty_show("^C", 2);
		if (tty_foreground > 0)
			signal_group(tty_foreground, SIGINT);
	} else {
		tty_type_character(byte == '\r' ? '\n' : byte);
	}
	wait_wake(&readers);
}

/* Half empty, or no complete line yet: then the person must be able to finish it. */
static bool tty_has_room(void)
{
	return tty_ring.typed - tty_ring.taken < TTY_CELLS / 2 || tty_ring.ready == tty_ring.taken;
}

/* ---- operations, for the current task ---- */

uint32_t tty_take(struct tty_ring *ring, char *to, uint32_t size, bool *is_end)
{
	bool enabled = interrupts_disable();
	uint32_t count = 0;

	*is_end = false;
	while (ring->taken != ring->ready && !*is_end) {
		uint16_t content = ring->cells[ring->taken % TTY_CELLS];

		if (count == size && content != TTY_END_OF_FILE)
			break;
		ring->taken++;
		*is_end = content & (TTY_ENDS_LINE | TTY_END_OF_FILE);
		if (content != TTY_END_OF_FILE)
			to[count++] = content;
	}
	interrupts_restore(enabled);
	return count;
}

/* At most one line, or a piece of it. It goes through the stack, because the ring is touched with
 * interrupts disabled, and the program's memory with interrupts enabled. */
static int tty_read(struct file *file, struct buffer *to, uint64_t offset)
{
	char chunk[256];
	bool is_end;
	int error = to->length > 0 ? wait_event(&readers, tty_ring.ready != tty_ring.taken) : 0;

	if (error || to->length == 0)
		return error;
	uint32_t size = to->length < sizeof(chunk) ? to->length : sizeof(chunk);
	uint32_t count = tty_take(&tty_ring, chunk, size, &is_end);

	serial_resume();
	return buffer_put(to, chunk, count);
}

/* Through the stack as well: the screen and the serial line are written with interrupts disabled.
 */
static int tty_write(struct file *file, struct buffer *from, uint64_t offset)
{
	char chunk[256];
	int done = 0;

	while (from->length > 0) {
		int moved = buffer_take(from, chunk, sizeof(chunk));

		if (moved < 0)
			return done ? done : moved;
		tty_show(chunk, moved);
		done += moved;
	}
	return done;
}

/* TCGETS and TCGETS2: a program that asks for the settings wants to know whether this is a terminal
 * (isatty). TIOCSPGRP: a shell says which process group gets the signals of keys. */
static int tty_control(struct file *file, uint32_t command, uint32_t argument)
{
	static const struct linux_termios2 settings = {
		.settings.input = ICRNL,
		.settings.output = OPOST | ONLCR,
		.settings.local = ISIG | ICANON | ECHO,
		.settings.characters = { KEY_INTERRUPT, 0, KEY_ERASE, KEY_KILL, KEY_END },
	};
	int32_t group;

	if (command == TCGETS)
		return give(argument, &settings, sizeof(settings.settings));
	if (command == TCGETS2)
		return give(argument, &settings, sizeof(settings));
	if (command != TIOCSPGRP)
		return -ENOTTY;
	if (copy_from_user(&group, argument, sizeof(group)))
		return -EFAULT;
	tty_foreground = group;
	return 0;
}

static const struct file_ops tty_ops = {
	.open = console_open,
	.read = tty_read,
	.write = tty_write,
	.control = tty_control,
	.is_stream = true,
};

/* The caller passes the signaller, because this folder knows nothing of processes. */
void tty_initialize(tty_signaller *send_to_group)
{
	static struct device console = { "console", TTY_DEVICE, 0600, &tty_ops, NULL };

	signal_group = send_to_group;
	device_register(&console);
	tty_listen(true);
}

/* False: the kernel's own prompt reads the keys. */
void tty_listen(bool wanted)
{
	keyboard_listener = !wanted ? NULL : console_type_key ? console_type_key : tty_type;
	serial_listen(!wanted ? NULL : console_type ? console_type : tty_type, tty_has_room);
}

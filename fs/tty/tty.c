/*
 * The terminal: keys come in by interrupts, and go to the program that reads, a line at a time.
 *
 *	keyboard, serial line  --interrupt-->  type: echo, and into the ring
 *							| a whole line
 *	program  <--  tty_read  <--  take  <--wakes--  readers
 *
 * A line can be edited until it ends. The typed bytes are in a ring of cells, and three numbers
 * that only grow divide it; number n is at n % CELLS:
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
 * One terminal for the machine. The serial line stops taking bytes while nothing fits (has_room),
 * and goes on when a reader has taken some (serial_resume): so nothing that is sent is lost. The
 * ring is touched with interrupts disabled.
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

#define CELLS	    4096u  /* a power of two, so that the numbers may wrap around */
#define ENDS_LINE   0x100u /* in a cell: a line ends after this byte */
#define END_OF_FILE 0x200u /* a line ends here, and this is not a byte of it */
#define CHUNK	    256u

/* The keys with a meaning. */
#define KEY_INTERRUPT 3	   /* ^C */
#define KEY_END	      4	   /* ^D */
#define KEY_KILL      0x15 /* ^U */
#define KEY_ERASE     0x7f

static uint16_t cells[CELLS];
static uint32_t taken, ready, typed;
static struct wait_queue readers;
static tty_signaller *signal_group;

int32_t tty_foreground;

/* ---- the screen ---- */

/* A newline becomes two characters; the text between them goes out in one piece. */
static void show(const char *text, uint32_t length)
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

/* Takes the last character back, on the screen too. */
static void erase(void)
{
	typed--;
	show("\b \b", 3);
}

/* Adds a cell; the last one is kept for the end of a line. A full ring drops it. */
static void add(uint16_t content)
{
	bool ends = content & (ENDS_LINE | END_OF_FILE);

	if (typed - taken >= (ends ? CELLS : CELLS - 1))
		return;
	cells[typed++ % CELLS] = content;
	if (ends)
		ready = typed;
}

/* Other control characters have no meaning here, and are dropped. */
static void type_character(char character)
{
	if ((uint8_t)character < ' ' && character != '\t' && character != '\n')
		return;
	show(&character, 1);
	add(character == '\n' ? character | ENDS_LINE : (uint8_t)character);
}

static void type(uint8_t byte)
{
	if (byte == KEY_ERASE || byte == '\b') {
		if (typed != ready)
			erase();
	} else if (byte == KEY_KILL) {
		while (typed != ready)
			erase();
	} else if (byte == KEY_END) {
		add(END_OF_FILE);
	} else if (byte == KEY_INTERRUPT) {
		taken = ready = typed;
		show("^C", 2);
		if (tty_foreground > 0)
			signal_group(tty_foreground, SIGINT);
	} else {
		type_character(byte == '\r' ? '\n' : byte);
	}
	wait_wake(&readers);
}

/* Half empty, or no complete line yet: then the person must be able to finish it. */
static bool has_room(void)
{
	return typed - taken < CELLS / 2 || ready == taken;
}

/* ---- operations, for the current task ---- */

/* Takes bytes up to the end of a line. Returns how many: none for an end of the file. */
static uint32_t take(char *to, uint32_t size)
{
	bool enabled = interrupts_disable(), is_end = false;
	uint32_t count = 0;

	while (taken != ready && !is_end) {
		uint16_t content = cells[taken % CELLS];

		if (count == size && content != END_OF_FILE)
			break;
		taken++;
		is_end = content & (ENDS_LINE | END_OF_FILE);
		if (content != END_OF_FILE)
			to[count++] = content;
	}
	interrupts_restore(enabled);
	return count;
}

/* At most one line, or a piece of it. It goes through the stack, because the ring is touched with
 * interrupts disabled, and the program's memory with interrupts enabled. */
static int tty_read(struct file *file, struct buffer *to, uint64_t offset)
{
	char chunk[CHUNK];
	int error = to->length > 0 ? wait_event(&readers, ready != taken) : 0;

	if (error || to->length == 0)
		return error;
	uint32_t count = take(chunk, to->length < CHUNK ? to->length : CHUNK);

	serial_resume();
	return buffer_put(to, chunk, count);
}

/* Through the stack as well: the screen and the serial line are written with interrupts disabled.
 */
static int tty_write(struct file *file, struct buffer *from, uint64_t offset)
{
	char chunk[CHUNK];
	int done = 0;

	while (from->length > 0) {
		int moved = buffer_take(from, chunk, CHUNK);

		if (moved < 0)
			return done ? done : moved;
		show(chunk, moved);
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
	keyboard_listener = !wanted ? NULL : console_type_key ? console_type_key : type;
	serial_listen(!wanted	     ? NULL
		      : console_type ? console_type
				     : type,
		      console_has_room ? console_has_room : has_room);
}

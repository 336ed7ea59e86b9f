/*
 * The console: the terminal whose other end is the machine's keyboard, screen and serial line; it
 * replaces fs/tty/tty.c.
 *
 * The serial line stops taking bytes while nothing fits (line_has_room), and goes on when a reader
 * has taken some (serial_resume): so nothing that is sent is lost.
 */
#include "fs/tty/tty.h"

#include <stddef.h>

#include "drivers/console/keyboard.h"
#include "drivers/console/serial.h"
#include "drivers/qemu/settings.h"
#include "fs/devices.h"
#include "kernel/lib/errno.h"
#include "kernel/linux/terminal/terminal.h"
#include "kernel/process/process.h"
#include "kernel/report/printk.h"

#define TTY_ANY	  (5u << 8 | 0) /* /dev/tty: the terminal of the process that opens it */
#define BACKSPACE '\b'

int32_t tty_foreground;

static struct terminal console;

/* In interrupt handlers. Wakes even for half a line: settings may ask for single bytes. */
static void type(uint8_t byte)
{
	line_type(&console.line, byte);
	wait_wake(&console.readers);
}

/* The key is the terminal's erase character, whichever that is. */
static void type_key(uint8_t byte)
{
	type(byte == BACKSPACE ? console.line.settings.characters[VERASE] : byte);
}

/* For the serial line, which can make its sender wait. */
static bool console_accepts(void)
{
	return line_has_room(&console.line);
}

static void console_put(struct line *line, const char *text, uint32_t length)
{
	console_write(text, length);
}

static bool console_has_room(const struct terminal *terminal)
{
	return true;
}

static void console_resume(struct terminal *terminal)
{
	serial_resume();
}

static void console_leave(struct terminal *terminal)
{
}

static int open_console(struct file *file)
{
	return terminal_open(file, &console);
}

static int open_own(struct file *file)
{
	struct terminal *own = terminal_find(current->process->tty);

	return own ? terminal_open(file, own) : -ENXIO;
}

/* The caller's function is for fs/tty/tty.c, which may not use kernel/process. */
void tty_initialize(tty_signaller *unused)
{
	static const struct terminal_hardware hardware = { console_put, console_has_room,
							   console_resume, console_leave };
	static struct file_ops console_ops, own_ops;
	static struct device device = { "console", TTY_DEVICE, 0600, &console_ops, NULL };
	static struct device own_device = { "tty", TTY_ANY, 0666, &own_ops, NULL };

	console_ops = own_ops = terminal_ops;
	console_ops.open = open_console;
	own_ops.open = open_own;
	console.hardware = &hardware;
	console.device = TTY_DEVICE;
	console.foreground = &tty_foreground;
	console.window.rows = setting_number("rows", 24);
	console.window.columns = setting_number("columns", 80);
	terminal_add(&console);
	device_register(&device);
	device_register(&own_device);
	tty_listen(true);
}

/* False: the kernel's own prompt reads the keys. */
void tty_listen(bool wanted)
{
	keyboard_listener = wanted ? type_key : NULL;
	serial_listen(wanted ? type : NULL, console_accepts);
}

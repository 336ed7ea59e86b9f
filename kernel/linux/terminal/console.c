/*
 * The console: the terminal whose other end is the machine's keyboard, screen and serial line.
 * fs/tty/tty.c registers the device, and gives it what is typed.
 *
 * The serial line stops taking bytes while nothing fits (line_has_room), and goes on when a reader
 * has taken some (serial_resume): so nothing that is sent is lost.
 */

#include "drivers/console/serial.h"
#include "drivers/qemu/settings.h"
#include "fs/devices.h"
#include "kernel/lib/startup.h"
#include "kernel/linux/terminal/terminal.h"
#include "kernel/process/process.h"
#include "kernel/report/printk.h"

#define TTY_ANY	  (5u << 8 | 0) /* /dev/tty: the terminal of the process that opens it */
#define BACKSPACE '\b'

static struct terminal console = { .line.ring = &tty_ring };

/* Wakes even for half a line: settings may ask for single bytes. */
void console_type(uint8_t byte)
{
	line_type(&console.line, byte);
	wait_wake(&console.readers);
}

/* The key is the terminal's erase character, whichever that is. */
void console_type_key(uint8_t byte)
{
	console_type(byte == BACKSPACE ? console.line.settings.characters[VERASE] : byte);
}

/* ---- as a terminal's hardware ---- */

static void put_on_console(struct line *line, const char *text, uint32_t length)
{
	console_write(text, length);
}

static void resume_serial(struct terminal *terminal)
{
	serial_resume();
}

/* ---- as a file ---- */

int console_open(struct file *file)
{
	return terminal_open(file, &console);
}

/* /dev/tty. -ENXIO for a process that has no controlling terminal, as tty(4) says. */
static int open_controlling(struct file *file)
{
	struct terminal *terminal = terminal_find(current->process->tty);

	return terminal ? terminal_open(file, terminal) : -ENXIO;
}

/* Until it has run, what is typed is kept in the ring without being shown, and lost here. How large
 * the screen is the kernel cannot ask a terminal at the serial line: the settings say it. */
static void console_start(void)
{
	static const struct terminal_hardware hardware = { .put = put_on_console,
							   .resume = resume_serial };
	static const struct file_ops controlling_ops = { .open = open_controlling };
	static struct device controlling_device = { "tty", TTY_ANY, 0666, &controlling_ops, NULL };

	console.hardware = &hardware;
	console.device = TTY_DEVICE;
	console.foreground = &tty_foreground;
	console.window.rows = setting_number("rows", 24);
	console.window.columns = setting_number("columns", 80);
	terminal_add(&console, &tty_ring);
	device_register(&controlling_device);
}
STARTUP(console_start)

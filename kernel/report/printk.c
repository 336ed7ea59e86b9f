/*
 * The kernel's own output: to every console, and to a ring that keeps the last 16 KiB.
 *
 *	printk --> line[512] --> log_ring	the last 16 KiB: for a debugger
 *			    \--> console --> console --> ...	serial line, screen
 *
 * The text is formatted first, with interrupts as they are, and then written in one go with
 * interrupts disabled: lines of an interrupt handler and of the code that it interrupted never mix.
 * The price is latency: at 115200 baud a character takes 87 microseconds, a line of 80 about 7 ms.
 * That is why a trace that must not disturb goes to a ring and not here.
 *
 * Every function may be called from any context, console_register at boot only.
 */
#include "kernel/report/printk.h"

#include "kernel/cpu/interrupts.h"

#define LINE_LIMIT 512

/* For programs and for a debugger. */
char log_ring[LOG_SIZE];
uint32_t log_length;

static struct console *consoles;

/* log_length runs on past LOG_SIZE; the remainder is the place. LOG_SIZE divides 2^32, so its wrap
 * does no harm. */
void printk(const char *format, ...)
{
	char line[LINE_LIMIT];
	va_list arguments;

	va_start(arguments, format);
	vsnprintk(line, sizeof(line), format, arguments);
	va_end(arguments);
	bool enabled = interrupts_disable();

	for (const char *character = line; *character; character++) {
		log_ring[log_length++ % LOG_SIZE] = *character;
		for (struct console *console = consoles; console; console = console->next)
			console->put(*character);
	}
	interrupts_restore(enabled);
}

/* At boot, before anything is printed. */
void console_register(struct console *console)
{
	console->next = consoles;
	consoles = console;
}

/* One go with interrupts disabled, as for printk; not into the log ring. Programs have formatted
 * their text for a terminal already: no carriage return is added. */
void console_write(const char *text, uint32_t length)
{
	bool enabled = interrupts_disable();

	for (uint32_t i = 0; i < length; i++)
		for (struct console *console = consoles; console; console = console->next)
			console->put_unchanged(text[i]);
	interrupts_restore(enabled);
}

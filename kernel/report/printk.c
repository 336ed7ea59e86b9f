/* The kernel's voice: every console and a ring of the latest output. */
#include "kernel/report/printk.h"

#include "kernel/cpu/interrupts.h"

#define LINE_LIMIT 512

/* For consoles that come later, for programs and for a debugger. */
char log_ring[LOG_SIZE];
uint32_t log_length;

static struct console *consoles;

static void log_put(char character)
{
	log_ring[log_length++ % LOG_SIZE] = character;
	for (struct console *console = consoles; console; console = console->next)
		console->put(character);
}

void printk(const char *format, ...)
{
	char line[LINE_LIMIT];
	va_list arguments;

	va_start(arguments, format);
	vsnprintk(line, sizeof(line), format, arguments);
	va_end(arguments);
	bool enabled = interrupts_disable();

	for (const char *character = line; *character; character++)
		log_put(*character);
	interrupts_restore(enabled);
}

void console_register(struct console *console)
{
	uint32_t oldest = log_length > LOG_SIZE ? log_length - LOG_SIZE : 0;

	for (uint32_t i = oldest; i != log_length; i++)
		console->put(log_ring[i % LOG_SIZE]);
	console->next = consoles;
	consoles = console;
}

static void put_unchanged(const struct console *console, char character)
{
	if (console->put_unchanged)
		console->put_unchanged(character);
	else
		console->put(character);
}

void console_write(const char *text, uint32_t length)
{
	bool enabled = interrupts_disable();

	for (uint32_t i = 0; i < length; i++)
		for (struct console *console = consoles; console; console = console->next)
			put_unchanged(console, text[i]);
	interrupts_restore(enabled);
}

/*
 * The terminal's line discipline: lines that can be edited while they are typed.
 *
 * The cells are a ring, and three numbers that only grow divide it:
 *
 *	... | l  s  \n | e  c  h  o |
 *	    ^          ^            ^
 *	  taken      ready        typed
 *
 * A program may read what is before `ready`. From there on a line is being edited: the erase key
 * takes `typed` back, but never before `ready`. A newline makes the line ready. ^D makes it ready
 * as well, by a cell that ends the line and is no byte of it; typed at a line's beginning it is
 * therefore a line without bytes, which a program reads as the end of the file. ^C drops the line,
 * and a signal goes out. See termios(3), "Canonical and noncanonical mode".
 *
 * line_type runs in interrupt handlers, line_take for a task: line_take has interrupts off.
 */
#include "fs/tty/line.h"

#include "kernel/abi/signal.h"
#include "kernel/cpu/interrupts.h"

#define ENDS_LINE   0x100u /* in a cell: a line ends after this byte */
#define END_OF_FILE 0x200u /* a line ends here, and this is no byte of it */

/* The keys that mean something. */
#define KEY_INTERRUPT 3	   /* ^C */
#define KEY_END	      4	   /* ^D */
#define KEY_KILL      0x15 /* ^U */
#define KEY_ERASE     0x7f

/* LINE_CELLS is a power of two, so the numbers may wrap around. */
static uint16_t *cell(struct line *line, uint32_t number)
{
	return &line->cells[number % LINE_CELLS];
}

/* The settings that a program finds, and that `isatty` reads. */
void line_initialize(struct line *line, void (*put)(const char *text, uint32_t length),
		     void (*signal)(int signal))
{
	static const struct linux_termios settings = {
		.input = ICRNL,
		.output = OPOST | ONLCR,
		.control = B115200 | CS8 | CREAD,
		.local = ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOKE,
		.characters = { KEY_INTERRUPT, 0, KEY_ERASE, KEY_KILL, KEY_END },
	};

	line->settings = settings;
	line->put = put;
	line->signal = signal;
	line->taken = line->ready = line->typed = 0;
}

/* ---- the screen ---- */

/* A newline becomes two characters (ONLCR); the text between them goes out in one piece. */
void line_output(const struct line *line, const char *text, uint32_t length)
{
	uint32_t start = 0;

	for (uint32_t i = 0; i < length; i++) {
		if (text[i] != '\n')
			continue;
		line->put(text + start, i - start);
		line->put("\r\n", 2);
		start = i + 1;
	}
	line->put(text + start, length - start);
}

/* ---- the keys ---- */

/* Takes the last character back, on the screen too. */
static void erase(struct line *line)
{
	line->typed--;
	line_output(line, "\b \b", 3);
}

/* Adds a cell; the last one is kept for the end of a line. */
static void add(struct line *line, uint16_t content)
{
	bool ends = content & (ENDS_LINE | END_OF_FILE);

	if (line->typed - line->taken >= (ends ? LINE_CELLS : LINE_CELLS - 1))
		return;
	*cell(line, line->typed++) = content;
	if (ends)
		line->ready = line->typed;
}

/* Other control characters mean nothing here: they are dropped. */
static void type_character(struct line *line, char character)
{
	if ((uint8_t)character < ' ' && character != '\t' && character != '\n')
		return;
	line_output(line, &character, 1);
	add(line, character == '\n' ? character | ENDS_LINE : (uint8_t)character);
}

/* From interrupt handlers, with interrupts off. A full ring drops the byte. */
void line_type(struct line *line, uint8_t byte)
{
	bool is_empty = line->typed == line->ready;

	if (byte == KEY_ERASE) {
		if (!is_empty)
			erase(line);
	} else if (byte == KEY_KILL) {
		while (line->typed != line->ready)
			erase(line);
	} else if (byte == KEY_END) {
		add(line, END_OF_FILE);
	} else if (byte == KEY_INTERRUPT) {
		line->taken = line->ready = line->typed;
		line_output(line, "^C", 2);
		line->signal(SIGINT);
	} else {
		type_character(line, byte == '\r' ? '\n' : byte);
	}
}

/* Half empty, or no complete line yet: then the person must be able to finish it. */
bool line_has_room(const struct line *line)
{
	return line->typed - line->taken < LINE_CELLS / 2 || line->ready == line->taken;
}

/* ---- reading ---- */

uint32_t line_available(const struct line *line)
{
	return line->ready - line->taken;
}

/* At most one line: *is_end says that its end was reached, even if nothing was copied. */
uint32_t line_take(struct line *line, char *to, uint32_t size, bool *is_end)
{
	bool enabled = interrupts_disable();
	uint32_t count = 0;

	*is_end = false;
	while (line->taken != line->ready && !*is_end) {
		uint16_t content = *cell(line, line->taken);

		if (count == size && content != END_OF_FILE)
			break;
		line->taken++;
		*is_end = content & (ENDS_LINE | END_OF_FILE);
		if (content != END_OF_FILE)
			to[count++] = content;
	}
	interrupts_restore(enabled);
	return count;
}

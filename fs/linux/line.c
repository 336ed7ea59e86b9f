/* The terminal's line discipline with all of Linux's settings. fs/tty/tty.c has a drawing of its
 * cells.
 */
#include "fs/linux/line.h"

#include "kernel/abi/signal.h"
#include "kernel/cpu/interrupts.h"

#define ENDS_LINE   0x100u /* in a cell: a line ends after this byte */
#define END_OF_FILE 0x200u /* a line ends here; the cell holds no byte */
#define DELETE	    0x7f

static bool is_canonical(const struct line *line)
{
	return line->settings.local & ICANON;
}

static bool has(const struct line *line, uint32_t local)
{
	return (line->settings.local & local) == local;
}

static uint16_t *cell(struct line *line, uint32_t number)
{
	return &line->cells[number % LINE_CELLS];
}

void line_initialize(struct line *line,
		     void (*put)(struct line *line, const char *text, uint32_t length),
		     void (*signal)(struct line *line, int signal))
{
	static const struct linux_termios settings = {
		.input = ICRNL | IUTF8,
		.output = OPOST | ONLCR,
		.control = B115200 | CS8 | CREAD,
		.local = ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN,
		.characters = { 3, 0x1c, DELETE, 0x15, 4, 0, 1, 0, 0x11, 0x13, 0x1a, 0, 0x12, 0x0f,
				0x17, 0x16, 0 },
	};

	line->settings = settings;
	line->put = put;
	line->signal = signal;
	line_flush(line);
}

void line_flush(struct line *line)
{
	bool enabled = interrupts_disable();

	line->taken = line->ready = line->typed = 0;
	line->is_quoted = false;
	interrupts_restore(enabled);
}

/* What was typed before is bytes in the other mode, without marks: ^D is a NUL. In canonical mode
 * they are a line. */
static void change_mode(struct line *line)
{
	for (uint32_t i = line->taken; i != line->typed; i++)
		*cell(line, i) &= 0xff;
	if (is_canonical(line) && line->taken != line->typed)
		*cell(line, line->typed - 1) |= ENDS_LINE;
	line->ready = line->typed;
}

void line_set(struct line *line, const struct linux_termios *settings, bool flush)
{
	bool enabled = interrupts_disable();
	bool was_canonical = is_canonical(line);

	line->settings = *settings;
	if (flush)
		line_flush(line);
	else if (was_canonical != is_canonical(line))
		change_mode(line);
	interrupts_restore(enabled);
}

/* ---- the screen ---- */

void line_output(struct line *line, const char *text, uint32_t length)
{
	bool maps = (line->settings.output & (OPOST | ONLCR)) == (OPOST | ONLCR);
	uint32_t start = 0;

	for (uint32_t i = 0; i < length && maps; i++) {
		if (text[i] != '\n')
			continue;
		line->put(line, text + start, i - start);
		line->put(line, "\r\n", 2);
		start = i + 1;
	}
	if (start < length)
		line->put(line, text + start, length - start);
}

static bool shows_as_two(const struct line *line, uint8_t byte)
{
	return has(line, ECHOCTL) && (byte < ' ' || byte == DELETE) && byte != '\t' && byte != '\n';
}

static void echo(struct line *line, uint8_t byte)
{
	char two[] = { '^', byte ^ 0x40 };

	if (byte == '\n' && has(line, ICANON | ECHONL))
		line_output(line, "\n", 1);
	else if (!has(line, ECHO))
		return;
	else if (shows_as_two(line, byte))
		line_output(line, two, 2);
	else
		line_output(line, (const char *)&byte, 1);
}

/* ---- editing ---- */

/* Is it inside a character of UTF-8, and not its first byte? */
static bool continues_character(const struct line *line, uint8_t byte)
{
	return line->settings.input & IUTF8 && (byte & 0xc0) == 0x80;
}

/* Takes the last character of the line that is being edited back. Returns its last byte, or 0 when
 * the line is empty. */
static uint8_t erase(struct line *line)
{
	uint8_t byte = 0;

	while (line->typed != line->ready) {
		byte = *cell(line, --line->typed);
		if (!continues_character(line, byte))
			break;
	}
	if (byte && has(line, ECHO | ECHOE))
		line_output(line, "\b \b\b \b", shows_as_two(line, byte) ? 6 : 3);
	return byte;
}

static bool is_blank(struct line *line)
{
	uint8_t last = *cell(line, line->typed - 1);

	return last == ' ' || last == '\t';
}

static void erase_word(struct line *line)
{
	while (line->typed != line->ready && is_blank(line))
		erase(line);
	while (line->typed != line->ready && !is_blank(line))
		erase(line);
}

static void erase_line(struct line *line)
{
	while (line->typed != line->ready)
		erase(line);
	if (!has(line, ECHOKE) && has(line, ECHOK))
		echo(line, '\n');
}

static void show_again(struct line *line)
{
	echo(line, line->settings.characters[VREPRINT]);
	echo(line, '\n');
	for (uint32_t i = line->ready; i != line->typed; i++)
		echo(line, *cell(line, i));
}

/* Adds a cell. In canonical mode the last one is kept for the end of a line. */
static void add(struct line *line, uint16_t content)
{
	bool ends = content & (ENDS_LINE | END_OF_FILE);
	uint32_t limit = is_canonical(line) && !ends ? LINE_CELLS - 1 : LINE_CELLS;

	if (line->typed - line->taken >= limit)
		return;
	*cell(line, line->typed++) = content;
	if (ends || !is_canonical(line))
		line->ready = line->typed;
}

/* ---- what the bytes mean ---- */

static bool is_character(const struct line *line, uint8_t byte, unsigned which)
{
	return byte != 0 && line->settings.characters[which] == byte;
}

/* A key that sends a signal? Then the line is forgotten. */
static bool type_signal(struct line *line, uint8_t byte)
{
	int signal = is_character(line, byte, VINTR)   ? SIGINT
		     : is_character(line, byte, VQUIT) ? SIGQUIT
		     : is_character(line, byte, VSUSP) ? SIGTSTP
						       : 0;

	if (!signal || !has(line, ISIG))
		return false;
	if (!has(line, NOFLSH))
		line_flush(line);
	echo(line, byte);
	line->signal(line, signal);
	return true;
}

/* A key that edits the line? */
static bool type_edit(struct line *line, uint8_t byte)
{
	if (is_character(line, byte, VERASE))
		erase(line);
	else if (is_character(line, byte, VKILL))
		erase_line(line);
	else if (has(line, IEXTEN) && is_character(line, byte, VWERASE))
		erase_word(line);
	else if (has(line, IEXTEN) && is_character(line, byte, VREPRINT))
		show_again(line);
	else
		return false;
	return true;
}

static bool ends_line(const struct line *line, uint8_t byte)
{
	return byte == '\n' || is_character(line, byte, VEOL) ||
	       (has(line, IEXTEN) && is_character(line, byte, VEOL2));
}

static void type_canonical(struct line *line, uint8_t byte)
{
	if (type_edit(line, byte))
		return;
	if (is_character(line, byte, VEOF)) {
		add(line, END_OF_FILE);
		return;
	}
	echo(line, byte);
	add(line, ends_line(line, byte) ? byte | ENDS_LINE : byte);
}

/* What ICRNL and its like make of a byte; -1: nothing. */
static int map_input(const struct line *line, uint8_t byte)
{
	uint32_t input = line->settings.input;

	if (byte == '\r')
		return input & IGNCR ? -1 : input & ICRNL ? '\n' : '\r';
	return byte == '\n' && input & INLCR ? '\r' : byte;
}

static void type_mapped(struct line *line, uint8_t byte)
{
	if (type_signal(line, byte))
		return;
	if (has(line, ICANON | IEXTEN) && is_character(line, byte, VLNEXT)) {
		line->is_quoted = true;
	} else if (is_canonical(line)) {
		type_canonical(line, byte);
	} else {
		echo(line, byte);
		add(line, byte);
	}
}

void line_type(struct line *line, uint8_t byte)
{
	int mapped = line->is_quoted ? byte : map_input(line, byte);

	if (line->is_quoted) {
		line->is_quoted = false;
		echo(line, byte);
		add(line, byte);
	} else if (mapped >= 0) {
		type_mapped(line, mapped);
	}
}

bool line_has_room(const struct line *line)
{
	return line->typed - line->taken < LINE_CELLS / 2 || line->ready == line->taken;
}

/* ---- reading ---- */

uint32_t line_available(const struct line *line)
{
	return line->ready - line->taken;
}

static uint32_t take_cells(struct line *line, char *to, uint32_t size, bool *is_end)
{
	uint32_t count = 0;

	while (line->taken != line->ready && !*is_end) {
		uint16_t content = *cell(line, line->taken);

		if (count == size && content != END_OF_FILE)
			break;
		line->taken++;
		*is_end = content & (ENDS_LINE | END_OF_FILE);
		if (content != END_OF_FILE)
			to[count++] = content;
	}
	return count;
}

uint32_t line_take(struct line *line, char *to, uint32_t size, bool *is_end)
{
	bool enabled = interrupts_disable();

	*is_end = false;
	uint32_t count = take_cells(line, to, size, is_end);

	if (!is_canonical(line))
		*is_end = line->taken == line->ready;
	interrupts_restore(enabled);
	return count;
}

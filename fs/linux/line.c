/*
 * The terminal's line discipline with Linux's settings, as Linux's n_tty.c has it. What a byte that
 * is typed goes through:
 *
 *	line_type	a byte after ^V (VLNEXT) is taken as it is
 *	map_input	CR becomes NL, or the other way round (ICRNL, INLCR, IGNCR)
 *	type_signal	^C, ^\ and ^Z drop the line and send a signal (ISIG)
 *	type_canonical	with ICANON: editing, and the ends of lines; without it each byte is ready
 *	echo		what the other end shows of it (ECHO and its like)
 *
 * fs/tty/tty.c has the ring of cells that all of it ends in, and a drawing of that. termios(3).
 *
 * Typing may happen in an interrupt handler, so nothing here sleeps or allocates; what the reader
 * shares with it is changed with interrupts disabled.
 */
#include "fs/linux/line.h"

#include "kernel/abi/signal.h"

#define DELETE 0x7f

static bool is_canonical(const struct line *line)
{
	return line->settings.local & ICANON;
}

/* Are all of these local flags set? */
static bool has_local(const struct line *line, uint32_t local)
{
	return (line->settings.local & local) == local;
}

static uint16_t *cell(struct line *line, uint32_t number)
{
	return &line->ring->cells[number % TTY_CELLS];
}

/* As a Linux console is at boot: the control characters are ^C, ^\, DEL, ^U, ^D, then VTIME, VMIN,
 * and from VSTART on ^Q, ^S, ^Z. */
void line_initialize(struct line *line, struct tty_ring *ring,
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
	line->ring = ring;
	line->put = put;
	line->signal = signal;
	line_flush(line);
}

void line_flush(struct line *line)
{
	bool enabled = interrupts_disable();

	line->ring->taken = line->ring->ready = line->ring->typed;
	line->is_quoted = false;
	interrupts_restore(enabled);
}

/* What was typed before is bytes in the other mode, without marks: ^D is a NUL. In canonical mode
 * they are a line. */
static void line_change_mode(struct line *line)
{
	for (uint32_t i = line->ring->taken; i != line->ring->typed; i++)
		*cell(line, i) &= 0xff;
	if (is_canonical(line) && line->ring->taken != line->ring->typed)
		*cell(line, line->ring->typed - 1) |= TTY_ENDS_LINE;
	line->ring->ready = line->ring->typed;
}

/* TCSETSF flushes, TCSETS and TCSETSW keep what was typed; output is never waiting, so those two
 * are the same. */
void line_set(struct line *line, const struct linux_termios2 *settings, bool flush)
{
	bool enabled = interrupts_disable();
	bool was_canonical = is_canonical(line);

	line->all = *settings;
	if (flush)
		line_flush(line);
	else if (was_canonical != is_canonical(line))
		line_change_mode(line);
	interrupts_restore(enabled);
}

/* Bits a second of a code in the control flags; `other` is what BOTHER stands for. */
static uint32_t speed_of(uint32_t code, uint32_t other)
{
	static const uint32_t speeds[] = {
		0,	 50,	  75,	   110,	    134,     150,     200,     300,
		600,	 1200,	  1800,	   2400,    4800,    9600,    19200,   38400,
		57600,	 115200,  230400,  460800,  500000,  576000,  921600,  1000000,
		1152000, 1500000, 2000000, 2500000, 3000000, 3500000, 4000000,
	};

	code &= CBAUD;
	return code == BOTHER ? other : speeds[code < BOTHER ? code : code - BOTHER + B38400];
}

/* A code of 0 for the input says that it is as fast as the output. No speed changes anything here.
 */
struct linux_termios2 line_settings(const struct line *line)
{
	struct linux_termios2 all = line->all;
	uint32_t code = all.settings.control, input = code >> INPUT_SPEED;

	all.output_speed = speed_of(code, all.output_speed);
	all.input_speed = input & CBAUD ? speed_of(input, all.input_speed) : all.output_speed;
	return all;
}

/* ---- the screen ---- */

/* Text without a newline goes out in one piece: `put` may be slow to begin. */
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

/* Control characters are shown as ^C and the like; what moves the cursor is not. */
static bool shows_as_two(const struct line *line, uint8_t byte)
{
	return has_local(line, ECHOCTL) && (byte < ' ' || byte == DELETE) && byte != '\t' &&
	       byte != '\n';
}

/* A newline can be shown without ECHO: a program that reads a password wants that (ECHONL). */
static void echo(struct line *line, uint8_t byte)
{
	char two[] = { '^', byte ^ 0x40 };

	if (byte == '\n' && has_local(line, ICANON | ECHONL))
		line_output(line, "\n", 1);
	else if (!has_local(line, ECHO))
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
static uint8_t erase_character(struct line *line)
{
	uint8_t byte = 0;

	while (line->ring->typed != line->ring->ready) {
		byte = *cell(line, --line->ring->typed);
		if (!continues_character(line, byte))
			break;
	}
	if (byte && has_local(line, ECHO | ECHOE))
		line_output(line, "\b \b\b \b", shows_as_two(line, byte) ? 6 : 3);
	return byte;
}

static bool ends_in_blank(struct line *line)
{
	uint8_t last = *cell(line, line->ring->typed - 1);

	return last == ' ' || last == '\t';
}

/* Blanks after the word go with it. */
static void erase_word(struct line *line)
{
	while (line->ring->typed != line->ring->ready && ends_in_blank(line))
		erase_character(line);
	while (line->ring->typed != line->ring->ready && !ends_in_blank(line))
		erase_character(line);
}

/* With ECHOKE the line vanishes; with ECHOK alone it stays on the screen, and a new one begins. */
static void erase_line(struct line *line)
{
	while (line->ring->typed != line->ring->ready)
		erase_character(line);
	if (!has_local(line, ECHOKE) && has_local(line, ECHOK))
		echo(line, '\n');
}

/* The line that is being edited, after something else was written to the screen (^R). */
static void show_again(struct line *line)
{
	echo(line, line->settings.characters[VREPRINT]);
	echo(line, '\n');
	for (uint32_t i = line->ring->ready; i != line->ring->typed; i++)
		echo(line, *cell(line, i));
}

/* ---- what the bytes mean ---- */

/* Is it this control character? One that is set to 0 (_POSIX_VDISABLE) is not in use. */
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

	if (!signal || !has_local(line, ISIG))
		return false;
	if (!has_local(line, NOFLSH))
		line_flush(line);
	echo(line, byte);
	line->signal(line, signal);
	return true;
}

/* A key that edits the line? */
static bool type_edit(struct line *line, uint8_t byte)
{
	if (is_character(line, byte, VERASE))
		erase_character(line);
	else if (is_character(line, byte, VKILL))
		erase_line(line);
	else if (has_local(line, IEXTEN) && is_character(line, byte, VWERASE))
		erase_word(line);
	else if (has_local(line, IEXTEN) && is_character(line, byte, VREPRINT))
		show_again(line);
	else
		return false;
	return true;
}

/* Both are characters that the reader gets, unlike VEOF. */
static bool ends_line(const struct line *line, uint8_t byte)
{
	return byte == '\n' || is_character(line, byte, VEOL) ||
	       (has_local(line, IEXTEN) && is_character(line, byte, VEOL2));
}

/* One byte of a line that is being edited: what ends it makes all of it ready for the reader. */
static void type_canonical(struct line *line, uint8_t byte)
{
	if (type_edit(line, byte))
		return;
	if (is_character(line, byte, VEOF)) {
		tty_add(line->ring, TTY_END_OF_FILE, true);
		return;
	}
	bool ends = ends_line(line, byte);

	echo(line, byte);
	tty_add(line->ring, byte | (ends ? TTY_ENDS_LINE : 0), ends);
}

/* What ICRNL and its like make of a byte; -1: nothing. */
static int map_input(const struct line *line, uint8_t byte)
{
	uint32_t input = line->settings.input;

	if (byte == '\r')
		return input & IGNCR ? -1 : input & ICRNL ? '\n' : '\r';
	return byte == '\n' && input & INLCR ? '\r' : byte;
}

/* Signals come first, so ^C works while a line is edited, and without ICANON as well. */
static void type_mapped(struct line *line, uint8_t byte)
{
	if (type_signal(line, byte))
		return;
	if (has_local(line, ICANON | IEXTEN) && is_character(line, byte, VLNEXT)) {
		line->is_quoted = true;
	} else if (is_canonical(line)) {
		type_canonical(line, byte);
	} else {
		echo(line, byte);
		tty_add(line->ring, byte, true);
	}
}

/* After ^V nothing has a meaning, not even CR: it goes into the line as it is. */
void line_type(struct line *line, uint8_t byte)
{
	int mapped = line->is_quoted ? byte : map_input(line, byte);

	if (line->is_quoted) {
		line->is_quoted = false;
		echo(line, byte);
		tty_add(line->ring, byte, !is_canonical(line));
	} else if (mapped >= 0) {
		type_mapped(line, mapped);
	}
}

/* Half of the ring is kept free for what a sender has on its way when it is told to stop. */
bool line_has_room(const struct line *line)
{
	return line->ring->typed - line->ring->taken < TTY_CELLS / 2 || line_available(line) == 0;
}

/* ---- reading ---- */

uint32_t line_available(const struct line *line)
{
	return line->ring->ready - line->ring->taken;
}

/* Without ICANON cells have no marks: the end is that of what is there. */
uint32_t line_take(struct line *line, char *to, uint32_t size, bool *is_end)
{
	uint32_t count = tty_take(line->ring, to, size, is_end);

	if (!is_canonical(line))
		*is_end = line_available(line) == 0;
	return count;
}

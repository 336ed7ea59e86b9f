/*
 * Escape sequences on the text screen: ECMA-48, 5.4 (their form) and 8.3 (what they do).
 *
 * It sees every character before the screen does (vga_screen_filter), and does not pass on those of
 * a sequence:
 *
 *	ESC [ 3 1 ; 4 6 m	"ESC [" begins it, numbers with semicolons follow, a letter ends it
 *
 * There is one screen, so the state of a sequence is in variables of this file.
 */

#include "drivers/console/vga_screen.h"

#define ESCAPE	       '\033' /* begins a sequence, and aborts an unfinished one */
#define BRIGHT	       0x08   /* of the text's colour; of the background's it means blinking */
#define NUMBER_MAX     9999u  /* further digits are ignored */
#define PARAMETERS_MAX 8u     /* of a sequence; more are ignored */
#define TAB_STOPS      8

static enum {
	TEXT,
	BEHIND_ESCAPE,
	IN_SEQUENCE, /* after ESC [ */
} state;
static bool is_private; /* ESC [ ?: not for us */
static uint32_t count;	/* parameters after the first one */
static uint32_t parameters[PARAMETERS_MAX];
static uint8_t colours = VGA_GREY; /* as chosen */
static bool is_inverse;		   /* the screen's are exchanged */

/* Moves the cursor; a place outside the screen becomes the nearest one on it. */
static void go_to(struct vga_screen *screen, int32_t row, int32_t to)
{
	row = row < 0 ? 0 : row >= (int32_t)TEXT_LINES ? (int32_t)TEXT_LINES - 1 : row;
	to = to < 0 ? 0 : to >= (int32_t)TEXT_COLUMNS ? (int32_t)TEXT_COLUMNS - 1 : to;
	screen->position = row * TEXT_COLUMNS + to;
}

/* Distances are bounded by NUMBER_MAX, so signed arithmetic has room for them. */
static void go_by(struct vga_screen *screen, int32_t rows, int32_t columns)
{
	go_to(screen, screen->position / TEXT_COLUMNS + rows, vga_column(screen) + columns);
}

/* From the cursor to the end (0), from the start up to the cursor (1), or all (2). */
static void erase_part(struct vga_screen *screen, uint32_t part, uint32_t start, uint32_t end)
{
	vga_screen_erase(screen, part == 0 ? screen->position : start,
			 part == 1 ? screen->position + 1 : end);
}

/* Colours are numbered red, green, blue from the lowest bit on; the screen has it the other way. */
static uint8_t colour_of(uint32_t number)
{
	return (number & 1) << 2 | (number & 2) | (number & 4) >> 2;
}

/* 30 to 37 choose the colour of the text, 40 to 47 that of the background; 39 and 49 the first
 * ones. */
static void choose_colour(uint32_t tens, uint32_t number)
{
	uint8_t text = number > 7 ? VGA_GREY : colour_of(number), behind = number > 7 ? 0 : text;

	if (tens == 3)
		colours = (colours & ~VGA_GREY) | text;
	else if (tens == 4)
		colours = (colours & (VGA_GREY | BRIGHT)) | behind << 4;
}

/* One parameter of ESC [ m: 0 normal, 1 bright, 7 and 27 inverse on and off, 30 to 49 colours. */
static void set_rendition(uint32_t rendition)
{
	if (rendition == 0)
		colours = VGA_GREY;
	else if (rendition == 1)
		colours |= BRIGHT;
	else
		choose_colour(rendition / 10, rendition % 10);
	if (rendition == 0 || rendition == 7 || rendition == 27)
		is_inverse = rendition == 7;
}

/* In an inverse cell the upper half may not be bright: that would blink. */
static uint8_t shown_colours(void)
{
	return is_inverse ? (colours << 4 | colours >> 4) & ~(BRIGHT << 4) : colours;
}

/* Carries out a complete sequence. An absent parameter is 0; for distances and places that means 1.
 * Rows and columns count from 1. */
static void run_sequence(struct vga_screen *screen, char letter)
{
	static const int8_t down[] = { -1, 1, 0, 0 }, right[] = { 0, 0, 1, -1 }; /* A to D */
	int32_t distance = parameters[0] ? parameters[0] : 1;
	uint32_t line = screen->position - vga_column(screen);

	switch (letter) {
	case 'A' ... 'D':
		return go_by(screen, down[letter - 'A'] * distance, right[letter - 'A'] * distance);
	case 'H':
		return go_to(screen, distance - 1, (int32_t)parameters[1] - 1);
	case 'J':
		return erase_part(screen, parameters[0], 0, VGA_CELLS);
	case 'K':
		return erase_part(screen, parameters[0], line, line + TEXT_COLUMNS);
	case 'm':
		for (uint32_t i = 0; i <= count && i < PARAMETERS_MAX; i++)
			set_rendition(parameters[i]);
		screen->colours = shown_colours();
	}
}

/* One byte of a sequence: a digit, a separator, or the letter that ends it. Numbers and their count
 * are bounded, because a program may write anything. A sequence that this screen does not know is
 * read to its letter, and has no effect. */
static void take_byte(struct vga_screen *screen, char byte)
{
	uint32_t *number = &parameters[count % PARAMETERS_MAX];

	if (byte >= '@') {
		state = TEXT;
		if (!is_private)
			run_sequence(screen, byte);
		screen->is_full = screen->is_full && byte == 'm';
	} else if (byte == ';') {
		count++;
	} else if (byte < '0' || byte > '9') {
		is_private = true;
	} else if (count < PARAMETERS_MAX && *number <= NUMBER_MAX) {
		*number = *number * 10 + (byte - '0');
	}
}

/* The character after ESC. Other kinds of sequences are two characters long and are ignored. */
static void begin(char byte)
{
	state = byte == '[' ? IN_SEQUENCE : TEXT;
	is_private = false;
	count = 0;
	for (uint32_t i = 0; i < PARAMETERS_MAX; i++)
		parameters[i] = 0;
}

/* Control characters end a sequence that has not come to its end, and are the screen's; a tab,
 * which the screen does not know, goes to the next stop. */
bool vga_screen_filter(struct vga_screen *screen, char character)
{
	if ((uint8_t)character < ' ')
		state = character == ESCAPE ? BEHIND_ESCAPE : TEXT;
	else if (state == BEHIND_ESCAPE)
		begin(character);
	else if (state == IN_SEQUENCE)
		take_byte(screen, character);
	else
		return false;
	if (character == '\t')
		go_by(screen, 0, TAB_STOPS - (int32_t)vga_column(screen) % TAB_STOPS);
	return character == ESCAPE || (uint8_t)character >= ' ';
}

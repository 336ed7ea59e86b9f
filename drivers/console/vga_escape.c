/* Escape sequences on the text screen: ECMA-48, 5.4 (their form) and 8.3 (what they do). */
#include "drivers/console/vga_escape.h"

#define ESCAPE	   '\033'
#define GREY	   0x07 /* on black */
#define BRIGHT	   0x08
#define BLANK	   (GREY << 8 | ' ')
#define NUMBER_MAX 9999u

static uint32_t column(const struct vga_screen *screen)
{
	return screen->position % VGA_COLUMNS;
}

/* Erases the cells from `first` up to the one before `end`. */
static void erase(struct vga_screen *screen, uint32_t first, uint32_t end)
{
	while (first < end)
		screen->cells[first++] = BLANK;
}

static void scroll(struct vga_screen *screen)
{
	for (uint32_t i = 0; i < VGA_CELLS - VGA_COLUMNS; i++)
		screen->cells[i] = screen->cells[i + VGA_COLUMNS];
	erase(screen, VGA_CELLS - VGA_COLUMNS, VGA_CELLS);
	screen->position -= VGA_COLUMNS;
}

static void go_down(struct vga_screen *screen)
{
	screen->position += VGA_COLUMNS;
	if (screen->position >= VGA_CELLS)
		scroll(screen);
}

/* To a place that may lie outside the screen: to the nearest one on it. */
static void go_to(struct vga_screen *screen, int32_t row, int32_t to)
{
	row = row < 0 ? 0 : row >= (int32_t)VGA_ROWS ? (int32_t)VGA_ROWS - 1 : row;
	to = to < 0 ? 0 : to >= (int32_t)VGA_COLUMNS ? (int32_t)VGA_COLUMNS - 1 : to;
	screen->position = row * VGA_COLUMNS + to;
}

static void go_by(struct vga_screen *screen, int32_t rows, int32_t columns)
{
	go_to(screen, screen->position / VGA_COLUMNS + rows, column(screen) + columns);
}

/* The line's end has been written to: only the next character begins a new line, for a newline may
 * come before it. */
static void show(struct vga_screen *screen, char character)
{
	uint8_t colours = screen->colours;

	if (screen->is_full) {
		screen->position -= column(screen);
		go_down(screen);
	}
	if (screen->is_inverse)
		colours = (colours << 4 | colours >> 4) & ~(BRIGHT << 4); /* that would blink */
	screen->cells[screen->position] = colours << 8 | (uint8_t)character;
	screen->is_full = column(screen) == VGA_COLUMNS - 1;
	screen->position += !screen->is_full;
}

/* From the cursor to the end (0), from the start up to the cursor (1), or all (2). */
static void erase_part(struct vga_screen *screen, uint32_t part, uint32_t start, uint32_t end)
{
	erase(screen, part == 0 ? screen->position : start, part == 1 ? screen->position + 1 : end);
}

/* Colours are numbered red, green, blue from the lowest bit on; the screen has it the other way. */
static uint8_t colour_of(uint32_t number)
{
	return (number & 1) << 2 | (number & 2) | (number & 4) >> 2;
}

/* Of the tens 3 and 4, for what is written and for what is behind it; 9 is as at first. */
static void choose_colour(struct vga_screen *screen, uint32_t tens, uint32_t number)
{
	uint8_t text = number > 7 ? GREY : colour_of(number), behind = number > 7 ? 0 : text;

	if (tens == 3)
		screen->colours = (screen->colours & ~GREY) | text;
	else if (tens == 4)
		screen->colours = (screen->colours & (GREY | BRIGHT)) | behind << 4;
}

static void choose(struct vga_screen *screen, uint32_t rendition)
{
	if (rendition == 0)
		screen->colours = GREY;
	else if (rendition == 1)
		screen->colours |= BRIGHT;
	else
		choose_colour(screen, rendition / 10, rendition % 10);
	if (rendition == 0 || rendition == 7 || rendition == 27)
		screen->is_inverse = rendition == 7;
}

/* Does what the sequence says that ends with this letter. */
static void finish(struct vga_screen *screen, char letter)
{
	const uint32_t *parameters = screen->parameters;
	int32_t distance = parameters[0] ? parameters[0] : 1;
	uint32_t line = screen->position - column(screen);

	switch (letter) {
	case 'A':
		return go_by(screen, -distance, 0);
	case 'B':
		return go_by(screen, distance, 0);
	case 'C':
		return go_by(screen, 0, distance);
	case 'D':
		return go_by(screen, 0, -distance);
	case 'H':
		return go_to(screen, distance - 1, (int32_t)parameters[1] - 1);
	case 'J':
		return erase_part(screen, parameters[0], 0, VGA_CELLS);
	case 'K':
		return erase_part(screen, parameters[0], line, line + VGA_COLUMNS);
	case 'm':
		for (uint32_t i = 0; i <= screen->count && i < VGA_PARAMETERS; i++)
			choose(screen, parameters[i]);
	}
}

/* A byte behind ESC [. */
static void take(struct vga_screen *screen, char byte)
{
	uint32_t *number = &screen->parameters[screen->count % VGA_PARAMETERS];

	if (byte >= '@') {
		screen->state = VGA_TEXT;
		if (!screen->is_private)
			finish(screen, byte);
		screen->is_full = screen->is_full && byte == 'm';
	} else if (byte == ';') {
		screen->count++;
	} else if (byte < '0' || byte > '9') {
		screen->is_private = true;
	} else if (screen->count < VGA_PARAMETERS && *number <= NUMBER_MAX) {
		*number = *number * 10 + (byte - '0');
	}
}

static void begin(struct vga_screen *screen, char byte)
{
	screen->state = byte == '[' ? VGA_SEQUENCE : VGA_TEXT;
	screen->is_private = false;
	screen->count = 0;
	for (uint32_t i = 0; i < VGA_PARAMETERS; i++)
		screen->parameters[i] = 0;
}

/* These end a sequence that has not come to its end. */
static void obey(struct vga_screen *screen, char character)
{
	screen->state = character == ESCAPE ? VGA_ESCAPE : VGA_TEXT;
	if (character == '\n')
		go_down(screen);
	else if (character == '\r')
		screen->position -= column(screen);
	else if (character == '\b')
		screen->position -= column(screen) > 0;
	else if (character == '\t')
		go_by(screen, 0, 8 - column(screen) % 8);
	screen->is_full = screen->is_full && character == ESCAPE;
}

void vga_screen_put(struct vga_screen *screen, char character)
{
	if ((uint8_t)character < ' ')
		obey(screen, character);
	else if (screen->state == VGA_ESCAPE)
		begin(screen, character);
	else if (screen->state == VGA_SEQUENCE)
		take(screen, character);
	else
		show(screen, character);
}

void vga_screen_initialize(struct vga_screen *screen, volatile uint16_t *cells, uint32_t position)
{
	*screen = (struct vga_screen){
		.cells = cells,
		.position = position < VGA_CELLS ? position : 0,
		.colours = GREY,
	};
}

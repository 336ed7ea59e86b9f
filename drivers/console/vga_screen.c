/*
 * A screen of text: a cell for each character, line after line, and the cursor's cell.
 *
 * A line that has been filled to its end waits: the cursor stays at the last cell, and only the
 * next character goes to a new line. So a newline that comes first makes no empty line:
 *
 *	... x y z|	is_full, the cursor is at z
 *	... x y z	a newline: the cursor is below, and nothing is left empty
 *
 * Below the last line the text moves up by one. Any character may come, from any program.
 */
#include "drivers/console/vga_screen.h"

#define BLANK (VGA_GREY << 8 | ' ')

/* From `first` up to the cell before `end`; the cursor stays. */
void vga_screen_erase(struct vga_screen *screen, uint32_t first, uint32_t end)
{
	while (first < end)
		screen->cells[first++] = BLANK;
}

/* One line up: the topmost line is lost, and the cursor stays on its text. */
static void scroll(struct vga_screen *screen)
{
	for (uint32_t i = 0; i < VGA_CELLS - TEXT_COLUMNS; i++)
		screen->cells[i] = screen->cells[i + TEXT_COLUMNS];
	vga_screen_erase(screen, VGA_CELLS - TEXT_COLUMNS, VGA_CELLS);
	screen->position -= TEXT_COLUMNS;
}

/* In the same column; at the bottom the text moves instead of the cursor. */
static void go_down(struct vga_screen *screen)
{
	screen->position += TEXT_COLUMNS;
	if (screen->position >= VGA_CELLS)
		scroll(screen);
}

/* In the last column the cursor stays, and is_full remembers that the line is complete. */
static void show_character(struct vga_screen *screen, char character)
{
	if (screen->is_full) {
		screen->position -= vga_column(screen);
		go_down(screen);
	}
	screen->cells[screen->position] = screen->colours << 8 | (uint8_t)character;
	screen->is_full = vga_column(screen) == TEXT_COLUMNS - 1;
	screen->position += !screen->is_full;
}

/* Control characters. All except these three have no effect, and are not shown. */
static void obey(struct vga_screen *screen, char character)
{
	if (character == '\n')
		go_down(screen);
	else if (character == '\r')
		screen->position -= vga_column(screen);
	else if (character == '\b')
		screen->position -= vga_column(screen) > 0;
	screen->is_full = false;
}

/* With interrupts disabled, as printk has them. */
void vga_screen_put(struct vga_screen *screen, char character)
{
	if (vga_screen_filter && vga_screen_filter(screen, character))
		return;
	if ((uint8_t)character < ' ')
		obey(screen, character);
	else
		show_character(screen, character);
}

void vga_screen_initialize(struct vga_screen *screen, volatile uint16_t *cells)
{
	*screen = (struct vga_screen){
		.cells = cells,
		.position = VGA_CELLS - TEXT_COLUMNS,
		.colours = VGA_GREY,
	};
}

/* The VGA text screen: characters at 0xb8000, the cursor in the CRT controller (IBM VGA manual,
 * chapter 2). */
#include "drivers/vga.h"

#include <stdint.h>

#include "kernel/io.h"
#include "kernel/memory_layout.h"
#include "kernel/printk.h"
#include "kernel/string.h"

#define COLUMNS	    80u
#define ROWS	    25u
#define TEXT_BUFFER 0xb8000
#define LIGHT_GREY  0x0700
#define CRTC_INDEX  0x3d4
#define CRTC_DATA   0x3d5
#define CURSOR_HIGH 0x0e
#define CURSOR_LOW  0x0f

static uint16_t *const cells = (uint16_t *)(KERNEL_BASE + TEXT_BUFFER);
static uint32_t position; /* of the next character, counted in cells */

static uint8_t crtc_read(uint8_t index)
{
	out8(CRTC_INDEX, index);
	return in8(CRTC_DATA);
}

static void crtc_write(uint8_t index, uint8_t value)
{
	out8(CRTC_INDEX, index);
	out8(CRTC_DATA, value);
}

static void scroll(void)
{
	memmove(cells, cells + COLUMNS, (ROWS - 1) * COLUMNS * sizeof(*cells));
	for (uint32_t i = (ROWS - 1) * COLUMNS; i < ROWS * COLUMNS; i++)
		cells[i] = LIGHT_GREY | ' ';
	position -= COLUMNS;
}

static void put(char character)
{
	if (character == '\n')
		position += COLUMNS - position % COLUMNS;
	else if (character == '\r')
		position -= position % COLUMNS;
	else if (character == '\b')
		position -= position % COLUMNS ? 1 : 0;
	else
		cells[position++] = LIGHT_GREY | (uint8_t)character;
	if (position >= ROWS * COLUMNS)
		scroll();
	crtc_write(CURSOR_HIGH, position >> 8);
	crtc_write(CURSOR_LOW, position);
}

void vga_initialize(void)
{
	static struct console console = { .put = put };

	position = crtc_read(CURSOR_HIGH) << 8 | crtc_read(CURSOR_LOW);
	if (position >= ROWS * COLUMNS)
		position = 0;
	console_register(&console);
}

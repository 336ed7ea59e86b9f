/*
 * The VGA text screen as a console (IBM VGA manual, chapter 2; text mode 3, which the BIOS has
 * set).
 *
 * 80 by 25 cells of two bytes at physical address 0xb8000, the character and its colours. To write
 * to the memory is all that is needed; the hardware redraws it 70 times a second:
 *
 *	'A', white on blue, at row 2, column 5:		cell 165, bytes 0x41 0x1f at 0xb814a
 *
 * What characters do to the screen is drivers/console/vga_screen.c. This file connects it with the
 * hardware: the memory by way of the direct map, and the blinking cursor, whose cell number is in
 * two registers of the CRT controller. They are reached through an index port, so an interrupt that
 * prints must not come in between: printk has interrupts disabled.
 */
#include "drivers/console/vga.h"

#include "drivers/console/vga_screen.h"
#include "kernel/cpu/io.h"
#include "kernel/cpu/memory_layout.h"
#include "kernel/report/printk.h"

#define CRTC_INDEX  0x3d4
#define CRTC_DATA   0x3d5
#define CURSOR_HIGH 0x0e
#define CURSOR_LOW  0x0f

static struct vga_screen screen;

/* Index first, then data: two accesses that belong together. */
static void crtc_write(uint8_t index, uint8_t value)
{
	out8(CRTC_INDEX, index);
	out8(CRTC_DATA, value);
}

/* The cursor follows each character: the hardware does not know where text goes next. */
static void put_unchanged(char character)
{
	vga_screen_put(&screen, character);
	crtc_write(CURSOR_HIGH, screen.position >> 8);
	crtc_write(CURSOR_LOW, screen.position);
}

/* A newline only moves down a line, so a carriage return is sent, too. */
static void put_on_screen(char character)
{
	if (character == '\n')
		vga_screen_put(&screen, '\r');
	put_unchanged(character);
}

/* Begins in the last line, so that the text of the BIOS and the boot loader moves up, and stays
 * readable. */
void vga_initialize(void)
{
	static struct console console = { .put = put_on_screen, .put_unchanged = put_unchanged };

	vga_screen_initialize(&screen, (uint16_t *)(KERNEL_BASE + TEXT_SCREEN));
	console_register(&console);
}

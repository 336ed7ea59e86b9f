/* The VGA text screen: characters at 0xb8000, the cursor in the CRT controller (IBM VGA manual,
 * chapter 2). */
#include "drivers/console/vga.h"

#include <stdint.h>

#include "drivers/console/vga_screen.h"
#include "kernel/cpu/io.h"
#include "kernel/cpu/memory_layout.h"
#include "kernel/report/printk.h"

#define TEXT_BUFFER 0xb8000
#define CRTC_INDEX  0x3d4
#define CRTC_DATA   0x3d5
#define CURSOR_HIGH 0x0e
#define CURSOR_LOW  0x0f

static struct vga_screen screen;

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

static void put_unchanged(char character)
{
	vga_screen_put(&screen, character);
	crtc_write(CURSOR_HIGH, screen.position >> 8);
	crtc_write(CURSOR_LOW, screen.position);
}

static void put(char character)
{
	if (character == '\n')
		vga_screen_put(&screen, '\r');
	put_unchanged(character);
}

void vga_initialize(void)
{
	static struct console console = { .put = put, .put_unchanged = put_unchanged };

	vga_screen_initialize(&screen, (uint16_t *)(KERNEL_BASE + TEXT_BUFFER),
			      crtc_read(CURSOR_HIGH) << 8 | crtc_read(CURSOR_LOW));
	console_register(&console);
}

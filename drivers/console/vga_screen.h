/*
 * A screen of text: the place of each character, and scrolling. It knows no device, so the host can
 * test it; drivers/console/vga.c gives it the VGA's memory.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/cpu/pc.h"
#include "kernel/lib/optional.h"

#define VGA_CELLS (TEXT_COLUMNS * TEXT_LINES)
#define VGA_GREY  0x07 /* on black */

struct vga_screen {
	volatile uint16_t *cells; /* a character each, and its colours in the upper half */
	uint32_t position;	  /* the cursor's cell */
	bool is_full;		  /* the cursor's cell is a line's last, and has been written */
	uint8_t colours;	  /* of the next characters: the background's in the upper half */
};

/* Begins with the cursor in the last line, and grey on black. What is on the screen stays. */
void vga_screen_initialize(struct vga_screen *screen, volatile uint16_t *cells);

/* Takes one character. A newline goes straight down; of other control characters those that move
 * the cursor are obeyed. */
void vga_screen_put(struct vga_screen *screen, char character);

/* Erases the cells from `first` up to the one before `end`. */
void vga_screen_erase(struct vga_screen *screen, uint32_t first, uint32_t end);

static inline uint32_t vga_column(const struct vga_screen *screen)
{
	return screen->position % TEXT_COLUMNS;
}

/* Sees every character first. Returns true for a character that it has handled: that one is not
 * shown. */
bool vga_screen_filter(struct vga_screen *screen, char character) OPTIONAL;

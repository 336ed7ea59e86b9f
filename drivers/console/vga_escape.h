/* A screen of text that understands a terminal's escape sequences: those of ECMA-48 that an editor
 * or a shell uses to move the cursor, to erase, and to choose colours. Others are left out. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define VGA_COLUMNS    80u
#define VGA_ROWS       25u
#define VGA_CELLS      (VGA_COLUMNS * VGA_ROWS)
#define VGA_PARAMETERS 8u /* of a sequence; more are left out */

enum vga_state {
	VGA_TEXT,
	VGA_ESCAPE,   /* behind ESC */
	VGA_SEQUENCE, /* behind ESC [ */
};

struct vga_screen {
	volatile uint16_t *cells; /* a character each, and its colours in the upper half */
	uint32_t position;	  /* the cursor's cell */
	bool is_full;		  /* the cursor's cell is a line's last, and has been written */
	uint8_t colours;	  /* of what comes: the background's in the upper half */
	bool is_inverse;	  /* the two have changed places */
	enum vga_state state;
	bool is_private; /* ESC [ ?: not for us */
	uint32_t count;	 /* parameters behind the first one */
	uint32_t parameters[VGA_PARAMETERS];
};

/* Begins with the cursor at this cell, and grey on black. What is on the screen stays. */
void vga_screen_initialize(struct vga_screen *screen, volatile uint16_t *cells, uint32_t position);

/* Takes one character. A newline goes straight down. */
void vga_screen_put(struct vga_screen *screen, char character);

/* The VGA text screen, 80 by 25. */
#pragma once

/* Registers the screen as a console, after what the BIOS and the boot loader have written. */
void vga_initialize(void);
